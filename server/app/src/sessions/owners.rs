//! Which managed bridge a process belongs to.

use super::SessionScan;
use std::collections::HashMap;
use svc_domain::attribution::{Attribution, Candidate, Descent};
use svc_domain::bridge::Bridge;
use svc_domain::identity::{Pid, ProcessIdentity, Verdict};
use svc_domain::stranded::Registered;
use svc_ports::process::ProcessFacts;
use svc_shared::ids::{InstanceId, ProjectName};
use svc_shared::status::SpawnMode;

/// Live managed bridges.
pub(super) struct Owners {
    bridges: Vec<(Bridge, bool)>,
    by_pid: HashMap<i32, usize>,
}

impl Owners {
    pub fn new(scan: &SessionScan) -> Self {
        let live = scan.copies.live();
        let bridges: Vec<(Bridge, bool)> = live
            .into_iter()
            .filter_map(|bridge| match bridge.process.as_ref().map(|p| scan.host.probe(p)) {
                None | Some(Verdict::Same) => Some((bridge, true)),
                Some(Verdict::Unknown) => Some((bridge, false)),
                // Its end is recorded soon; its number may be somebody else's by now.
                Some(Verdict::Gone(_)) => None,
            })
            .collect();
        let by_pid = bridges
            .iter()
            .enumerate()
            .filter(|(_, (_, is_readable))| *is_readable)
            .filter_map(|(at, (bridge, _))| Some((bridge.process.as_ref()?.pid.get(), at)))
            .collect();
        Self { bridges, by_pid }
    }

    /// Every bridge whose process was just proven, with no session yet.
    pub fn nothing_seen(&self) -> HashMap<InstanceId, Vec<Registered>> {
        let readable = self.bridges.iter().filter(|(_, is_readable)| *is_readable);
        readable.map(|(bridge, _)| (bridge.id.clone(), Vec::new())).collect()
    }

    pub fn candidates(&self) -> Vec<Candidate<'_>> {
        self.bridges
            .iter()
            .map(|(bridge, is_readable)| Candidate {
                id: &bridge.id,
                cwd: &bridge.cwd,
                has_worktrees: bridge.spawn_mode == SpawnMode::Worktree,
                is_readable: *is_readable,
            })
            .collect()
    }

    /// The same answer with the life of the records instead of the question's.
    pub fn tracked(&self, id: &InstanceId) -> Attribution<'_> {
        let owner = self.bridges.iter().find(|(bridge, _)| &bridge.id == id);
        owner.map_or(Attribution::External, |(bridge, _)| Attribution::Tracked(&bridge.id))
    }

    pub fn project_of(&self, id: &InstanceId) -> Option<&ProjectName> {
        let owner = self.bridges.iter().find(|(bridge, _)| &bridge.id == id);
        owner.map(|(bridge, _)| &bridge.project)
    }

    /// The managed bridge that a proven process is or descends from.
    pub fn descent_of(&self, scan: &SessionScan, process: &ProcessIdentity) -> Descent<'_> {
        // Mostly it is the bridge itself, and nothing else about it is asked for.
        if let Some(owner) = self.owner(process.pid) {
            return Descent::Of(owner);
        }
        let facts = scan.host.inspect(process.pid).filter(|facts| facts.identity == *process);
        facts.map_or(Descent::Unknown, |facts| self.descent(scan, &facts))
    }

    pub fn owner(&self, pid: Pid) -> Option<&InstanceId> {
        let at = self.by_pid.get(&pid.get())?;
        self.bridges.get(*at).map(|(bridge, _)| &bridge.id)
    }

    /// The managed bridge that a process is or descends from.
    pub fn descent(&self, scan: &SessionScan, facts: &ProcessFacts) -> Descent<'_> {
        let mut pid = facts.identity.pid;
        let mut parent = facts.parent;
        // Deeper trees do not exist; a cycle cannot be walked for ever.
        for _ in 0..32 {
            if let Some(owner) = self.owner(pid) {
                return Descent::Of(owner);
            }
            let Some(next) = Pid::new(i64::from(parent)) else { return Descent::Nobody };
            let Some(facts) = scan.host.inspect(next) else { return Descent::Unknown };
            pid = next;
            parent = facts.parent;
        }
        Descent::Nobody
    }
}
