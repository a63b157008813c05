//! What a command asks the service for: a restart, perhaps with another program.

use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// What a command sends to the socket for nudges when it asks for a restart.
const RESTART: &[u8] = b"restart";
/// The same for another version; the order follows.
const UPGRADE: &[u8] = b"upgrade ";

/// What a command asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    /// The program that is in its place.
    Restart,
    /// Another one in its place.
    Upgrade(Order),
}

impl Request {
    /// What is sent.
    pub fn message(&self) -> io::Result<Vec<u8>> {
        match self {
            Self::Restart => Ok(RESTART.to_vec()),
            Self::Upgrade(order) => Ok([UPGRADE, &serde_json::to_vec(order)?].concat()),
        }
    }

    /// The request in a message, if it is one.
    pub fn read(message: &[u8]) -> Option<Self> {
        if message == RESTART {
            return Some(Self::Restart);
        }
        let order = serde_json::from_slice(message.strip_prefix(UPGRADE)?).ok()?;
        Some(Self::Upgrade(order))
    }
}

/// Another program in the place of the one that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Tells one upgrade from another.
    pub id: String,
    /// The new program, beside the old one.
    pub staged: PathBuf,
    /// Its SHA-256.
    pub sha256: String,
    /// The old program, without links.
    pub target: PathBuf,
}

impl Order {
    /// Where the old program is kept.
    #[must_use]
    pub fn previous(&self) -> PathBuf {
        previous(&self.target)
    }
}

/// Where the program before an upgrade is kept: beside it.
fn previous(target: &Path) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".previous");
    target.with_file_name(name)
}
