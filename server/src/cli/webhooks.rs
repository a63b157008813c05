//! `svc webhooks test`: posts a test event to the targets of the configuration.

use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::End;
use crate::cli::output::Cell;
use crate::cli::work::look;
use clap::{Args, Subcommand};
use svc_app::TestDelivery;

#[derive(Debug, Subcommand)]
pub(crate) enum Webhooks {
    /// Post a test event to every target, or to one, and say what each answered.
    #[command(after_help = "\
The post has the event `test` and is signed as any other. Works also while `webhooks.enabled` is
off.

Examples:
  svc webhooks test
  svc webhooks test 2
  svc webhooks test --json")]
    Test(TestWebhooks),
}

#[derive(Debug, Args)]
pub(crate) struct TestWebhooks {
    /// Place in `webhooks.urls`, from 1, or the URL as it stands there; without it all.
    #[arg(value_name = "URL")]
    pub(crate) target: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `svc webhooks …`.
pub(crate) fn run(call: &Call, command: &Webhooks) -> Result<Exit, End> {
    let Webhooks::Test(options) = command;
    let (sent, is_enabled, is_signed) = look(call, async |app| {
        let webhooks = app.webhooks();
        let sent = webhooks.test(options.target.as_deref()).await?;
        Ok((sent, webhooks.is_enabled(), webhooks.is_signed()))
    })?;
    let exit = match sent.iter().all(TestDelivery::is_accepted) {
        true => Exit::Done,
        false => Exit::Failed,
    };
    if options.json {
        call.output.json(&sent)?;
        return Ok(exit);
    }
    let rows: Vec<[Cell; 3]> = sent.iter().map(row).collect();
    call.output.table(["ENTRY", "TARGET", "RESULT"], &rows)?;
    if !is_signed {
        call.output.note("The posts are not signed: `webhooks.secret` is not set.");
    }
    if !is_enabled {
        call.output.note("Events are not posted yet: `webhooks.enabled` is off.");
    }
    Ok(exit)
}

fn row(sent: &TestDelivery) -> [Cell; 3] {
    let result = match (sent.status, &sent.error) {
        (Some(status), _) if sent.is_accepted() => format!("accepted ({status})"),
        (Some(status), _) => format!("refused: it answered {status}"),
        (None, error) => format!("not delivered: {}", error.as_deref().unwrap_or("unknown")),
    };
    [sent.entry.to_string().into(), sent.target.as_str().into(), result.into()]
}
