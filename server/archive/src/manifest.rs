//! The manifest: what an archive holds, and the digest of each file.

use serde::{Deserialize, Serialize};

/// The name of the manifest, which is the first member.
pub const MANIFEST: &str = "manifest.json";
/// Version of the layout that every reader checks.
pub const SCHEMA_VERSION: u32 = 1;
/// Version of the manifest: since 2 it lists the files.
pub const FORMAT: u32 = 2;

/// What an archive holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// When it was made, RFC 3339 in UTC.
    pub created: String,
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// [`FORMAT`]; 0 in archives that say none.
    #[serde(default)]
    pub format: u32,
    /// Whether there are members below `state/`.
    pub has_state_dir: bool,
    /// Whether there is a member below `config/`.
    pub has_config: bool,
    /// Version of the program that wrote it.
    #[serde(default)]
    pub svc_version: String,
    /// Schema of the archived database; none without a database.
    #[serde(default)]
    pub db_user_version: Option<i64>,
    /// Operating system of the machine it was made on.
    #[serde(default)]
    pub host_os: String,
    /// The state directory it was made of.
    #[serde(default)]
    pub state_dir: String,
    /// Every file but the manifest, in the order of the archive.
    #[serde(default)]
    pub files: Vec<FileEntry>,
}

/// One file of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Name of the member, such as `state/svc.db`.
    pub path: String,
    /// Size, bytes.
    pub size: u64,
    /// SHA-256 of the content, 64 lower-case hexadecimal digits.
    pub sha256: String,
    /// Permission bits that it had.
    pub mode: u32,
    /// When it was last changed, seconds since the Unix epoch.
    pub mtime: u64,
}
