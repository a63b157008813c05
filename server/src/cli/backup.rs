//! `svc backup` and `svc restore`.

use crate::cli::call::{Call, block_on};
use crate::cli::config::{ShownWarnings, loaded};
use crate::cli::exit_code::Exit;
use crate::cli::failure::{End, Failure};
use crate::compose::now;
use crate::logging::{self, Shape};
use crate::signals::{Asked, Signals};
use clap::Args;
use std::path::PathBuf;
use svc_app::backup::{
    BackupError, BackupRequest, Output, Plan, RestoreRequest, Restored, Stop, backup, plan, restore,
};
use svc_config::LogLevel;
use svc_process::run_lock::RunLockError;

#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// Archive to write, or a directory for it (a `/` at the end makes the directory).
    #[arg(short, long, value_name = "PATH", default_value = ".")]
    pub(crate) output: PathBuf,
    /// Replace an archive that is there.
    #[arg(long)]
    pub(crate) force: bool,
    /// Leave the logs of sessions out.
    #[arg(long)]
    pub(crate) no_logs: bool,
    /// Take the programs of `deps/` too.
    #[arg(long)]
    pub(crate) include_deps: bool,
    /// Refuse while a service runs, and let none start meanwhile.
    #[arg(long)]
    pub(crate) exclusive: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// Archive that `svc backup` made.
    pub(crate) archive: PathBuf,
    /// State directory to replace; the service that uses it must not run.
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: PathBuf,
    /// Write the archived configuration to this file, mode 0600.
    #[arg(long, value_name = "FILE")]
    pub(crate) config_out: Option<PathBuf>,
    /// Replace a state directory that holds something, and an existing configuration.
    #[arg(long)]
    pub(crate) force: bool,
    /// Check everything, print the plan and write nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `svc backup`.
pub(crate) fn run_backup(call: &Call, options: &Backup) -> Result<Exit, End> {
    let loaded = loaded(call, ShownWarnings::Deprecated)?;
    let done = interruptible(async |stop| {
        backup(BackupRequest {
            state_dir: loaded.config.state_dir.clone(),
            config_file: loaded.path.clone(),
            output: Output::named(&options.output),
            force: options.force,
            logs: !options.no_logs,
            deps: options.include_deps,
            exclusive: options.exclusive,
            now: now(),
            stop,
        })
        .await
    })?;
    warn(call, &done.warnings);
    call.output.note(
        "the archive holds password hashes, the session secret and keys: keep it as private as \
         the state directory",
    );
    if options.json {
        call.output.json(&done)?;
    } else {
        call.output.line(&done.path.to_string_lossy())?;
    }
    Ok(Exit::Done)
}

/// `svc restore`.
pub(crate) fn run_restore(call: &Call, options: &Restore) -> Result<Exit, End> {
    let request = |stop| RestoreRequest {
        archive: options.archive.clone(),
        state_dir: options.state_dir.clone(),
        config_out: options.config_out.clone(),
        force: options.force,
        now: now(),
        stop,
    };
    if options.dry_run {
        let plan = interruptible(async |stop| plan(request(stop)).await)?;
        warn(call, &plan.warnings);
        return show_plan(call, options, &plan);
    }
    let done = interruptible(async |stop| restore(request(stop)).await)?;
    warn(call, &done.warnings);
    if options.json {
        call.output.json(&done)?;
    } else {
        let Restored { state_files, config, .. } = &done;
        let config = config.as_ref().map(|path| format!("; config -> {}", path.display()));
        let config = config.unwrap_or_default();
        call.output.line(&format!("restored {state_files} state file(s){config}"))?;
    }
    call.output.note("everybody has to sign in again; start the service to take the records over");
    Ok(Exit::Done)
}

fn show_plan(call: &Call, options: &Restore, plan: &Plan) -> Result<Exit, End> {
    if options.json {
        call.output.json(plan)?;
        return Ok(Exit::Done);
    }
    let target = plan.state_dir.display();
    let how = if plan.replaces { "would replace" } else { "would create" };
    let files = plan.state_files;
    call.output.line(&format!("archive of {}", plan.created))?;
    call.output.line(&format!("{how} {target} with {files} state file(s)"))?;
    if let Some(config) = &plan.config {
        call.output.line(&format!("would write the configuration to {}", config.display()))?;
    }
    call.output.note("nothing was written (--dry-run)");
    Ok(Exit::Done)
}

fn warn(call: &Call, warnings: &[String]) {
    for warning in warnings {
        call.output.note(&format!("warning: {warning}"));
    }
}

/// Runs work that a signal asks to give up.
///
/// The work cleans up after itself before this returns.
fn interruptible<T>(work: impl AsyncFnOnce(Stop) -> Result<T, BackupError>) -> Result<T, End> {
    logging::start(Shape::Remark, LogLevel::Warning);
    crate::safety::report_panics();
    block_on(async {
        let mut signals = Signals::of_command().map_err(End::of_machine)?;
        let stop = Stop::default();
        let mut work = Box::pin(work(stop.clone()));
        let asked = tokio::select! {
            done = &mut work => return Ok(done.map_err(Failure::from)?),
            asked = signals.asked() => asked,
        };
        stop.ask();
        match work.await {
            // What was completed meanwhile counts.
            Ok(done) => return Ok(done),
            // So does what is to be mended by hand.
            Err(error @ (BackupError::Stranded { .. } | BackupError::WithoutConfig { .. })) => {
                return Err(Failure::from(error).into());
            }
            Err(_) => {}
        }
        Err(End::Signal(match asked {
            Asked::Interrupt => Exit::Interrupted,
            Asked::Terminate => Exit::Terminated,
        }))
    })
}

impl From<BackupError> for Failure {
    fn from(error: BackupError) -> Self {
        let (exit, code) = match &error {
            BackupError::NoArchive(_) => (Exit::Refused, "not_found"),
            BackupError::Target { .. } => (Exit::Refused, "invalid_value"),
            BackupError::Lock(RunLockError::Held { .. }) => (Exit::Blocked, "running"),
            BackupError::NoState(_) => (Exit::Failed, "not_found"),
            BackupError::InTheWay(_) => (Exit::Failed, "exists"),
            BackupError::Full(_) => (Exit::Failed, "disk_full"),
            BackupError::Refused { .. } | BackupError::Unusable { .. } => {
                (Exit::Failed, "archive_refused")
            }
            BackupError::Unverified(_) => (Exit::Failed, "archive_unusable"),
            BackupError::Database(_) | BackupError::Staged(_) => (Exit::Failed, "store"),
            BackupError::Config(_) => (Exit::Failed, "config"),
            BackupError::Lock(RunLockError::File { .. })
            | BackupError::Io { .. }
            | BackupError::Stranded { .. }
            | BackupError::WithoutConfig { .. } => (Exit::Failed, "io"),
        };
        let mut failure = Self::chain(code, &error);
        failure.exit = exit;
        failure
    }
}
