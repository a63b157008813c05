//! Use-cases on the `state.json` that an earlier service kept its records in.
//! Taken over once, then put aside, never lost.

mod state_file;

use crate::AppError;
use crate::projects::catalog::Catalog;
use crate::registry::Registry;
use crate::tasks::blocking;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use state_file::{Record, canonical, lenient};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use svc_config::Config;
use svc_domain::bridge::{Beginning, Bridge, Ended, Outcome, State};
use svc_domain::log_escape::quoted;
use svc_ports::Clock;
use svc_process::files;
use svc_shared::ids::{InstanceId, ProjectName};
use svc_shared::status::{Origin, ResumeMode};
use svc_shared::text::session_name;
use tracing::{info, warn};
use uuid::Uuid;

/// The file of the earlier service.
const FILE: &str = "state.json";
/// Largest file that is read, bytes: a record has some hundred.
const LARGEST: u64 = 64 * 1024 * 1024;

/// What `migrate` found and did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Migrated {
    /// There is no file; nothing was written.
    NoFile,
    /// The file is at the schema of this version now.
    Done {
        /// Records in it.
        records: usize,
    },
}

/// Why a `state.json` stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum LegacyError {
    /// It cannot be read.
    #[error("{path} cannot be read ({cause}); make it readable and try again")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// Its content is not what it should be.
    #[error("{path} is left as it is, because {reason}; correct it or move it away")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong, without content.
        reason: String,
    },
    /// A copy or the new content cannot be written.
    #[error("{path} cannot be written ({cause}); free some space or correct the permissions")]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
}

/// Rewrites the `state.json` of a state directory in its canonical form. Blocks.
///
/// # Errors
/// Nothing was written, except perhaps the copy of a file of another version.
pub fn migrate(state_dir: &Path) -> Result<Migrated, LegacyError> {
    let path = state_dir.join(FILE);
    let Some(bytes) = read(&path)? else { return Ok(Migrated::NoFile) };
    let canonical =
        canonical(&bytes).map_err(|reason| LegacyError::Unusable { path: path.clone(), reason })?;
    if canonical.is_other_version {
        keep_copy(&beside(&path, ".bak"), &bytes)?;
    }
    files::replace(&path, canonical.text.as_bytes())
        .map_err(|error| LegacyError::Unwritable { path, cause: io::Error::other(error) })?;
    Ok(Migrated::Done { records: canonical.records })
}

/// Takes over the records of an earlier service.
pub struct LegacyImport {
    config: Arc<Config>,
    registry: Arc<Registry>,
    catalog: Arc<Catalog>,
    clock: Arc<dyn Clock>,
}

impl LegacyImport {
    /// An import into this registry.
    pub(crate) fn new(
        config: &Arc<Config>,
        registry: &Arc<Registry>,
        catalog: &Arc<Catalog>,
        clock: &Arc<dyn Clock>,
    ) -> Self {
        let (config, registry) = (Arc::clone(config), Arc::clone(registry));
        Self { config, registry, catalog: Arc::clone(catalog), clock: Arc::clone(clock) }
    }

