//! Automatic restarts: delays, counts, the pause, and what cancels them.
#![expect(clippy::unwrap_used, reason = "helpers of tests outside of test functions")]

use proptest::prelude::*;
use std::path::PathBuf;
use std::time::Duration;
use svc_domain::bridge::{Beginning, Bridge, Launch, Live, Stage, State};
use svc_domain::decide::{Command, Refusal, decide};
use svc_domain::effect::Step;
use svc_domain::identity::{Pid, ProcessIdentity};
use svc_domain::observe::{Cause, Fact, observe};
use svc_domain::restart::{
    Chance, Due, HEALED_WITHIN, Reboot, Restarts, Rules, due, follow, is_restore_candidate,
    is_starting, policy, postponed,
};
use svc_shared::Timestamp;
use svc_shared::status::{
    AfterReboot, BridgeStatus, ExitReason, Origin, QuarantineCode, RestartPolicy,
};

const NOW: i64 = 1_795_000_000_000;
const MIDDLE: u32 = u32::MAX / 2 + 1;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(NOW + seconds * 1_000)
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn rules(policy: RestartPolicy) -> Rules {
    Rules {
        policy,
        initial: secs(2),
        longest: secs(300),
        multiplier: 2.0,
        jitter: 0.2,
        max_crashes: 5,
        window: secs(600),
        stable_after: secs(120),
        after_reboot: AfterReboot::Offer,
    }
}

fn launch() -> Launch {
    Launch {
        id: "0123456789abcdef0123456789abcdef".parse().unwrap(),
        argv: ["claude", "remote-control"].into_iter().collect(),
        log_stem: "api-1-0".into(),
        relaunched: false,
    }
}

