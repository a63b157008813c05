//! Use-case: one file that helps somebody else to help, without secrets.
//!
//! Nothing but the members listed here is in it, and every byte of them is masked: each text by
//! itself, then each member as a whole.

mod host;
mod masked;

use crate::ops::History;
use crate::ops::doctor::Examiner;
use crate::ops::report::Reports;
use crate::{AppError, Class, VERSION};
use masked::Mask;
use rustix::fs::{Mode, OFlags};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use svc_config::{Loaded, Source, View, show};
use svc_shared::Timestamp;
use svc_shared::error::ErrorCode;
use svc_shared::internal::Doctor;
use svc_shared::internal::support::{BundleListing, BundleMember};
use svc_store::HistoryFilter;

/// File of the state directory in which the service keeps the end of its log.
pub const SERVICE_LOG: &str = "service.log";
/// The part of the log before it.
pub const OLDER_LOG: &str = "service.log.1";
/// Bytes of the log that are taken, of each of the two files.
const LOG_BYTES: u64 = 512 * 1024;
/// Events of the history.
const EVENTS: u32 = 1000;
/// Reports of ended sessions.
const REPORTS: usize = 20;

/// A support bundle that is not written yet.
#[derive(Debug, Clone)]
pub struct SupportBundle {
    created: Timestamp,
    mask: Mask,
    members: Vec<Member>,
}

#[derive(Debug, Clone)]
struct Member {
    name: String,
    says: &'static str,
    content: String,
}

/// Gathers support bundles.
pub struct Support {
    doctor: Arc<Examiner>,
    history: Arc<History>,
    reports: Arc<Reports>,
}

impl Support {
    /// Bundles from what these tell.
    pub(crate) fn new(
        doctor: &Arc<Examiner>,
        history: &Arc<History>,
        reports: &Arc<Reports>,
    ) -> Self {
        Self {
            doctor: Arc::clone(doctor),
            history: Arc::clone(history),
            reports: Arc::clone(reports),
        }
    }

    /// Gathers a bundle around what the doctor found.
    ///
    /// What cannot be read is left out, and the bundle says so.
    pub async fn gather(&self, doctor: &Doctor) -> Result<SupportBundle, AppError> {
        let Examiner { config, origin, agent, clock, .. } = &*self.doctor;
        let mut bundle = SupportBundle::begin(doctor, clock.now());
        let (origin, state_dir) = (origin.clone(), config.state_dir.clone());
        let read = move || {
            let configuration = origin.read_again().and_then(Result::ok).map(|it| configured(&it));
            (configuration, log(&state_dir), host::facts(&state_dir))
        };
        let (configuration, log, host) = crate::tasks::blocking(read).await?;
        let agent = agent.cli().version_now().await.map(|(_, version)| version.to_string());
        let agent = agent.unwrap_or_else(|_| "not found".to_owned());
        bundle.json("versions.json", VERSIONS, &versions(Some(&agent)));
        bundle.json("host.json", HOST, &host);
        bundle.json(
            "configuration.json",
            CONFIGURATION,
            &configuration.unwrap_or_else(|| json!("the file cannot be used; see doctor.json")),
        );
        bundle.text("service.log", LOG, &log);
        let filter = HistoryFilter { limit: EVENTS, ..HistoryFilter::default() };
        let history = match self.history.page(filter).await {
            Ok(page) => serde_json::to_value(page.events).unwrap_or_default(),
            Err(error) => json!(error.message),
        };
        bundle.json("history.json", HISTORY, &history);
        match self.reports.newest(REPORTS).await {
            Ok(reports) => {
                for report in reports {
                    let id = report.id.split('-').next().unwrap_or_default().to_owned();
                    bundle.text(&format!("reports/{id}.md"), REPORT, &report.markdown);
                }
            }
            Err(error) => bundle.text("reports/unreadable.txt", REPORT, &error.message),
        }
        Ok(bundle)
    }
}

const DOCTOR: &str = "what `svc doctor` found";
const VERSIONS: &str = "versions of svc and of the agent";
const HOST: &str = "system, kernel, processor, memory and space of this machine";
const CONFIGURATION: &str = "every key with its source; no secret values";
const LOG: &str = "the end of the service's log";
const HISTORY: &str = "what happened to sessions last";
const REPORT: &str = "why one session stopped";

