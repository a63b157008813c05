//! `svc logs`: the redacted log of a bridge, once or followed.

use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::{End, Failure};
use crate::cli::output::Output;
use crate::cli::work::look;
use clap::Args;
use serde_json::json;
use std::collections::VecDeque;
use svc_app::{App, AppError, LogItem, LogQuery, LogStart};
use svc_shared::Timestamp;
use svc_shared::error::ErrorCode;
use svc_shared::stream::{LogFrame, MarkKind};

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// Instance id, project name, or unique beginning of an id.
    pub(crate) instance: String,
    /// Print new lines until the session ends or the command is interrupted.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Begin with the last LINES lines; without it with the last 64 KiB.
    #[arg(short = 'n', long, value_name = "LINES")]
    pub(crate) lines: Option<usize>,
    /// Print one JSON document per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Bytes from the end when no number of lines is given.
const TAIL: u64 = 64 * 1024;

/// Bytes that are read at once on the way back to a number of lines.
const PAGE: u64 = 1024 * 1024;

/// Prints the end of the log and, if wanted, what is added to it.
pub(crate) fn logs(call: &Call, options: &Logs) -> Result<Exit, End> {
    let done = look(call, async |app| {
        let cursor = print_end(app, call.output, options).await?;
        if options.follow { follow(app, call.output, options, cursor).await } else { Ok(()) }
    });
    match done {
        Ok(()) => Ok(Exit::Done),
        // A usual way to end it.
        Err(End::Signal(_)) if options.follow => Ok(Exit::Done),
        Err(end) => Err(end),
    }
}

/// Prints the last lines; returns where to go on.
async fn print_end(app: &App, output: Output, options: &Logs) -> Result<String, End> {
    let reference = &options.instance;
    let tail = if options.lines.is_some() { PAGE } else { TAIL };
    let query = LogQuery { tail, cursor: None, before: None };
    let page = app.logs().page(reference, query).await.map_err(unreadable)?;
    if page.lines.is_empty() && page.output.is_empty() {
        check_for_log(app, options).await?;
    }
    let mut lines = VecDeque::from(page.lines);
    let wanted = options.lines.map(|wanted| match options.follow {
        true => wanted,
        false => wanted.saturating_sub(page.output.len()),
    });
    if let Some(wanted) = wanted {
        let mut before = page.first;
        while lines.len() < wanted
            && let Some(step) = before
        {
            let query = LogQuery { tail: PAGE, cursor: None, before: Some(step) };
            let earlier = app.logs().page(reference, query).await?;
            for line in earlier.lines.into_iter().rev() {
                lines.push_front(line);
            }
            before = earlier.first;
        }
        let surplus = lines.len().saturating_sub(wanted);
        lines.drain(..surplus);
    }
    for line in &lines {
        print(output, options.json, Source::Log, line)?;
    }
    // A follower is told of it at the end.
    if !options.follow {
        for line in &page.output {
            print(output, options.json, Source::Output, line)?;
        }
    }
    Ok(page.cursor)
}

/// A log that cannot be read is no failed attempt: nothing can be printed as asked.
fn unreadable(error: AppError) -> End {
    let is_file = error.code == ErrorCode::Busy && error.cause.is_some();
    let mut failure = Failure::from(error);
    if is_file {
        failure.exit = Exit::Refused;
    }
    failure.into()
}

/// Tells a bridge that said nothing yet from one whose log is not there at all.
async fn check_for_log(app: &App, options: &Logs) -> Result<(), End> {
    app.instances().reconciled().await?;
    let instance = app.instances().get(&options.instance).await?;
    if instance.has_log || (options.follow && instance.is_live()) {
        return Ok(());
    }
    let words = format!(
        "bridge {} of {} has no log on disk: none was written, or it has been removed by age or \
         size (`logs.retention_…`)",
        instance.instance_id.short(),
        instance.project
    );
    Err(Failure::new(Exit::Refused, "no_log", words).into())
}

async fn follow(app: &App, output: Output, options: &Logs, cursor: String) -> Result<(), End> {
    let mut log = app.logs().follow(&options.instance, LogStart::Cursor(cursor)).await?;
    loop {
        match log.next().await {
            Some(LogItem::Frame(LogFrame::Line { text, cursor: _ })) => {
                print(output, options.json, Source::Log, &text)?;
            }
            Some(LogItem::Frame(LogFrame::Output { lines, generation: _ })) => {
                for line in &lines {
                    print(output, options.json, Source::Output, line)?;
                }
            }
            Some(LogItem::Frame(LogFrame::Mark { kind, generation, at })) => {
                output.note(&remark(kind, generation, at));
                if kind == MarkKind::Ended {
                    return Ok(());
                }
            }
            Some(LogItem::Closed(_, reason)) => {
                let words = format!("the log cannot be followed any longer: {reason}");
                return Err(Failure::new(Exit::Failed, reason.to_string(), words).into());
            }
            None => return Ok(()),
        }
    }
}

fn remark(kind: MarkKind, generation: u32, at: Option<Timestamp>) -> String {
    match kind {
        MarkKind::Resumed => format!("resumed: generation {generation} begins here"),
        MarkKind::Rotated => "the log was rotated; it continues in the new file".to_owned(),
        MarkKind::Gap => {
            "lines were left out: they came faster than they could be shown".to_owned()
        }
        MarkKind::Ended => match at {
            Some(at) => format!("the session ended at {at}; `svc resume` continues it"),
            None => "the session has ended; `svc resume` continues it".to_owned(),
        },
    }
}

/// Where a line is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The log of the agent.
    Log,
    /// Standard output or standard error of its process.
    Output,
}

fn print(output: Output, json: bool, source: Source, line: &str) -> Result<(), End> {
    match (json, source) {
        (true, Source::Log) => output.json_line(&json!({ "line": line }))?,
        (true, Source::Output) => output.json_line(&json!({ "line": line, "source": "output" }))?,
        (false, Source::Log) => output.log_line(line)?,
        (false, Source::Output) => output.log_line(&format!("[output] {line}"))?,
    }
    Ok(())
}
