//! Calls of the tools.
//!
//! Each opens the use-cases, calls one of them, and tells the result.

use crate::options::{Options, Purpose};
use crate::summary::{escaped, of_instance, of_job, of_session};
use crate::tools::{Arguments, Tool};
use serde_json::{Value, json};
use std::time::Duration;
use svc_app::{App, AppError};
use svc_domain::log_escape::{escape, quoted};
use svc_domain::redact::redact_text;
use svc_shared::api::instances::{Instance, ResumeRequest, SpawnRequest, SpawnResult};
use svc_shared::api::jobs::BackgroundJob;
use svc_shared::api::sessions::WorkingSession;
use svc_shared::error::ErrorCode;
use svc_shared::status::BridgeStatus;
use tokio_util::sync::CancellationToken;

/// How long a start waits for its outcome, as `svc start` does.
const PATIENCE: Duration = Duration::from_secs(15);

/// Why a call has no result; fit to be shown.
enum Failure {
    App(AppError),
    /// A bridge was recorded and did not come up.
    NotStarted(String),
}

impl From<AppError> for Failure {
    fn from(error: AppError) -> Self {
        Self::App(error)
    }
}

/// Calls a tool: its result, or what the caller is told instead.
pub(crate) async fn call(
    options: &Options,
    name: &str,
    arguments: Option<&Value>,
    cancelled: &CancellationToken,
) -> Result<Value, String> {
    let Some(tool) = Tool::named(name, options.allow_writes) else {
        return Err(format!("unknown tool: {}", quoted(name)));
    };
    let told = match tool.check(arguments) {
        Err(why) => Err(why),
        Ok(arguments) => match options.open.open(tool.purpose()).await {
            Err(why) => Err(why),
            Ok(app) => {
                let done = tokio::select! {
                    done = perform(tool, &app, &arguments) => done.map_err(|why| reason(tool, why)),
                    () = cancelled.cancelled() => Err("cancelled".to_owned()),
                };
                // What has begun is brought to a point that others can go on from.
                app.close().await;
                done
            }
        },
    };
    told.map(escaped).map_err(|why| failed(tool.name(), &why))
}

/// What the caller of a tool is told when it fails.
pub(crate) fn failed(name: &str, why: &str) -> String {
    let redacted = redact_text(why);
    format!("{name} failed: {}", escape(&redacted))
}

fn reason(tool: Tool, failure: Failure) -> String {
    let error = match failure {
        Failure::NotStarted(why) => return why,
        Failure::App(error) => error,
    };
    if let Some(cause) = &error.cause {
        tracing::warn!("{} failed: {}: {cause}", tool.name(), error.message);
    }
    let hint = if error.code == ErrorCode::NotTrusted && tool == Tool::SpawnSession {
        "; after a person agreed, pass `trust`: true"
    } else {
        ""
    };
    format!("{}{hint}", error.message)
}

async fn perform(tool: Tool, app: &App, arguments: &Arguments) -> Result<Value, Failure> {
    let id = arguments.text("id").unwrap_or_default();
    match tool {
        Tool::ListSessions => list(app).await,
        Tool::SessionStatus => status(app, id.trim()).await,
        Tool::SpawnSession => spawn(app, arguments).await,
        Tool::StopSession => stop(app, id.trim()).await,
        Tool::ResumeSession => resume(app, id.trim()).await,
    }
}

/// Everything that is known of sessions at one moment.
struct Known {
    instances: Vec<Instance>,
    jobs: Vec<BackgroundJob>,
    sessions: Vec<WorkingSession>,
    /// What is missing, and why.
    warnings: Vec<String>,
}

impl Known {
    async fn read(app: &App) -> Result<Self, Failure> {
        let instances = app.instances().reconciled().await?;
        let mut warnings = Vec::new();
        let mut told = |what: &str, error: &AppError| {
            let why = redact_text(&error.message);
            warnings.push(format!("{what} are not listed: {why}"));
        };
        let jobs = app.jobs().list().await.unwrap_or_else(|error| {
            told("background jobs", &error);
            Vec::new()
        });
        let sessions = app.sessions().listed().await.unwrap_or_else(|error| {
            told("working sessions", &error);
            Vec::new()
        });
        Ok(Self { instances, jobs, sessions, warnings })
    }

    fn summary_of(&self, session: &WorkingSession) -> Value {
        let owner = session
            .parent_instance
            .as_ref()
            .and_then(|id| self.instances.iter().find(|instance| instance.instance_id == *id));
        of_session(session, owner)
    }

    /// Working sessions that stand in no other list.
    fn other_sessions(&self) -> impl Iterator<Item = &WorkingSession> {
        self.sessions.iter().filter(|session| {
            let pid = Some(session.pid);
            let is_job = self.jobs.iter().any(|job| job.worker_pid == pid);
            let is_hosted =
                self.instances.iter().any(|one| one.process_id.is_some() && one.agent_pid == pid);
            !is_job && !is_hosted
        })
    }
}

