//! The sidecar: a private file that says where the keeper of a session is.
//!
//! The keeper writes it before it starts the agent, after the start, when the session is ready, and
//! at the end. It holds the token and the connect URL, so only this user may read it (0600). Readers
//! prove each process in it before they use it.

use crate::message::Key;
use crate::message::{Phase, ProcessWire, ProtocolRange, Question, SessionState};
use crate::screen::Row;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use svc_domain::identity::{BootId, ProcessIdentity};
use svc_process::files;
use svc_shared::Timestamp;
use svc_shared::ids::{InstanceId, ProjectName};

/// End of the name of every sidecar. The stem of the log files comes before it.
pub const SUFFIX: &str = ".keeper.json";
/// End of the name of the file with the final screen.
pub const SCREEN_SUFFIX: &str = ".keeper.screen.json";

const VERSION: u32 = 1;
/// A sidecar has about 1 KiB. A larger file is not ours.
const MAX_BYTES: u64 = 256 << 10;
/// 200 rows of 400 cells with a colour each, and the tail.
const MAX_SCREEN_BYTES: u64 = 8 << 20;

/// The token of a keeper: 64 hexadecimal digits. Never shown by `Debug`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Token(String);

impl Token {
    /// From 32 random bytes.
    #[must_use]
    pub fn new(random: [u8; 32]) -> Self {
        Self(hex::encode(random))
    }

    /// The token as text, for the `hello` frame only.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// The keeper in a sidecar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeeperRecord {
    /// The process.
    #[serde(flatten)]
    pub process: ProcessWire,
    /// The boot it runs in.
    pub boot_id: String,
    /// The program it was started from.
    pub exe: PathBuf,
    /// Its release.
    pub version: String,
    /// The protocols it speaks.
    pub proto: ProtocolRange,
}

/// The agent in a sidecar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRecord {
    /// The process.
    #[serde(flatten)]
    pub process: ProcessWire,
    /// SHA-256 of its arguments, hexadecimal.
    pub argv_sha256: String,
}

/// How the agent ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// Exit code.
    #[serde(default)]
    pub code: Option<i32>,
    /// Signal.
    #[serde(default)]
    pub signal: Option<i32>,
    /// When the keeper saw it.
    pub at: Timestamp,
}

/// What a sidecar says. Nothing in it is proven.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sidecar {
    v: u32,
    /// The keeper.
    pub keeper: KeeperRecord,
    /// The agent. `None` for a moment while the keeper starts.
    #[serde(default)]
    pub agent: Option<AgentRecord>,
    /// The instance that the session belongs to.
    pub instance_id: InstanceId,
    /// Its project.
    pub project: ProjectName,
    /// Working directory of the agent.
    pub cwd: PathBuf,
    /// Name of its worktree.
    #[serde(default)]
    pub worktree: Option<String>,
    /// The agent's debug file.
    #[serde(default)]
    pub debug_file: Option<PathBuf>,
    /// Where the keeper listens.
    pub socket: PathBuf,
    /// What a client must say.
    pub token: Token,
    /// When the keeper started.
    pub started_at: Timestamp,
    /// How far the session is.
    #[serde(default)]
    pub phase: Phase,
    /// What the screen asks, with [`Phase::Failed`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Question>,
    /// The connect URL. It is a credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<Secret>,
    /// Id of the session at its vendor. It is a credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Secret>,
    /// How the agent ended, with [`Phase::Exited`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<ExitRecord>,
}

/// A text that `Debug` does not show.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The first content of a sidecar.
#[derive(Debug)]
pub struct Begin {
    /// The keeper.
    pub keeper: KeeperRecord,
    /// The instance.
    pub instance_id: InstanceId,
    /// Its project.
    pub project: ProjectName,
    /// Working directory of the agent.
    pub cwd: PathBuf,
    /// Name of its worktree.
    pub worktree: Option<String>,
    /// The agent's debug file.
    pub debug_file: Option<PathBuf>,
    /// Where the keeper listens.
    pub socket: PathBuf,
    /// What a client must say.
    pub token: Token,
    /// When the keeper started.
    pub started_at: Timestamp,
}

