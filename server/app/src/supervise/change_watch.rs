//! What wakes the reconciler and what surrounds the records: other processes' writes, the
//! projects, the agent's files, the agent's sessions.

use crate::sessions::Look;
use crate::{App, AppError};
use std::os::unix::net::UnixDatagram as BlockingDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;
use svc_domain::redact::redact_text;
use svc_shared::api::jobs::StopAgentResult;
use svc_store::Watch;
use svc_watch::Pace;
use tokio::net::UnixDatagram;
use tracing::{debug, warn};

/// Slow look at everything, should all wake-ups have been lost.
pub(crate) const SAFETY_TICK: Duration = Duration::from_secs(5);

/// Pause after credentials could not be read.
const READ_AGAIN: Duration = Duration::from_millis(500);

/// 64 KiB: the details of a stop are a few hundred bytes, bounded by the agent's last words.
const LONGEST_MESSAGE: usize = 64 * 1024;

/// How often old history is dropped.
const HOUSEKEEPING: Duration = Duration::from_secs(24 * 3600);

fn socket(state_dir: &Path) -> PathBuf {
    state_dir.join("run").join("notify.sock")
}

/// Tells a running server, if there is one, that the registry has changed. Never waits.
pub(crate) fn nudge(state_dir: &Path) {
    send(state_dir, b"changed");
}

/// Tells a running server, if there is one, how a command's stop of a background job ended, so that
/// the server announces it. Never waits.
pub(crate) fn hand_over_settled(state_dir: &Path, result: &StopAgentResult) {
    match serde_json::to_vec(result) {
        Ok(message) => send(state_dir, &message),
        Err(error) => debug!(error = %error, "the end of a job cannot be told to the service"),
    }
}

fn send(state_dir: &Path, message: &[u8]) {
    let Ok(sender) = BlockingDatagram::unbound() else { return };
    let _ = sender.set_nonblocking(true);
    let _ = sender.send_to(message, socket(state_dir)); // nobody serves: fine
}

/// The result in a message of [`hand_over_settled`].
fn settled(message: &[u8]) -> Option<StopAgentResult> {
    let result: StopAgentResult = serde_json::from_slice(message).ok()?;
    // The state directory is private, but what leaves the service is masked here all the same.
    Some(StopAgentResult { detail: result.detail.as_deref().map(redact_text), ..result })
}

