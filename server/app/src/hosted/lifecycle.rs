//! Use-cases: end, forget and rename a Direct Session.

use crate::hosted::rows::{Changed, OwnChange};
use crate::hosted::{HostedParts, HostedSessions};
use crate::ops::reserve;
use crate::tasks::blocking;
use crate::{AppError, Class};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use svc_domain::hosted::{Command, Fact, HostedSession, State};
use svc_domain::identity::{ProcessIdentity, Verdict};
use svc_hosted::client::CallError;
use svc_ports::process::{Signal, Target};
use svc_shared::api::instances::Instance;
use svc_shared::error::ErrorCode;
use svc_shared::ids::InstanceId;
use svc_shared::internal::Forgotten;

/// From the orderly signal to the last one, and from there to giving up.
const GRACE: Duration = Duration::from_secs(5);
/// A daemon that has not answered so long after that is frozen.
const SLACK: Duration = Duration::from_secs(2);

fn unknown(id: &InstanceId) -> AppError {
    crate::bridges::lookup::unknown_instance(id.as_str())
}

impl HostedParts {
    /// Carries out a stop whose intent is recorded.
    ///
    /// The caller holds the lock of the project. What the daemon does not do is done here: an agent
    /// that froze the daemon, a process of the same user, must not live on.
    async fn finish_stop(
        self: &Arc<Self>,
        session: &HostedSession,
    ) -> Result<HostedSession, AppError> {
        // Who dropped every mark can only be told by its parent, and only while that lives.
        let below = self.below(session).await;
        let failed = match self.stop_by_daemon(session, &below).await {
            Ok(stopped) => return Ok(stopped),
            Err(error) => error,
        };
        if !self.end_directly(session).await? {
            return Err(failed);
        }
        self.end_leftovers(session, below).await;
        let fact = Fact::Exited { code: None, signal: None, detail: None };
        match self.rows.observe(&session.id, &session.process_id, fact).await? {
            Changed::Now(session) => Ok(*session),
            // The daemon came back and told it first.
            Changed::Late | Changed::Refused(_) => {
                self.rows.get(&session.id).ok_or_else(|| unknown(&session.id))
            }
        }
    }

    /// Ends the agent of a session by its proven identity; tells whether it is gone.
    async fn end_directly(self: &Arc<Self>, session: &HostedSession) -> Result<bool, AppError> {
        let Some(agent) = session.agent.clone() else { return Ok(false) };
        let (this, of, one) = (Arc::clone(self), session.clone(), agent.clone());
        let look = move || (this.host.probe(&one), this.is_agent_of(&of, &one));
        match blocking(look).await? {
            (Verdict::Gone(_), _) => return Ok(true),
            (Verdict::Same, true) => {}
            (Verdict::Same | Verdict::Unknown, _) => return Ok(false),
        }
        for (signal, grace) in [(Signal::Interrupt, SLACK), (Signal::Kill, GRACE)] {
            let _ = self.host.signal(&agent, signal, Target::Group);
            if tokio::time::timeout(grace, self.host.exited(&agent)).await.is_ok() {
                break;
            }
        }
        Ok(matches!(self.host.probe(&agent), Verdict::Gone(_)))
    }

    /// Has the daemon end the agent.
    ///
    /// What it started, as far as `below` and the processes themselves say, ends before the end is
    /// recorded: who dies in between finishes the stop later.
    async fn stop_by_daemon(
        self: &Arc<Self>,
        session: &HostedSession,
        below: &[ProcessIdentity],
    ) -> Result<HostedSession, AppError> {
        let silent = |_| super::link::failed(CallError::Unreachable);
        let client = tokio::time::timeout(GRACE, self.link.client()).await.map_err(silent)??;
        for signal in ["INT", "KILL"] {
            let wait = u64::try_from(GRACE.as_millis()).unwrap_or(u64::MAX);
            let params = json!({ "id": session.process_id, "signal": signal, "timeoutMs": wait });
            let asked = client.call("process.killAndWait", params);
            let answer = match tokio::time::timeout(GRACE + SLACK, asked).await.map_err(silent)? {
                Ok(answer) => answer,
                // The daemon does not know the process: whoever follows it finds out why.
                Err(error) => return Err(super::link::failed(error)),
            };
            if answer.get("exited").and_then(serde_json::Value::as_bool) != Some(true) {
                continue;
            }
            self.end_leftovers(session, below.to_vec()).await;
            let number = |name: &str| {
                answer
                    .get(name)
                    .and_then(serde_json::Value::as_i64)
                    .and_then(|n| i32::try_from(n).ok())
            };
            let fact =
                Fact::Exited { code: number("exitCode"), signal: number("signal"), detail: None };
            return match self.rows.observe(&session.id, &session.process_id, fact).await? {
                Changed::Now(session) => Ok(*session),
                Changed::Late | Changed::Refused(_) => Err(unknown(&session.id)),
            };
        }
        Err(AppError::new(
            ErrorCode::StillLive,
            Class::Conflict,
            format!("the agent of Direct Session {} did not end; try again", session.id.short()),
        ))
    }

    /// Finishes a stop that somebody else began and did not finish.
    pub(super) async fn finish_stop_later(
        self: &Arc<Self>,
        id: &InstanceId,
    ) -> Result<(), AppError> {
        let Some(session) = self.rows.get(id) else { return Ok(()) };
        let _lock = self.locks.project(&session.cwd).await?;
        self.rows.refresh().await?;
        let Some(session) = self.rows.get(id) else { return Ok(()) };
        if session.state == State::Stopping {
            self.finish_stop(&session).await?;
        }
        Ok(())
    }

