//! The processes of the daemon, and the file that names them to the next one.

use super::process::{Order, Process};
use crate::protocol::{Listed, RpcError, code};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use svc_domain::identity::{Pid, ProcessIdentity, Verdict};
use svc_ports::ProcessHost as _;
use svc_ports::process::{Signal, Target};
use svc_process::{Host, files};
use svc_shared::Timestamp;
use tokio_util::task::TaskTracker;

/// More sessions than a machine carries.
const MOST: usize = 256;
/// Much more than the list of that many processes.
const LARGEST: u64 = 4 << 20;
/// Frames of an ended process are kept so long.
const KEEP_ENDED: Duration = Duration::from_secs(24 * 3600);
/// From the orderly signal to the last one.
const GRACE: Duration = Duration::from_secs(5);

/// A process as the next daemon finds it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Recorded {
    id: String,
    pid: i64,
    start_ticks: u64,
    boot_id: String,
    cwd: String,
    started_at: i64,
}

impl Recorded {
    fn identity(&self) -> Option<ProcessIdentity> {
        Some(ProcessIdentity {
            pid: Pid::new(self.pid)?,
            start_ticks: self.start_ticks,
            boot_id: self.boot_id.parse().ok()?,
        })
    }
}

/// The processes of this daemon.
pub(super) struct Table {
    pub host: Host,
    pub tasks: TaskTracker,
    file: PathBuf,
    processes: Mutex<HashMap<String, Arc<Process>>>,
    /// What an earlier daemon left behind.
    orphans: Mutex<Vec<Recorded>>,
}

impl Table {
    /// Reads what an earlier daemon left behind.
    pub(super) fn new(host: Host, file: PathBuf) -> Self {
        let text = files::read_plain(&file, LARGEST).unwrap_or_default();
        let orphans: Vec<Recorded> = serde_json::from_slice(&text).unwrap_or_default();
        let table = Self {
            host,
            tasks: TaskTracker::new(),
            file,
            processes: Mutex::default(),
            orphans: Mutex::new(orphans),
        };
        table.forget_gone_orphans();
        table
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Process>>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process of this id.
    pub(super) fn get(&self, id: &str) -> Option<Arc<Process>> {
        self.lock().get(id).cloned()
    }

    /// Processes that run.
    pub(super) fn running(&self) -> Vec<Arc<Process>> {
        self.lock().values().filter(|process| process.end().is_none()).cloned().collect()
    }

    /// Starts a process under an id that is free.
    pub(super) fn spawn(&self, order: Order) -> Result<Arc<Process>, RpcError> {
        let mut processes = self.lock();
        let now = super::time::now();
        processes.retain(|_, one| one.end().is_none_or(|end| now.since(end.at) < KEEP_ENDED));
        if processes.contains_key(&order.id) {
            let message = "the id belongs to a process; forget that one first";
            return Err(RpcError::new(code::ALREADY_LIVE, message));
        }
        if processes.len() >= MOST {
            // What has ended makes room, the oldest first.
            let ended = processes.values().filter_map(|one| Some((one.end()?.at, one.id.clone())));
            if let Some((_, oldest)) = ended.min() {
                processes.remove(&oldest);
            }
        }
        if processes.len() >= MOST {
            return Err(RpcError::new(code::CAPACITY, format!("{MOST} processes run")));
        }
        let identify = |pid: u32| {
            let pid = Pid::new(i64::from(pid))?;
            let table = self.host.table();
            let (start_ticks, boot_id) = (table.start_ticks(pid)?, table.boot_id().clone());
            Some(ProcessIdentity { pid, start_ticks, boot_id })
        };
        let process = Process::start(order, identify, &self.tasks)?;
        processes.insert(process.id.clone(), Arc::clone(&process));
        drop(processes);
        self.record();
        Ok(process)
    }

    /// Writes who runs, for the daemon that comes after this one.
    pub(super) fn record(&self) {
        let mut all: Vec<Recorded> =
            self.orphans.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.extend(self.running().iter().map(|process| Recorded {
            id: process.id.clone(),
            pid: i64::from(process.identity.pid.get()),
            start_ticks: process.identity.start_ticks,
            boot_id: process.identity.boot_id.as_str().to_owned(),
            cwd: process.cwd.to_string_lossy().into_owned(),
            started_at: process.started_at.as_millis(),
        }));
        let text = serde_json::to_vec(&all).unwrap_or_default();
        if let Err(error) = files::replace(&self.file, &text) {
            tracing::error!("the list of processes cannot be written: {error}");
        }
    }

    fn forget_gone_orphans(&self) {
        let mut orphans = self.orphans.lock().unwrap_or_else(PoisonError::into_inner);
        orphans.retain(|one| {
            one.identity()
                .is_some_and(|identity| !matches!(self.host.probe(&identity), Verdict::Gone(_)))
        });
    }

    /// Every process, and what an earlier daemon left behind.
    pub(super) fn list(&self) -> Value {
        self.forget_gone_orphans();
        let orphans = self.orphans.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut all: Vec<Value> = orphans
            .iter()
            .map(|one| {
                let listed = Listed {
                    id: one.id.clone(),
                    pid: one.pid,
                    start_time: one.start_ticks,
                    running: true,
                    orphan: true,
                };
                let more = (0, 0, one.cwd.clone(), Timestamp::from_millis(one.started_at));
                entry(&listed, None, more)
            })
            .collect();
        all.extend(self.lock().values().map(|process| {
            let (first, last) = process.range();
            let end = process.end();
            let listed = Listed {
                id: process.id.clone(),
                pid: i64::from(process.identity.pid.get()),
                start_time: process.identity.start_ticks,
                running: end.is_none(),
                orphan: false,
            };
            let cwd = process.cwd.to_string_lossy().into_owned();
            entry(&listed, end.and_then(|end| end.code), (first, last, cwd, process.started_at))
        }));
        json!({ "processes": all })
    }

    /// Forgets a process that has ended.
    pub(super) fn forget(&self, id: &str) -> Result<(), RpcError> {
        let mut processes = self.lock();
        if processes.get(id).is_some_and(|process| process.end().is_none()) {
            return Err(RpcError::new(code::STILL_RUNNING, "the process still runs"));
        }
        processes.remove(id);
        Ok(())
    }

    /// Signals the group of a process whose identity was just proven.
    pub(super) fn signal(&self, process: &Process, signal: Signal) {
        if process.end().is_none() {
            let _ = self.host.signal(&process.identity, signal, Target::Group);
        }
    }

    /// Ends every process: orderly, and after five seconds for good.
    pub(super) async fn end_all(&self) {
        let running = self.running();
        for signal in [Signal::Interrupt, Signal::Kill] {
            running.iter().for_each(|process| self.signal(process, signal));
            let all = async {
                for process in &running {
                    let _ = process.ended().wait_for(Option::is_some).await;
                }
            };
            if tokio::time::timeout(GRACE, all).await.is_ok() {
                break;
            }
        }
        self.record();
    }
}

fn entry(
    listed: &Listed,
    exit_code: Option<i32>,
    (first, last, cwd, started_at): (u64, u64, String, Timestamp),
) -> Value {
    let mut value = serde_json::to_value(listed).unwrap_or_default();
    let more: BTreeMap<&str, Value> = BTreeMap::from([
        ("exitCode", exit_code.into()),
        ("firstSeq", first.into()),
        ("lastSeq", last.into()),
        ("cwd", cwd.into()),
        ("startedAt", started_at.as_millis().into()),
    ]);
    if let Some(members) = value.as_object_mut() {
        members.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
    }
    value
}
