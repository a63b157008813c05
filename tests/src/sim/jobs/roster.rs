//! `daemon/roster.json`: the live hosts of the background service.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::{Map, Value, json};

use crate::sim::calls::now_ms;
use crate::sim::home::AgentHome;
use crate::sim::{files, process, signals};

/// One entry: the host of a job.
#[derive(Debug, Clone)]
pub(crate) struct Worker {
    pub(crate) pid: u32,
    pub(crate) start: Option<String>,
    /// Everything the file says about it.
    pub(crate) fields: Map<String, Value>,
}

impl Worker {
    pub(crate) fn is_alive(&self) -> bool {
        process::is_same(self.pid, self.start.as_deref())
    }

    /// Ends the host if it is still the recorded process; its session ends with it.
    pub(crate) fn kill(&self) {
        if self.is_alive() {
            signals::send(self.pid, Signal::TERM);
        }
    }
}

fn file(home: &AgentHome) -> PathBuf {
    home.dir().join("daemon/roster.json")
}

/// The workers of the last roster, whoever wrote it.
pub(crate) fn read(home: &AgentHome) -> BTreeMap<String, Worker> {
    let found = || -> Option<BTreeMap<String, Worker>> {
        let roster: Value = serde_json::from_slice(&fs::read(file(home)).ok()?).ok()?;
        let workers = roster.get("workers")?.as_object()?;
        let worker = |fields: &Value| {
            let fields = fields.as_object()?;
            Some(Worker {
                pid: u32::try_from(fields.get("pid")?.as_u64()?).ok()?,
                start: fields.get("procStart").and_then(Value::as_str).map(str::to_owned),
                fields: fields.clone(),
            })
        };
        Some(workers.iter().filter_map(|(id, w)| Some((id.clone(), worker(w)?))).collect())
    };
    found().unwrap_or_default()
}

/// Replaces the roster; mode 0600, as the agent's.
pub(crate) fn write(
    home: &AgentHome,
    supervisor: u32,
    workers: &BTreeMap<String, Value>,
) -> io::Result<()> {
    let file = file(home);
    if let Some(dir) = file.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    let roster = json!({
        "proto": 1, "supervisorPid": supervisor, "updatedAt": now_ms(), "workers": workers,
    });
    files::replace(&file, format!("{roster:#}").as_bytes())?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600))
}

/// Removes one worker from the roster, after a command ended it without a service.
pub(crate) fn drop_worker(home: &AgentHome, id: &str) {
    let supervisor = fs::read(file(home))
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok())
        .and_then(|roster| u32::try_from(roster.get("supervisorPid")?.as_u64()?).ok());
    let left: BTreeMap<String, Value> = read(home)
        .into_iter()
        .filter(|(other, _)| other != id)
        .map(|(id, worker)| (id, Value::Object(worker.fields)))
        .collect();
    let _ = write(home, supervisor.unwrap_or(0), &left); // the next service writes it anew
}
