//! Several processes on one session.
//!
//! The agent lets a session be opened twice: both processes write one conversation and neither sees
//! what the other does. Nothing is ended for it; a person is told.

use crate::identity::{Pid, ProcessIdentity};
use std::collections::BTreeMap;
use std::path::Path;
use svc_shared::ids::InstanceId;

/// A process that lives, and the session it works on.
#[derive(Clone, PartialEq, Eq)]
pub struct Worker<'a> {
    /// The agent's own id of the session. A credential: never shown.
    pub session: &'a str,
    /// Who it is, proven.
    pub process: ProcessIdentity,
    /// Where it works.
    pub cwd: &'a Path,
    /// The bridge it is or descends from.
    pub bridge: Option<&'a InstanceId>,
}

/// Does not show the session.
impl std::fmt::Debug for Worker<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker")
            .field("process", &self.process)
            .field("cwd", &self.cwd)
            .field("bridge", &self.bridge)
            .finish_non_exhaustive()
    }
}

/// The workers of each session that several processes work on, by pid.
///
/// One process that two sources name counts once. So does a process with its child: the agent
/// starts itself anew and waits, or hands on. `parent` is asked about those alone that share an id.
#[must_use]
pub fn shared<'a>(
    workers: impl IntoIterator<Item = Worker<'a>>,
    parent: impl Fn(Pid) -> Option<Pid>,
) -> Vec<Vec<Worker<'a>>> {
    let mut of_session: BTreeMap<&str, Vec<Worker<'a>>> = BTreeMap::new();
    for worker in workers {
        let known = of_session.entry(worker.session).or_default();
        if known.iter().all(|other| other.process != worker.process) {
            known.push(worker);
        }
    }
    let several = of_session.into_values().filter(|workers| workers.len() > 1);
    let apart = several.filter_map(|mut workers| {
        let pids: Vec<Pid> = workers.iter().map(|worker| worker.process.pid).collect();
        workers.retain(|worker| {
            let parent = parent(worker.process.pid);
            parent.is_none_or(|parent| !pids.contains(&parent))
        });
        workers.sort_by_key(|worker| worker.process.pid);
        (workers.len() > 1).then_some(workers)
    });
    let mut groups: Vec<Vec<Worker<'a>>> = apart.collect();
    groups.sort_by_key(|workers| workers.first().map(|worker| worker.process.pid));
    groups
}

/// One of several processes on a session, as a person is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sharer {
    /// Who it is.
    pub process: ProcessIdentity,
    /// The project it works in.
    pub project: Option<String>,
}

/// That they work on one session, in words.
#[must_use]
pub fn sentence(sharers: &[Sharer]) -> String {
    let mut named: Vec<String> = sharers.iter().map(named).collect();
    let last = named.pop().unwrap_or_default();
    format!("processes {} and {last} work on the same session", named.join(", "))
}

fn named(sharer: &Sharer) -> String {
    match &sharer.project {
        Some(project) => format!("{} (project `{project}`)", sharer.process.pid),
        None => format!("{} (in no project)", sharer.process.pid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i64) -> ProcessIdentity {
        ProcessIdentity {
            pid: Pid::new(pid).unwrap(),
            start_ticks: 7,
            boot_id: "boot-a".parse().unwrap(),
        }
    }

    fn worker(pid: i64, session: &str) -> Worker<'_> {
        Worker { session, process: process(pid), cwd: Path::new("/p/app"), bridge: None }
    }

    fn pids(groups: &[Vec<Worker<'_>>]) -> Vec<Vec<i32>> {
        let pids = |workers: &Vec<Worker<'_>>| {
            workers.iter().map(|one| one.process.pid.get()).collect::<Vec<_>>()
        };
        groups.iter().map(pids).collect()
    }

    fn nobody(_: Pid) -> Option<Pid> {
        None
    }

    #[test]
    fn two_processes_on_one_session_are_found_and_others_are_not() {
        let workers = [(40, "b"), (12, "a"), (30, "c"), (10, "a"), (20, "b")];
        let workers = workers.map(|(pid, session)| worker(pid, session));
        assert_eq!(pids(&shared(workers, nobody)), [[10, 12], [20, 40]]);
        assert!(shared([worker(10, "a"), worker(12, "b")], nobody).is_empty());
        assert!(shared([], nobody).is_empty());
        let three = [worker(30, "a"), worker(20, "a"), worker(40, "a")];
        assert_eq!(pids(&shared(three, nobody)), [[20, 30, 40]]);
    }

    #[test]
    fn a_process_that_two_sources_name_is_one() {
        let twice = [worker(10, "a"), worker(10, "a")];
        assert!(shared(twice.clone(), nobody).is_empty());
        let with_another = twice.into_iter().chain([worker(12, "a")]);
        assert_eq!(pids(&shared(with_another, nobody)), [[10, 12]]);
    }

    #[test]
    fn a_process_with_its_child_is_one_and_a_third_is_a_second() {
        let eleven_is_a_child = |pid: Pid| (pid.get() == 11).then(|| Pid::new(10)).flatten();
        let family = [worker(10, "a"), worker(11, "a")];
        assert!(shared(family.clone(), eleven_is_a_child).is_empty());
        let with_another = family.into_iter().chain([worker(12, "a")]);
        assert_eq!(pids(&shared(with_another, eleven_is_a_child)), [[10, 12]]);
        let siblings = [worker(11, "a"), worker(12, "a")];
        assert_eq!(pids(&shared(siblings, |_| Pid::new(10))), [[11, 12]]);
    }

    #[test]
    fn only_those_that_share_a_session_are_asked_for_their_parents() {
        let workers = [worker(10, "a"), worker(12, "b")];
        assert!(shared(workers, |pid| panic!("asked about {pid}")).is_empty());
    }

    #[test]
    fn the_sentence_names_processes_and_projects_and_never_the_session() {
        let sharer = |pid, project: Option<&str>| Sharer {
            process: process(pid),
            project: project.map(str::to_owned),
        };
        let mut sharers = vec![sharer(10, Some("app")), sharer(12, Some("web"))];
        let two = "processes 10 (project `app`) and 12 (project `web`) work on the same session";
        assert_eq!(sentence(&sharers), two);
        sharers.push(sharer(13, None));
        let three = "processes 10 (project `app`), 12 (project `web`) and 13 (in no project) work \
                     on the same session";
        assert_eq!(sentence(&sharers), three);
        assert!(!format!("{:?}", worker(10, "a-secret")).contains("a-secret"));
    }
}
