//! The folders whose entries decide what changed, for a watch.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::found::ChangesError;
use crate::git::{GitDirs, GuardedGit};

/// Most folders that are watched for one checkout.
const MOST: usize = 300;

/// Folders to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// Folders with files that git knows or would add.
    /// The one of the repository itself is among them.
    pub paths: BTreeSet<PathBuf>,
    /// There are more than can be watched.
    pub truncated: bool,
}

/// Finds them: ignored folders, such as those of dependencies, are left out.
pub(super) async fn of(git: &GuardedGit, root: &Path) -> Result<Folders, ChangesError> {
    let args = ["--cached", "--others", "--exclude-standard", "-z"];
    let listed = git.run("ls-files", &args).await?;
    let mut below: BTreeSet<&Path> = BTreeSet::from([Path::new("")]);
    for name in listed.bytes.split(|byte| *byte == 0) {
        let path = Path::new(OsStr::from_bytes(name));
        below.extend(path.ancestors().skip(1));
    }
    let mut below: Vec<&Path> = below.into_iter().collect();
    // Of too many, those near the root: work is seen there most often.
    below.sort_by_key(|path| path.components().count());
    let truncated = listed.cut || below.len() > MOST;
    let mut paths: BTreeSet<PathBuf> =
        below.into_iter().take(MOST).map(|path| root.join(path)).collect();
    // A commit, a checkout and `git add` change HEAD or the index.
    paths.extend(GitDirs::of(root).map(|dirs| dirs.own));
    Ok(Folders { paths, truncated })
}
