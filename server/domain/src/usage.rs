//! What a tree of processes used between two looks at it.
//!
//! The kernel adds what an ended process used to the account of the parent that collects it. The
//! sums over a tree therefore also hold what short-lived children used that no look ever saw.

use std::collections::BTreeMap;
use std::time::Duration;

/// What one process has used since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Processor time of its own threads.
    pub own: Duration,
    /// Processor time of the children it collected.
    pub collected: Duration,
    /// Resident memory, bytes; 0 for one that only waits to be collected.
    pub resident_bytes: u64,
    /// It has not ended.
    pub is_alive: bool,
    /// Bytes read from and written to disks, collected children included.
    /// `None` when unreadable.
    pub disk: Option<Moved>,
}

/// Bytes from and to disks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
}

/// One look at a tree: every process by pid and start time.
pub type Tree = BTreeMap<(i32, u64), Counters>;

/// Use between two looks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// Processes alive at the second look.
    pub procs: u32,
    /// Processor time in percent of one core: 100 is one busy core.
    pub cpu_percent: f64,
    /// Resident memory at the second look, bytes. Shared pages count in each process.
    pub rss_bytes: u64,
    /// Bytes per second; `None` when no process could be asked at both looks.
    pub disk: Option<Moved>,
}

/// Use between two samples `elapsed` apart, on a machine with this many cores.
#[must_use]
pub fn between(before: &Tree, after: &Tree, elapsed: Duration, cores: u32) -> Usage {
    let alive = || after.values().filter(|counters| counters.is_alive);
    let seconds = elapsed.as_secs_f64();
    let busy = if seconds > 0.0 {
        // Never more than the machine has: an account that came from outside the tree, such as
        // that of a nested service's bridge, was not spent in this window.
        (processor_time(before, after).as_secs_f64() / seconds).min(f64::from(cores))
    } else {
        0.0
    };
    Usage {
        procs: u32::try_from(alive().count()).unwrap_or(u32::MAX),
        cpu_percent: busy * 100.0,
        rss_bytes: alive().fold(0, |sum, one| sum.saturating_add(one.resident_bytes)),
        disk: moved(before, after, seconds),
    }
}

fn processor_time(before: &Tree, after: &Tree) -> Duration {
    let total = |tree: &Tree| {
        tree.values().fold(Duration::ZERO, |sum, one| {
            sum.saturating_add(one.own).saturating_add(one.collected)
        })
    };
    // What those used themselves that were there both times: true even when the account of one
    // that ended went to somebody outside the tree.
    let of_survivors = after
        .iter()
        .filter_map(|(key, now)| Some(now.own.saturating_sub(before.get(key)?.own)))
        .fold(Duration::ZERO, Duration::saturating_add);
    total(after).saturating_sub(total(before)).max(of_survivors)
}

