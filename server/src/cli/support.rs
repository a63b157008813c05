//! `svc support-bundle`: one masked file for somebody who can help.

use crate::cli::call::{Call, block_on};
use crate::cli::doctor;
use crate::cli::exit_code::Exit;
use crate::cli::failure::{End, Failure};
use crate::cli::output::Cell;
use crate::compose;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use svc_app::SupportBundle;
use svc_shared::internal::support::BundleListing;

/// Shown behind the options.
pub(crate) const HELP: &str = "\
Holds what the doctor found, versions, the configuration without secret values, the end of the
service's log, the history, reports of the sessions that ended last, and facts of this machine.
All of it is masked. The list is printed first; an existing file is never replaced.

Examples:
  svc support-bundle --list
  svc support-bundle
  svc support-bundle -o svc-support.tar.gz --json";

#[derive(Debug, Args)]
pub(crate) struct Support {
    /// The file to write, or a directory for it.
    #[arg(short, long, value_name = "FILE", default_value = ".")]
    pub(crate) output: PathBuf,
    /// Only list what would be in it.
    #[arg(long, conflicts_with = "output")]
    pub(crate) list: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lists what is in the bundle, then writes it.
pub(crate) fn support(call: &Call, options: &Support) -> Result<Exit, End> {
    let bundle = gathered(call)?;
    let listing = bundle.listing();
    if options.list {
        if options.json {
            call.output.json(&listing)?;
        } else {
            call.output.table(["FILE", "BYTES", "WHAT IT HOLDS"], &rows(&listing))?;
        }
        return Ok(Exit::Done);
    }
    for member in &listing.members {
        call.output.note(&format!("{}: {}", member.name, member.says));
    }
    let path = bundle.write(&options.output)?;
    if options.json {
        let path = path.to_string_lossy();
        call.output.json(&json!({ "path": path, "members": listing.members }))?;
    } else {
        call.output.line(&path.display().to_string())?;
    }
    Ok(Exit::Done)
}

fn rows(listing: &BundleListing) -> Vec<[Cell; 3]> {
    let row = |member: &svc_shared::internal::support::BundleMember| {
        [
            Cell::from(member.name.as_str()),
            Cell::from(member.bytes.to_string()),
            Cell::from(member.says.as_str()),
        ]
    };
    listing.members.iter().map(row).collect()
}

fn gathered(call: &Call) -> Result<SupportBundle, End> {
    let (loaded, found) = doctor::whole(call)?;
    let Some(loaded) = loaded else {
        return Ok(SupportBundle::of_unusable(&found, compose::now()));
    };
    let around = call.surroundings(&loaded);
    block_on(async {
        // Where the records cannot be opened the doctor says why.
        let Ok(composed) = compose::reader(&around).await else {
            return Ok(SupportBundle::of_unusable(&found, compose::now()));
        };
        let bundle = composed.app.support().gather(&found).await.map_err(Failure::from);
        composed.app.close().await;
        Ok(bundle?)
    })
}
