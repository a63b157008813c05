//! A thousand questions of Direct Sessions while service and daemon die.
//!
//! Two devices answer each of them.

use crate::backups::table;
use crate::direct_sessions::{asked, daemons, enabled, launch, say, stands};
use crate::harness::{Client, Dice, Events, Server};
use futures_util::future::join_all;
use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use svc_shared::api::instances::PendingPermission;

const SESSIONS: usize = 8;
const QUESTIONS: usize = 1_000;
/// Deaths of the service, each while answers are on their way.
const DEATHS: usize = 8;
/// Deaths of the daemon, each while a question waits.
const DAEMON_DEATHS: usize = 20;

/// What two devices were told about a question.
#[derive(Default)]
struct Told {
    /// The word that one of them was told to have decided with.
    taken: Option<&'static str>,
    /// An answer was on its way when the service died.
    is_open: bool,
}

/// What all sessions know together.
struct Crowd {
    begun: Cell<usize>,
    /// By the process that asks and the name of the question.
    told: RefCell<BTreeMap<(String, String), Told>>,
}

impl Crowd {
    fn note(&self, process: &str, request: &str, word: &'static str, status: u16) {
        let mut all = self.told.borrow_mut();
        let told = all.entry((process.to_owned(), request.to_owned())).or_default();
        match status {
            202 => assert_eq!(told.taken.replace(word), None, "{request} was decided twice"),
            409 => {}
            other => panic!("{request}: {other}"),
        }
    }
}

async fn process_of(server: &Server<'_>, id: &str) -> String {
    server.client.instance(id).await.expect(200).instance().process_id.expect("a process")
}

/// The question of a session; it is made to ask where it does not.
async fn question(
    server: &Server<'_>,
    events: &mut Events,
    id: &str,
    last: &str,
) -> PendingPermission {
    let now = server.client.instance(id).await.expect(200).instance();
    if now.pending_permissions.iter().all(|one| one.request_id == last) {
        say(server, id, "use a tool").await;
    }
    let is_next = |one: &&PendingPermission| one.request_id != last;
    events
        .until("the next question", |state| {
            state.instances.get(id)?.pending_permissions.iter().find(is_next).cloned()
        })
        .await
}

/// Asks and answers in one session until enough was asked in all of them.
async fn work(server: &Server<'_>, crowd: &Crowd, id: &str, seed: u64, most: usize) {
    let mut dice = Dice::new(seed);
    let (mut events, process) = (server.events().await, process_of(server, id).await);
    let mut last = String::new();
    while crowd.begun.get() < most {
        crowd.begun.set(crowd.begun.get() + 1);
        // A page that is loaded again.
        if dice.roll(10) == 0 {
            events = server.events().await;
        }
        let one = question(server, &mut events, id, &last).await;
        let path = format!("/api/instances/{id}/permissions/{}", one.request_id);
        let words = if dice.roll(2) == 0 { ["allow", "deny"] } else { ["deny", "allow"] };
        let [first, second] = words.map(|word| json!({ "decision": word }));
        let (first, second) = tokio::join!(
            server.client.post_json(&path, &first),
            server.client.post_json(&path, &second),
        );
        crowd.note(&process, &one.request_id, words[0], first.status);
        crowd.note(&process, &one.request_id, words[1], second.status);
        last = one.request_id;
    }
}

/// Two devices answer in every session while the service dies.
async fn die_while_answers_are_on_their_way(server: Server<'_>, crowd: &Crowd, ids: &[String]) {
    let mut open = Vec::new();
    for id in ids {
        let mut events = server.events().await;
        let one = question(&server, &mut events, id, "").await;
        open.push((process_of(&server, id).await, id.clone(), one.request_id));
    }
    let client = Client::new(&server.base);
    let answers = join_all(open.iter().flat_map(|(process, id, request)| {
        let client = &client;
        ["allow", "deny"].map(|word| async move {
            let path = format!("/api/instances/{id}/permissions/{request}");
            let body = json!({ "decision": word });
            let answer = client.request(Method::POST, &path).json(&body);
            (process, request, word, client.try_send(answer).await)
        })
    }));
    let (answers, ()) = tokio::join!(answers, server.kill());
    for (process, request, word, answer) in answers {
        match answer {
            Ok(reply) => crowd.note(process, request, word, reply.status),
            Err(_) => {
                let key = (process.clone(), request.clone());
                crowd.told.borrow_mut().entry(key).or_default().is_open = true;
            }
        }
    }
}

