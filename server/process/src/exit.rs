//! How processes end, and who is told.
//!
//! Our own children are collected here and nowhere else: a status somebody else collects is lost.
//! The end of other processes is told by the kernel through a process descriptor, or where there
//! is none by looking now and then.

use crate::scopes::memory_kills::MemoryKills;
use crate::table::ProcTable;
use rustix::process::Signal;
use std::collections::{HashMap, VecDeque};
use std::os::unix::process::ExitStatusExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use svc_domain::identity::{ProcessIdentity, Verdict, verdict};
use svc_ports::process::ExitReport;
use tokio::process::Child;
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;

/// How the end of a process that is not our child is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExitWatch {
    /// The kernel tells (Linux 5.3); falls back to polling where it cannot.
    #[default]
    Kernel,
    /// The process table is looked at, at first every half second, later every two.
    Polling,
}

/// Reports of ended children kept for late askers; older ones answer "status unknown".
const ENDED_KEPT: usize = 1024;

const POLL_FIRST: Duration = Duration::from_millis(500);
const POLL_LAST: Duration = Duration::from_secs(2);

/// Children of this process and how they ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Children {
    inner: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    reports: HashMap<ProcessIdentity, watch::Receiver<Option<ExitReport>>>,
    /// Of children that run in a scope.
    memory_kills: HashMap<ProcessIdentity, Counting>,
    ended: VecDeque<ProcessIdentity>,
}

/// A count of kills for memory, and the task that reads it.
#[derive(Debug)]
struct Counting {
    kills: Arc<MemoryKills>,
    task: AbortHandle,
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Ends a child by force, safely at any time: the number belongs to it until it is collected.
#[derive(Debug)]
pub(crate) struct KillSwitch(oneshot::Sender<()>);

impl KillSwitch {
    pub(crate) fn pull(self) {
        let _ = self.0.send(()); // already collected: nothing to kill
    }
}

impl Children {
    /// Watches a child until it has ended. The task ends with the child; when the runtime goes
    /// first, the child lives on and the init process collects it.
    pub(crate) fn adopt(&self, identity: ProcessIdentity, mut child: Child) -> KillSwitch {
        let (report, reports) = watch::channel(None);
        let (kill, mut killed) = oneshot::channel();
        let children = self.clone();
        self.known().reports.insert(identity.clone(), reports);
        tokio::spawn(async move {
            let mut may_kill = true;
            let status = loop {
                tokio::select! {
                    status = child.wait() => break status,
                    order = &mut killed, if may_kill => {
                        may_kill = false;
                        if order.is_ok() && let Err(error) = child.start_kill() {
                            tracing::debug!(%error, "a launcher could not be killed");
                        }
                    }
                }
            };
            let counting = children.known().memory_kills.remove(&identity);
            let ended = match status {
                Ok(status) => {
                    let is_killed = status.signal() == Some(Signal::KILL.as_raw());
                    let oom_kill = match counting {
                        Some(counting) if is_killed => has_risen(&counting.kills).await,
                        Some(_) | None => false,
                    };
                    ExitReport { code: status.code(), signal: status.signal(), oom_kill }
                }
                Err(error) => {
                    tracing::warn!(%error, "the exit status of a child could not be collected");
                    ExitReport::default()
                }
            };
            report.send_replace(Some(ended));
            children.remember_ended(identity);
        });
        KillSwitch(kill)
    }

    /// Keeps the count of kills for memory in the scope of a child until the child ends.
    pub(crate) fn count_memory_kills(&self, identity: &ProcessIdentity, kills: MemoryKills) {
        let kills = Arc::new(kills);
        let mut known = self.known();
        // A child that has ended would leave its count here.
        if known.reports.get(identity).is_some_and(|report| report.borrow().is_none()) {
            let followed = Arc::clone(&kills);
            let task = tokio::spawn(async move { followed.follow().await }).abort_handle();
            known.memory_kills.insert(identity.clone(), Counting { kills, task });
        }
    }

