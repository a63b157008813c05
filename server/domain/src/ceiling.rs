//! What a bridge and its descendants may use, and what happens above that (H106).
//!
//! A single sample above a ceiling means nothing, because a compiler runs hundreds of processes for
//! a moment. Only several samples in a row count, and a warning ends when the use is clearly below
//! the ceiling again.

use std::fmt;
use std::time::Duration;

/// Looks in a row that a ceiling must be exceeded in.
const LOOKS: u32 = 3;
/// A warning stays until the use is below this share of the ceiling, percent.
const CALM_PERCENT: u64 = 90;
/// A younger generation that exceeds a ceiling is stopped and not started again.
/// It would only exceed the ceiling again.
const RECYCLED_AFTER: Duration = Duration::from_secs(600);

/// How every text of this module about a row begins.
const WARNING: &str = "this bridge uses more than it should: ";
const STOPPED: &str = "stopped by the service because of its use: ";
const RECYCLED: &str = "started anew by the service because of its use: ";

/// What one look at a bridge found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    /// Live processes.
    pub processes: u64,
    /// Resident memory, bytes.
    pub memory_bytes: u64,
    /// Open descriptors; `None` while they were not counted.
    pub open_files: Option<u64>,
}

/// The most of each; `None` is no ceiling.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ceilings {
    /// Live processes.
    pub processes: Option<u64>,
    /// Resident memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Open descriptors.
    pub open_files: Option<u64>,
}

/// What the operator wants done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Say so.
    Warn,
    /// Say so and end the bridge.
    Stop,
    /// Say so, end the bridge and start its next generation.
    Recycle,
}

/// Which ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ceiling {
    /// `ceilings.processes`
    Processes,
    /// `ceilings.memory_mb`
    Memory,
    /// `ceilings.open_files`
    OpenFiles,
}

/// One ceiling that was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Excess {
    /// Which.
    pub ceiling: Ceiling,
    /// What was found.
    pub found: u64,
    /// What is allowed.
    pub most: u64,
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { found, most, .. } = self;
        let mb = |bytes: u64| bytes.div_ceil(1 << 20);
        match self.ceiling {
            Ceiling::Processes => {
                write!(f, "{found} processes, and `ceilings.processes` allows {most}")
            }
            Ceiling::Memory => write!(
                f,
                "{} MiB of memory, and `ceilings.memory_mb` allows {}",
                mb(*found),
                mb(*most)
            ),
            Ceiling::OpenFiles => {
                write!(f, "{found} open files, and `ceilings.open_files` allows {most}")
            }
        }
    }
}

/// What to do after a sample. The text is recorded before anything else happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Nothing new.
    None,
    /// Record this advice.
    Warn(String),
    /// Take the advice of [`Action::Warn`] back.
    Calm,
    /// Record this reason, then stop the bridge.
    Stop(String),
    /// Record this reason, then stop the bridge and start its next generation.
    Recycle(String),
}

/// The looks at one generation so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Watch {
    over: u32,
    warned: bool,
    acted: bool,
}

impl Watch {
    /// A generation that carries a warning of an earlier process of this service.
    #[must_use]
    pub fn of_notice(notice: Option<&str>) -> Self {
        Self { warned: notice.is_some_and(|text| text.starts_with(WARNING)), ..Self::default() }
    }

    /// Takes one look; `age` is the time since the start of the generation.
    pub fn look(
        &mut self,
        load: Load,
        ceilings: Ceilings,
        wanted: Wanted,
        age: Duration,
    ) -> Action {
        let Some(excess) = excess(load, ceilings) else {
            self.over = 0;
            if self.warned && is_calm(load, ceilings) {
                self.warned = false;
                return Action::Calm;
            }
            return Action::None;
        };
        self.over = self.over.saturating_add(1);
        if self.over < LOOKS || self.acted {
            return Action::None;
        }
        match wanted {
            Wanted::Warn if self.warned => Action::None,
            Wanted::Warn => {
                self.warned = true;
                Action::Warn(format!("{WARNING}{excess}; look at what it runs, or stop it"))
            }
            Wanted::Recycle if age >= RECYCLED_AFTER => {
                self.acted = true;
                Action::Recycle(format!("{RECYCLED}{excess}"))
            }
            Wanted::Stop | Wanted::Recycle => {
                self.acted = true;
                Action::Stop(format!("{STOPPED}{excess}"))
            }
        }
    }
}

/// Whether a text on a row is of this module, so that it may be replaced.
#[must_use]
pub fn is_ours(notice: &str) -> bool {
    [WARNING, STOPPED, RECYCLED].iter().any(|begin| notice.starts_with(begin))
}

/// Whether a text says why a bridge was ended: it stays when the row has ended.
#[must_use]
pub fn says_why_ended(notice: &str) -> bool {
    [STOPPED, RECYCLED].iter().any(|begin| notice.starts_with(begin))
}

/// The first ceiling that is exceeded.
#[must_use]
pub fn excess(load: Load, ceilings: Ceilings) -> Option<Excess> {
    pairs(load, ceilings).into_iter().find_map(|(ceiling, found, most)| {
        let (found, most) = (found?, most?);
        (found > most).then_some(Excess { ceiling, found, most })
    })
}

