//! Use-cases: conversations whose bridge died, and how they go on.

use crate::agent::Agent;
use crate::auth::refs::SessionRefs;
use crate::jobs::Jobs;
use crate::jobs::continue_conversation::Conversation;
use crate::locks::Locks;
use crate::registry::Registry;
use crate::tasks::{Tasks, blocking};
use crate::{AppError, Class};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use svc_agent::transcript;
use svc_ports::Clock;
use svc_shared::Word;
use svc_shared::api::stranded::{ContinuedSession, StrandedSession};
use svc_shared::error::ErrorCode;
use svc_shared::ids::SessionRef;
use svc_shared::status::StrandedState;
use svc_store::{Stranded, StrandedChange};

/// A continue waits at most this long for another one of the same conversation.
const WAIT: Duration = Duration::from_secs(70);

/// Conversations whose bridge died.
pub struct StrandedSessions {
    pub(crate) state_dir: PathBuf,
    pub(crate) registry: Arc<Registry>,
    pub(crate) refs: Arc<SessionRefs>,
    pub(crate) agent: Arc<Agent>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) locks: Arc<Locks>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tasks: Tasks,
}

impl StrandedSessions {
    /// All of them, the latest first, whatever became of each.
    ///
    /// # Errors
    /// The registry cannot be read.
    pub async fn list(&self) -> Result<Vec<StrandedSession>, AppError> {
        let rows = self.registry.store.stranded().await?;
        Ok(rows.iter().filter_map(|row| self.record(row)).collect())
    }

    /// Goes on with a conversation as a background job that the remote client reaches.
    /// Of all who ask, one starts it; a continue that has begun does not end with its caller.
    ///
    /// # Errors
    /// Nothing was started, except after a time-out, where the list of jobs tells.
    pub async fn continue_as_job(
        self: &Arc<Self>,
        reference: &str,
    ) -> Result<ContinuedSession, AppError> {
        let (this, reference) = (Arc::clone(self), reference.to_owned());
        self.tasks.complete(async move { this.continue_now(&reference).await }).await
    }

    /// Takes a conversation off the list of those that wait.
    ///
    /// # Errors
    /// There is no such conversation, or it does not wait any more.
    pub async fn dismiss(&self, reference: &str) -> Result<StrandedSession, AppError> {
        let rows = self.of_ref(reference).await?;
        let first = waiting(&rows)?;
        if !self.change(&rows, StrandedChange::Dismiss).await? {
            return Err(not_waiting(first));
        }
        let rows = self.of_ref(reference).await?;
        rows.first().and_then(|row| self.record(row)).ok_or_else(unknown)
    }

    /// Gives back conversations whose continue was cut off together with its process.
    ///
    /// # Errors
    /// The registry cannot be read or written.
    pub async fn settle(&self) -> Result<(), AppError> {
        let rows = self.registry.store.stranded().await?;
        for row in rows.into_iter().filter(is_claimed) {
            // Who continues it holds the lock; the kernel gives it up with the process.
            let place = self.lock_place(&row);
            if self.locks.try_project(&place).await.is_some() {
                self.change(&[row], StrandedChange::Release).await?;
            }
        }
        Ok(())
    }

    async fn continue_now(&self, reference: &str) -> Result<ContinuedSession, AppError> {
        let rows = self.of_ref(reference).await?;
        let first = rows.first().ok_or_else(unknown)?;
        let _lock = self.locks.lock(&self.lock_place(first), WAIT, "conversation").await?;
        // Under the lock: somebody may have continued it meanwhile, or begun to and died.
        let mut rows = self.of_ref(reference).await?;
        if rows.iter().any(is_claimed) {
            self.change(&rows, StrandedChange::Release).await?;
            rows = self.of_ref(reference).await?;
        }
        let one = waiting(&rows)?;
        let conversation = self.conversation(one).await?;
        if !self.change(&rows, StrandedChange::Claim).await? {
            return Err(not_waiting(one));
        }
        match self.jobs.continue_conversation(&conversation).await {
            Ok(job) => {
                self.change(&rows, StrandedChange::Name(job.to_string())).await?;
                let session_ref = self.refs.session(one.conversation.expose());
                let session_ref = session_ref.ok_or_else(unknown)?;
                Ok(ContinuedSession { session_ref, job_id: job.to_string() })
            }
            Err(error) => {
                self.change(&rows, StrandedChange::Release).await?;
                Err(error)
            }
        }
    }

