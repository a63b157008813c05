//! `svc jobs …`: background jobs of the agent.

use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::{End, Failure};
use crate::cli::launches;
use crate::cli::options::Listing;
use crate::cli::output::{Cell, Tone};
use crate::cli::work::{act, end, look};
use clap::{Args, Subcommand};
use std::io::{IsTerminal as _, Read as _};
use svc_shared::api::instances::ResumeRequest;
use svc_shared::api::jobs::{BackgroundJob, DispatchRequest, PROMPT_BYTES};
use svc_shared::api::planned_launches::PlanLaunch;

#[derive(Debug, Subcommand)]
pub(crate) enum Jobs {
    /// List the jobs, latest change first.
    #[command(after_help = "\
States: working, blocked (waits for you), done, failed, stopped, lost (no process any more).

Examples:
  svc jobs list
  svc jobs list --json")]
    List(Listing),
    /// Start a job in a project; answers when the agent has accepted it.
    #[command(after_help = "\
Examples:
  svc jobs start api \"update the changelog\"
  svc jobs start api --model opus --permission-mode plan -- \"-v is broken, find out why\"
  svc jobs start api - < prompt.txt
  svc jobs start api --rc-name nightly      prompt it from the remote client
  svc jobs start api --trust \"fix it\"      trust the directory first")]
    Start(StartJob),
    /// Stop a job, so that its remote session is deregistered, and remove it.
    #[command(after_help = "\
The process is interrupted twice at most and never killed; one that is still live after 20
seconds is an error.

Examples:
  svc jobs stop 450f4654
  svc jobs stop 450f4654 --json")]
    Stop(NamedJob),
    /// Start a new job with the transcript of an ended one.
    #[command(after_help = "Examples:\n  svc jobs resume 450f4654")]
    Resume(ResumeJob),
}

