//! Names of contents.

use sha2::{Digest as _, Sha256};

/// The first 24 hex digits of the SHA-256 of `bytes`, enough to compare contents.
pub(crate) fn short_hash(bytes: &[u8]) -> String {
    let mut hash = hex::encode(Sha256::digest(bytes));
    hash.truncate(24);
    hash
}

/// A strong entity tag of `bytes`, quotes included.
pub(crate) fn entity_tag(bytes: &[u8]) -> String {
    format!("\"{}\"", short_hash(bytes))
}