    /// Whether this is our child and its status is not collected yet.
    pub(crate) fn is_uncollected(&self, identity: &ProcessIdentity) -> bool {
        self.known().reports.get(identity).is_some_and(|report| report.borrow().is_none())
    }

    /// Tells how a child ended, or ends; `None` when it is not our child.
    pub(crate) fn report(
        &self,
        identity: &ProcessIdentity,
    ) -> Option<watch::Receiver<Option<ExitReport>>> {
        self.known().reports.get(identity).cloned()
    }

    fn remember_ended(&self, identity: ProcessIdentity) {
        let mut known = self.known();
        known.memory_kills.remove(&identity);
        known.ended.push_back(identity);
        if known.ended.len() > ENDED_KEPT
            && let Some(oldest) = known.ended.pop_front()
        {
            known.reports.remove(&oldest);
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // The maps are consistent after every statement: a panic elsewhere spoils nothing.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn has_risen(kills: &Arc<MemoryKills>) -> bool {
    let kills = Arc::clone(kills);
    tokio::task::spawn_blocking(move || kills.has_risen()).await.unwrap_or(false)
}

/// Waits for the report of our own child.
pub(crate) async fn of_child(mut report: watch::Receiver<Option<ExitReport>>) -> ExitReport {
    match report.wait_for(Option::is_some).await {
        Ok(ended) => ended.unwrap_or_default(),
        // The runtime ended with its tasks: nobody will know any more.
        Err(_) => ExitReport::default(),
    }
}

/// Waits until a process that is not our child has ended; its status goes to its parent.
pub(crate) async fn of_stranger(
    table: ProcTable,
    identity: ProcessIdentity,
    how: ExitWatch,
) -> ExitReport {
    match how {
        ExitWatch::Kernel => {
            if !told_by_kernel(&table, &identity).await {
                poll(&table, &identity).await;
            }
        }
        ExitWatch::Polling => poll(&table, &identity).await,
    }
    ExitReport::default()
}

/// Returns true once the process has ended; false when the kernel cannot tell.
#[cfg(target_os = "linux")]
async fn told_by_kernel(table: &ProcTable, identity: &ProcessIdentity) -> bool {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    use tokio::io::{Interest, unix::AsyncFd};

    let Some(pid) = Pid::from_raw(identity.pid.get()) else {
        return true;
    };
    let descriptor = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(descriptor) => descriptor,
        Err(rustix::io::Errno::SRCH) => return true,
        Err(_) => return false,
    };
    // The number may have changed hands before it was opened: the proof comes after.
    match judge(table, identity) {
        Verdict::Same => {}
        Verdict::Gone(_) => return true,
        Verdict::Unknown => return false,
    }
    #[expect(
        deprecated,
        reason = "its successor is unsafe because a type may lie about its descriptor; the \
                  standard library's owned descriptor does not, and unsafe is forbidden here"
    )]
    let registered = AsyncFd::with_interest(descriptor, Interest::READABLE);
    match registered {
        Ok(descriptor) => descriptor.readable().await.is_ok(),
        Err(_) => false,
    }
}

#[cfg(not(target_os = "linux"))]
async fn told_by_kernel(_: &ProcTable, _: &ProcessIdentity) -> bool {
    false
}

async fn poll(table: &ProcTable, identity: &ProcessIdentity) {
    let mut pause = POLL_FIRST;
    // An unreadable process is not known to have ended: that is no reason to stop looking.
    while !matches!(judge(table, identity), Verdict::Gone(_)) {
        tokio::time::sleep(pause).await;
        pause = pause.saturating_mul(2).min(POLL_LAST);
    }
}

fn judge(table: &ProcTable, identity: &ProcessIdentity) -> Verdict {
    verdict(identity, table.boot_id(), &table.observe(identity.pid))
}
