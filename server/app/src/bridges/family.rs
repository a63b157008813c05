//! What a bridge started, and its end: nothing of a bridge outlives it.
//!
//! A process belongs to a bridge that carries its launch id, is in its control group or in the session
//! its launcher began, is below such a process, or was seen below one while its parents lived. Each is
//! signalled by its identity only.
//!
//! The session and what was seen count only where the first process once proved its launch to this
//! process of ours: a record can name a stranger, whose session and children are strangers, too (H102).

use crate::bridges::claim::{Claim, claim};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use svc_config::Config;
use svc_domain::bridge::Bridge;
use svc_domain::identity::{Pid, ProcessIdentity, Verdict};
use svc_domain::usage::Tree;
use svc_ports::ProcessHost;
use svc_ports::process::{Signal, Signalled, Target};
use svc_shared::ids::InstanceId;
use tracing::warn;

/// How long killed processes may take to disappear.
const AFTER_KILL: Duration = Duration::from_secs(2);
/// A process that forks while it is being ended is caught by the next round.
pub(crate) const ROUNDS: usize = 5;

/// The processes that were last seen with each live bridge, its first one left out.
pub(crate) struct Families {
    config: Arc<Config>,
    host: Arc<dyn ProcessHost>,
    known: Mutex<HashMap<InstanceId, Family>>,
    /// The generations whose first process has proven its launch.
    proven: Mutex<HashMap<InstanceId, u32>>,
}

#[derive(Debug)]
struct Family {
    generation: u32,
    members: HashSet<ProcessIdentity>,
}

/// Kills processes and waits for their ends; tells whether all ended in time.
///
/// One after the other: thousands of them would take a descriptor each at the same time.
pub(crate) async fn kill_each(host: &dyn ProcessHost, left: &[ProcessIdentity]) -> bool {
    // Stopped ones end by this signal too; who just ended is no trouble.
    let sent = |process: &&ProcessIdentity| {
        host.signal(process, Signal::Kill, Target::Process) == Signalled::Sent
    };
    let exits = left.iter().filter(sent).map(|process| host.exited(process));
    let all = async {
        for exit in exits {
            exit.await;
        }
    };
    tokio::time::timeout(AFTER_KILL, all).await.is_ok()
}

impl Families {
    pub fn new(config: Arc<Config>, host: Arc<dyn ProcessHost>) -> Self {
        Self { config, host, known: Mutex::default(), proven: Mutex::default() }
    }

    fn proven(&self) -> MutexGuard<'_, HashMap<InstanceId, u32>> {
        self.proven.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This process launched the generation, or has seen the proof.
    pub fn is_ours(&self, id: &InstanceId, generation: u32) {
        self.proven().insert(id.clone(), generation);
    }

    fn has_proof(&self, bridge: &Bridge) -> bool {
        self.proven().get(&bridge.id) == Some(&bridge.generation)
    }

