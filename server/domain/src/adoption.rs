//! Whether a bridge without a record may be taken over (`agent-cli` §8.3).

use crate::bridge::Bridge;
use crate::decide::{Refusal, may_resume};
use crate::identity::{Pid, Verdict};
use svc_shared::ids::InstanceId;
use svc_shared::status::QuarantineCode;

/// What the pointer of a project names, and what the kernel says of that process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointedAt {
    /// The process.
    pub pid: Pid,
    /// It is a Server Mode bridge: the program and its arguments say so.
    pub is_standard_bridge: bool,
    /// The process works in exactly this project's directory.
    /// Two directories can share one pointer.
    pub is_here: bool,
    /// It belongs to the user of this service.
    pub is_own_user: bool,
    /// A record names the very process.
    pub managed_as: Option<InstanceId>,
    /// Another service started it.
    pub is_of_other_service: bool,
}

impl PointedAt {
    /// Whether a launch in the project would find it in its place, whoever started it.
    #[must_use]
    pub fn is_in_the_way(&self) -> bool {
        self.is_standard_bridge && self.is_here && self.is_own_user && self.managed_as.is_none()
    }
}

/// The Server Mode bridge that runs in a directory although no live record has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unrecorded {
    /// There is none.
    Nothing,
    /// It may be taken over.
    Adoptable(Pid),
    /// Another service started it.
    OtherService(Pid),
    /// Its record says that it ended, but its process lives.
    WronglyEnded {
        /// Its instance.
        id: InstanceId,
        /// The end was asked for, so the process is stopped when the record is corrected.
        is_stopping: bool,
    },
    /// The record says that it ended, its process lives, and its row is held.
    Held {
        /// Its instance.
        id: InstanceId,
        /// Why actions are suspended.
        code: QuarantineCode,
    },
    /// Its record says that it ended, and nobody can tell whether its process lives.
    MayBeLive(InstanceId),
}

impl Unrecorded {
    /// The process, if no record has it at all.
    #[must_use]
    pub fn pid(&self) -> Option<Pid> {
        match self {
            Self::Adoptable(pid) | Self::OtherService(pid) => Some(*pid),
            Self::Nothing | Self::WronglyEnded { .. } | Self::Held { .. } | Self::MayBeLive(_) => {
                None
            }
        }
    }
}

/// What the pointed-at process means for a launch in the project.
/// `record` is the record of that very process with what the process table says about it.
#[must_use]
pub fn unrecorded(found: &PointedAt, record: Option<(&Bridge, Verdict)>) -> Unrecorded {
    if let Some((bridge, verdict)) = record.filter(|(bridge, _)| !bridge.is_live()) {
        let id = bridge.id.clone();
        return match may_resume(bridge, Some(verdict)) {
            Ok(()) => Unrecorded::Nothing,
            Err(Refusal::Held(code)) => Unrecorded::Held { id, code },
            Err(Refusal::Live | Refusal::NoRelaunch | Refusal::NotDue)
                if verdict == Verdict::Unknown =>
            {
                Unrecorded::MayBeLive(id)
            }
            Err(Refusal::Live | Refusal::NoRelaunch | Refusal::NotDue) => {
                Unrecorded::WronglyEnded { id, is_stopping: bridge.intentional_stop() }
            }
        };
    }
    if !found.is_in_the_way() {
        return Unrecorded::Nothing;
    }
    if found.is_of_other_service {
        return Unrecorded::OtherService(found.pid);
    }
    Unrecorded::Adoptable(found.pid)
}

/// Why nothing can be taken over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAdoptable {
    /// There is no pointer, or its process is gone.
    #[error("no bridge that was started by hand runs in this project")]
    NothingLive,
    /// It is something else.
    #[error(
        "process {0} is not a Server Mode bridge: a session in a terminal can be watched, not taken \
         over"
    )]
    NotABridge(Pid),
    /// It works elsewhere.
    #[error(
        "the bridge with process {0} works in another directory; take it over in the project it \
         works in"
    )]
    Elsewhere(Pid),
    /// It belongs to another user.
    #[error("the bridge with process {0} belongs to another user; stop it as that user")]
    OtherUser(Pid),
    /// It has a record.
    #[error("the bridge of this project is managed already, as instance {}", .0.short())]
    Managed(InstanceId),
    /// The project has another live bridge.
    #[error(
        "instance {} of this project is live; stop it before another bridge is taken over", .0.short()
    )]
    Occupied(InstanceId),
    /// Another service started it.
    #[error("another service runs the bridge of this project (process {0}); stop it there")]
    OtherService(Pid),
}

/// Decides whether the process may be taken over, and reports the first obstacle.
/// `live` is the live Server Mode bridge of the project, if there is one.
///
/// # Errors
/// The obstacle.
pub fn adoptable(found: &PointedAt, live: Option<&InstanceId>) -> Result<(), NotAdoptable> {
    if let Some(id) = &found.managed_as {
        return Err(NotAdoptable::Managed(id.clone()));
    }
    if !found.is_standard_bridge {
        return Err(NotAdoptable::NotABridge(found.pid));
    }
    if !found.is_here {
        return Err(NotAdoptable::Elsewhere(found.pid));
    }
    if !found.is_own_user {
        return Err(NotAdoptable::OtherUser(found.pid));
    }
    if found.is_of_other_service {
        return Err(NotAdoptable::OtherService(found.pid));
    }
    match live {
        Some(id) => Err(NotAdoptable::Occupied(id.clone())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_is_told_by_itself() {
        let pid = Pid::new(4242).unwrap();
        let id: InstanceId = "00000001-0000-4000-8000-000000000000".parse().unwrap();
        let fine = PointedAt {
            pid,
            is_standard_bridge: true,
            is_here: true,
            is_own_user: true,
            managed_as: None,
            is_of_other_service: false,
        };
        assert_eq!(adoptable(&fine, None), Ok(()));
        assert_eq!(unrecorded(&fine, None), Unrecorded::Adoptable(pid));
        let other = PointedAt { is_of_other_service: true, ..fine.clone() };
        assert_eq!(unrecorded(&other, None), Unrecorded::OtherService(pid));
        for free in [
            PointedAt { is_standard_bridge: false, ..fine.clone() },
            PointedAt { is_here: false, ..fine.clone() },
            PointedAt { is_own_user: false, ..other.clone() },
            PointedAt { managed_as: Some(id.clone()), ..fine.clone() },
        ] {
            assert_eq!(unrecorded(&free, None), Unrecorded::Nothing, "{free:?}");
        }
        let check = |found: PointedAt, wanted: NotAdoptable| {
            assert_eq!(adoptable(&found, None), Err(wanted));
        };
        check(
            PointedAt { is_standard_bridge: false, ..fine.clone() },
            NotAdoptable::NotABridge(pid),
        );
        check(PointedAt { is_here: false, ..fine.clone() }, NotAdoptable::Elsewhere(pid));
        check(PointedAt { is_own_user: false, ..fine.clone() }, NotAdoptable::OtherUser(pid));
        check(
            PointedAt { is_of_other_service: true, ..fine.clone() },
            NotAdoptable::OtherService(pid),
        );
        check(
            PointedAt { managed_as: Some(id.clone()), ..fine.clone() },
            NotAdoptable::Managed(id.clone()),
        );
        assert_eq!(adoptable(&fine, Some(&id)), Err(NotAdoptable::Occupied(id)));
    }
}
