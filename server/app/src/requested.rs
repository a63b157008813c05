//! What an agent asks for, with the lines of the file that it wants to change.

use crate::AppError;
use crate::tasks::blocking;
use serde_json::Value;
use std::path::{Path, PathBuf};
use svc_domain::approval_request::{line_of, requested};
use svc_domain::redact::redact_text;
use svc_process::files;
use svc_shared::api::approvals::ApprovalRequest;

/// Largest file in which the lines of an edit are looked for, in bytes.
const MOST: u64 = 1024 * 1024;

/// What a tool is to do for a session that works in this directory.
///
/// # Errors
/// The work was given up, because the service ends.
pub(crate) async fn read(
    tool: &str,
    input: Value,
    directory: PathBuf,
) -> Result<ApprovalRequest, AppError> {
    let tool = tool.to_owned();
    let work = move || ApprovalRequest {
        directory: directory.to_str().map(redact_text),
        ..requested(Some(&tool), &input, |path, old| line_in(&directory.join(path), old))
    };
    blocking(work).await
}

/// The line at which a text begins in a file. Of the file itself nothing is told.
fn line_in(path: &Path, old: &str) -> Option<u64> {
    let file = files::read_plain(path, MOST).ok()?;
    line_of(std::str::from_utf8(&file).ok()?, old)
}
