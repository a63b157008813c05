//! The state table of a bridge: one row per transition, and the invariants.
#![expect(clippy::unwrap_used, reason = "helpers of tests outside of test functions")]

use proptest::prelude::*;
use std::path::PathBuf;
use svc_domain::announce::end_between;
use svc_domain::bridge::{Anchor, Bridge, Launch, Live, Stage, State};
use svc_domain::decide::{Command, Refusal, decide, may_forget, may_resume};
use svc_domain::effect::{Effect, History, Lifecycle, Step};
use svc_domain::identity::{GoneBecause, Pid, ProcessIdentity, Verdict};
use svc_domain::observe::{Cause, Fact, observe};
use svc_shared::Timestamp;
use svc_shared::status::{
    BridgeStatus, ExitReason, Origin, PermissionMode, QuarantineCode, ResumeMode, SpawnMode,
};

const NOW: i64 = 1_795_000_000_000;

fn at(offset: i64) -> Timestamp {
    Timestamp::from_millis(NOW + offset)
}

fn identity() -> ProcessIdentity {
    ProcessIdentity {
        pid: Pid::new(4242).unwrap(),
        start_ticks: 7,
        boot_id: "boot".parse().unwrap(),
    }
}

fn launch(relaunched: bool) -> Launch {
    Launch {
        id: "0123456789abcdef0123456789abcdef".parse().unwrap(),
        argv: ["claude", "remote-control"].into_iter().collect(),
        log_stem: "api-1-0".into(),
        relaunched,
    }
}

fn bridge(stage: Stage) -> Bridge {
    Bridge {
        id: "3a375c2e-0a3b-4c5d-8e9f-001122334455".parse().unwrap(),
        project: "api".parse().unwrap(),
        cwd: PathBuf::from("/p/api"),
        custom_name: None,
        resume_mode: ResumeMode::Standard,
        spawn_mode: SpawnMode::SameDir,
        permission_mode: PermissionMode::Default,
        origin: Origin::Spawned,
        generation: 1,
        state: State::Live(Live { stage, stop_requested: false }),
        status_since: at(0),
        started_at: Some(at(0)),
        launch: Some(launch(false)),
        process: Some(identity()),
        keeper: None,
        worktree: None,
        conversation: None,
        anchor: Anchor::default(),
        notice: None,
        quarantine: None,
        restarts: Default::default(),
        reboot: Default::default(),
        on_limit: None,
    }
}

fn held() -> Fact {
    Fact::Held { agent: identity(), keeper: None }
}

fn launching() -> Bridge {
    Bridge { process: None, ..bridge(Stage::Launching { deadline: Some(at(60_000)) }) }
}

fn registering() -> Bridge {
    bridge(Stage::Registering { deadline: Some(at(60_000)) })
}

fn adopted() -> Bridge {
    Bridge { origin: Origin::Adopted, ..bridge(Stage::Registering { deadline: None }) }
}

fn running() -> Bridge {
    bridge(Stage::Ready)
}

fn stopping(bridge: Bridge) -> Bridge {
    apply(decide(&bridge, Command::Stop, at(1)).unwrap(), bridge).0
}

fn exit(code: Option<i32>, signal: Option<i32>) -> Cause {
    Cause { exit_code: code, exit_signal: signal, ..Cause::plain(ExitReason::Unknown) }
}

fn apply(step: Step, before: Bridge) -> (Bridge, Vec<Effect>) {
    match step {
        Step::Unchanged => (before, Vec::new()),
        Step::Becomes { next, effects } => (*next, effects),
    }
}

#[track_caller]
fn check(
    before: Bridge,
    fact: Fact,
    status: BridgeStatus,
    reason: Option<ExitReason>,
    effects: &[Effect],
) -> Bridge {
    let (after, got) = apply(observe(&before, fact, at(5)), before);
    assert_eq!(after.status(), status);
    assert_eq!(after.ended().and_then(|ended| ended.reason), reason);
    assert_eq!(got, effects);
    after
}

const SPAWNED: &[Effect] =
    &[Effect::Announce(Lifecycle::Spawn), Effect::Remember(History::Spawned)];
const READY: &[Effect] = &[Effect::Announce(Lifecycle::Ready), Effect::Remember(History::Ready)];
const STOPPED: &[Effect] = &[Effect::Announce(Lifecycle::Stop), Effect::Remember(History::Ended)];
const CRASHED: &[Effect] =
    &[Effect::Announce(Lifecycle::Crash), Effect::CountCrash, Effect::Remember(History::Crashed)];
const ENDED: &[Effect] = &[Effect::Remember(History::Ended)];

