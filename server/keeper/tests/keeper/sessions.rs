//! Starts, ends, stops, and what the agent finds on its terminal.

use crate::support::{Viewer, Workspace, within};
use svc_keeper::message::{FromKeeper, Phase, Question, Role};
use svc_keeper::sidecar::Sidecar;
use svc_ports::process::{LaunchError, ProcessHost as _, Signal, Target};

#[tokio::test]
async fn an_agent_runs_on_a_terminal_of_its_own_and_its_keeper_records_its_end() {
    let workspace = Workspace::new();
    let session = workspace
        .start(
            "tty; stty size; echo $TERM $COLORTERM [$LINES]; ps -o pid=,sid=,tpgid= -p $$; exit 3",
        )
        .await;
    let mut viewer = Viewer::new(&session, Role::Controller).await;
    viewer.until_exit().await;
    let pid = session.agent.pid.to_string();
    let text = viewer.text();
    assert!(text[0].starts_with("/dev/pts/"), "{text:?}");
    assert_eq!(text[1..3], ["24 80", "xterm-256color truecolor []"]);
    let ids: Vec<&str> = text[3].split_whitespace().collect();
    assert_eq!(ids, [pid.as_str(); 3], "it leads its session and has the terminal");
    assert_eq!((viewer.state.exit_code, viewer.state.exit_signal), (Some(3), None));
    let record = session.record();
    assert_eq!(record.phase, Phase::Exited);
    assert_eq!(record.exit.unwrap().code, Some(3));
    assert_eq!(session.final_screen().screen.rows, viewer.rows);
    drop(viewer);
    workspace.gone(&session.keeper).await;
    assert!(!session.record().socket.exists());
    assert!(session.sidecar.exists(), "the record stays");
}

#[tokio::test]
async fn the_launch_id_finds_the_agent_and_the_keeper_does_not_carry_it() {
    let workspace = Workspace::new();
    let session = workspace.start("exec sleep 1000").await;
    let found = workspace.host.find_launch(&session.launch_id).unwrap();
    assert_eq!(found.identity, session.agent);
    let members = workspace.host.launch_members(&session.launch_id);
    assert_eq!(members.len(), 1);
    let remains = workspace.host.remains(Some(&session.agent), &session.launch_id);
    assert!(remains.iter().all(|process| process.identity != session.keeper));
    let keeper = workspace.host.inspect(session.keeper.pid).unwrap();
    assert_eq!(keeper.argv[1..], ["__keeper__"]);
    assert_eq!(keeper.group, session.keeper.pid.get());
    assert_eq!(std::fs::read(format!("/proc/{}/environ", session.keeper.pid)).unwrap(), b"");
}

#[tokio::test]
async fn nothing_runs_before_go_and_a_held_launch_that_is_dropped_leaves_nothing() {
    let workspace = Workspace::new();
    let spec = workspace.spec("touch started; exec sleep 1000");
    let sidecar = spec.terminal.as_ref().unwrap().sidecar.clone();
    let held = workspace.hold(spec).await.unwrap();
    let (agent, keeper) = (held.identity().clone(), held.keeper().unwrap().clone());
    let record = Sidecar::read(&sidecar).unwrap();
    assert_eq!(record.phase, Phase::Launching);
    assert_eq!((record.agent(), record.keeper()), (Some(agent.clone()), Some(keeper.clone())));
    drop(held);
    workspace.gone(&agent).await;
    workspace.gone(&keeper).await;
    assert!(!workspace.root.join("started").exists());
    assert!(!sidecar.exists() && !record.socket.exists());
}

#[tokio::test]
async fn a_program_that_cannot_be_executed_fails_with_its_reason() {
    let workspace = Workspace::new();
    let mut spec = workspace.spec("");
    spec.program = workspace.root.join("missing");
    let sidecar = spec.terminal.as_ref().unwrap().sidecar.clone();
    let error = workspace.hold(spec).await.unwrap().go().await.unwrap_err();
    let LaunchError::Exec { cause, .. } = error else { panic!("{error:?}") };
    assert_eq!(cause.kind(), std::io::ErrorKind::NotFound);
    assert!(!sidecar.exists());
    let mut spec = workspace.spec("");
    spec.cwd = workspace.root.join("nowhere");
    let Err(LaunchError::NotReady(reason)) = workspace.hold(spec).await else { panic!() };
    assert!(reason.contains("nowhere"), "{reason}");
}

#[tokio::test]
async fn a_stop_interrupts_twice_and_kills_what_ignores_it() {
    let workspace = Workspace::new();
    let script = "n=0; trap 'n=$((n+1)); echo int $n; [ $n = 2 ] && exit 0' INT; echo up; \
                  while :; do sleep 0.05; done";
    let session = workspace.start(script).await;
    let mut viewer = Viewer::new(&session, Role::Controller).await;
    viewer.until_text("up").await;
    viewer.connection.commands.stop(std::time::Duration::from_secs(60)).await.unwrap();
    viewer.until_exit().await;
    assert_eq!(viewer.state.exit_code, Some(0));
    assert!(viewer.text().iter().any(|line| line.contains("int 2")));

    let session = workspace.start("trap '' INT; echo up; while :; do sleep 0.05; done").await;
    let mut viewer = Viewer::new(&session, Role::Controller).await;
    viewer.until_text("up").await;
    viewer.connection.commands.stop(std::time::Duration::from_millis(500)).await.unwrap();
    viewer.until_exit().await;
    assert_eq!(viewer.state.exit_signal, Some(9));
}

