//! One clone from its first byte to its place.
//!
//! It is bounded while it runs, and nothing is left of a failure.

use super::forwarder::Forwarder;
use super::git::{Running, is_success, read_trace};
use super::route::Route;
use super::{Clones, Job, has_room};
use crate::AppError;
use crate::failpoint::hit;
use crate::tasks::blocking;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use svc_domain::clones::progress::{self, Progress};
use svc_domain::clones::redirect;
use svc_domain::clones::source::{Scheme, Source};
use svc_ports::process::Exited;
use svc_projects::git_call::{self, Way};
use svc_projects::provision::NewProject;
use svc_watch::{Pace, Subscription};
use tokio::time::Instant;

/// Most redirects that are followed (H47).
const REDIRECTS: usize = 5;
/// The size on disk is measured this often (H51).
///
/// Less often where that takes long.
const MEASURE: Duration = Duration::from_millis(500);
/// At least this often.
const MEASURE_AT_LEAST: Duration = Duration::from_secs(2);
/// How soon progress is looked for where nothing tells of changed files.
const PACE: Duration = Duration::from_millis(500);
/// Steps are shown at most this often: git can write a hundred within a moment.
const SHOWN: Duration = Duration::from_millis(150);
/// Bytes in a mebibyte.
const MIB: u64 = 1024 * 1024;

/// Why there is no clone. The text is for people, without address and paths.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    /// Somebody cancelled it.
    #[error("cancelled")]
    Cancelled,
    /// The service ends.
    #[error("the service was stopped; clone again when it runs")]
    ShuttingDown,
    /// It took too long.
    #[error("it took longer than {0} s (`clone.timeout_seconds`) and was ended")]
    TimedOut(u64),
    /// It is too large.
    #[error("it is larger than {0} MiB (`clone.max_mb`) and was ended")]
    TooLarge(u32),
    /// The disk is nearly full.
    #[error("the file system of `projects_root` is nearly full; free some space")]
    DiskFull,
    /// A redirect to where nothing may be cloned from.
    #[error("the server redirects to an address that is refused: {0}")]
    Redirect(String),
    /// Git says why.
    #[error("git failed: {0}")]
    Git(String),
    /// A use-case says why.
    #[error("{}", .0.message)]
    Other(AppError),
}

impl From<AppError> for Failed {
    fn from(error: AppError) -> Self {
        Self::Other(error)
    }
}

/// How one attempt ended.
enum Attempt {
    Done,
    Redirected(Source),
}

/// A clone that has its turn.
pub(super) struct Transfer<'a> {
    pub clones: &'a Clones,
    pub job: &'a Job,
    pub shallow: bool,
}

