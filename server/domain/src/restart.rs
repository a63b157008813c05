//! Automatic restarts: when a bridge is started again, and what prevents it.
//!
//! [`follow`] judges each end. Its result is written with the end itself, so that a service that
//! is killed at any moment neither forgets a restart nor makes it twice.

use crate::bridge::{Bridge, Ended, Live, Outcome, Stage, State};
use std::time::Duration;
use svc_shared::Timestamp;
use svc_shared::status::{AfterReboot, ExitReason, RestartPolicy};

/// Restarts that a reboot causes begin spread over this time.
pub const REBOOT_SPREAD: Duration = Duration::from_secs(10);

/// Time for whoever stopped a bridge to heal it to start it.
///
/// Afterwards the supervisor does.
pub const HEALED_WITHIN: Duration = Duration::from_secs(10);

/// Most bridges that are started again at the same time.
pub const AT_ONCE: usize = 2;

/// Most crash times that a row keeps, whatever the configuration asks for.
const MOST_CRASHES: usize = 1_000;

/// Where the automatic restarts of one bridge stand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restarts {
    /// The row's own policy; `None` follows the configuration.
    pub policy: Option<RestartPolicy>,
    /// Restarts in a row; 0 after a stable run or a deliberate start.
    pub attempt: u32,
    /// When the next restart begins; `None` when none is due.
    ///
    /// In a live row: it is stopped to be started again.
    pub next_at: Option<Timestamp>,
    /// Since when too many crashes have ended the automatic restarts.
    pub quarantined_at: Option<Timestamp>,
    /// The crashes that still count, oldest first.
    pub crashes: Vec<Timestamp>,
}

impl Restarts {
    /// Whether nothing is pending and nothing counted.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.next_at.is_none() && self.attempt == 0 && self.crashes.is_empty()
    }

    /// The same policy, with nothing pending and nothing counted.
    #[must_use]
    pub fn cleared(&self) -> Self {
        Self { policy: self.policy, ..Self::default() }
    }
}

/// What is done with a bridge that a reboot of the machine ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reboot {
    /// The row's own choice; `None` follows the configuration.
    pub choice: Option<AfterReboot>,
    /// Its restore was offered and declined for this generation.
    pub declined: bool,
}

/// What the configuration says about the restarts of one project.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// Policy of rows without their own.
    pub policy: RestartPolicy,
    /// Delay before the first restart.
    pub initial: Duration,
    /// Longest delay before the random part.
    pub longest: Duration,
    /// Factor on the delay after each restart.
    pub multiplier: f64,
    /// Random part of the delay, relative to it.
    pub jitter: f64,
    /// Crashes within the window after which restarts end.
    pub max_crashes: u32,
    /// Window in which crashes are counted.
    pub window: Duration,
    /// Running time that clears delay and count.
    pub stable_after: Duration,
    /// What is done after a reboot with rows that do not say it themselves.
    pub after_reboot: AfterReboot,
}

/// A random number from 0 up to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chance(f64);

impl Chance {
    /// Takes any random number.
    #[must_use]
    pub fn of(random: u32) -> Self {
        Self(f64::from(random) / (f64::from(u32::MAX) + 1.0))
    }

    /// That part of a time.
    #[must_use]
    pub fn part_of(self, time: Duration) -> Duration {
        time.mul_f64(self.0)
    }
}

impl Rules {
    /// Delay before the restart of this number, counted from 1.
    #[must_use]
    pub fn delay(&self, number: u32, chance: Chance) -> Duration {
        let steps = i32::try_from(number.saturating_sub(1)).unwrap_or(i32::MAX);
        let grown = self.initial.as_secs_f64() * self.multiplier.powi(steps);
        let seconds = grown.min(self.longest.as_secs_f64());
        let spread = 1.0 + self.jitter * (2.0 * chance.0 - 1.0);
        Duration::try_from_secs_f64((seconds * spread).max(0.0)).unwrap_or(self.longest)
    }

    /// The longest wait that these rules or a reboot can ask for.
    fn longest_wait(&self) -> Duration {
        let longest = self.longest.as_secs_f64() * (1.0 + self.jitter);
        Duration::try_from_secs_f64(longest)
            .unwrap_or(self.longest)
            .max(REBOOT_SPREAD)
            .max(HEALED_WITHIN)
    }
}