/// Why a sidecar cannot be used. Nothing may be concluded about its keeper.
#[derive(Debug, thiserror::Error)]
pub enum SidecarError {
    /// It cannot be read.
    #[error("cannot read the keeper's record {path}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        cause: io::Error,
    },
    /// It is cut short, damaged, of another program or of a later release.
    #[error("the keeper's record {path} is not usable: {reason}")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl Sidecar {
    /// The record of a keeper that has just started.
    #[must_use]
    pub fn new(begin: Begin) -> Self {
        let Begin { keeper, instance_id, project, cwd, worktree, debug_file, .. } = begin;
        Self {
            v: VERSION,
            keeper,
            agent: None,
            instance_id,
            project,
            cwd,
            worktree,
            debug_file,
            socket: begin.socket,
            token: begin.token,
            started_at: begin.started_at,
            phase: Phase::Launching,
            reason: None,
            url: None,
            session_id: None,
            exit: None,
        }
    }

    /// Reads a sidecar.
    ///
    /// # Errors
    /// There is none, or it is not usable.
    pub fn read(path: &Path) -> Result<Self, SidecarError> {
        let bytes = read_private(path, MAX_BYTES)?;
        let unusable = |reason: String| SidecarError::Unusable { path: path.to_owned(), reason };
        // Only the version is read first: a later release may mean anything by the rest.
        #[derive(Deserialize)]
        struct Versioned {
            v: u32,
        }
        let Versioned { v } = serde_json::from_slice(&bytes).map_err(|e| unusable(wrong(&e)))?;
        if v != VERSION {
            return Err(unusable(format!("its version {v} is not known to this program")));
        }
        let sidecar: Self = serde_json::from_slice(&bytes).map_err(|e| unusable(wrong(&e)))?;
        if sidecar.keeper().is_none() {
            return Err(unusable("its keeper is no process".to_owned()));
        }
        Ok(sidecar)
    }

    /// Replaces the sidecar: readers see the old or the new content.
    ///
    /// # Errors
    /// The old content is still there.
    pub fn write(&self, path: &Path) -> Result<(), files::FileError> {
        replace(path, self)
    }

    /// Identity of the keeper. `None` if the record cannot name a process.
    #[must_use]
    pub fn keeper(&self) -> Option<ProcessIdentity> {
        self.keeper.process.in_boot(&self.boot_id()?)
    }

    /// Identity of the agent, if there is one yet.
    #[must_use]
    pub fn agent(&self) -> Option<ProcessIdentity> {
        self.agent.as_ref()?.process.in_boot(&self.boot_id()?)
    }

    /// The boot that keeper and agent run in.
    #[must_use]
    pub fn boot_id(&self) -> Option<BootId> {
        self.keeper.boot_id.parse().ok()
    }

    /// The state as the socket tells it.
    #[must_use]
    pub fn state(&self) -> SessionState {
        SessionState {
            phase: self.phase,
            url: self.url.as_ref().map(|secret| secret.0.clone()),
            session_id: self.session_id.as_ref().map(|secret| secret.0.clone()),
            reason: self.reason,
            exit_code: self.exit.as_ref().and_then(|exit| exit.code),
            exit_signal: self.exit.as_ref().and_then(|exit| exit.signal),
        }
    }
}

/// The position only.
///
/// A message of the parser may repeat a value, such as the token.
fn wrong(error: &serde_json::Error) -> String {
    format!("it is no record (line {}, column {})", error.line(), error.column())
}

/// All sidecars of a directory, in the order of their names.
///
/// # Errors
/// The directory cannot be listed.
pub fn list(directory: &Path) -> io::Result<Vec<(PathBuf, Result<Sidecar, SidecarError>)>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.to_str().is_some_and(|name| name.ends_with(SUFFIX)) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths
        .into_iter()
        .map(|path| {
            let read = Sidecar::read(&path);
            (path, read)
        })
        .collect())
}

/// The file with the final screen beside a sidecar.
#[must_use]
pub fn screen_file(sidecar: &Path) -> PathBuf {
    let name = sidecar.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    let stem = name.strip_suffix(SUFFIX).unwrap_or(&name);
    sidecar.with_file_name(format!("{stem}{SCREEN_SUFFIX}"))
}

/// The last screen of a session, redacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinalScreen {
    v: u32,
    /// The screen.
    pub screen: Key,
    /// The last lines above the screen.
    pub above: Vec<Row>,
}

impl FinalScreen {
    /// A screen and the lines above it.
    #[must_use]
    pub fn new(screen: Key, above: Vec<Row>) -> Self {
        Self { v: VERSION, screen, above }
    }

    /// Reads it.
    ///
    /// # Errors
    /// There is none, or it is not usable.
    pub fn read(path: &Path) -> Result<Self, SidecarError> {
        let unusable = |reason: String| SidecarError::Unusable { path: path.to_owned(), reason };
        let bytes = read_private(path, MAX_SCREEN_BYTES)?;
        let screen: Self = serde_json::from_slice(&bytes).map_err(|e| unusable(wrong(&e)))?;
        if screen.v != VERSION {
            return Err(unusable("its version is not known to this program".to_owned()));
        }
        Ok(screen)
    }

    /// Replaces the file (0600).
    ///
    /// # Errors
    /// The old content is still there.
    pub fn write(&self, path: &Path) -> Result<(), files::FileError> {
        replace(path, self)
    }

    /// The text of the last lines that are not blank, oldest first: at most `most`.
    #[must_use]
    pub fn tail(&self, most: usize) -> Vec<String> {
        let rows = self.above.iter().chain(&self.screen.rows);
        let mut lines: Vec<String> = rows
            .map(|row| row.text().trim_end().to_owned())
            .filter(|line| !line.is_empty())
            .collect();
        lines.drain(..lines.len().saturating_sub(most));
        lines
    }
}

