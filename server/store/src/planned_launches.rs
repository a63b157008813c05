//! Statements on `planned_launches`: what starts after a plan limit was reset.

use crate::error::StoreError;
use crate::store::Store;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;
use svc_shared::Timestamp;
use svc_shared::ids::InstanceId;
use svc_shared::status::PlannedState;

const ADD: &str = "INSERT INTO planned_launches (launch_id, kind, request, asked_at, due_at) \
     SELECT ?1, ?2, ?3, ?4, ?5 WHERE ?6 > \
     (SELECT count(*) FROM planned_launches WHERE state IN ('waiting', 'begun'))";
const LIST: &str = "SELECT launch_id, kind, request, asked_at, due_at, state, jobs_before, \
     started_as, reason FROM planned_launches \
     ORDER BY state NOT IN ('waiting', 'begun'), due_at, asked_at, launch_id";
const BEGIN: &str = "UPDATE planned_launches SET state = 'begun', jobs_before = ?2 \
     WHERE launch_id = ?1 AND state IN ('waiting', 'begun')";
const PUT_OFF: &str = "UPDATE planned_launches SET state = 'waiting', due_at = ?2, reason = ?3 \
     WHERE launch_id = ?1 AND state IN ('waiting', 'begun')";
const CANCEL: &str = "UPDATE planned_launches SET state = 'cancelled', ended_at = ?2 \
     WHERE launch_id = ?1 AND state = 'waiting'";
const FINISH: &str = "UPDATE planned_launches \
     SET state = ?2, started_as = ?3, reason = ?4, ended_at = ?5 \
     WHERE launch_id = ?1 AND state = 'begun'";
const DISMISS: &str = "DELETE FROM planned_launches WHERE launch_id = ?1 AND state = 'failed'";
const DROP: &str = "DELETE FROM planned_launches WHERE ended_at < ?1";

pub(crate) const STATEMENTS: &[&str] = &[ADD, LIST, BEGIN, PUT_OFF, CANCEL, FINISH, DISMISS, DROP];

/// What is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlannedKind {
    /// A session; the request is that of a launch.
    Session,
    /// A background job; the request is that of a dispatch.
    Job,
}

/// A launch that waits for the reset of a limit, or did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// Of a session the id of its row.
    pub id: InstanceId,
    /// What is started.
    pub kind: PlannedKind,
    /// What was asked for, as JSON.
    pub request: String,
    /// When it was asked for.
    pub asked_at: Timestamp,
    /// When it starts.
    pub due_at: Timestamp,
    /// Where it stands.
    pub state: PlannedState,
    /// The jobs that were there when the start of a job began, as JSON.
    pub jobs_before: String,
    /// What it became.
    pub started_as: Option<String>,
    /// Why nothing was started, or why it waits longer.
    pub reason: Option<String>,
}

/// What became of a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Became {
    /// `Started` or `Failed`.
    pub state: PlannedState,
    /// The session or job, if there is one.
    pub started_as: Option<String>,
    /// Why nothing runs.
    pub reason: Option<String>,
}

fn read(row: &SqliteRow) -> Result<Option<Planned>, sqlx::Error> {
    let at = |column: &str| row.try_get::<i64, _>(column).map(Timestamp::from_millis);
    let (Ok(id), Ok(state)) = (
        row.try_get::<String, _>("launch_id")?.parse(),
        row.try_get::<String, _>("state")?.parse(),
    ) else {
        return Ok(None);
    };
    let kind = match row.try_get::<String, _>("kind")?.as_str() {
        "job" => PlannedKind::Job,
        _ => PlannedKind::Session,
    };
    Ok(Some(Planned {
        id,
        kind,
        request: row.try_get("request")?,
        asked_at: at("asked_at")?,
        due_at: at("due_at")?,
        state,
        jobs_before: row.try_get("jobs_before")?,
        started_as: row.try_get("started_as")?,
        reason: row.try_get("reason")?,
    }))
}

impl Store {
    /// All of them, those that wait first, in the order of their start.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn planned_launches(&self) -> Result<Vec<Planned>, StoreError> {
        let rows = sqlx::query(LIST).fetch_all(&self.readers).await?;
        let mut all = Vec::with_capacity(rows.len());
        for row in &rows {
            all.extend(read(row)?);
        }
        Ok(all)
    }

    /// Records a launch that waits; tells whether fewer than `most` waited before.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn plan_launch(&self, planned: &Planned, most: u32) -> Result<bool, StoreError> {
        let kind = match planned.kind {
            PlannedKind::Session => "session",
            PlannedKind::Job => "job",
        };
        let query = sqlx::query(ADD)
            .bind(planned.id.as_str().to_owned())
            .bind(kind)
            .bind(planned.request.clone())
            .bind(planned.asked_at.as_millis())
            .bind(planned.due_at.as_millis())
            .bind(i64::from(most));
        self.change_launches(query).await
    }

    /// Records that a launch is started now; tells whether it still waited.
    ///
    /// `jobs_before` are the ids of the jobs that are there now, as JSON.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn begin_launch(
        &self,
        id: &InstanceId,
        jobs_before: String,
    ) -> Result<bool, StoreError> {
        let query = sqlx::query(BEGIN).bind(id.as_str().to_owned()).bind(jobs_before);
        self.change_launches(query).await
    }

    /// Records that a launch waits longer; tells whether it is still wanted.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn put_off_launch(
        &self,
        id: &InstanceId,
        due_at: Timestamp,
        reason: String,
    ) -> Result<bool, StoreError> {
        let query =
            sqlx::query(PUT_OFF).bind(id.as_str().to_owned()).bind(due_at.as_millis()).bind(reason);
        self.change_launches(query).await
    }

    /// Forgets a launch that failed; tells whether there was one.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn dismiss_launch(&self, id: &InstanceId) -> Result<bool, StoreError> {
        self.change_launches(sqlx::query(DISMISS).bind(id.as_str().to_owned())).await
    }

    /// Records that a launch is not wanted any more; tells whether it waited.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn cancel_launch(&self, id: &InstanceId, now: Timestamp) -> Result<bool, StoreError> {
        let query = sqlx::query(CANCEL).bind(id.as_str().to_owned()).bind(now.as_millis());
        self.change_launches(query).await
    }

    /// Records what became of a launch that was begun.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn finish_launch(
        &self,
        id: &InstanceId,
        became: Became,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let query = sqlx::query(FINISH)
            .bind(id.as_str().to_owned())
            .bind(became.state.as_str())
            .bind(became.started_as)
            .bind(became.reason)
            .bind(now.as_millis());
        self.change_launches(query).await.map(drop)
    }

    /// Forgets launches that ended before a time.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn drop_launches(&self, before: Timestamp) -> Result<(), StoreError> {
        self.change_launches(sqlx::query(DROP).bind(before.as_millis())).await.map(drop)
    }

    async fn change_launches(
        &self,
        query: sqlx::query::Query<'static, sqlx::Sqlite, sqlx::sqlite::SqliteArguments<'static>>,
    ) -> Result<bool, StoreError> {
        let changed = async {
            let mut transaction = self.begin().await?;
            let rows = query.execute(&mut *transaction).await?.rows_affected();
            transaction.commit().await?;
            Ok(rows > 0)
        };
        self.noted(changed.await)
    }
}
