//! Questions that come through the agent's hook: statements on `bridge_prompts`.

use crate::error::StoreError;
use crate::hosted::{Decision, PromptRow, rules_text};
use crate::store::Store;
use svc_shared::Timestamp;
use svc_shared::ids::{InstanceId, SessionRef};

const PARK: &str = "INSERT INTO bridge_prompts (request_id, instance_id, project, conversation, \
     tool, summary, truncated, since, expires_at, session_rules) \
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
     ON CONFLICT (request_id) DO NOTHING";
/// Once: whoever comes second changes nothing.
const DECIDE: &str = "UPDATE bridge_prompts SET decision = ?1, message = ?2, actor = ?3, \
     answered_at = ?4, for_session = ?6 WHERE request_id = ?5 AND decision IS NULL";
const CANCEL: &str = "UPDATE bridge_prompts SET decision = 'cancelled', reason = ?1, \
     answered_at = ?2 WHERE request_id = ?3 AND decision IS NULL";
/// With a reason where the answer did not arrive.
const DELIVERED: &str = "UPDATE bridge_prompts SET reason = ?1, delivered_at = ?2 \
     WHERE request_id = ?3 AND decision IN ('allow', 'deny') AND delivered_at IS NULL";
const OPEN: &str = "SELECT COALESCE(instance_id, '') AS instance_id, '' AS process_id, \
     request_id, project, conversation, 'can_use_tool' AS subtype, tool, summary, truncated, \
     since, expires_at, decision, reason, message, actor, answered_at, delivered_at, \
     session_rules, for_session \
     FROM bridge_prompts \
     WHERE decision IS NULL OR (delivered_at IS NULL AND decision IN ('allow', 'deny')) \
     ORDER BY since, request_id";
const ANSWERED: &str = "SELECT COALESCE(instance_id, '') AS instance_id, '' AS process_id, \
     request_id, project, conversation, 'can_use_tool' AS subtype, tool, summary, truncated, \
     since, expires_at, decision, reason, message, actor, answered_at, delivered_at, \
     session_rules, for_session \
     FROM bridge_prompts WHERE decision IS NOT NULL \
     ORDER BY answered_at DESC, request_id LIMIT 200";
/// Only the last ones are shown.
const PRUNE: &str = "DELETE FROM bridge_prompts WHERE decision IS NOT NULL AND answered_at < \
     (SELECT answered_at FROM bridge_prompts WHERE decision IS NOT NULL \
     ORDER BY answered_at DESC LIMIT 1 OFFSET 1000)";

pub(crate) const STATEMENTS: &[&str] = &[PARK, DECIDE, CANCEL, DELIVERED, OPEN, ANSWERED, PRUNE];

/// A question of a session to be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewBridgePrompt<'a> {
    /// Names the question.
    pub request_id: &'a str,
    /// The bridge, if the session belongs to one.
    pub instance_id: Option<&'a InstanceId>,
    /// The project it works in.
    pub project: &'a str,
    /// Token of the session's own id.
    pub conversation: Option<&'a SessionRef>,
    /// The tool.
    pub tool: Option<&'a str>,
    /// What it wants to do, redacted.
    pub summary: &'a str,
    /// Whether the summary leaves something out.
    pub truncated: bool,
    /// Until when it waits.
    pub expires_at: Timestamp,
    /// What it offers to allow for the session, redacted.
    pub session_rules: &'a [String],
}

/// Why a question was withdrawn, or why an answer did not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptEnd {
    /// The conversation shows that it was answered in another client.
    AnsweredElsewhere,
    /// The hook ended.
    AskerGone,
    /// Nobody answered in time.
    Expired,
    /// The hook did not ask again after a restart of the service.
    NotRenewed,
    /// The key was switched off.
    SwitchedOff,
}

impl PromptEnd {
    fn word(self) -> &'static str {
        match self {
            Self::AnsweredElsewhere => "answered-elsewhere",
            Self::AskerGone => "asker-gone",
            Self::Expired => "expired",
            Self::NotRenewed => "not-renewed",
            Self::SwitchedOff => "switched-off",
        }
    }
}

impl Store {
    /// Records a question; a name that is known replaces nothing.
    /// Tells whether it is new.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn park_bridge_prompt(
        &self,
        prompt: &NewBridgePrompt<'_>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let parked = async {
            let mut transaction = self.begin().await?;
            sqlx::query(PRUNE).execute(&mut *transaction).await?;
            let done = sqlx::query(PARK)
                .bind(prompt.request_id)
                .bind(prompt.instance_id.map(InstanceId::as_str))
                .bind(prompt.project)
                .bind(prompt.conversation.map(SessionRef::as_str))
                .bind(prompt.tool)
                .bind(prompt.summary)
                .bind(prompt.truncated)
                .bind(now.as_millis())
                .bind(prompt.expires_at.as_millis())
                .bind(rules_text(prompt.session_rules))
                .execute(&mut *transaction)
                .await?;
            transaction.commit().await?;
            Ok(done.rows_affected() == 1)
        };
        self.noted(parked.await)
    }

    /// Decides a question that waits.
    /// `false` when it is decided already, was withdrawn, or is unknown.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn decide_bridge_prompt(
        &self,
        request_id: &str,
        decision: &Decision<'_>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let decided = async {
            let mut transaction = self.begin().await?;
            let query = sqlx::query(DECIDE)
                .bind(decision.word)
                .bind(decision.message)
                .bind(decision.actor)
                .bind(now.as_millis())
                .bind(request_id)
                .bind(decision.for_session);
            let done = query.execute(&mut *transaction).await?;
            transaction.commit().await?;
            Ok(done.rows_affected() == 1)
        };
        self.noted(decided.await)
    }

    /// Takes back a question that nobody waits for any more.
    /// Returns `false` when it was decided before.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn cancel_bridge_prompt(
        &self,
        request_id: &str,
        why: PromptEnd,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.noted(self.touch_bridge_prompt(CANCEL, request_id, Some(why.word()), now).await)
    }

    /// Notes that the hook has its answer, or that it cannot have it any more.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn bridge_prompt_delivered(
        &self,
        request_id: &str,
        has_arrived: bool,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let reason = (!has_arrived).then_some("undelivered");
        self.noted(self.touch_bridge_prompt(DELIVERED, request_id, reason, now).await)
    }

    async fn touch_bridge_prompt(
        &self,
        statement: &'static str,
        request_id: &str,
        reason: Option<&str>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.begin().await?;
        let query = sqlx::query(statement).bind(reason).bind(now.as_millis()).bind(request_id);
        let done = query.execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(done.rows_affected() == 1)
    }

    /// Questions that wait, and answers that are on their way; the oldest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn open_bridge_prompts(&self) -> Result<Vec<PromptRow>, StoreError> {
        Ok(sqlx::query_as(OPEN).fetch_all(&self.readers).await?)
    }

    /// The last 200 questions that are over, the newest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn answered_bridge_prompts(&self) -> Result<Vec<PromptRow>, StoreError> {
        Ok(sqlx::query_as(ANSWERED).fetch_all(&self.readers).await?)
    }
}
