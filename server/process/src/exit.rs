//! Waiting for processes to end.
//!
//! The exit status of our own children is collected here and nowhere else: a status that somebody else
//! collects is lost. The kernel reports the end of other processes through a process descriptor,
//! and keeps their status behind it (Linux 6.15). If it has none, the process table is polled.

use crate::scopes::memory_kills::MemoryKills;
use crate::table::ProcTable;
#[cfg(target_os = "linux")]
use rustix::io::Errno;
use rustix::process::Signal;
use std::collections::{HashMap, VecDeque};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use svc_domain::identity::{Pid, ProcessIdentity, Verdict, verdict};
use svc_ports::process::ExitReport;
use tokio::process::Child;
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;

/// How the end of a process that is not our child is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExitWatch {
    /// The kernel reports it (Linux 5.3). Falls back to polling if it cannot.
    #[default]
    Kernel,
    /// The process table is read every half second at first, later every two seconds.
    Polling,
}

/// Reports of ended children that are kept. For older ones the status is unknown.
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

/// Kills a child. Safe at any time: its pid is not reused before it is collected.
#[derive(Debug)]
pub(crate) struct KillSwitch(oneshot::Sender<()>);

impl KillSwitch {
    pub(crate) fn pull(self) {
        let _ = self.0.send(()); // already collected: nothing to kill
    }
}

impl Children {
    /// Waits in a task until a child has ended.
    ///
    /// If the runtime ends first, the child lives on and the init process collects it.
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

    /// Takes over the children that this process had before its program was replaced.
    ///
    /// Nobody else collects them, and an ended one would stay in the process table for ever.
    pub(crate) fn take_over(&self, table: &ProcTable) {
        let own = rustix::process::getpid().as_raw_pid();
        for stat in table.snapshot().into_iter().filter(|stat| stat.parent == own) {
            let Some(pid) = Pid::new(i64::from(stat.pid)) else { continue };
            let start_ticks = stat.start_ticks;
            let identity = ProcessIdentity { pid, start_ticks, boot_id: table.boot_id().clone() };
            let (report, reports) = watch::channel(None);
            self.known().reports.insert(identity.clone(), reports);
            let (children, table) = (self.clone(), table.clone());
            tokio::spawn(async move {
                until_ended(&table, &identity).await;
                let ended = collected(pid);
                report.send_replace(Some(ended));
                children.remember_ended(identity);
            });
        }
    }

    /// Follows the count of kills for memory in a child's scope until the child ends.
    pub(crate) fn count_memory_kills(&self, identity: &ProcessIdentity, kills: MemoryKills) {
        let kills = Arc::new(kills);
        let mut known = self.known();
        // The count of a child that has ended would never be removed.
        if known.reports.get(identity).is_some_and(|report| report.borrow().is_none()) {
            let followed = Arc::clone(&kills);
            let task = tokio::spawn(async move { followed.follow().await }).abort_handle();
            known.memory_kills.insert(identity.clone(), Counting { kills, task });
        }
    }

    /// Whether this is our child and its exit status is not collected yet.
    pub(crate) fn is_uncollected(&self, identity: &ProcessIdentity) -> bool {
        self.known().reports.get(identity).is_some_and(|report| report.borrow().is_none())
    }

    /// A channel with the exit report of a child. `None` if it is not our child.
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
        // The maps are consistent after every statement, so a poisoned mutex is fine.
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
        // The runtime ended with its tasks: nobody will know the status any more.
        Err(_) => ExitReport::default(),
    }
}

/// Milliseconds between two looks at a status that waits for its parent.
#[cfg(target_os = "linux")]
const COLLECTED_AFTER: [u64; 4] = [1, 4, 16, 64];

/// Waits until a process that is not our child has ended.
///
/// Its exit status goes to its parent. The report has it while the parent did not collect it, and
/// where the kernel keeps it (Linux 6.15).
pub(crate) async fn of_other(
    table: ProcTable,
    identity: ProcessIdentity,
    how: ExitWatch,
) -> ExitReport {
    let status = match how {
        ExitWatch::Kernel => match reported_by_kernel(&table, &identity).await {
            Some(status) => status,
            None => poll(&table, &identity).await,
        },
        ExitWatch::Polling => poll(&table, &identity).await,
    };
    status.map_or_else(ExitReport::default, |status| ExitReport {
        code: status.code(),
        signal: status.signal(),
        oom_kill: false,
    })
}

