//! Statements on `end_facts`.
//!
//! Who asked for a stop, and what a session used before its end.

use crate::error::StoreError;
use crate::store::Store;
use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row, Sqlite};
use svc_shared::Timestamp;
use svc_shared::ids::InstanceId;

/// The first request of a stop is kept, and the last sample.
const NOTE: &str = "INSERT INTO end_facts (instance_id, generation, asked_by, asked_at, \
     sampled_at, cpu_percent, rss_bytes, processes, peak_rss_bytes, peak_at) \
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (instance_id, generation) DO UPDATE SET \
     asked_at = CASE WHEN asked_by IS NULL THEN excluded.asked_at ELSE asked_at END, \
     asked_by = COALESCE(asked_by, excluded.asked_by), \
     sampled_at = COALESCE(excluded.sampled_at, sampled_at), \
     cpu_percent = COALESCE(excluded.cpu_percent, cpu_percent), \
     rss_bytes = COALESCE(excluded.rss_bytes, rss_bytes), \
     processes = COALESCE(excluded.processes, processes), \
     peak_rss_bytes = COALESCE(excluded.peak_rss_bytes, peak_rss_bytes), \
     peak_at = COALESCE(excluded.peak_at, peak_at)";
const OF: &str = "SELECT generation, asked_by, asked_at, sampled_at, cpu_percent, rss_bytes, \
     processes, peak_rss_bytes, peak_at FROM end_facts WHERE instance_id = ? ORDER BY generation";
const DROP: &str = "DELETE FROM end_facts WHERE instance_id = ?";

pub(crate) const STATEMENTS: &[&str] = &[NOTE, OF, DROP];

/// What is known of an end beside the record.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EndFacts {
    /// Who asked for the stop, and when.
    pub asked: Option<(String, Timestamp)>,
    /// What the session used last.
    pub last: Option<LastUse>,
}

/// The last sample of a session, and the most memory that was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LastUse {
    /// When it was taken.
    pub at: Timestamp,
    /// Processor time in percent of one core.
    pub cpu_percent: f64,
    /// Resident memory of all its processes.
    pub rss_bytes: u64,
    /// Processes that were alive.
    pub processes: u32,
    /// The most resident memory of the generation that was measured.
    pub peak_rss_bytes: u64,
    /// When that was.
    pub peak_at: Timestamp,
}

/// The facts of one generation.
struct Noted(u32, EndFacts);

impl FromRow<'_, SqliteRow> for Noted {
    fn from_row(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        let time = |column| row.try_get::<Option<i64>, _>(column);
        let bytes = |column| {
            let bytes = row.try_get::<Option<i64>, _>(column)?;
            Ok::<_, sqlx::Error>(bytes.and_then(|bytes| u64::try_from(bytes).ok()))
        };
        let asked_by: Option<String> = row.try_get("asked_by")?;
        let asked_at = time("asked_at")?.map(Timestamp::from_millis);
        let sample = (time("sampled_at")?, bytes("rss_bytes")?);
        let last = match sample {
            (Some(at), Some(rss_bytes)) => Some(LastUse {
                at: Timestamp::from_millis(at),
                cpu_percent: row.try_get::<Option<f64>, _>("cpu_percent")?.unwrap_or_default(),
                rss_bytes,
                processes: row.try_get::<Option<u32>, _>("processes")?.unwrap_or_default(),
                peak_rss_bytes: bytes("peak_rss_bytes")?.unwrap_or(rss_bytes),
                peak_at: Timestamp::from_millis(time("peak_at")?.unwrap_or(at)),
            }),
            _ => None,
        };
        Ok(Self(row.try_get("generation")?, EndFacts { asked: asked_by.zip(asked_at), last }))
    }
}

/// Adds facts in the transaction of a change.
pub(crate) async fn note(
    transaction: &mut sqlx::Transaction<'static, Sqlite>,
    id: &InstanceId,
    generation: u32,
    facts: &EndFacts,
) -> Result<(), StoreError> {
    let bytes = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    let (asked, last) = (facts.asked.as_ref(), facts.last.as_ref());
    sqlx::query(NOTE)
        .bind(id.as_str())
        .bind(generation)
        .bind(asked.map(|(who, _)| who.as_str()))
        .bind(asked.map(|(_, at)| at.as_millis()))
        .bind(last.map(|last| last.at.as_millis()))
        .bind(last.map(|last| last.cpu_percent))
        .bind(last.map(|last| bytes(last.rss_bytes)))
        .bind(last.map(|last| last.processes))
        .bind(last.map(|last| bytes(last.peak_rss_bytes)))
        .bind(last.map(|last| last.peak_at.as_millis()))
        .execute(&mut **transaction)
        .await?;
    Ok(())
}

/// Deletes the facts of a session that is forgotten.
pub(crate) async fn drop_of(
    transaction: &mut sqlx::Transaction<'static, Sqlite>,
    id: &InstanceId,
) -> Result<(), StoreError> {
    sqlx::query(DROP).bind(id.as_str()).execute(&mut **transaction).await?;
    Ok(())
}

impl Store {
    /// What is known of the ends of a session, by generation.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn end_facts(&self, id: &InstanceId) -> Result<Vec<(u32, EndFacts)>, StoreError> {
        let rows: Vec<Noted> =
            sqlx::query_as(OF).bind(id.as_str()).fetch_all(&self.readers).await?;
        Ok(rows.into_iter().map(|Noted(generation, facts)| (generation, facts)).collect())
    }

    /// Adds facts of an end that another process recorded, or of a Direct Session.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn note_end(
        &self,
        id: &InstanceId,
        generation: u32,
        facts: &EndFacts,
    ) -> Result<(), StoreError> {
        let noted = async {
            let mut transaction = self.begin().await?;
            note(&mut transaction, id, generation, facts).await?;
            transaction.commit().await?;
            Ok(())
        };
        self.noted(noted.await)
    }
}
