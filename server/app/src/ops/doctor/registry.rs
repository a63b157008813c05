//! The check `db`.

use super::verdict::{chain, failed, passed, told, warned};
use std::path::Path;
use svc_shared::internal::Check;
use svc_shared::status::CheckStatus;
use svc_store::{Health, OpenError, StoreError};

/// What is known of an open database; the inner `None`: it took too long to look.
type Looked = Option<Result<Health, StoreError>>;

/// Whether the records can be relied on.
/// No database at all is one that the first start makes.
pub(super) fn database(path: &Path, seen: Result<Option<Looked>, &OpenError>) -> Check {
    const NAME: &str = "db";
    match seen {
        Err(error @ OpenError::Pending { .. }) => told_by(error, CheckStatus::Warn),
        Err(error) => told_by(error, CheckStatus::Fail),
        Ok(None) => passed(NAME, "none yet; the first start creates it"),
        Ok(Some(None)) => warned(
            NAME,
            format!("{} was not looked through within ten seconds", path.display()),
            "try again when the machine is less busy",
        ),
        Ok(Some(Some(Err(error)))) => failed(
            NAME,
            format!("{} cannot be read: {}", path.display(), chain(&error)),
            "check the permissions and the file system of state_dir",
        ),
        Ok(Some(Some(Ok(Health { damage: Some(damage), .. })))) => failed(
            NAME,
            format!("{} is damaged ({damage})", path.display()),
            "stop the service, put the newest snapshot of `backups/` beside it in its place, and \
             delete svc.db-wal and svc.db-shm",
        ),
        Ok(Some(Some(Ok(Health { has_log: false, .. })))) => warned(
            NAME,
            "sound, but without its write-ahead log: readers wait for writers",
            "move state_dir to a local file system",
        ),
        Ok(Some(Some(Ok(Health { version, .. })))) => {
            passed(NAME, format!("sound, schema {version}"))
        }
    }
}

/// Messages of refusals say the remedy behind a colon or a semicolon.
fn told_by(error: &OpenError, status: CheckStatus) -> Check {
    let text = chain(error);
    let check = told("db", status, &text);
    if check.hint.is_some() {
        return check;
    }
    match text.rsplit_once(": ") {
        Some((what, remedy)) => {
            Check { detail: what.to_owned(), hint: Some(remedy.to_owned()), ..check }
        }
        None => Check { hint: Some("start the service once: `svc run`".to_owned()), ..check },
    }
}
