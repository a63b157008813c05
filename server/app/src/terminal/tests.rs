//! A hub over a real registry and a keeper that says what a test wants.

use super::viewer::{TerminalForm, TerminalItem, TerminalViewer};
use super::{Since, Terminals};
use crate::App;
use crate::bench::{Still, app, bridge};
use crate::bridges::controller::Controller;
use crate::bridges::keepers::Keepers;
use crate::supervise::keeper_watch::{KeeperWatch, Reach};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use svc_agent::log_set::LogSet;
use svc_domain::bridge::{Bridge, Launch};
use svc_domain::identity::{LaunchId, Pid, ProcessIdentity};
use svc_keeper::message::Role;
use svc_keeper::sidecar::{Begin, KeeperRecord, Sidecar, Token};
use svc_ports::{Clock, ProcessHost};
use svc_process::{Host, HostOptions};
use svc_shared::status::{ResumeMode, ScreenState};
use svc_shared::terminal::{ClientFrame, DiffFrame, Folded, Screen, TerminalFrame, text_of};
use svc_store::{Cap, Inserted};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

/// Far beyond any machine's latency; only reached when the test fails.
const DEADLINE: Duration = Duration::from_secs(60);

struct World {
    tree: TempDir,
    app: App,
    bridge: Bridge,
    listener: UnixListener,
    identity: ProcessIdentity,
}

impl World {
    /// A live Interactive Session whose keeper is this process.
    async fn new() -> Self {
        let tree = tempfile::tempdir().unwrap();
        let host = Arc::new(Host::new(HostOptions::default()).unwrap());
        let pid = Pid::new(std::process::id().into()).unwrap();
        let identity = host.inspect(pid).unwrap().identity;
        let app = app(tree.path(), host).await;
        let logs = crate::log_files::directory(app.settings());
        let set = LogSet::create(&logs, &"api".parse().unwrap(), Still.now(), false).unwrap();
        let launch = Launch {
            id: "0".repeat(32).parse::<LaunchId>().unwrap(),
            argv: svc_domain::argv::Argv::default(),
            log_stem: set.stem().to_owned(),
            relaunched: false,
        };
        let bridge =
            Bridge { resume_mode: ResumeMode::Pty, launch: Some(launch), ..bridge(tree.path()) };
        let store = &app.registry().store;
        let inserted = store.insert(&bridge, Cap { max_live: None }, Still.now()).await.unwrap();
        assert_eq!(inserted, Inserted::Yes);
        let stored = store.bridge(&bridge.id).await.unwrap().unwrap();
        app.copies().learn(stored);
        let socket = tree.path().join("k.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let world = Self { tree, app, bridge, listener, identity };
        world.write_sidecar(&logs.join(format!("{}.keeper.json", set.stem())), &socket);
        world
    }

    fn write_sidecar(&self, path: &Path, socket: &Path) {
        let keeper = KeeperRecord {
            process: (&self.identity).into(),
            boot_id: self.identity.boot_id.as_str().to_owned(),
            exe: "svc".into(),
            version: "1".to_owned(),
            proto: [1, 1],
        };
        let begin = Begin {
            keeper,
            instance_id: self.bridge.id.clone(),
            project: self.bridge.project.clone(),
            cwd: self.bridge.cwd.clone(),
            worktree: None,
            debug_file: None,
            socket: socket.to_owned(),
            token: Token::new([7; 32]),
            started_at: Still.now(),
        };
        Sidecar::new(begin).write(path).unwrap();
    }

    fn terminals(&self) -> &Terminals {
        self.app.terminals()
    }

    fn view(&self, since: Option<Since>) -> TerminalViewer {
        self.terminals().view(&self.bridge, TerminalForm::Diff, since, false)
    }

    /// The next connection of the service, after the greeting and its subscription.
    async fn keeper(&self) -> Keeper {
        let mut keeper = self.greeted("observer").await;
        assert_eq!(keeper.read().await["t"], "sub");
        keeper
    }

    /// The next connection of the service, which has this role, after the greeting.
    async fn greeted(&self, role: &str) -> Keeper {
        let accepted = tokio::time::timeout(DEADLINE, self.listener.accept()).await;
        let mut keeper = Keeper(accepted.unwrap().unwrap().0);
        let hello = keeper.read().await;
        assert_eq!((&hello["t"], &hello["role"]), (&json!("hello"), &json!(role)));
        keeper.welcome(&self.identity).await;
        keeper
    }
}

struct Keeper(UnixStream);

impl Keeper {
    /// Answers the greeting as the keeper that is this process.
    async fn welcome(&mut self, identity: &ProcessIdentity) {
        let process = json!({"pid": identity.pid.get(), "start_ticks": identity.start_ticks});
        let session = json!({
            "keeper": process, "agent": process, "boot_id": identity.boot_id.as_str(),
            "started_at": Still.now(), "argv_sha256": "", "cols": 20, "rows": 3,
            "input_allowed": true, "state": {"phase": "ready"},
        });
        let welcome = json!({
            "t": "welcome", "proto": 1, "keeper": "1", "seq": 1, "session": session,
        });
        self.say(welcome).await;
    }

