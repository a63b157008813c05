//! Commands that change something: start, stop, resume, forget.

use crate::cli::call::Call;
use crate::cli::exit_code::Exit;
use crate::cli::failure::{End, Failure};
use crate::cli::launches;
use crate::cli::options::Named;
use crate::cli::work::{act, end};
use clap::Args;
use serde::Serialize;
use serde_json::json;
use std::time::Duration;
use svc_app::App;
use svc_shared::api::instances::{
    Instance, PatchInstance, ResumeRequest, SpawnRequest, SpawnResult,
};
use svc_shared::api::planned_launches::PlanLaunch;
use svc_shared::status::{BridgeStatus, NotCreated};
use tokio::time::Instant;

#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// Instance id, project name, or unique beginning of an id.
    pub(crate) instance: String,
    /// Trust the directory first, if it is not trusted.
    #[arg(long)]
    pub(crate) trust: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Start {
    /// Name of the project.
    pub(crate) project: String,
    /// `standard`, `pty` or `hosted`.
    /// That is Server Mode, an Interactive Session or a Direct Session.
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<String>,
    /// Where its sessions work: `same-dir`, `worktree` or `session`.
    #[arg(long, value_name = "MODE")]
    pub(crate) spawn_mode: Option<String>,
    /// Permission mode handed to the agent, or `inherit`.
    #[arg(long, value_name = "MODE")]
    pub(crate) permission_mode: Option<String>,
    /// Session name shown by the remote client; without it the project name.
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) name: Option<String>,
    /// `default`, `on` or `off`; checked, has no effect.
    #[arg(long, value_name = "MODE")]
    pub(crate) sandbox: Option<String>,
    /// When it is started again by itself: `never`, `on-crash` or `always`.
    #[arg(long, value_name = "POLICY")]
    pub(crate) restart: Option<String>,
    /// What happens after a reboot: `offer`, `resume` or `never`.
    #[arg(long, value_name = "CHOICE")]
    pub(crate) after_reboot: Option<String>,
    /// After a plan limit: `wait` for a person, or `continue` once after the reset.
    #[arg(long, value_name = "CHOICE")]
    pub(crate) on_limit: Option<String>,
    /// If a plan limit is known, record the launch; it starts once after the reset.
    #[arg(long)]
    pub(crate) wait_for_limit: bool,
    /// Trust the directory first, if it is not trusted.
    #[arg(long)]
    pub(crate) trust: bool,
    /// Wait until it runs or has ended, by default as long as a start may take.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1)]
    pub(crate) wait: Option<Option<u32>>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How long a start waits for its outcome when nobody says (`http-api` §2.6).
const PATIENCE: Duration = Duration::from_secs(15);

/// How often a start by another process is checked. It notifies only its server.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// `svc start`.
pub(crate) fn start(call: &Call, start: &Start) -> Result<Exit, End> {
    if start.wait_for_limit {
        let wanted = PlanLaunch { session: Some(request(start)), job: None };
        let planned = act(call, async |app| Ok(app.launch_plans().plan(wanted).await?))?;
        if let Some(planned) = planned {
            return launches::report(call, start.json, &planned);
        }
        call.output.note("No plan limit is known: it starts now.");
    }
    let result = act(call, async |app| {
        let patience = match start.wait {
            None => PATIENCE,
            Some(None) => app.settings().claude.startup_grace,
            Some(Some(seconds)) => Duration::from_secs(seconds.into()),
        };
        let until = Instant::now() + patience;
        let mut result = app.bridges().spawn(request(start), patience).await?;
        if start.wait.is_some() {
            result.instance = settled(app, result.instance, until).await?;
        }
        Ok(result)
    })?;
    for warning in &result.outcome.warnings {
        call.output.note(&format!("warning: {warning}"));
    }
    let failure = why_not(&result.instance, start.wait.is_some());
    report(call, start.json, &result, failure, &started(&result))
}

fn request(start: &Start) -> SpawnRequest {
    SpawnRequest {
        project: start.project.clone(),
        mode: start.mode.clone(),
        spawn_mode: start.spawn_mode.clone(),
        permission_mode: start.permission_mode.clone(),
        name: start.name.clone(),
        sandbox: start.sandbox.clone(),
        restart: start.restart.clone(),
        after_reboot: start.after_reboot.clone(),
        on_limit: start.on_limit.clone(),
        trust: start.trust.then_some(true),
        ..SpawnRequest::default()
    }
}

/// The record once its start has an outcome, or as it is at the deadline.
async fn settled(app: &App, mut instance: Instance, until: Instant) -> Result<Instance, End> {
    while instance.status.is(&BridgeStatus::Starting) && Instant::now() < until {
        tokio::time::sleep_until(until.min(Instant::now() + LOOK_AGAIN)).await;
        let id = instance.instance_id.clone();
        let all = app.instances().reconciled().await?;
        match all.into_iter().find(|one| one.instance_id == id) {
            Some(now) => instance = now,
            None => break,
        }
    }
    Ok(instance)
}

