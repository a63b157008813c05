//! `svc upgrade`: another version in the place of the running one, with a way back.

use crate::cli::call::{Call, block_on};
use crate::cli::config::unshown;
use crate::cli::exit_code::Exit;
use crate::cli::failure::{End, Failure};
use crate::compose::now;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use svc_app::restart::NotRestarted;
use svc_app::upgrade::{NotUpgraded, Upgraded, Wanted, upgrade};

/// The text below the options.
pub(crate) const HELP: &str = "\
The service checks the new program first: does it run here, does it accept the configuration, does
it read the database? Then it ends as for a restart, keeps a copy of the database and of the program,
and tries the new one in its place. A new program that does not serve within 15 s is taken back, and
the service runs as before (exit 1). Bridges and sessions keep running. Open
connections are closed, new ones wait meanwhile.
FILE is the program, or a .tar.gz or .zip with `svc` at its top.

Examples:
  svc upgrade --from ./svc
  svc upgrade --from svc-linux-x86_64.tar.gz --sha256 HEX --json";

#[derive(Debug, Args)]
pub(crate) struct Upgrade {
    /// The new program, or an archive with it.
    #[arg(long, value_name = "FILE")]
    pub(crate) from: PathBuf,
    /// The SHA-256 that the file must have.
    #[arg(long, value_name = "HEX")]
    pub(crate) sha256: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Asks the service, and waits until it is known which version serves.
pub(crate) fn run(call: &Call, options: &Upgrade) -> Result<Exit, End> {
    let state_dir = unshown(call)?.config.state_dir.clone();
    let (from, sha256) = (options.from.clone(), options.sha256.clone());
    let wanted = Wanted { state_dir, from, sha256, now: now() };
    let done = block_on(async { Ok(Box::pin(upgrade(wanted)).await) })?.map_err(Failure::from)?;
    let Upgraded { from, to, was_so, pid, url, target, previous } = &done;
    if options.json {
        call.output.json(&json!({
            "upgraded": !was_so, "from": from, "to": to, "pid": pid, "url": url,
            "program": target, "previous": (!was_so).then_some(previous),
        }))?;
    } else if *was_so {
        call.output.line(&format!("{} is this program already ({to})", target.display()))?;
    } else {
        call.output.line(&format!("upgraded: {from} -> {to}; process {pid} serves {url}"))?;
        call.output.note(&format!("the program before is kept as {}", previous.display()));
    }
    Ok(Exit::Done)
}

impl From<NotUpgraded> for Failure {
    fn from(error: NotUpgraded) -> Self {
        let (exit, code) = match error {
            NotUpgraded::App(error) => return error.into(),
            NotUpgraded::NotRunning | NotUpgraded::Asked(NotRestarted::NotRunning) => {
                (Exit::Refused, "not_running")
            }
            NotUpgraded::NoFile(_) => (Exit::Refused, "not_found"),
            NotUpgraded::NoDigest => (Exit::Refused, "invalid_value"),
            NotUpgraded::Mismatch { .. } => (Exit::Failed, "digest_mismatch"),
            NotUpgraded::Archive(_) => (Exit::Failed, "archive_refused"),
            NotUpgraded::Unfit(_) | NotUpgraded::Asked(NotRestarted::Refused(_)) => {
                (Exit::Failed, "refused")
            }
            NotUpgraded::NoProgram { .. } | NotUpgraded::Io { .. } => (Exit::Failed, "io"),
            NotUpgraded::Returned { .. } => (Exit::Failed, "returned"),
            NotUpgraded::Asked(_) | NotUpgraded::Away { .. } => (Exit::Failed, "not_restarted"),
        };
        let mut failure = Self::chain(code, &error);
        failure.exit = exit;
        failure
    }
}
