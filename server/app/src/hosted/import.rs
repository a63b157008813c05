//! Takes over the Direct Sessions of an earlier service, once.
//!
//! The file is `hosted_state.json`; afterwards it is `hosted_state.json.imported`. Also on a host
//! whose registry holds sessions already: what is known stays as it is. A session whose agent is
//! recorded is taken for running, and whoever follows it finds out whether that is so.

use crate::AppError;
use crate::hosted::HostedParts;
use crate::ops::legacy::{keep_copy, put_aside, read};
use crate::tasks::blocking;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use svc_domain::hosted::{Ended, HostedSession, Outcome, State};
use svc_domain::identity::{Pid, ProcessIdentity};
use svc_hosted::protocol::is_process_id;
use svc_shared::Timestamp;
use svc_shared::ids::ProjectName;
use svc_shared::status::PermissionMode;
use svc_shared::text::session_name;
use tracing::{info, warn};

const FILE: &str = "hosted_state.json";

impl HostedParts {
    /// Takes over what an earlier service left, if it left anything.
    /// Trouble with the file is a warning; the next start tries again.
    pub(super) async fn import(self: &Arc<Self>) -> Result<(), AppError> {
        let path = self.config.state_dir.join(FILE);
        let file = path.clone();
        let found = blocking(move || sessions_of(&file)).await?;
        let records = match found {
            Ok(Some(records)) => records,
            Ok(None) => return Ok(()),
            Err(why) => {
                warn!("no Direct Sessions of an earlier version were taken over: {why}");
                return Ok(());
            }
        };
        let mut taken = 0;
        for (process, record) in &records {
            let Some(session) = self.session_of(process, record) else {
                warn!("a record of {FILE} is left out: its id or project cannot be used");
                continue;
            };
            taken += usize::from(self.rows.store.insert_hosted(&session, &[]).await?);
        }
        match blocking(move || put_aside(&path)).await? {
            Ok(aside) => info!("took over {taken} records of {FILE}, now {}", aside.display()),
            Err(error) => warn!("{FILE} cannot be renamed ({error}); move it away"),
        }
        Ok(())
    }

    fn session_of(&self, process: &str, record: &Value) -> Option<HostedSession> {
        let text = |name: &str| record.get(name).and_then(Value::as_str);
        let number = |name: &str| record.get(name).and_then(Value::as_i64);
        if !is_process_id(process) {
            return None;
        }
        let project: ProjectName = text("project")?.parse().ok()?;
        let id = text("instance_id")?.to_lowercase().parse().ok()?;
        let known = self.rows.view.catalog.all().get(&project).map(|known| known.path.clone());
        let agent = || {
            Some(ProcessIdentity {
                pid: Pid::new(number("agent_pid")?)?,
                start_ticks: u64::try_from(number("agent_start_ticks")?).ok()?,
                boot_id: text("agent_boot_id")?.parse().ok()?,
            })
        };
        let agent = agent();
        let now = self.rows.clock.now();
        let intentional = record.get("intentional_stop").and_then(Value::as_bool).unwrap_or(false);
        let state = match &agent {
            Some(_) if !intentional => State::Running,
            _ => State::Ended(Ended {
                outcome: Outcome::Stopped,
                at: now,
                reason: None,
                code: None,
                signal: None,
                detail: None,
                intentional,
                is_orphan: false,
            }),
        };
        let label = text("label").and_then(|label| session_name(label).ok().flatten());
        Some(HostedSession {
            id,
            process_id: process.to_owned(),
            cwd: known.unwrap_or_else(|| self.config.projects_root.join(project.as_str())),
            label: label.filter(|label| label != project.as_str()),
            permission_mode: text("permission_mode")
                .and_then(|mode| mode.parse().ok())
                .unwrap_or(PermissionMode::Default),
            session_uuid: text("claude_session_uuid").map(str::to_owned),
            state,
            status_since: now,
            generation: 1,
            agent,
            started_at: number("started_at").map(Timestamp::from_millis),
            created_at: now,
            on_limit: None,
            project,
        })
    }
}

/// The records of the file by process id; `None` without a file.
fn sessions_of(path: &Path) -> Result<Option<Vec<(String, Value)>>, String> {
    let Some(bytes) = read(path).map_err(|error| error.to_string())? else { return Ok(None) };
    let copy = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        keep_copy(&PathBuf::from(name), &bytes).map_err(|error| error.to_string())
    };
    let Ok(Value::Object(root)) = serde_json::from_slice::<Value>(&bytes) else {
        copy(".corrupt.bak")?;
        warn!("{FILE} is no JSON object; a copy of it is kept");
        return Ok(Some(Vec::new()));
    };
    if root.get("schema_version").and_then(Value::as_i64) != Some(1) {
        copy(".bak")?;
    }
    let sessions = root.get("sessions").and_then(Value::as_object);
    let records = sessions.into_iter().flatten().filter(|(_, record)| record.is_object());
    Ok(Some(records.map(|(id, record)| (id.clone(), record.clone())).collect()))
}