#[tokio::test]
async fn a_thousand_questions_are_each_decided_once_over_deaths_of_the_service() {
    let world = enabled();
    world.set_knobs(
        "app",
        json!({ "hosted": { "replies": [{ "match": "^use", "tool":
            { "name": "Bash", "input": { "command": "ls" }, "ask": true } }] } }),
    );
    let mut server = world.serve().await;
    let started = join_all((0..SESSIONS).map(|_| launch(&server))).await;
    let ids: Vec<String> = started.into_iter().map(|one| one.instance_id.to_string()).collect();
    let crowd = Crowd { begun: Cell::new(0), told: RefCell::default() };
    for round in 1..=DEATHS {
        let most = QUESTIONS * round / DEATHS;
        let seed = |at: usize| (round * 100 + at) as u64;
        join_all(ids.iter().enumerate().map(|(at, id)| work(&server, &crowd, id, seed(at), most)))
            .await;
        die_while_answers_are_on_their_way(server, &crowd, &ids).await;
        server = world.serve().await;
    }
    // Whatever was not decided when the service died waits still, and is answered now.
    let mut events = server.events().await;
    for id in &ids {
        let process = process_of(&server, id).await;
        let open = server.client.instance(id).await.expect(200).instance().pending_permissions;
        for one in open {
            let path = format!("/api/instances/{id}/permissions/{}", one.request_id);
            let reply = server.client.post_json(&path, &json!({ "decision": "allow" })).await;
            crowd.note(&process, &one.request_id, "allow", reply.status);
        }
        let is_done = |state: &svc_shared::internal::State| {
            state.instances.get(id.as_str())?.pending_permissions.is_empty().then_some(())
        };
        events.until("no question", is_done).await;
    }
    let told = crowd.told.into_inner();
    let given = world.until("all answers at the agents", || {
        let given = world.answers();
        (given.len() >= told.len()).then_some(given)
    });
    let given = given.await;
    let mut at_agents: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for answer in given {
        let request = answer["request"].as_str().expect("a name").to_owned();
        at_agents.entry(request).or_default().push(answer["behavior"].clone());
    }
    let query = "SELECT request_id || ' ' || COALESCE(decision, 'open') FROM hosted_prompts";
    let rows = table(&world.state.join("svc.db"), query).await;
    let rows: BTreeMap<&str, &str> = rows.iter().filter_map(|row| row.split_once(' ')).collect();
    assert_eq!(rows.len(), told.len(), "every question is recorded");
    assert!(told.len() >= QUESTIONS, "{}", told.len());
    for ((_, request), told) in &told {
        let decided = rows[request.as_str()];
        assert!(matches!(decided, "allow" | "deny"), "{request}: {decided}");
        if let Some(word) = told.taken {
            assert_eq!(word, decided, "{request}: somebody was told something else");
        } else {
            assert!(told.is_open, "{request}: nobody decided it");
        }
        // The same answer may come again after a death between its delivery and the note of it.
        let behaviors = &at_agents[request];
        assert!(behaviors.iter().all(|one| one == decided), "{request}: {behaviors:?}, {decided}");
    }
    eprintln!(
        "{} questions, {} answers at the agents",
        told.len(),
        at_agents.values().flatten().count()
    );
    server.stop().await;
}

#[tokio::test]
async fn a_daemon_that_dies_twenty_times_loses_no_session_and_tells_each_end_once() {
    let world = enabled();
    let server = world.serve().await;
    let mut events = server.events().await;
    let one = launch(&server).await;
    let id = one.instance_id.as_str();
    for round in 1..=DAEMON_DEATHS {
        say(&server, id, "use a tool").await;
        asked(&mut events, id).await;
        daemons(&world).iter().for_each(|daemon| daemon.signal(Signal::KILL));
        stands(&mut events, id, "crashed").await;
        let open = server.client.get("/api/approvals").await.expect(200).json();
        assert_eq!(open["approvals"], json!([]), "round {round}");
        server.client.stop(id).await.expect(200);
        let resumed = server.client.resume(id).await.expect(200).instance();
        let generation = u32::try_from(round).unwrap() + 1;
        assert_eq!(
            (resumed.status.to_string().as_str(), resumed.generation),
            ("running", generation)
        );
        stands(&mut events, id, "running").await;
        assert_eq!(server.client.instances().await.len(), 1, "one row in round {round}");
    }
    let crashes = events.happened.iter().filter(|(name, _)| name == "crash").count();
    assert_eq!(crashes, DAEMON_DEATHS, "{:?}", events.happened);
    // Each process asked once, and each question has one end.
    let query = "SELECT decision FROM hosted_prompts";
    let rows = table(&world.state.join("svc.db"), query).await;
    assert_eq!(rows, vec!["interrupted"; DAEMON_DEATHS]);
    server.client.stop(id).await.expect(200);
    server.stop().await;
}
