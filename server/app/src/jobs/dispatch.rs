//! Use-case: start a background job in a project.

use super::ask::{Answer, Question};
use super::{agent_failed, project_of};
use crate::AppError;
use crate::bridges::circumstances::{disk_has_room, refuse};
use crate::jobs::Jobs;
use crate::tasks::blocking;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use svc_agent::jobs::answer;
use svc_domain::admission::{Obstacle, Trust, bypass_obstacle, trust_obstacle};
use svc_domain::jobs::{Dispatch, Unfit, check_model, check_prompt};
use svc_domain::log_escape::quoted;
use svc_projects::Project;
use svc_shared::api::jobs::{DispatchRequest, DispatchResult};
use svc_shared::ids::JobId;
use svc_shared::status::{PermissionMode, UnknownWord};
use svc_shared::text::session_name;

/// The agent's background service may have to be started first.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What was asked for, checked.
struct Options {
    rc_name: Option<String>,
    model: Option<String>,
    permission_mode: PermissionMode,
}

impl Jobs {
    /// Starts a background job.
    /// Answers when the agent has accepted it, which is not when it runs. A dispatch that has begun
    /// goes on when the caller goes away.
    ///
    /// # Errors
    /// Nothing was started, except after a time-out, where the list of jobs tells.
    pub async fn dispatch(
        self: &Arc<Self>,
        request: DispatchRequest,
    ) -> Result<DispatchResult, AppError> {
        let this = Arc::clone(self);
        self.tasks.complete(async move { this.dispatch_now(request).await }).await
    }

    async fn dispatch_now(&self, request: DispatchRequest) -> Result<DispatchResult, AppError> {
        let project = self.scan.catalog.named(request.project.trim())?;
        let options = self.job_options(&request)?;
        if let Some(name) = &project.alias_of {
            return Err(refuse(&project.name, &Obstacle::Alias(name.clone())));
        }
        let at = JobDir { cwd: project.path.clone(), git_root: project.git_root.clone() };
        self.permitted(&project, &at, options.permission_mode).await?;
        let args = arguments(&request, &options)?;
        let program = self.trusted_program(&project, &at, request.trust.unwrap_or(false)).await?;
        let id = self.accepted(Question { program, args, cwd: at.cwd, timeout: TIMEOUT }).await?;
        tracing::info!(
            job.id = %id,
            project.name = %project.name,
            "started background job {id} in project {}",
            quoted(project.name.as_str())
        );
        Ok(DispatchResult { id, created: true, warnings: Vec::new() })
    }

    /// Asks the agent to take a job; the list of jobs is current afterwards.
    pub(super) async fn accepted(&self, question: Question) -> Result<JobId, AppError> {
        let answer = self.answered(question).await?;
        refusal(&answer).map_or_else(|| named(&answer), Err)
    }

    /// The same, with what the agent answered.
    pub(super) async fn answered(&self, question: Question) -> Result<Answer, AppError> {
        let answered = self.runs.ask(question).await;
        self.publish().await;
        answered
    }

    /// Checks what the request alone can tell.
    ///
    /// # Errors
    /// A sentence naming the field.
    pub(crate) fn checked(&self, request: &DispatchRequest) -> Result<PermissionMode, AppError> {
        let options = self.job_options(request)?;
        arguments(request, &options)?;
        Ok(options.permission_mode)
    }

    fn job_options(&self, request: &DispatchRequest) -> Result<Options, AppError> {
        let rc_name = match request.rc_name.as_deref().map(session_name) {
            None => None,
            Some(Ok(Some(name))) => Some(name),
            Some(Ok(None)) => {
                return Err(AppError::invalid(
                    "`rc_name` is empty; leave it out or name the session",
                ));
            }
            Some(Err(bad)) => {
                return Err(AppError::invalid(format!("`rc_name` cannot be used: {bad}")));
            }
        };
        if let Some(model) = &request.model {
            check_model(model).map_err(|unfit| AppError::invalid(unfit.to_string()))?;
        }
        let permission_mode = match request.permission_mode.as_deref() {
            None => self.scan.config.instance_defaults.permission_mode,
            Some(raw) => raw.parse().map_err(|unknown: UnknownWord| {
                AppError::invalid(format!("`permission_mode` cannot be {}: {unknown}", quoted(raw)))
            })?,
        };
        Ok(Options { rc_name, model: request.model.clone(), permission_mode })
    }

