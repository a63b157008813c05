//! The audit log of configuration.
//! Who changed what and when, never to which value (`configuration` §8).
//!
//! An entry is durable before the change that it announces. A change that fails afterwards gets a
//! second entry.

use crate::{AppError, Role};
use rustix::fs::{Mode, OFlags, fchmod, open};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::future::Future;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use svc_ports::Clock;
use svc_process::locks::FileLocks;
use svc_shared::Timestamp;

/// Size from which the log is rotated before the next entry.
const ROTATE_AT: u64 = 5_242_880;
/// Rotated files that are kept.
const KEPT: u32 = 5;
/// Ends the action of an entry about a change that failed.
const FAILED: &str = "-failed";
/// Another entry takes milliseconds to write.
const LOCK_WAIT: Duration = Duration::from_secs(5);

tokio::task_local! {
    static ACTOR: Actor;
}

/// Who changes something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actor {
    /// The operator in a browser, or anybody where nobody is asked.
    Admin,
    /// A named token.
    Token(String),
    /// The token of the configuration, which has no name.
    UnnamedToken,
    /// A user that a trusted proxy names.
    Proxy(String),
    /// A user of this machine, by a command.
    Command(String),
    /// Whoever fills in the setup page.
    Setup,
    /// Whoever edited the configuration file by hand.
    ByHand,
    /// The service by itself, as its configuration asks.
    Service,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Admin => f.write_str("admin"),
            Self::Token(label) => write!(f, "token:{label}"),
            Self::UnnamedToken => f.write_str("token"),
            Self::Proxy(user) => write!(f, "proxy:{user}"),
            Self::Command(user) => write!(f, "cli:{user}"),
            Self::Setup => f.write_str("setup"),
            Self::ByHand => f.write_str("file"),
            Self::Service => f.write_str("service"),
        }
    }
}

/// Runs work in the name of somebody.
/// The audit log names them for whatever it changes.
pub async fn acting_as<F: Future>(actor: Actor, work: F) -> F::Output {
    ACTOR.scope(actor, work).await
}

/// The work in the name of whoever is served now, also on another task.
pub fn acting_as_now<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let actor = current();
    async move {
        match actor {
            Some(actor) => acting_as(actor, work).await,
            None => work.await,
        }
    }
}

/// Part of the product through which something is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Surface {
    Trust,
    ApiToken,
    Restore,
    Setup,
    Terminal,
    AgentSignIn,
    Environments,
    ClaudeMd,
    Settings,
    Permissions,
    Hooks,
    Mcp,
    McpApprovals,
    SkillOverrides,
    Skills,
    Subagents,
    Plugins,
    Marketplaces,
    Config,
    ConfigAdvanced,
    ConfigReconcile,
    Deps,
}

/// How far a change reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Scope {
    Global,
    Project,
    Local,
    User,
}

/// A change that is about to be made.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub surface: Surface,
    pub scope: Scope,
    /// File or name of what changes.
    pub target: String,
    pub action: &'static str,
    /// Names of the keys, sorted.
    pub keys: Vec<Cow<'static, str>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    ts: String,
    actor: String,
    surface: Surface,
    scope: Scope,
    target: &'a str,
    action: &'a str,
    keys: &'a [Cow<'static, str>],
}

/// The log of one state directory.
#[derive(Debug, Clone)]
pub(crate) struct AuditLog {
    file: PathBuf,
    locks: FileLocks,
}

impl AuditLog {
    /// The log of a state directory that exists, with its directory of locks.
    pub fn of(state_dir: &Path) -> Self {
        Self {
            file: state_dir.join("config_audit.log"),
            locks: FileLocks::new(state_dir.join("locks")),
        }
    }