#[test]
fn a_launch_is_announced_once_the_agent_runs() {
    let held = check(launching(), held(), BridgeStatus::Starting, None, &[]);
    assert_eq!(held.process, Some(identity()));
    let started = check(held, Fact::Executed, BridgeStatus::Starting, None, SPAWNED);
    check(started, Fact::Executed, BridgeStatus::Starting, None, &[]);
}

#[test]
fn a_program_that_cannot_be_executed_ends_in_error() {
    let cause = Cause::plain(ExitReason::ExecFailed);
    check(
        launching(),
        Fact::NotExecuted(cause),
        BridgeStatus::Error,
        Some(ExitReason::ExecFailed),
        ENDED,
    );
}

#[test]
fn registration_makes_a_spawned_bridge_running_and_ready_is_announced_once() {
    let anchor = Anchor { environment_id: Some("env_x".into()), session_id: None };
    let ready =
        check(registering(), Fact::Registered(anchor.clone()), BridgeStatus::Running, None, READY);
    assert_eq!(ready.status_since, at(5));
    assert_eq!(ready.deadline(), None);
    check(ready.clone(), Fact::Registered(anchor), BridgeStatus::Running, None, &[]);
    let session = Anchor { environment_id: None, session_id: Some("session_x".into()) };
    let later = check(ready, Fact::Registered(session), BridgeStatus::Running, None, &[]);
    assert_eq!(later.anchor.environment_id.as_deref(), Some("env_x"));
    assert_eq!(later.anchor.session_id.as_deref(), Some("session_x"));
}

#[test]
fn an_adopted_bridge_becomes_running_without_a_ready_announcement() {
    let fact = Fact::Registered(Anchor::default());
    check(adopted(), fact, BridgeStatus::Running, None, &[Effect::Remember(History::Ready)]);
}

#[test]
fn exit_before_ready_is_an_error_for_our_own_launch_and_a_crash_for_an_adopted_one() {
    let cause = exit(Some(1), None);
    check(
        registering(),
        Fact::Exited(cause.clone()),
        BridgeStatus::Error,
        Some(ExitReason::Unknown),
        ENDED,
    );
    check(
        adopted(),
        Fact::Exited(cause),
        BridgeStatus::Crashed,
        Some(ExitReason::Unknown),
        CRASHED,
    );
}

#[test]
fn an_unexpected_exit_of_a_running_bridge_is_a_crash_with_its_cause() {
    let cause = Cause { detail: Some("boom".into()), ..exit(None, Some(9)) };
    let after = check(
        running(),
        Fact::Exited(cause),
        BridgeStatus::Crashed,
        Some(ExitReason::Unknown),
        CRASHED,
    );
    let ended = after.ended().unwrap();
    assert_eq!(ended.exit_signal, Some(9));
    assert_eq!(ended.detail.as_deref(), Some("boom"));
    assert!(!ended.intentional);
}

#[test]
fn exit_after_a_stop_is_stopped_however_the_process_ended() {
    for before in [stopping(running()), stopping(registering()), stopping(adopted())] {
        let cause = Cause { forced: true, ..exit(None, Some(9)) };
        let after = check(
            before,
            Fact::Exited(cause),
            BridgeStatus::Stopped,
            Some(ExitReason::OperatorStop),
            STOPPED,
        );
        let ended = after.ended().unwrap();
        assert!(ended.intentional && ended.forced);
        assert_eq!(ended.detail, None);
    }
}

#[test]
fn stop_during_start_is_never_reported_as_a_failure() {
    let before = stopping(registering());
    let cause = Cause::plain(ExitReason::NotRegistered);
    check(
        before,
        Fact::GraceExpired(cause),
        BridgeStatus::Stopped,
        Some(ExitReason::OperatorStop),
        STOPPED,
    );
}

#[test]
fn a_single_session_bridge_that_ends_by_itself_is_stopped_without_an_announcement() {
    let before = Bridge { spawn_mode: SpawnMode::Session, ..running() };
    check(
        before.clone(),
        Fact::Exited(exit(Some(0), None)),
        BridgeStatus::Stopped,
        Some(ExitReason::SessionEnded),
        ENDED,
    );
    check(
        before,
        Fact::Exited(exit(Some(1), None)),
        BridgeStatus::Crashed,
        Some(ExitReason::Unknown),
        CRASHED,
    );
}

