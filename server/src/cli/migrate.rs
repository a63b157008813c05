//! `svc migrate`: the file that an earlier version kept its records in.

use crate::cli::call::Call;
use crate::cli::config::{ShownWarnings, loaded};
use crate::cli::exit_code::Exit;
use crate::cli::failure::{End, Failure};
use crate::cli::options::Listing;
use serde_json::json;
use svc_app::legacy::{self, Migrated};

/// Brings the file to the schema of this version.
pub(crate) fn migrate(call: &Call, listing: &Listing) -> Result<Exit, End> {
    let state_dir = loaded(call, ShownWarnings::Deprecated)?.config.state_dir.clone();
    let done = legacy::migrate(&state_dir).map_err(|error| Failure::chain("migrate", &error))?;
    let (found, records) = match done {
        Migrated::NoFile => (false, 0),
        Migrated::Done { records } => (true, records),
    };
    if listing.json {
        call.output.json(&json!({ "found": found, "schema_version": 1, "instances": records }))?;
    } else if found {
        call.output.line(&format!("state at schema 1 ({records} instance record(s))"))?;
    } else {
        call.output
            .note(&format!("there is no state.json in {}; nothing to do", state_dir.display()));
    }
    Ok(Exit::Done)
}
