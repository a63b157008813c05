//! Checks of directories and programs: `projects_root`, `state_dir`, `git`.

use super::verdict::{counted, failed, passed, some_of, warned};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use svc_agent::environment::Variables;
use svc_agent::log_set::LogFileName;
use svc_config::Config;
use svc_domain::log_escape::quoted;
use svc_domain::redact::redact_text;
use svc_projects::Projects;
use svc_shared::internal::Check;

/// Files looked at in the state directory; a first wrong one is enough to warn.
const MOST_FILES: usize = 20_000;

/// File systems of other machines.
/// Locks and the write-ahead log may not hold there. `linux/magic.h`: NFS, SMB, CIFS, SMB2, AFS,
/// Ceph.
const REMOTE: [u64; 6] = [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x5346_414f, 0x00c3_6400];

/// Whether the projects can be listed, and what in there is none.
pub(super) fn projects_root(root: &Path, projects: &Projects) -> Check {
    const NAME: &str = "projects_root";
    let shown = root.display();
    let trouble = match std::fs::metadata(root) {
        Ok(found) if !found.is_dir() => Some(format!("{shown} is not a directory")),
        Ok(_) => std::fs::read_dir(root).err().map(|error| format!("{shown}: {error}")),
        Err(error) => Some(format!("{shown}: {error}")),
    };
    if let Some(trouble) = trouble.or_else(|| projects.trouble.clone()) {
        return failed(NAME, trouble, "set projects_root to a directory this user can read");
    }
    let found = format!("{shown}, {}", counted(projects.len(), "project"));
    if projects.skipped.is_empty() {
        return passed(NAME, found);
    }
    let left: Vec<String> = projects
        .skipped
        .iter()
        .map(|skipped| format!("{} ({})", quoted(&skipped.name), skipped.why))
        .collect();
    let hint = "rename or repair what should be a project; the rest may stay";
    warned(NAME, format!("{found}; left out: {}", some_of(&left)), hint)
}

/// Whether the records can be written, and nobody else can read them.
pub(super) fn state_dir(config: &Config) -> Check {
    const NAME: &str = "state_dir";
    const CHOOSE: &str = "set state_dir to a directory that belongs to this user";
    let dir = &config.state_dir;
    let shown = dir.display();
    let found = match std::fs::metadata(dir) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return match dir.ancestors().skip(1).find(|above| above.exists()) {
                Some(above) if above.is_dir() && may(above, Access::WRITE_OK | Access::EXEC_OK) => {
                    passed(NAME, "not there yet; the first start creates it")
                }
                Some(_) | None => failed(NAME, format!("{shown} cannot be created"), CHOOSE),
            };
        }
        Err(error) => return failed(NAME, format!("{shown}: {error}"), CHOOSE),
    };
    if !found.is_dir() {
        return failed(NAME, format!("{shown} is not a directory"), CHOOSE);
    }
    let user = rustix::process::geteuid().as_raw();
    if found.uid() != user {
        let whose = format!("{shown} belongs to user {} and this is user {user}", found.uid());
        return failed(NAME, whose, CHOOSE);
    }
    if !may(dir, Access::WRITE_OK | Access::EXEC_OK) {
        let hint = "make it writable (chmod u+rwx), or remount its file system for writing";
        return failed(NAME, format!("{shown} cannot be written"), hint);
    }
    if is_wider(&found) {
        let mode = found.permissions().mode() & 0o7777;
        let detail = format!("{shown} can be entered by others (mode {mode:04o})");
        return warned(NAME, detail, "close it with `svc doctor --fix`; the next start does, too");
    }
    let open = wider_inside(dir);
    if let Some(which) = open.words() {
        let detail = format!("others may use files inside {shown}: {which}");
        return warned(NAME, detail, "close them with `svc doctor --fix`");
    }
    if lies_inside(dir, &config.projects_root) {
        let detail = format!("{shown} lies inside projects_root, where agents can read secrets");
        return warned(NAME, detail, "move it elsewhere with the service stopped, set state_dir");
    }
    if is_remote(dir) {
        let detail = format!("{shown} is on a network file system, where locks may not hold");
        return warned(NAME, detail, "move it to a local disk with the service stopped");
    }
    // The path is left out where nothing is wrong with it: a report gets passed on.
    passed(NAME, "writable and private")
}