fn started(result: &SpawnResult) -> String {
    let instance = &result.instance;
    let (id, project) = (instance.instance_id.short(), &instance.project);
    if result.outcome.created {
        let mode = &instance.resume_mode;
        return format!("started {id} ({project}) mode={mode} status={}", instance.status);
    }
    let reason = result.outcome.reason.as_deref().unwrap_or("nothing had to be started");
    format!("already running: {id} ({project}) status={} — {reason}", instance.status)
}

/// Why the start of this record did not lead where it should; `None` when it did.
fn why_not(instance: &Instance, must_run: bool) -> Option<Failure> {
    let reason = instance.exit_reason.as_ref().map(ToString::to_string);
    let because = reason.as_deref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    let (what, fails) = match instance.status.known() {
        Some(BridgeStatus::Running) => return None,
        Some(BridgeStatus::Error) => (format!("could not be started{because}"), true),
        Some(BridgeStatus::Crashed) => (format!("crashed{because}"), true),
        Some(BridgeStatus::Stopped | BridgeStatus::Stopping) => {
            (format!("has ended{because}"), must_run)
        }
        Some(BridgeStatus::Starting) => {
            let what = "is still starting; `svc status` and `svc logs` show its progress";
            (what.to_owned(), must_run)
        }
        None => (format!("is {}", instance.status), must_run),
    };
    if !fails {
        return None;
    }
    let line = format!("bridge {} of {} {what}", instance.instance_id.short(), instance.project);
    let code = reason.unwrap_or_else(|| "not_running".to_owned());
    let failure = Failure::new(Exit::Failed, code, line);
    let detail = instance.error_detail.as_deref().map(str::trim).filter(|text| !text.is_empty());
    Some(match detail {
        Some(detail) => detail.lines().fold(failure.line("its last words:"), |failure, words| {
            failure.line(format!("  {words}"))
        }),
        None => failure,
    })
}

/// Text and exit code, or the one document, of a start.
fn report(
    call: &Call,
    json: bool,
    result: &SpawnResult,
    failure: Option<Failure>,
    text: &str,
) -> Result<Exit, End> {
    if !json {
        call.output.line(text)?;
    }
    match failure {
        // The record exists all the same; whoever reads the document needs its id.
        Some(failure) => {
            let record = serde_json::to_value(Started::of(result)).map_err(End::of_machine)?;
            Err(failure.beside("instance", record).into())
        }
        None if json => {
            call.output.json(&Started::of(result))?;
            Ok(Exit::Done)
        }
        None => Ok(Exit::Done),
    }
}

/// The record, and what the request did.
#[derive(Serialize)]
struct Started<'a> {
    #[serde(flatten)]
    instance: &'a Instance,
    created: bool,
    reason: Option<&'a str>,
    warnings: &'a [String],
}

impl<'a> Started<'a> {
    fn of(result: &'a SpawnResult) -> Self {
        Self {
            instance: &result.instance,
            created: result.outcome.created,
            reason: result.outcome.reason.as_deref(),
            warnings: &result.outcome.warnings,
        }
    }
}

/// `svc stop`.
pub(crate) fn stop(call: &Call, named: &Named) -> Result<Exit, End> {
    let instance = end(call, async |app| Ok(app.bridges().stop(&named.instance).await?))?;
    if named.json {
        call.output.json(&instance)?;
    } else {
        let (id, project) = (instance.instance_id.short(), &instance.project);
        call.output.line(&format!("stopped {id} ({project}) status={}", instance.status))?;
    }
    Ok(Exit::Done)
}

