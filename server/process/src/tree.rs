//! Which processes belong to a launch, decided on one process snapshot.

use crate::table::Stat;
use std::collections::{HashMap, HashSet};
use svc_domain::identity::LaunchId;

/// The descendants of a process, deepest first.
///
/// Includes processes that carry the launch id and left the family by a double fork or a session of
/// their own. Leaves out processes with the id of *another* launch, with their children: a service
/// that an agent runs looks after its own bridges.
pub(crate) fn descendants(
    snapshot: &[Stat],
    root: i32,
    launch_of: impl Fn(i32) -> Option<LaunchId>,
) -> Vec<Stat> {
    let launch = launch_of(root);
    let began = snapshot.iter().find(|stat| stat.pid == root).map_or(0, |stat| stat.start_ticks);
    let mut family = Family::new(snapshot, root);
    family.add_children(root, 1, |pid| launch_of(pid).is_some_and(|id| Some(id) != launch));
    if launch.is_some() {
        let mut strays: Vec<Stat> = snapshot
            .iter()
            // The id is inherited, so no older process has it. Reading the environment of every
            // process would be most of the cost of a stop.
            .filter(|stat| stat.start_ticks >= began && !family.members.contains(&stat.pid))
            .filter(|stat| launch_of(stat.pid) == launch)
            .copied()
            .collect();
        strays.sort_by_key(|stat| (stat.start_ticks, stat.pid));
        for stray in &strays {
            if !strays.iter().any(|other| other.pid == stray.parent) {
                family.add(*stray, 1);
                family.add_children(stray.pid, 2, |pid| {
                    launch_of(pid).is_some_and(|id| Some(id) != launch)
                });
            }
        }
    }
    family.deepest_first()
}

/// All processes of a bridge, deepest first, also if its first process is gone.
///
/// These are the processes that carry its launch id, those in the session that its launcher began, and
/// their descendants. Processes with the id of another launch are left out, with their children.
///
/// The kernel does not reuse a pid while a session has that number. So a session of that number is
/// the right one unless another process has the pid.
pub(crate) fn remains(
    snapshot: &[Stat],
    first: Option<(i32, u64)>,
    launch: &LaunchId,
    launch_of: impl Fn(i32) -> Option<LaunchId>,
) -> Vec<Stat> {
    let session = first.filter(|(pid, start_ticks)| {
        let holder = snapshot.iter().find(|stat| stat.pid == *pid);
        holder.is_none_or(|stat| stat.start_ticks == *start_ticks)
    });
    let is_in_session = |stat: &Stat| {
        session.is_some_and(|(pid, start_ticks)| {
            stat.session == pid && stat.start_ticks >= start_ticks
        })
    };
    let began = first.map_or(0, |(_, start_ticks)| start_ticks);
    let mut family = Family::new(snapshot, 0);
    // The id and the session are inherited from the first process: no older process has them.
    for stat in snapshot.iter().filter(|stat| stat.start_ticks >= began) {
        let carried = launch_of(stat.pid);
        let belongs = match &carried {
            Some(carried) => carried == launch,
            None => is_in_session(stat),
        };
        if belongs {
            family.add(*stat, 1);
            family.add_children(stat.pid, 2, |pid| launch_of(pid).is_some_and(|id| id != *launch));
        }
    }
    family.deepest_first()
}

/// Members found so far, with their distance from the root.
struct Family {
    children: HashMap<i32, Vec<Stat>>,
    members: HashSet<i32>,
    found: Vec<(usize, Stat)>,
}

impl Family {
    fn new(snapshot: &[Stat], root: i32) -> Self {
        let mut children: HashMap<i32, Vec<Stat>> = HashMap::new();
        for stat in snapshot {
            children.entry(stat.parent).or_default().push(*stat);
        }
        Self { children, members: HashSet::from([root]), found: Vec::new() }
    }

    /// Adds one process; false when it is a member already.
    fn add(&mut self, stat: Stat, depth: usize) -> bool {
        let new = self.members.insert(stat.pid);
        if new {
            self.found.push((depth, stat));
        }
        new
    }

    /// Adds all descendants of a process, except foreign ones and their descendants.
    fn add_children(&mut self, parent: i32, depth: usize, is_foreign: impl Fn(i32) -> bool) {
        let mut open = vec![(parent, depth)];
        while let Some((parent, depth)) = open.pop() {
            for child in self.children.get(&parent).cloned().unwrap_or_default() {
                if !is_foreign(child.pid) && self.add(child, depth) {
                    open.push((child.pid, depth.saturating_add(1)));
                }
            }
        }
    }