fn live(stage: Stage) -> Bridge {
    Bridge {
        launch: Some(launch()),
        process: Some(ProcessIdentity {
            pid: Pid::new(4242).unwrap(),
            start_ticks: 7,
            boot_id: "boot".parse().unwrap(),
        }),
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

fn exit(code: Option<i32>) -> Fact {
    let signal = code.is_none().then_some(9);
    Fact::Exited(Cause {
        exit_code: code,
        exit_signal: signal,
        ..Cause::plain(ExitReason::Unknown)
    })
}

fn next(step: Step, before: &Bridge) -> Bridge {
    match step {
        Step::Unchanged => before.clone(),
        Step::Becomes { next, .. } => *next,
    }
}

/// What one write of the service makes of a fact.
fn seen(before: &Bridge, fact: Fact, rules: &Rules, now: Timestamp) -> Bridge {
    let after = next(observe(before, fact, now), before);
    follow(before, after, rules, Chance::of(MIDDLE), now)
}

fn told(before: &Bridge, command: Command, now: Timestamp) -> Result<Bridge, Refusal> {
    decide(before, command, now).map(|step| next(step, before))
}

fn restarted(before: &Bridge, now: Timestamp) -> Result<Bridge, Refusal> {
    told(before, Command::Restart { launch: launch(), deadline: None }, now)
}

fn running(before: &Bridge, rules: &Rules, now: Timestamp) -> Bridge {
    let started = seen(before, Fact::Executed, rules, now);
    seen(&started, Fact::Registered(Default::default()), rules, now)
}

#[test]
fn a_crash_is_followed_by_a_restart_only_where_the_policy_says_so() {
    for (policy, code, expected) in [
        (RestartPolicy::Never, Some(1), None),
        (RestartPolicy::OnCrash, Some(1), Some(at(7))),
        (RestartPolicy::OnCrash, None, Some(at(7))),
        (RestartPolicy::OnCrash, Some(0), None),
        (RestartPolicy::Always, Some(0), Some(at(7))),
        (RestartPolicy::Always, Some(1), Some(at(7))),
    ] {
        let crashed = seen(&live(Stage::Ready), exit(code), &rules(policy), at(5));
        assert_eq!(crashed.status(), BridgeStatus::Crashed);
        assert_eq!(crashed.restarts.next_at, expected, "{policy} {code:?}");
        assert_eq!(crashed.restarts.crashes, [at(5)], "{policy} {code:?}");
    }
}

#[test]
fn the_policy_of_a_row_is_before_that_of_the_configuration() {
    let own = |policy| {
        let restarts = Restarts { policy, ..Restarts::default() };
        Bridge { restarts, ..live(Stage::Ready) }
    };
    let general = rules(RestartPolicy::Always);
    assert_eq!(policy(&own(None), &general), RestartPolicy::Always);
    assert_eq!(policy(&own(Some(RestartPolicy::Never)), &general), RestartPolicy::Never);
    let adopted = Bridge { launch: None, ..own(None) };
    assert_eq!(policy(&adopted, &general), RestartPolicy::Never, "only by its own record");
    let adopted = Bridge { launch: None, ..own(Some(RestartPolicy::OnCrash)) };
    assert_eq!(policy(&adopted, &general), RestartPolicy::OnCrash);
}

#[test]
fn a_first_start_that_fails_is_not_repeated_but_a_restart_that_fails_is() {
    let always = rules(RestartPolicy::Always);
    let starting = live(Stage::Registering { deadline: None });
    let failed = seen(&starting, exit(Some(1)), &always, at(1));
    assert_eq!(failed.status(), BridgeStatus::Error);
    assert_eq!(failed.restarts, Restarts::default());

    let crashed = seen(&live(Stage::Ready), exit(Some(1)), &always, at(5));
    let again = restarted(&crashed, at(7)).unwrap();
    assert_eq!((again.restarts.attempt, again.restarts.next_at), (1, None));
    assert!(is_starting(&again));
    let again = seen(&again, Fact::Executed, &always, at(7));
    let failed = seen(&again, exit(Some(0)), &always, at(8));
    assert_eq!(failed.status(), BridgeStatus::Error);
    assert_eq!(failed.restarts.crashes, [at(5), at(8)]);
    assert_eq!(failed.restarts.next_at, Some(at(12)), "the second delay is twice the first");
}

#[test]
fn h112_five_crashes_in_ten_minutes_end_the_restarts_until_a_person_resumes() {
    let on_crash = rules(RestartPolicy::OnCrash);
    let mut bridge = live(Stage::Ready);
    let mut now = 0;
    let mut starts = 1;
    loop {
        now += 1;
        bridge = seen(&bridge, exit(Some(1)), &on_crash, at(now));
        let Some(next_at) = bridge.restarts.next_at else { break };
        now = (next_at.as_millis() - NOW) / 1_000;
        bridge = running(&restarted(&bridge, next_at).unwrap(), &on_crash, next_at);
        starts += 1;
    }
    assert_eq!(starts, 5);
    assert_eq!(bridge.status(), BridgeStatus::Crashed);
    assert_eq!(bridge.restarts.quarantined_at, Some(at(now)));
    assert_eq!(restarted(&bridge, at(now)), Err(Refusal::NotDue));

    let released = told(&bridge, Command::Release, at(now)).unwrap();
    assert_eq!(released.restarts, Restarts::default());
    assert_eq!(released.status(), BridgeStatus::Crashed, "nothing is started");
    let resume = Command::Resume { launch: launch(), deadline: None };
    let resumed = told(&bridge, resume, at(now)).unwrap();
    assert_eq!(resumed.restarts, Restarts::default());
}

#[test]
fn crashes_outside_the_window_do_not_count() {
    let on_crash = rules(RestartPolicy::OnCrash);
    let old = Restarts { attempt: 4, crashes: vec![at(0); 4], ..Restarts::default() };
    let bridge = Bridge { restarts: old, status_since: at(650), ..live(Stage::Ready) };
    let crashed = seen(&bridge, exit(Some(1)), &on_crash, at(700));
    assert_eq!(crashed.restarts.crashes, [at(700)]);
    assert!(crashed.restarts.next_at.is_some());
}

#[test]
fn a_stable_run_clears_delay_and_count() {
    let on_crash = rules(RestartPolicy::OnCrash);
    let counted = Restarts { attempt: 4, crashes: vec![at(0); 4], ..Restarts::default() };
    let bridge = Bridge { restarts: counted.clone(), ..live(Stage::Ready) };
    assert_eq!(due(&bridge, &on_crash, at(0)), Some((secs(120), Due::Steady)));
    assert_eq!(due(&bridge, &on_crash, at(500)), Some((Duration::ZERO, Due::Steady)));
    assert_eq!(seen(&bridge, Fact::Steady, &on_crash, at(120)).restarts, Restarts::default());
    // Also where nobody was there to note it.
    let crashed = seen(&bridge, exit(Some(1)), &on_crash, at(120));
    assert_eq!((crashed.restarts.attempt, crashed.restarts.next_at), (0, Some(at(122))));
    let early = seen(&bridge, exit(Some(1)), &on_crash, at(119));
    assert!(early.restarts.quarantined_at.is_some());
}

#[test]
fn a_stop_cancels_a_restart_that_is_due_and_it_does_not_come_back() {
    let always = rules(RestartPolicy::Always);
    let crashed = seen(&live(Stage::Ready), exit(Some(1)), &always, at(5));
    let stopped = told(&crashed, Command::Stop, at(6)).unwrap();
    assert_eq!(stopped.restarts.next_at, None);
    assert_eq!(restarted(&stopped, at(7)), Err(Refusal::NotDue));
    assert_eq!(due(&stopped, &always, at(9_000)), None);
    let postpone = Command::Postpone(Restarts { next_at: Some(at(9)), ..Restarts::default() });
    assert_eq!(told(&stopped, postpone, at(7)), Err(Refusal::NotDue));
}

#[test]
fn a_policy_of_never_cancels_what_is_pending_and_another_one_does_not() {
    let always = rules(RestartPolicy::Always);
    let crashed = seen(&live(Stage::Ready), exit(Some(1)), &always, at(5));
    let never = told(&crashed, Command::SetRestart(Some(RestartPolicy::Never)), at(6)).unwrap();
    assert_eq!(never.restarts.next_at, None);
    let other = told(&crashed, Command::SetRestart(Some(RestartPolicy::OnCrash)), at(6)).unwrap();
    assert_eq!(other.restarts.next_at, crashed.restarts.next_at);
}

#[test]
fn a_logged_out_agent_is_no_crash() {
    let on_crash = rules(RestartPolicy::OnCrash);
    let crashed = seen(&live(Stage::Ready), exit(Some(1)), &on_crash, at(5));
    let again = seen(&restarted(&crashed, at(7)).unwrap(), Fact::Executed, &on_crash, at(7));
    let fact = Fact::Exited(Cause::plain(ExitReason::LoginRequired));
    let failed = seen(&again, fact, &on_crash, at(8));
    assert_eq!(failed.restarts.crashes, [at(5)]);
    assert!(failed.restarts.next_at.is_some());
    let fact = Fact::Exited(Cause::plain(ExitReason::TrustRequired));
    assert_eq!(seen(&again, fact, &on_crash, at(8)).restarts, Restarts::default());
}

#[test]
fn a_restart_that_a_killed_service_left_half_done_is_still_due() {
    let never = rules(RestartPolicy::Never);
    let rebooted = seen(&live(Stage::Ready), Fact::HostRestarted, &never, at(5));
    let due = told(&rebooted, Command::Restore { at: at(6) }, at(6)).unwrap();
    let begun = restarted(&due, at(7)).unwrap();
    assert_eq!(begun.restarts.next_at, None);
    let cause = Cause::plain(ExitReason::LaunchInterrupted);
    let left = seen(&begun, Fact::LaunchInterrupted(cause.clone()), &never, at(8));
    assert!(left.restarts.next_at.is_some_and(|next| next > at(8)), "{left:?}");
    assert!(left.restarts.crashes.is_empty());
    // What a person started is theirs to start again.
    let by_hand = live(begun.live().unwrap().stage);
    let left = seen(&by_hand, Fact::LaunchInterrupted(cause), &never, at(8));
    assert_eq!(left.restarts.next_at, None);
}

#[test]
fn a_reboot_restarts_always_and_counts_no_crash() {
    let rebooted = |policy, choice| {
        let reboot = Reboot { choice, declined: false };
        let bridge = Bridge { reboot, ..live(Stage::Ready) };
        seen(&bridge, Fact::HostRestarted, &rules(policy), at(5))
    };
    let always = rebooted(RestartPolicy::Always, None);
    assert_eq!(always.restarts.next_at, Some(at(10)), "spread over ten seconds");
    assert!(always.restarts.crashes.is_empty());
    let chosen = rebooted(RestartPolicy::Never, Some(AfterReboot::Resume));
    assert_eq!(chosen.restarts.next_at, Some(at(10)));
    let offered = rebooted(RestartPolicy::OnCrash, None);
    assert_eq!(offered.restarts.next_at, None);
    let general = rules(RestartPolicy::OnCrash);
    assert!(is_restore_candidate(&offered, &general));
    assert!(!is_restore_candidate(&always, &rules(RestartPolicy::Always)), "it comes by itself");
    let never = rebooted(RestartPolicy::OnCrash, Some(AfterReboot::Never));
    assert!(!is_restore_candidate(&never, &general));
    let declined = told(&offered, Command::DeclineRestore, at(6)).unwrap();
    assert!(!is_restore_candidate(&declined, &general));
    let resume = Command::Resume { launch: launch(), deadline: None };
    let resumed = told(&declined, resume, at(7)).unwrap();
    let again = seen(&resumed, Fact::HostRestarted, &general, at(8));
    assert!(is_restore_candidate(&again, &general), "declined for one generation only");
}

#[test]
fn a_deliberate_stop_is_over_however_it_ends() {
    let always = Rules { after_reboot: AfterReboot::Resume, ..rules(RestartPolicy::Always) };
    let stopping = told(&live(Stage::Ready), Command::Stop, at(1)).unwrap();
    let gone = Fact::FoundGone(Cause::plain(ExitReason::DiedUnsupervised));
    for fact in [exit(Some(1)), exit(Some(0)), exit(None), Fact::HostRestarted, gone] {
        let ended = seen(&stopping, fact, &always, at(2));
        assert_eq!(ended.restarts, Restarts::default());
        assert!(!is_restore_candidate(&ended, &always));
    }
}

#[test]
fn a_bridge_that_is_stopped_to_be_healed_is_started_again_unless_somebody_stops_it() {
    let never = rules(RestartPolicy::Never);
    let healing = told(&live(Stage::Ready), Command::StopToHeal, at(1)).unwrap();
    assert!(healing.intentional_stop());
    assert_eq!(due(&healing, &never, at(1)), None, "it runs still");
    for fact in [exit(Some(1)), exit(None), Fact::HostRestarted] {
        let ended = seen(&healing, fact, &never, at(2));
        assert_eq!(due(&ended, &never, at(2)), Some((HEALED_WITHIN, Due::Restart)));
    }
    let stopped = told(&healing, Command::Stop, at(2)).unwrap();
    assert_eq!(told(&stopped, Command::StopToHeal, at(2)).unwrap(), stopped);
    assert_eq!(seen(&stopped, exit(Some(0)), &never, at(3)).restarts, Restarts::default());
    // What cannot be ended is left to a person, whenever it ends.
    let stuck = Fact::Doubt(QuarantineCode::Unkillable);
    let stuck = seen(&healing, stuck, &never, at(2));
    assert_eq!(seen(&stuck, exit(None), &never, at(900)).restarts, Restarts::default());
}

#[test]
fn a_clock_that_was_set_back_delays_no_restart_beyond_its_rules() {
    let on_crash = rules(RestartPolicy::OnCrash);
    let crashed = seen(&live(Stage::Ready), exit(Some(1)), &on_crash, at(90_000));
    assert_eq!(due(&crashed, &on_crash, at(0)), Some((Duration::ZERO, Due::Restart)));
    assert_eq!(due(&crashed, &on_crash, at(90_000)), Some((secs(2), Due::Restart)));
}

fn any_policy() -> impl Strategy<Value = RestartPolicy> {
    prop::sample::select(RestartPolicy::ALL)
}

fn any_rules() -> impl Strategy<Value = Rules> {
    (any_policy(), 1_u64..5_000, 1.0..10.0_f64, 0.0..=1.0_f64, 1_u32..8, 1_u64..900, 1_u64..300)
        .prop_map(|(policy, initial, multiplier, jitter, max_crashes, window, stable)| Rules {
            policy,
            initial: Duration::from_millis(initial),
            longest: Duration::from_millis(initial * 40),
            multiplier,
            jitter,
            max_crashes,
            window: secs(window),
            stable_after: secs(stable),
            after_reboot: AfterReboot::Offer,
        })
}

#[derive(Debug, Clone)]
enum Move {
    Wait(u64),
    Exit(Option<i32>),
    Register,
    Reboot,
    Stop,
    Resume,
    /// The supervisor does what is due.
    Due,
    Policy(Option<RestartPolicy>),
    Release,
}

fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        (0_u64..400).prop_map(Move::Wait),
        prop::option::of(0..2_i32).prop_map(Move::Exit),
        Just(Move::Register),
        Just(Move::Reboot),
        Just(Move::Stop),
        Just(Move::Resume),
        Just(Move::Due),
        prop::option::of(any_policy()).prop_map(Move::Policy),
        Just(Move::Release),
    ]
}

