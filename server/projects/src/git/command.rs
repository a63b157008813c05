//! Git as a program that runs nothing of the repository (H41).
//!
//! Hooks, filters, the file system monitor, text conversion, external diff programs, pagers,
//! helpers and submodules are switched off, whatever the repository configures.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};

/// Longest time of one call (`http-api.md` N10).
const LIMIT: Duration = Duration::from_secs(10);
/// Most bytes of one answer; the rest is not read, and git is ended.
const MOST_BYTES: u64 = 8 * 1024 * 1024;
/// Most filter drivers that are switched off; with more, git is not called.
const MOST_FILTERS: usize = 200;

/// Why git gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no git, or it cannot be started.
    #[error("git cannot be started; install git")]
    Missing(#[source] io::Error),
    /// It was ended at the time limit.
    #[error("git gave no answer within {seconds} s and was ended")]
    TimedOut {
        /// The limit.
        seconds: u64,
    },
    /// Its answer could not be read.
    #[error("the answer of git cannot be read")]
    Unreadable(#[source] io::Error),
    /// It answered with an error.
    #[error("git {what} failed with exit code {code:?}")]
    Failed {
        /// The command.
        what: &'static str,
        /// Its exit code; none after a signal.
        code: Option<i32>,
    },
    /// The repository cannot be read safely.
    #[error("the repository is not read: {0}")]
    Refused(String),
}

/// One checkout, with everything switched off that git could run for it.
#[derive(Debug)]
pub(crate) struct GuardedGit {
    root: PathBuf,
    /// Settings that switch off the filter drivers of this repository.
    filters: Vec<String>,
}

/// What git printed; `cut` if there was more.
#[derive(Debug)]
pub(crate) struct Printed {
    pub(crate) bytes: Vec<u8>,
    pub(crate) cut: bool,
}

impl GuardedGit {
    /// Runs none of the filter drivers of another repository either.
    pub(crate) fn switch_off_filters_of(&mut self, other: Self) {
        self.filters.extend(other.filters);
    }

    /// Looks which filter drivers the configuration names, so that none is run.
    pub(crate) async fn open(root: &Path) -> Result<Self, GitError> {
        let mut git = Self { root: root.to_owned(), filters: Vec::new() };
        let listed = git.run("config", &["--list", "--name-only", "-z"]).await?;
        let names = String::from_utf8_lossy(&listed.bytes);
        let mut drivers: Vec<&str> = names
            .split('\0')
            .filter_map(|name| name.strip_prefix("filter.")?.rsplit_once('.'))
            .map(|(driver, _)| driver)
            .collect();
        drivers.sort_unstable();
        drivers.dedup();
        if drivers.len() > MOST_FILTERS || listed.cut {
            return Err(GitError::Refused("its configuration is too large".into()));
        }
        // An option is one `name=value`, so that a name with `=` would be another setting.
        // Bytes that are no text cannot be repeated in an option as they are.
        let odd = ['=', '\n', char::REPLACEMENT_CHARACTER];
        if drivers.iter().any(|driver| driver.contains(odd)) {
            return Err(GitError::Refused("a filter of it has an odd name".into()));
        }
        let off = |driver: &&str| {
            let empty = ["clean", "smudge", "process"].map(|key| format!("filter.{driver}.{key}="));
            empty.into_iter().chain([format!("filter.{driver}.required=false")])
        };
        git.filters = drivers.iter().flat_map(off).collect();
        Ok(git)
    }

    /// The root of the checkout.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Runs one command and returns what it printed.
    pub(crate) async fn run<A: AsRef<OsStr>>(
        &self,
        what: &'static str,
        args: &[A],
    ) -> Result<Printed, GitError> {
        self.run_within(LIMIT, what, args).await
    }

    /// Runs one command that may take longer: a removal deletes files.
    pub(crate) async fn run_within<A: AsRef<OsStr>>(
        &self,
        limit: Duration,
        what: &'static str,
        args: &[A],
    ) -> Result<Printed, GitError> {
        let mut command = self.command();
        command.arg(what).args(args);
        let child = command.spawn().map_err(GitError::Missing)?;
        let mut group = Group(child);
        match tokio::time::timeout(limit, finish(&mut group.0)).await {
            Ok(Ok((printed, code))) if printed.cut || code == Some(0) => Ok(printed),
            Ok(Ok((_, code))) => Err(GitError::Failed { what, code }),
            Ok(Err(cause)) => Err(GitError::Unreadable(cause)),
            Err(_elapsed) => Err(GitError::TimedOut { seconds: limit.as_secs() }),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new("git");
        command
            .env_clear()
            .envs(["PATH", "HOME"].iter().filter_map(|name| {
                // A repository may name files below `~`.
                std::env::var_os(name).map(|value| (OsString::from(name), value))
            }))
            // Ignored files and attributes of the user's own are not looked at.
            .env("XDG_CONFIG_HOME", "/dev/null")
            .env("LC_ALL", "C")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            // No transport at all: a repository can set `protocol.*.allow` for itself.
            .env("GIT_ALLOW_PROTOCOL", "")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_LITERAL_PATHSPECS", "1")
            // A `core.worktree` of the repository could name any other directory.
            .env("GIT_DIR", self.root.join(".git"))
            .env("GIT_WORK_TREE", &self.root)
            .current_dir(&self.root)
            .arg("--no-pager");
        let fixed = [
            "core.fsmonitor=false",
            "core.hooksPath=/dev/null",
            "core.attributesFile=/dev/null",
            "core.untrackedCache=false",
            "core.quotePath=false",
            "protocol.allow=never",
            "diff.submodule=short",
            "submodule.recurse=false",
        ];
        for setting in fixed.into_iter().chain(self.filters.iter().map(String::as_str)) {
            command.args(["-c", setting]);
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true);
        command
    }
}

async fn finish(child: &mut Child) -> io::Result<(Printed, Option<i32>)> {
    let mut bytes = Vec::new();
    if let Some(out) = child.stdout.take() {
        out.take(MOST_BYTES + 1).read_to_end(&mut bytes).await?;
    }
    let most = usize::try_from(MOST_BYTES).unwrap_or(usize::MAX);
    let cut = bytes.len() > most;
    bytes.truncate(most);
    // Cut: the pipe is closed, and git ends at its next write.
    let status = child.wait().await?;
    Ok((Printed { bytes, cut }, status.code()))
}

/// A child that leads a process group, which does not outlive this value.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        // The pid is not reused before it is reaped. Afterwards `id` is empty.
        let pid = self.0.id().and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            let _ = kill_process_group(pid, Signal::KILL); // gone already: fine
        }
    }
}
