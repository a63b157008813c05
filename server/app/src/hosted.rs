//! Direct Sessions: agents on pipes that a daemon of their own holds.
//!
//! `link.rs` has the connection to the daemon, `rows.rs` is the only writer of rows, `pump.rs`
//! follows a process, `approvals.rs` answers what agents ask. The rules are in
//! `svc_domain::hosted`.
//!
//! A row is written before its process is started, with the name that the daemon will know the
//! process by. After a death in between, the daemon's list says what came of it.

mod approvals;
mod family;
mod import;
mod launch;
mod lifecycle;
mod link;
mod pump;
mod ring;
pub(crate) mod rows;
mod view;
mod viewer;

pub use approvals::Approvals;
pub(crate) use link::{Link, PROGRAM, program_of};
pub(crate) use rows::HostedRows;
pub(crate) use view::View as HostedView;
pub use viewer::{HostedItem, HostedViewer};

use crate::bridges::readiness::Readiness;
use crate::locks::Locks;
use crate::ops::HostedFigures;
use crate::projects::trusting::Trust;
use crate::tasks::Tasks;
use crate::{AppError, Class};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pump::{Pump, Shared};
use serde_json::json;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use svc_config::Config;
use svc_domain::hosted::prompt::message_line;
use svc_domain::hosted::{HostedSession, State};
use svc_hosted::client::Client;
use svc_hosted::protocol::STDIN_CHUNK;
use svc_ports::ProcessHost;
use svc_shared::api::health::HostedHealth;
use svc_shared::api::instances::Instance;
use svc_shared::error::ErrorCode;
use svc_shared::ids::InstanceId;
use tokio::sync::{Mutex as AsyncMutex, Notify};

/// Longest message, in bytes.
const LONGEST_TEXT: usize = 256 * 1024;

struct Followed {
    process: String,
    shared: Arc<Shared>,
}

/// What everything about Direct Sessions shares.
pub(crate) struct HostedParts {
    pub config: Arc<Config>,
    pub rows: Arc<HostedRows>,
    pub link: Arc<Link>,
    pub host: Arc<dyn ProcessHost>,
    pub locks: Arc<Locks>,
    pub readiness: Arc<Readiness>,
    pub trust: Arc<Trust>,
    pub tasks: Tasks,
    /// Another process wrote, or may have.
    pub wake: Notify,
    followed: Mutex<HashMap<InstanceId, Followed>>,
    /// One line at a time goes to an agent.
    writing: AsyncMutex<()>,
    /// One at a time looks for answers to deliver.
    delivering: AsyncMutex<()>,
}

impl HostedParts {
    /// Shares these parts.
    pub fn new(
        rows: Arc<HostedRows>,
        link: Arc<Link>,
        host: &Arc<dyn ProcessHost>,
        locks: &Arc<Locks>,
        readiness: &Arc<Readiness>,
        trust: &Arc<Trust>,
        tasks: &Tasks,
    ) -> Self {
        Self {
            config: Arc::clone(&readiness.config),
            rows,
            link,
            host: Arc::clone(host),
            locks: Arc::clone(locks),
            readiness: Arc::clone(readiness),
            trust: Arc::clone(trust),
            tasks: tasks.clone(),
            wake: Notify::new(),
            followed: Mutex::default(),
            writing: AsyncMutex::default(),
            delivering: AsyncMutex::default(),
        }
    }

    fn followed(&self) -> MutexGuard<'_, HashMap<InstanceId, Followed>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows the process of a session, if nobody does yet. Only the service follows.
    pub(crate) fn follow(self: &Arc<Self>, session: &HostedSession) {
        if !self.rows.has_readers() || !self.link.is_enabled() {
            return;
        }
        let mut followed = self.followed();
        if followed.get(&session.id).is_some_and(|one| one.process == session.process_id) {
            return;
        }
        let shared: Arc<Shared> = Arc::default();
        let one = Followed { process: session.process_id.clone(), shared: Arc::clone(&shared) };
        followed.insert(session.id.clone(), one);
        drop(followed);
        self.tasks.spawn(Pump::new(Arc::clone(self), session, shared).run());
    }

    /// What a session asks for, unredacted, while its agent is connected.
    pub(crate) fn input(&self, id: &InstanceId, request_id: &str) -> Option<serde_json::Value> {
        self.followed().get(id).and_then(|one| one.shared.input(request_id))
    }

    /// Tells whoever follows a session that an answer waits.
    pub(crate) fn wake(&self, id: &InstanceId) {
        if let Some(one) = self.followed().get(id) {
            one.shared.answered.notify_one();
        }
    }