#[test]
fn grace_ends_only_a_start_that_has_a_deadline() {
    let cause = Cause::plain(ExitReason::NotRegistered);
    check(
        registering(),
        Fact::GraceExpired(cause.clone()),
        BridgeStatus::Error,
        Some(ExitReason::NotRegistered),
        ENDED,
    );
    check(adopted(), Fact::GraceExpired(cause.clone()), BridgeStatus::Starting, None, &[]);
    check(running(), Fact::GraceExpired(cause), BridgeStatus::Running, None, &[]);
}

#[test]
fn taking_over_clears_the_deadline_of_a_start_and_keeps_a_running_bridge_as_it_is() {
    let after = check(registering(), Fact::TakenOver, BridgeStatus::Starting, None, &[]);
    assert_eq!((after.origin, after.deadline()), (Origin::Adopted, None));
    check(after, Fact::TakenOver, BridgeStatus::Starting, None, &[]);
    let after = check(running(), Fact::TakenOver, BridgeStatus::Running, None, &[]);
    assert_eq!(after.origin, Origin::Spawned);
}

#[test]
fn a_restart_of_the_host_stops_without_events() {
    for before in [running(), registering(), adopted()] {
        let after = check(
            before,
            Fact::HostRestarted,
            BridgeStatus::Stopped,
            Some(ExitReason::HostRestarted),
            ENDED,
        );
        assert!(!after.intentional_stop());
    }
    check(
        stopping(running()),
        Fact::HostRestarted,
        BridgeStatus::Stopped,
        Some(ExitReason::OperatorStop),
        ENDED,
    );
}

#[test]
fn a_row_found_dead_in_the_same_boot_crashed_unless_it_was_never_ready() {
    let cause = Cause::plain(ExitReason::DiedUnsupervised);
    let reason = Some(ExitReason::DiedUnsupervised);
    check(running(), Fact::FoundGone(cause.clone()), BridgeStatus::Crashed, reason, CRASHED);
    check(adopted(), Fact::FoundGone(cause.clone()), BridgeStatus::Crashed, reason, CRASHED);
    check(registering(), Fact::FoundGone(cause.clone()), BridgeStatus::Error, reason, ENDED);
    check(
        stopping(running()),
        Fact::FoundGone(cause),
        BridgeStatus::Stopped,
        Some(ExitReason::OperatorStop),
        ENDED,
    );
}

#[test]
fn an_interrupted_launch_is_an_error() {
    let cause = Cause::plain(ExitReason::LaunchInterrupted);
    check(
        launching(),
        Fact::LaunchInterrupted(cause),
        BridgeStatus::Error,
        Some(ExitReason::LaunchInterrupted),
        ENDED,
    );
}

#[test]
fn a_wrong_verdict_is_corrected_silently() {
    let (crashed, _) = apply(observe(&running(), Fact::Exited(exit(None, None)), at(1)), running());
    let after = check(crashed, Fact::FoundAlive, BridgeStatus::Starting, None, &[]);
    assert_eq!(after.deadline(), None);
    assert_eq!(after.origin, Origin::Adopted);
}

/// No log of it is read, so nothing else could ever show that it is ready.
#[test]
fn a_wrong_verdict_about_a_bridge_with_a_foreign_log_makes_it_running_again() {
    let foreign = Bridge { launch: None, origin: Origin::Adopted, ..running() };
    let (crashed, _) = apply(observe(&foreign, Fact::Exited(exit(None, None)), at(1)), foreign);
    check(crashed, Fact::FoundAlive, BridgeStatus::Running, None, &[]);
}

#[test]
fn resume_revives_the_same_row_as_the_next_generation() {
    let (ended, _) =
        apply(observe(&running(), Fact::Exited(exit(Some(1), None)), at(1)), running());
    let command = Command::Resume { launch: launch(false), deadline: Some(at(9)) };
    let (after, effects) = apply(decide(&ended, command.clone(), at(2)).unwrap(), ended.clone());
    assert_eq!(after.id, ended.id);
    assert_eq!(after.generation, 2);
    assert_eq!(after.status(), BridgeStatus::Starting);
    assert_eq!(after.process, None);
    assert_eq!(effects, []);
    assert_eq!(decide(&running(), command, at(2)), Err(Refusal::Live));
}

