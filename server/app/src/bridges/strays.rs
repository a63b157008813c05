//! Use-cases: processes of bridges that no live bridge answers for, and their end.

use crate::bridges::keepers::is_keeper;
use crate::ops::doctor::last::LastAnswer;
use crate::projects::catalog::Catalog;
use crate::registry::Registry;
use crate::tasks::blocking;
use crate::{AppError, Class, log_files};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use svc_agent::role::runs_recorded;
use svc_config::Config;
use svc_domain::bridge::Bridge;
use svc_domain::identity::{LaunchId, ProcessIdentity};
use svc_domain::strays::{Owner, Shown, judge};
use svc_ports::process::{Carrier, Signal, Signalled, Target};
use svc_ports::{Clock, ProcessHost};
use svc_shared::Timestamp;
use svc_shared::error::ErrorCode;
use svc_shared::internal::strays::{KilledStray, Stray};

/// How long a killed process may take to disappear.
const AFTER_KILL: Duration = Duration::from_secs(2);
/// Launch files are much shorter.
const LAUNCH_FILE_BYTES: u64 = 4096;

/// Processes of bridges that no live bridge answers for.
pub struct Strays {
    pub(crate) config: Arc<Config>,
    pub(crate) host: Arc<dyn ProcessHost>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) doctor: Arc<LastAnswer>,
}

impl Strays {
    /// All strays, by pid.
    ///
    /// # Errors
    /// The registry cannot be read: without it everything would look like a stray.
    pub async fn list(self: &Arc<Self>) -> Result<Vec<Stray>, AppError> {
        let found = self.found().await?;
        Ok(found.into_iter().map(|(_, stray)| stray).collect())
    }

    /// Kills one process that is a stray at this very moment, and nothing else.
    ///
    /// # Errors
    /// It is none, or lives on.
    pub async fn kill(self: &Arc<Self>, pid: i32) -> Result<KilledStray, AppError> {
        // Whatever comes of it, the last answer of the doctor may be about this process.
        self.doctor.forget();
        let found = self.found().await?;
        let Some((identity, _)) = found.into_iter().find(|(_, stray)| stray.pid == pid) else {
            return Err(AppError::new(
                ErrorCode::InvalidValue,
                Class::Conflict,
                format!("process {pid} is no stray of this service; list them with `svc strays`"),
            ));
        };
        let exit = self.host.exited(&identity);
        let sent = self.host.signal(&identity, Signal::Kill, Target::Process);
        let is_gone = match sent {
            Signalled::Gone => true,
            Signalled::Sent => tokio::time::timeout(AFTER_KILL, exit).await.is_ok(),
            Signalled::NotPermitted | Signalled::Unproven => false,
        };
        if is_gone {
            tracing::info!(agent.pid = pid, "stray process {pid} was killed");
            return Ok(KilledStray { pid, killed: true });
        }
        Err(AppError::new(
            ErrorCode::StillLive,
            Class::Conflict,
            format!("process {pid} is still alive; look at it with `ps` and end what it waits for"),
        ))
    }

    async fn found(self: &Arc<Self>) -> Result<Vec<(ProcessIdentity, Stray)>, AppError> {
        let host = Arc::clone(&self.host);
        let carriers = blocking(move || host.carriers()).await?;
        if carriers.is_empty() {
            return Ok(Vec::new());
        }
        // After the look: a bridge that was started meanwhile is known.
        self.registry.live().await?;
        let this = Arc::clone(self);
        blocking(move || this.judged(&carriers)).await
    }

    fn judged(&self, carriers: &[Carrier]) -> Vec<(ProcessIdentity, Stray)> {
        let bridges = self.registry.copies.bridges();
        let of_launch: HashMap<&LaunchId, &Bridge> = bridges
            .iter()
            .filter_map(|bridge| Some((&bridge.launch.as_ref()?.id, bridge)))
            .collect();
        let is_known = |carrier: &Carrier| of_launch.contains_key(&carrier.launch);
        let logged = match carriers.iter().all(is_known) {
            true => HashSet::new(),
            false => logged_launches(&log_files::directory(&self.config)),
        };
        let carried: HashSet<(i32, &LaunchId)> =
            carriers.iter().map(|one| (one.facts.identity.pid.get(), &one.launch)).collect();
        let now = self.clock.now();
        let mut found = Vec::new();
        for Carrier { launch, facts, resident_bytes, age } in carriers {
            let bridge = of_launch.get(launch).copied();
            // With a scope it carries the id as well; it has a list of its own.
            if is_keeper(facts) {
                continue;
            }
            let owner = match bridge {
                Some(bridge) if bridge.is_live() => Owner::Live(bridge.process.as_ref()),
                Some(_) => Owner::Over,
                None if logged.contains(launch) => Owner::Over,
                None => Owner::Foreign,
            };
            let recorded = bridge.and_then(|bridge| bridge.launch.as_ref());
            let command: Vec<String> = recorded
                .map(|launch| launch.argv.iter().skip(1).map(str::to_owned).collect())
                .unwrap_or_default();
            let shown = Shown {
                identity: &facts.identity,
                runs_the_command: runs_recorded(&facts.argv, &command),
                is_child: carried.contains(&(facts.parent, launch)),
            };
            let Some(stray) = judge(owner, shown) else { continue };
            let project = match bridge {
                Some(bridge) => Some(bridge.project.to_string()),
                None => self.catalog.holding(facts.cwd.as_deref()),
            };
            found.push((
                facts.identity.clone(),
                Stray {
                    pid: facts.identity.pid.get(),
                    kind: stray.as_str().to_owned(),
                    project,
                    instance_id: bridge.map(|bridge| bridge.id.clone()),
                    program: program(facts.exe.as_deref(), &facts.argv),
                    started_at: ago(now, *age),
                    rss_bytes: *resident_bytes,
                },
            ));
        }
        found.sort_by_key(|(_, stray)| stray.pid);
        found
    }
}

fn ago(now: Timestamp, age: Duration) -> Timestamp {
    let millis = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_sub(millis))
}

/// Only the name: arguments of foreign programs may hold secrets.
fn program(exe: Option<&Path>, argv: &[String]) -> String {
    let name = exe.or_else(|| argv.first().map(Path::new)).and_then(Path::file_name);
    let name = name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    svc_domain::log_escape::strip_controls(&svc_domain::redact::redact_text(&name)).into_owned()
}

/// Ids of launches whose logs still exist, also those of forgotten bridges.
fn logged_launches(logs: &Path) -> HashSet<LaunchId> {
    let Ok(entries) = std::fs::read_dir(logs) else { return HashSet::new() };
    let files = entries.filter_map(Result::ok).map(|entry| entry.path());
    let named = files.filter(|path| path.to_string_lossy().ends_with(".launch.json"));
    named.filter_map(|path| launch_in(&path)).collect()
}

/// The id of a launch from the file that its launcher wrote.
pub(super) fn launch_in(path: &Path) -> Option<LaunchId> {
    let text = svc_process::files::read_plain(path, LAUNCH_FILE_BYTES).ok()?;
    let content: serde_json::Value = serde_json::from_slice(&text).ok()?;
    content.get("launch_id")?.as_str()?.parse().ok()
}
