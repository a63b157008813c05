//! Statements on `bridges`.

use crate::end_facts::{self, EndFacts};
use crate::error::StoreError;
use crate::history::{self, HistoryRow};
use crate::outbox;
use crate::row::{self, BridgeRow};
use crate::store::Store;
use crate::stranded::{self, NewStranded};
use futures_util::{Stream, TryStreamExt as _};
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row, Sqlite};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use svc_domain::bridge::Bridge;
use svc_domain::effect::Lifecycle;
use svc_shared::Timestamp;
use svc_shared::ids::{InstanceId, ProjectName};

/// One row instead of one for each bridge: that is what takes the time with many.
pub(crate) const REVISIONS: &str = "SELECT json_group_array(number), json_group_array(\
     CASE typeof(revision) WHEN 'integer' THEN revision ELSE 0 END) FROM bridges";
/// Whether no bridge was ever recorded. The sequence remembers deleted rows.
const IS_UNUSED: &str = "SELECT NOT EXISTS (SELECT 1 FROM bridges) AND NOT EXISTS \
     (SELECT 1 FROM sqlite_sequence WHERE name = 'bridges' AND seq > 0)";
pub(crate) const COUNT_LIVE: &str =
    "SELECT COUNT(*) FROM bridges WHERE status IN ('starting', 'running')";
const DELETE: &str = "DELETE FROM bridges WHERE instance_id = ? AND revision = ?";
pub(crate) const SAW_PROJECT: &str = "INSERT INTO projects (name, created_at, updated_at) VALUES (?1, ?2, ?2) \
     ON CONFLICT (name) DO UPDATE SET updated_at = ?2";
const PROJECTS: &str = "SELECT name FROM projects ORDER BY name";
const ANNOUNCE: &str = "INSERT INTO announcements (instance_id, generation, event, at) \
     VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING";
/// For a row that exists: one that was forgotten meanwhile leaves nothing behind.
const CLAIM: &str = "INSERT INTO announcements (instance_id, generation, event, at) \
     SELECT ?1, ?2, ?3, ?4 WHERE EXISTS (SELECT 1 FROM bridges WHERE instance_id = ?1) \
     OR EXISTS (SELECT 1 FROM hosted_sessions WHERE instance_id = ?1) ON CONFLICT DO NOTHING";
pub(crate) const DROP_ANNOUNCEMENTS: &str = "DELETE FROM announcements WHERE instance_id = ?";

pub(crate) const STATEMENTS: &[&str] = &[
    row::INSERT,
    row::UPDATE,
    row::SELECT_ALL,
    row::SELECT_ONE,
    row::SELECT_THESE,
    REVISIONS,
    IS_UNUSED,
    COUNT_LIVE,
    DELETE,
    SAW_PROJECT,
    PROJECTS,
    ANNOUNCE,
    CLAIM,
    DROP_ANNOUNCEMENTS,
];

/// A row with the revision it was read at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Order of registration.
    pub number: i64,
    /// Compared at the next write.
    pub revision: i64,
    /// Conversations of dead generations that nobody has continued or dismissed.
    pub stranded: u32,
    /// The record, or what is known of a row that cannot be understood.
    pub content: Content,
}

/// What a row holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A record.
    Bridge(Box<Bridge>),
    /// A row with a value that cannot be understood. It is kept byte for byte.
    Corrupt {
        /// Its id as text.
        id: String,
        /// Its project as text.
        project: String,
        /// Which column is wrong.
        problem: String,
    },
}

impl Stored {
    /// Its instance id, also of a record that cannot be understood.
    #[must_use]
    pub fn id(&self) -> &str {
        match &self.content {
            Content::Bridge(bridge) => bridge.id.as_str(),
            Content::Corrupt { id, .. } => id,
        }
    }

    /// Its project's name, also of a record that cannot be understood.
    #[must_use]
    pub fn project(&self) -> &str {
        match &self.content {
            Content::Bridge(bridge) => bridge.project.as_str(),
            Content::Corrupt { project, .. } => project,
        }
    }

    /// The record, unless the row is corrupt.
    #[must_use]
    pub fn bridge(&self) -> Option<&Bridge> {
        match &self.content {
            Content::Bridge(bridge) => Some(bridge),
            Content::Corrupt { .. } => None,
        }
    }
}

/// What differs from an earlier reading.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Rows that are new or have another revision, in the order of registration.
    pub changed: Vec<Stored>,
    /// Numbers of rows that are gone.
    pub gone: Vec<i64>,
}

/// What an insert did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Inserted {
    /// The row is durable.
    Yes,
    /// Live bridges are at the cap.
    CapReached,
    /// The project has a live Server Mode bridge.
    Occupied,
}