#[derive(Debug, Args)]
pub(crate) struct NamedJob {
    /// Job id: 8 lower-case hexadecimal digits.
    pub(crate) job: String,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeJob {
    /// Job id: 8 lower-case hexadecimal digits.
    pub(crate) job: String,
    /// Trust the directory first, if it is not trusted.
    #[arg(long)]
    pub(crate) trust: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StartJob {
    /// Name of the project.
    pub(crate) project: String,
    /// The prompt, or `-` to read it from standard input. Needed without --rc-name.
    pub(crate) prompt: Option<String>,
    /// Register the job with the remote service under this name.
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) rc_name: Option<String>,
    /// Model to use.
    #[arg(long, value_name = "MODEL", allow_hyphen_values = true)]
    pub(crate) model: Option<String>,
    /// Permission mode handed to the agent, or `inherit`.
    #[arg(long, value_name = "MODE")]
    pub(crate) permission_mode: Option<String>,
    /// If a plan limit is known, record the job; it starts once after the reset.
    #[arg(long)]
    pub(crate) wait_for_limit: bool,
    /// Trust the directory first, if it is not trusted.
    #[arg(long)]
    pub(crate) trust: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Characters of what a job is about, in the table.
const ABOUT_CHARS: usize = 60;

/// Runs one of the job commands.
pub(crate) fn run(call: &Call, command: &Jobs) -> Result<Exit, End> {
    match command {
        Jobs::List(listing) => list(call, listing),
        Jobs::Start(start) => begin(call, start),
        Jobs::Stop(named) => stop(call, named),
        Jobs::Resume(resume) => go_on(call, resume),
    }
}

fn list(call: &Call, listing: &Listing) -> Result<Exit, End> {
    let jobs = look(call, async |app| Ok(app.jobs().list().await?))?;
    if listing.json {
        call.output.json(&jobs)?;
        return Ok(Exit::Done);
    }
    if jobs.is_empty() {
        call.output.note("No background jobs found.");
        return Ok(Exit::Done);
    }
    let rows: Vec<[Cell; 5]> = jobs.iter().map(row).collect();
    call.output.table(["JOB", "PROJECT", "STATE", "UPDATED", "ABOUT"], &rows)?;
    Ok(Exit::Done)
}

fn row(job: &BackgroundJob) -> [Cell; 5] {
    let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    [
        job.id.as_str().into(),
        or_dash(job.project.as_deref().unwrap_or_default()).into(),
        Cell::toned(&or_dash(&job.state), tone(job)),
        or_dash(&job.updated_at).into(),
        or_dash(&about(job)).into(),
    ]
}

/// What the job waits for, else what it does, else its prompt. One short line.
fn about(job: &BackgroundJob) -> String {
    let texts = [
        job.needs.as_deref().unwrap_or_default(),
        job.result.as_deref().unwrap_or_default(),
        &job.detail,
        job.name.as_deref().unwrap_or_default(),
        &job.intent,
    ];
    let text = texts.into_iter().find(|text| !text.trim().is_empty()).unwrap_or_default();
    let line = text.trim().lines().next().unwrap_or_default();
    let mut short: String = line.chars().take(ABOUT_CHARS).collect();
    if short.len() < text.trim().len() {
        short.push('…');
    }
    short
}

fn tone(job: &BackgroundJob) -> Tone {
    match job.state.as_str() {
        "working" => Tone::Good,
        "blocked" => Tone::Attention,
        "failed" | "lost" => Tone::Bad,
        _ => Tone::Plain,
    }
}

fn begin(call: &Call, start: &StartJob) -> Result<Exit, End> {
    let prompt = match start.prompt.as_deref() {
        Some("-") => Some(from_input()?),
        other => other.map(str::to_owned),
    };
    let request = DispatchRequest {
        project: start.project.clone(),
        prompt,
        rc_name: start.rc_name.clone(),
        model: start.model.clone(),
        permission_mode: start.permission_mode.clone(),
        trust: start.trust.then_some(true),
    };
    if start.wait_for_limit {
        let wanted = PlanLaunch { session: None, job: Some(request.clone()) };
        let planned = act(call, async |app| Ok(app.launch_plans().plan(wanted).await?))?;
        if let Some(planned) = planned {
            return launches::report(call, start.json, &planned);
        }
        call.output.note("No plan limit is known: it starts now.");
    }
    let result = act(call, async |app| Ok(app.jobs().dispatch(request).await?))?;
    for warning in &result.warnings {
        call.output.note(&format!("warning: {warning}"));
    }
    if start.json {
        call.output.json(&result)?;
    } else {
        call.output.line(&format!("started {} ({})", result.id, start.project.trim()))?;
    }
    Ok(Exit::Done)
}

/// The prompt from standard input; one byte over the limit is enough to be refused.
fn from_input() -> Result<String, End> {
    let input = std::io::stdin();
    let refused = |line: String| Failure::new(Exit::Refused, "usage", line);
    if input.is_terminal() {
        let line = "the prompt is missing; pass it as an argument, or pipe it in";
        return Err(refused(line.to_owned()).into());
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(PROMPT_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    input.lock().take(limit).read_to_end(&mut bytes).map_err(End::of_machine)?;
    String::from_utf8(bytes).map_err(|_| {
        refused("the prompt on standard input is not valid UTF-8; convert it".to_owned()).into()
    })
}

fn stop(call: &Call, named: &NamedJob) -> Result<Exit, End> {
    let result = end(call, async |app| Ok(app.jobs().stop(&named.job).await?))?;
    if named.json {
        call.output.json(&result)?;
        return Ok(Exit::Done);
    }
    if let Some(detail) = &result.detail {
        call.output.note(detail);
    }
    let yes = |flag: bool| if flag { "yes" } else { "no" };
    call.output.line(&format!(
        "stopped {} settled={} removed={}",
        result.id,
        yes(result.settled),
        yes(result.removed)
    ))?;
    Ok(Exit::Done)
}

fn go_on(call: &Call, resume: &ResumeJob) -> Result<Exit, End> {
    let request = ResumeRequest { trust: resume.trust.then_some(true) };
    let result = act(call, async |app| Ok(app.jobs().resume(&resume.job, request).await?))?;
    if resume.json {
        call.output.json(&result)?;
    } else {
        call.output.line(&format!("resumed {} as {}", resume.job, result.id))?;
    }
    Ok(Exit::Done)
}
