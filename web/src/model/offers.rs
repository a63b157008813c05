//! The buttons of a row, and the reason beside a button that cannot act.

use crate::model::status;
use crate::text::session::blocked as words;
use svc_shared::api::instances::Instance;
use svc_shared::status::{BridgeStatus, ResumeBlocked};

/// One action of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offer {
    /// It can never apply to the row as it is: no control.
    Absent,
    /// It can be done.
    Ready,
    /// The control stays, with this reason beside it.
    Refused(String),
}

/// What to offer in the place of a refused Resume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Instead {
    /// Nothing.
    Nothing,
    /// The bridge that is in the way.
    ViewLive(String),
    /// Granting the trust that is missing, then resuming.
    TrustAndResume,
    /// A new launch.
    LaunchNew,
}

/// Everything a row offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offers {
    /// Opens the remote client.
    pub open: bool,
    /// The log can be read.
    pub log: bool,
    /// Restart where the remote link is lost.
    pub heal: Offer,
    /// Stop.
    pub stop: Offer,
    /// Resume.
    pub resume: Offer,
    /// In place of Resume.
    pub instead: Instead,
    /// Forget.
    pub forget: Offer,
}

/// Why a resume would be refused, in words.
///
/// The answer of the server decides.
pub fn refusal(blocked: ResumeBlocked) -> &'static str {
    match blocked {
        ResumeBlocked::StandardAlreadyLive => words::ALREADY_LIVE,
        ResumeBlocked::StillLive => words::STILL_LIVE,
        ResumeBlocked::NoSession | ResumeBlocked::BadSessionRef => words::NO_SESSION,
        ResumeBlocked::UnknownProject => words::UNKNOWN_PROJECT,
        ResumeBlocked::NotTrusted => words::NOT_TRUSTED,
        ResumeBlocked::BypassForbidden => words::BYPASS,
        ResumeBlocked::HostedUnavailable => words::HOSTED,
        ResumeBlocked::Orphan => words::ORPHAN,
        ResumeBlocked::Quarantined => words::QUARANTINED,
        ResumeBlocked::NotGit => words::NOT_GIT,
        ResumeBlocked::PtyUnavailable => words::NO_TERMINAL,
    }
}

/// What this row offers. `live_sibling` is another live bridge of its project.
#[must_use]
pub fn offers(bridge: &Instance, live_sibling: Option<&str>) -> Offers {
    let held = status::is_held(bridge)
        .then_some(bridge.quarantined.as_ref())
        .flatten()
        .map(|q| crate::text::cause::held(&q.code));
    let or_held = |offer: Offer| match (&held, offer) {
        (_, Offer::Absent) => Offer::Absent,
        (Some(why), _) => Offer::Refused(why.clone()),
        (None, offer) => offer,
    };
    let live = bridge.is_live();
    let blocked = bridge.resume_blocked.as_ref();
    let resume = if live {
        Offer::Absent
    } else if bridge.resumable {
        Offer::Ready
    } else {
        let why = blocked.map_or_else(
            || words::NO_SESSION.to_owned(),
            |why| match why.known() {
                Some(known) => refusal(*known).to_owned(),
                None => why.to_string(),
            },
        );
        Offer::Refused(words::cannot(&why))
    };
    let instead = match (&resume, blocked.and_then(|why| why.known())) {
        (Offer::Refused(_), Some(ResumeBlocked::StandardAlreadyLive)) => {
            live_sibling.map_or(Instead::Nothing, |id| Instead::ViewLive(id.to_owned()))
        }
        (Offer::Refused(_), Some(ResumeBlocked::NotTrusted)) => Instead::TrustAndResume,
        (
            Offer::Refused(_),
            Some(
                ResumeBlocked::NoSession
                | ResumeBlocked::BadSessionRef
                | ResumeBlocked::BypassForbidden,
            ),
        ) => Instead::LaunchNew,
        _ => Instead::Nothing,
    };
    Offers {
        open: live && bridge.connect.available,
        log: bridge.has_log,
        heal: or_held(match bridge.link.is_down() && can_restart(bridge) {
            true => Offer::Ready,
            false => Offer::Absent,
        }),
        stop: or_held(if live && !status::is_stopping(bridge) {
            Offer::Ready
        } else {
            Offer::Absent
        }),
        resume: or_held(resume),
        instead: if held.is_some() { Instead::Nothing } else { instead },
        forget: or_held(if live || bridge.is_orphan { Offer::Absent } else { Offer::Ready }),
    }
}

