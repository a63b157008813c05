//! Statements on `limit_waits`: who goes on after a plan limit was reset.

use crate::error::StoreError;
use crate::store::Store;
use sqlx::Row;
use svc_domain::conversation::ConversationId;
use svc_shared::Timestamp;

const ADD: &str = "INSERT INTO limit_waits (conversation_id, since, due_at, state) \
     VALUES (?1, ?2, ?3, 'waiting') ON CONFLICT DO NOTHING";
const WAITING: &str = "SELECT conversation_id, since, due_at FROM limit_waits WHERE state = 'waiting' ORDER BY due_at";
const BEGIN: &str = "UPDATE limit_waits SET state = 'begun' \
     WHERE conversation_id = ?1 AND since = ?2 AND state = 'waiting'";
const CALL_OFF: &str = "UPDATE limit_waits SET state = 'called_off' \
     WHERE conversation_id = ?1 AND since = ?2 AND state = 'waiting'";
const WITHDRAW: &str = "DELETE FROM limit_waits \
     WHERE conversation_id = ?1 AND since = ?2 AND state = 'waiting'";
const TAKE: &str = "UPDATE limit_waits SET state = 'called_off' \
     WHERE conversation_id = ?1 AND state = 'waiting' RETURNING since";
const GIVE_BACK: &str = "UPDATE limit_waits SET state = 'waiting' \
     WHERE conversation_id = ?1 AND since = ?2 AND state = 'called_off'";
const FORGET: &str = "DELETE FROM limit_waits \
     WHERE conversation_id = ?1 AND since = ?2 AND state = 'called_off'";
/// For the case that nobody has seen the limit yet.
const TAKEN: &str = "INSERT INTO limit_waits (conversation_id, since, due_at, state) \
     VALUES (?1, ?2, ?2, 'called_off') ON CONFLICT DO NOTHING";
/// A copy of a transcript tells the same limit again.
const SETTLED: &str = "SELECT \
     EXISTS (SELECT 1 FROM limit_waits WHERE since = ?2 AND state = 'begun') OR \
     EXISTS (SELECT 1 FROM limit_waits \
         WHERE conversation_id = ?1 AND since >= ?2 AND state <> 'waiting')";
const DROP: &str = "DELETE FROM limit_waits WHERE state <> 'waiting' AND since < ?1";

pub(crate) const STATEMENTS: &[&str] =
    &[ADD, WAITING, BEGIN, CALL_OFF, WITHDRAW, TAKE, GIVE_BACK, FORGET, TAKEN, SETTLED, DROP];

/// A conversation that waits for the reset of a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitWait {
    /// The agent's id of the conversation.
    pub conversation: ConversationId,
    /// When the agent told of the limit.
    pub since: Timestamp,
    /// When it goes on.
    pub due_at: Timestamp,
}

/// Waits that a person took over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenWaits {
    conversation: ConversationId,
    now: i64,
    /// When the agent told of the limit of each.
    waited: Vec<i64>,
}

impl Store {
    /// The conversations that wait, the next one first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn limit_waits(&self) -> Result<Vec<LimitWait>, StoreError> {
        let rows = sqlx::query(WAITING).fetch_all(&self.readers).await?;
        let mut waits = Vec::with_capacity(rows.len());
        for row in rows {
            // What is no id of a conversation is nobody's.
            let Ok(conversation) = row.try_get::<String, _>(0)?.parse() else { continue };
            let since = Timestamp::from_millis(row.try_get(1)?);
            let due_at = Timestamp::from_millis(row.try_get(2)?);
            waits.push(LimitWait { conversation, since, due_at });
        }
        Ok(waits)
    }

    /// Records that a conversation waits.
    ///
    /// One that began or was called off does not wait again.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn add_limit_wait(&self, wait: &LimitWait) -> Result<(), StoreError> {
        let (since, due_at) = (wait.since.as_millis(), wait.due_at.as_millis());
        self.change_waits(ADD, Some(&wait.conversation), &[since, due_at]).await.map(drop)
    }

    /// Records that a waiting conversation goes on now; tells whether it still waited.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn begin_limit_wait(&self, wait: &LimitWait) -> Result<bool, StoreError> {
        self.change_waits(BEGIN, Some(&wait.conversation), &[wait.since.as_millis()]).await
    }

    /// Records that a conversation does not go on by itself.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn call_off_limit_wait(&self, wait: &LimitWait) -> Result<(), StoreError> {
        let since = [wait.since.as_millis()];
        self.change_waits(CALL_OFF, Some(&wait.conversation), &since).await.map(drop)
    }

    /// Forgets that a conversation waits: it may wait again.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn withdraw_limit_wait(&self, wait: &LimitWait) -> Result<(), StoreError> {
        let since = [wait.since.as_millis()];
        self.change_waits(WITHDRAW, Some(&wait.conversation), &since).await.map(drop)
    }

    /// Records that a person goes on with a conversation at this time.
    ///
    /// It does not go on by itself, whatever limit it was told before.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn take_limit_waits(
        &self,
        conversation: &ConversationId,
        now: Timestamp,
    ) -> Result<TakenWaits, StoreError> {
        let id = conversation.expose();
        let taken = async {
            let mut transaction = self.begin().await?;
            let take = sqlx::query_scalar(TAKE).bind(id.to_owned());
            let waited: Vec<i64> = take.fetch_all(&mut *transaction).await?;
            let taken = sqlx::query(TAKEN).bind(id.to_owned()).bind(now.as_millis());
            taken.execute(&mut *transaction).await?;
            transaction.commit().await?;
            Ok(TakenWaits { conversation: conversation.clone(), now: now.as_millis(), waited })
        };
        self.noted(taken.await)
    }

    /// Undoes [`Self::take_limit_waits`]: the person could not go on.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn give_back_limit_waits(&self, taken: &TakenWaits) -> Result<(), StoreError> {
        let id = taken.conversation.expose();
        let given = async {
            let mut transaction = self.begin().await?;
            let forget = sqlx::query(FORGET).bind(id.to_owned()).bind(taken.now);
            forget.execute(&mut *transaction).await?;
            for since in &taken.waited {
                let back = sqlx::query(GIVE_BACK).bind(id.to_owned()).bind(*since);
                back.execute(&mut *transaction).await?;
            }
            transaction.commit().await?;
            Ok(())
        };
        self.noted(given.await)
    }

    /// Whether somebody went on after a limit that was told at this time.
    ///
    /// The service itself, with this conversation or a copy of it, or a person.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn is_limit_settled(
        &self,
        conversation: &ConversationId,
        since: Timestamp,
    ) -> Result<bool, StoreError> {
        let query = sqlx::query(SETTLED).bind(conversation.expose()).bind(since.as_millis());
        Ok(query.fetch_one(&self.readers).await?.try_get(0)?)
    }

    /// Forgets what was decided about limits before a time.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn drop_limit_waits(&self, before: Timestamp) -> Result<(), StoreError> {
        self.change_waits(DROP, None, &[before.as_millis()]).await.map(drop)
    }

    async fn change_waits(
        &self,
        statement: &'static str,
        conversation: Option<&ConversationId>,
        numbers: &[i64],
    ) -> Result<bool, StoreError> {
        let changed = async {
            let mut query = sqlx::query(statement);
            if let Some(conversation) = conversation {
                query = query.bind(conversation.expose().to_owned());
            }
            for number in numbers {
                query = query.bind(*number);
            }
            let mut transaction = self.begin().await?;
            let rows = query.execute(&mut *transaction).await?.rows_affected();
            transaction.commit().await?;
            Ok(rows > 0)
        };
        self.noted(changed.await)
    }
}