    /// The ceiling on permissions, whichever way it would be passed.
    pub(super) async fn permitted(
        &self,
        project: &Project,
        at: &JobDir,
        mode: PermissionMode,
    ) -> Result<(), AppError> {
        if self.scan.config.project(&project.name).allow_bypass_permissions {
            return Ok(());
        }
        let inherits = match mode {
            PermissionMode::Inherit => {
                let (agent, cwd) = (Arc::clone(&self.scan.agent), at.cwd.clone());
                blocking(move || agent.may_bypass(&cwd)).await?
            }
            PermissionMode::BypassPermissions
            | PermissionMode::Default
            | PermissionMode::Plan
            | PermissionMode::AcceptEdits
            | PermissionMode::Auto
            | PermissionMode::DontAsk => false,
        };
        match bypass_obstacle(mode, false, inherits) {
            Some(obstacle) => Err(refuse(&project.name, &obstacle)),
            None => Ok(()),
        }
    }

    /// The program, once the directory is trusted.
    /// The grant is written after the last refusal.
    pub(super) async fn trusted_program(
        &self,
        project: &Project,
        at: &JobDir,
        trust: bool,
    ) -> Result<PathBuf, AppError> {
        let (agent, place) = (Arc::clone(&self.scan.agent), at.clone());
        let known = blocking(move || agent.trust(&place.cwd, place.git_root.as_deref())).await?;
        if let Some(obstacle) = trust_obstacle(trust, &known) {
            return Err(refuse(&project.name, &obstacle));
        }
        let grant = known == Trust::Missing;
        let program = self.scan.agent.program_now().await?;
        let config = Arc::clone(&self.scan.config);
        if !blocking(move || disk_has_room(&config)).await? {
            return Err(refuse(&project.name, &Obstacle::DiskFull));
        }
        if grant {
            let _lock = self.locks.project(&project.path).await?;
            self.trust.grant(project).await?;
        }
        Ok(program)
    }

    /// The project that a directory belongs to.
    pub(super) fn project_at(&self, cwd: &Path) -> Option<Project> {
        project_of(&self.scan.catalog.all(), cwd).cloned()
    }
}

/// What the agent is called with.
fn arguments(request: &DispatchRequest, options: &Options) -> Result<Vec<String>, AppError> {
    let unfit = |unfit: Unfit| AppError::invalid(unfit.to_string());
    check_prompt(request.prompt.as_deref(), options.rc_name.is_some()).map_err(unfit)?;
    let dispatch = Dispatch {
        resume: None,
        rc_name: options.rc_name.as_deref(),
        model: options.model.as_deref(),
        permission_mode: options.permission_mode,
        prompt: request.prompt.as_deref(),
    };
    dispatch.args().map_err(unfit)
}

/// A real directory and the repository around it.
#[derive(Debug, Clone)]
pub(super) struct JobDir {
    pub cwd: PathBuf,
    pub git_root: Option<PathBuf>,
}

/// Why the agent did not take a job; nothing was started then.
pub(super) fn refusal(answer: &Answer) -> Option<AppError> {
    if answer.code == Some(0) {
        return None;
    }
    let words = answer::last_words(&answer.output);
    let how = answer.code.map_or("a signal".to_owned(), |code| format!("code {code}"));
    let said = if words.is_empty() { String::new() } else { format!(": {words}") };
    Some(agent_failed(format!("the agent refused the job with {how}{said}")))
}

/// The job that the agent took.
pub(super) fn named(answer: &Answer) -> Result<JobId, AppError> {
    answer::accepted(&answer.output).ok_or_else(|| {
        agent_failed("the agent took the job without naming it; look for it in the list of jobs")
    })
}