/// Whether there is a git, on the path that bridges get.
pub(super) fn git(variables: &Variables) -> Check {
    let path = variables.get(OsStr::new("PATH")).map_or(OsStr::new(""), |path| path.as_os_str());
    // Relative elements mean another program in every directory (H34).
    let found = std::env::split_paths(path)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join("git"))
        .find(|git| git.is_file() && may(git, Access::EXEC_OK));
    match found {
        Some(git) => passed("git", git.display().to_string()),
        None => warned(
            "git",
            "not found on PATH: worktrees, clones and new repositories are not available",
            "install git, or add its directory with claude.path_append",
        ),
    }
}

fn may(path: &Path, access: Access) -> bool {
    accessat(CWD, path, access, AtFlags::EACCESS).is_ok()
}

/// Whether anybody but the owner has a right.
fn is_wider(found: &Metadata) -> bool {
    found.permissions().mode() & 0o077 != 0
}

/// What others may use below a directory.
/// Relative paths.
#[derive(Debug, Default)]
pub(super) struct Open {
    /// Files and directories that may be named.
    pub(super) named: Vec<PathBuf>,
    /// Files whose names hold the agent's name of a session, which is a credential.
    pub(super) unnamed: Vec<PathBuf>,
}

impl Open {
    /// `None` when there is nothing.
    fn words(&self) -> Option<String> {
        let shown: Vec<_> = self.named.iter().map(|path| path.display()).collect();
        let named = (!shown.is_empty()).then(|| redact_text(&some_of(&shown)));
        let unnamed = self.unnamed.len();
        let unnamed = (unnamed > 0).then(|| counted(unnamed, "session log"));
        match (named, unnamed) {
            (Some(named), Some(unnamed)) => Some(format!("{named}, and {unnamed}")),
            (named, unnamed) => named.or(unnamed),
        }
    }
}

/// Files and directories that others may use, relative to `root`.
/// What vanishes meanwhile is none.
pub(super) fn wider_inside(root: &Path) -> Open {
    let mut left = MOST_FILES;
    let mut open = Open::default();
    let mut waiting = vec![root.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            left = left.saturating_sub(1);
            if left == 0 {
                return open;
            }
            let path = entry.path();
            let Ok(found) = std::fs::symlink_metadata(&path) else { continue };
            let is_own = found.is_dir() || found.is_file();
            let inside = path.strip_prefix(root).unwrap_or(&path);
            if is_own && !is_public(inside) && is_wider(&found) {
                if names_session(inside) {
                    open.unnamed.push(inside.to_owned());
                } else {
                    open.named.push(inside.to_owned());
                }
            }
            if found.is_dir() {
                waiting.push(path);
            }
        }
    }
    open.named.sort();
    open
}

/// Whether the agent put the name of a session into that of the file.
fn names_session(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    match name.as_deref().and_then(LogFileName::parse) {
        Some(LogFileName::Session { .. } | LogFileName::Transcript { .. }) => true,
        Some(LogFileName::Of(_)) | None => false,
    }
}

/// Whether the directory may be public: certificates and installed programs are.
fn is_public(inside: &Path) -> bool {
    inside == Path::new("tls/self-signed.crt") || inside.starts_with("deps/bin")
}

fn lies_inside(dir: &Path, root: &Path) -> bool {
    let real = |path: &Path| -> PathBuf { path.canonicalize().unwrap_or_else(|_| path.into()) };
    real(dir).starts_with(real(root))
}

fn is_remote(dir: &Path) -> bool {
    rustix::fs::statfs(dir)
        .is_ok_and(|stat| u64::try_from(stat.f_type).is_ok_and(|kind| REMOTE.contains(&kind)))
}
