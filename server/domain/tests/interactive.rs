//! What is different for the record of an Interactive Session.
#![expect(clippy::unwrap_used, reason = "helpers of tests outside of test functions")]

use std::path::{Path, PathBuf};
use svc_domain::bridge::{Beginning, Bridge, Launch, Live, Outcome, Stage, State};
use svc_domain::conversation::ConversationId;
use svc_domain::decide::{Command, Refusal, decide, may_forget, may_resume};
use svc_domain::effect::{Effect, History, Step};
use svc_domain::identity::{GoneBecause, Pid, ProcessIdentity, Verdict};
use svc_domain::observe::{Cause, Fact, TERMINAL_LOST, observe};
use svc_shared::Timestamp;
use svc_shared::status::{BridgeStatus, ExitReason, Origin, QuarantineCode, ResumeMode, SpawnMode};

fn at(offset: i64) -> Timestamp {
    Timestamp::from_millis(1_795_000_000_000 + offset)
}

fn process(pid: i64) -> ProcessIdentity {
    ProcessIdentity {
        pid: Pid::new(pid).unwrap(),
        start_ticks: 7,
        boot_id: "boot".parse().unwrap(),
    }
}

fn launch() -> Launch {
    Launch {
        id: "0123456789abcdef0123456789abcdef".parse().unwrap(),
        argv: ["claude", "--remote-control"].into_iter().collect(),
        log_stem: "api-1-0".into(),
        relaunched: false,
    }
}

fn conversation() -> ConversationId {
    "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0".parse().unwrap()
}

fn session(stage: Stage) -> Bridge {
    Bridge {
        resume_mode: ResumeMode::Pty,
        spawn_mode: SpawnMode::Worktree,
        worktree: Some("svc-3a375c2e".parse().unwrap()),
        launch: Some(launch()),
        process: Some(process(4242)),
        keeper: Some(process(4241)),
        ..Bridge::begin(Beginning {
            id: "3a375c2e-0a3b-4c5d-8e9f-001122334455".parse().unwrap(),
            project: "api".parse().unwrap(),
            cwd: PathBuf::from("/p/api"),
            origin: Origin::Spawned,
            state: State::Live(Live { stage, stop_requested: false }),
            at: at(0),
        })
    }
}

fn registering() -> Bridge {
    session(Stage::Registering { deadline: Some(at(60_000)) })
}

fn running() -> Bridge {
    session(Stage::Ready)
}

#[track_caller]
fn seen(before: &Bridge, fact: Fact) -> (Bridge, Vec<Effect>) {
    match observe(before, fact, at(5)) {
        Step::Unchanged => (before.clone(), Vec::new()),
        Step::Becomes { next, effects } => (*next, effects),
    }
}

#[track_caller]
fn done(before: &Bridge, command: Command) -> Bridge {
    match decide(before, command, at(6)).unwrap() {
        Step::Unchanged => before.clone(),
        Step::Becomes { next, .. } => *next,
    }
}

#[test]
fn a_session_and_its_keeper_are_recorded_in_one_step_before_anything_runs() {
    let before =
        Bridge { process: None, keeper: None, ..session(Stage::Launching { deadline: None }) };
    let held = Fact::Held { agent: process(4242), keeper: Some(process(4241)) };
    let (after, effects) = seen(&before, held.clone());
    assert_eq!(
        (after.process.clone(), after.keeper.clone()),
        (Some(process(4242)), Some(process(4241)))
    );
    assert!(effects.is_empty());
    // A second launcher of the same generation changes nothing.
    let other = Fact::Held { agent: process(5000), keeper: Some(process(4999)) };
    assert_eq!(seen(&after, other).0, after);
}

#[test]
fn a_session_never_occupies_its_project() {
    assert!(!running().occupies_project());
    assert!(!registering().occupies_project());
    let standard = Bridge { resume_mode: ResumeMode::Standard, ..running() };
    assert!(standard.occupies_project());
}

#[test]
fn f31_a_refusal_ends_a_start_in_error_whoever_started_it_and_however_long_it_might_take() {
    let cause = Cause {
        detail: Some("Remote Control requires a claude.ai subscription".into()),
        ..Cause::plain(ExitReason::RemoteControlUnavailable)
    };
    let adopted =
        Bridge { origin: Origin::Adopted, ..session(Stage::Registering { deadline: None }) };
    for before in [registering(), adopted] {
        let (after, effects) = seen(&before, Fact::Refused(cause.clone()));
        assert_eq!(after.status(), BridgeStatus::Error);
        let ended = after.ended().unwrap();
        assert_eq!(ended.reason, Some(ExitReason::RemoteControlUnavailable));
        assert!(ended.detail.as_deref().unwrap().contains("subscription"));
        assert_eq!(effects, [Effect::Remember(History::Ended)]);
    }
    let stopped = done(&registering(), Command::Stop);
    let (after, _) = seen(&stopped, Fact::Refused(cause));
    assert_eq!(after.ended().unwrap().outcome, Outcome::Stopped, "a stop stays a stop");
}