    async fn conversation(&self, of: &Stranded) -> Result<Conversation, AppError> {
        let bridge = of.instance_id.parse().ok().and_then(|id| self.registry.copies.bridge(&id));
        let bridge = match bridge {
            Some(bridge) => bridge,
            None => {
                let id = of.instance_id.parse().map_err(|_| unknown())?;
                let stored = self.registry.fetch(&id).await?;
                stored.and_then(|stored| stored.bridge().cloned()).ok_or_else(unknown)?
            }
        };
        let (home, id) = (self.agent.home()?, of.conversation.clone());
        let project = of.cwd.clone();
        let cwd = blocking(move || {
            let cwd = transcript::of(&home, &project, &id)?.cwd?;
            cwd.canonicalize().ok().filter(|cwd| cwd.is_dir() && cwd.starts_with(&project))
        })
        .await?;
        let Some(cwd) = cwd else {
            return Err(AppError::new(
                ErrorCode::NotResumable,
                Class::Conflict,
                "this conversation cannot be continued: it has no transcript, or its directory is \
                 gone; dismiss it and start a new session",
            ));
        };
        Ok(Conversation {
            id: of.conversation.clone(),
            cwd,
            rc_name: bridge.label().to_owned(),
            permission_mode: bridge.permission_mode,
        })
    }

    /// All rows of the conversation with this token.
    async fn of_ref(&self, reference: &str) -> Result<Vec<Stranded>, AppError> {
        let wanted: SessionRef = reference.parse().map_err(|_| {
            AppError::invalid("this is no token of a conversation; list them with `svc stranded`")
        })?;
        let mut rows = self.registry.store.stranded().await?;
        rows.retain(|row| self.refs.session(row.conversation.expose()).as_ref() == Some(&wanted));
        if rows.is_empty() { Err(unknown()) } else { Ok(rows) }
    }

    /// Changes a conversation, and shows the bridges that name it.
    async fn change(&self, rows: &[Stranded], change: StrandedChange) -> Result<bool, AppError> {
        let Some(first) = rows.first() else { return Ok(false) };
        let (store, now) = (&self.registry.store, self.clock.now());
        let changed = store.change_stranded(&first.conversation, &change, now).await?;
        if changed {
            for id in rows.iter().filter_map(|row| row.instance_id.parse().ok()) {
                self.registry.fetch(&id).await?;
            }
            self.registry.tell_others();
        }
        Ok(changed)
    }

    /// The path whose lock says that a conversation is being continued.
    /// Nothing is there.
    fn lock_place(&self, row: &Stranded) -> PathBuf {
        let token = self.refs.session(row.conversation.expose());
        let token = token.map(|token| token.to_string()).unwrap_or_default();
        self.state_dir.join(Path::new("stranded")).join(token)
    }

    fn record(&self, row: &Stranded) -> Option<StrandedSession> {
        Some(StrandedSession {
            session_ref: self.refs.session(row.conversation.expose())?,
            instance_id: row.instance_id.parse().ok()?,
            project: row.project.clone(),
            generation: row.generation,
            title: row.title.clone(),
            found_at: row.found_at,
            state: Word::of(&row.state),
            continued_as: row.continued_as.clone(),
        })
    }
}

fn is_claimed(row: &Stranded) -> bool {
    row.state == StrandedState::Continued.as_str() && row.continued_as.is_none()
}

/// The one that still waits.
fn waiting(rows: &[Stranded]) -> Result<&Stranded, AppError> {
    let stranded = |row: &&Stranded| row.state == StrandedState::Stranded.as_str();
    match (rows.iter().find(stranded), rows.first()) {
        (Some(row), _) => Ok(row),
        (None, Some(row)) => Err(not_waiting(row)),
        (None, None) => Err(unknown()),
    }
}

fn not_waiting(row: &Stranded) -> AppError {
    let why = match (&row.continued_as, row.state.as_str()) {
        (Some(job), _) => format!("it goes on as background job {job}; open that one"),
        (None, "dismissed") => "it was dismissed; continue it with the agent itself".to_owned(),
        (None, _) => "somebody continues it right now; look again in a moment".to_owned(),
    };
    AppError::new(
        ErrorCode::InvalidValue,
        Class::Conflict,
        format!("this conversation is not stranded any more: {why}"),
    )
}

fn unknown() -> AppError {
    AppError::new(
        ErrorCode::NotFound,
        Class::NotFound,
        "no stranded conversation has this token; list them with `svc stranded`",
    )
}