#[tokio::test]
async fn signals_for_a_person_do_not_end_a_keeper() {
    let workspace = Workspace::new();
    let session = workspace.start("echo up; exec sleep 1000").await;
    let pid = nix_pid(&session.keeper);
    for signal in ["HUP", "INT", "PIPE", "QUIT"] {
        let sent = std::process::Command::new("/bin/kill").args(["-s", signal, &pid]).status();
        assert!(sent.unwrap().success());
    }
    Viewer::new(&session, Role::Observer).await.until_text("up").await;
    assert!(workspace.is_alive(&session.keeper));
}

fn nix_pid(identity: &svc_domain::identity::ProcessIdentity) -> String {
    identity.pid.to_string()
}

#[tokio::test]
async fn f70_a_question_on_the_screen_is_told_and_no_key_is_sent() {
    let workspace = Workspace::new();
    let session = workspace
        .start("stty -echo; printf ' Quick safety check: do you trust this?\\r\\n'; read line; echo got")
        .await;
    let mut viewer = Viewer::new(&session, Role::Controller).await;
    viewer.until("the question", |viewer| viewer.state.phase == Phase::Failed).await;
    assert_eq!(viewer.state.reason, Some(Question::TrustRequired));
    assert_eq!(session.record().reason, Some(Question::TrustRequired));
    assert!(!viewer.text().iter().any(|line| line.contains("got")));
}

#[tokio::test]
async fn the_connect_url_is_told_to_the_controller_and_shown_to_nobody() {
    let workspace = Workspace::new();
    let session = workspace
        .start("sleep 0.1; echo at https://claude.ai/code/session_01AbCdEfGhIjKlMnOpQrStUv; exec sleep 1000")
        .await;
    let mut observer = Viewer::new(&session, Role::Observer).await;
    observer.until("readiness", |viewer| viewer.state.phase == Phase::Ready).await;
    assert_eq!(observer.state.url, None);
    let controller = Viewer::new(&session, Role::Controller).await;
    let url = controller.connection.welcome.session.state.url.clone().unwrap();
    assert_eq!(url, "https://claude.ai/code/session_01AbCdEfGhIjKlMnOpQrStUv");
    assert_eq!(session.record().url.unwrap().0, url);
    let shown = controller.text().concat();
    assert!(!shown.contains("01AbCdEfGhIjKlMnOpQrStUv"), "{shown}");
}

#[tokio::test]
async fn f71_h55_queries_are_answered_at_once_and_nothing_shown_becomes_input() {
    let workspace = Workspace::new();
    let script = "stty raw -echo; printf '\\033]0;rm -rf x\\007\\033[21t\\033]52;c;?\\007\\033[c'; \
                  dd bs=1 count=5 2>/dev/null | od -An -c; exit 0";
    let session = workspace.start(script).await;
    let mut viewer = Viewer::new(&session, Role::Observer).await;
    viewer.until_exit().await;
    let text = viewer.text().concat();
    let answer: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(answer, ["033", "[", "?", "6", "c"]);
}

#[tokio::test]
async fn f64_the_agent_of_a_killed_keeper_is_hung_up() {
    let workspace = Workspace::new();
    let session = workspace.start("exec sleep 1000").await;
    workspace.host.signal(&session.keeper, Signal::Kill, Target::Process);
    workspace.gone(&session.keeper).await;
    workspace.gone(&session.agent).await;
    // The record still says what ran: nothing of it is believed without a proof.
    assert_eq!(session.record().phase, Phase::Starting);
}

#[tokio::test]
async fn input_reaches_the_agent_only_from_the_controller_and_only_if_allowed() {
    let workspace = Workspace::new();
    let session = workspace.start("read line; echo got $line; exec sleep 1000").await;
    let mut observer = Viewer::new(&session, Role::Observer).await;
    observer.connection.commands.input("eA0=".to_owned(), 1).await.unwrap();
    let refused = within(async {
        loop {
            if let FromKeeper::Error { .. } = observer.connection.events.next().await.unwrap() {
                break;
            }
        }
    });
    refused.await;
    let mut viewer = Viewer::new(&session, Role::Controller).await;
    viewer.connection.commands.input("aGVsbG8N".to_owned(), 2).await.unwrap();
    viewer.until_text("got hello").await;

    let mut spec = workspace.spec("read line; echo got $line");
    spec.terminal.as_mut().unwrap().input_allowed = false;
    let session = workspace.start_with(spec).await;
    let mut connection = session.connect(Role::Controller).await;
    connection.commands.input("eA0=".to_owned(), 1).await.unwrap();
    let answer = within(connection.events.next()).await.unwrap();
    assert!(matches!(answer, FromKeeper::Error { .. }), "{answer:?}");
    assert!(workspace.is_alive(&session.agent));
}
