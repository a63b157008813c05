//! The live-session registry: `sessions/<pid>.json`, one file per live process.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::calls::now_ms;
use super::double::Double;
use super::home::AgentHome;
use super::process;
use super::values::RegistryKind;

/// What a registered session is doing, in the registry's words.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Status {
    Busy,
    Idle,
    Waiting,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Idle => "idle",
            Self::Waiting => "waiting",
        }
    }
}

/// The entry of the calling process. It stays on disk if the process is killed.
#[derive(Debug)]
pub(crate) struct Entry {
    file: PathBuf,
    fields: Map<String, Value>,
    kind: RegistryKind,
}

impl Entry {
    /// Registers the calling process. Best effort, as in the agent.
    pub(crate) fn register(double: &Double, session: &str, entrypoint: &str, name: &str) -> Self {
        Self::new(double, session, entrypoint, name, None)
    }

    /// Registers the calling process as the session of a background job.
    pub(crate) fn register_job(double: &Double, session: &str, job: &str, name: &str) -> Self {
        Self::new(double, session, "cli", name, Some(job))
    }

    fn new(
        double: &Double,
        session: &str,
        entrypoint: &str,
        name: &str,
        job: Option<&str>,
    ) -> Self {
        let pid = std::process::id();
        let now = now_ms();
        let mut fields = Map::new();
        let mut put = |key: &str, value: Value| fields.insert(key.into(), value);
        put("pid", json!(pid));
        put("sessionId", json!(session));
        put("cwd", json!(double.cwd));
        put("startedAt", json!(now));
        put("procStart", json!(process::own_start()));
        put("version", json!(double.profile.version()));
        if let Some(protocol) = double.profile.peer_protocol() {
            put("peerProtocol", json!(protocol));
        }
        put("kind", json!(if job.is_some() { "bg" } else { "interactive" }));
        if let Some(job) = job {
            put("jobId", json!(job));
        }
        put("entrypoint", json!(entrypoint));
        put("name", json!(name));
        if double.profile.is_future() {
            put("presence", json!({ "focus": "unknown" }));
        }
        match double.knobs.registry {
            RegistryKind::Ok | RegistryKind::Off | RegistryKind::Garbage => {}
            RegistryKind::Stale => {
                put("procStart", json!("1"));
            }
            RegistryKind::WrongPid => {
                put("pid", json!(pid.wrapping_add(1)));
            }
        }
        let file = directory(double).join(format!("{pid}.json"));
        let mut entry = Self { file, fields, kind: double.knobs.registry };
        let _ = DirBuilder::new().recursive(true).mode(0o700).create(directory(double));
        entry.set(Status::Idle);
        entry
    }

    /// Rewrites the entry with a new status.
    pub(crate) fn set(&mut self, status: Status) {
        let now = json!(now_ms());
        self.fields.insert("status".into(), json!(status.word()));
        match status {
            Status::Waiting => self.fields.insert("waitingFor".into(), json!("permission prompt")),
            Status::Busy | Status::Idle => self.fields.remove("waitingFor"),
        };
        self.fields.insert("updatedAt".into(), now.clone());
        self.fields.insert("statusUpdatedAt".into(), now);
        let line = format!("{}\n", Value::Object(self.fields.clone()));
        match self.kind {
            RegistryKind::Off => {}
            RegistryKind::Garbage => self.write(line.get(..line.len() / 2).unwrap_or_default()),
            RegistryKind::Ok | RegistryKind::Stale | RegistryKind::WrongPid => self.write(&line),
        }
    }

    fn write(&self, text: &str) {
        let file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&self.file);
        let _ = file.and_then(|mut file| file.write_all(text.as_bytes()));
    }

    /// What a clean exit does.
    pub(crate) fn remove(&self) {
        if self.kind != RegistryKind::Off {
            let _ = fs::remove_file(&self.file);
        }
    }
}

/// Agents before the registry keep the list where nobody else looks.
fn directory(double: &Double) -> PathBuf {
    if double.profile.has_registry() {
        public(&double.home)
    } else {
        double.home.mark().join("sessions")
    }
}

fn public(home: &AgentHome) -> PathBuf {
    home.dir().join("sessions")
}

/// The entries of live processes, oldest first; files of dead ones are dropped.
pub(crate) fn live(double: &Double) -> Vec<Map<String, Value>> {
    let Ok(entries) = fs::read_dir(directory(double)) else {
        return Vec::new();
    };
    let mut found: Vec<Map<String, Value>> =
        entries.filter_map(|entry| live_entry(&entry.ok()?.path())).collect();
    found.sort_by_key(|fields| fields.get("startedAt").and_then(Value::as_u64));
    found
}

fn live_entry(path: &Path) -> Option<Map<String, Value>> {
    let pid: u32 = path.file_name()?.to_str()?.strip_suffix(".json")?.parse().ok()?;
    let mut fields: Map<String, Value> = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    let start = fields.get("procStart").and_then(Value::as_str).map(str::to_owned);
    if !process::is_same(pid, start.as_deref()) {
        if !process::is_same(pid, None) {
            let _ = fs::remove_file(path);
        }
        return None;
    }
    // Agent 2.1.197: the file's name decides.
    fields.insert("pid".into(), json!(pid));
    Some(fields)
}