impl SupportBundle {
    /// A bundle of a machine on which the configuration cannot be used.
    #[must_use]
    pub fn of_unusable(doctor: &Doctor, now: Timestamp) -> Self {
        let mut bundle = Self::begin(doctor, now);
        bundle.json("versions.json", VERSIONS, &versions(None));
        bundle.json("host.json", HOST, &host::facts(Path::new(".")));
        bundle
    }

    fn begin(doctor: &Doctor, created: Timestamp) -> Self {
        let mut bundle = Self { created, mask: Mask::of_this_user(), members: Vec::new() };
        bundle.json("doctor.json", DOCTOR, &serde_json::to_value(doctor).unwrap_or_default());
        bundle
    }

    fn json(&mut self, name: &str, says: &'static str, value: &Value) {
        let content = self.mask.document(value);
        self.members.push(Member { name: name.to_owned(), says, content });
    }

    fn text(&mut self, name: &str, says: &'static str, text: &str) {
        let content = self.mask.text(text);
        self.members.push(Member { name: name.to_owned(), says, content });
    }

    /// What is in it.
    #[must_use]
    pub fn listing(&self) -> BundleListing {
        let member = |member: &Member| BundleMember {
            name: member.name.clone(),
            bytes: u64::try_from(member.content.len()).unwrap_or(u64::MAX),
            says: member.says.to_owned(),
        };
        BundleListing {
            name: format!("{}.tar.gz", self.stem()),
            created: self.created,
            members: self.members.iter().map(member).collect(),
        }
    }

    fn stem(&self) -> String {
        let text = self.created.to_string();
        let seconds = text.split('.').next().unwrap_or_default();
        let stamp: String = seconds.chars().filter(|c| !matches!(c, '-' | ':')).collect();
        format!("svc-support-{stamp}Z")
    }

    /// The archive.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn archive(&self) -> Result<Vec<u8>, AppError> {
        let members =
            self.members.iter().map(|member| (member.name.as_str(), member.content.as_bytes()));
        let mtime = u64::try_from(self.created.as_millis() / 1000).unwrap_or_default();
        svc_archive::pack(&self.stem(), members, mtime).map_err(AppError::internal)
    }

    /// Writes the archive to a new private file; an existing one stays.
    ///
    /// `output` is the file or an existing directory. Blocks.
    ///
    /// # Errors
    /// The path exists, or cannot be written.
    pub fn write(&self, output: &Path) -> Result<PathBuf, AppError> {
        let path = match output.is_dir() {
            true => output.join(format!("{}.tar.gz", self.stem())),
            false => output.to_owned(),
        };
        let archive = self.archive()?;
        svc_process::files::create_whole(&path, &archive).map_err(|error| {
            let text = format!(
                "{} is not written: it exists already, or its directory cannot be written; name \
                 another file with -o",
                path.display()
            );
            AppError::new(ErrorCode::Exists, Class::Unavailable, text).because(error)
        })?;
        Ok(path)
    }
}

fn versions(agent: Option<&str>) -> Value {
    json!({ "svc": VERSION, "agent": agent, "os": std::env::consts::OS, "arch": std::env::consts::ARCH })
}

/// Every key with its masked value and its source.
fn configured(loaded: &Loaded) -> Value {
    let rows = show(loaded, View::Configured).into_iter().map(|row| {
        let source = match &row.source {
            Source::Default => "default".to_owned(),
            Source::File { line } => format!("file, line {line}"),
            Source::Env { name } => format!("variable {name}"),
        };
        (row.key, json!({ "value": row.value, "source": source }))
    });
    Value::Object(rows.collect())
}

/// The end of the log of the service. Blocks.
fn log(state_dir: &Path) -> String {
    let parts = [OLDER_LOG, SERVICE_LOG].map(|name| end_of(&state_dir.join(name)));
    let text = parts.concat();
    match text.is_empty() {
        true => "no service has written a log here yet\n".to_owned(),
        false => text,
    }
}

fn end_of(path: &Path) -> String {
    let read = || -> std::io::Result<String> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        let start = file.metadata()?.len().saturating_sub(LOG_BYTES);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(LOG_BYTES).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(match (start, text.split_once('\n')) {
            (1.., Some((_, whole))) => whole.to_owned(),
            _ => text,
        })
    };
    read().unwrap_or_default() // there is none
}