    /// Whether this process is the agent of a session, by what it carries (H102).
    ///
    /// A record can name a stranger's true pid, start and boot. Blocks for one look.
    pub(super) fn is_agent_of(&self, session: &HostedSession, agent: &ProcessIdentity) -> bool {
        self.host.launch_of(agent).is_some_and(|carried| carried.as_str() == session.process_id)
    }

    async fn kill_orphan(
        self: &Arc<Self>,
        session: &HostedSession,
    ) -> Result<HostedSession, AppError> {
        let refused = |why: &str| {
            Err(AppError::new(
                ErrorCode::StillLive,
                Class::Conflict,
                format!("the agent of Direct Session {} is left alone: {why}", session.id.short()),
            ))
        };
        let mut below = Vec::new();
        if let Some(agent) = session.agent.clone() {
            let (this, of, one) = (Arc::clone(self), session.clone(), agent.clone());
            let (verdict, is_agent) =
                blocking(move || (this.host.probe(&one), this.is_agent_of(&of, &one))).await?;
            match verdict {
                Verdict::Gone(_) => {}
                Verdict::Unknown => return refused("the process table cannot be read"),
                Verdict::Same if !is_agent => {
                    return refused(
                        "nothing but the record says that the process is its agent; look at it \
                         with `ps` and end it yourself if it is",
                    );
                }
                Verdict::Same => {
                    below = self.below(session).await;
                    for signal in [Signal::Interrupt, Signal::Kill] {
                        let _ = self.host.signal(&agent, signal, Target::Group);
                        let gone = self.host.exited(&agent);
                        if tokio::time::timeout(GRACE, gone).await.is_ok() {
                            break;
                        }
                    }
                    if !matches!(self.host.probe(&agent), Verdict::Gone(_)) {
                        return refused("it did not end; try again");
                    }
                }
            }
        }
        self.end_leftovers(session, below).await;
        match self.rows.observe(&session.id, &session.process_id, Fact::OrphanGone).await? {
            Changed::Now(session) => Ok(*session),
            Changed::Late | Changed::Refused(_) => Err(unknown(&session.id)),
        }
    }
}

impl HostedSessions {
    /// Ends a session.
    /// Answers after its agent is gone; an ended one is returned unchanged.
    ///
    /// # Errors
    /// The agent could not be proven dead; the row says so.
    pub(crate) async fn stop(&self, id: &InstanceId) -> Result<Instance, AppError> {
        let parts = &self.parts;
        parts.rows.refresh().await?;
        let session = parts.rows.get(id).ok_or_else(|| unknown(id))?;
        if !session.is_live() && !session.is_orphan() {
            return Ok(parts.record(&session));
        }
        reserve::make_room(&parts.config.state_dir).await;
        let _lock = parts.locks.project(&session.cwd).await?;
        parts.rows.refresh().await?;
        let session = parts.rows.get(id).ok_or_else(|| unknown(id))?;
        if session.is_orphan() {
            let session = parts.kill_orphan(&session).await?;
            return Ok(parts.record(&session));
        }
        // The intent comes first: an exit after it is never a crash.
        let session = match parts.rows.command(id, Command::Stop).await? {
            Changed::Now(session) => *session,
            Changed::Late | Changed::Refused(_) => return Err(unknown(id)),
        };
        crate::failpoint::hit("hosted.after_stop_intent").await;
        if !session.is_live() {
            return Ok(parts.record(&session));
        }
        let session = parts.finish_stop(&session).await?;
        Ok(parts.record(&session))
    }

    /// Removes an ended session, and what the daemon keeps of it.
    ///
    /// # Errors
    /// It runs, or its agent does.
    pub(crate) async fn forget(&self, id: &InstanceId) -> Result<Forgotten, AppError> {
        let parts = &self.parts;
        parts.rows.refresh().await?;
        let session = parts.rows.get(id).ok_or_else(|| unknown(id))?;
        let _lock = parts.locks.project(&session.cwd).await?;
        parts.rows.refresh().await?;
        let session = parts.rows.get(id).ok_or_else(|| unknown(id))?;
        if session.is_live() || session.is_orphan() {
            return Err(AppError::new(
                ErrorCode::StillLive,
                Class::Conflict,
                format!(
                    "Direct Session {} is {} and cannot be forgotten; stop it first",
                    session.id.short(),
                    if session.is_orphan() { "still alive" } else { session.status().as_str() }
                ),
            ));
        }
        if !parts.rows.delete(&session).await? {
            return Err(AppError::busy("the row is written by too many at once; try again"));
        }
        // Without a daemon there is nothing to forget: it drops ended processes by itself.
        if let Some(client) = parts.link.connected() {
            let _ = client.call("process.forget", json!({ "id": session.process_id })).await;
        }
        Ok(Forgotten { id: session.id.to_string(), forgotten: true })
    }

    /// Changes what a person may change.
    ///
    /// # Errors
    /// The row cannot be written.
    pub(crate) async fn change(
        &self,
        id: &InstanceId,
        what: OwnChange,
    ) -> Result<Instance, AppError> {
        match self.parts.rows.change_own(id, &what).await? {
            Changed::Now(session) => Ok(self.parts.record(&session)),
            Changed::Late | Changed::Refused(_) => Err(unknown(id)),
        }
    }
}