/// Replaces a file of a keeper (0600): readers see the old or the new content.
///
/// Processes of another boot do not exist, so nobody needs it after a power loss.
fn replace(path: &Path, content: &impl Serialize) -> Result<(), files::FileError> {
    let text = serde_json::to_vec(content).map_err(|error| files::FileError::Replace {
        path: path.to_owned(),
        cause: error.into(),
    })?;
    files::replace_without_sync(path, &text)
}

/// Reads a small regular file of this user. Follows no link and waits for no pipe.
fn read_private(path: &Path, most: u64) -> Result<Vec<u8>, SidecarError> {
    let unusable =
        |reason: &str| SidecarError::Unusable { path: path.to_owned(), reason: reason.to_owned() };
    let unreadable = |cause| SidecarError::Unreadable { path: path.to_owned(), cause };
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(flags.bits()).unwrap_or_default())
        .open(path)
        .map_err(unreadable)?;
    let facts = file.metadata().map_err(unreadable)?;
    if !facts.is_file() {
        return Err(unusable("it is no regular file"));
    }
    if facts.uid() != rustix::process::geteuid().as_raw() {
        return Err(unusable("it belongs to another user"));
    }
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(unreadable)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > most) {
        return Err(unusable("it is too long"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{KEEPER_PROTOCOLS, on_wire};
    use std::os::unix::fs::PermissionsExt as _;

    fn sidecar() -> Sidecar {
        let mut sidecar = Sidecar::new(Begin {
            keeper: KeeperRecord {
                process: ProcessWire { pid: 4242, start_ticks: 7 },
                boot_id: "boot-a".to_owned(),
                exe: "/opt/svc".into(),
                version: "0.1.0".to_owned(),
                proto: on_wire(&KEEPER_PROTOCOLS),
            },
            instance_id: "0b8f7a44-6f0e-4a55-8a0b-0c2d2f7a9c11".parse().unwrap(),
            project: "api".parse().unwrap(),
            cwd: "/p/api".into(),
            worktree: None,
            debug_file: None,
            socket: "/run/x.sock".into(),
            token: Token::new([7; 32]),
            started_at: Timestamp::from_millis(1_000),
        });
        sidecar.url = Some(Secret("https://claude.ai/code/session_secret".to_owned()));
        sidecar
    }

    #[test]
    fn f67_a_sidecar_is_private_whole_and_says_the_same_when_it_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(format!("a{SUFFIX}"));
        let written = sidecar();
        written.write(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Sidecar::read(&path).unwrap(), written);
        let keeper = written.keeper().unwrap();
        assert_eq!((keeper.pid.get(), keeper.boot_id.as_str()), (4242, "boot-a"));
        assert_eq!(written.agent(), None);
        let shown = format!("{written:?}");
        assert!(!shown.contains("secret") && !shown.contains("0707"), "{shown}");
    }

    #[test]
    fn f67_a_sidecar_that_is_cut_anywhere_is_unusable_and_shows_nothing_of_itself() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(format!("a{SUFFIX}"));
        let whole = serde_json::to_vec(&sidecar()).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let error = Sidecar::read(&path).unwrap_err().to_string();
            assert!(!error.contains("0707") && !error.contains("secret"), "{error}");
        }
        for wrong in ["[]", "{}", "{\"v\":2}", "null", "\u{feff}{\"v\":1}"] {
            std::fs::write(&path, wrong).unwrap();
            assert!(Sidecar::read(&path).is_err(), "{wrong}");
        }
        let init = String::from_utf8(whole).unwrap().replace("4242", "1");
        std::fs::write(&path, init).unwrap();
        assert!(Sidecar::read(&path).is_err(), "process 1 is no keeper");
    }

    #[test]
    fn f67_a_link_a_pipe_and_a_huge_file_are_no_sidecars() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        sidecar().write(&target).unwrap();
        let link = dir.path().join(format!("link{SUFFIX}"));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(Sidecar::read(&link).is_err());
        let pipe = dir.path().join(format!("pipe{SUFFIX}"));
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        assert!(Sidecar::read(&pipe).is_err());
        let huge = dir.path().join(format!("huge{SUFFIX}"));
        std::fs::write(&huge, vec![b' '; 300 << 10]).unwrap();
        assert!(Sidecar::read(&huge).is_err());
        let listed = list(dir.path()).unwrap();
        assert_eq!(listed.len(), 3);
        assert!(listed.iter().all(|(_, read)| read.is_err()));
    }

    #[test]
    fn the_final_screen_lies_beside_its_sidecar_and_has_a_tail() {
        let path = screen_file(Path::new("/logs/a-1.keeper.json"));
        assert_eq!(path, Path::new("/logs/a-1.keeper.screen.json"));
        assert!(!path.to_str().unwrap().ends_with(SUFFIX), "it is not listed as a sidecar");
    }
}
