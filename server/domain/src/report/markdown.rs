//! The report as Markdown.

use super::{memory, span};
use std::fmt::Write as _;
use svc_shared::Timestamp;
use svc_shared::internal::report::{EndReport, LastOutput};

/// The report as one text that reads well as it is and in an issue.
#[must_use]
pub fn markdown(report: &EndReport) -> String {
    let mut text = String::new();
    let _ = write_all(&mut text, report); // a String takes everything
    text
}

fn write_all(to: &mut String, report: &EndReport) -> std::fmt::Result {
    writeln!(to, "# Why `{}` stopped\n", code(&report.label))?;
    writeln!(to, "{}\n", line(&report.cause))?;
    facts(to, report)?;
    list(to, "Evidence", report.evidence.iter().map(|one| line(one)))?;
    let next = report.next.iter().map(|step| match &step.command {
        Some(command) => format!("{} `{}`", line(&step.says), code(command)),
        None => line(&step.says),
    });
    list(to, "What to do next", next)?;
    let timeline =
        report.timeline.iter().map(|event| format!("{}: {}", event.at, line(&event.says)));
    list(to, "Timeline", timeline)?;
    for output in &report.output {
        lines(to, output)?;
    }
    Ok(())
}

fn facts(to: &mut String, report: &EndReport) -> std::fmt::Result {
    let time = |at: Option<Timestamp>| at.map(|at| at.to_string());
    let lived = report.started_at.zip(report.ended_at);
    let lived = lived.map(|(from, till)| span(till.since(from).as_millis()));
    let rows = [
        ("Session", Some(format!("`{}`, {}", code(&report.id), kind(&report.kind)))),
        ("Project", report.project.as_deref().map(|name| format!("`{}`", code(name)))),
        ("Status", Some(format!("{}, generation {}", line(&report.status), report.generation))),
        ("Cause", report.reason.as_ref().map(|reason| format!("`{}`", code(&reason.to_string())))),
        ("Started", time(report.started_at)),
        ("Ended", time(report.ended_at)),
        ("Lived", lived),
        ("Exit code", report.exit_code.map(|code| code.to_string())),
        ("Signal", report.exit_signal.map(|signal| signal.to_string())),
        ("Out of memory", report.out_of_memory.then(|| "yes".to_owned())),
        ("Killed by svc", report.forced.then(|| "yes".to_owned())),
        (
            "Stop asked by",
            report.asked.as_ref().map(|asked| format!("`{}` at {}", code(&asked.by), asked.at)),
        ),
        (
            "Memory at the end",
            report.last_use.as_ref().map(|last| {
                format!("{}, at most {}", memory(last.rss_bytes), memory(last.peak_rss_bytes))
            }),
        ),
        (
            "Processor at the end",
            report.last_use.as_ref().map(|last| format!("{:.1} % of one core", last.cpu_percent)),
        ),
    ];
    for (name, value) in rows {
        if let Some(value) = value {
            writeln!(to, "- {name}: {value}")?;
        }
    }
    writeln!(to)
}

fn kind(kind: &str) -> &str {
    match kind {
        "server-mode" => "Server Mode bridge",
        "interactive" => "Interactive Session",
        "direct" => "Direct Session",
        "job" => "background job",
        other => other,
    }
}

fn list(to: &mut String, title: &str, rows: impl Iterator<Item = String>) -> std::fmt::Result {
    let rows: Vec<String> = rows.collect();
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(to, "## {title}\n")?;
    for row in rows {
        writeln!(to, "- {row}")?;
    }
    writeln!(to)
}

/// Indented by four: no line of the output can end the block.
fn lines(to: &mut String, output: &LastOutput) -> std::fmt::Result {
    let title = match output.source.as_str() {
        "screen" => "Last screen",
        "output" => "Last output",
        "log" => "End of the log",
        "result" => "Result",
        other => other,
    };
    writeln!(to, "## {title}\n")?;
    for line in &output.lines {
        let line = line.trim_end();
        match line.is_empty() {
            true => writeln!(to)?,
            false => writeln!(to, "    {line}")?,
        }
    }
    writeln!(to)
}

/// Text of one line.
fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text between backticks.
fn code(text: &str) -> String {
    line(text).replace('`', "'")
}