    /// Makes a change after its entry is durable.
    /// An entry says so when the change fails.
    ///
    /// # Errors
    /// The entry cannot be written, and nothing was changed; or the error of the change.
    pub async fn record<T>(
        &self,
        who: &(Actor, Timestamp),
        change: &Change,
        work: impl Future<Output = Result<T, AppError>>,
    ) -> Result<T, AppError> {
        self.announce(who, change).await?;
        let done = work.await;
        if done.is_err() {
            self.note_failure(who, change).await;
        }
        done
    }

    /// Writes the entry of a change that the caller makes next.
    ///
    /// # Errors
    /// It cannot be written: the change must not be made.
    pub async fn announce(
        &self,
        who: &(Actor, Timestamp),
        change: &Change,
    ) -> Result<(), AppError> {
        self.append(who, change, change.action).await.map_err(|cause| {
            AppError::busy(
                "the change was refused, because the audit log (config_audit.log in the state \
                 directory) cannot be written; check space and permissions",
            )
            .because(cause)
        })
    }

    /// Writes that a change failed although its entry announced it.
    pub async fn note_failure(&self, who: &(Actor, Timestamp), change: &Change) {
        let failed = format!("{}{FAILED}", change.action);
        if let Err(error) = self.append(who, change, &failed).await {
            tracing::error!(error = %error, "the audit log lacks that a change failed");
        }
    }

    /// Where the log ends now, in bytes; 0 while there is none.
    pub fn end(&self) -> u64 {
        std::fs::symlink_metadata(&self.file).map_or(0, |meta| meta.len())
    }

    /// Keys of the configuration file that were changed through svc since `from`.
    ///
    /// `from` and the end of the log, which is told with them, are in bytes. Blocks.
    /// A log that was rotated meanwhile is read from its beginning; one that cannot be read has
    /// nothing to tell.
    pub fn configured_since(&self, from: u64) -> (BTreeSet<String>, u64) {
        #[derive(Deserialize)]
        struct Told {
            actor: String,
            surface: String,
            action: String,
            keys: Vec<String>,
        }
        let mut text = String::new();
        let from = if from > self.end() { 0 } else { from };
        let read = File::open(&self.file).and_then(|mut file| {
            file.seek(SeekFrom::Start(from))?;
            file.take(ROTATE_AT).read_to_string(&mut text)
        });
        let end = from + read.unwrap_or_default() as u64;
        let by_hand = Actor::ByHand.to_string();
        let told = text.lines().filter_map(|line| serde_json::from_str::<Told>(line).ok());
        let told = told.filter(|one| one.surface.starts_with("config") && one.actor != by_hand);
        let mut changes: BTreeMap<String, i64> = BTreeMap::new();
        for one in told {
            // What failed was changed by nobody, or by hand in the same moment.
            let step = if one.action.ends_with(FAILED) { -1 } else { 1 };
            one.keys.into_iter().for_each(|key| *changes.entry(key).or_default() += step);
        }
        let told = changes.into_iter().filter(|(_, count)| *count > 0);
        (told.map(|(key, _)| key).collect(), end)
    }

    async fn append(
        &self,
        (actor, at): &(Actor, Timestamp),
        change: &Change,
        action: &str,
    ) -> io::Result<()> {
        // Times of the log have microseconds.
        let ts = at.to_string().replace('Z', "000Z");
        let (actor, target, keys) = (actor.to_string(), &*change.target, &*change.keys);
        let Change { surface, scope, .. } = *change;
        let entry = Entry { ts, actor, surface, scope, target, action, keys };
        let mut line = serde_json::to_vec(&entry)?;
        line.push(b'\n');
        let lock = self.locks.lock(&self.file, LOCK_WAIT).await.map_err(io::Error::other)?;
        let file = self.file.clone();
        tokio::task::spawn_blocking(move || {
            let _lock = lock;
            append(&file, &line)
        })
        .await
        .map_err(io::Error::other)?
    }
}

