//! Tokens in the place of raw identifiers: equal for equal ids, not reversible.

use crate::auth::ticket::Keys;
use hkdf::Hkdf;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
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

fn read_secret(path: &Path) -> io::Result<Vec<u8>> {
    let mut secret = Vec::new();
    std::fs::File::open(path)?.take(4096).read_to_end(&mut secret)?;
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
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(session_secret(dir.path(), None, false).unwrap(), None);
        let made = session_secret(dir.path(), None, true).unwrap().unwrap();
        let file = dir.path().join("session.secret");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(session_secret(dir.path(), None, true).unwrap().unwrap(), made);
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
