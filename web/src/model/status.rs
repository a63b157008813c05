//! Glyph, word and colour of a bridge's status.
//!
//! Every view uses this vocabulary.

use crate::text::status as words;
use svc_shared::Timestamp;
use svc_shared::api::instances::Instance;
use svc_shared::api::sessions::WorkingSession;
use svc_shared::status::{
    BridgeStatus, Channel, ExitReason, Origin, Phase, QuarantineKind, RestartState,
};

/// Colour family of a status; the shape and the word say the same without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tone {
    /// Fine.
    Ok,
    /// In progress.
    Info,
    /// Wants attention.
    Warn,
    /// Trouble.
    Danger,
    /// Not ours.
    Violet,
    /// Nothing to say.
    Neutral,
}

impl Tone {
    /// Name of the class that colours an element.
    #[must_use]
    pub fn class(self) -> &'static str {
        match self {
            Self::Ok => "tone-ok",
            Self::Info => "tone-info",
            Self::Warn => "tone-warn",
            Self::Danger => "tone-danger",
            Self::Violet => "tone-violet",
            Self::Neutral => "tone-neutral",
        }
    }
}

/// Shape of a status, distinct in monochrome; each is a symbol of `icons.svg`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Glyph {
    /// Open ring with a turning quarter.
    Arc,
    /// Filled circle.
    Dot,
    /// Filled circle with a bar.
    DotBar,
    /// Half-filled circle.
    Half,
    /// Hollow square.
    Square,
    /// Two bars.
    Bars,
    /// Triangle with an exclamation mark.
    Triangle,
    /// Octagon with a cross.
    Octagon,
    /// Ring in three pieces.
    BrokenRing,
    /// Shield with an exclamation mark.
    ShieldAlert,
    /// Padlock.
    Padlock,
    /// Clock.
    Clock,
    /// Outlined diamond: started elsewhere.
    Diamond,
    /// Circle with a check.
    CheckDisc,
    /// Dotted ring: a word this page does not know.
    DottedRing,
    /// Square with a question mark.
    Question,
}

impl Glyph {
    /// Id of the symbol in the sprite.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Arc => "g-arc",
            Self::Dot => "g-dot",
            Self::DotBar => "g-dot-bar",
            Self::Half => "g-half",
            Self::Square => "g-square",
            Self::Bars => "g-bars",
            Self::Triangle => "g-triangle",
            Self::Octagon => "g-octagon",
            Self::BrokenRing => "g-broken-ring",
            Self::ShieldAlert => "g-shield-alert",
            Self::Padlock => "g-padlock",
            Self::Clock => "g-clock",
            Self::Diamond => "g-diamond",
            Self::CheckDisc => "g-check-disc",
            Self::DottedRing => "g-dotted-ring",
            Self::Question => "g-question",
        }
    }
}

/// What a status looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Face {
    /// Shape.
    pub glyph: Glyph,
    /// Word.
    pub word: String,
    /// Colour.
    pub tone: Tone,
    /// The status below a suspension, shown beside it.
    pub under: Option<Glyph>,
}

impl Face {
    /// A face with nothing below it.
    #[must_use]
    pub fn new(glyph: Glyph, word: &str, tone: Tone) -> Self {
        Self { glyph, word: word.to_owned(), tone, under: None }
    }
}

/// Whether the bridge was started elsewhere and taken over.
///
/// A bridge that another process of the service started is also not launched by this one, but it
/// writes its log here.
#[must_use]
pub fn is_taken_over(bridge: &Instance) -> bool {
    bridge.adopted && bridge.origin.is(&Origin::Adopted) && !bridge.has_log
}

/// Whether the row is held because its process is in doubt: no signals, no deletes.
#[must_use]
pub fn is_held(bridge: &Instance) -> bool {
    bridge.quarantined.as_ref().is_some_and(|q| !q.kind.is(&QuarantineKind::CrashLoop))
}