/// The policy by which this row is restarted.
/// A bridge that was not started here is restarted only by a policy of its own record.
#[must_use]
pub fn policy(bridge: &Bridge, rules: &Rules) -> RestartPolicy {
    match (bridge.restarts.policy, &bridge.launch) {
        (Some(own), _) => own,
        (None, Some(_)) => rules.policy,
        (None, None) => RestartPolicy::Never,
    }
}

/// What is done with this row after a reboot.
#[must_use]
pub fn after_reboot(bridge: &Bridge, rules: &Rules) -> AfterReboot {
    bridge.reboot.choice.unwrap_or(rules.after_reboot)
}

/// Whether a reboot of the machine was the last end of the row.
#[must_use]
pub fn is_ended_by_reboot(bridge: &Bridge) -> bool {
    bridge
        .ended()
        .is_some_and(|ended| ended.reason == Some(ExitReason::HostRestarted) && !ended.intentional)
}

/// Whether the row waits for somebody to restore it after a reboot.
#[must_use]
pub fn is_restore_candidate(bridge: &Bridge, rules: &Rules) -> bool {
    is_ended_by_reboot(bridge)
        && !bridge.reboot.declined
        && bridge.restarts.next_at.is_none()
        && after_reboot(bridge, rules) != AfterReboot::Never
}

/// Judges a change: an end may make a restart due, or be the last one.
/// Everything else stays as it is.
#[must_use]
pub fn follow(
    before: &Bridge,
    next: Bridge,
    rules: &Rules,
    chance: Chance,
    now: Timestamp,
) -> Bridge {
    let (State::Live(live), State::Ended(ended)) = (&before.state, &next.state) else {
        return next;
    };
    // A resume that was taken back has no end: its record is as it was before.
    if before.generation != next.generation {
        return next;
    }
    let restarts = match meaning(&next, live, ended, rules) {
        Meaning::Over => next.restarts.cleared(),
        Meaning::ToBeHealed => {
            Restarts { next_at: Some(now.plus(HEALED_WITHIN)), ..next.restarts.clone() }
        }
        Meaning::Rebooted(true) => Restarts {
            next_at: Some(now.plus(REBOOT_SPREAD.mul_f64(chance.0))),
            ..next.restarts.clone()
        },
        Meaning::Rebooted(false) => next.restarts.clone(),
        Meaning::LoggedOut | Meaning::Interrupted => later(&next.restarts, rules, chance, now),
        Meaning::Crash { again } => {
            let counted = counted(before, live, rules, now);
            match again {
                false => counted,
                true if is_too_many(&counted, rules) => {
                    Restarts { quarantined_at: Some(now), next_at: None, ..counted }
                }
                true => later(&counted, rules, chance, now),
            }
        }
    };
    Bridge { restarts, ..next }
}

/// What an end means for the restarts of its bridge.
enum Meaning {
    /// Nobody expects the bridge to go on.
    Over,
    /// It was stopped to be started again.
    ToBeHealed,
    /// It ended with its machine; whether it is started again by itself.
    Rebooted(bool),
    /// The agent is logged out.
    /// That is no crash: it is tried again when that has changed.
    LoggedOut,
    /// The service was killed in the middle of a restart of its own.
    /// The agent did not run, so that is no crash, and the restart is still due.
    Interrupted,
    /// It counts as a crash; whether it is started again.
    Crash { again: bool },
}