proptest! {
    #[test]
    fn a_delay_grows_up_to_the_longest_and_stays_within_its_jitter(
        rules in any_rules(), number in 1_u32..100_000, random: u32,
    ) {
        let delay = rules.delay(number, Chance::of(random)).as_secs_f64();
        let middle = rules.delay(number, Chance::of(MIDDLE)).as_secs_f64();
        let later = rules.delay(number.saturating_add(1), Chance::of(MIDDLE)).as_secs_f64();
        let spread = middle * rules.jitter + 1e-6;
        prop_assert!((delay - middle).abs() <= spread);
        prop_assert!(later + 1e-6 >= middle);
        prop_assert!(middle <= rules.longest.as_secs_f64() + 1e-6);
        prop_assert!(delay >= 0.0);
    }

    #[test]
    fn a_postponed_restart_waits_longer_and_counts_no_crash(rules in any_rules(), attempt: u32) {
        let before = Restarts { attempt, next_at: Some(at(0)), ..Restarts::default() };
        let after = postponed(&before, &rules, Chance::of(MIDDLE), at(0));
        prop_assert!(after.next_at.unwrap() >= at(0));
        prop_assert!(after.attempt >= before.attempt && after.crashes.is_empty());
    }

    /// Whatever happens in whatever order, the rules of restarts hold.
    ///
    /// After a stop nothing starts by itself, a row that gave
    /// up has nothing pending, a live row has nothing pending, and the window is never exceeded.
    #[test]
    fn h112_nothing_starts_by_itself_after_a_stop_or_in_quarantine(
        rules in any_rules(), moves in prop::collection::vec(any_move(), 1..60),
    ) {
        let mut bridge = live(Stage::Ready);
        let mut now = 0_i64;
        let mut is_stopped = false;
        for one in moves {
            let before = bridge.clone();
            match one {
                Move::Wait(seconds) => now += i64::try_from(seconds).unwrap(),
                Move::Exit(code) => bridge = seen(&bridge, exit(code), &rules, at(now)),
                Move::Register => bridge = running(&bridge, &rules, at(now)),
                Move::Reboot => bridge = seen(&bridge, Fact::HostRestarted, &rules, at(now)),
                Move::Stop => {
                    bridge = told(&bridge, Command::Stop, at(now)).unwrap();
                    is_stopped = true;
                }
                Move::Resume => {
                    let resume = Command::Resume { launch: launch(), deadline: None };
                    if let Ok(next) = told(&bridge, resume, at(now)) {
                        bridge = next;
                        is_stopped = false;
                    }
                }
                Move::Due => match due(&bridge, &rules, at(now)) {
                    Some((Duration::ZERO, Due::Restart)) => {
                        prop_assert!(!is_stopped, "a stop was undone");
                        prop_assert!(bridge.restarts.quarantined_at.is_none());
                        bridge = restarted(&bridge, at(now)).unwrap();
                        prop_assert_eq!(bridge.generation, before.generation + 1);
                        prop_assert_eq!(restarted(&bridge, at(now)), Err(Refusal::NotDue));
                    }
                    Some((Duration::ZERO, Due::Steady)) => {
                        bridge = seen(&bridge, Fact::Steady, &rules, at(now));
                        prop_assert!(bridge.restarts.is_idle());
                    }
                    Some(_) | None => {}
                },
                Move::Policy(policy) => {
                    bridge = told(&bridge, Command::SetRestart(policy), at(now)).unwrap();
                }
                Move::Release => bridge = told(&bridge, Command::Release, at(now)).unwrap(),
            }
            let restarts = &bridge.restarts;
            prop_assert!(!(bridge.is_live() && restarts.next_at.is_some()));
            prop_assert!(!(restarts.next_at.is_some() && restarts.quarantined_at.is_some()));
            if restarts.next_at.is_some() && restarts.crashes.last() == Some(&at(now)) {
                prop_assert!(restarts.crashes.len() < rules.max_crashes as usize);
            }
        }
    }
}
