//! `svc devices` and `svc access`: who is signed in, and who can reach the service.

use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::End;
use crate::cli::options::Listing;
use crate::cli::output::{Cell, Tone};
use crate::cli::work::{end, look};
use clap::{ArgGroup, Args, Subcommand};
use svc_shared::internal::access::{Device, Finding, RevokedDevice, SignedOutOthers};
use svc_shared::status::CheckStatus;

#[derive(Debug, Subcommand)]
pub(crate) enum Devices {
    /// List the signed-in browsers: when, from where, and until when.
    #[command(after_help = "Examples:\n  svc devices list\n  svc devices list --json")]
    List(Listing),
    /// Sign one browser out, or all of them; their open pages stop at once.
    #[command(
        after_help = "Examples:\n  svc devices sign-out 3f2a90c1d4e5b607\n  svc devices sign-out --all"
    )]
    SignOut(SignOut),
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").required(true))]
pub(crate) struct SignOut {
    /// The id of the device, from `svc devices list`.
    #[arg(value_name = "ID", group = "which")]
    pub(crate) id: Option<String>,
    /// Every device.
    #[arg(long, group = "which")]
    pub(crate) all: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `svc devices …`.
pub(crate) fn devices(call: &Call, verb: &Devices) -> Result<Exit, End> {
    match verb {
        Devices::List(listing) => list(call, listing),
        Devices::SignOut(options) => sign_out(call, options),
    }
}

fn list(call: &Call, listing: &Listing) -> Result<Exit, End> {
    let found = look(call, async |app| Ok(app.devices().list(None).await?))?;
    if listing.json {
        call.output.json(&found)?;
        return Ok(Exit::Done);
    }
    if found.is_empty() {
        call.output.note("No browser is signed in.");
        return Ok(Exit::Done);
    }
    let rows: Vec<[Cell; 6]> = found.iter().map(row).collect();
    call.output.table(["ID", "DEVICE", "FROM", "SIGNED IN", "LAST SEEN", "UNTIL"], &rows)?;
    Ok(Exit::Done)
}

fn row(device: &Device) -> [Cell; 6] {
    [
        device.id.as_str().into(),
        device.name.as_deref().unwrap_or(&device.user_agent).into(),
        device.forwarded_for.as_deref().unwrap_or(&device.peer).into(),
        device.created.to_string().into(),
        device.last_seen.to_string().into(),
        device.expires_at.to_string().into(),
    ]
}

fn sign_out(call: &Call, options: &SignOut) -> Result<Exit, End> {
    let Some(id) = options.id.as_deref() else {
        let revoked = end(call, async |app| Ok(app.devices().sign_out_others(None).await?))?;
        if options.json {
            call.output.json(&SignedOutOthers { revoked })?;
        } else {
            call.output.note(&format!("signed out: {revoked}"));
        }
        return Ok(Exit::Done);
    };
    end(call, async |app| Ok(app.devices().sign_out(id).await?))?;
    if options.json {
        call.output.json(&RevokedDevice { id: id.to_owned(), revoked: true })?;
    } else {
        call.output.note(&format!("device {id} is signed out"));
    }
    Ok(Exit::Done)
}

/// `svc access`: who can reach the service, in plain sentences.
pub(crate) fn access(call: &Call, listing: &Listing) -> Result<Exit, End> {
    let report = look(call, async |app| {
        let https = app.settings().tls.is_some();
        Ok(app.access().report(https).await?)
    })?;
    if listing.json {
        call.output.json(&report)?;
        return Ok(Exit::Done);
    }
    for finding in &report.findings {
        call.output.row(&line(finding))?;
    }
    Ok(Exit::Done)
}

/// Verdict, sentence, and behind an arrow the key that changes it.
fn line(finding: &Finding) -> [Cell; 2] {
    let (word, tone) = match finding.level.known() {
        Some(CheckStatus::Ok) => ("PASS", Tone::Good),
        Some(CheckStatus::Warn) => ("WARN", Tone::Attention),
        Some(CheckStatus::Fail) | None => ("FAIL", Tone::Bad),
    };
    let key = finding.key.as_ref().map(|key| format!(" -> {key}")).unwrap_or_default();
    [Cell::toned(word, tone), Cell::from(format!("{} {}{key}", finding.title, finding.detail))]
}