fn is_calm(load: Load, ceilings: Ceilings) -> bool {
    pairs(load, ceilings).into_iter().all(|(_, found, most)| match (found, most) {
        (Some(found), Some(most)) => {
            u128::from(found) * 100 <= u128::from(most) * u128::from(CALM_PERCENT)
        }
        (None, _) | (_, None) => true,
    })
}

fn pairs(load: Load, ceilings: Ceilings) -> [(Ceiling, Option<u64>, Option<u64>); 3] {
    [
        (Ceiling::Processes, Some(load.processes), ceilings.processes),
        (Ceiling::Memory, Some(load.memory_bytes), ceilings.memory_bytes),
        (Ceiling::OpenFiles, load.open_files, ceilings.open_files),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const CEILINGS: Ceilings =
        Ceilings { processes: Some(10), memory_bytes: Some(100 << 20), open_files: Some(50) };

    fn load(processes: u64) -> Load {
        Load { processes, memory_bytes: 1 << 20, open_files: None }
    }

    fn looks(watch: &mut Watch, wanted: Wanted, all: &[u64]) -> Vec<Action> {
        all.iter().map(|found| watch.look(load(*found), CEILINGS, wanted, HOUR)).collect()
    }

    #[test]
    fn h106_a_warning_needs_three_looks_in_a_row_and_goes_when_it_is_clearly_below() {
        let mut watch = Watch::default();
        let first = looks(&mut watch, Wanted::Warn, &[11, 11, 10, 11, 11]);
        assert_eq!(first, vec![Action::None; 5], "not in a row");
        let [Action::Warn(text)] = &looks(&mut watch, Wanted::Warn, &[12])[..] else {
            panic!("no warning")
        };
        assert!(text.contains("12 processes") && text.contains("allows 10"), "{text}");
        assert!(is_ours(text) && !says_why_ended(text));
        let calm = looks(&mut watch, Wanted::Warn, &[12, 10, 10, 9, 9]);
        let none = Action::None;
        assert_eq!(calm, [none.clone(), none.clone(), none.clone(), Action::Calm, none]);
    }

    #[test]
    fn h106_what_the_operator_wants_happens_once_and_says_why() {
        let mut watch = Watch::default();
        let all = looks(&mut watch, Wanted::Stop, &[11, 11, 11, 11, 11]);
        let acts: Vec<_> = all.iter().filter(|action| **action != Action::None).collect();
        let [Action::Stop(reason)] = acts[..] else { panic!("{all:?}") };
        assert!(reason.contains("11 processes") && says_why_ended(reason), "{reason}");
    }

    #[test]
    fn h106_a_bridge_that_leaks_at_once_is_not_started_again_and_again() {
        let mut young = Watch::default();
        for _ in 0..2 {
            let action = young.look(load(11), CEILINGS, Wanted::Recycle, Duration::ZERO);
            assert_eq!(action, Action::None);
        }
        let action = young.look(load(11), CEILINGS, Wanted::Recycle, Duration::ZERO);
        assert!(matches!(action, Action::Stop(_)), "{action:?}");
        let mut old = Watch::default();
        let all = looks(&mut old, Wanted::Recycle, &[11, 11, 11]);
        assert!(matches!(&all[2], Action::Recycle(_)), "{all:?}");
    }

    #[test]
    fn each_ceiling_counts_by_itself_and_none_is_no_ceiling() {
        let memory = Load { memory_bytes: 101 << 20, ..load(1) };
        let files = Load { open_files: Some(51), ..load(1) };
        let which = |load| excess(load, CEILINGS).map(|excess| excess.ceiling);
        assert_eq!(which(memory), Some(Ceiling::Memory));
        assert_eq!(which(files), Some(Ceiling::OpenFiles));
        assert_eq!(which(load(10)), None);
        assert_eq!(excess(memory, Ceilings::default()), None);
        let said = excess(memory, CEILINGS).map(|excess| excess.to_string());
        assert_eq!(said.as_deref(), Some("101 MiB of memory, and `ceilings.memory_mb` allows 100"));
    }

    #[test]
    fn a_warning_outlives_the_service_and_is_taken_back_by_the_next() {
        let mut watch = Watch::default();
        let warned = looks(&mut watch, Wanted::Warn, &[11, 11, 11]);
        let Some(Action::Warn(text)) = warned.last() else { panic!("{warned:?}") };
        let mut next = Watch::of_notice(Some(text));
        assert_eq!(looks(&mut next, Wanted::Warn, &[1]), [Action::Calm]);
        assert_eq!(looks(&mut Watch::of_notice(Some("else")), Wanted::Warn, &[1]), [Action::None]);
    }

    proptest! {
        #[test]
        fn nothing_is_done_to_a_bridge_within_its_ceilings(
            all in prop::collection::vec((0_u64..11, 0_u64..100, prop::option::of(0_u64..51)), 0..40)
        ) {
            let mut watch = Watch::default();
            for (processes, mb, open_files) in all {
                let load = Load { processes, memory_bytes: mb << 20, open_files };
                let action = watch.look(load, CEILINGS, Wanted::Recycle, HOUR);
                prop_assert_eq!(action, Action::None);
            }
        }
    }
}
