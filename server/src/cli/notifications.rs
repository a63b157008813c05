//! `svc notifications`: tries the targets, and lists what became of the last ones.

use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::End;
use crate::cli::options::Listing;
use crate::cli::output::Cell;
use crate::cli::work::look;
use clap::{Args, Subcommand};
use svc_shared::internal::notifications::{DeliveryState, TestedTarget};

#[derive(Debug, Subcommand)]
pub(crate) enum Notifications {
    /// List the last notifications of each target, and what became of them.
    #[command(after_help = "\
Of each target the last 20 are kept, also over a restart of the service.

Examples:
  svc notifications list
  svc notifications list --json")]
    List(Listing),
    /// Send a test notification to every target, or to one, and say what each answered.
    #[command(after_help = "\
Works also while `notifications.enabled` is off.

Examples:
  svc notifications test
  svc notifications test 2
  svc notifications test --json")]
    Test(TestNotifications),
}

impl Notifications {
    /// Whether one JSON document is wanted.
    pub(crate) fn is_json(&self) -> bool {
        match self {
            Self::List(options) => options.json,
            Self::Test(options) => options.json,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct TestNotifications {
    /// Place in `notifications.urls`, from 1; without it all.
    #[arg(value_name = "ENTRY")]
    pub(crate) entry: Option<usize>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `svc notifications …`.
pub(crate) fn run(call: &Call, command: &Notifications) -> Result<Exit, End> {
    let options = match command {
        Notifications::Test(options) => options,
        Notifications::List(options) => return list(call, options),
    };
    let (sent, is_enabled) = look(call, async |app| {
        let notifications = app.notifications();
        let sent = Box::pin(notifications.test(options.entry)).await?;
        Ok((sent, notifications.is_enabled()))
    })?;
    let is_accepted = |one: &TestedTarget| one.outcome.state == DeliveryState::Accepted;
    let exit = match sent.tested.iter().all(is_accepted) {
        true => Exit::Done,
        false => Exit::Failed,
    };
    if options.json {
        call.output.json(&sent)?;
        return Ok(exit);
    }
    let rows: Vec<[Cell; 4]> = sent.tested.iter().map(row).collect();
    call.output.table(["ENTRY", "SERVICE", "TARGET", "RESULT"], &rows)?;
    if !is_enabled {
        call.output.note("Nothing is notified yet: `notifications.enabled` is off.");
    }
    Ok(exit)
}

/// What became of the last notifications.
fn list(call: &Call, options: &Listing) -> Result<Exit, End> {
    let report = look(call, async |app| Ok(Box::pin(app.notifications().report(None)).await?))?;
    if options.json {
        call.output.json(&report)?;
        return Ok(Exit::Done);
    }
    let mut rows: Vec<[Cell; 5]> = Vec::new();
    for target in &report.targets {
        let name = format!("{} {}", target.entry, target.target);
        if let Some(why) = &target.problem {
            call.output.note(&format!("entry {} is disabled: {why}", target.entry));
        }
        rows.extend(target.deliveries.iter().map(|one| {
            let state = match &one.reason {
                Some(why) => format!("{}: {why}", one.state),
                None => one.state.to_string(),
            };
            [
                name.trim_end().into(),
                one.at.to_string().into(),
                one.event.as_str().into(),
                one.title.as_str().into(),
                state.into(),
            ]
        }));
    }
    if rows.is_empty() {
        call.output.note("No notification has been sent yet.");
        return Ok(Exit::Done);
    }
    call.output.table(["TARGET", "AT", "EVENT", "TITLE", "STATE"], &rows)?;
    Ok(Exit::Done)
}

fn row(tested: &TestedTarget) -> [Cell; 4] {
    let outcome = &tested.outcome;
    let result = match (&outcome.reason, outcome.status) {
        (None, Some(status)) => format!("accepted ({status})"),
        (None, None) => "accepted".to_owned(),
        (Some(why), _) => format!("failed: {why}"),
    };
    [
        tested.entry.to_string().into(),
        tested.service.as_str().into(),
        tested.target.as_str().into(),
        result.into(),
    ]
}
