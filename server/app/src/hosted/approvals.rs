//! What agents ask their operator, in one list, and the answers.

use crate::hosted::HostedParts;
use crate::ops::{audit, reserve};
use crate::{AppError, Class};
use std::sync::Arc;
use svc_domain::hosted::prompt::LONGEST_MESSAGE;
use svc_domain::log_escape::quoted;
use svc_domain::redact::redact_text;
use svc_shared::api::approvals::{AnswerRequest, Approval};
use svc_shared::error::ErrorCode;
use svc_shared::ids::InstanceId;
use svc_store::{Decision, PromptRow};

/// The approval inbox.
pub struct Approvals {
    pub(crate) parts: Arc<HostedParts>,
}

impl Approvals {
    /// What waits, the oldest first.
    ///
    /// # Errors
    /// The registry cannot be read.
    pub async fn open(&self) -> Result<Vec<Approval>, AppError> {
        let rows = if self.parts.rows.has_readers() {
            self.parts.rows.prompts()
        } else {
            self.parts.rows.store.open_prompts().await?
        };
        Ok(rows.into_iter().filter(|row| row.decision.is_none()).filter_map(approval).collect())
    }

    /// The last 200 that are over, the newest first.
    ///
    /// # Errors
    /// The registry cannot be read.
    pub async fn answered(&self) -> Result<Vec<Approval>, AppError> {
        let rows = self.parts.rows.store.answered_prompts().await?;
        Ok(rows.into_iter().filter_map(approval).collect())
    }

    /// Answers a question, once: whoever comes second is told so.
    ///
    /// The decision is recorded; the service carries it out at once, or as soon as it is connected.
    ///
    /// # Errors
    /// It is decided, withdrawn or unknown, or its session does not run.
    pub async fn answer(
        &self,
        id: &InstanceId,
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
        self.parts.rows.refresh().await?;
        if self.parts.rows.get(id).is_none() {
            return Err(crate::bridges::lookup::unknown_instance(id.as_str()));
        }
        if word == "deny" {
            // An agent that fills the disk must not go unrefused.
            reserve::make_room(&self.parts.config.state_dir).await;
        }
        let actor = audit::current().map(|actor| actor.to_string());
        let decision = Decision { word, message, actor: actor.as_deref() };
        let now = self.parts.rows.clock.now();
        if !self.parts.rows.store.decide_prompt(id, request_id, &decision, now).await? {
            return Err(AppError::new(
                ErrorCode::Stale,
                Class::Conflict,
                "this question does not wait any more: it was answered, withdrawn, or its session \
                 has ended; `svc approvals list` shows what waits",
            ));
        }
        self.parts.rows.refresh().await?;
        self.parts.wake(id);
        self.parts.rows.tell_others();
        Ok(())
    }
}

fn approval(row: PromptRow) -> Option<Approval> {
    Some(Approval {
        instance_id: row.instance_id.parse().ok()?,
        request_id: row.request_id,
        project: row.project,
        subtype: row.subtype,
        tool: row.tool,
        summary: row.summary,
        truncated: row.truncated,
        since: row.since,
        decision: row.decision,
        message: row.message.map(|message| redact_text(&message)),
        answered_at: row.answered_at,
        actor: row.actor,
    })
}
