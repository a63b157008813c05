//! Reads conversations: an index of each file, and pages of turns from it.
//!
//! A transcript is a file of JSON lines that the agent appends to (`agent-cli` §6.7, agent 2.1.197).
//! [`index`] reads each byte once and remembers where turns begin. [`pages`] reads turns from there.

pub mod index;
mod lines;
pub mod pages;
mod record;
pub(crate) mod turn;

pub use index::{Index, Updated, Waits};
pub use pages::{Pages, Span, TAIL_TURNS};

use crate::home::AgentHome;
use crate::transcript_dirs::{Directories, MOST};
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use svc_domain::conversation::ConversationId;
use svc_domain::slug::slug;
use svc_shared::Timestamp;

/// Extension of the files that hold conversations.
pub const TRANSCRIPT: &str = "jsonl";

/// A transcript as its directory lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The conversation.
    pub id: ConversationId,
    /// The file.
    pub path: PathBuf,
    /// Device and inode.
    pub identity: (u64, u64),
    /// Bytes.
    pub size: u64,
    /// When it was written.
    pub written_at: Timestamp,
}

/// Directories with the conversations of all projects, listed once for all of them.
#[derive(Debug, Clone)]
pub struct Places {
    home: AgentHome,
    directories: Directories,
    /// Names of the directories that belong to projects themselves.
    own: HashSet<String>,
}

impl Places {
    /// Lists the directories there are. Blocks.
    #[must_use]
    pub fn read<'a>(home: &AgentHome, projects: impl Iterator<Item = &'a Path>) -> Self {
        Self {
            home: home.clone(),
            directories: Directories::read(home, MOST),
            own: projects.filter_map(Path::to_str).map(slug).collect(),
        }
    }

    /// The directory that holds them all.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.home.projects_dir()
    }

    /// Those of a project and its worktrees, without those of other projects.
    #[must_use]
    pub fn of(&self, project: &Path) -> Vec<PathBuf> {
        let mut places = self.directories.of(&self.home, project);
        let mut is_own = true;
        places.retain(|place| {
            let name = place.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            std::mem::take(&mut is_own) || !self.own.contains(name)
        });
        places
    }
}

/// The transcripts in a directory that are not empty. Blocks.
#[must_use]
pub fn listed(directory: &Path) -> Vec<Listed> {
    let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| one(&entry)).collect()
}

/// When a file was written.
fn written_at(facts: &fs::Metadata) -> Timestamp {
    let millis = facts.mtime().saturating_mul(1000).saturating_add(facts.mtime_nsec() / 1_000_000);
    Timestamp::from_millis(millis)
}

fn one(entry: &fs::DirEntry) -> Option<Listed> {
    let id = entry.file_name().to_str()?.strip_suffix(".jsonl")?.parse().ok()?;
    let facts = entry.metadata().ok().filter(|facts| facts.is_file() && facts.len() > 0)?;
    Some(Listed {
        id,
        path: entry.path(),
        identity: (facts.dev(), facts.ino()),
        size: facts.len(),
        written_at: written_at(&facts),
    })
}