fn append(path: &Path, line: &[u8]) -> io::Result<()> {
    if std::fs::symlink_metadata(path).is_ok_and(|meta| meta.len() >= ROTATE_AT) {
        rotate(path)?;
    }
    let is_new = !path.exists();
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW;
    // A pipe in its place must not hold this process.
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mode = Mode::RUSR | Mode::WUSR;
    let mut file = File::from(open(path, flags, mode)?);
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    fchmod(&file, mode)?;
    if let Err(error) = write_line(&mut file, meta.len(), line) {
        // The next entry must not be glued to a part of this one.
        let _ = file.set_len(meta.len());
        return Err(error);
    }
    if is_new && let Some(directory) = path.parent() {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

fn write_line(file: &mut File, length: u64, line: &[u8]) -> io::Result<()> {
    let mut last = [b'\n'];
    if let Some(at) = length.checked_sub(1) {
        file.read_exact_at(&mut last, at)?;
    }
    // A process that was killed, or a machine without power, left a part of an entry.
    let line = if last == [b'\n'] { line } else { &[b"\n", line].concat() };
    file.write_all(line)?;
    file.sync_all()
}

fn rotate(path: &Path) -> io::Result<()> {
    let numbered = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    for number in (1..KEPT).rev() {
        match std::fs::rename(numbered(number), numbered(number + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    std::fs::rename(path, numbered(1))
}

/// Name of the user who runs this, or the number where it has none.
pub(crate) fn user() -> String {
    let id = rustix::process::getuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id).then(|| name.to_owned())
    });
    name.unwrap_or(id)
}

/// The user of this machine who runs a command.
pub(crate) fn of_command() -> Actor {
    Actor::Command(user())
}

/// Whoever asks for what is done now; the service itself when nobody does.
pub(crate) fn asker(is_service: bool) -> String {
    match current() {
        Some(actor) => actor.to_string(),
        None if is_service => "svc".to_owned(),
        None => of_command().to_string(),
    }
}

/// Whoever the work in progress is done for, if that is known.
pub(crate) fn current() -> Option<Actor> {
    ACTOR.try_with(Actor::clone).ok()
}

/// Makes changes that the audit log tells of.
pub(crate) struct Audit {
    pub log: AuditLog,
    pub role: Role,
    pub clock: Arc<dyn Clock>,
}

impl Audit {
    /// The log of a state directory, for what this process does.
    pub fn new(state_dir: &Path, role: Role, clock: &Arc<dyn Clock>) -> Self {
        Self { log: AuditLog::of(state_dir), role, clock: Arc::clone(clock) }
    }

    /// Makes a change and keeps it in the audit log.
    ///
    /// # Errors
    /// As [`AuditLog::record`].
    pub async fn record<T>(
        &self,
        change: Change,
        work: impl Future<Output = Result<T, AppError>>,
    ) -> Result<T, AppError> {
        self.log.record(&(self.actor(), self.clock.now()), &change, work).await
    }

    /// Whoever the work in progress is done for.
    pub fn actor(&self) -> Actor {
        current().unwrap_or_else(|| match self.role {
            Role::Server => Actor::Admin,
            Role::Command | Role::Reader => of_command(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn log(dir: &Path) -> AuditLog {
        std::fs::create_dir(dir.join("locks")).unwrap();
        AuditLog::of(dir)
    }

    fn change() -> Change {
        Change {
            surface: Surface::ApiToken,
            scope: Scope::Global,
            target: "phone".to_owned(),
            action: "create",
            keys: Vec::new(),
        }
    }

    fn who() -> (Actor, Timestamp) {
        (Actor::Token("desk".to_owned()), Timestamp::from_millis(1_795_000_000_123))
    }

    #[tokio::test]
    async fn an_entry_is_written_before_the_change_and_one_more_when_it_fails() {
        let dir = tempfile::tempdir().unwrap();
        let log = log(dir.path());
        let seen = || std::fs::read_to_string(dir.path().join("config_audit.log")).unwrap();
        let work = async { Ok(seen().lines().count()) };
        assert_eq!(log.record(&who(), &change(), work).await.unwrap(), 1);
        let failing = async { Err::<(), _>(AppError::busy("no")) };
        assert_eq!(log.record(&who(), &change(), failing).await.unwrap_err().message, "no");
        let lines: Vec<serde_json::Value> =
            seen().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let actions: Vec<&str> =
            lines.iter().map(|line| line["action"].as_str().unwrap()).collect();
        assert_eq!(actions, ["create", "create", "create-failed"]);
        assert_eq!(
            lines[0],
            serde_json::json!({
                "ts": "2026-11-18T11:06:40.123000Z", "actor": "token:desk",
                "surface": "api-token", "scope": "global", "target": "phone",
                "action": "create", "keys": [],
            })
        );
        let meta = std::fs::metadata(dir.path().join("config_audit.log")).unwrap();
        assert_eq!(meta.permissions().mode() & 0o777, 0o600);
    }

    #[tokio::test]
    async fn a_torn_entry_does_not_take_the_next_one_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let log = log(dir.path());
        let file = dir.path().join("config_audit.log");
        std::fs::write(&file, "{\"ts\":\"2026-11-18T11:0").unwrap();
        log.record(&who(), &change(), async { Ok(()) }).await.unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        let entry: serde_json::Value = serde_json::from_str(lines[1]).unwrap();
        assert_eq!(entry["target"], "phone");
    }

    #[tokio::test]
    async fn a_change_that_failed_tells_of_no_key() {
        let dir = tempfile::tempdir().unwrap();
        let log = log(dir.path());
        let change = |key: &'static str| Change {
            surface: Surface::Config,
            action: "update",
            keys: vec![key.into()],
            ..change()
        };
        let failing = async { Err::<(), _>(AppError::busy("no")) };
        log.record(&who(), &change("log_level"), failing).await.unwrap_err();
        assert_eq!(log.configured_since(0).0, BTreeSet::new());
        log.record(&who(), &change("log_level"), async { Ok(()) }).await.unwrap();
        log.record(&who(), &change("log_format"), async { Ok(()) }).await.unwrap();
        let failing = async { Err::<(), _>(AppError::busy("no")) };
        log.record(&who(), &change("log_format"), failing).await.unwrap_err();
        let (told, end) = log.configured_since(0);
        assert_eq!(told, BTreeSet::from(["log_format".to_owned(), "log_level".to_owned()]));
        assert_eq!(log.configured_since(end).0, BTreeSet::new());
    }

    #[tokio::test]
    async fn h92_nothing_is_changed_when_the_entry_cannot_be_written() {
        let dir = tempfile::tempdir().unwrap();
        let log = log(dir.path());
        std::fs::create_dir(dir.path().join("config_audit.log")).unwrap();
        let work = async { panic!("the change was made all the same") };
        let refused = log.record::<()>(&who(), &change(), work).await.unwrap_err();
        assert_eq!(refused.class, crate::Class::Unavailable, "{}", refused.message);
        assert!(refused.message.contains("config_audit.log"), "{}", refused.message);
    }

    #[tokio::test]
    async fn a_full_log_is_rotated_and_the_sixth_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let log = log(dir.path());
        let file = dir.path().join("config_audit.log");
        for round in 0..7_u8 {
            let mut content = vec![b'0' + round; usize::try_from(ROTATE_AT).unwrap()];
            content.push(b'\n');
            std::fs::write(&file, content).unwrap();
            log.record(&who(), &change(), async { Ok(()) }).await.unwrap();
            assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 1);
        }
        let first = |number: u8| {
            let path = dir.path().join(format!("config_audit.log.{number}"));
            std::fs::read(path).map(|bytes| bytes[0])
        };
        assert_eq!(first(1).unwrap(), b'6');
        assert_eq!(first(5).unwrap(), b'2');
        assert!(first(6).is_err());
    }
}