/// What a save did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Saved {
    /// The record is written and durable; its new revision.
    Yes(i64),
    /// Somebody was faster, or the row is gone: load and decide again.
    Stale,
    /// The project has another live Server Mode bridge.
    Occupied,
    /// Live bridges are at the cap, and this would be one more.
    CapReached,
}

/// What is recorded in the transaction of a change.
#[derive(Debug, Clone, Copy, Default)]
pub struct Along<'a> {
    /// Events of the history.
    pub history: &'a [HistoryRow],
    /// Announcements that the writer would make; each is made once for a generation.
    pub announcements: &'a [Lifecycle],
    /// Conversations that hung on the generation that ends.
    pub stranded: &'a [NewStranded],
    /// Who asked for the stop, or what was used before the end.
    pub end: Option<&'a EndFacts>,
}

/// Limits that are counted in the transaction of a write that leaves a row live.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cap {
    /// Most live bridges, this one included; `None` without a cap.
    pub max_live: Option<u32>,
}

fn is_occupied(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| {
        error.is_unique_violation() && error.message().contains("bridges.project")
    })
}

/// A failing decode of a single column is that row's problem, not the list's.
fn stored(row: &SqliteRow) -> Result<Stored, sqlx::Error> {
    // A save could never compare a revision of another type.
    let columns = row.try_get::<i64, _>("revision").and_then(|_| BridgeRow::from_row(row));
    let content = match columns {
        Ok(columns) => {
            let (id, project) = (columns.instance_id.clone(), columns.project.clone());
            match Bridge::try_from(columns) {
                Ok(bridge) => Content::Bridge(Box::new(bridge)),
                Err(corrupt) => Content::Corrupt { id, project, problem: corrupt.to_string() },
            }
        }
        Err(error) => Content::Corrupt {
            id: any_text(row, "instance_id"),
            project: any_text(row, "project"),
            problem: match error {
                sqlx::Error::ColumnDecode { index, .. } => {
                    format!("column {} is unreadable", index.replace('"', "`"))
                }
                _ => "a column is unreadable".to_owned(),
            },
        },
    };
    // 0, which no row of ours has, when it is of another type.
    let revision = row.try_get("revision").unwrap_or(0);
    let stranded = row.try_get::<i64, _>("stranded").ok().and_then(|n| u32::try_from(n).ok());
    let stranded = stranded.unwrap_or_default();
    Ok(Stored { number: row.try_get("number")?, revision, stranded, content })
}