/// Whether a stop is in progress.
///
/// Bridges report it by their phase, Direct Sessions by their status.
#[must_use]
pub fn is_stopping(bridge: &Instance) -> bool {
    bridge.status.is(&BridgeStatus::Stopping)
        || (bridge.is_live() && bridge.phase.is(&Phase::Stopping))
}

/// Whether it is driven from this page, without a remote client.
#[must_use]
pub fn is_direct(bridge: &Instance) -> bool {
    bridge.channel.is(&Channel::Hosted)
}

/// Whether its agent waits for an answer that can be given here.
#[must_use]
pub fn asks(bridge: &Instance) -> bool {
    bridge.is_live() && !bridge.pending_permissions.is_empty()
}

/// Whether one of its sessions works.
fn works(bridge: &Instance) -> bool {
    bridge.activity.as_ref().is_some_and(|activity| activity.working > 0 && !activity.stale)
}

/// Since when it stands as its word says.
#[must_use]
pub fn since(bridge: &Instance) -> Timestamp {
    let asked = bridge.pending_permissions.first().filter(|_| asks(bridge));
    asked.map_or(bridge.status_since, |asked| asked.since)
}

/// Whether the end was intended.
///
/// It is when a person stopped the bridge, or when a single-session bridge was done.
#[must_use]
pub fn ended_as_meant(bridge: &Instance) -> bool {
    bridge.intentional_stop
        || bridge
            .exit_reason
            .as_ref()
            .is_some_and(|r| r.is(&ExitReason::SessionEnded) || r.is(&ExitReason::OperatorStop))
}

fn base(bridge: &Instance, inside: &[WorkingSession]) -> Face {
    let Some(status) = bridge.status.known() else {
        // Never blank, never mapped to a known word: the server may be newer than this page.
        return Face::new(Glyph::DottedRing, &bridge.status.to_string(), Tone::Neutral);
    };
    if is_stopping(bridge) {
        return Face::new(Glyph::Half, words::STOPPING, Tone::Neutral);
    }
    match status {
        BridgeStatus::Starting => Face::new(Glyph::Arc, words::STARTING, Tone::Info),
        BridgeStatus::Running if asks(bridge) => {
            Face::new(Glyph::Question, words::WAITING, Tone::Warn)
        }
        BridgeStatus::Running if works(bridge) || inside.iter().any(|s| s.state == "working") => {
            Face::new(Glyph::DotBar, words::RUNNING_WORKING, Tone::Ok)
        }
        BridgeStatus::Running => Face::new(Glyph::Dot, words::RUNNING, Tone::Ok),
        BridgeStatus::Stopping => Face::new(Glyph::Half, words::STOPPING, Tone::Neutral),
        BridgeStatus::Stopped if ended_as_meant(bridge) => {
            Face::new(Glyph::Square, words::STOPPED, Tone::Neutral)
        }
        BridgeStatus::Stopped => Face::new(Glyph::Bars, words::INTERRUPTED, Tone::Warn),
        BridgeStatus::Crashed => Face::new(Glyph::Triangle, words::CRASHED, Tone::Danger),
        BridgeStatus::Error => Face::new(Glyph::Octagon, words::FAILED, Tone::Danger),
    }
}

