//! Tokens in the place of raw identifiers: equal for equal ids, not reversible.

use crate::auth::ticket::Keys;
use hkdf::Hkdf;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use svc_domain::bridge::Bridge;
use svc_shared::ids::SessionRef;

/// Bytes of the secret; shorter ones are refused.
const SECRET_BYTES: usize = 32;

/// Why there is no secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file is shorter than a secret and stayed so.
    #[error("{0} holds less than 32 bytes; delete it to have a new one made")]
    Short(PathBuf),
    /// The variable holds less than a secret.
    #[error("{0} must hold at least 32 bytes; give it a longer random value or unset it")]
    ShortVariable(&'static str),
    /// The file cannot be used.
    #[error("cannot use {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
}

/// Makes tokens from raw identifiers.
#[derive(Clone)]
pub struct Refs {
    session: [u8; 32],
    environment: [u8; 32],
    /// Other keys of the same secret, for cookies.
    keys: Keys,
}

impl std::fmt::Debug for Refs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Refs")
    }
}

impl Refs {
    /// Keys from a secret of any length.
    #[must_use]
    pub fn from_secret(secret: &[u8]) -> Self {
        let derive = |info: &[u8]| {
            let mut key = [0; 32];
            // 32 bytes are far below the limit of the derivation, so it cannot fail.
            let _ = Hkdf::<Sha256>::new(None, secret).expand(info, &mut key);
            key
        };
        Self {
            session: derive(b"svc/session-ref/v1"),
            environment: derive(b"svc/environment-ref/v1"),
            keys: Keys::from_secret(secret),
        }
    }

    /// The keys of cookies.
    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Token of a session id.
    #[must_use]
    pub fn session(&self, raw: &str) -> Option<SessionRef> {
        token(&self.session, raw)
    }

    /// Token of an environment id.
    #[must_use]
    pub fn environment(&self, raw: &str) -> Option<SessionRef> {
        token(&self.environment, raw)
    }
}

/// The tokens of this installation; none while it has no secret.
#[derive(Debug)]
pub(crate) struct SessionRefs(pub Option<Refs>);

impl SessionRefs {
    /// Token of a session id.
    pub fn session(&self, raw: &str) -> Option<SessionRef> {
        self.0.as_ref()?.session(raw)
    }

    /// Token of an environment id.
    pub fn environment(&self, raw: &str) -> Option<SessionRef> {
        self.0.as_ref()?.environment(raw)
    }

    /// Token of a bridge's session.
    pub fn of(&self, bridge: &Bridge) -> Option<SessionRef> {
        self.session(bridge.anchor.session_id.as_deref()?)
    }
}

fn token(key: &[u8], raw: &str) -> Option<SessionRef> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    mac.update(raw.as_bytes());
    hex::encode(mac.finalize().into_bytes()).get(..16)?.parse().ok()
}