/// The value of a text column, also where it holds no valid text.
fn any_text(row: &SqliteRow, column: &str) -> String {
    let bytes = row.try_get_unchecked::<Vec<u8>, _>(column).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads one row after the other. In the driver ten thousand take fifty megabytes.
async fn collect(
    mut rows: impl Stream<Item = Result<SqliteRow, sqlx::Error>> + Unpin,
) -> Result<Vec<Stored>, sqlx::Error> {
    let mut all = Vec::new();
    while let Some(row) = rows.try_next().await? {
        all.push(stored(&row)?);
    }
    Ok(all)
}

impl Store {
    /// All rows in the order of registration.
    ///
    /// # Errors
    /// The database cannot be read; a corrupt row is not an error.
    pub async fn bridges(&self) -> Result<Vec<Stored>, StoreError> {
        Ok(collect(sqlx::query(row::SELECT_ALL).fetch(&self.readers)).await?)
    }

    /// One row.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn bridge(&self, id: &InstanceId) -> Result<Option<Stored>, StoreError> {
        let row =
            sqlx::query(row::SELECT_ONE).bind(id.as_str()).fetch_optional(&self.readers).await?;
        Ok(row.as_ref().map(stored).transpose()?)
    }

    /// The rows that differ from what the caller knows, given as revisions by number.
    /// Reads only those rows. A manual change without a new revision is not seen.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn changed_since(&self, known: &BTreeMap<i64, i64>) -> Result<Changes, StoreError> {
        // Both queries see the same state.
        let mut transaction = self.readers.begin().await?;
        let (numbers, revisions): (String, String) =
            sqlx::query_as(REVISIONS).fetch_one(&mut *transaction).await?;
        let numbers: Vec<i64> = integers(&numbers)?;
        let mut gone = known.clone();
        let numbers: Vec<i64> = numbers
            .into_iter()
            .zip(integers(&revisions)?)
            .filter_map(|(number, revision)| {
                (gone.remove(&number) != Some(revision)).then_some(number)
            })
            .collect();
        let changed = if numbers.is_empty() {
            Vec::new()
        } else {
            let numbers = serde_json::json!(numbers).to_string();
            collect(sqlx::query(row::SELECT_THESE).bind(numbers).fetch(&mut *transaction)).await?
        };
        transaction.commit().await?;
        Ok(Changes { changed, gone: gone.into_keys().collect() })
    }

    /// Records a new bridge. The same transaction counts the cap, so it is exact.
    ///
    /// # Errors
    /// The row is not there.
    pub async fn insert(
        &self,
        bridge: &Bridge,
        cap: Cap,
        now: Timestamp,
    ) -> Result<Inserted, StoreError> {
        self.insert_with(bridge, &[], cap, now).await
    }

    /// The same with its history, in one transaction.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn insert_with(
        &self,
        bridge: &Bridge,
        history: &[HistoryRow],
        cap: Cap,
        now: Timestamp,
    ) -> Result<Inserted, StoreError> {
        Ok(self.insert_numbered(bridge, history, cap, now).await?.0)
    }

    /// The same, and the row as it stands now, so that it need not be read again.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn insert_numbered(
        &self,
        bridge: &Bridge,
        history: &[HistoryRow],
        cap: Cap,
        now: Timestamp,
    ) -> Result<(Inserted, Option<Stored>), StoreError> {
        self.noted(self.insert_now(bridge, history, cap, now).await)
    }

    async fn insert_now(
        &self,
        bridge: &Bridge,
        history: &[HistoryRow],
        cap: Cap,
        now: Timestamp,
    ) -> Result<(Inserted, Option<Stored>), StoreError> {
        let row = BridgeRow::try_from(bridge)?;
        let mut transaction = self.begin().await?;
        sqlx::query(SAW_PROJECT)
            .bind(bridge.project.as_str())
            .bind(now.as_millis())
            .execute(&mut *transaction)
            .await?;
        let number = match row.insert(now.as_millis()).execute(&mut *transaction).await {
            Ok(done) => done.last_insert_rowid(),
            Err(error) if is_occupied(&error) => {
                transaction.rollback().await?;
                return Ok((Inserted::Occupied, None));
            }
            Err(error) => return Err(error.into()),
        };
        if bridge.is_live() && exceeds(&mut transaction, cap).await? {
            transaction.rollback().await?;
            return Ok((Inserted::CapReached, None));
        }
        for event in history {
            history::insert(&mut transaction, event).await?;
        }
        transaction.commit().await?;
        let content = Content::Bridge(Box::new(bridge.clone()));
        Ok((Inserted::Yes, Some(Stored { number, revision: 1, stranded: 0, content })))
    }

    /// Whether no bridge was ever recorded, or all are forgotten.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn is_unused(&self) -> Result<bool, StoreError> {
        Ok(sqlx::query_scalar(IS_UNUSED).fetch_one(&self.readers).await?)
    }

    /// Records ended bridges of an earlier service, all or none.
    /// Does so only if the table is still empty; returns whether it was.
    ///
    /// # Errors
    /// None is there.
    pub async fn import(&self, bridges: &[Bridge], now: Timestamp) -> Result<bool, StoreError> {
        self.noted(self.import_now(bridges, now).await)
    }

    async fn import_now(&self, bridges: &[Bridge], now: Timestamp) -> Result<bool, StoreError> {
        let mut transaction = self.begin().await?;
        if !sqlx::query_scalar::<_, bool>(IS_UNUSED).fetch_one(&mut *transaction).await? {
            transaction.rollback().await?;
            return Ok(false);
        }
        for bridge in bridges {
            let row = BridgeRow::try_from(bridge)?;
            sqlx::query(SAW_PROJECT)
                .bind(bridge.project.as_str())
                .bind(now.as_millis())
                .execute(&mut *transaction)
                .await?;
            row.insert(now.as_millis()).execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
        Ok(true)
    }

    /// Writes a record and its history in one transaction.
    /// Does so only if nobody has written the record since it was read.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn save(
        &self,
        revision: i64,
        next: &Bridge,
        history: &[HistoryRow],
        cap: Cap,
        now: Timestamp,
    ) -> Result<Saved, StoreError> {
        let along = Along { history, ..Along::default() };
        Ok(self.save_with(revision, next, along, cap, now).await?.0)
    }

    /// The same with announcements.
    /// Also returns those that nobody has made for this generation; the caller makes them.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn save_with(
        &self,
        revision: i64,
        next: &Bridge,
        along: Along<'_>,
        cap: Cap,
        now: Timestamp,
    ) -> Result<(Saved, Vec<Lifecycle>), StoreError> {
        self.noted(self.save_now(revision, next, along, cap, now).await)
    }

    async fn save_now(
        &self,
        revision: i64,
        next: &Bridge,
        along: Along<'_>,
        cap: Cap,
        now: Timestamp,
    ) -> Result<(Saved, Vec<Lifecycle>), StoreError> {
        let row = BridgeRow::try_from(next)?;
        let mut transaction = self.begin().await?;
        let update = row.update(revision, now.as_millis());
        let changed = match update.execute(&mut *transaction).await {
            Ok(done) => done.rows_affected(),
            Err(error) if is_occupied(&error) => {
                transaction.rollback().await?;
                return Ok((Saved::Occupied, Vec::new()));
            }
            Err(error) => return Err(error.into()),
        };
        if changed == 0 {
            transaction.rollback().await?;
            return Ok((Saved::Stale, Vec::new()));
        }
        if next.is_live() && exceeds(&mut transaction, cap).await? {
            transaction.rollback().await?;
            return Ok((Saved::CapReached, Vec::new()));
        }
        for event in along.history {
            history::insert(&mut transaction, event).await?;
        }
        for one in along.stranded {
            stranded::insert(&mut transaction, next, one, now).await?;
        }
        if let Some(facts) = along.end {
            end_facts::note(&mut transaction, &next.id, next.generation, facts).await?;
        }
        let mut claimed = Vec::new();
        for event in along.announcements {
            let query = sqlx::query(ANNOUNCE)
                .bind(next.id.as_str())
                .bind(next.generation)
                .bind(event.as_str())
                .bind(now.as_millis());
            if query.execute(&mut *transaction).await?.rows_affected() == 1 {
                if self.owes.load(Ordering::Acquire) {
                    outbox::owe(&mut transaction, &next.id, next.generation, *event, now).await?;
                }
                claimed.push(*event);
            }
        }
        transaction.commit().await?;
        // The largest revision cannot be counted up: the database has refused that above.
        Ok((Saved::Yes(revision.saturating_add(1)), claimed))
    }

    /// Claims an event of a generation whose record another process wrote.
    /// True for one caller: whoever gets it announces the event. False also for a forgotten row.
    ///
    /// # Errors
    /// The database cannot be read or written; the event is not claimed.
    pub async fn claim_announcement(
        &self,
        id: &InstanceId,
        generation: u32,
        event: Lifecycle,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let claimed = async {
            let mut transaction = self.begin().await?;
            let query = sqlx::query(CLAIM)
                .bind(id.as_str())
                .bind(generation)
                .bind(event.as_str())
                .bind(now.as_millis());
            let is_claimed = query.execute(&mut *transaction).await?.rows_affected() == 1;
            if is_claimed && self.owes.load(Ordering::Acquire) {
                outbox::owe(&mut transaction, id, generation, event, now).await?;
            }
            transaction.commit().await?;
            Ok(is_claimed)
        };
        self.noted(claimed.await)
    }

    /// Deletes a row if nobody has written it since; returns whether it did.
    /// Its history stays.
    ///
    /// # Errors
    /// Nothing was removed.
    pub async fn delete(&self, id: &InstanceId, revision: i64) -> Result<bool, StoreError> {
        self.noted(self.delete_now(id, revision).await)
    }

    async fn delete_now(&self, id: &InstanceId, revision: i64) -> Result<bool, StoreError> {
        let mut transaction = self.begin().await?;
        let query = sqlx::query(DELETE).bind(id.as_str()).bind(revision);
        if query.execute(&mut *transaction).await?.rows_affected() == 0 {
            transaction.rollback().await?;
            return Ok(false);
        }
        sqlx::query(DROP_ANNOUNCEMENTS).bind(id.as_str()).execute(&mut *transaction).await?;
        stranded::drop_of(&mut transaction, id).await?;
        end_facts::drop_of(&mut transaction, id).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Names of all projects that ever had a bridge. A name that is none is left out.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn known_projects(&self) -> Result<Vec<ProjectName>, StoreError> {
        let rows = sqlx::query(PROJECTS).fetch_all(&self.readers).await?;
        Ok(rows.iter().filter_map(|row| any_text(row, "name").parse().ok()).collect())
    }
}

fn integers(json: &str) -> Result<Vec<i64>, sqlx::Error> {
    serde_json::from_str(json).map_err(|error| sqlx::Error::Decode(error.into()))
}

/// Whether more bridges are live than the cap allows, the new one included.
async fn exceeds(
    transaction: &mut sqlx::Transaction<'static, Sqlite>,
    cap: Cap,
) -> Result<bool, StoreError> {
    let Some(max) = cap.max_live else {
        return Ok(false);
    };
    let live: i64 = sqlx::query_scalar(COUNT_LIVE).fetch_one(&mut **transaction).await?;
    Ok(live > i64::from(max))
}
