//! Use-cases: start a Direct Session, and run an ended one again under its id.

use crate::bridges::circumstances::{disk_has_room, refuse};
use crate::bridges::options::Options;
use crate::hosted::pump::applied;
use crate::hosted::rows::Changed;
use crate::hosted::{HostedParts, HostedSessions, link};
use crate::projects::catalog::unknown_project;
use crate::tasks::blocking;
use crate::{AppError, Class};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use svc_agent::environment::with_launch_id;
use svc_domain::admission::{Obstacle, Program, Trust as Trusted, bypass_obstacle, trust_obstacle};
use svc_domain::approval_hook;
use svc_domain::argv::hosted_args;
use svc_domain::hosted::{Command, Fact, HostedSession, Refusal, State};
use svc_domain::identity::{LaunchId, Pid, ProcessIdentity};
use svc_domain::redact::redact_text;
use svc_hosted::client::{CallError, Client};
use svc_hosted::protocol::{Spawned, code};
use svc_projects::Project;
use svc_shared::api::instances::{Instance, Outcome, ResumeRequest, SpawnResult};
use svc_shared::error::ErrorCode;
use svc_shared::ids::InstanceId;
use svc_shared::status::{ExitReason, NotCreated, PermissionMode};

impl HostedParts {
    /// Judges a launch; tells whether trust is to be granted first.
    pub(crate) async fn admitted(
        self: &Arc<Self>,
        project: &Project,
        mode: PermissionMode,
        acknowledged: bool,
    ) -> Result<bool, AppError> {
        let (this, at) = (Arc::clone(self), project.clone());
        let found: Result<bool, Obstacle> = blocking(move || {
            let agent = &this.readiness.agent;
            if let Some(name) = &at.alias_of {
                return Err(Obstacle::Alias(name.clone()));
            }
            let allowed = this.config.project(&at.name).allow_bypass_permissions;
            let inherits = mode == PermissionMode::Inherit && agent.may_bypass(&at.path);
            let trust = agent.trust(&at.path, at.git_root.as_deref());
            let program = match agent.program() {
                Ok(_) => Program::Present,
                Err(error) => Program::Missing(error.to_string()),
            };
            let first = bypass_obstacle(mode, allowed, inherits)
                .or_else(|| trust_obstacle(acknowledged, &trust))
                .or(match program {
                    Program::Missing(why) => Some(Obstacle::AgentMissing(why)),
                    Program::Present => None,
                })
                .or_else(|| (!disk_has_room(&this.config)).then_some(Obstacle::DiskFull));
            first.map_or(Ok(trust != Trusted::Granted), Err)
        })
        .await?;
        found.map_err(|obstacle| refuse(&project.name, &obstacle))
    }

    /// Starts the process of a session that is recorded as starting.
    /// The caller holds the lock of its project.
    async fn start(
        self: &Arc<Self>,
        client: &Client,
        session: &HostedSession,
    ) -> Result<HostedSession, AppError> {
        let (id, process) = (&session.id, &session.process_id);
        let ready = self.order(session);
        let answer = match ready {
            Ok(order) => client.call("process.spawn", order).await,
            Err(error) => {
                let fact = Fact::NotStarted {
                    reason: ExitReason::BinaryNotFound,
                    detail: Some(redact_text(&error.message)),
                };
                self.rows.observe(id, process, fact).await?;
                return Err(error);
            }
        };
        let fact = match answer {
            Ok(answer) => Fact::Running(self.identity_of(&answer)),
            // It may have come about: the daemon's list says so when it is back.
            Err(CallError::Unreachable) => return Err(link::failed(CallError::Unreachable)),
            Err(CallError::Refused(error)) => {
                let reason = match error.code {
                    code::EXEC_FAILED => ExitReason::ExecFailed,
                    _ => ExitReason::Unknown,
                };
                let detail = Some(redact_text(&error.message));
                self.rows.observe(id, process, Fact::NotStarted { reason, detail }).await?;
                return Err(link::failed(CallError::Refused(error)));
            }
        };
        let now = applied(self.rows.observe(id, process, fact).await?);
        let now = now.ok_or_else(|| crate::bridges::lookup::unknown_instance(id.as_str()))?;
        self.follow(&now);
        Ok(now)
    }