    async fn say(&mut self, message: Value) {
        let bytes = serde_json::to_vec(&message).unwrap();
        let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
        self.0.write_all(&length).await.unwrap();
        self.0.write_all(&bytes).await.unwrap();
    }

    async fn read(&mut self) -> Value {
        let read = async {
            let length = usize::try_from(self.0.read_u32().await.unwrap()).unwrap();
            let mut bytes = vec![0; length];
            self.0.read_exact(&mut bytes).await.unwrap();
            serde_json::from_slice(&bytes).unwrap()
        };
        tokio::time::timeout(DEADLINE, read).await.unwrap()
    }

    async fn key(&mut self, seq: u64, rows: &[&str]) {
        let rows: Vec<Value> = rows.iter().map(|text| row(text)).collect();
        self.say(json!({
            "t": "key", "seq": seq, "cols": 20, "lines": rows.len(), "rows": rows,
            "cursor": {"x": 1, "y": 0, "visible": true}, "modes": {},
            "scroll_base": 40, "scroll_first": 10,
        }))
        .await;
    }

    async fn diff(&mut self, seq: u64, y: u16, text: &str) {
        let rows = json!([[y, row(text)]]);
        self.say(json!({"t": "diff", "seq": seq, "base": seq - 1, "rows": rows})).await;
    }
}

fn row(text: &str) -> Value {
    json!({"r": [[text, null, null, 0, text.chars().count()]]})
}

async fn next(viewer: &mut TerminalViewer) -> TerminalFrame {
    match tokio::time::timeout(DEADLINE, viewer.next()).await.expect("nothing is told") {
        TerminalItem::Frame(frame) => frame,
        other => panic!("{other:?}"),
    }
}

/// Folds frames until the screen shows `wanted` in its first row.
async fn until(viewer: &mut TerminalViewer, screen: &mut Screen, wanted: &str) -> Vec<DiffFrame> {
    let mut frames = Vec::new();
    while screen.rows.first().is_none_or(|line| line.text() != wanted) {
        let TerminalFrame::Diff(frame) = next(viewer).await else { continue };
        frames.push(frame.clone());
        assert_ne!(screen.fold(frame), Folded::Missing);
    }
    frames
}

#[tokio::test]
async fn h58_frames_follow_each_other_and_a_viewer_that_comes_back_gets_what_it_missed() {
    let world = World::new().await;
    let mut viewer = world.view(None);
    let mut keeper = world.keeper().await;
    keeper.key(5, &["one", "two", "three"]).await;
    let mut screen = Screen::default();
    until(&mut viewer, &mut screen, "one").await;
    assert_eq!((screen.seq, screen.above, screen.oldest), (5, 40, 10));
    assert_eq!(screen.state, ScreenState::Ready.into());
    keeper.diff(6, 0, "1").await;
    let frames = until(&mut viewer, &mut screen, "1").await;
    assert!(frames.iter().all(|frame| !frame.full && frame.rows_changed.len() <= 1));
    // Another one keeps the hub while this one is away.
    let mut other = world.view(None);
    let mut others = Screen::default();
    let since = Since { generation: 1, seq: screen.seq };
    drop(viewer);
    for seq in 7..=9 {
        keeper.diff(seq, 1, &format!("frame {seq}")).await;
    }
    keeper.diff(10, 0, "last").await;
    until(&mut other, &mut others, "last").await;
    let mut again = world.view(Some(since));
    let frames = until(&mut again, &mut screen, "last").await;
    assert_eq!((frames.len(), frames[0].full, frames[0].base), (1, false, Some(6)));
    assert_eq!(text_of(&screen.rows), "last\nframe 9\nthree");
    assert_eq!(screen.rows, others.rows);
}

#[tokio::test]
async fn h58_a_new_hub_tells_the_whole_screen_and_blanks_nothing_before() {
    let world = World::new().await;
    // A service that has just started knows nothing, and the viewer has frame 3.
    let mut viewer = world.view(Some(Since { generation: 1, seq: 3 }));
    let mut keeper = world.keeper().await;
    keeper.key(9, &["new", "", ""]).await;
    let TerminalFrame::Diff(first) = next(&mut viewer).await else { panic!("a screen") };
    assert!(first.full && first.seq == 9, "{first:?}");
}

#[tokio::test]
async fn h57_a_viewer_that_does_not_read_delays_nobody_and_then_gets_the_newest() {
    let world = World::new().await;
    let mut stalled = world.view(None);
    let mut readers: Vec<(TerminalViewer, Screen)> =
        (0..5).map(|_| (world.view(None), Screen::default())).collect();
    let mut keeper = world.keeper().await;
    keeper.key(1, &["begin", "", ""]).await;
    let mut behind = Screen::default();
    until(&mut stalled, &mut behind, "begin").await;
    for seq in 2..=500 {
        keeper.diff(seq, 0, &format!("line {seq}")).await;
    }
    for (viewer, screen) in &mut readers {
        until(viewer, screen, "line 500").await;
    }
    // Nothing was kept for it: one frame brings it up to date.
    let frames = until(&mut stalled, &mut behind, "line 500").await;
    assert_eq!(frames.len(), 1);
    assert_eq!(frames[0].rows_changed.len(), 1);
    assert_eq!(behind.rows, readers[0].1.rows);
}

#[tokio::test]
async fn nothing_runs_when_nobody_watches_and_a_frame_that_does_not_fit_is_asked_for_again() {
    let world = World::new().await;
    let viewer = world.view(None);
    let mut keeper = world.keeper().await;
    keeper.key(1, &["a", "", ""]).await;
    keeper.diff(7, 0, "from nowhere").await;
    let asked = keeper.read().await;
    assert_eq!((asked["t"].as_str(), asked.get("since")), (Some("sub"), None));
    drop(viewer);
    let end = tokio::time::timeout(DEADLINE, keeper.0.read_u8()).await.unwrap();
    assert!(end.is_err(), "the connection is closed with the last viewer");
}

#[tokio::test]
async fn lines_above_the_screen_come_to_the_viewer_that_asked() {
    let world = World::new().await;
    let mut viewer = world.view(None);
    let mut keeper = world.keeper().await;
    keeper.key(1, &["a", "", ""]).await;
    until(&mut viewer, &mut Screen::default(), "a").await;
    viewer.receive(ClientFrame::Scroll { from: 12, n: 2 });
    assert_eq!(keeper.read().await, json!({"t": "scroll", "from": 12, "n": 2}));
    for n in 12..14 {
        keeper.say(json!({"t": "line", "n": n, "row": row(&format!("line {n}"))})).await;
    }
    keeper.say(json!({"t": "scrolled", "from": 12, "n": 2, "first": 10})).await;
    let frame = loop {
        if let TerminalFrame::Lines(frame) = next(&mut viewer).await {
            break frame;
        }
    };
    assert_eq!((frame.from, frame.oldest), (12, 10));
    assert_eq!(text_of(&frame.lines), "line 12\nline 13");
    // Without the capability nothing is typed, and the viewer is told.
    viewer.receive(ClientFrame::Input { text: "x".to_owned(), id: 3, enter: false });
    let TerminalFrame::Typed(typed) = next(&mut viewer).await else { panic!("an answer") };
    assert!(typed.typed == 3 && typed.refused.unwrap().contains("claude.terminal_input"));
}

#[tokio::test]
async fn what_is_typed_goes_to_the_keeper_and_the_audit_log_names_who_typed() {
    let world = World::new().await;
    let actor = crate::Actor::Token("desk".to_owned());
    let mut viewer = crate::acting_as(actor, async {
        world.terminals().view(&world.bridge, TerminalForm::Diff, None, true)
    })
    .await;
    let mut keeper = world.keeper().await;
    keeper.key(1, &["a", "", ""]).await;
    until(&mut viewer, &mut Screen::default(), "a").await;
    // The one controlling connection of the service: typing opens none of its own.
    let bridge = Bridge { keeper: Some(world.identity.clone()), ..world.bridge.clone() };
    let keepers = Arc::clone(&world.terminals().keepers);
    let connecting = keepers.connect(&bridge, Role::Controller);
    let (hold, mut keeper) = tokio::join!(connecting, world.greeted("controller"));
    let hold = hold.unwrap();
    let mut events = hold.events;
    let (controller, answers) = Controller::new(hold.commands, true);
    keepers.opened(&bridge, controller);
    let heard = tokio::spawn(async move {
        while let Ok(event) = events.next().await {
            answers.hear(&event);
        }
    });
    viewer.receive(ClientFrame::Input { text: "ls\r".to_owned(), id: 4, enter: false });
    let answer = async {
        let input = keeper.read().await;
        keeper.say(json!({"t": "ack", "id": input["id"]})).await;
        input
    };
    let input = tokio::time::timeout(DEADLINE, answer).await.unwrap();
    assert_eq!(input["data_b64"], "bHMN");
    let typed = loop {
        if let TerminalFrame::Typed(typed) = next(&mut viewer).await {
            break typed;
        }
    };
    assert_eq!((typed.typed, typed.refused), (4, None));
    heard.abort();
    let state = &world.app.settings().state_dir;
    let log = std::fs::read_to_string(state.join("config_audit.log")).unwrap();
    let entry: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    assert_eq!((&entry["actor"], &entry["action"]), (&json!("token:desk"), &json!("type")));
    assert!(!log.contains("ls"), "what is typed is not kept: {log}");
    drop(world.tree);
}

#[tokio::test]
async fn control_that_another_program_took_is_taken_back_and_nothing_is_lost_or_typed_twice() {
    let world = World::new().await;
    let bridge = Bridge { keeper: Some(world.identity.clone()), ..world.bridge.clone() };
    let keepers = Arc::clone(&world.terminals().keepers);
    let tasks = crate::tasks::Tasks::default();
    let watch = KeeperWatch::start(&keepers, &tasks, &bridge);
    let mut first = world.greeted("controller").await;
    let mut changes = watch.changes();
    changes.wait_for(|view| view.reach == Reach::Connected).await.unwrap();
    let refusal = json!({"t": "error", "code": "readonly", "detail": "only the controller may"});
    let grace = Duration::from_secs(9);

    // A stop is not called sent, so that the agent is signalled directly.
    let controller = keepers.controller(&bridge).unwrap();
    let (took, ()) = tokio::join!(controller.stop(grace), async {
        assert_eq!(first.read().await["t"], "stop");
        first.say(refusal.clone()).await;
        assert_eq!(first.read().await["t"], "ping");
        first.say(json!({"t": "pong"})).await;
    });
    assert!(!took);
    let mut second = world.greeted("controller").await;
    let regained = keepers.regained(&bridge).await.unwrap();
    let (took, ()) = tokio::join!(regained.stop(grace), async {
        assert_eq!(second.read().await["t"], "stop");
        assert_eq!(second.read().await["t"], "ping");
        second.say(json!({"t": "pong"})).await;
    });
    assert!(took);

    // Enter alone is typed again: the text stands already.
    let (typed, mut third) = tokio::join!(keepers.type_line(&bridge, "ls"), async {
        let text = second.read().await;
        second.say(json!({"t": "ack", "id": text["id"]})).await;
        assert_eq!(second.read().await["data_b64"], "DQ==");
        second.say(refusal.clone()).await;
        let mut third = world.greeted("controller").await;
        let enter = third.read().await;
        assert_eq!(enter["data_b64"], "DQ==");
        third.say(json!({"t": "ack", "id": enter["id"]})).await;
        third
    });
    typed.unwrap();

    // An observer is told that the session is ready, and not its link.
    third.say(json!({"t": "state", "phase": "ready"})).await;
    let _fourth = world.greeted("controller").await;
}

#[tokio::test]
async fn a_command_beside_the_service_does_not_take_control_back() {
    let world = World::new().await;
    let bridge = Bridge { keeper: Some(world.identity.clone()), ..world.bridge.clone() };
    let own = &world.terminals().keepers;
    let keepers = Arc::new(Keepers::new(&own.config, &own.host, false));
    let watch = KeeperWatch::start(&keepers, &crate::tasks::Tasks::default(), &bridge);
    let mut changes = watch.changes();
    let mut keeper = world.greeted("controller").await;
    changes.wait_for(|view| view.reach == Reach::Connected).await.unwrap();
    keeper.say(json!({"t": "state", "phase": "ready"})).await;
    keeper.say(json!({"t": "state", "phase": "exited", "exit_code": 0})).await;
    // It hears on through the same connection.
    let ended = changes.wait_for(|view| view.state.exit_code == Some(0));
    tokio::time::timeout(DEADLINE, ended).await.unwrap().unwrap();
}

#[tokio::test]
async fn off_or_in_server_mode_there_is_no_terminal() {
    let world = World::new().await;
    let refused = world.terminals().watch(world.bridge.id.as_str(), TerminalForm::Diff, None, true);
    let refused = refused.await.err().unwrap();
    assert_eq!(refused.code, svc_shared::error::ErrorCode::CapabilityDisabled);
    assert!(refused.message.contains("claude.pty_screen_enabled"), "{}", refused.message);
}