impl Transfer<'_> {
    /// Clones to the place of the project.
    pub async fn run(&self, mut source: Source, mut route: Route) -> Result<(), Failed> {
        let deadline = Instant::now() + self.clones.config.clone.timeout;
        let new = self.clones.begin(&self.job.name, self.job.id.as_str()).await?;
        hit("clone.after_begin").await;
        match self.fetch(&new, &mut source, &mut route, deadline).await {
            Ok(()) => {
                self.clones.publish(&self.job.name, new).await?;
                Ok(())
            }
            Err(failed) => {
                // A large tree takes a while to remove.
                blocking(move || drop(new)).await?;
                Err(failed)
            }
        }
    }

    /// Fills the tree, going where the server sends us.
    async fn fetch(
        &self,
        new: &NewProject,
        source: &mut Source,
        route: &mut Route,
        deadline: Instant,
    ) -> Result<(), Failed> {
        for round in 0..=REDIRECTS {
            match self.attempt(new, round, source, route, deadline).await? {
                Attempt::Done => return Ok(()),
                Attempt::Redirected(next) => {
                    *route = Route::find(&self.clones.config, &next)
                        .await
                        .map_err(|error| Failed::Redirect(error.message))?;
                    *source = next;
                }
            }
        }
        Err(Failed::Redirect(format!("it redirects more than {REDIRECTS} times")))
    }

    async fn attempt(
        &self,
        new: &NewProject,
        round: usize,
        source: &Source,
        route: &Route,
        deadline: Instant,
    ) -> Result<Attempt, Failed> {
        let git = &self.clones.git;
        let (program, env) = git.program()?;
        let trace = new.dir().join(format!("{round}.trace"));
        let url = source.for_git();
        let (forwarder, address) = self.way(source, route).await?;
        let host = source.host.to_string();
        let way = match (&forwarder, address) {
            (Some(forwarder), _) => Way::Https { forwarder: forwarder.port, trace: &trace },
            (None, Some(address)) => {
                Way::Ssh { address: address.ip(), host: &host, port: source.port }
            }
            (None, None) => return Err(Failed::Git("its host does not answer".into())),
        };
        new.remove_tree().map_err(|error| super::not_made(&self.job.name, error))?;
        let call = git_call::clone(&env, &url, &way, self.shallow, &new.tree());
        let name = round.to_string();
        let (mut running, exited) =
            git.start(program, call, &self.job.id, (new.dir(), &name, new.dir())).await?;
        hit("clone.after_start").await;
        let ended = self.watch((&mut running, exited), new, forwarder.as_ref(), deadline).await;
        // Also after an orderly end: nothing that git started outlives it.
        git.kill(&running).await;
        ended?;
        let hidden = [
            (new.tree().display().to_string(), "the project".to_owned()),
            (new.dir().display().to_string(), "the project".to_owned()),
            (url, source.shown()),
        ];
        match self.outcome(&running, &hidden, &trace, source).await {
            Err(failed) if forwarder.is_some_and(|it| it.over.is_cancelled()) => {
                let _ = failed; // the end of the connection is only how git noticed
                Err(Failed::TooLarge(self.clones.config.clone.max_mb))
            }
            outcome => outcome,
        }
    }

    /// A forwarder for https, an address that answers for ssh.
    async fn way(
        &self,
        source: &Source,
        route: &Route,
    ) -> Result<(Option<Forwarder>, Option<SocketAddr>), Failed> {
        match source.scheme {
            Scheme::Https => {
                let target = format!("{}:{}", source.host, source.port);
                let most = match self.most_bytes() {
                    0 => u64::MAX,
                    most => most,
                };
                let started =
                    Forwarder::start(&self.clones.tasks, target, route.clone(), most).await?;
                Ok((Some(started), None))
            }
            Scheme::Ssh => {
                let found = route.connect().await;
                let (_, address) =
                    found.map_err(|_| Failed::Git("its host does not answer".into()))?;
                Ok((None, Some(address)))
            }
        }
    }

    fn most_bytes(&self) -> u64 {
        u64::from(self.clones.config.clone.max_mb).saturating_mul(MIB)
    }

    /// Follows a run to its end, or to the point where it must be killed.
    async fn watch(
        &self,
        (running, mut exited): (&mut Running, Exited),
        new: &NewProject,
        forwarder: Option<&Forwarder>,
        deadline: Instant,
    ) -> Result<(), Failed> {
        let config = &self.clones.config.clone;
        let never = tokio_util::sync::CancellationToken::new();
        let over = forwarder.map_or(&never, |forwarder| &forwarder.over);
        let mut output = Lines::new(self.clones.watcher.dir(new.dir(), Pace::every(PACE)));
        let mut measure = Instant::now() + MEASURE;
        loop {
            tokio::select! {
                report = &mut exited => {
                    running.report = Some(report);
                    output.show(self, running).await;
                    return Ok(());
                }
                () = self.job.cancel.cancelled() => return Err(Failed::Cancelled),
                () = self.clones.tasks.shutdown().cancelled() => return Err(Failed::ShuttingDown),
                () = over.cancelled() => return Err(Failed::TooLarge(config.max_mb)),
                () = tokio::time::sleep_until(deadline) => {
                    return Err(Failed::TimedOut(config.timeout.as_secs()));
                }
                () = tokio::time::sleep_until(measure) => {
                    let begun = Instant::now();
                    self.check_size(new).await?;
                    let pause = begun.elapsed().saturating_mul(10).clamp(MEASURE, MEASURE_AT_LEAST);
                    measure = Instant::now() + pause;
                }
                () = output.grown() => output.show(self, running).await,
            }
        }
    }

    async fn check_size(&self, new: &NewProject) -> Result<(), Failed> {
        let (dir, root) = (new.dir().to_owned(), self.clones.rules.root.clone());
        let measured =
            blocking(move || (svc_projects::provision::disk_bytes(&dir), has_room(&root)));
        let (bytes, has_room) = measured.await?;
        let most = self.most_bytes();
        if most > 0 && bytes > most {
            return Err(Failed::TooLarge(self.clones.config.clone.max_mb));
        }
        if has_room { Ok(()) } else { Err(Failed::DiskFull) }
    }

    /// What an orderly end means.
    async fn outcome(
        &self,
        running: &Running,
        hidden: &[(String, String)],
        trace: &Path,
        source: &Source,
    ) -> Result<Attempt, Failed> {
        if running.report.as_ref().is_some_and(is_success) {
            return Ok(Attempt::Done);
        }
        let file: PathBuf = trace.to_owned();
        let trace = blocking(move || read_trace(&file)).await?;
        if let Some(location) = redirect::target(&trace) {
            let next = source.redirected(location);
            return match next {
                Ok(next) => Ok(Attempt::Redirected(next)),
                Err(bad) => Err(Failed::Redirect(bad.to_string())),
            };
        }
        Err(Failed::Git(running.complaint(hidden).await))
    }

    fn show(&self, at: Progress) {
        self.clones.change(self.job, |record| {
            record.phase = at.phase.to_owned();
            record.percent = at.percent;
            record.bytes = at.bytes.or(record.bytes);
        });
    }
}

/// The growing output of git.
struct Lines {
    changed: Subscription,
    at: u64,
    shown: Option<Instant>,
    last: Progress,
}

impl Lines {
    fn new(changed: Subscription) -> Self {
        Self { changed, at: 0, shown: None, last: Progress::default() }
    }

    /// Waits until there may be more to show.
    async fn grown(&mut self) {
        if let Some(shown) = self.shown {
            tokio::time::sleep_until(shown + SHOWN).await;
        }
        self.changed.changed().await;
    }

    async fn show(&mut self, transfer: &Transfer<'_>, running: &Running) {
        let lines = running.more(&mut self.at).await;
        let newest = lines.iter().rev().find_map(|line| progress::read(line));
        if let Some(newest) = newest
            && newest != self.last
        {
            self.last = newest;
            self.shown = Some(Instant::now());
            transfer.show(newest);
        }
    }
}
