//! `svc notifications test`: tries the targets of notifications.

use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::End;
use crate::cli::output::Cell;
use crate::cli::work::look;
use clap::{Args, Subcommand};
use svc_shared::internal::notifications::{DeliveryState, TestedTarget};

#[derive(Debug, Subcommand)]
pub(crate) enum Notifications {
    /// Send a test notification to every target, or to one, and say what each answered.
    #[command(after_help = "\
Works also while `notifications.enabled` is off. What became of the notifications of a running
service is on its page and at GET /api/notifications.

Examples:
  svc notifications test
  svc notifications test 2
  svc notifications test --json")]
    Test(TestNotifications),
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
    let Notifications::Test(options) = command;
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
