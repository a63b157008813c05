//! Direct Sessions and their prompts.
//!
//! Statements on `hosted_sessions` and `hosted_prompts`.

use crate::bridges::{DROP_ANNOUNCEMENTS, SAW_PROJECT};
use crate::end_facts::{self, EndFacts};
use crate::error::StoreError;
use crate::history::{self, HistoryRow};
use crate::store::Store;
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row, Sqlite};
use std::path::PathBuf;
use std::str::FromStr;
use svc_domain::hosted::{Ended, HostedSession, Outcome, State};
use svc_domain::identity::{Pid, ProcessIdentity};
use svc_shared::Timestamp;
use svc_shared::ids::InstanceId;
use svc_shared::status::{BridgeStatus, OnLimit};

const LIST: &str = "SELECT instance_id, process_id, project, cwd, label, permission_mode, \
     session_uuid, status, status_since, generation, agent_pid, agent_start_ticks, agent_boot_id, \
     started_at, ended_at, exit_reason, exit_code, exit_signal, error_detail, intentional_stop, \
     is_orphan, created_at, on_limit, revision FROM hosted_sessions ORDER BY created_at, instance_id";
const INSERT: &str = "INSERT INTO hosted_sessions (instance_id, process_id, project, cwd, label, \
     permission_mode, session_uuid, status, status_since, generation, agent_pid, \
     agent_start_ticks, agent_boot_id, started_at, ended_at, exit_reason, exit_code, exit_signal, \
     error_detail, intentional_stop, is_orphan, created_at, on_limit) \
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
     ON CONFLICT DO NOTHING";
const SAVE: &str = "UPDATE hosted_sessions SET process_id = ?, label = ?, session_uuid = ?, \
     status = ?, status_since = ?, generation = ?, agent_pid = ?, agent_start_ticks = ?, \
     agent_boot_id = ?, started_at = ?, ended_at = ?, exit_reason = ?, exit_code = ?, \
     exit_signal = ?, error_detail = ?, intentional_stop = ?, is_orphan = ?, on_limit = ?, \
     revision = revision + 1 WHERE instance_id = ? AND revision = ?";
const DELETE: &str = "DELETE FROM hosted_sessions WHERE instance_id = ? AND revision = ?";
/// Whatever an ended process asked is over with it.
const INTERRUPT: &str = "UPDATE hosted_prompts SET decision = 'interrupted', answered_at = ?1 \
     WHERE instance_id = ?2 AND decision IS NULL";
const PARK: &str = "INSERT INTO hosted_prompts \
     (instance_id, process_id, request_id, subtype, tool, summary, truncated, since, \
     session_rules) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (process_id, request_id) DO NOTHING";
/// Once: whoever comes second changes nothing.
/// Only a session that runs can be answered.
const DECIDE: &str = "UPDATE hosted_prompts SET decision = ?1, message = ?2, actor = ?3, \
     answered_at = ?4, for_session = ?7 WHERE instance_id = ?5 AND request_id = ?6 AND decision IS NULL \
     AND process_id = (SELECT process_id FROM hosted_sessions \
     WHERE instance_id = ?5 AND status = 'running')";
const WITHDRAW: &str = "UPDATE hosted_prompts SET decision = 'cancelled', answered_at = ?1 \
     WHERE process_id = ?2 AND request_id = ?3 AND decision IS NULL";
const DELIVERED: &str = "UPDATE hosted_prompts SET delivered_at = ?1 \
     WHERE process_id = ?2 AND request_id = ?3 AND delivered_at IS NULL";
const OPEN: &str = "SELECT p.instance_id, p.process_id, p.request_id, s.project, \
     NULL AS conversation, p.subtype, p.tool, p.summary, p.truncated, p.since, \
     NULL AS expires_at, p.decision, NULL AS reason, p.message, p.actor, p.answered_at, \
     p.delivered_at, p.session_rules, p.for_session FROM hosted_prompts AS p \
     JOIN hosted_sessions AS s ON s.instance_id = p.instance_id \
     WHERE p.decision IS NULL OR (p.delivered_at IS NULL AND p.decision IN ('allow', 'deny') \
     AND p.process_id = s.process_id AND s.status IN ('running', 'stopping')) \
     ORDER BY p.since, p.request_id";
