//! What a change of a record entails in the outside world.

use crate::bridge::Bridge;
use svc_shared::events::EventName;
use svc_shared::status::BridgeStatus;

pub use svc_shared::status::History;

/// A change of a record: the next record and what it entails.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Step {
    /// Nothing to write and nothing to do.
    Unchanged,
    /// The record becomes this.
    Becomes {
        /// The next record.
        next: Box<Bridge>,
        /// What the process that wrote it does then.
        effects: Vec<Effect>,
    },
}

/// Something to do once after a record was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// A lifecycle event leaves the service.
    Announce(Lifecycle),
    /// The crash counter of the project grows.
    CountCrash,
    /// A row of the history.
    Remember(History),
}

/// Lifecycle events of a bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lifecycle {
    /// Started by this service.
    Spawn,
    /// Seen ready, after a spawn.
    Ready,
    /// Stopped on purpose.
    Stop,
    /// Ended unexpectedly after it was ready.
    Crash,
}

impl Lifecycle {
    /// The event that it is outside.
    #[must_use]
    pub fn name(self) -> EventName {
        match self {
            Self::Spawn => EventName::Spawn,
            Self::Ready => EventName::Ready,
            Self::Stop => EventName::Stop,
            Self::Crash => EventName::Crash,
        }
    }

    /// The step of an event; `None` where it is none.
    #[must_use]
    pub fn of(name: EventName) -> Option<Self> {
        match name {
            EventName::Spawn => Some(Self::Spawn),
            EventName::Ready => Some(Self::Ready),
            EventName::Stop => Some(Self::Stop),
            EventName::Crash => Some(Self::Crash),
            EventName::BgSettled
            | EventName::PermissionNeeded
            | EventName::CloneDone
            | EventName::SessionEnd
            | EventName::ReconnectFailed => None,
        }
    }

    /// The status that it leads to.
    #[must_use]
    pub fn status(self) -> BridgeStatus {
        match self {
            Self::Spawn => BridgeStatus::Starting,
            Self::Ready => BridgeStatus::Running,
            Self::Stop => BridgeStatus::Stopped,
            Self::Crash => BridgeStatus::Crashed,
        }
    }

    /// The event's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.name().as_str()
    }
}
