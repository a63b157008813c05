//! Which process is meant: a pid alone never says.

use std::fmt;
use std::str::FromStr;

/// A process id that may be signalled: never 0, 1 or negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pid(i32);

impl Pid {
    /// Checks a number from any source; `None` unless it can name one process.
    /// 0 and negative numbers name groups, and 1 is the init process.
    #[must_use]
    pub fn new(raw: i64) -> Option<Self> {
        i32::try_from(raw).ok().filter(|pid| *pid > 1).map(Self)
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> i32 {
        self.0
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Kernel id of one boot. Start ticks begin at zero with each.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BootId(String);

/// Why a text is not a boot id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a boot id: expected 1 to 64 visible ASCII characters")]
pub struct BadBootId;

impl FromStr for BootId {
    type Err = BadBootId;
    fn from_str(raw: &str) -> Result<Self, BadBootId> {
        let raw = raw.trim();
        let fits = (1..=64).contains(&raw.len()) && raw.bytes().all(|b| b.is_ascii_graphic());
        fits.then(|| Self(raw.to_owned())).ok_or(BadBootId)
    }
}

impl BootId {
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Identity of one process over all time on one machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProcessIdentity {
    /// Reused by the kernel.
    pub pid: Pid,
    /// Clock ticks since boot at its start; does not move when the clock is corrected.
    pub start_ticks: u64,
    /// The boot the ticks count from.
    pub boot_id: BootId,
}

/// What the process table says about a recorded identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Exists, and is this very process.
    Same,
    /// The recorded process is gone; zombies count as gone.
    Gone(GoneBecause),
    /// The table could not be read: authorises nothing.
    Unknown,
}

/// How it shows that a recorded process is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoneBecause {
    /// Nobody has the pid, or a zombie has it.
    NoProcess,
    /// Somebody else has the pid now.
    Reused,
    /// The record is of another boot.
    OtherBoot,
}

/// What the kernel says about a pid at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observed {
    /// A live process with this start.
    Alive {
        /// Clock ticks since boot.
        start_ticks: u64,
    },
    /// No process, or only a zombie.
    Absent,
    /// Not readable.
    Unreadable,
}

/// Compares a recorded identity with what the kernel says about its pid.
///
/// No tolerance: equal ticks and equal boot, or another process.
#[must_use]
pub fn verdict(recorded: &ProcessIdentity, boot: &BootId, observed: &Observed) -> Verdict {
    if &recorded.boot_id != boot {
        return Verdict::Gone(GoneBecause::OtherBoot);
    }
    match observed {
        Observed::Alive { start_ticks } if *start_ticks == recorded.start_ticks => Verdict::Same,
        Observed::Alive { .. } => Verdict::Gone(GoneBecause::Reused),
        Observed::Absent => Verdict::Gone(GoneBecause::NoProcess),
        Observed::Unreadable => Verdict::Unknown,
    }
}

/// Random id of one launch: 32 lower-case hex digits.
/// It is in the record and in the environment of the child.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LaunchId(String);

/// Why a text is not a launch id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a launch id: expected 32 lower-case hexadecimal digits")]
pub struct BadLaunchId;

impl FromStr for LaunchId {
    type Err = BadLaunchId;
    fn from_str(raw: &str) -> Result<Self, BadLaunchId> {
        let fits = raw.len() == 32 && raw.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        fits.then(|| Self(raw.to_owned())).ok_or(BadLaunchId)
    }
}

impl LaunchId {
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> ProcessIdentity {
        ProcessIdentity {
            pid: Pid::new(4242).unwrap(),
            start_ticks: 77_010,
            boot_id: "boot-a".parse().unwrap(),
        }
    }

    #[test]
    fn dangerous_numbers_are_no_pids() {
        for raw in [i64::MIN, -2, -1, 0, 1, i64::from(i32::MAX) + 1, i64::MAX] {
            assert_eq!(Pid::new(raw), None, "{raw}");
        }
        assert_eq!(Pid::new(2).map(Pid::get), Some(2));
    }

    #[test]
    fn only_equal_ticks_in_the_same_boot_are_the_same_process() {
        let boot = "boot-a".parse().unwrap();
        let check =
            |observed, expected| assert_eq!(verdict(&identity(), &boot, &observed), expected);
        check(Observed::Alive { start_ticks: 77_010 }, Verdict::Same);
        check(Observed::Alive { start_ticks: 77_011 }, Verdict::Gone(GoneBecause::Reused));
        check(Observed::Absent, Verdict::Gone(GoneBecause::NoProcess));
        check(Observed::Unreadable, Verdict::Unknown);
    }

    #[test]
    fn a_record_of_another_boot_is_gone_even_when_pid_and_ticks_match() {
        let other = "boot-b".parse().unwrap();
        let observed = Observed::Alive { start_ticks: 77_010 };
        assert_eq!(verdict(&identity(), &other, &observed), Verdict::Gone(GoneBecause::OtherBoot));
    }
}
