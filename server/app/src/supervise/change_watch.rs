//! What wakes the reconciler and what surrounds the records.
//! Other processes' writes, the projects, the agent's files, the agent's sessions.

use crate::agent::Agent;
use crate::auth::Auth;
use crate::bridges::adopt::Adopter;
use crate::jobs::Jobs;
use crate::logs::retention::Retention;
use crate::nudge::{SAFETY_TICK, settled, socket};
use crate::ops::restart::{Request, Restart};
use crate::ops::temporaries::Temporaries;
use crate::ops::{ConfigEditor, reload_request};
use crate::projects::catalog::Catalog;
use crate::read_model::ReadModel;
use crate::registry::Registry;
use crate::sessions::Extent;
use crate::sessions::Sessions;
use crate::sessions::pointers::Pointers;
use crate::supervise::poll::AgentPoll;
use crate::supervise::watchers::Watchers;
use crate::tasks::Tasks;
use crate::{AppError, failpoint};
use std::os::unix::net::UnixDatagram as BlockingDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use svc_store::Watch;
use svc_watch::{Pace, Watcher};
use tokio::net::UnixDatagram;
use tokio::net::unix::SocketAddr;
use tokio::sync::Notify;
use tracing::{debug, warn};

/// Pause after credentials could not be read.
const READ_AGAIN: Duration = Duration::from_millis(500);

/// 64 KiB: the details of a stop are a few hundred bytes, with bounded output.
const LONGEST_MESSAGE: usize = 64 * 1024;

/// How often old history is dropped.
const HOUSEKEEPING: Duration = Duration::from_secs(24 * 3600);

/// The socket for nudges.
/// Without one (path too long, odd file system) the watch on the write-ahead log and the safety
/// tick remain.
pub(super) async fn listen(state_dir: &Path) -> Result<Option<UnixDatagram>, AppError> {
    let path = socket(state_dir);
    let bound = tokio::task::spawn_blocking(move || {
        if let Some(dir) = path.parent() {
            svc_process::files::private_directory(dir)
                .map_err(|error| std::io::Error::other(error.to_string()))?;
        }
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let socket = BlockingDatagram::bind(&path)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    })
    .await
    .map_err(AppError::internal)?;
    match bound.and_then(UnixDatagram::from_std) {
        Ok(socket) => Ok(Some(socket)),
        Err(error) => {
            warn!(error = %error, "no socket for nudges; changes of others are seen by watching");
            Ok(None)
        }
    }
}

/// Tells of writes from now on.
pub(super) async fn writes(registry: &Registry) -> Option<Watch> {
    match registry.store.watch().await {
        Ok(watch) => Some(watch),
        Err(error) => {
            warn!(error = %error, "changes of other processes are seen by the slow tick only");
            None
        }
    }
}

/// Notices what other processes write.
pub(crate) struct WriteWatch {
    pub state_dir: PathBuf,
    pub registry: Arc<Registry>,
    pub auth: Arc<Auth>,
    pub jobs: Arc<Jobs>,
    pub read_model: Arc<ReadModel>,
    pub watchers: Arc<Watchers>,
    pub restart: Arc<Restart>,
    pub config: Arc<ConfigEditor>,
    pub tasks: Tasks,
}

impl WriteWatch {
    /// Wakes the reconciler when another process has written, and at a slow tick.
    /// `hosted` is who reads the rows of Direct Sessions.
    pub async fn run(
        &self,
        listener: Option<UnixDatagram>,
        mut watch: Option<Watch>,
        hosted: &Notify,
    ) {
        let period = failpoint::time("writes.tick").unwrap_or(SAFETY_TICK);
        let wal = self.registry.store.path().with_file_name("svc.db-wal");
        let mut wal = self.watchers.watcher.file(&wal, Pace::every(period));
        let mut tick = tokio::time::interval(period);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let mut buffer = vec![0; LONGEST_MESSAGE];
        let mut are_credentials_read = true;
        let mut is_unchecked = false;
        loop {
            let is_tick = tokio::select! {
                () = self.tasks.shutdown().cancelled() => return,
                _ = tick.tick() => true,
                () = tokio::time::sleep(READ_AGAIN), if !are_credentials_read => false,
                _ = wal.changed() => false,
                received = nudged(listener.as_ref(), &mut buffer) => {
                    match received {
                        Ok((length, from)) => {
                            let message = buffer.get(..length).unwrap_or_default();
                            let command = from.as_pathname().map(Path::to_owned);
                            if let Some(request) = Request::read(message) {
                                if let Some(command) = command {
                                    self.restart.serve(request, command);
                                }
                            } else if let Some(request) = reload_request(message) {
                                self.config.serve_reload(request, command);
                            } else if let Some(result) = settled(message) {
                                self.jobs.announce_settled(&result);
                            }
                        }
                        Err(error) => debug!(error = %error, "a nudge could not be read"),
                    }
                    false
                }
            };
            let written = match &mut watch {
                Some(watch) => watch.changed().await.unwrap_or(true),
                None => true,
            };
            // The tick asks, too: a socket that says nothing must not outlive its credential.
            if written || is_tick || !are_credentials_read {
                are_credentials_read = self.auth.look_again().await;
            }
            if is_tick {
                self.read_model.rest();
            }
            if written {
                is_unchecked = true;
                hosted.notify_one();
                self.registry.wake_after_foreign_write(&self.tasks);
            }
            if is_tick && std::mem::take(&mut is_unchecked) {
                // What was written here and not taken over, because whoever wrote it was given up.
                self.registry.copies.invalidate();
                self.registry.wake.notify_one();
            }
            // Processes that are not watched (table unreadable, launcher of somebody who died) are
            // looked at by the tick.
            if is_tick && self.watchers.has_open_questions() {
                self.registry.wake.notify_one();
            }
        }
    }
}