    fn deepest_first(mut self) -> Vec<Stat> {
        self.found
            .sort_by_key(|(depth, stat)| std::cmp::Reverse((*depth, stat.start_ticks, stat.pid)));
        self.found.into_iter().map(|(_, stat)| stat).collect()
    }
}

/// The first process of a launch, among the processes that carry its id.
///
/// It is the leader of its own session and its parent carries no id. Of several, it is the earliest.
pub(crate) fn first_of_launch(carriers: &[Stat]) -> Option<&Stat> {
    let known: HashSet<i32> = carriers.iter().map(|stat| stat.pid).collect();
    carriers.iter().min_by_key(|stat| {
        (known.contains(&stat.parent), stat.session != stat.pid, stat.start_ticks, stat.pid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// pid, parent, session.
    fn table(rows: &[(i32, i32, i32)]) -> Vec<Stat> {
        rows.iter()
            .map(|(pid, parent, session)| {
                let line = format!(
                    "{pid} (x) S {parent} {session} {session} 0 0 0 1 2 3 4 5 6 7 8 20 0 1 0 {pid}"
                );
                Stat::parse(*pid, line.as_bytes()).unwrap()
            })
            .collect()
    }

    fn pids(rows: &[Stat], root: i32, launch_of: impl Fn(i32) -> Option<LaunchId>) -> Vec<i32> {
        let found = descendants(rows, root, launch_of);
        found.iter().map(|stat| stat.pid).collect()
    }

    fn id(digit: char) -> LaunchId {
        String::from_iter([digit; 32]).parse().unwrap()
    }

    #[test]
    fn descendants_come_deepest_first_without_strangers() {
        let rows = table(&[(10, 1, 10), (11, 10, 10), (12, 11, 10), (13, 10, 10), (20, 1, 20)]);
        assert_eq!(pids(&rows, 10, |_| None), [12, 13, 11]);
        assert!(descendants(&rows, 12, |_| None).is_empty());
    }

    #[test]
    fn h104_a_double_forked_process_with_its_own_session_is_found_by_the_launch_id() {
        // 30 left the family and has a child that dropped the variable.
        let rows = table(&[(10, 1, 10), (11, 10, 10), (30, 1, 30), (31, 30, 30), (40, 1, 40)]);
        let launch_of = |pid| matches!(pid, 10 | 11 | 30).then(|| id('a'));
        assert_eq!(pids(&rows, 10, launch_of), [31, 30, 11]);
    }

    #[test]
    fn h108_a_bridge_of_a_nested_service_is_not_part_of_the_tree() {
        let rows = table(&[(10, 1, 10), (11, 10, 10), (12, 11, 12), (13, 12, 12)]);
        let launch_of = |pid| match pid {
            10 | 11 => Some(id('a')),
            12 => Some(id('b')),
            _ => None,
        };
        assert_eq!(pids(&rows, 10, launch_of), [11]);
    }

    #[test]
    fn h104_who_dropped_the_launch_id_is_found_by_the_session_or_by_its_parent() {
        // The first is gone. 30 carries the id and left the session, 31 is its child; 32 dropped the
        // id and stayed in the session; 33 is of another launch, 40 nobody's.
        let rows = table(&[(30, 1, 30), (31, 30, 31), (32, 1, 10), (33, 1, 10), (40, 1, 40)]);
        let launch_of = |pid| match pid {
            30 => Some(id('a')),
            33 => Some(id('b')),
            _ => None,
        };
        let found = |rows: &[Stat], first| {
            let mut pids: Vec<_> =
                remains(rows, first, &id('a'), launch_of).iter().map(|stat| stat.pid).collect();
            pids.sort_unstable();
            pids
        };
        assert_eq!(found(&rows, Some((10, 10))), [30, 31, 32]);
        assert_eq!(found(&rows, None), [30, 31], "without an identity a session proves nothing");
        let reused = table(&[(10, 1, 10), (32, 10, 10)]);
        assert!(found(&reused, Some((10, 9))).is_empty(), "somebody else has the number");
    }

    #[test]
    fn a_loop_of_parents_ends() {
        let rows = table(&[(10, 12, 10), (11, 10, 10), (12, 11, 10)]);
        assert_eq!(pids(&rows, 10, |_| None), [12, 11]);
    }

    #[test]
    fn the_first_of_a_launch_is_its_session_leader_and_not_an_early_child() {
        let rows = table(&[(12, 10, 10), (10, 1, 10), (9, 1, 5)]);
        assert_eq!(first_of_launch(&rows).map(|stat| stat.pid), Some(10));
        assert_eq!(first_of_launch(&[]), None);
    }
}
