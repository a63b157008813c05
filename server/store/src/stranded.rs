//! Statements on `stranded_sessions`: conversations whose process died.

use crate::error::StoreError;
use crate::store::Store;
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row, Sqlite};
use std::path::PathBuf;
use svc_domain::agent_log::RemoteId;
use svc_domain::bridge::Bridge;
use svc_shared::Timestamp;
use svc_shared::ids::InstanceId;

/// A conversation that a later generation left behind again is stranded again.
const INSERT: &str = "INSERT INTO stranded_sessions \
     (instance_id, generation, conversation_id, remote_session, title, found_at) \
     VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (instance_id, conversation_id) DO UPDATE SET \
     generation = excluded.generation, remote_session = excluded.remote_session, \
     title = excluded.title, found_at = excluded.found_at, state = 'stranded', \
     continued_as = NULL \
     WHERE state <> 'stranded' AND stranded_sessions.generation < excluded.generation";
const LIST: &str = "SELECT s.instance_id, s.generation, s.conversation_id, s.title, s.found_at, \
     s.state, s.continued_as, b.project, b.cwd FROM stranded_sessions AS s \
     JOIN bridges AS b ON b.instance_id = s.instance_id \
     ORDER BY s.found_at DESC, s.instance_id, s.conversation_id";
const CLAIM: &str = "UPDATE stranded_sessions SET state = 'continued', continued_as = NULL \
     WHERE conversation_id = ? AND state = 'stranded'";
const NAME: &str = "UPDATE stranded_sessions SET continued_as = ?1 \
     WHERE conversation_id = ?2 AND state = 'continued' AND continued_as IS NULL";
const RELEASE: &str = "UPDATE stranded_sessions SET state = 'stranded' \
     WHERE conversation_id = ? AND state = 'continued' AND continued_as IS NULL";
const DISMISS: &str = "UPDATE stranded_sessions SET state = 'dismissed' \
     WHERE conversation_id = ? AND state = 'stranded'";
/// Other processes notice a change by the revision of the bridge.
const TOUCH: &str = "UPDATE bridges SET revision = revision + 1, updated_at = ?1 WHERE instance_id \
     IN (SELECT instance_id FROM stranded_sessions WHERE conversation_id = ?2)";
const DROP: &str = "DELETE FROM stranded_sessions WHERE instance_id = ?";

pub(crate) const STATEMENTS: &[&str] = &[INSERT, LIST, CLAIM, NAME, RELEASE, DISMISS, TOUCH, DROP];

/// A conversation that hung on a generation that ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewStranded {
    /// The agent's id of the conversation.
    pub conversation: RemoteId,
    /// Its remote session, when it is known.
    pub remote: Option<RemoteId>,
    /// How it began, redacted.
    pub title: Option<String>,
}

/// A conversation that hung on a process that died.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranded {
    /// The bridge, as text.
    pub instance_id: String,
    /// Its project.
    pub project: String,
    /// Real path of the project.
    pub cwd: PathBuf,
    /// The generation that died.
    pub generation: u32,
    /// The agent's id of the conversation.
    pub conversation: RemoteId,
    /// How it began, redacted.
    pub title: Option<String>,
    /// When the death was recorded.
    pub found_at: Timestamp,
    /// The word of its state.
    pub state: String,
    /// What goes on with it.
    pub continued_as: Option<String>,
}

/// A change of the state of a conversation. Each happens at most once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StrandedChange {
    /// Somebody begins to continue it.
    Claim,
    /// The successor of a claimed one is known.
    Name(String),
    /// Continuing a claimed one failed.
    Release,
    /// Somebody decides to leave it.
    Dismiss,
}

impl FromRow<'_, SqliteRow> for Stranded {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            instance_id: row.try_get("instance_id")?,
            project: row.try_get("project")?,
            cwd: PathBuf::from(row.try_get::<String, _>("cwd")?),
            generation: row.try_get("generation")?,
            conversation: RemoteId::new(row.try_get("conversation_id")?),
            title: row.try_get("title")?,
            found_at: Timestamp::from_millis(row.try_get("found_at")?),
            state: row.try_get("state")?,
            continued_as: row.try_get("continued_as")?,
        })
    }
}

pub(crate) async fn insert(
    transaction: &mut sqlx::Transaction<'static, Sqlite>,
    bridge: &Bridge,
    one: &NewStranded,
    now: Timestamp,
) -> Result<(), StoreError> {
    sqlx::query(INSERT)
        .bind(bridge.id.as_str())
        .bind(bridge.generation)
        .bind(one.conversation.expose())
        .bind(one.remote.as_ref().map(RemoteId::expose))
        .bind(one.title.as_deref())
        .bind(now.as_millis())
        .execute(&mut **transaction)
        .await?;
    Ok(())
}

pub(crate) async fn drop_of(
    transaction: &mut sqlx::Transaction<'static, Sqlite>,
    id: &InstanceId,
) -> Result<(), StoreError> {
    sqlx::query(DROP).bind(id.as_str()).execute(&mut **transaction).await?;
    Ok(())
}

impl Store {
    /// All conversations of dead processes, the latest first, whatever became of them.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn stranded(&self) -> Result<Vec<Stranded>, StoreError> {
        Ok(sqlx::query_as(LIST).fetch_all(&self.readers).await?)
    }

    /// Changes the state of a conversation; tells whether it was possible.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn change_stranded(
        &self,
        conversation: &RemoteId,
        change: &StrandedChange,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.noted(self.change_stranded_now(conversation, change, now).await)
    }

    async fn change_stranded_now(
        &self,
        conversation: &RemoteId,
        change: &StrandedChange,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let raw = conversation.expose();
        let mut transaction = self.begin().await?;
        let query = match change {
            StrandedChange::Claim => sqlx::query(CLAIM).bind(raw),
            StrandedChange::Name(successor) => sqlx::query(NAME).bind(successor).bind(raw),
            StrandedChange::Release => sqlx::query(RELEASE).bind(raw),
            StrandedChange::Dismiss => sqlx::query(DISMISS).bind(raw),
        };
        if query.execute(&mut *transaction).await?.rows_affected() == 0 {
            transaction.rollback().await?;
            return Ok(false);
        }
        let touch = sqlx::query(TOUCH).bind(now.as_millis()).bind(raw);
        touch.execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(true)
    }
}