    /// Writes whole lines to an agent, in one go: the agent gets all of it or nothing.
    pub(crate) async fn write(
        &self,
        client: &Client,
        process: &str,
        lines: &[u8],
    ) -> Result<(), AppError> {
        let _turn = self.writing.lock().await;
        let count = lines.len().div_ceil(STDIN_CHUNK);
        for (at, chunk) in lines.chunks(STDIN_CHUNK).enumerate() {
            let params = json!({ "id": process, "data": STANDARD.encode(chunk),
                "continued": at > 0, "more": at + 1 < count });
            client.call("process.stdin", params).await.map_err(link::failed)?;
        }
        Ok(())
    }

    /// Reads the sessions, and takes over those of an earlier version.
    ///
    /// # Errors
    /// The registry cannot be read.
    pub(crate) async fn load(self: &Arc<Self>) -> Result<(), AppError> {
        if self.link.is_enabled()
            && let Err(error) = self.import().await
        {
            tracing::warn!("Direct Sessions of an earlier version are not taken over: {error}");
        }
        self.rows.refresh().await
    }

    /// Watches over the sessions of a service.
    /// Connects, follows, and reads what others wrote.
    pub(crate) async fn run(self: Arc<Self>) {
        if self.link.is_enabled() {
            self.tasks.spawn(Arc::clone(&self.link).keep());
        }
        let mut connections = self.link.changes();
        loop {
            for session in self.rows.all().iter().filter(|session| session.is_live()) {
                self.follow(session);
                self.wake(&session.id);
            }
            tokio::select! {
                () = self.tasks.shutdown().cancelled() => return,
                () = self.wake.notified() => {}
                changed = connections.changed() => if changed.is_err() { return },
            }
            if let Err(error) = self.rows.refresh().await {
                tracing::warn!("the rows of Direct Sessions cannot be read: {error}");
            }
        }
    }
}

/// Direct Sessions, for whoever asks for them.
pub struct HostedSessions {
    pub(crate) parts: Arc<HostedParts>,
}

impl HostedSessions {
    /// How the daemon stands; `None` while the channel is off.
    #[must_use]
    pub fn health(&self) -> Option<HostedHealth> {
        self.parts.link.health()
    }

    /// Counts for a monitoring system; `None` while the channel is off.
    #[must_use]
    pub fn figures(&self) -> Option<HostedFigures> {
        let live = self.parts.rows.all().iter().filter(|one| one.is_live()).count();
        self.parts.link.is_enabled().then(|| HostedFigures {
            sessions: u64::try_from(live).unwrap_or(u64::MAX),
            is_up: self.parts.link.connected().is_some(),
        })
    }

    /// Shows readers the sessions as they are known.
    pub(crate) fn show(&self) {
        self.parts.rows.show();
    }

    /// Every Direct Session, in the order they were made.
    ///
    /// # Errors
    /// The registry cannot be read.
    pub async fn all(&self) -> Result<Vec<Instance>, AppError> {
        if !self.parts.rows.has_readers() {
            self.parts.rows.refresh().await?;
        }
        Ok(self.parts.rows.all().iter().map(|session| self.parts.rows.record(session)).collect())
    }

    /// Sends a message to the agent of a session that runs.
    ///
    /// # Errors
    /// The session does not run, the message is empty or too long, or the daemon is away.
    pub async fn message(&self, id: &InstanceId, text: &str) -> Result<(), AppError> {
        if text.trim().is_empty() {
            return Err(AppError::invalid("`text` is empty; write what the agent should do"));
        }
        if text.len() > LONGEST_TEXT {
            return Err(AppError::new(
                ErrorCode::TooLarge,
                Class::TooLarge,
                "`text` is longer than 256 KiB; put long content into a file of the project",
            ));
        }
        self.parts.rows.refresh().await?;
        let Some(session) = self.parts.rows.get(id) else {
            return Err(crate::bridges::lookup::unknown_instance(id.as_str()));
        };
        if session.state != State::Running {
            return Err(AppError::new(
                ErrorCode::InvalidValue,
                Class::Conflict,
                format!(
                    "Direct Session {} is {} and takes no message; resume it first",
                    session.id.short(),
                    session.status()
                ),
            ));
        }
        let client = self.parts.link.client().await?;
        let (parts, line) = (Arc::clone(&self.parts), message_line(text));
        let sent = async move { parts.write(&client, &session.process_id, line.as_bytes()).await };
        self.parts.tasks.complete(sent).await
    }

    /// Begins to watch the events of a session.
    ///
    /// # Errors
    /// There is no such session.
    pub fn watch(
        &self,
        id: &InstanceId,
        after: u64,
        stream: Option<&str>,
    ) -> Result<HostedViewer, AppError> {
        let Some(session) = self.parts.rows.get(id) else {
            return Err(crate::bridges::lookup::unknown_instance(id.as_str()));
        };
        // Also an ended one: the daemon keeps its frames for a day.
        self.parts.follow(&session);
        let ring = self.parts.rows.rings.of(&session.id, &session.process_id);
        let parts = Arc::clone(&self.parts);
        Ok(HostedViewer::new(parts, session.id, ring, after, stream))
    }
}