/// The socket for nudges. Without one (path too long, odd file system) the watch on the write-ahead
/// log and the safety tick remain.
pub(super) async fn listen(app: &App) -> Result<Option<UnixDatagram>, AppError> {
    let path = socket(&app.settings().state_dir);
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
pub(super) async fn writes(app: &App) -> Option<Watch> {
    match app.store().watch().await {
        Ok(watch) => Some(watch),
        Err(error) => {
            warn!(error = %error, "changes of other processes are seen by the slow tick only");
            None
        }
    }
}

/// Wakes the reconciler when another process has written, and at a slow tick.
pub(super) async fn run(app: App, listener: Option<UnixDatagram>, mut watch: Option<Watch>) {
    let wal = app.store().path().with_file_name("svc.db-wal");
    let mut wal = app.watcher().file(&wal, Pace::every(SAFETY_TICK));
    let mut tick = tokio::time::interval(SAFETY_TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut buffer = vec![0; LONGEST_MESSAGE];
    let mut are_credentials_read = true;
    let mut is_unchecked = false;
    loop {
        let is_tick = tokio::select! {
            () = app.shutdown().cancelled() => return,
            _ = tick.tick() => true,
            () = tokio::time::sleep(READ_AGAIN), if !are_credentials_read => false,
            _ = wal.changed() => false,
            received = nudged(listener.as_ref(), &mut buffer) => {
                match received {
                    Ok(length) => {
                        let message = buffer.get(..length).unwrap_or_default();
                        if let Some(result) = settled(message) {
                            app.jobs().announce_settled(&result);
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
            are_credentials_read = app.auth().look_again().await;
        }
        if is_tick {
            app.read_model().rest();
        }
        if written {
            is_unchecked = true;
            app.registry().heed_write(app.tasks());
        }
        if is_tick && std::mem::take(&mut is_unchecked) {
            // What was written here and not taken over, because whoever wrote it was given up.
            app.copies().invalidate();
            app.registry().wake.notify_one();
        }
        // Processes that are not watched (table unreadable, launcher of somebody who died) are
        // looked at by the tick.
        if is_tick && app.has_open_questions() {
            app.registry().wake.notify_one();
        }
    }
}

async fn nudged(listener: Option<&UnixDatagram>, buffer: &mut [u8]) -> std::io::Result<usize> {
    match listener {
        Some(listener) => listener.recv(buffer).await,
        None => std::future::pending().await,
    }
}

/// Projects, trust and the agent's state, as they change.
pub(super) async fn surroundings(app: App) {
    let mut projects = app.project_changes();
    let mut version = app.agent().cli().version_changes();
    let mut login = app.agent().cli().login_changes();
    let config_file = app.agent().config_file();
    let mut trust = config_file.map(|file| app.watcher().file(&file, Pace::every(SAFETY_TICK)));
    // The first answers of the agent are asked for here; requests never wait for them.
    app.agent().refresh();
    let mut refresh = tokio::time::interval(Duration::from_secs(30));
    refresh.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            () = app.shutdown().cancelled() => return,
            () = counted(projects.as_mut()) => app.registry().publish_all().await,
            Ok(()) = version.changed() => {
                // Bridges that run the probed program have a version now.
                app.records().facts.clear();
                app.registry().publish_all().await;
            }
            Ok(()) = login.changed() => app.registry().publish_all().await,
            () = changed(trust.as_mut()) => app.registry().publish_all().await,
            // Only while somebody looks: an idle service starts no process.
            _ = refresh.tick(), if app.read_model().subscribers() > 0 => app.agent().refresh(),
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

/// Working sessions, as the agent registers them and as bridges come and go. A session that is
/// killed leaves its entry behind: the poll notices.
pub(super) async fn sessions(app: App) {
    let Some(dir) = app.agent().sessions_dir() else {
        // Without a home of the agent there is no pointer that could name a lost bridge.
        app.retention().scanned_everything();
        app.retention().prune().await;
        return;
    };
    let mut entries = app.watcher().dir(&dir, Pace::every(Duration::from_secs(2)));
    let mut rows = app.copies().changes();
    let mut poll = tokio::time::interval(app.settings().claude.agents_json_poll_interval);
    poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut listed = app.agent().cli().sessions_changes();
    let mut is_first = true;
    loop {
        // The first tick comes at once.
        let look = tokio::select! {
            () = app.shutdown().cancelled() => return,
            _ = entries.changed() => Look::Registry,
            Ok(()) = rows.changed() => Look::Registry,
            Ok(()) = listed.changed() => Look::Registry,
            _ = poll.tick() => Look::Everything,
        };
        let lost = app.sessions().publish(look).await;
        for project in lost {
            if let Err(error) = app.rediscover(&project).await {
                warn!(
                    project.name = %project.name, error = %error,
                    "a bridge of this service without a record was not taken over"
                );
            }
        }
        let is_complete = look == Look::Everything && !app.sessions().is_stale();
        if is_complete && std::mem::take(&mut is_first) {
            // After the rediscovery: what is live by now is known.
            app.pointers().collect().await;
            // Again, now that the projects are known.
            app.temporaries().sweep().await;
            app.retention().scanned_everything();
            app.retention().prune().await;
        }
        // Entries are rewritten at every turn of a session; one look per breath is enough.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Things that are done once a day.
pub(super) async fn housekeeping(app: App) {
    let mut day = tokio::time::interval(HOUSEKEEPING);
    loop {
        tokio::select! {
            () = app.shutdown().cancelled() => return,
            _ = day.tick() => {
                if let Err(error) = app.store().prune_history(app.clock().now()).await {
                    warn!(error = %error, "old history was not dropped");
                }
                app.retention().prune().await;
                app.temporaries().sweep().await;
                if let Some(publisher) = &app.registry().publisher {
                    publisher.reread_rows().await;
                }
            }
        }
    }
}