async fn list(app: &App) -> Result<Value, Failure> {
    let known = Known::read(app).await?;
    let mut sessions: Vec<Value> = known.instances.iter().map(of_instance).collect();
    sessions.extend(known.jobs.iter().map(of_job));
    sessions.extend(known.other_sessions().map(|session| known.summary_of(session)));
    let mut result = json!({ "count": sessions.len(), "sessions": sessions });
    if let (Some(members), false) = (result.as_object_mut(), known.warnings.is_empty()) {
        members.insert("warnings".to_owned(), json!(known.warnings));
    }
    Ok(result)
}

async fn status(app: &App, id: &str) -> Result<Value, Failure> {
    // Afterwards the rows are found as their processes are now.
    app.instances().reconciled().await?;
    match app.instances().get(id).await {
        Ok(instance) => return Ok(found(&of_instance(&instance))),
        Err(error) if error.code == ErrorCode::Ambiguous => {
            return Ok(json!({ "found": false, "id": id, "ambiguous": error.candidates }));
        }
        Err(error) if error.code == ErrorCode::UnknownInstance => {}
        Err(error) => return Err(error.into()),
    }
    let known = Known::read(app).await?;
    if let Some(job) = known.jobs.iter().find(|job| job.id.as_str() == id) {
        return Ok(found(&of_job(job)));
    }
    // The raw id of a session never leaves; who knows it may ask with it.
    let reference = app.sessions().reference(id);
    let session = known.sessions.iter().find(|session| {
        session.session_ref.as_ref().is_some_and(|own| {
            own.as_str() == id || reference.as_ref().is_some_and(|asked| asked == own)
        })
    });
    Ok(match session {
        Some(session) => found(&known.summary_of(session)),
        None => json!({ "found": false, "id": id }),
    })
}

fn found(session: &Value) -> Value {
    json!({ "found": true, "session": session })
}

async fn spawn(app: &App, arguments: &Arguments) -> Result<Value, Failure> {
    let request = SpawnRequest {
        project: arguments.text("project").unwrap_or_default(),
        spawn_mode: arguments.text("spawn_mode"),
        permission_mode: arguments.text("permission_mode"),
        resume_mode: arguments.text("resume_mode"),
        name: arguments.text("custom_name"),
        sandbox: arguments.text("sandbox"),
        trust: arguments.is_on("trust").then_some(true),
        ..SpawnRequest::default()
    };
    let result = app.bridges().spawn(request, PATIENCE).await?;
    came_up(&result)?;
    Ok(json!({
        "created": result.outcome.created,
        "reason": result.outcome.reason,
        "warnings": result.outcome.warnings,
        "session": of_instance(&result.instance),
    }))
}

/// A bridge that ended at once is a failure of the call, and its record says more.
fn came_up(result: &SpawnResult) -> Result<(), Failure> {
    let instance = &result.instance;
    let what = match instance.status.known() {
        Some(BridgeStatus::Error) => "could not be started",
        Some(BridgeStatus::Crashed) => "crashed",
        Some(
            BridgeStatus::Starting
            | BridgeStatus::Running
            | BridgeStatus::Stopping
            | BridgeStatus::Stopped,
        )
        | None => return Ok(()),
    };
    let because = instance.exit_reason.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    Err(Failure::NotStarted(format!(
        "bridge {id} of {project} {what}{because}; `svc logs {id}` shows its last words",
        id = instance.instance_id.short(),
        project = instance.project,
    )))
}

async fn stop(app: &App, id: &str) -> Result<Value, Failure> {
    match app.bridges().stop(id).await {
        Ok(instance) => Ok(json!({ "stopped": true, "session": of_instance(&instance) })),
        Err(error) => not_one("stopped", id, error),
    }
}

async fn resume(app: &App, id: &str) -> Result<Value, Failure> {
    let result = match app.bridges().resume(id, ResumeRequest::default(), PATIENCE).await {
        Ok(result) => result,
        Err(error) => return not_one("resumed", id, error),
    };
    if result.outcome.created {
        came_up(&result)?;
    }
    let mut document = json!({
        "resumed": result.outcome.created,
        "id": result.instance.instance_id,
        "warnings": result.outcome.warnings,
        "session": of_instance(&result.instance),
    });
    if let (Some(members), Some(reason)) = (document.as_object_mut(), &result.outcome.reason) {
        members.insert("reason".to_owned(), json!(reason));
    }
    Ok(document)
}

/// No session or several match, which is a result; everything else is a failure.
fn not_one(done: &str, id: &str, error: AppError) -> Result<Value, Failure> {
    if error.code == ErrorCode::Ambiguous {
        return Ok(json!({ done: false, "id": id, "ambiguous": error.candidates }));
    }
    if error.code == ErrorCode::UnknownInstance {
        return Ok(json!({ done: false, "id": id }));
    }
    Err(error.into())
}

/// What reading a resource needs.
pub(crate) async fn with_reader<T>(
    options: &Options,
    work: impl AsyncFnOnce(&App) -> Result<T, AppError>,
) -> Result<T, String> {
    let app = options.open.open(Purpose::Look).await?;
    let done = work(&app).await;
    app.close().await;
    done.map_err(|error| redact_text(&error.message))
}
