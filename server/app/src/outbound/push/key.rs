//! The key that proves to push services who notifies (VAPID, RFC 8292).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use p256::SecretKey;
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use p256::elliptic_curve::rand_core::OsRng;
use p256::elliptic_curve::sec1::ToEncodedPoint as _;
use p256::pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _, LineEnding};
use serde_json::json;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use svc_process::files::{self, FileError};
use svc_shared::Timestamp;

/// Its file in the state directory.
const FILE: &str = "push.key";
/// A key is much shorter.
const LONGEST: u64 = 4096;
/// How long a proof holds; at most a day is accepted.
const VALID_SECONDS: i64 = 12 * 3600;
/// Whom a push service may ask where the page has no address with encryption.
const NOBODY: &str = "mailto:svc@svc.invalid";

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeyError {
    /// It cannot be read or made.
    #[error(
        "the key of notifications ({path}) cannot be used: {cause}; see to the file and its directory"
    )]
    Io { path: PathBuf, cause: io::Error },
    /// The file holds something else.
    #[error(
        "the key of notifications ({0}) is damaged; put it back from a backup, or delete it and \
         switch notifications on again on every device"
    )]
    Damaged(PathBuf),
}

/// The key. Has no debug form.
pub(super) struct VapidKey {
    signing: SigningKey,
    public: String,
}

impl VapidKey {
    /// The key of an installation, made at the first use. Blocks.
    pub fn of(state_dir: &Path) -> Result<Self, KeyError> {
        let path = state_dir.join(FILE);
        let io = |cause| KeyError::Io { path: path.clone(), cause };
        match read(&path) {
            Ok(text) => Self::parse(&text).ok_or_else(|| KeyError::Damaged(path.clone())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let secret = SecretKey::random(&mut OsRng);
                let text =
                    secret.to_pkcs8_pem(LineEnding::LF).map_err(io::Error::other).map_err(io)?;
                match files::create_whole(&path, text.as_bytes()) {
                    Ok(()) => Ok(Self::new(&secret)),
                    // Another process was first.
                    Err(FileError::Create { cause, .. })
                        if cause.kind() == io::ErrorKind::AlreadyExists =>
                    {
                        let text = read(&path).map_err(io)?;
                        Self::parse(&text).ok_or_else(|| KeyError::Damaged(path.clone()))
                    }
                    Err(error) => Err(io(io::Error::other(error))),
                }
            }
            Err(error) => Err(io(error)),
        }
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        Some(Self::new(&SecretKey::from_pkcs8_pem(text).ok()?))
    }

    fn new(secret: &SecretKey) -> Self {
        let point = secret.public_key().to_encoded_point(false);
        let public = URL_SAFE_NO_PAD.encode(point.as_bytes());
        Self { signing: SigningKey::from(secret), public }
    }

    /// The public half, as browsers want it.
    pub fn public(&self) -> &str {
        &self.public
    }

    /// The header that proves who notifies to the service at an origin.
    pub fn authorization(&self, origin: &str, contact: Option<&str>, now: Timestamp) -> String {
        let expires = now.as_millis().div_euclid(1000).saturating_add(VALID_SECONDS);
        let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let head = part(json!({ "typ": "JWT", "alg": "ES256" }));
        let claims =
            part(json!({ "aud": origin, "exp": expires, "sub": contact.unwrap_or(NOBODY) }));
        let signed = format!("{head}.{claims}");
        let signature: Signature = self.signing.sign(signed.as_bytes());
        let signature = URL_SAFE_NO_PAD.encode(signature.to_bytes());
        format!("vapid t={signed}.{signature}, k={}", self.public)
    }
}

/// Reads the file, and makes it private if others could use it.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let text = files::read_plain(path, LONGEST)?;
    let mode = std::fs::metadata(path)?.permissions().mode();
    if mode & 0o077 != 0 {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode & 0o700))?;
        tracing::warn!(
            "{} could be used by other accounts (mode {:04o}) and is private now; whoever read it \
             can pass for this service at push services: delete it, restart, and switch \
             notifications on again on every device",
            path.display(),
            mode & 0o7777
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use p256::ecdsa::VerifyingKey;
    use p256::ecdsa::signature::Verifier as _;
    use serde_json::Value;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn the_key_is_made_once_and_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        let made = VapidKey::of(dir.path()).unwrap().public;
        assert_eq!(mode(&path), 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(VapidKey::of(dir.path()).unwrap().public, made);
        assert_eq!(mode(&path), 0o600);
        assert_eq!(URL_SAFE_NO_PAD.decode(&made).unwrap().len(), 65);
    }

    #[test]
    fn a_damaged_key_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), "no key").unwrap();
        let Err(error) = VapidKey::of(dir.path()) else { panic!("it was used") };
        assert!(error.to_string().contains("backup"), "{error}");
        assert_eq!(std::fs::read_to_string(dir.path().join(FILE)).unwrap(), "no key");
    }

    #[test]
    fn the_proof_names_the_service_and_ends_within_a_day() {
        let key = VapidKey::new(&SecretKey::random(&mut OsRng));
        let now = Timestamp::from_millis(1_700_000_000_123);
        let header = key.authorization("https://push.test", None, now);
        let (token, public) = header.strip_prefix("vapid t=").unwrap().split_once(", k=").unwrap();
        assert_eq!(public, key.public());
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let point = URL_SAFE_NO_PAD.decode(public).unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        let signature = Signature::from_slice(&signature).unwrap();
        let verifier = VerifyingKey::from_sec1_bytes(&point).unwrap();
        verifier.verify(signed.as_bytes(), &signature).unwrap();
        let claims = URL_SAFE_NO_PAD.decode(signed.split_once('.').unwrap().1).unwrap();
        let claims: Value = serde_json::from_slice(&claims).unwrap();
        assert_eq!(claims["aud"], "https://push.test");
        assert_eq!(claims["exp"], 1_700_000_000 + VALID_SECONDS);
        assert!(claims["sub"].as_str().unwrap().starts_with("mailto:"));
    }
}