async fn nudged(
    listener: Option<&UnixDatagram>,
    buffer: &mut [u8],
) -> std::io::Result<(usize, SocketAddr)> {
    match listener {
        Some(listener) => listener.recv_from(buffer).await,
        None => std::future::pending().await,
    }
}

/// Notices what changes around the rows.
pub(crate) struct Surroundings {
    pub catalog: Arc<Catalog>,
    pub agent: Arc<Agent>,
    pub registry: Arc<Registry>,
    pub read_model: Arc<ReadModel>,
    pub watcher: Watcher,
    pub tasks: Tasks,
}

impl Surroundings {
    /// Projects, trust and the agent's state, as they change.
    pub async fn run(&self) {
        let mut projects = self.catalog.changes();
        let mut version = self.agent.cli().version_changes();
        let mut login = self.agent.cli().login_changes();
        let config_file = self.agent.config_file();
        let mut trust = config_file.map(|file| self.watcher.file(&file, Pace::every(SAFETY_TICK)));
        // The first answers of the agent are asked for here; requests never wait for them.
        self.agent.refresh();
        let mut refresh = tokio::time::interval(Duration::from_secs(30));
        refresh.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                () = self.tasks.shutdown().cancelled() => return,
                () = counted(projects.as_mut()) => self.registry.publish_all().await,
                Ok(()) = version.changed() => {
                    // Bridges that run the probed program have a version now.
                    if let Some(publisher) = &self.registry.publisher {
                        publisher.records.facts.clear();
                    }
                    self.registry.publish_all().await;
                }
                Ok(()) = login.changed() => self.registry.publish_all().await,
                () = changed(trust.as_mut()) => self.registry.publish_all().await,
                // Only while somebody looks: an idle service starts no process.
                _ = refresh.tick(), if self.read_model.subscribers() > 0 => self.agent.refresh(),
            }
        }
    }
}

pub(super) async fn counted(changes: Option<&mut tokio::sync::watch::Receiver<u64>>) {
    let over = match changes {
        Some(changes) => changes.changed().await.is_err(),
        None => true,
    };
    if over {
        std::future::pending::<()>().await;
    }
}

async fn changed(subscription: Option<&mut svc_watch::Subscription>) {
    match subscription {
        Some(subscription) => drop(subscription.changed().await),
        None => std::future::pending().await,
    }
}

/// Notices what changes in the agent's sessions.
pub(crate) struct SessionWatch {
    pub sessions: Arc<Sessions>,
    pub adopter: Arc<Adopter>,
    pub pointers: Arc<Pointers>,
    pub temporaries: Arc<Temporaries>,
    pub watcher: Watcher,
    pub tasks: Tasks,
}

impl SessionWatch {
    /// Working sessions, as the agent registers them and as bridges come and go.
    /// A session that is killed leaves its entry behind: the poll notices.
    pub async fn run(&self) {
        let Some(dir) = self.sessions.scan.agent.sessions_dir() else {
            // Without a home of the agent there is no pointer that could name a lost bridge.
            self.pointers.retention.scanned_everything();
            self.pointers.retention.prune().await;
            return;
        };
        let mut entries = self.watcher.dir(&dir, Pace::every(Duration::from_secs(2)));
        let mut rows = self.sessions.registry.copies.changes();
        let mut poll = AgentPoll::new(&self.sessions.scan.config);
        let mut listed = self.sessions.scan.agent.cli().sessions_changes();
        let mut is_first = true;
        loop {
            // The first tick comes at once.
            let look = tokio::select! {
                () = self.tasks.shutdown().cancelled() => return,
                _ = entries.changed() => Extent::Registry,
                Ok(()) = rows.changed() => Extent::Registry,
                Ok(()) = listed.changed() => Extent::Registry,
                () = poll.tick() => Extent::Everything,
            };
            let lost = self.sessions.publish(look).await;
            for project in lost {
                if let Err(error) = self.adopter.rediscover(&project).await {
                    warn!(
                        project.name = %project.name, error = %error,
                        "a bridge of this service without a record was not taken over"
                    );
                }
            }
            let is_complete = look == Extent::Everything && !self.sessions.is_stale();
            if is_complete && std::mem::take(&mut is_first) {
                // After the rediscovery: what is live by now is known.
                self.pointers.collect().await;
                // Again, now that the projects are known.
                self.temporaries.sweep().await;
                self.pointers.retention.scanned_everything();
                self.pointers.retention.prune().await;
            }
            // Entries are rewritten at every turn of a session; one look per breath is enough.
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

/// Does what is done once a day.
pub(crate) struct Housekeeping {
    pub registry: Arc<Registry>,
    pub retention: Arc<Retention>,
    pub temporaries: Arc<Temporaries>,
    pub tasks: Tasks,
}

impl Housekeeping {
    /// Things that are done once a day.
    pub async fn run(&self) {
        let mut day = tokio::time::interval(HOUSEKEEPING);
        loop {
            tokio::select! {
                () = self.tasks.shutdown().cancelled() => return,
                _ = day.tick() => {
                    if let Err(error) = self.registry.store.prune_history(self.retention.now()).await {
                        warn!(error = %error, "old history was not dropped");
                    }
                    self.retention.prune().await;
                    self.temporaries.sweep().await;
                    if let Some(publisher) = &self.registry.publisher {
                        publisher.reread_rows().await;
                    }
                }
            }
        }
    }
}