#[test]
fn f64_an_agent_that_outlives_its_keeper_runs_on_without_a_terminal_and_can_be_stopped() {
    for before in [running(), registering()] {
        let (after, effects) = seen(&before, Fact::TerminalLost);
        assert_eq!(after.status(), before.status());
        assert_eq!((after.keeper.clone(), after.process.clone()), (None, before.process.clone()));
        assert_eq!(after.notice.as_deref(), Some(TERMINAL_LOST));
        assert!(TERMINAL_LOST.contains("terminal_lost"));
        assert!(effects.is_empty());
        assert_eq!(seen(&after, Fact::TerminalLost).0, after, "once");
        assert!(done(&after, Command::Stop).intentional_stop());
    }
    let cause = Cause::plain(ExitReason::KeeperLost);
    let (ended, effects) = seen(&running(), Fact::Exited(cause));
    assert_eq!(ended.status(), BridgeStatus::Crashed);
    assert_eq!(ended.ended().unwrap().reason, Some(ExitReason::KeeperLost));
    assert!(effects.contains(&Effect::CountCrash));
    assert_eq!(seen(&ended, Fact::TerminalLost).0, ended, "nothing is left to be lost");
}

#[test]
fn f66_a_keeper_of_another_version_holds_the_row_but_the_agent_is_stopped_by_signals() {
    let (held, _) = seen(&running(), Fact::Doubt(QuarantineCode::KeeperVersion));
    assert_eq!(held.quarantine, Some(QuarantineCode::KeeperVersion));
    assert_eq!(held.doubt(), None);
    let stopping = done(&held, Command::Stop);
    assert!(stopping.intentional_stop());
    let (ended, _) = seen(&stopping, Fact::Exited(Cause::plain(ExitReason::OperatorStop)));
    assert_eq!((ended.status(), ended.quarantine), (BridgeStatus::Stopped, None));
    // Any other doubt suspends a stop as it does for Server Mode.
    for code in QuarantineCode::ALL.iter().filter(|code| **code != QuarantineCode::KeeperVersion) {
        let doubted = Bridge { quarantine: Some(*code), ..running() };
        assert_eq!(decide(&doubted, Command::Stop, at(6)), Err(Refusal::Held(*code)));
    }
    let (lost, _) = seen(&held, Fact::TerminalLost);
    assert_eq!(lost.quarantine, None, "no keeper is left that could be of another version");
}

#[test]
fn a_resume_keeps_worktree_and_conversation_and_forgets_the_processes() {
    let (known, effects) = seen(&running(), Fact::Conversation(conversation()));
    assert_eq!(known.conversation, Some(conversation()));
    assert!(effects.is_empty());
    assert!(matches!(observe(&known, Fact::Conversation(conversation()), at(5)), Step::Unchanged));
    let (ended, _) = seen(&known, Fact::Exited(Cause::plain(ExitReason::Unknown)));
    let gone = Some(Verdict::Gone(GoneBecause::NoProcess));
    assert_eq!((may_resume(&ended, gone), may_forget(&ended, gone)), (Ok(()), Ok(())));
    let next = done(&ended, Command::Resume { launch: launch(), deadline: None });
    assert_eq!(next.id, ended.id);
    assert_eq!(next.generation, ended.generation + 1);
    assert_eq!((next.process, next.keeper), (None, None));
    assert_eq!(next.conversation, Some(conversation()));
    assert_eq!(next.worktree, ended.worktree);
}

#[test]
fn a_server_mode_bridge_has_no_conversation_of_its_own() {
    let standard = Bridge { resume_mode: ResumeMode::Standard, ..running() };
    assert!(matches!(
        observe(&standard, Fact::Conversation(conversation()), at(5)),
        Step::Unchanged
    ));
}

#[test]
fn a_session_works_in_its_worktree() {
    assert_eq!(running().work_dir(), Path::new("/p/api/.claude/worktrees/svc-3a375c2e"));
    assert_eq!(Bridge { worktree: None, ..running() }.work_dir(), Path::new("/p/api"));
}

#[test]
fn a_record_never_shows_its_conversation() {
    let (known, _) = seen(&running(), Fact::Conversation(conversation()));
    assert!(!format!("{known:?}").contains("0f1e2d3c"));
}