/// The secret of this installation.
/// From the environment, else from `session.secret`.
///
/// With `create` the file is made when it is missing; without, a missing file gives `None`.
///
/// # Errors
/// The secret is too short or the file cannot be used.
pub fn session_secret(
    state_dir: &Path,
    from_env: Option<(&'static str, Vec<u8>)>,
    create: bool,
) -> Result<Option<Vec<u8>>, SecretError> {
    if let Some((name, secret)) = from_env {
        return if secret.len() < SECRET_BYTES {
            Err(SecretError::ShortVariable(name))
        } else {
            Ok(Some(secret))
        };
    }
    let path = state_dir.join("session.secret");
    let io = |cause| SecretError::Io { path: path.clone(), cause };
    if create {
        match create_secret(&path, state_dir) {
            Ok(secret) => return Ok(Some(secret)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(io(error)),
        }
    }
    // Another process may be between creating and writing it.
    for _ in 0..100 {
        match read_secret(&path) {
            Ok(secret) if secret.len() >= SECRET_BYTES => return Ok(Some(secret)),
            Ok(_) => std::thread::sleep(Duration::from_millis(10)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io(error)),
        }
    }
    Err(SecretError::Short(path))
}

fn create_secret(path: &Path, state_dir: &Path) -> io::Result<Vec<u8>> {
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let mut secret = vec![0; SECRET_BYTES];
    getrandom::fill(&mut secret).map_err(io::Error::other)?;
    file.write_all(&secret)?;
    file.sync_all()?;
    std::fs::File::open(state_dir)?.sync_all()?;
    Ok(secret)
}

/// Reads the secret, and makes its file private if others could use it.
fn read_secret(path: &Path) -> io::Result<Vec<u8>> {
    use rustix::fs::{Mode, OFlags};
    // Without `NONBLOCK` a pipe in its place would keep the start waiting for ever.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = std::fs::File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let facts = file.metadata()?;
    if !facts.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mode = facts.permissions().mode();
    if mode & 0o077 != 0 {
        file.set_permissions(std::fs::Permissions::from_mode(mode & 0o700))?;
        tracing::warn!(
            "{} could be used by other accounts (mode {:04o}) and is private now; whoever read it \
             can sign in with it: delete it and restart to end all sessions",
            path.display(),
            mode & 0o7777
        );
    }
    let mut secret = Vec::new();
    file.take(4096).read_to_end(&mut secret)?;
    Ok(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_raw_id_has_one_token_and_its_kind_matters() {
        let refs = Refs::from_secret(&[7; 32]);
        let token = refs.session("session_01ABC").unwrap();
        assert_eq!(refs.session("session_01ABC").unwrap(), token);
        assert_ne!(refs.environment("session_01ABC").unwrap(), token);
        assert_ne!(Refs::from_secret(&[8; 32]).session("session_01ABC").unwrap(), token);
    }

    #[test]
    fn a_secret_is_made_once_private_and_found_again() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(session_secret(dir.path(), None, false).unwrap(), None);
        let made = session_secret(dir.path(), None, true).unwrap().unwrap();
        let file = dir.path().join("session.secret");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(session_secret(dir.path(), None, true).unwrap().unwrap(), made);
    }

    /// Who can read it can make a cookie for himself.
    #[test]
    fn h28_a_secret_that_others_may_use_is_made_private() {
        for mode in [0o644, 0o640, 0o604, 0o622, 0o666, 0o677] {
            let dir = tempfile::tempdir().unwrap();
            let made = session_secret(dir.path(), None, true).unwrap().unwrap();
            let file = dir.path().join("session.secret");
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(session_secret(dir.path(), None, true).unwrap().unwrap(), made);
            let left = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
            assert_eq!(left & 0o077, 0, "{mode:o} became {left:o}");
        }
    }

    #[test]
    fn h28_no_pipe_and_no_directory_is_taken_for_the_secret() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("session.secret");
        std::fs::create_dir(&file).unwrap();
        assert!(session_secret(dir.path(), None, true).is_err());
        std::fs::remove_dir(&file).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let place = dir.path().to_owned();
        std::thread::spawn(move || sender.send(session_secret(&place, None, true).is_err()));
        let answer = receiver.recv_timeout(Duration::from_secs(30));
        // A reader that waits for a writer of the pipe is let go.
        let _writer = std::fs::OpenOptions::new().read(true).write(true).open(&file);
        assert_eq!(answer, Ok(true));
    }

    #[test]
    fn a_short_secret_is_refused_and_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("session.secret"), "short").unwrap();
        let error = session_secret(dir.path(), None, true).unwrap_err();
        assert!(error.to_string().contains("session.secret"), "{error}");
        let variable = Some(("SVC_SESSION_SECRET", b"short".to_vec()));
        let error = session_secret(dir.path(), variable, true).unwrap_err();
        assert!(error.to_string().contains("SVC_SESSION_SECRET"), "{error}");
    }
}
