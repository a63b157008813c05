//! A job on disk: `jobs/<8 hex>/state.json`, its timeline, its scratch directory.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::sim::debug_log::timestamp;
use crate::sim::files;
use crate::sim::home::AgentHome;

/// States a job does not leave by itself.
const TERMINAL: [&str; 3] = ["done", "failed", "stopped"];

/// What a new job starts with.
pub(crate) struct Seed<'a> {
    pub(crate) session: &'a str,
    pub(crate) cwd: &'a Path,
    pub(crate) prompt: &'a str,
    pub(crate) name: Option<&'a str>,
    pub(crate) respawn_flags: &'a [String],
}

/// The record of one job.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    id: String,
    dir: PathBuf,
}

impl Record {
    /// The directory of a job, whatever lies in it; `None` if there is none.
    pub(crate) fn open(home: &AgentHome, id: &str) -> Option<Self> {
        let proper = id.len() == 8 && id.bytes().all(|b| b.is_ascii_hexdigit());
        let dir = home.dir().join("jobs").join(id);
        (proper && dir.is_dir()).then(|| Self { id: id.to_owned(), dir })
    }

    /// Writes the first record of a job, before the service knows it (agent 2.1.197).
    /// `AlreadyExists` if another job has the id.
    pub(crate) fn create(home: &AgentHome, seed: &Seed<'_>) -> io::Result<Self> {
        let id = seed.session.get(..8).unwrap_or_default().to_owned();
        let dir = home.dir().join("jobs").join(&id);
        let jobs = home.dir().join("jobs");
        DirBuilder::new().recursive(true).mode(0o755).create(&jobs)?;
        // Not recursive: the id belongs to whoever makes its directory.
        DirBuilder::new().mode(0o755).create(&dir)?;
        DirBuilder::new().mode(0o755).create(dir.join("tmp"))?;
        let record = Self { id, dir };
        let pins = home.dir().join("jobs/pins.json");
        if !pins.exists() {
            fs::write(pins, "{}")?;
        }
        let now = timestamp();
        let idle = seed.prompt.is_empty();
        let mut fields = json!({
            "state": "working",
            "detail": if idle { "(idle — send a prompt to start)" } else { "starting…" },
            "tempo": if idle { "blocked" } else { "active" },
            "output": null, "children": null, "linkScanOffset": 0, "template": "bg",
            "respawnFlags": seed.respawn_flags,
            "providerEnv": { "CLAUDE_CONFIG_DIR": home.dir() },
            "intent": seed.prompt, "sessionId": seed.session, "resumeSessionId": seed.session,
            "daemonShort": record.id, "cwd": seed.cwd, "createdAt": now, "updatedAt": now,
            "firstTerminalAt": null, "backend": "daemon",
        });
        if let Some(fields) = fields.as_object_mut() {
            if idle {
                fields.insert("needs".into(), json!("send a prompt to start"));
            }
            if let Some(name) = seed.name {
                fields.insert("name".into(), json!(name));
                fields.insert("nameSource".into(), json!("user"));
            }
        }
        record.write(&fields)?;
        Ok(record)
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.dir.join("state.json")
    }

    /// The fields, or none if the file is not readable as an object.
    pub(crate) fn fields(&self) -> Option<Map<String, Value>> {
        serde_json::from_slice(&fs::read(self.file()).ok()?).ok()
    }

    pub(crate) fn text(&self, field: &str) -> Option<String> {
        Some(self.fields()?.get(field)?.as_str()?.to_owned())
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.text("state").is_some_and(|state| is_terminal(&state))
    }

    /// Changes fields of a readable record; `null` removes `needs`, and only that.
    pub(crate) fn change(&self, changes: Value) {
        let (Some(mut fields), Value::Object(changes)) = (self.fields(), changes) else {
            return; // torn by someone else: left as it is
        };
        fields.extend(changes);
        if fields.get("needs").is_some_and(Value::is_null) {
            fields.remove("needs");
        }
        let now = timestamp();
        let ended = fields.get("state").and_then(Value::as_str).is_some_and(is_terminal);
        if ended && fields.get("firstTerminalAt").is_none_or(Value::is_null) {
            fields.insert("firstTerminalAt".into(), json!(now));
        }
        fields.insert("updatedAt".into(), json!(now));
        let _ = self.write(&Value::Object(fields)); // the job was removed meanwhile
    }

    /// Appends a state to the timeline.
    pub(crate) fn note(&self, state: &str, detail: &str, text: &str) {
        let line = json!({ "at": timestamp(), "state": state, "detail": detail, "text": text });
        let _ = files::append(&self.dir.join("timeline.jsonl"), format!("{line}\n").as_bytes());
    }

    /// A terminal state, written by whoever saw the end.
    pub(crate) fn settle(&self, state: &str, detail: Option<&str>) {
        if self.is_terminal() {
            return;
        }
        let mut changes = json!({ "state": state, "tempo": "idle", "needs": null });
        if let (Some(detail), Some(changes)) = (detail, changes.as_object_mut()) {
            changes.insert("detail".into(), json!(detail));
        }
        self.change(changes);
    }

    pub(crate) fn remove(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.dir)
    }

    fn write(&self, fields: &Value) -> io::Result<()> {
        let file = self.file();
        let temporary = file.with_extension(format!("json.tmp.{}", std::process::id()));
        fs::write(&temporary, format!("{fields:#}"))?;
        fs::set_permissions(&temporary, fs::Permissions::from_mode(0o600))?;
        fs::rename(&temporary, &file)
    }
}

/// Whether a job in `state` has ended.
pub(crate) fn is_terminal(state: &str) -> bool {
    TERMINAL.contains(&state)
}

/// Every job directory, by id.
pub(crate) fn all(home: &AgentHome) -> Vec<Record> {
    let Ok(entries) = fs::read_dir(home.dir().join("jobs")) else {
        return Vec::new();
    };
    let mut records: Vec<Record> =
        entries.filter_map(|entry| Record::open(home, entry.ok()?.file_name().to_str()?)).collect();
    records.sort_by(|a, b| a.id.cmp(&b.id));
    records
}