/// Returns what is known of the status when the process has ended.
///
/// `None` if the kernel cannot report the end.
#[cfg(target_os = "linux")]
async fn reported_by_kernel(
    table: &ProcTable,
    identity: &ProcessIdentity,
) -> Option<Option<ExitStatus>> {
    use svc_pidfd::Pidfd;
    use tokio::io::{Interest, unix::AsyncFd};

    let Some(pid) = rustix::process::Pid::from_raw(identity.pid.get()) else {
        return Some(None);
    };
    let descriptor = match Pidfd::open(pid) {
        Ok(descriptor) => descriptor,
        Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => {
            return Some(None);
        }
        Err(_) => return None,
    };
    // The pid may have been reused before it was opened. So the identity is proven afterwards.
    match judge(table, identity) {
        Verdict::Same => {}
        Verdict::Gone(_) => return Some(table.uncollected_status(identity)),
        Verdict::Unknown => return None,
    }
    #[expect(
        deprecated,
        reason = "its successor is unsafe because a type may lie about its descriptor; the \
                  standard library's owned descriptor does not, and unsafe is forbidden here"
    )]
    let registered = AsyncFd::with_interest(descriptor, Interest::READABLE).ok()?;
    drop(registered.readable().await.ok()?);
    // Before it is collected the status is in the process table, afterwards behind the descriptor.
    // In this order nothing is missed when it is collected in between.
    let known =
        || table.uncollected_status(identity).or_else(|| registered.get_ref().collected_status());
    for pause in COLLECTED_AFTER {
        match known() {
            // The table does not tell 0 from a status that is hidden: the parent collects it soon.
            None if table.is_uncollected(identity) => {
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
            status => return Some(status.or_else(|| registered.get_ref().collected_status())),
        }
    }
    Some(known())
}

#[cfg(not(target_os = "linux"))]
async fn reported_by_kernel(_: &ProcTable, _: &ProcessIdentity) -> Option<Option<ExitStatus>> {
    None
}

/// Waits until a child that was taken over has ended. Its status stays uncollected.
async fn until_ended(table: &ProcTable, identity: &ProcessIdentity) {
    if end_of_child(identity.pid).await.is_none() {
        poll(table, identity).await;
    }
}

/// `None` if the kernel cannot report the end.
#[cfg(target_os = "linux")]
async fn end_of_child(pid: Pid) -> Option<()> {
    use svc_pidfd::Pidfd;
    use tokio::io::{Interest, unix::AsyncFd};

    // An uncollected child keeps its pid, so this is the child and nobody else.
    let descriptor = Pidfd::open(rustix::process::Pid::from_raw(pid.get())?).ok()?;
    #[expect(
        deprecated,
        reason = "its successor is unsafe because a type may lie about its descriptor; the \
                  standard library's owned descriptor does not, and unsafe is forbidden here"
    )]
    let registered = AsyncFd::with_interest(descriptor, Interest::READABLE).ok()?;
    drop(registered.readable().await.ok()?);
    Some(())
}

#[cfg(not(target_os = "linux"))]
async fn end_of_child(_: Pid) -> Option<()> {
    None
}

/// Collects the status of a child that has ended.
fn collected(pid: Pid) -> ExitReport {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let Some(raw) = rustix::process::Pid::from_raw(pid.get()) else {
        return ExitReport::default();
    };
    match waitid(WaitId::Pid(raw), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
        Ok(Some(status)) => ExitReport {
            code: status.exit_status(),
            signal: status.terminating_signal(),
            oom_kill: false,
        },
        Ok(None) | Err(_) => ExitReport::default(),
    }
}

async fn poll(table: &ProcTable, identity: &ProcessIdentity) -> Option<ExitStatus> {
    let mut pause = POLL_FIRST;
    // An unreadable process has perhaps not ended: go on polling.
    while !matches!(judge(table, identity), Verdict::Gone(_)) {
        tokio::time::sleep(pause).await;
        pause = pause.saturating_mul(2).min(POLL_LAST);
    }
    table.uncollected_status(identity)
}

fn judge(table: &ProcTable, identity: &ProcessIdentity) -> Verdict {
    verdict(identity, table.boot_id(), &table.observe(identity.pid))
}
