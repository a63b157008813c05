//! The clients of a soak: HTTP clients, commands, a killer, and readers.
//!
//! Some sockets keep up, some are slow, and some leave without a word.

use super::{Phase, Scene};
use crate::deeds::{Means, Outcome, perform};
use crate::harness::{Dice, Events, try_socket};
use crate::plan::{By, Deed, What};
use futures_util::StreamExt;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// Those who do things and have not yet seen that it is quiet.
static BUSY: AtomicUsize = AtomicUsize::new(0);
/// Heard when nobody does anything any more.
static IDLE: Notify = Notify::const_new();

/// Everybody, each with chance of their own.
pub fn gather(scene: &Arc<Scene>, dice: &mut Dice) -> JoinSet<()> {
    let mut crowd = JoinSet::new();
    let mut seeds = std::iter::repeat_with(|| Dice::new(dice.roll(u64::MAX)));
    let mut next = || seeds.next().expect("there is always another");
    for _ in 0..4 {
        crowd.spawn(doer(Arc::clone(scene), next(), By::Http));
    }
    crowd.spawn(doer(Arc::clone(scene), next(), By::Command));
    crowd.spawn(murderer(Arc::clone(scene), next()));
    crowd.spawn(tidier(Arc::clone(scene), next()));
    for _ in 0..2 {
        crowd.spawn(reader(Arc::clone(scene), next()));
    }
    for _ in 0..6 {
        crowd.spawn(follower(Arc::clone(scene)));
    }
    for _ in 0..2 {
        crowd.spawn(laggard(Arc::clone(scene), next()));
    }
    for _ in 0..2 {
        crowd.spawn(dropper(Arc::clone(scene), next()));
    }
    for _ in 0..6 {
        crowd.spawn(log_reader(Arc::clone(scene), next()));
    }
    crowd.spawn(half_caller(Arc::clone(scene), next()));
    crowd
}

/// Waits until whoever does things has finished.
pub async fn until_idle(scene: &Scene) {
    crate::harness::within("an end of the churn", async {
        loop {
            // Made before the look, so that an end between the two is not missed.
            let ended = IDLE.notified();
            if BUSY.load(Ordering::SeqCst) == 0 {
                return;
            }
            ended.await;
        }
    })
    .await;
    assert!(!scene.is_churning());
}

/// Counts one who does things, as long as it does.
struct Busy;

impl Busy {
    fn begin() -> Self {
        BUSY.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if BUSY.fetch_sub(1, Ordering::SeqCst) == 1 {
            IDLE.notify_waiters();
        }
    }
}

/// A breath; the load is to be steady, not the heaviest possible.
async fn breathe(dice: &mut Dice, most_ms: u64) {
    tokio::time::sleep(Duration::from_millis(1 + dice.roll(most_ms))).await;
}

/// Starts, stops, resumes and forgets.
async fn doer(scene: Arc<Scene>, mut dice: Dice, by: By) {
    let busy = Busy::begin();
    let client = scene.client();
    while scene.is_churning() {
        let at = usize::try_from(dice.roll(scene.projects.len() as u64)).unwrap();
        let newest = scene.newest.lock().unwrap().get(&at).cloned();
        let what = match (dice.roll(12), &newest) {
            (_, None) => What::Start,
            (0..=4, Some(_)) => What::Start,
            (5..=7, Some(_)) => What::Stop,
            (8..=9, Some(_)) => What::Resume,
            (_, Some(_)) => What::Forget,
        };
        if let (What::Forget, Some(id)) = (what, &newest) {
            scene.books.lock().unwrap().give_up(id);
        }
        let deed = Deed { by, what, project: at, waits: dice.roll(3) > 0 };
        let project = scene.projects[at].clone();
        let (client, env) = (client.clone(), Vec::new());
        let means = Means { world: &scene.world, project, client, env, cut: None, newest };
        match perform(deed, means).await {
            Outcome::Done(id) => {
                scene.books.lock().unwrap().promise(&id);
                scene.newest.lock().unwrap().insert(at, id);
                scene.count("deeds done");
            }
            Outcome::Gone => {
                scene.newest.lock().unwrap().remove(&at);
                scene.count("records forgotten");
            }
            Outcome::Refused(_) => {
                // Somebody else was faster: it is looked up again by a start.
                scene.newest.lock().unwrap().remove(&at);
                scene.count("deeds refused");
            }
            Outcome::Silence => panic!("{deed:?} was not answered"),
        }
        breathe(&mut dice, 200).await;
    }
    drop(busy);
    let mut phase = scene.phase.clone();
    let _ = phase.wait_for(|phase| matches!(phase, Phase::Over(_))).await;
}

/// Kills agents.
async fn murderer(scene: Arc<Scene>, mut dice: Dice) {
    let busy = Busy::begin();
    while scene.is_churning() {
        let world = Arc::clone(&scene.world);
        let (of_agents, kind) = match dice.roll(6) {
            0 => (false, "keepers killed"),
            _ => (true, "agents killed"),
        };
        let victims = move || {
            if !of_agents {
                return world.keepers();
            }
            let mut all = world.bridges();
            all.extend(world.sessions());
            all
        };
        let bridges = tokio::task::spawn_blocking(victims).await.unwrap();
        if !bridges.is_empty() {
            let victim = dice.pick(&bridges);
            let project = victim.cwd.as_ref().and_then(|cwd| cwd.file_name());
            let project = project.map(|name| name.to_string_lossy().into_owned());
            scene.harmed.lock().unwrap().extend(project);
            victim.signal(rustix::process::Signal::KILL);
            scene.count(kind);
        }
        breathe(&mut dice, 1500).await;
    }
    drop(busy);
    let mut phase = scene.phase.clone();
    let _ = phase.wait_for(|phase| matches!(phase, Phase::Over(_))).await;
}

