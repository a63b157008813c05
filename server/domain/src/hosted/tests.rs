//! Tables of the states of a Direct Session.

use super::history::remembered;
use super::*;
use crate::effect::History;
use crate::identity::Pid;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn session(state: State) -> HostedSession {
    HostedSession {
        id: "3b000000-0000-4000-8000-000000000004".parse().unwrap(),
        process_id: "p1".into(),
        project: "api".parse().unwrap(),
        cwd: "/projects/api".into(),
        label: None,
        permission_mode: PermissionMode::Default,
        session_uuid: Some("2222-uuid".into()),
        state,
        status_since: at(1),
        generation: 1,
        agent: None,
        started_at: Some(at(1)),
        created_at: at(1),
        on_limit: None,
    }
}

fn agent() -> ProcessIdentity {
    let pid = Pid::new(4242).unwrap();
    ProcessIdentity { pid, start_ticks: 7, boot_id: "boot".parse().unwrap() }
}

#[track_caller]
fn after(before: &HostedSession, fact: Fact) -> HostedSession {
    match observe(before, fact, at(9)) {
        Step::Becomes(next) => *next,
        Step::Unchanged => before.clone(),
    }
}

#[track_caller]
fn check(state: State, fact: Fact, status: BridgeStatus, reason: Option<ExitReason>) {
    let next = after(&session(state), fact);
    assert_eq!((next.status(), next.ended().and_then(|ended| ended.reason)), (status, reason));
}

fn exited(code: Option<i32>, signal: Option<i32>) -> Fact {
    Fact::Exited { code, signal, detail: Some("words".into()) }
}

#[test]
fn the_table_of_states() {
    use BridgeStatus as B;
    use ExitReason as R;
    let failed = Fact::NotStarted { reason: R::ExecFailed, detail: None };
    check(State::Starting, Fact::Running(Some(agent())), B::Running, None);
    check(State::Starting, failed.clone(), B::Error, Some(R::ExecFailed));
    check(State::Starting, Fact::Lost, B::Error, Some(R::LaunchInterrupted));
    check(State::Running, exited(Some(0), None), B::Stopped, Some(R::CleanExit));
    check(State::Running, exited(Some(3), None), B::Crashed, Some(R::Unknown));
    check(State::Running, exited(None, Some(9)), B::Crashed, Some(R::Killed));
    check(State::Stopping, exited(Some(3), None), B::Stopped, Some(R::OperatorStop));
    check(State::Stopping, exited(None, Some(9)), B::Stopped, Some(R::OperatorStop));
    check(State::Stopping, Fact::Lost, B::Stopped, Some(R::OperatorStop));
    check(State::Stopping, failed, B::Stopped, Some(R::ExecFailed));
    check(State::Running, Fact::Orphaned, B::Crashed, Some(R::KeeperLost));
    check(State::Running, Fact::Lost, B::Crashed, Some(R::KeeperLost));
    check(State::Running, Fact::HostRestarted, B::Stopped, Some(R::HostRestarted));
    check(State::Stopping, Fact::Running(Some(agent())), B::Stopping, None);
}

#[test]
fn an_end_is_final_for_every_fact_but_the_end_of_an_orphan() {
    let crashed = after(&session(State::Running), exited(Some(1), None));
    for fact in [exited(Some(0), None), Fact::Lost, Fact::Orphaned, Fact::Running(Some(agent()))] {
        assert_eq!(after(&crashed, fact), crashed);
    }
    let orphan = after(&session(State::Running), Fact::Orphaned);
    assert!(orphan.is_orphan());
    assert!(!after(&orphan, Fact::OrphanGone).is_orphan());
}

#[test]
fn a_stop_is_recorded_once_and_an_ended_session_stays_as_it_is() {
    let stopping = decide(&session(State::Running), Command::Stop, at(5)).unwrap();
    let Step::Becomes(stopping) = stopping else { panic!() };
    assert_eq!(stopping.status(), BridgeStatus::Stopping);
    assert_eq!(decide(&stopping, Command::Stop, at(6)), Ok(Step::Unchanged));
}

#[test]
fn a_resume_keeps_the_id_and_is_refused_for_what_could_be_two_agents() {
    let resume = |session: &HostedSession| {
        decide(session, Command::Resume { process_id: "p2".into() }, at(7))
    };
    let ended = after(&session(State::Running), exited(Some(1), None));
    let Ok(Step::Becomes(next)) = resume(&ended) else { panic!() };
    assert_eq!((next.generation, next.process_id.as_str()), (2, "p2"));
    assert_eq!((next.id.clone(), next.status()), (ended.id.clone(), BridgeStatus::Starting));
    for live in [State::Starting, State::Running, State::Stopping] {
        assert_eq!(resume(&session(live)), Err(Refusal::Live));
    }
    let orphan = after(&session(State::Running), Fact::Orphaned);
    assert_eq!(resume(&orphan), Err(Refusal::Orphan));
    let nameless = HostedSession { session_uuid: None, ..ended.clone() };
    assert_eq!(resume(&nameless), Err(Refusal::NoSession));
    // HD20: nothing that an agent could read as an option.
    let long = "a".repeat(65);
    for bad in ["--dangerous", "", long.as_str(), "a\nb", "-x", "ä"] {
        let bad = HostedSession { session_uuid: Some(bad.into()), ..ended.clone() };
        assert_eq!(resume(&bad), Err(Refusal::BadSession));
    }
}

#[test]
fn the_first_conversation_is_kept() {
    let fresh = HostedSession { session_uuid: None, ..session(State::Running) };
    let named = after(&fresh, Fact::Named("one".into()));
    assert_eq!(named.session_uuid.as_deref(), Some("one"));
    assert_eq!(after(&named, Fact::Named("two".into())), named);
}

#[test]
fn the_history_keeps_what_begins_and_ends_a_session() {
    use History as H;
    let end = |outcome| {
        let ended = after(&session(State::Running), exited(Some(0), None));
        let State::Ended(ended) = ended.state else { panic!("{ended:?}") };
        State::Ended(Ended { outcome, ..ended })
    };
    let crashed = || end(Outcome::Crashed);
    for (before, now, told) in [
        (None, State::Starting, &[H::Spawned][..]),
        (Some(State::Starting), State::Running, &[H::Ready]),
        (Some(State::Starting), end(Outcome::Failed), &[H::Ended]),
        (Some(State::Running), State::Running, &[]),
        (Some(State::Running), State::Stopping, &[]),
        (Some(State::Running), crashed(), &[H::Crashed]),
        (Some(State::Stopping), end(Outcome::Stopped), &[H::Ended]),
        (Some(crashed()), crashed(), &[]),
        // Its agent was found alive.
        (Some(crashed()), State::Running, &[H::Ready]),
    ] {
        let before = before.map(session);
        assert_eq!(remembered(before.as_ref(), &session(now)), told, "{before:?}");
    }
    let resumed = HostedSession { generation: 2, ..session(State::Starting) };
    assert_eq!(remembered(Some(&session(crashed())), &resumed), [H::Spawned]);
}
