//! What is done about a lost remote link (`claude.heal`).

use std::time::Duration;

use svc_shared::Timestamp;
use svc_shared::status::{ActivityState, HealMode, LinkState};

use crate::agent_log::report::{Activity, Link, Loss};

/// How long a link is lost before a restart.
/// The agent tries for ten minutes by itself, and names the end late.
pub const UNREACHABLE: Duration = Duration::from_secs(10 * 60 + 30);

/// The agent renews a refused token by itself, which takes a few requests.
pub const LOGIN: Duration = Duration::from_secs(60);

/// What was done in this generation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Done {
    /// Begin of the loss of which a notice was given.
    pub notified: Option<Timestamp>,
    /// Begin of the loss that was told of as one that goes on.
    pub overdue: Option<Timestamp>,
    /// This generation was restarted, or its restart was refused.
    pub restarted: bool,
}

/// What is to be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heal {
    /// Nothing, and nothing later by itself.
    Nothing,
    /// Nothing now; ask again at this time.
    Later(Timestamp),
    /// Give one notice of this loss.
    Notify,
    /// Stop the bridge and resume it.
    Restart,
}

/// Judges the link of one live generation.
///
/// A restart needs a link that was up in this generation. So a restart that does not help is not
/// repeated. Nothing is restarted while a session works or waits for an answer.
#[must_use]
pub fn judge(
    mode: HealMode,
    link: &Link,
    activity: Option<&Activity>,
    done: Done,
    now: Timestamp,
) -> Heal {
    let (Some(since), LinkState::Down, Some(loss)) = (link.since, link.state, link.loss) else {
        return Heal::Nothing;
    };
    match mode {
        HealMode::Off => return Heal::Nothing,
        HealMode::Notify | HealMode::Restart if done.notified != Some(since) => {
            return Heal::Notify;
        }
        HealMode::Notify => return Heal::Nothing,
        HealMode::Restart => {}
    }
    let is_idle = activity.is_none_or(|activity| activity.state == ActivityState::Idle);
    if done.restarted || !link.was_up || !is_idle {
        return Heal::Nothing;
    }
    let due = match loss {
        Loss::GaveUp => return Heal::Restart,
        Loss::Login => since.plus(LOGIN),
        Loss::Unreachable => since.plus(UNREACHABLE),
    };
    if now >= due { Heal::Restart } else { Heal::Later(due) }
}

/// When a loss is told of as one that goes on; `None` where it is not, or was.
///
/// The agent mends most losses by itself within seconds.
#[must_use]
pub fn overdue_at(mode: HealMode, link: &Link, done: Done) -> Option<Timestamp> {
    let (Some(since), LinkState::Down, Some(loss)) = (link.since, link.state, link.loss) else {
        return None;
    };
    if mode == HealMode::Off || done.overdue == Some(since) {
        return None;
    }
    Some(match loss {
        Loss::GaveUp => since,
        Loss::Login | Loss::Unreachable => since.plus(LOGIN),
    })
}

#[cfg(test)]
mod tests {
    use svc_shared::status::EvidenceSource;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn down(loss: Loss) -> Link {
        Link {
            state: LinkState::Down,
            since: Some(at(100)),
            reason: Some("x".to_owned()),
            source: Some(EvidenceSource::Output),
            loss: Some(loss),
            was_up: true,
            ..Link::default()
        }
    }

    fn told() -> Done {
        Done { notified: Some(at(100)), ..Done::default() }
    }

    fn does(state: ActivityState) -> Activity {
        Activity {
            state,
            since: at(1),
            tool: None,
            source: EvidenceSource::DebugFile,
            working: 0,
            blocked: 0,
            idle: 0,
        }
    }

    #[test]
    fn h107_each_loss_is_told_once_unless_it_is_off() {
        let link = down(Loss::Unreachable);
        let new = Done::default();
        assert_eq!(judge(HealMode::Off, &link, None, new, at(999_999)), Heal::Nothing);
        for mode in [HealMode::Notify, HealMode::Restart] {
            assert_eq!(judge(mode, &link, None, new, at(101)), Heal::Notify);
        }
        assert_eq!(judge(HealMode::Notify, &link, None, told(), at(999_999)), Heal::Nothing);
        let up = Link { state: LinkState::Up, ..link };
        assert_eq!(judge(HealMode::Restart, &up, None, new, at(999_999)), Heal::Nothing);
    }

    #[test]
    fn h107_a_restart_waits_for_the_agents_own_tries() {
        let ask = |link: &Link, now| judge(HealMode::Restart, link, None, told(), at(now));
        let lost = down(Loss::Unreachable);
        assert_eq!(ask(&lost, 200), Heal::Later(at(730)));
        assert_eq!(ask(&lost, 729), Heal::Later(at(730)));
        assert_eq!(ask(&lost, 730), Heal::Restart);
        assert_eq!(ask(&down(Loss::Login), 159), Heal::Later(at(160)));
        assert_eq!(ask(&down(Loss::Login), 160), Heal::Restart);
        assert_eq!(ask(&down(Loss::GaveUp), 100), Heal::Restart);
    }

    #[test]
    fn h107_no_restart_while_a_session_works_and_never_a_loop() {
        let lost = down(Loss::GaveUp);
        let ask = |link: &Link, activity: Option<ActivityState>, done| {
            let activity = activity.map(does);
            judge(HealMode::Restart, link, activity.as_ref(), done, at(9_999))
        };
        for state in [ActivityState::Working, ActivityState::Blocked] {
            assert_eq!(ask(&lost, Some(state), told()), Heal::Nothing);
        }
        assert_eq!(ask(&lost, Some(ActivityState::Idle), told()), Heal::Restart);
        assert_eq!(ask(&lost, None, Done { restarted: true, ..told() }), Heal::Nothing);
        let never_up = Link { was_up: false, ..lost };
        assert_eq!(ask(&never_up, None, told()), Heal::Nothing);
    }

    #[test]
    fn a_loss_is_told_of_once_when_it_goes_on() {
        let link = down(Loss::Unreachable);
        let new = Done::default();
        assert_eq!(overdue_at(HealMode::Notify, &link, new), Some(at(160)));
        assert_eq!(overdue_at(HealMode::Notify, &down(Loss::GaveUp), new), Some(at(100)));
        assert_eq!(overdue_at(HealMode::Off, &link, new), None);
        let told = Done { overdue: Some(at(100)), ..new };
        assert_eq!(overdue_at(HealMode::Restart, &link, told), None);
        let up = Link { state: LinkState::Up, ..link };
        assert_eq!(overdue_at(HealMode::Notify, &up, new), None);
    }
}