    /// Asks a process for the launch of a record, and remembers the proof.
    pub async fn claim(&self, bridge: &Bridge, identity: &ProcessIdentity) -> Claim {
        let (host, bridge_of, identity) =
            (Arc::clone(&self.host), bridge.clone(), identity.clone());
        let program = self.config.claude.binary.clone();
        let asked = tokio::task::spawn_blocking(move || {
            claim(host.as_ref(), Path::new(&program), &bridge_of, &identity)
        });
        let told = asked.await.unwrap_or(Claim::Unproven);
        if told == Claim::Proven {
            self.is_ours(&bridge.id, bridge.generation);
        }
        told
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<InstanceId, Family>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what a look at the bridge found.
    pub fn saw(&self, bridge: &Bridge, tree: &Tree) {
        let Some(first) = bridge.process.as_ref().filter(|_| self.has_proof(bridge)) else {
            return;
        };
        let alive = tree.iter().filter(|(_, counters)| counters.is_alive);
        let members = alive.filter_map(|((pid, start_ticks), _)| {
            let pid = Pid::new(i64::from(*pid)).filter(|pid| *pid != first.pid)?;
            Some(ProcessIdentity { pid, start_ticks: *start_ticks, boot_id: first.boot_id.clone() })
        });
        let family = Family { generation: bridge.generation, members: members.collect() };
        self.lock().insert(bridge.id.clone(), family);
    }

    /// Forgets everything but these.
    pub fn keep(&self, is_kept: impl Fn(&InstanceId) -> bool) {
        self.lock().retain(|id, _| is_kept(id));
        self.proven().retain(|id, _| is_kept(id));
    }

    fn add(&self, bridge: &Bridge, found: impl IntoIterator<Item = ProcessIdentity>) {
        let mut all = self.lock();
        let family = all
            .entry(bridge.id.clone())
            .or_insert_with(|| Family { generation: bridge.generation, members: HashSet::new() });
        if family.generation != bridge.generation {
            *family = Family { generation: bridge.generation, members: HashSet::new() };
        }
        family.members.extend(found);
    }

    fn take(&self, bridge: &Bridge) -> HashSet<ProcessIdentity> {
        let family = self.lock().remove(&bridge.id);
        let own = family.filter(|family| family.generation == bridge.generation);
        own.map(|family| family.members).unwrap_or_default()
    }

    /// Looks once more who is below a bridge, before it is ended.
    /// Its first process has just been proven.
    pub async fn remember(&self, bridge: &Bridge, first: &ProcessIdentity) {
        let (host, root) = (Arc::clone(&self.host), first.clone());
        let below = tokio::task::spawn_blocking(move || host.descendants(&root)).await;
        let below = below.unwrap_or_default();
        self.add(bridge, below.into_iter().map(|process| process.identity));
    }

    /// Ends what the bridge left behind, wherever it moved. What lives on all the same.
    pub async fn kill_leftovers(&self, bridge: &Bridge) -> Vec<ProcessIdentity> {
        let mut known = self.take(bridge);
        for _ in 0..ROUNDS {
            let left = self.left_of(bridge, &mut known).await;
            if left.is_empty() {
                return left;
            }
            warn!(
                bridge.id = %bridge.id,
                "bridge {} left {} processes behind; they are killed",
                bridge.id.short(),
                left.len()
            );
            if !kill_each(self.host.as_ref(), &left).await {
                break;
            }
        }
        let mut left = self.left_of(bridge, &mut known).await;
        if !left.is_empty()
            && let Some(launch) = &bridge.launch
        {
            // They are born faster than they are found: only the kernel catches all at once.
            self.host.kill_enclosed(&launch.id).await;
            let exits = left.iter().map(|process| self.host.exited(process));
            let all = async {
                for exit in exits {
                    exit.await;
                }
            };
            let _ = tokio::time::timeout(AFTER_KILL, all).await; // who is left is named below
            left = self.left_of(bridge, &mut known).await;
        }
        if !left.is_empty() {
            let pids: Vec<String> = left.iter().map(|process| process.pid.to_string()).collect();
            warn!(
                bridge.id = %bridge.id,
                "processes of bridge {} could not be killed: {}; see `svc strays`",
                bridge.id.short(),
                pids.join(", ")
            );
        }
        left
    }

    /// Live processes of the bridge.
    /// `known` keeps those that were seen, for they may have lost every other mark by the next
    /// look.
    async fn left_of(
        &self,
        bridge: &Bridge,
        known: &mut HashSet<ProcessIdentity>,
    ) -> Vec<ProcessIdentity> {
        if let Some(launch) = &bridge.launch {
            let first = bridge.process.clone().filter(|_| self.has_proof(bridge));
            let (host, id) = (Arc::clone(&self.host), launch.id.clone());
            let found = tokio::task::spawn_blocking(move || host.remains(first.as_ref(), &id));
            let found = found.await.unwrap_or_default();
            known.extend(found.into_iter().map(|process| process.identity));
        }
        known.retain(|process| {
            Some(process) != bridge.process.as_ref()
                // It ends by itself after its agent, and has the last words of it.
                && Some(process) != bridge.keeper.as_ref()
                && self.host.probe(process) == Verdict::Same
        });
        known.iter().cloned().collect()
    }
}