const ANSWERED: &str = "SELECT p.instance_id, p.process_id, p.request_id, s.project, \
     NULL AS conversation, p.subtype, p.tool, p.summary, p.truncated, p.since, \
     NULL AS expires_at, p.decision, NULL AS reason, p.message, p.actor, p.answered_at, \
     p.delivered_at, p.session_rules, p.for_session FROM hosted_prompts AS p \
     JOIN hosted_sessions AS s ON s.instance_id = p.instance_id \
     WHERE p.decision IS NOT NULL ORDER BY p.answered_at DESC, p.request_id LIMIT 200";
const KNOWN: &str = "SELECT decision, delivered_at IS NOT NULL OR decision IN ('cancelled', \
     'interrupted') FROM hosted_prompts WHERE process_id = ? AND request_id = ?";

pub(crate) const STATEMENTS: &[&str] = &[
    LIST, INSERT, SAVE, DELETE, INTERRUPT, PARK, DECIDE, WITHDRAW, DELIVERED, OPEN, ANSWERED, KNOWN,
];

/// A Direct Session with the revision of its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredHosted {
    /// Counts changes.
    pub revision: i64,
    /// The session.
    pub session: HostedSession,
}

/// A question of an agent, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptRow {
    /// The session, as text; empty for one that nobody manages.
    pub instance_id: String,
    /// The process that asked.
    pub process_id: String,
    /// Names the question.
    pub request_id: String,
    /// The session's project.
    pub project: String,
    /// Token of the session's own id, where no bridge is known.
    pub conversation: Option<String>,
    /// What kind it is.
    pub subtype: String,
    /// The tool.
    pub tool: Option<String>,
    /// What it wants to do, redacted.
    pub summary: String,
    /// Whether the summary leaves something out.
    pub truncated: bool,
    /// Since when it waits.
    pub since: Timestamp,
    /// Until when it waits; `None` where it waits for ever.
    pub expires_at: Option<Timestamp>,
    /// `allow`, `deny`, `interrupted` or `cancelled`; `None` while it waits.
    pub decision: Option<String>,
    /// Why it was withdrawn, or why an answer did not arrive.
    pub reason: Option<String>,
    /// Text beside a refusal.
    pub message: Option<String>,
    /// Who decided.
    pub actor: Option<String>,
    /// When.
    pub answered_at: Option<Timestamp>,
    /// When the agent was told.
    pub delivered_at: Option<Timestamp>,
    /// What it offers to allow for the session, redacted.
    pub session_rules: Vec<String>,
    /// It was allowed with what it offers for the session.
    pub for_session: bool,
}

/// A question to be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPrompt<'a> {
    /// The session.
    pub instance_id: &'a InstanceId,
    /// The process that asks.
    pub process_id: &'a str,
    /// Names the question.
    pub request_id: &'a str,
    /// What kind it is.
    pub subtype: &'a str,
    /// The tool.
    pub tool: Option<&'a str>,
    /// What it wants to do, redacted.
    pub summary: &'a str,
    /// Whether the summary leaves something out.
    pub truncated: bool,
    /// What it offers to allow for the session, redacted.
    pub session_rules: &'a [String],
}

/// The column `session_rules`.
pub(crate) fn rules_text(rules: &[String]) -> String {
    serde_json::to_string(rules).unwrap_or_else(|_| "[]".to_owned()) // texts always can be written
}

/// What recording a question led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parked {
    /// Whether nobody had recorded it before.
    pub is_new: bool,
    /// Its decision, if there is one already.
    pub decision: Option<String>,
    /// Whether nothing of it is left to do: its agent was told, or waits no more.
    pub is_over: bool,
}

/// An answer of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision<'a> {
    /// `allow` or `deny`.
    pub word: &'a str,
    /// With what the agent offers to allow for its session.
    pub for_session: bool,
    /// Text beside a refusal.
    pub message: Option<&'a str>,
    /// Who decides.
    pub actor: Option<&'a str>,
}

fn bad(column: &str) -> sqlx::Error {
    sqlx::Error::Decode(format!("{column} holds a value this version does not understand").into())
}