fn moved(before: &Tree, after: &Tree, seconds: f64) -> Option<Moved> {
    let total = |tree: &Tree| {
        tree.values().filter_map(|one| one.disk).reduce(|sum, one| Moved {
            read: sum.read.saturating_add(one.read),
            written: sum.written.saturating_add(one.written),
        })
    };
    let (before, after) = (total(before)?, total(after)?);
    Some(Moved {
        read: per_second(after.read.saturating_sub(before.read), seconds),
        written: per_second(after.written.saturating_sub(before.written), seconds),
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a rate for people; the conversion saturates"
)]
fn per_second(bytes: u64, seconds: f64) -> u64 {
    if seconds > 0.0 { (bytes as f64 / seconds).round() as u64 } else { 0 }
}

/// The sum over several trees.
#[must_use]
pub fn sum<'a>(all: impl IntoIterator<Item = &'a Usage>) -> Usage {
    all.into_iter().fold(Usage::default(), |sum, one| Usage {
        procs: sum.procs.saturating_add(one.procs),
        cpu_percent: sum.cpu_percent + one.cpu_percent,
        rss_bytes: sum.rss_bytes.saturating_add(one.rss_bytes),
        disk: match (sum.disk, one.disk) {
            (Some(sum), Some(one)) => Some(Moved {
                read: sum.read.saturating_add(one.read),
                written: sum.written.saturating_add(one.written),
            }),
            (known, None) | (None, known) => known,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn process(own_ms: u64, collected_ms: u64) -> Counters {
        Counters {
            own: Duration::from_millis(own_ms),
            collected: Duration::from_millis(collected_ms),
            resident_bytes: 1000,
            is_alive: true,
            disk: None,
        }
    }

    fn tree(processes: &[(i32, Counters)]) -> Tree {
        processes.iter().map(|(pid, counters)| ((*pid, 7), *counters)).collect()
    }

    fn percent(before: &[(i32, Counters)], after: &[(i32, Counters)]) -> f64 {
        between(&tree(before), &tree(after), SECOND, 4).cpu_percent.round()
    }

    #[test]
    fn time_and_memory_of_all_processes_count() {
        let before = tree(&[(1, process(100, 0)), (2, process(0, 0))]);
        let after = tree(&[(1, process(350, 0)), (2, process(250, 0))]);
        let usage = between(&before, &after, SECOND * 2, 4);
        assert_eq!((usage.procs, usage.rss_bytes), (2, 2000));
        assert!((usage.cpu_percent - 25.0).abs() < 0.01, "{usage:?}");
        assert_eq!(usage.disk, None);
    }

    #[test]
    fn a_child_that_no_look_saw_counts_by_the_account_of_its_parent() {
        assert_eq!(percent(&[(1, process(0, 0))], &[(1, process(0, 400))]), 40.0);
    }

    #[test]
    fn a_child_that_ended_is_not_counted_again_when_it_is_collected() {
        // 10 s old use, 0.1 s of it new.
        let before = [(1, process(0, 0)), (2, process(10_000, 0))];
        let waiting = Counters { resident_bytes: 0, is_alive: false, ..process(10_100, 0) };
        let between_the_two = [(1, process(0, 0)), (2, waiting)];
        assert_eq!(percent(&before, &between_the_two), 10.0);
        assert_eq!(percent(&between_the_two, &[(1, process(0, 10_100))]), 0.0);
        assert_eq!(percent(&before, &[(1, process(0, 10_100))]), 10.0);
        let usage = between(&tree(&before), &tree(&between_the_two), SECOND, 4);
        assert_eq!((usage.procs, usage.rss_bytes), (1, 1000));
    }

    #[test]
    fn a_process_that_left_with_its_account_hides_nobody() {
        let before = [(1, process(0, 0)), (2, process(60_000, 0))];
        assert_eq!(percent(&before, &[(1, process(500, 0))]), 50.0);
    }

    #[test]
    fn an_account_from_outside_cannot_exceed_the_machine() {
        assert_eq!(percent(&[(1, process(0, 0))], &[(1, process(0, 3_600_000))]), 400.0);
        let no_time = between(&Tree::new(), &tree(&[(1, process(5, 0))]), Duration::ZERO, 4);
        assert_eq!(no_time.cpu_percent, 0.0);
    }

    #[test]
    fn disk_rates_are_per_second_and_unknown_stays_unknown() {
        let with =
            |read, written| Counters { disk: Some(Moved { read, written }), ..process(0, 0) };
        let before = tree(&[(1, with(1000, 0)), (2, process(0, 0))]);
        let after = tree(&[(1, with(5000, 600)), (2, process(0, 0))]);
        let usage = between(&before, &after, SECOND * 2, 4);
        assert_eq!(usage.disk, Some(Moved { read: 2000, written: 300 }));
        // One that left took its account along.
        let fewer = between(&after, &before, SECOND, 4);
        assert_eq!(fewer.disk, Some(Moved::default()));
    }

    #[test]
    fn a_sum_adds_what_is_known() {
        let one = Usage { procs: 2, cpu_percent: 10.0, rss_bytes: 5, disk: None };
        let other = Usage { disk: Some(Moved { read: 3, written: 4 }), ..one };
        let total = sum([&one, &other]);
        assert_eq!((total.procs, total.cpu_percent, total.rss_bytes), (4, 20.0, 10));
        assert_eq!(total.disk, other.disk);
        assert_eq!(sum([]), Usage::default());
    }
}