    /// Takes over the records of an earlier service, once.
    /// Only into a registry that never held a bridge, so that what was forgotten stays so. Trouble
    /// with the file is a warning; the next start tries again.
    ///
    /// # Errors
    /// The registry cannot be read.
    pub async fn run(&self) -> Result<(), AppError> {
        let path = self.config.state_dir.join(FILE);
        let look = path.clone();
        if !blocking(move || is_there(&look)).await? || !self.registry.store.is_unused().await? {
            return Ok(());
        }
        let file = path.clone();
        let records = match blocking(move || records_of(&file)).await? {
            Ok(Some(records)) => records,
            Ok(None) => return Ok(()),
            Err(error) => {
                warn!("no records of an earlier version were taken over: {error}");
                return Ok(());
            }
        };
        let bridges: Vec<Bridge> =
            records.iter().filter_map(|record| self.bridge_of(record)).collect();
        match self.registry.store.import(&bridges, self.clock.now()).await {
            // Written here, but taken over from nowhere: the next look reads them.
            Ok(true) => self.registry.copies.invalidate(),
            // Somebody else was faster.
            Ok(false) => return Ok(()),
            Err(error) => {
                warn!(error = %error, "the records of {FILE} could not be written; the next start tries again");
                return Ok(());
            }
        }
        match blocking(move || put_aside(&path)).await? {
            Ok(aside) => info!(
                "took over {} records of {FILE}, which is now {}",
                bridges.len(),
                aside.display()
            ),
            Err(error) => warn!(
                "took over {} records of {FILE}, which cannot be renamed ({error}); move it away",
                bridges.len()
            ),
        }
        Ok(())
    }

    /// A stopped bridge.
    /// `None`, with a warning, where the name can be none of a project.
    fn bridge_of(&self, record: &Record) -> Option<Bridge> {
        let shown = quoted(&record.project);
        let Ok(project) = record.project.parse::<ProjectName>() else {
            warn!("the record of {shown} in {FILE} is left out: no project can have that name");
            return None;
        };
        let id = instance_id(&record.project)?;
        let defaults = &self.config.instance_defaults;
        let custom_name = record.label.as_deref().and_then(|label| match session_name(label) {
            Ok(name) => name.filter(|name| name != project.as_str()),
            Err(error) => {
                warn!("the label of {shown} in {FILE} is left out: {error}");
                None
            }
        });
        let known = self.catalog.all().get(&project).map(|project| project.path.clone());
        let now = self.clock.now();
        let state = State::Ended(Ended {
            outcome: Outcome::Stopped,
            at: now,
            intentional: record.intentional_stop,
            forced: false,
            reason: None,
            exit_code: None,
            exit_signal: None,
            detail: None,
        });
        let root = &self.config.projects_root;
        Some(Bridge {
            custom_name,
            resume_mode: word(&shown, "resume_mode", &record.resume_mode, ResumeMode::Standard),
            spawn_mode: word(&shown, "spawn_mode", &record.spawn_mode, defaults.spawn_mode),
            permission_mode: word(
                &shown,
                "permission_mode",
                &record.permission_mode,
                defaults.permission_mode,
            ),
            ..Bridge::begin(Beginning {
                id,
                cwd: known.unwrap_or_else(|| root.join(project.as_str())),
                project,
                origin: Origin::Spawned,
                state,
                at: now,
            })
        })
    }
}

/// The same id for the same project, so that a second import doubles nothing.
fn instance_id(project: &str) -> Option<InstanceId> {
    let name = format!("svc.instance.{project}");
    Uuid::new_v5(&Uuid::NAMESPACE_DNS, name.as_bytes()).to_string().parse().ok()
}

fn word<T: std::str::FromStr>(project: &str, field: &str, raw: &Option<String>, usual: T) -> T {
    let Some(raw) = raw else { return usual };
    raw.parse().unwrap_or_else(|_| {
        warn!(
            "`{field}` of {project} in {FILE} is {}, which this version does not know; the \
             default is used",
            quoted(raw)
        );
        usual
    })
}

fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// The records, `None` without a file.
/// A file that is none counts as empty, and is copied once.
fn records_of(path: &Path) -> Result<Option<Vec<Record>>, LegacyError> {
    let Some(bytes) = read(path)? else { return Ok(None) };
    match lenient(&bytes) {
        Ok(reading) => {
            for remark in &reading.remarks {
                warn!("a part of {FILE} is left out: {remark}");
            }
            if reading.is_other_version {
                keep_copy(&beside(path, ".bak"), &bytes)?;
            }
            Ok(Some(reading.records))
        }
        Err(reason) => {
            let copy = beside(path, ".corrupt.bak");
            keep_copy(&copy, &bytes)?;
            warn!(
                "{FILE} holds no records that can be read, because {reason}; it is kept as {}",
                copy.display()
            );
            Ok(Some(Vec::new()))
        }
    }
}

pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, LegacyError> {
    let unreadable = |cause| LegacyError::Unreadable { path: path.to_owned(), cause };
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_there(path) => {
            return Ok(None);
        }
        Err(error) => return Err(unreadable(error)),
        // A pipe would be waited for.
        Ok(meta) if !meta.is_file() => {
            return Err(unreadable(io::Error::other("it is not a regular file")));
        }
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > LARGEST {
        return Err(unreadable(io::Error::other("it is larger than 64 MiB")));
    }
    Ok(Some(bytes))
}

/// The first copy is the one to keep.
pub(crate) fn keep_copy(path: &Path, bytes: &[u8]) -> Result<(), LegacyError> {
    let unwritable = |cause| LegacyError::Unwritable { path: path.to_owned(), cause };
    if is_there(path) {
        return Ok(());
    }
    files::replace(path, bytes).map_err(|error| unwritable(io::Error::other(error)))
}

/// Renames the file to the first free name of `.imported`, `.imported.1` and so on.
pub(crate) fn put_aside(path: &Path) -> io::Result<PathBuf> {
    let names = std::iter::once(".imported".to_owned())
        .chain((1..1000).map(|number| format!(".imported.{number}")));
    for name in names {
        let target = beside(path, &name);
        match renameat_with(CWD, path, CWD, &target, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(target),
            Err(Errno::EXIST) => {}
            // A file system without that flag.
            Err(Errno::INVAL | Errno::NOSYS) if !is_there(&target) => {
                fs::rename(path, &target)?;
                return Ok(target);
            }
            Err(Errno::INVAL | Errno::NOSYS) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::other("there are a thousand such files already"))
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_project_is_the_documented_one() {
        // `python3 -c "import uuid; print(uuid.uuid5(uuid.NAMESPACE_DNS, 'svc.instance.app'))"`
        let id = instance_id("app").unwrap();
        assert_eq!(id.as_str(), "0986a69d-9aa0-5381-af2d-cbc01726f9da");
    }

    #[test]
    fn nothing_that_was_put_aside_is_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        for (content, name) in [
            ("1", "state.json.imported"),
            ("2", "state.json.imported.1"),
            ("3", "state.json.imported.2"),
        ] {
            fs::write(&path, content).unwrap();
            assert_eq!(put_aside(&path).unwrap(), dir.path().join(name));
        }
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(read("state.json.imported"), "1");
        assert_eq!(read("state.json.imported.2"), "3");
        assert!(!path.exists());
    }

    #[test]
    fn migrating_keeps_another_version_and_refuses_what_it_does_not_understand() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        assert_eq!(migrate(dir.path()).unwrap(), Migrated::NoFile);
        assert!(!path.exists(), "an empty one is never made");

        let old = r#"{"schema_version":0,"instances":{"app":{"label":"x"}}}"#;
        fs::write(&path, old).unwrap();
        assert_eq!(migrate(dir.path()).unwrap(), Migrated::Done { records: 1 });
        assert_eq!(fs::read_to_string(dir.path().join("state.json.bak")).unwrap(), old);
        let canonical = fs::read_to_string(&path).unwrap();
        assert!(canonical.starts_with("{\n  \"schema_version\": 1,\n"), "{canonical}");

        for bad in ["{", "[]", r#"{"instances":{"app":5}}"#] {
            fs::write(&path, bad).unwrap();
            assert!(matches!(migrate(dir.path()), Err(LegacyError::Unusable { .. })), "{bad}");
            assert_eq!(fs::read_to_string(&path).unwrap(), bad, "byte for byte as it was");
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(matches!(migrate(dir.path()), Err(LegacyError::Unreadable { .. })));
    }
}