fn word<T: FromStr>(row: &SqliteRow, column: &str) -> Result<T, sqlx::Error> {
    row.try_get::<String, _>(column)?.parse().map_err(|_| bad(column))
}

fn time(row: &SqliteRow, column: &str) -> Result<Option<Timestamp>, sqlx::Error> {
    Ok(row.try_get::<Option<i64>, _>(column)?.map(Timestamp::from_millis))
}

impl FromRow<'_, SqliteRow> for StoredHosted {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        let at = |column| time(row, column);
        let since = at("status_since")?.ok_or_else(|| bad("status_since"))?;
        let agent = || {
            Some(ProcessIdentity {
                pid: Pid::new(row.try_get("agent_pid").ok()?)?,
                start_ticks: u64::try_from(row.try_get::<i64, _>("agent_start_ticks").ok()?)
                    .ok()?,
                boot_id: row.try_get::<String, _>("agent_boot_id").ok()?.parse().ok()?,
            })
        };
        let ended = |outcome| {
            Ok::<_, sqlx::Error>(State::Ended(Ended {
                outcome,
                at: at("ended_at")?.unwrap_or(since),
                reason: row
                    .try_get::<Option<String>, _>("exit_reason")?
                    .and_then(|reason| reason.parse().ok()),
                code: row.try_get("exit_code")?,
                signal: row.try_get("exit_signal")?,
                detail: row.try_get("error_detail")?,
                intentional: row.try_get("intentional_stop")?,
                is_orphan: row.try_get("is_orphan")?,
            }))
        };
        let state = match word::<BridgeStatus>(row, "status")? {
            BridgeStatus::Starting => State::Starting,
            BridgeStatus::Running => State::Running,
            BridgeStatus::Stopping => State::Stopping,
            BridgeStatus::Stopped => ended(Outcome::Stopped)?,
            BridgeStatus::Crashed => ended(Outcome::Crashed)?,
            BridgeStatus::Error => ended(Outcome::Failed)?,
        };
        Ok(Self {
            revision: row.try_get("revision")?,
            session: HostedSession {
                id: word(row, "instance_id")?,
                process_id: row.try_get("process_id")?,
                project: word(row, "project")?,
                cwd: PathBuf::from(row.try_get::<String, _>("cwd")?),
                label: row.try_get("label")?,
                permission_mode: word(row, "permission_mode")?,
                session_uuid: row.try_get("session_uuid")?,
                state,
                status_since: since,
                generation: row.try_get("generation")?,
                agent: agent(),
                started_at: at("started_at")?,
                created_at: at("created_at")?.ok_or_else(|| bad("created_at"))?,
                on_limit: row
                    .try_get::<Option<String>, _>("on_limit")?
                    .map(|word| word.parse().map_err(|_| bad("on_limit")))
                    .transpose()?,
            },
        })
    }
}

impl FromRow<'_, SqliteRow> for PromptRow {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            instance_id: row.try_get("instance_id")?,
            process_id: row.try_get("process_id")?,
            request_id: row.try_get("request_id")?,
            project: row.try_get("project")?,
            conversation: row.try_get("conversation")?,
            subtype: row.try_get("subtype")?,
            tool: row.try_get("tool")?,
            summary: row.try_get("summary")?,
            truncated: row.try_get("truncated")?,
            since: time(row, "since")?.ok_or_else(|| bad("since"))?,
            expires_at: time(row, "expires_at")?,
            decision: row.try_get("decision")?,
            reason: row.try_get("reason")?,
            message: row.try_get("message")?,
            actor: row.try_get("actor")?,
            answered_at: time(row, "answered_at")?,
            delivered_at: time(row, "delivered_at")?,
            session_rules: {
                let text: String = row.try_get("session_rules")?;
                serde_json::from_str(&text).map_err(|_| bad("session_rules"))?
            },
            for_session: row.try_get("for_session")?,
        })
    }
}

type Query<'q> = sqlx::query::Query<'q, sqlx::Sqlite, sqlx::sqlite::SqliteArguments<'q>>;

