//! The support bundle: what it holds.

use crate::Timestamp;
use serde::{Deserialize, Serialize};

/// What a support bundle holds, told before it is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleListing {
    /// Name of the archive.
    pub name: String,
    /// When its content was gathered.
    pub created: Timestamp,
    /// The files in it.
    pub members: Vec<BundleMember>,
}

/// One file of a support bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleMember {
    /// Its name.
    pub name: String,
    /// Its size before compression.
    pub bytes: u64,
    /// What it holds, for a person.
    pub says: String,
}