    /// What the daemon starts.
    fn order(&self, session: &HostedSession) -> Result<Value, AppError> {
        let agent = &self.readiness.agent;
        let program = agent.program().map_err(|error| {
            AppError::new(ErrorCode::AgentMissing, Class::Unavailable, error.to_string())
        })?;
        // The name of the process is an id of a launch, too: by it the agent is known when the
        // daemon that held it is gone.
        let launch: LaunchId = session.process_id.parse().map_err(AppError::internal)?;
        // What is no text cannot travel in JSON, and no variable of the agent is.
        let mut env = agent.environment();
        // What this agent asks comes through its pipes.
        env.insert(approval_hook::SOCKET.into(), "".into());
        let env: Map<String, Value> = with_launch_id(env, &launch)
            .into_iter()
            .filter_map(|(name, value)| {
                Some((name.into_string().ok()?, value.into_string().ok()?.into()))
            })
            .collect();
        let resumed = (session.generation > 1).then(|| session.usable_uuid()).flatten();
        let args = hosted_args(session.permission_mode, resumed);
        Ok(json!({
            "id": session.process_id,
            "command": program,
            "args": args,
            "cwd": session.cwd,
            "env": env,
            "wantPid": true,
        }))
    }

    fn identity_of(&self, answer: &Value) -> Option<ProcessIdentity> {
        let spawned: Spawned = serde_json::from_value(answer.clone()).ok()?;
        let pid = Pid::new(spawned.pid)?;
        let boot_id = self.host.boot_id().clone();
        let said = ProcessIdentity { pid, start_ticks: spawned.start_time, boot_id };
        // An older daemon tells the pid alone. What it says is compared with what we see.
        let seen = self.host.inspect(pid)?.identity;
        (said.start_ticks == 0 || said == seen).then_some(seen)
    }

    pub(super) fn record(&self, session: &HostedSession) -> Instance {
        self.rows.record(session)
    }
}

impl HostedSessions {
    /// Starts a session in a project.
    ///
    /// # Errors
    /// Nothing was started. Where the daemon refused, the row says why.
    pub(crate) async fn spawn(
        &self,
        project: &Project,
        options: &Options,
    ) -> Result<SpawnResult, AppError> {
        let parts = &self.parts;
        let grant = parts.admitted(project, options.permission_mode, options.trust).await?;
        // Before anything is written: without a daemon nothing is left behind.
        let client = parts.link.client().await?;
        let _lock = parts.locks.project(&project.path).await?;
        let now = parts.rows.clock.now();
        let session = HostedSession {
            id: options.id.clone().map_or_else(new_id, Ok)?,
            process_id: new_process_id(),
            project: project.name.clone(),
            cwd: project.path.clone(),
            label: options.custom_name.clone(),
            permission_mode: options.permission_mode,
            session_uuid: None,
            state: State::Starting,
            status_since: now,
            generation: 1,
            agent: None,
            started_at: Some(now),
            created_at: now,
            on_limit: options.on_limit,
        };
        crate::failpoint::hit("hosted.before_record").await;
        parts.rows.insert(&session).await?;
        // After the last refusal: a launch that is refused leaves nothing trusted (F20).
        if grant && let Err(error) = parts.trust.grant(project).await {
            parts.rows.delete(&session).await?;
            return Err(error);
        }
        crate::failpoint::hit("hosted.after_record").await;
        let session = parts.start(&client, &session).await?;
        let outcome = Outcome {
            created: true,
            reason: None,
            reason_code: None,
            warnings: options.warnings.clone(),
        };
        Ok(SpawnResult { instance: parts.record(&session), outcome })
    }

