//! What can be said about the health of an open registry.

use crate::error::StoreError;
use crate::inspect::is_about_a_value;
use crate::store::Store;
use crate::{migrate, schema};

/// Findings about an open registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The first thing found to be damaged.
    pub damage: Option<String>,
    /// Whether it has a write-ahead log, without which readers wait for writers.
    pub has_log: bool,
    /// Schema of the file.
    pub version: i64,
}

impl Store {
    /// Checks every page. Takes about a second per gigabyte and blocks nobody.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn health(&self) -> Result<Health, StoreError> {
        let mut connection = self.readers.acquire().await?;
        // Odd values make their row unreadable, not the database.
        sqlx::query("PRAGMA ignore_check_constraints = ON").execute(&mut *connection).await?;
        let lines: Result<Vec<String>, _> =
            sqlx::query_scalar("PRAGMA quick_check(20)").fetch_all(&mut *connection).await;
        sqlx::query("PRAGMA ignore_check_constraints = OFF").execute(&mut *connection).await?;
        let damage = lines?
            .into_iter()
            .find(|line| line != "ok" && !is_about_a_value(line))
            .map(|line| line.replace('\n', " "));
        let mode: String =
            sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&mut *connection).await?;
        let version = sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut *connection).await?;
        // The schema is ours alone at every moment, not only when it was opened (H86).
        let damage = match damage {
            Some(damage) => Some(damage),
            None => schema::difference(&mut connection, migrate::ALL, version)
                .await?
                .map(|difference| format!("its tables are not ours: {difference}")),
        };
        Ok(Health { damage, has_log: mode.eq_ignore_ascii_case("wal"), version })
    }
}
