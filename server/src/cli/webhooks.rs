//! `svc webhooks`: what became of posts, a test, and a replay.

use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::End;
use crate::cli::options::Listing;
use crate::cli::output::Cell;
use crate::cli::work::{act, look};
use clap::{Args, Subcommand};
use svc_shared::internal::webhooks::{PostState, ReplayedWebhooks, TestedWebhook, WebhookPost};

#[derive(Debug, Subcommand)]
pub(crate) enum Webhooks {
    /// List what waits for each target, and what became of its last posts.
    #[command(after_help = "\
With `webhooks.outbox` the posts of the service are recorded, and this lists the last 20 of each
target. Without it they are only on the page Notifications of the running service.

Examples:
  svc webhooks list
  svc webhooks list --json")]
    List(Listing),
    /// Post events again: those that were given up, or all after a delivery.
    #[command(after_help = "\
Needs `webhooks.outbox`. The service posts them, in their order and with their ids, so that a
receiver can tell what it has already.

Examples:
  svc webhooks replay
  svc webhooks replay 2 --since 018f3a7e-7c3e-7d1c-a3f0-0123456789ab")]
    Replay(ReplayPosts),
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

impl Webhooks {
    /// Whether one JSON document is wanted.
    pub(crate) fn is_json(&self) -> bool {
        match self {
            Self::List(options) => options.json,
            Self::Replay(options) => options.json,
            Self::Test(options) => options.json,
        }
    }
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

#[derive(Debug, Args)]
pub(crate) struct ReplayPosts {
    /// Place in `webhooks.urls`, from 1, or the URL as it stands there; without it all.
    #[arg(value_name = "URL")]
    pub(crate) target: Option<String>,
    /// Post everything again that came after this delivery.
    #[arg(long, value_name = "DELIVERY")]
    pub(crate) since: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `svc webhooks …`.
pub(crate) fn run(call: &Call, command: &Webhooks) -> Result<Exit, End> {
    match command {
        Webhooks::List(options) => list(call, options),
        Webhooks::Replay(options) => replay(call, options),
        Webhooks::Test(options) => test(call, options),
    }
}

fn list(call: &Call, options: &Listing) -> Result<Exit, End> {
    let report = look(call, async |app| Ok(Box::pin(app.webhooks().report()).await?))?;
    if options.json {
        call.output.json(&report)?;
        return Ok(Exit::Done);
    }
    let mut rows: Vec<[Cell; 5]> = Vec::new();
    for target in &report.targets {
        let name = format!("{} {}", target.entry, target.target);
        rows.extend(target.posts.iter().map(|one| {
            [
                name.as_str().into(),
                one.at.to_string().into(),
                one.event.as_str().into(),
                standing(one).into(),
                one.delivery.as_str().into(),
            ]
        }));
        if target.waiting > 0 || target.failed > 0 {
            let (waiting, failed) = (target.waiting, target.failed);
            call.output.note(&format!("{name}: {waiting} waiting, {failed} given up"));
        }
    }
    if report.targets.is_empty() {
        call.output.note("`webhooks.urls` has no target.");
    } else if !report.outbox {
        call.output.note(
            "Posts are not recorded: `webhooks.outbox` is off. What became of the last ones is \
             on the page Notifications.",
        );
    } else if rows.is_empty() {
        call.output.note("Nothing was posted yet.");
    } else {
        call.output.table(["TARGET", "AT", "EVENT", "STATE", "DELIVERY"], &rows)?;
    }
    Ok(Exit::Done)
}

fn standing(post: &WebhookPost) -> String {
    let reason = post.reason.as_deref();
    match (post.state, post.next_at) {
        (PostState::Delivered, _) => {
            format!("delivered ({})", post.status.unwrap_or_default())
        }
        (PostState::Waiting, None) => "waiting".to_owned(),
        (PostState::Waiting, Some(next)) => {
            format!("waiting until {next}: {}", reason.unwrap_or_default())
        }
        (PostState::Failed, _) => format!("given up: {}", reason.unwrap_or_default()),
    }
}

fn replay(call: &Call, options: &ReplayPosts) -> Result<Exit, End> {
    let (target, since) = (options.target.as_deref(), options.since.as_deref());
    let replayed =
        act(call, async |app| Ok(Box::pin(app.webhooks().replay(target, since)).await?))?;
    if options.json {
        call.output.json(&ReplayedWebhooks { replayed })?;
    } else {
        call.output.note(&match replayed {
            0 => "Nothing is to be posted again.".to_owned(),
            1 => "One event is posted again.".to_owned(),
            count => format!("{count} posts are made again."),
        });
    }
    Ok(Exit::Done)
}

fn test(call: &Call, options: &TestWebhooks) -> Result<Exit, End> {
    let (sent, is_enabled, is_signed) = look(call, async |app| {
        let webhooks = app.webhooks();
        let sent = webhooks.test(options.target.as_deref()).await?;
        Ok((sent, webhooks.is_enabled(), webhooks.is_signed()))
    })?;
    let exit = match sent.iter().all(TestedWebhook::is_accepted) {
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

fn row(sent: &TestedWebhook) -> [Cell; 3] {
    let result = match (sent.status, &sent.error) {
        (Some(status), _) if sent.is_accepted() => format!("accepted ({status})"),
        (Some(status), _) => format!("refused: it answered {status}"),
        (None, error) => format!("not delivered: {}", error.as_deref().unwrap_or("unknown")),
    };
    [sent.entry.to_string().into(), sent.target.as_str().into(), result.into()]
}
