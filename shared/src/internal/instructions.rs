//! The instructions that a project gives its agents: the file `CLAUDE.md`.

use serde::{Deserialize, Serialize};

/// Most bytes of the file that are shown or written.
pub const MOST_BYTES: usize = 65_536;

/// The file as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Instructions {
    /// It exists.
    pub exists: bool,
    /// Its text; empty without a file.
    pub content: String,
    /// SHA-256 of the text, hexadecimal. A change names the one that it is based on.
    pub sha256: Option<String>,
    /// Bytes.
    pub size: u64,
    /// A bridge of the project runs: its sessions keep what they have read.
    pub bridge_running: bool,
}

/// Body that replaces the file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct WriteInstructions {
    /// The whole new text.
    pub content: String,
    /// What the change is based on; none for a file that does not exist yet.
    pub base_sha256: Option<String>,
}