#[test]
fn a_resume_of_which_nothing_was_started_is_taken_back() {
    let (ended, _) =
        apply(observe(&running(), Fact::Exited(exit(Some(1), None)), at(1)), running());
    let resume = Command::Resume { launch: launch(false), deadline: Some(at(9)) };
    let (begun, _) = apply(decide(&ended, resume, at(2)).unwrap(), ended.clone());
    let withdraw = |generation| Command::Withdraw { generation, before: Box::new(ended.clone()) };
    let (after, effects) = apply(decide(&begun, withdraw(2), at(3)).unwrap(), begun.clone());
    assert_eq!((after, effects), (ended.clone(), Vec::new()));
    // A process was recorded, or another generation began: it goes on.
    let (held, _) = apply(observe(&begun, held(), at(3)), begun.clone());
    assert_eq!(decide(&held, withdraw(2), at(4)), Ok(Step::Unchanged));
    assert_eq!(decide(&begun, withdraw(1), at(4)), Ok(Step::Unchanged));
    let renamed = Bridge { custom_name: Some("new".into()), ..begun };
    let (after, _) = apply(decide(&renamed, withdraw(2), at(5)).unwrap(), renamed);
    assert_eq!(after.custom_name.as_deref(), Some("new"), "a name given meanwhile stays");
}

#[test]
fn a_poisoned_start_is_relaunched_once() {
    let command = || Command::Relaunch { launch: launch(false), deadline: None };
    let (after, _) = apply(decide(&registering(), command(), at(2)).unwrap(), registering());
    assert_eq!(after.generation, 2);
    assert_eq!(after.status(), BridgeStatus::Starting);
    let again = Bridge {
        state: State::Live(Live {
            stage: Stage::Registering { deadline: None },
            stop_requested: false,
        }),
        ..after
    };
    assert_eq!(decide(&again, command(), at(3)), Err(Refusal::NoRelaunch));
    assert_eq!(decide(&stopping(registering()), command(), at(3)), Err(Refusal::NoRelaunch));
}

#[test]
fn poison_of_a_running_bridge_is_only_a_notice() {
    let after = check(running(), Fact::Poisoned, BridgeStatus::Running, None, &[]);
    assert!(after.notice.is_some());
}

#[test]
fn a_held_row_takes_no_command_until_it_is_certain() {
    let held = check(
        running(),
        Fact::Doubt(QuarantineCode::IdentityUnknown),
        BridgeStatus::Running,
        None,
        &[],
    );
    let code = QuarantineCode::IdentityUnknown;
    assert_eq!(decide(&held, Command::Stop, at(6)), Err(Refusal::Held(code)));
    assert_eq!(may_forget(&held, None), Err(Refusal::Held(code)));
    let certain = check(held, Fact::Certain, BridgeStatus::Running, None, &[]);
    assert!(decide(&certain, Command::Stop, at(7)).is_ok());
}

#[test]
fn f48_forget_never_removes_a_row_whose_process_lives_or_may_live() {
    let (ended, _) = apply(observe(&running(), Fact::Exited(exit(None, None)), at(1)), running());
    assert_eq!(may_forget(&ended, Some(Verdict::Same)), Err(Refusal::Live));
    assert_eq!(may_forget(&ended, Some(Verdict::Unknown)), Err(Refusal::Live));
    assert_eq!(may_forget(&ended, Some(Verdict::Gone(GoneBecause::Reused))), Ok(()));
    assert_eq!(may_forget(&running(), None), Err(Refusal::Live));
}

#[test]
fn f48_no_generation_begins_while_the_process_of_the_last_one_lives_or_may_live() {
    let (ended, _) = apply(observe(&running(), Fact::Exited(exit(None, None)), at(1)), running());
    assert_eq!(may_resume(&ended, Some(Verdict::Same)), Err(Refusal::Live));
    assert_eq!(may_resume(&ended, Some(Verdict::Unknown)), Err(Refusal::Live));
    assert_eq!(may_resume(&ended, Some(Verdict::Gone(GoneBecause::NoProcess))), Ok(()));
    assert_eq!(may_resume(&ended, None), Ok(()), "it never ran here");
    assert_eq!(may_resume(&running(), None), Err(Refusal::Live));
}

fn any_cause() -> impl Strategy<Value = Cause> {
    (prop::option::of(0..3), prop::option::of(prop::sample::select(vec![2, 9, 15])))
        .prop_map(|(code, signal)| exit(code, signal))
}

/// Two records of another process say the same as the steps between them.
#[test]
fn an_end_between_two_records_is_the_event_that_its_writer_would_announce() {
    let gone = |bridge: &Bridge, fact| apply(observe(bridge, fact, at(1)), bridge.clone()).0;
    let exited = || Fact::Exited(Cause::plain(ExitReason::Unknown));
    let stopping =
        |bridge: &Bridge| apply(decide(bridge, Command::Stop, at(0)).unwrap(), bridge.clone()).0;
    let crashed = gone(&running(), exited());
    let stopped = gone(&stopping(&running()), exited());
    let failed = gone(&registering(), exited());
    assert_eq!(end_between(&running(), &crashed), Some(Lifecycle::Crash));
    assert_eq!(end_between(&running(), &stopped), Some(Lifecycle::Stop));
    assert_eq!(end_between(&registering(), &failed), None);
    // Known already, and another generation that ended unseen.
    assert_eq!(end_between(&crashed, &crashed), None);
    let next = Bridge { generation: 2, ..stopped.clone() };
    assert_eq!(end_between(&crashed, &next), Some(Lifecycle::Stop));
    assert_eq!(end_between(&stopped, &running()), None);
}

