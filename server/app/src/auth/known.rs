//! What this process knows of the database's credentials and session epoch.

use std::path::{Path, PathBuf};
use subtle::ConstantTimeEq as _;
use svc_process::files::FileError;
use svc_shared::Timestamp;
use svc_store::{SignInRow, TokenRow};

/// Credentials as they were last read.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// `None` until it was read once: then no cookie is valid.
    pub(super) epoch: Option<u64>,
    pub(super) tokens: Vec<TokenRow>,
    pub(super) sign_ins: Vec<SignInRow>,
}

impl Known {
    /// The token with this hash. Every one is compared, each in constant time.
    pub(super) fn token(&self, hash: &str) -> Option<&TokenRow> {
        self.tokens.iter().fold(
            None,
            |found, row| {
                if is_same(&row.hash, hash) { Some(row) } else { found }
            },
        )
    }

    pub(super) fn sign_in(&self, hash: &str) -> Option<&SignInRow> {
        self.sign_ins.iter().find(|row| is_same(&row.hash, hash))
    }

    /// Whether the same credentials open the same things: use alone changes nothing.
    pub(super) fn has_same_holders(&self, other: &Self) -> bool {
        let tokens = |known: &Self| -> Vec<_> {
            known
                .tokens
                .iter()
                .map(|row| (row.hash.clone(), row.expires_at, row.scopes.clone()))
                .collect()
        };
        let sign_ins = |known: &Self| -> Vec<_> {
            known.sign_ins.iter().map(|row| (row.hash.clone(), row.expires_at)).collect()
        };
        self.epoch == other.epoch
            && tokens(self) == tokens(other)
            && sign_ins(self) == sign_ins(other)
    }
}

/// A number and a line end are much shorter.
const LONGEST_EPOCH: u64 = 1024;

/// Compares two digests in constant time.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

/// The session epoch; 0 where there was never a sign-out.
/// A file that cannot be understood gives a number above every one that it can have held.
pub(super) async fn read_epoch(path: PathBuf, now: Timestamp) -> u64 {
    tokio::task::spawn_blocking(move || epoch_on_disk(&path, now)).await.unwrap_or(u64::MAX / 2)
}

/// The epoch in a file, as [`read_epoch`] gives it. Blocks.
pub(crate) fn epoch_on_disk(path: &Path, now: Timestamp) -> u64 {
    match svc_process::files::read_plain(path, LONGEST_EPOCH) {
        Ok(text) => std::str::from_utf8(&text)
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or_else(|| above(now)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
        Err(_) => above(now),
    }
}

fn above(now: Timestamp) -> u64 {
    u64::try_from(now.as_millis()).unwrap_or_default()
}

/// Raises the epoch above the stored and the known one, durably, and returns it.
pub(super) async fn raise_epoch(
    path: PathBuf,
    in_memory: u64,
    now: Timestamp,
) -> Result<u64, FileError> {
    let raised = tokio::task::spawn_blocking(move || {
        let next = epoch_on_disk(&path, now).max(in_memory).saturating_add(1);
        svc_process::files::replace(&path, next.to_string().as_bytes()).map(|()| next)
    });
    match raised.await {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn h17_the_epoch_never_decreases() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("session.epoch");
        let now = Timestamp::from_millis(1_700_000_000_000);
        assert_eq!(read_epoch(file.clone(), now).await, 0);
        assert_eq!(raise_epoch(file.clone(), 0, now).await.unwrap(), 1);
        assert_eq!(raise_epoch(file.clone(), 0, now).await.unwrap(), 2, "an older memory");
        assert_eq!(raise_epoch(file.clone(), 9, now).await.unwrap(), 10, "an older file");
        assert_eq!(read_epoch(file.clone(), now).await, 10);
        std::fs::write(&file, "not a number").unwrap();
        assert!(read_epoch(file.clone(), now).await > 10);
        assert!(raise_epoch(file.clone(), 10, now).await.unwrap() > 10);
    }
}
