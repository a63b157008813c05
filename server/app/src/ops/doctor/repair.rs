//! What `svc doctor --fix` does: it closes files to others, nothing else.
//!
//! Every change is one that the next start of the service may need and that loses nothing. What
//! needs a decision stays a hint.

use super::places::wider_inside;
use rustix::fs::{Mode, OFlags, open};
use std::fs::{File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use svc_config::Config;

/// Rights of the owner.
const OWNER: u32 = 0o700;
/// What a group may do with a file of root.
const READERS: u32 = 0o050;

/// What came of the attempt to mend something.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Repairs {
    /// What was changed, one line each.
    pub done: Vec<String>,
    /// What could not be changed and why, one line each.
    pub failed: Vec<String>,
}

/// Closes the configuration file to others (`config-mode`).
#[must_use]
pub fn close_config(file: &Path) -> Repairs {
    let mut repairs = Repairs::default();
    repairs.note(file, close(file));
    repairs
}

/// Closes the state directory and what is in it to others (`state_dir`).
#[must_use]
pub fn close_state_dir(config: &Config) -> Repairs {
    let dir = &config.state_dir;
    let mut repairs = Repairs::default();
    repairs.note(dir, close(dir));
    let open = wider_inside(dir);
    let mut hidden = 0_usize;
    for path in open.named {
        let path = dir.join(path);
        repairs.note(&path, close(&path));
    }
    for path in open.unnamed {
        match close(&dir.join(path)) {
            Ok(_) => hidden += 1,
            Err(why) => repairs.failed.push(format!("a session log stays as it is: {why}")),
        }
    }
    if hidden > 0 {
        repairs.done.push(format!("closed {hidden} session log(s) to others"));
    }
    repairs
}

impl Repairs {
    fn note(&mut self, path: &Path, closed: Result<Option<Change>, String>) {
        let shown = path.display();
        match closed {
            Ok(None) => {}
            Ok(Some(Change { before, after })) => {
                self.done.push(format!("closed {shown} to others ({before:04o} -> {after:04o})"));
            }
            Err(why) => self.failed.push(format!("{shown} stays as it is: {why}")),
        }
    }
}

struct Change {
    before: u32,
    after: u32,
}

/// Takes all rights from everybody but the owner, who is this user.
///
/// It is opened first and never reached through a link in its place.
fn close(path: &Path) -> Result<Option<Change>, String> {
    let said = |error: rustix::io::Errno| std::io::Error::from(error).to_string();
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = open(path, flags | OFlags::NOCTTY, Mode::empty()).map_err(said)?;
    let file = File::from(file);
    let found = file.metadata().map_err(|error| error.to_string())?;
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(format!("it belongs to user {}", found.uid()));
    }
    let before = found.mode() & 0o7777;
    // A file of root with a group of its own is read by the service through that group.
    let is_shared = found.uid() == 0 && found.gid() != 0;
    let after = before & if is_shared { OWNER | READERS } else { OWNER };
    if before == after {
        return Ok(None);
    }
    file.set_permissions(Permissions::from_mode(after)).map_err(|error| error.to_string())?;
    Ok(Some(Change { before, after }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn rights_of_others_are_taken_and_nothing_behind_a_link_is_touched() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("svc.yml"), dir.path().join("link.yml"));
        fs::write(&file, "a: 1").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o646)).unwrap();
        symlink(&file, &link).unwrap();
        let refused = close_config(&link);
        assert_eq!((refused.done.len(), refused.failed.len()), (0, 1), "{refused:?}");
        assert_eq!(mode(&file), 0o646);
        let done = close_config(&file);
        assert!(done.done.join("").contains("0646 -> 0600"), "{done:?}");
        assert_eq!((mode(&file), fs::read_to_string(&file).unwrap()), (0o600, "a: 1".to_owned()));
        assert_eq!(close_config(&file), Repairs::default(), "nothing is left to do");
        let missing = close_config(&dir.path().join("none"));
        assert_eq!(missing.failed.len(), 1, "{missing:?}");
    }
}
