//! What agents ask their operator, in one list, and the answers.

use crate::asked::Asked;
use crate::asked::rows::approval;
use crate::hosted::HostedParts;
use crate::ops::{audit, reserve};
use crate::{AppError, Class, requested};
use std::sync::Arc;
use svc_domain::hosted::prompt::LONGEST_MESSAGE;
use svc_domain::log_escape::quoted;
use svc_shared::api::approvals::{AnswerRequest, Approval, ApprovalDetail};
use svc_shared::error::ErrorCode;
use svc_shared::ids::InstanceId;
use svc_store::Decision;

/// Most answered questions that are shown.
const SHOWN: usize = 200;

/// The approval inbox.
pub struct Approvals {
    pub(crate) parts: Arc<HostedParts>,
    pub(crate) asked: Arc<Asked>,
}

impl Approvals {
    /// What waits, the oldest first.
    ///
    /// # Errors
    /// The registry cannot be read.
    pub async fn open(&self) -> Result<Vec<Approval>, AppError> {
        let mut rows = if self.parts.rows.has_readers() {
            self.parts.rows.prompts()
        } else {
            self.parts.rows.store.open_prompts().await?
        };
        rows.extend(self.asked.open().await?);
        rows.sort_by(|one, other| {
            (one.since, &one.request_id).cmp(&(other.since, &other.request_id))
        });
        Ok(rows.into_iter().filter(|row| row.decision.is_none()).filter_map(approval).collect())
    }

    /// The last 200 that are over, the newest first.
    ///
    /// # Errors
    /// The registry cannot be read.
    pub async fn answered(&self) -> Result<Vec<Approval>, AppError> {
        let store = &self.parts.rows.store;
        let mut rows = store.answered_prompts().await?;
        rows.extend(store.answered_bridge_prompts().await?);
        rows.sort_by_key(|row| std::cmp::Reverse(row.answered_at));
        rows.truncate(SHOWN);
        Ok(rows.into_iter().filter_map(approval).collect())
    }

    /// One question.
    ///
    /// With everything it asks for, while it waits and its agent is connected.
    /// Without a session the name of the request alone must say which question is meant.
    ///
    /// # Errors
    /// There is no such question, several have this name, or the registry cannot be read.
    pub async fn detail(
        &self,
        id: Option<&InstanceId>,
        request_id: &str,
    ) -> Result<ApprovalDetail, AppError> {
        let mut all = self.open().await?;
        all.extend(self.answered().await?);
        let mut named = all.into_iter().filter(|one| {
            one.request_id == request_id && (id.is_none() || one.instance_id.as_ref() == id)
        });
        let Some(approval) = named.next() else {
            return Err(AppError::new(
                ErrorCode::NotFound,
                Class::NotFound,
                "there is no request of this name, or it was answered long ago; `svc approvals \
                 list` shows what waits",
            ));
        };
        // One that waits comes before those that are over.
        if approval.decision.is_none() && named.any(|other| other.decision.is_none()) {
            return Err(ambiguous());
        }
        let waits = approval.decision.is_none();
        let direct = approval.instance_id.as_ref().and_then(|id| self.parts.rows.get(id));
        let request = match direct {
            _ if !waits => None,
            None => self.asked.requested(request_id).map(|request| (*request).clone()),
            Some(session) => match self.parts.input(&session.id, request_id) {
                None => None,
                Some(input) => {
                    let tool = approval.tool.as_deref().unwrap_or_default();
                    Some(requested::read(tool, input, session.cwd).await?)
                }
            },
        };
        Ok(ApprovalDetail { approval, request })
    }

    /// Answers a question, once: whoever comes second is told so.
    ///
    /// The decision is recorded; the service carries it out at once, or as soon as it is connected.
    /// Without a session the name of the request alone must say which question is meant.
    ///
    /// # Errors
    /// It is decided, withdrawn or unknown, or its session does not run.
    pub async fn answer(
        &self,
        id: Option<&InstanceId>,
        request_id: &str,
        answer: &AnswerRequest,
    ) -> Result<(), AppError> {
        let word = match answer.decision.as_str() {
            word @ ("allow" | "deny") => word,
            other => {
                return Err(AppError::invalid(format!(
                    "`decision` cannot be {}; use allow or deny",
                    quoted(other)
                )));
            }
        };
        let message = answer.message.as_deref().map(str::trim).filter(|text| !text.is_empty());
        if message.is_some_and(|text| text.chars().count() > LONGEST_MESSAGE) {
            return Err(AppError::invalid(format!(
                "`message` is longer than {LONGEST_MESSAGE} characters; shorten it"
            )));
        }
        if word == "allow" && message.is_some() {
            return Err(AppError::invalid(
                "`message` goes with a refusal only; leave it out, or send it as a message",
            ));
        }
        if word == "deny" && answer.for_session {
            return Err(AppError::invalid(
                "`for_session` goes with allow only; leave it out to refuse this request",
            ));
        }
        self.parts.rows.refresh().await?;
        if answer.for_session {
            let open = self.open().await?;
            let mut named = open.iter().filter(|one| one.request_id == request_id);
            let is_its = |one: &&Approval| id.is_none() || one.instance_id.as_ref() == id;
            if named.find(is_its).is_some_and(|one| one.session_rules.is_empty()) {
                return Err(AppError::invalid(
                    "`for_session`: the agent offers nothing to allow for its session; allow this \
                     request alone",
                ));
            }
        }
        if word == "deny" {
            // An agent that fills the disk must not go unrefused.
            reserve::make_room(&self.parts.config.state_dir).await;
        }
        let actor = audit::current().map(|actor| actor.to_string());
        let decision =
            Decision { word, for_session: answer.for_session, message, actor: actor.as_deref() };
        let over = || {
            AppError::new(
                ErrorCode::Stale,
                Class::Conflict,
                "this question does not wait any more: it was answered, withdrawn, or its session \
                 has ended; `svc approvals list` shows what waits",
            )
        };
        let named = match id {
            Some(id) => Some(id.clone()),
            None => self.direct_session_of(request_id)?,
        };
        let Some(id) = named.filter(|id| self.parts.rows.get(id).is_some()) else {
            // Its hook waits.
            let is_decided = self.asked.decide(id, request_id, &decision).await?;
            return if is_decided { Ok(()) } else { Err(over()) };
        };
        let now = self.parts.rows.clock.now();
        if !self.parts.rows.store.decide_prompt(&id, request_id, &decision, now).await? {
            return Err(over());
        }
        self.parts.rows.refresh().await?;
        self.parts.wake(&id);
        self.parts.rows.tell_others();
        Ok(())
    }

    /// The Direct Session that asks under this name, if one does.
    fn direct_session_of(&self, request_id: &str) -> Result<Option<InstanceId>, AppError> {
        let open = self.parts.rows.prompts();
        let mut named = open
            .iter()
            .filter(|row| row.request_id == request_id && row.decision.is_none())
            .filter_map(|row| row.instance_id.parse().ok());
        match (named.next(), named.next()) {
            (Some(_), Some(_)) => Err(ambiguous()),
            (found, _) => Ok(found),
        }
    }
}

fn ambiguous() -> AppError {
    AppError::new(
        ErrorCode::Ambiguous,
        Class::Conflict,
        "several sessions ask under this name; name the session as well",
    )
}