#[derive(Debug, Clone)]
enum Move {
    Command(Command),
    Fact(Fact),
}

fn any_move() -> impl Strategy<Value = Move> {
    let deadline = prop::option::of(Just(at(60_000)));
    prop_oneof![
        Just(Move::Command(Command::Stop)),
        deadline.clone().prop_map(|deadline| Move::Command(Command::Resume {
            launch: launch(false),
            deadline
        })),
        deadline.prop_map(|deadline| Move::Command(Command::Relaunch {
            launch: launch(false),
            deadline
        })),
        Just(Move::Fact(held())),
        Just(Move::Fact(Fact::Executed)),
        any_cause().prop_map(|cause| Move::Fact(Fact::NotExecuted(cause))),
        Just(Move::Fact(Fact::Registered(Anchor::default()))),
        any_cause().prop_map(|cause| Move::Fact(Fact::GraceExpired(cause))),
        any_cause().prop_map(|cause| Move::Fact(Fact::Exited(cause))),
        any_cause().prop_map(|cause| Move::Fact(Fact::LaunchInterrupted(cause))),
        Just(Move::Fact(Fact::HostRestarted)),
        any_cause().prop_map(|cause| Move::Fact(Fact::FoundGone(cause))),
        Just(Move::Fact(Fact::TakenOver)),
        Just(Move::Fact(Fact::FoundAlive)),
        Just(Move::Fact(Fact::Poisoned)),
        any_cause().prop_map(|cause| Move::Fact(Fact::Refused(cause))),
        Just(Move::Fact(Fact::TerminalLost)),
        Just(Move::Fact(Fact::Doubt(QuarantineCode::KeeperVersion))),
        Just(Move::Fact(Fact::Doubt(QuarantineCode::IdentityUnknown))),
        Just(Move::Fact(Fact::Certain)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn no_sequence_breaks_a_rule(
        moves in prop::collection::vec(any_move(), 0..40),
        resume_mode in prop::sample::select(vec![ResumeMode::Standard, ResumeMode::Pty]),
    ) {
        let mut bridge = Bridge { resume_mode, ..launching() };
        let mut stopped_generation = None;
        let mut announced = Vec::new();
        for (index, step) in moves.into_iter().enumerate() {
            let now = at(i64::try_from(index).unwrap());
            let before = bridge.clone();
            let step = match step {
                Move::Command(command) => decide(&bridge, command, now).unwrap_or(Step::Unchanged),
                Move::Fact(fact) => observe(&bridge, fact, now),
            };
            let (after, effects) = apply(step, bridge);
            if after.live().is_some_and(|live| live.stop_requested) {
                stopped_generation = Some(after.generation);
            }
            // A deliberate stop never ends as a crash or a failure.
            if stopped_generation == Some(after.generation) {
                prop_assert!(!matches!(after.status(), BridgeStatus::Crashed | BridgeStatus::Error));
            }
            // Running goes back to starting only with a correction of an ended row or a new generation.
            if before.status() == BridgeStatus::Running {
                prop_assert!(after.status() != BridgeStatus::Starting || after.generation > before.generation);
            }
            if before.status() == BridgeStatus::Error && after.status() == BridgeStatus::Running {
                prop_assert!(after.generation > before.generation);
            }
            // Running was seen ready.
            if after.status() == BridgeStatus::Running && before.status() != BridgeStatus::Running {
                prop_assert!(effects.contains(&Effect::Remember(History::Ready)));
            }
            // Spawn and ready leave at most once per generation, and only for our own launches.
            for effect in effects {
                if let Effect::Announce(event @ (Lifecycle::Spawn | Lifecycle::Ready)) = effect {
                    let key = (after.generation, event);
                    prop_assert!(!announced.contains(&key));
                    prop_assert_eq!(after.origin, Origin::Spawned);
                    announced.push(key);
                }
            }
            // A start that was not ours never expires.
            if after.origin != Origin::Spawned {
                prop_assert_eq!(after.deadline(), None);
            }
            bridge = after;
        }
    }
}
