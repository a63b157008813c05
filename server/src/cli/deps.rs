//! `svc deps`: optional parts that are installed into the state directory.

use crate::cli::call::Call;
use crate::cli::confirm::confirm;
use crate::cli::exit_code::Exit;
use crate::cli::failure::{End, Failure};
use crate::cli::options::Listing;
use crate::cli::output::{Cell, Tone};
use crate::cli::work::{act, look};
use clap::{Args, Subcommand};
use serde_json::json;
use std::path::PathBuf;
use svc_app::deps::{DepsError, ExtraStatus, InstallPlan, ListedExtra, Offer};

/// Examples of the command as a whole.
pub(crate) const EXAMPLES: &str = "Examples:\n  svc deps list\n  svc deps install hosted";

#[derive(Debug, Subcommand)]
pub(crate) enum Deps {
    /// List the optional parts, and how each stands.
    #[command(after_help = "Examples:\n  svc deps list\n  svc deps list --json")]
    List(Listing),
    /// Install one into the state directory.
    #[command(after_help = "\
Nothing is run or unpacked before its SHA-256 is what this version pins, or what you vouch for with
--sha256. One regular file is read out of a .tar.gz or .zip.

Examples:
  svc deps install hosted
  svc deps install hosted --from svc-hosted.tar.gz --sha256 HEX")]
    Install(Install),
    /// Remove an installed one; nothing outside the state directory is touched.
    #[command(after_help = "Examples:\n  svc deps uninstall hosted")]
    Uninstall(Uninstall),
}

#[derive(Debug, Args)]
pub(crate) struct Install {
    /// Name of the part, from the list.
    pub(crate) extra: String,
    /// Install from this archive or program instead of the download.
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    /// The SHA-256 that you vouch for, instead of the pinned one.
    #[arg(long, value_name = "HEX", requires = "from")]
    pub(crate) sha256: Option<String>,
    /// Do not ask.
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Uninstall {
    /// Name of the part, from the list.
    pub(crate) extra: String,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lists, installs or removes.
pub(crate) fn run(call: &Call, command: &Deps) -> Result<Exit, End> {
    match command {
        Deps::List(listing) => list(call, listing.json),
        Deps::Install(options) => install(call, options),
        Deps::Uninstall(options) => uninstall(call, options),
    }
}

fn list(call: &Call, json: bool) -> Result<Exit, End> {
    let found = look(call, async |app| Ok(app.deps().list().await))?;
    if json {
        call.output.json(&found)?;
        return Ok(Exit::Done);
    }
    let rows: Vec<[Cell; 4]> = found.iter().map(row).collect();
    call.output.table(["EXTRA", "DIST", "STATUS", "DETAIL"], &rows)?;
    Ok(Exit::Done)
}

fn row(extra: &ListedExtra) -> [Cell; 4] {
    let tone = match extra.status {
        ExtraStatus::BuiltIn | ExtraStatus::Loaded => Tone::Good,
        ExtraStatus::Installed | ExtraStatus::Missing => Tone::Attention,
        ExtraStatus::Elsewhere => Tone::Plain,
    };
    [
        extra.extra.into(),
        extra.dist.into(),
        Cell::toned(extra.status.as_str(), tone),
        extra.detail.as_str().into(),
    ]
}

fn install(call: &Call, options: &Install) -> Result<Exit, End> {
    let offer = Offer { from: options.from.clone(), sha256: options.sha256.clone() };
    let plan = look(call, async |app| {
        Ok(app.deps().plan(&options.extra, &offer).map_err(Failure::from)?)
    })?;
    for line in told(&plan) {
        call.output.note(&line);
    }
    confirm(call, options.yes, "install it?")?;
    let done = act(call, async |app| {
        Ok(Box::pin(app.deps().install(plan)).await.map_err(Failure::from)?)
    })?;
    if options.json {
        call.output.json(&done)?;
    } else {
        call.output.line(&format!("installed {}: {}", done.extra, done.path.display()))?;
    }
    if done.restart_needed {
        call.output.note("the daemon that runs goes on as it is; its next start takes this one");
    }
    Ok(Exit::Done)
}

/// What somebody should know before they say yes.
fn told(plan: &InstallPlan) -> Vec<String> {
    let whose = if plan.own_digest { "given by you" } else { "pinned by this version" };
    vec![
        format!("source:  {}", plan.source),
        format!("version: {}", plan.version.unwrap_or("not known")),
        format!("sha256:  {} ({whose})", plan.sha256),
        format!("target:  {}", plan.target.display()),
        "it is not covered by the signature of the release of svc itself".to_owned(),
    ]
}

fn uninstall(call: &Call, options: &Uninstall) -> Result<Exit, End> {
    let extra = &options.extra;
    let removed =
        act(call, async |app| Ok(app.deps().uninstall(extra).await.map_err(Failure::from)?))?;
    if options.json {
        call.output.json(&json!({ "extra": extra, "removed": removed }))?;
    } else if removed {
        call.output.line(&format!("removed {extra}"))?;
    }
    if !removed {
        call.output.note(&format!("{extra} is not installed in the state directory"));
    }
    Ok(Exit::Done)
}

impl From<DepsError> for Failure {
    fn from(error: DepsError) -> Self {
        let (exit, code) = match error {
            DepsError::App(error) => return error.into(),
            DepsError::Unknown(_) => (Exit::Refused, "unknown_extra"),
            DepsError::NotInstallable { .. } | DepsError::NoBuild { .. } => {
                (Exit::Refused, "no_build")
            }
            DepsError::NoDigest => (Exit::Refused, "invalid_value"),
            DepsError::NoFile(_) => (Exit::Refused, "not_found"),
            DepsError::Mismatch { .. } => (Exit::Failed, "digest_mismatch"),
            DepsError::Download(_) => (Exit::Failed, "download"),
            DepsError::Archive(_) | DepsError::NoProgram(_) => (Exit::Failed, "archive_refused"),
            DepsError::Running { .. } => (Exit::Blocked, "running"),
            DepsError::Outside(_) => (Exit::Failed, "path_escape"),
            DepsError::Io { .. } => (Exit::Failed, "io"),
        };
        let mut failure = Self::chain(code, &error);
        failure.exit = exit;
        failure
    }
}