/// Binds what a change can change, from `status` on in the order of the statements.
/// Adds what happened to the history, whose events belong to a project.
async fn remember(
    transaction: &mut sqlx::Transaction<'static, Sqlite>,
    past: &[HistoryRow],
) -> Result<(), StoreError> {
    for event in past {
        let saw = sqlx::query(SAW_PROJECT).bind(event.project.as_str()).bind(event.at.as_millis());
        saw.execute(&mut **transaction).await?;
        history::insert(transaction, event).await?;
    }
    Ok(())
}

fn bind_state<'q>(query: Query<'q>, session: &'q HostedSession) -> Query<'q> {
    let agent = session.agent.as_ref();
    let ended = session.ended();
    let is_stopping = session.state == State::Stopping;
    query
        .bind(session.status().as_str())
        .bind(session.status_since.as_millis())
        .bind(session.generation)
        .bind(agent.map(|agent| agent.pid.get()))
        .bind(agent.map(|agent| i64::try_from(agent.start_ticks).unwrap_or(i64::MAX)))
        .bind(agent.map(|agent| agent.boot_id.as_str()))
        .bind(session.started_at.map(Timestamp::as_millis))
        .bind(ended.map(|ended| ended.at.as_millis()))
        .bind(ended.and_then(|ended| ended.reason).map(|reason| reason.as_str()))
        .bind(ended.and_then(|ended| ended.code))
        .bind(ended.and_then(|ended| ended.signal))
        .bind(ended.and_then(|ended| ended.detail.as_deref()))
        .bind(ended.map_or(is_stopping, |ended| ended.intentional))
        .bind(session.is_orphan())
}

impl Store {
    /// Every Direct Session, in the order they were made.
    ///
    /// # Errors
    /// The database cannot be read, or a row is of another version.
    pub async fn hosted_sessions(&self) -> Result<Vec<StoredHosted>, StoreError> {
        Ok(sqlx::query_as(LIST).fetch_all(&self.readers).await?)
    }