#[derive(Debug, Args)]
pub(crate) struct RestartPolicy {
    /// Instance id, project name, or unique beginning of an id.
    pub(crate) instance: String,
    /// `never`, `on-crash`, `always`, or `inherit` for what the configuration says.
    #[arg(required_unless_present = "after_reboot")]
    pub(crate) policy: Option<String>,
    /// What happens after a reboot: `offer`, `resume`, `never` or `inherit`.
    #[arg(long, value_name = "CHOICE")]
    pub(crate) after_reboot: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `svc restart-policy`.
pub(crate) fn restart_policy(call: &Call, wanted: &RestartPolicy) -> Result<Exit, End> {
    let own = |word: &String| (word != "inherit").then(|| word.clone());
    let request = PatchInstance {
        restart: wanted.policy.as_ref().map(own),
        after_reboot: wanted.after_reboot.as_ref().map(own),
        ..PatchInstance::default()
    };
    let instance =
        act(call, async |app| Ok(app.bridges().change(&wanted.instance, request).await?))?;
    if wanted.json {
        call.output.json(&instance)?;
    } else {
        let (id, project) = (instance.instance_id.short(), &instance.project);
        let after_reboot = wanted.after_reboot.as_ref();
        let after_reboot = after_reboot.map(|word| format!(" after_reboot={word}"));
        call.output.line(&format!(
            "{id} ({project}) restart={}{}",
            instance.restart.policy,
            after_reboot.unwrap_or_default()
        ))?;
    }
    Ok(Exit::Done)
}

#[derive(Debug, Args)]
pub(crate) struct AfterLimit {
    /// Instance id, project name, or unique beginning of an id.
    pub(crate) instance: String,
    /// `wait`, `continue`, or `inherit` for what the configuration says.
    pub(crate) choice: String,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `svc on-limit`.
pub(crate) fn on_limit(call: &Call, wanted: &AfterLimit) -> Result<Exit, End> {
    let choice = Some(wanted.choice.clone()).filter(|word| word != "inherit");
    let request = PatchInstance { on_limit: Some(choice), ..PatchInstance::default() };
    let instance =
        act(call, async |app| Ok(app.bridges().change(&wanted.instance, request).await?))?;
    if wanted.json {
        call.output.json(&instance)?;
    } else {
        let (id, project) = (instance.instance_id.short(), &instance.project);
        call.output.line(&format!("{id} ({project}) on_limit={}", instance.on_limit))?;
    }
    Ok(Exit::Done)
}

/// `svc heal`.
pub(crate) fn heal(call: &Call, named: &Named) -> Result<Exit, End> {
    let result = act(call, async |app| Ok(app.bridges().heal(&named.instance, PATIENCE).await?))?;
    if named.json {
        call.output.json(&result)?;
        return Ok(Exit::Done);
    }
    let (id, project) = (result.instance.instance_id.short(), &result.instance.project);
    call.output.line(&format!("{id} ({project}) was restarted: {}", result.instance.status))?;
    Ok(Exit::Done)
}

/// `svc forget`.
pub(crate) fn forget(call: &Call, named: &Named) -> Result<Exit, End> {
    let forgotten = act(call, async |app| Ok(app.bridges().forget(&named.instance).await?))?;
    if named.json {
        call.output.json(&forgotten)?;
    } else {
        let short: String = forgotten.id.chars().take(8).collect();
        call.output.line(&format!("forgot {short}"))?;
    }
    Ok(Exit::Done)
}

/// `svc resume`.
pub(crate) fn resume(call: &Call, resume: &Resume) -> Result<Exit, End> {
    let request = ResumeRequest { trust: resume.trust.then_some(true) };
    let result = act(call, async |app| {
        Ok(app.bridges().resume(&resume.instance, request, PATIENCE).await?)
    })?;
    for warning in &result.outcome.warnings {
        call.output.note(&format!("warning: {warning}"));
    }
    let failure = not_resumed(&result);
    if !resume.json {
        if failure.is_none() || result.outcome.created {
            call.output.line(&resumed(&result))?;
        }
        return failure.map_or(Ok(Exit::Done), |failure| Err(failure.into()));
    }
    let document = json!({
        "resumed": result.outcome.created,
        "id": result.instance.instance_id,
        "reason": result.outcome.reason,
        "session": result.instance.session_ref,
    });
    let Some(failure) = failure else {
        call.output.json(&document)?;
        return Ok(Exit::Done);
    };
    let members = document.as_object().cloned().unwrap_or_default();
    let failure =
        members.into_iter().fold(failure, |failure, (name, value)| failure.beside(&name, value));
    Err(failure.into())
}

fn resumed(result: &SpawnResult) -> String {
    let instance = &result.instance;
    let (id, project, status) = (instance.instance_id.short(), &instance.project, &instance.status);
    if result.outcome.created {
        return format!("resumed {id} ({project}) mode={} status={status}", instance.resume_mode);
    }
    let reason = result.outcome.reason.as_deref().unwrap_or("nothing had to be resumed");
    format!("already running: {id} ({project}) status={status} — {reason}")
}

/// Why the target was not resumed. A live target counts as resumed.
/// Another bridge in its way does not.
fn not_resumed(result: &SpawnResult) -> Option<Failure> {
    if result.outcome.created {
        return why_not(&result.instance, false);
    }
    let code = result.outcome.reason_code.as_ref();
    if code.is_some_and(|code| code.is(&NotCreated::AlreadyRunning)) {
        return None;
    }
    let word = code.map_or_else(|| "declined".to_owned(), ToString::to_string);
    let reason = result.outcome.reason.clone().unwrap_or_else(|| "nothing was resumed".to_owned());
    Some(Failure::new(Exit::Failed, word, reason))
}