/// Whether a stop and a resume bring the bridge back.
///
/// One that was started elsewhere would only be ended.
fn can_restart(bridge: &Instance) -> bool {
    bridge.status.is(&BridgeStatus::Running)
        && !status::is_stopping(bridge)
        && !status::is_taken_over(bridge)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample::bridge;
    use svc_shared::Word;
    use svc_shared::api::instances::Quarantine;
    use svc_shared::status::{LinkState, Phase, QuarantineKind};

    fn ended(blocked: Option<ResumeBlocked>) -> Instance {
        let mut row = bridge("a", BridgeStatus::Stopped);
        row.resumable = blocked.is_none();
        row.resume_blocked = blocked.map(Word::Known);
        row
    }

    #[test]
    fn a_running_bridge_can_be_stopped_but_not_resumed_or_forgotten() {
        let mut row = bridge("a", BridgeStatus::Running);
        row.connect.available = true;
        let offers = offers(&row, None);
        assert!(offers.open);
        assert_eq!(offers.stop, Offer::Ready);
        assert_eq!(offers.resume, Offer::Absent);
        assert_eq!(offers.forget, Offer::Absent);
    }

    #[test]
    fn a_restart_is_offered_only_where_the_link_is_lost() {
        let mut row = bridge("a", BridgeStatus::Running);
        assert_eq!(offers(&row, None).heal, Offer::Absent);
        row.link.state = LinkState::Down.into();
        assert_eq!(offers(&row, None).heal, Offer::Ready);
        row.phase = Phase::Stopping.into();
        assert_eq!(offers(&row, None).heal, Offer::Absent);
        row = bridge("a", BridgeStatus::Stopped);
        row.link.state = LinkState::Down.into();
        assert_eq!(offers(&row, None).heal, Offer::Absent);
    }

    #[test]
    fn a_second_stop_is_not_offered_while_one_is_under_way() {
        let mut row = bridge("a", BridgeStatus::Running);
        row.phase = Phase::Stopping.into();
        assert_eq!(offers(&row, None).stop, Offer::Absent);
    }

    #[test]
    fn every_blocked_resume_says_why_before_the_click() {
        for blocked in ResumeBlocked::ALL {
            let offers = offers(&ended(Some(*blocked)), Some("other"));
            let Offer::Refused(why) = offers.resume else {
                panic!("{blocked} is offered");
            };
            assert!(!why.is_empty());
        }
    }

    #[test]
    fn a_blocked_resume_offers_what_helps() {
        let instead = |blocked, sibling| offers(&ended(Some(blocked)), sibling).instead;
        assert_eq!(
            instead(ResumeBlocked::StandardAlreadyLive, Some("b")),
            Instead::ViewLive("b".into())
        );
        assert_eq!(instead(ResumeBlocked::StandardAlreadyLive, None), Instead::Nothing);
        assert_eq!(instead(ResumeBlocked::NotTrusted, None), Instead::TrustAndResume);
        assert_eq!(instead(ResumeBlocked::NoSession, None), Instead::LaunchNew);
        assert_eq!(instead(ResumeBlocked::UnknownProject, None), Instead::Nothing);
    }

    #[test]
    fn a_reason_of_a_newer_server_is_shown_as_written() {
        let mut row = ended(Some(ResumeBlocked::NoSession));
        row.resume_blocked = Some(Word::Other("eclipse".into()));
        assert_eq!(offers(&row, None).resume, Offer::Refused("Can't resume: eclipse".to_owned()));
    }

    #[test]
    fn a_held_row_refuses_every_action_with_the_way_out() {
        let mut row = ended(None);
        row.quarantined =
            Some(Quarantine { kind: QuarantineKind::Identity.into(), code: "unkillable".into() });
        let offers = offers(&row, None);
        for offer in [offers.resume, offers.forget] {
            assert!(matches!(offer, Offer::Refused(why) if why.contains("by hand")));
        }
        assert_eq!(offers.stop, Offer::Absent);
        row.status = BridgeStatus::Running.into();
        row.phase = Phase::Ready.into();
        assert!(matches!(super::offers(&row, None).stop, Offer::Refused(_)));
    }
}
