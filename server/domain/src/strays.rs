//! Processes of bridges that no live bridge answers for.
//!
//! Everything a bridge starts carries its launch id and ends with it. What carries an id that this
//! service gave away and belongs to no live bridge is a stray; so is a second agent under one launch.

use crate::identity::ProcessIdentity;

/// What is known about a launch id that a process carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner<'a> {
    /// The launch of a live record; its process, once that is known.
    Live(Option<&'a ProcessIdentity>),
    /// The launch of an ended record, or one that only the logs of this service name.
    Over,
    /// Another service's.
    Foreign,
}

/// Why a process is a stray.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stray {
    /// Its bridge has ended.
    Leftover,
    /// A second agent runs under the launch of a live bridge.
    Duplicate,
}

impl Stray {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Leftover => "leftover",
            Self::Duplicate => "duplicate",
        }
    }
}

/// What a process shows of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown<'a> {
    /// Who it is.
    pub identity: &'a ProcessIdentity,
    /// It runs the very command of the launch.
    pub runs_the_command: bool,
    /// Its parent carries the same launch id.
    /// Between fork and exec a process looks like its parent.
    pub is_child: bool,
}

/// Whether a process that carries a launch id is a stray.
#[must_use]
pub fn judge(owner: Owner<'_>, shown: Shown<'_>) -> Option<Stray> {
    match owner {
        Owner::Foreign => None,
        Owner::Over => Some(Stray::Leftover),
        // Being launched right now: nobody can say which of them it will be.
        Owner::Live(None) => None,
        Owner::Live(Some(first)) => {
            let is_second = first != shown.identity && shown.runs_the_command && !shown.is_child;
            is_second.then_some(Stray::Duplicate)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Pid;

    fn process(pid: i64) -> ProcessIdentity {
        ProcessIdentity {
            pid: Pid::new(pid).unwrap(),
            start_ticks: 7,
            boot_id: "boot-a".parse().unwrap(),
        }
    }

    #[test]
    fn h105_only_what_no_live_bridge_answers_for_is_a_stray() {
        let (first, other) = (process(10), process(11));
        let plain = Shown { identity: &other, runs_the_command: false, is_child: true };
        let second = Shown { runs_the_command: true, is_child: false, ..plain };
        let image = Shown { is_child: true, ..second };
        let live = Owner::Live(Some(&first));
        assert_eq!(judge(live, plain), None, "what the bridge started");
        assert_eq!(judge(live, Shown { identity: &first, ..second }), None, "the bridge");
        assert_eq!(judge(live, image), None, "a child before it became what it runs");
        assert_eq!(judge(live, second), Some(Stray::Duplicate));
        assert_eq!(judge(Owner::Live(None), second), None, "it is being launched");
        assert_eq!(judge(Owner::Over, plain), Some(Stray::Leftover));
        assert_eq!(judge(Owner::Foreign, second), None);
    }
}
