//! Statements on `ui_prefs`: how the page looks and behaves.

use crate::error::StoreError;
use crate::store::Store;
use sqlx::Row;

const READ: &str = "SELECT rev, prefs FROM ui_prefs WHERE id = 1";
const FIRST: &str =
    "INSERT INTO ui_prefs (id, rev, prefs) VALUES (1, 1, ?) ON CONFLICT (id) DO NOTHING";
const NEXT: &str = "UPDATE ui_prefs SET rev = rev + 1, prefs = ?1 WHERE id = 1 AND rev = ?2";

pub(crate) const STATEMENTS: &[&str] = &[READ, FIRST, NEXT];

/// The document as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UiPrefsRow {
    /// Counts changes; at least 1.
    pub rev: i64,
    /// JSON.
    pub prefs: String,
}

impl Store {
    /// The document; `None` before the first change.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn ui_prefs(&self) -> Result<Option<UiPrefsRow>, StoreError> {
        let row = sqlx::query(READ).fetch_optional(&self.readers).await?;
        row.map(|row| Ok(UiPrefsRow { rev: row.try_get(0)?, prefs: row.try_get(1)? })).transpose()
    }

    /// Replaces the document that had this revision, 0 for none yet.
    /// `false` when another change came first.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn save_ui_prefs(&self, rev: i64, prefs: &str) -> Result<bool, StoreError> {
        self.noted(self.save_ui_prefs_now(rev, prefs).await)
    }

    async fn save_ui_prefs_now(&self, rev: i64, prefs: &str) -> Result<bool, StoreError> {
        let mut transaction = self.begin().await?;
        let change = match rev {
            0 => sqlx::query(FIRST).bind(prefs),
            _ => sqlx::query(NEXT).bind(prefs).bind(rev),
        };
        let done = change.execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(done.rows_affected() == 1)
    }
}
