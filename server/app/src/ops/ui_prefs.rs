//! Use-cases: what somebody chose for the page, read and replaced.

use crate::{AppError, Class};
use serde_json::{Map, Value};
use svc_domain::ui_prefs::{self, Unfit};
use svc_shared::error::ErrorCode;
use svc_shared::internal::UiPrefs;
use svc_store::{Store, UiPrefsRow};

/// The preferences of the page, in the database.
pub struct Preferences {
    pub(crate) store: Store,
}

impl Preferences {
    /// The preferences as they are kept; empty at revision 0 before the first change.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn read(&self) -> Result<UiPrefs, AppError> {
        let row = self.store.ui_prefs().await.map_err(|error| {
            AppError::busy("the preferences cannot be read; try again").because(error)
        })?;
        Ok(row.map_or_else(UiPrefs::default, shown))
    }

    /// Replaces the preferences of the revision that `next` names.
    ///
    /// # Errors
    /// They do not fit, somebody else replaced them meanwhile, or nothing could be written.
    pub async fn replace(&self, next: UiPrefs) -> Result<UiPrefs, AppError> {
        let text = ui_prefs::text(&next.prefs).map_err(|unfit| match unfit {
            Unfit::TooLarge => {
                AppError::new(ErrorCode::TooLarge, Class::TooLarge, unfit.to_string())
            }
            Unfit::Member { .. } => AppError::invalid(unfit.to_string()),
        })?;
        let rev = i64::try_from(next.rev).ok();
        let is_saved = match rev {
            Some(rev) => self.store.save_ui_prefs(rev, &text).await.map_err(|error| {
                AppError::busy("the preferences cannot be recorded; try again").because(error)
            })?,
            None => false,
        };
        if !is_saved {
            return Err(AppError::new(
                ErrorCode::Stale,
                Class::Conflict,
                "the preferences were changed since they were read; read them again and repeat \
                 the change",
            ));
        }
        Ok(UiPrefs { rev: next.rev + 1, ..next })
    }
}

/// The document for the page. Broken content of the row counts as empty.
/// The page can then replace it.
fn shown(row: UiPrefsRow) -> UiPrefs {
    let prefs = serde_json::from_str::<Map<String, Value>>(&row.prefs).unwrap_or_else(|error| {
        tracing::warn!(error = %error, "the preferences cannot be understood and count as none");
        Map::new()
    });
    UiPrefs { prefs, rev: u64::try_from(row.rev).unwrap_or_default() }
}