/// Forgets the oldest ended records, so that the history has a stable size.
/// Memory that still grows is not records.
async fn tidier(scene: Arc<Scene>, mut dice: Dice) {
    let busy = Busy::begin();
    let client = scene.client();
    while scene.is_churning() {
        let newest: BTreeSet<String> = scene.newest.lock().unwrap().values().cloned().collect();
        let mut old = client.instances().await;
        // The newest of a project is for those who resume.
        old.retain(|row| row.ended_at.is_some() && !newest.contains(row.instance_id.as_str()));
        old.sort_by_key(|row| row.ended_at);
        for row in &old[..old.len().saturating_sub(scene.projects.len())] {
            let id = row.instance_id.as_str();
            scene.books.lock().unwrap().give_up(id);
            let reply = client.post(&format!("/api/instances/{id}/forget")).await;
            match reply.status {
                200 => scene.count("records tidied away"),
                // Somebody resumed it meanwhile, or forgot it.
                404 | 409 => scene.count("records not tidied away"),
                _ => panic!("{id} was not forgotten: {}: {}", reply.status, reply.text()),
            }
        }
        breathe(&mut dice, 2000).await;
    }
    drop(busy);
    let mut phase = scene.phase.clone();
    let _ = phase.wait_for(|phase| matches!(phase, Phase::Over(_))).await;
}

/// Reads what pages and programs read.
async fn reader(scene: Arc<Scene>, mut dice: Dice) {
    const PATHS: [&str; 6] =
        ["/api/v1/instances", "/api/v1/projects", "/api/state", "/healthz", "/", "/metrics"];
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    while !scene.is_over() {
        let path = *dice.pick(&PATHS);
        let reply = http.get(format!("{}{path}", scene.base)).send().await.expect("an answer");
        let status = reply.status().as_u16();
        assert!(status < 500, "{path} was answered {status}");
        reply.bytes().await.expect("the whole answer");
        scene.count("reads");
        breathe(&mut dice, 100).await;
    }
}

/// Follows the stream without a gap, as a page does, and compares it at the end.
async fn follower(scene: Arc<Scene>) {
    let mut phase = scene.phase.clone();
    let mut events = Events::open(&scene.base).await;
    let truth = loop {
        tokio::select! {
            over = phase.wait_for(|phase| matches!(phase, Phase::Over(_))) => {
                match &*over.expect("the run goes on") {
                    Phase::Over(truth) => break Arc::clone(truth),
                    Phase::Churn | Phase::Quiet => {}
                }
            }
            _ = events.next() => scene.count("frames followed"),
        }
    };
    let agrees = |state: &svc_shared::internal::State| {
        let shown = state.instances.values();
        let shown = shown.map(|row| (row.instance_id.to_string(), row.status.to_string()));
        shown.eq(truth.iter().map(|(id, status)| (id.clone(), status.clone()))).then_some(())
    };
    events.until("the records as they are", agrees).await;
}

/// Follows the stream too slowly. It may be cut off; then it comes again.
async fn laggard(scene: Arc<Scene>, mut dice: Dice) {
    while !scene.is_over() {
        let Ok(mut socket) = try_socket(&scene.base, "/ws/events").await else { continue };
        scene.count("slow followers");
        while let Ok(Some(Ok(_))) =
            tokio::time::timeout(Duration::from_secs(5), socket.next()).await
        {
            if scene.is_over() {
                return;
            }
            breathe(&mut dice, 2000).await;
        }
    }
}

/// Opens streams and goes without a word.
async fn dropper(scene: Arc<Scene>, mut dice: Dice) {
    while !scene.is_over() {
        let mut socket = try_socket(&scene.base, "/ws/events").await.expect("a stream");
        for _ in 0..dice.roll(8) {
            let wait = Duration::from_millis(300);
            let _ = tokio::time::timeout(wait, socket.next()).await; // nothing happens: fine
        }
        scene.count("streams dropped");
        drop(socket);
        breathe(&mut dice, 300).await;
    }
}

/// Reads logs of bridges that come and go, at any speed, and drops them.
async fn log_reader(scene: Arc<Scene>, mut dice: Dice) {
    while !scene.is_over() {
        breathe(&mut dice, 400).await;
        let known: Vec<String> = scene.newest.lock().unwrap().values().cloned().collect();
        if known.is_empty() {
            continue;
        }
        let path = format!("/ws/bridge-log/{}?format=json", dice.pick(&known));
        // Forgotten meanwhile: then there is nothing to open.
        let Ok(mut socket) = try_socket(&scene.base, &path).await else { continue };
        scene.count("logs read");
        let slow = dice.roll(3) == 0;
        for _ in 0..dice.roll(200) {
            if scene.is_over() {
                return;
            }
            let wait = Duration::from_millis(500);
            match tokio::time::timeout(wait, socket.next()).await {
                Ok(Some(Ok(_))) => scene.count("log frames"),
                Ok(_) => break,
                Err(_) => {}
            }
            if slow {
                breathe(&mut dice, 50).await;
            }
        }
    }
}

/// Connects, says half of what it wants, and goes.
async fn half_caller(scene: Arc<Scene>, mut dice: Dice) {
    let address = scene.base.trim_start_matches("http://").to_owned();
    while !scene.is_over() {
        let mut stream = TcpStream::connect(&address).await.expect("a connection");
        let _ = stream.write_all(b"GET /api/state HTTP/1.1\r\nHost: loc").await; // cut off: fine
        scene.count("half calls");
        breathe(&mut dice, 600).await;
    }
}