    /// Records a new session; `false` when its id is taken.
    ///
    /// `past` is what the history keeps of it.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn insert_hosted(
        &self,
        session: &HostedSession,
        past: &[HistoryRow],
    ) -> Result<bool, StoreError> {
        self.noted(self.insert_hosted_now(session, past).await)
    }

    async fn insert_hosted_now(
        &self,
        session: &HostedSession,
        past: &[HistoryRow],
    ) -> Result<bool, StoreError> {
        let cwd = session.cwd.to_str().ok_or(StoreError::PathNotText)?;
        let mut transaction = self.begin().await?;
        let query = sqlx::query(INSERT)
            .bind(session.id.as_str())
            .bind(&session.process_id)
            .bind(session.project.as_str())
            .bind(cwd)
            .bind(session.label.as_deref())
            .bind(session.permission_mode.as_str())
            .bind(session.session_uuid.as_deref());
        let query = bind_state(query, session)
            .bind(session.created_at.as_millis())
            .bind(session.on_limit.map(OnLimit::as_str));
        let is_new = query.execute(&mut *transaction).await?.rows_affected() == 1;
        if is_new {
            remember(&mut transaction, past).await?;
        }
        transaction.commit().await?;
        Ok(is_new)
    }

    /// Writes a session whose row has this revision; `false` when somebody was faster.
    ///
    /// What an ended or resumed process asked is over in the same transaction, and `past` is what
    /// the history keeps of the change.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn save_hosted(
        &self,
        revision: i64,
        session: &HostedSession,
        end: Option<&EndFacts>,
        past: &[HistoryRow],
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.noted(self.save_hosted_now(revision, session, end, past, now).await)
    }

    async fn save_hosted_now(
        &self,
        revision: i64,
        session: &HostedSession,
        end: Option<&EndFacts>,
        past: &[HistoryRow],
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.begin().await?;
        let query = sqlx::query(SAVE)
            .bind(&session.process_id)
            .bind(session.label.as_deref())
            .bind(session.session_uuid.as_deref());
        let query = bind_state(query, session)
            .bind(session.on_limit.map(OnLimit::as_str))
            .bind(session.id.as_str())
            .bind(revision);
        if query.execute(&mut *transaction).await?.rows_affected() == 0 {
            transaction.rollback().await?;
            return Ok(false);
        }
        let is_over = match session.state {
            State::Stopping | State::Ended(_) | State::Starting => true,
            State::Running => false,
        };
        if is_over {
            let over = sqlx::query(INTERRUPT).bind(now.as_millis()).bind(session.id.as_str());
            over.execute(&mut *transaction).await?;
        }
        if let Some(facts) = end {
            end_facts::note(&mut transaction, &session.id, session.generation, facts).await?;
        }
        remember(&mut transaction, past).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Removes a session whose row has this revision, with what it asked.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn delete_hosted(&self, id: &InstanceId, revision: i64) -> Result<bool, StoreError> {
        let deleted = async {
            let mut transaction = self.begin().await?;
            let done = sqlx::query(DELETE).bind(id.as_str()).bind(revision);
            let done = done.execute(&mut *transaction).await?;
            if done.rows_affected() == 1 {
                let announced = sqlx::query(DROP_ANNOUNCEMENTS).bind(id.as_str());
                announced.execute(&mut *transaction).await?;
                end_facts::drop_of(&mut transaction, id).await?;
            }
            transaction.commit().await?;
            Ok(done.rows_affected() == 1)
        };
        self.noted(deleted.await)
    }

    /// Records a question; a name that is known replaces nothing.
    /// Tells whether it is new, and its decision, if there is one already.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn park_prompt(
        &self,
        prompt: &NewPrompt<'_>,
        now: Timestamp,
    ) -> Result<Parked, StoreError> {
        let parked = async {
            let mut transaction = self.begin().await?;
            let done = sqlx::query(PARK)
                .bind(prompt.instance_id.as_str())
                .bind(prompt.process_id)
                .bind(prompt.request_id)
                .bind(prompt.subtype)
                .bind(prompt.tool)
                .bind(prompt.summary)
                .bind(prompt.truncated)
                .bind(now.as_millis())
                .bind(rules_text(prompt.session_rules))
                .execute(&mut *transaction)
                .await?;
            let known = sqlx::query_as(KNOWN).bind(prompt.process_id).bind(prompt.request_id);
            let (decision, is_over): (Option<String>, Option<bool>) =
                known.fetch_one(&mut *transaction).await?;
            transaction.commit().await?;
            let is_new = done.rows_affected() == 1;
            // Nothing is compared with a decision that is not there.
            Ok(Parked { is_new, decision, is_over: is_over.unwrap_or(false) })
        };
        self.noted(parked.await)
    }

    /// Decides a question that waits, of a session that runs.
    /// `false` when it is decided already, was withdrawn, or the session does not run.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn decide_prompt(
        &self,
        id: &InstanceId,
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
                .bind(id.as_str())
                .bind(request_id)
                .bind(decision.for_session);
            let done = query.execute(&mut *transaction).await?;
            transaction.commit().await?;
            Ok(done.rows_affected() == 1)
        };
        self.noted(decided.await)
    }

    /// Takes back a question that its agent withdrew.
    /// Returns `false` when it was decided before.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn withdraw_prompt(
        &self,
        process_id: &str,
        request_id: &str,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.noted(self.touch_prompt(WITHDRAW, process_id, request_id, now).await)
    }

    /// Notes that the agent has its answer.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn prompt_delivered(
        &self,
        process_id: &str,
        request_id: &str,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.noted(self.touch_prompt(DELIVERED, process_id, request_id, now).await)
    }

    async fn touch_prompt(
        &self,
        statement: &'static str,
        process_id: &str,
        request_id: &str,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.begin().await?;
        let query = sqlx::query(statement).bind(now.as_millis()).bind(process_id).bind(request_id);
        let done = query.execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(done.rows_affected() == 1)
    }

    /// Questions that wait, and answers that are on their way; the oldest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn open_prompts(&self) -> Result<Vec<PromptRow>, StoreError> {
        Ok(sqlx::query_as(OPEN).fetch_all(&self.readers).await?)
    }

    /// The last 200 questions that are over, the newest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn answered_prompts(&self) -> Result<Vec<PromptRow>, StoreError> {
        Ok(sqlx::query_as(ANSWERED).fetch_all(&self.readers).await?)
    }
}
