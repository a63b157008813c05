//! Statements on `transcripts`: what was read of the agent's files.

use crate::error::StoreError;
use crate::store::Store;
use sqlx::Row;

const ALL: &str = "SELECT path, state FROM transcripts";
const PUT: &str = "INSERT INTO transcripts (path, state) VALUES (?1, ?2) \
     ON CONFLICT (path) DO UPDATE SET state = excluded.state";
const DROP: &str = "DELETE FROM transcripts WHERE path = ?1";

pub(crate) const STATEMENTS: &[&str] = &[ALL, PUT, DROP];

impl Store {
    /// What is known of each file: its path and a JSON text.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn transcripts(&self) -> Result<Vec<(String, String)>, StoreError> {
        let rows = sqlx::query(ALL).fetch_all(&self.readers).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }

    /// Keeps what is known of some files, and drops what was known of others.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn keep_transcripts(
        &self,
        known: &[(String, String)],
        gone: &[String],
    ) -> Result<(), StoreError> {
        self.noted(self.keep_transcripts_now(known, gone).await)
    }

    async fn keep_transcripts_now(
        &self,
        known: &[(String, String)],
        gone: &[String],
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        for (path, state) in known {
            sqlx::query(PUT).bind(path).bind(state).execute(&mut *transaction).await?;
        }
        for path in gone {
            sqlx::query(DROP).bind(path).execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
        Ok(())
    }
}