fn meaning(next: &Bridge, live: &Live, ended: &Ended, rules: &Rules) -> Meaning {
    if live.stop_requested {
        return match next.restarts.next_at {
            Some(_) => Meaning::ToBeHealed,
            None => Meaning::Over,
        };
    }
    let policy = policy(next, rules);
    let is_automatic = next.restarts.attempt > 0 && live.stage != Stage::Ready;
    let again = match (policy, ended.outcome) {
        (RestartPolicy::Never, _) | (_, Outcome::Stopped) => false,
        // A program that ends with code 0 meant to end.
        (RestartPolicy::OnCrash, Outcome::Crashed) => ended.exit_code != Some(0),
        (RestartPolicy::Always, Outcome::Crashed) => true,
        (RestartPolicy::OnCrash | RestartPolicy::Always, Outcome::Failed) => is_automatic,
    };
    match (ended.outcome, ended.reason) {
        (_, Some(ExitReason::HostRestarted)) => Meaning::Rebooted(
            policy == RestartPolicy::Always || after_reboot(next, rules) == AfterReboot::Resume,
        ),
        (Outcome::Stopped, _) => Meaning::Over,
        // Only a person can grant trust again.
        (_, Some(ExitReason::TrustRequired)) => Meaning::Over,
        (_, Some(ExitReason::LoginRequired | ExitReason::OnboardingRequired)) if again => {
            Meaning::LoggedOut
        }
        (Outcome::Failed, _) if !is_automatic => Meaning::Over,
        (Outcome::Failed, Some(ExitReason::LaunchInterrupted)) => Meaning::Interrupted,
        (Outcome::Crashed | Outcome::Failed, _) => Meaning::Crash { again },
    }
}

/// The counts with this crash. A stable run before it has cleared them.
fn counted(before: &Bridge, live: &Live, rules: &Rules, now: Timestamp) -> Restarts {
    let was_stable =
        live.stage == Stage::Ready && now.since(before.status_since) >= rules.stable_after;
    let old = if was_stable { before.restarts.cleared() } else { before.restarts.clone() };
    let is_recent = |at: &Timestamp| now.since(*at) < rules.window;
    let mut crashes: Vec<Timestamp> = old.crashes.into_iter().filter(is_recent).collect();
    crashes.push(now);
    let surplus = crashes.len().saturating_sub(MOST_CRASHES);
    crashes.drain(..surplus);
    Restarts { crashes, next_at: None, ..Restarts { crashes: Vec::new(), ..old } }
}

fn is_too_many(restarts: &Restarts, rules: &Rules) -> bool {
    let most = usize::try_from(rules.max_crashes).unwrap_or(usize::MAX).min(MOST_CRASHES);
    restarts.crashes.len() >= most
}

/// The next restart after its delay.
fn later(restarts: &Restarts, rules: &Rules, chance: Chance, now: Timestamp) -> Restarts {
    let delay = rules.delay(restarts.attempt.saturating_add(1), chance);
    Restarts { next_at: Some(now.plus(delay)), ..restarts.clone() }
}

/// A restart that could not begin is tried again after a longer delay.
#[must_use]
pub fn postponed(restarts: &Restarts, rules: &Rules, chance: Chance, now: Timestamp) -> Restarts {
    let next = Restarts { attempt: restarts.attempt.saturating_add(1), ..restarts.clone() };
    later(&next, rules, chance, now)
}

/// Something that happens to the restarts of a bridge when its time has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Due {
    /// A restart begins.
    Restart,
    /// The bridge has run for long enough to count as stable.
    Steady,
}

/// What happens next to this row by itself, and how long from now.
/// Zero when it is due. A row on which actions are suspended has nothing.
#[must_use]
pub fn due(bridge: &Bridge, rules: &Rules, now: Timestamp) -> Option<(Duration, Due)> {
    if bridge.quarantine.is_some() {
        return None;
    }
    match &bridge.state {
        State::Ended(_) => {
            let wait = bridge.restarts.next_at?.since(now);
            // No rule asks for such a wait: the clock was set back.
            let wait = if wait > rules.longest_wait() { Duration::ZERO } else { wait };
            Some((wait, Due::Restart))
        }
        State::Live(Live { stage: Stage::Ready, stop_requested: false }) => {
            let is_counted = bridge.restarts.attempt > 0 || !bridge.restarts.crashes.is_empty();
            let since = now.since(bridge.status_since);
            is_counted.then(|| (rules.stable_after.saturating_sub(since), Due::Steady))
        }
        State::Live(_) => None,
    }
}

/// Whether an automatic start of this bridge is under way.
#[must_use]
pub fn is_starting(bridge: &Bridge) -> bool {
    let is_registering = bridge.live().is_some_and(|live| live.stage != Stage::Ready);
    is_registering && bridge.restarts.attempt > 0
}