/// The face of a bridge; `inside` are the working sessions tracked under it.
#[must_use]
pub fn face(bridge: &Instance, inside: &[WorkingSession]) -> Face {
    let under = base(bridge, inside);
    let over = if bridge.is_orphan {
        Face::new(Glyph::BrokenRing, words::ORPHANED, Tone::Warn)
    } else if is_held(bridge) {
        Face::new(Glyph::Padlock, words::HELD, Tone::Danger)
    } else if bridge.quarantined.is_some() {
        Face::new(Glyph::ShieldAlert, words::QUARANTINED, Tone::Danger)
    } else if bridge.restart.state.is(&RestartState::Waiting) && !bridge.is_live() {
        Face::new(Glyph::Clock, words::RESTARTING, Tone::Info)
    } else {
        return under;
    };
    Face { under: Some(under.glyph), ..over }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample::{asked, bridge, inside};
    use svc_shared::Word;
    use svc_shared::api::instances::Quarantine;

    #[track_caller]
    fn check(bridge: &Instance, glyph: Glyph, word: &str, tone: Tone) {
        let face = face(bridge, &[]);
        assert_eq!((face.glyph, face.word.as_str(), face.tone), (glyph, word, tone));
    }

    #[test]
    fn every_status_has_its_own_shape_and_word() {
        let mut row = bridge("a", BridgeStatus::Starting);
        check(&row, Glyph::Arc, "Starting", Tone::Info);
        row.status = BridgeStatus::Running.into();
        check(&row, Glyph::Dot, "Running", Tone::Ok);
        row.phase = Phase::Stopping.into();
        check(&row, Glyph::Half, "Stopping", Tone::Neutral);
        row = bridge("a", BridgeStatus::Crashed);
        check(&row, Glyph::Triangle, "Crashed", Tone::Danger);
        row = bridge("a", BridgeStatus::Error);
        check(&row, Glyph::Octagon, "Failed to start", Tone::Danger);
    }

    #[test]
    fn a_stop_nobody_asked_for_reads_interrupted() {
        let mut row = bridge("a", BridgeStatus::Stopped);
        check(&row, Glyph::Bars, "Interrupted", Tone::Warn);
        row.intentional_stop = true;
        check(&row, Glyph::Square, "Stopped", Tone::Neutral);
        row.intentional_stop = false;
        row.exit_reason = Some(ExitReason::SessionEnded.into());
        check(&row, Glyph::Square, "Stopped", Tone::Neutral);
        row.exit_reason = Some(ExitReason::HostRestarted.into());
        check(&row, Glyph::Bars, "Interrupted", Tone::Warn);
    }

    #[test]
    fn a_word_of_a_newer_server_is_shown_as_written() {
        let mut row = bridge("a", BridgeStatus::Running);
        row.status = Word::Other("hibernating".into());
        check(&row, Glyph::DottedRing, "hibernating", Tone::Neutral);
    }

    #[test]
    fn a_bridge_with_a_working_session_inside_is_working() {
        let row = bridge("a", BridgeStatus::Running);
        let sessions = [inside("blocked"), inside("working")];
        assert_eq!(face(&row, &sessions).word, "Running · working");
        assert_eq!(face(&row, &sessions[..1]).word, "Running");
    }

    #[test]
    fn a_session_that_asks_waits_for_a_person() {
        let mut row = bridge("a", BridgeStatus::Running);
        row.pending_permissions = vec![asked()];
        check(&row, Glyph::Question, "Waiting for you", Tone::Warn);
        row.status_since = Timestamp::from_millis(0);
        assert_eq!(since(&row), asked().since, "not since it runs");
        row.phase = Phase::Stopping.into();
        check(&row, Glyph::Half, "Stopping", Tone::Neutral);
    }

    #[test]
    fn a_held_row_shows_the_padlock_and_keeps_its_status_beside_it() {
        let mut row = bridge("a", BridgeStatus::Running);
        row.quarantined =
            Some(Quarantine { kind: QuarantineKind::Identity.into(), code: "unkillable".into() });
        let held = face(&row, &[]);
        assert_eq!((held.glyph, held.under), (Glyph::Padlock, Some(Glyph::Dot)));
        row.quarantined = Some(Quarantine {
            kind: QuarantineKind::CrashLoop.into(),
            code: "restart_quarantined".into(),
        });
        assert_eq!(face(&row, &[]).glyph, Glyph::ShieldAlert);
        assert!(!is_held(&row));
    }

    #[test]
    fn only_what_was_started_elsewhere_is_marked_as_adopted() {
        let mut row = bridge("a", BridgeStatus::Running);
        assert!(!is_taken_over(&row));
        (row.adopted, row.origin) = (true, Origin::Adopted.into());
        row.has_log = false;
        assert!(is_taken_over(&row));
        row.has_log = true;
        assert!(!is_taken_over(&row), "started by a command of this service");
        (row.origin, row.has_log) = (Origin::Rediscovered.into(), false);
        assert!(!is_taken_over(&row));
    }
}