    /// Runs an ended session again, under the same id and with the same conversation.
    ///
    /// # Errors
    /// It runs, its agent lives without a daemon, or it has no conversation to continue.
    pub(crate) async fn resume(
        &self,
        id: &InstanceId,
        request: &ResumeRequest,
    ) -> Result<SpawnResult, AppError> {
        let parts = &self.parts;
        parts.rows.refresh().await?;
        let unknown = || crate::bridges::lookup::unknown_instance(id.as_str());
        let session = parts.rows.get(id).ok_or_else(unknown)?;
        let project = parts
            .rows
            .view
            .catalog
            .named(session.project.as_str())
            .map_err(|_| unknown_project(session.project.as_str()))?;
        if session.is_live() {
            return Ok(already_running(parts.record(&session)));
        }
        // What is judged below is the project's directory, so the agent must not start elsewhere.
        let (recorded, place) = (session.cwd.clone(), project.path.clone());
        let is_there =
            blocking(move || recorded.canonicalize().is_ok_and(|real| real == place)).await?;
        if !is_there {
            return Err(not_resumable(
                &session.id,
                "its project is not in the recorded directory any more; start a new session",
            ));
        }
        let acknowledged = request.trust.unwrap_or(false);
        let grant = parts.admitted(&project, session.permission_mode, acknowledged).await?;
        let client = parts.link.client().await?;
        let _lock = parts.locks.project(&session.cwd).await?;
        let command = Command::Resume { process_id: new_process_id() };
        let current = parts.rows.get(id).ok_or_else(unknown)?;
        if let Err(refusal) =
            svc_domain::hosted::decide(&current, command.clone(), parts.rows.clock.now())
        {
            return refused(parts.record(&current), refusal);
        }
        let session = match parts.rows.command(id, command).await? {
            Changed::Now(session) => *session,
            Changed::Late => return Err(unknown()),
            Changed::Refused(refusal) => return refused(parts.record(&current), refusal),
        };
        // After the last refusal: a resume that is refused leaves nothing trusted (F20).
        if grant && let Err(error) = parts.trust.grant(&project).await {
            let detail = Some(redact_text(&error.message));
            let fact = Fact::NotStarted { reason: ExitReason::Unknown, detail };
            parts.rows.observe(id, &session.process_id, fact).await?;
            return Err(error);
        }
        crate::failpoint::hit("hosted.after_record").await;
        let session = parts.start(&client, &session).await?;
        // Nobody asks for the frames of the process before; an ended one is dropped in time anyway.
        let _ = client.call("process.forget", json!({ "id": current.process_id })).await;
        let outcome =
            Outcome { created: true, reason: None, reason_code: None, warnings: Vec::new() };
        Ok(SpawnResult { instance: parts.record(&session), outcome })
    }
}

fn already_running(instance: Instance) -> SpawnResult {
    let outcome = Outcome {
        created: false,
        reason: Some(format!("this session is already {}", instance.status)),
        reason_code: Some(NotCreated::AlreadyRunning.into()),
        warnings: Vec::new(),
    };
    SpawnResult { instance, outcome }
}

fn refused(instance: Instance, refusal: Refusal) -> Result<SpawnResult, AppError> {
    let why = match refusal {
        Refusal::Live => return Ok(already_running(instance)),
        Refusal::Orphan => {
            "its agent still runs without a daemon, and two agents would damage one conversation; \
             stop it first"
        }
        Refusal::NoSession => "its agent never said which conversation it is; start a new session",
        Refusal::BadSession => {
            "the recorded conversation cannot be handed to an agent; start a new session"
        }
    };
    Err(not_resumable(&instance.instance_id, why))
}

fn not_resumable(id: &InstanceId, why: &str) -> AppError {
    AppError::new(
        ErrorCode::NotResumable,
        Class::Conflict,
        format!("Direct Session {} cannot be resumed: {why}", id.short()),
    )
}

fn new_id() -> Result<InstanceId, AppError> {
    uuid::Uuid::new_v4().to_string().parse().map_err(AppError::internal)
}

fn new_process_id() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}
