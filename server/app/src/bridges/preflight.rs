//! Use-case: would a launch happen?
//! Answered by the function that decides the launch.

use crate::AppError;
use crate::bridges::circumstances::{Scene, code, refuse};
use crate::bridges::readiness::Readiness;
use crate::tasks::blocking;
use std::collections::BTreeMap;
use std::sync::Arc;
use svc_agent::settings::{McpServer, ProjectSettings};
use svc_domain::admission::{
    Circumstances, Obstacle, Program, Trust, Wanted, job_obstacles, obstacles,
};
use svc_domain::adoption::Unrecorded;
use svc_projects::Project;
use svc_shared::internal::{
    CapacityFact, Check, Facts, InheritFact, LaunchVerdict, McpServerFact, Preflight, PreflightAll,
    PreflightBrief, PreflightSummary,
};
use svc_shared::status::{CheckStatus, PermissionMode, ResumeMode, SpawnMode};

impl Readiness {
    /// Readiness of one project, with facts for a launch dialog on request.
    ///
    /// # Errors
    /// No such project.
    pub async fn preflight(
        self: &Arc<Self>,
        name: &str,
        facts: bool,
    ) -> Result<Preflight, AppError> {
        let project = self.projects.named(name)?;
        let this = Arc::clone(self);
        blocking(move || this.preflight_now(&project, facts)).await
    }

    /// Readiness of every project.
    ///
    /// # Errors
    /// The scan was interrupted.
    pub async fn preflight_all(self: &Arc<Self>) -> Result<PreflightAll, AppError> {
        let this = Arc::clone(self);
        blocking(move || {
            let scene = this.scene(&this.copies.live());
            let login = this.agent.cli().login().is_ok();
            let brief = |project: &Project| {
                let unrecorded = this.finder.unrecorded(project);
                let (wanted, now) = this.default_launch(project, &scene, unrecorded);
                let servers = this.agent.project_settings(&project.path).mcp_servers;
                let found = obstacles(wanted, &now);
                PreflightBrief {
                    ok: found.is_empty(),
                    checks: checks(project, &now, &found, login, &servers),
                }
            };
            let projects = this.projects.all();
            projects.iter().map(|project| (project.name.to_string(), brief(project))).collect()
        })
        .await
    }

    /// Verdict of one project as the stream carries it.
    /// `unrecorded` is the bridge without a record as it was last seen.
    pub(crate) fn preflight_summary(
        &self,
        project: &Project,
        scene: &Scene,
        unrecorded: Unrecorded,
    ) -> PreflightSummary {
        let (wanted, now) = self.default_launch(project, scene, unrecorded);
        summary(&obstacles(wanted, &now))
    }

    fn default_launch(
        &self,
        project: &Project,
        scene: &Scene,
        unrecorded: Unrecorded,
    ) -> (Wanted, Circumstances) {
        let mode = match self.config.claude.launch_mode {
            // A launch falls back to Server Mode.
            ResumeMode::Pty if !scene.has_terminal => ResumeMode::Standard,
            mode => mode,
        };
        let wanted = self.default_wanted(&project.name, mode);
        (wanted, self.circumstances(project, wanted, scene, unrecorded))
    }

    fn preflight_now(&self, project: &Project, facts: bool) -> Preflight {
        let scene = self.scene(&self.copies.live());
        let unrecorded = self.finder.unrecorded(project);
        let (wanted, now) = self.default_launch(project, &scene, unrecorded);
        let settings = self.agent.project_settings(&project.path);
        let report = Report {
            project,
            wanted,
            now: &now,
            has_commit: project.has_commit(),
            foreign_git: project.foreign_git(),
            login: self.agent.cli().login().is_ok(),
            servers: &settings.mcp_servers,
            has_hosted: self.config.hosted.enabled,
        };
        let shown = report.preflight();
        Preflight { facts: facts.then(|| self.facts(project, &now, settings)), ..shown }
    }

    fn facts(&self, project: &Project, now: &Circumstances, settings: ProjectSettings) -> Facts {
        Facts {
            inherit: self.agent.default_mode(&project.path).map_or(
                InheritFact { mode: PermissionMode::Default.to_string(), source: None },
                |default| InheritFact {
                    mode: default.mode,
                    source: Some(default.source.to_owned()),
                },
            ),
            hooks: settings.hooks,
            mcp_servers: settings
                .mcp_servers
                .into_iter()
                .map(|server| McpServerFact { name: server.name, approved: server.approved })
                .collect(),
            capacity: CapacityFact { live: now.live_bridges, max: now.max_bridges },
            restart: Some(self.config.restart_policy(&project.name).into()),
        }
    }
}

/// Readiness of a project as it is shown, from what is so at one moment.
struct Report<'a> {
    project: &'a Project,
    /// A launch with default options.
    wanted: Wanted,
    now: &'a Circumstances,
    has_commit: bool,
    foreign_git: Option<String>,
    login: bool,
    servers: &'a [McpServer],
    /// Direct Sessions are switched on.
    has_hosted: bool,
}

impl Report<'_> {
    fn preflight(&self) -> Preflight {
        let found = obstacles(self.wanted, self.now);
        let standard = Wanted { resume_mode: ResumeMode::Standard, ..self.wanted };
        let session = Wanted {
            resume_mode: ResumeMode::Pty,
            // A worktree is a choice of its own in the dialog.
            spawn_mode: SpawnMode::SameDir,
            ..self.wanted
        };
        let worktree = Wanted { spawn_mode: SpawnMode::Worktree, ..self.wanted };
        let with_commit = Circumstances {
            has_commit: self.has_commit,
            foreign_git: self.foreign_git.clone(),
            ..self.now.clone()
        };
        // Whether the daemon can be reached is told by the launch.
        let hosted = if self.has_hosted {
            let direct =
                Circumstances { has_terminal: true, max_bridges: None, ..self.now.clone() };
            verdict(&obstacles(session, &direct))
        } else {
            no("hosted_unavailable")
        };
        let launch = BTreeMap::from([
            ("standard".to_owned(), verdict(&obstacles(standard, self.now))),
            ("worktree".to_owned(), verdict(&obstacles(worktree, &with_commit))),
            ("pty".to_owned(), verdict(&obstacles(session, self.now))),
            ("hosted".to_owned(), hosted),
            ("background".to_owned(), verdict(&job_obstacles(self.wanted, &self.now.of_a_job()))),
        ]);
        Preflight {
            project: self.project.name.to_string(),
            ok: found.is_empty(),
            checks: checks(self.project, self.now, &found, self.login, self.servers),
            launch,
            facts: None,
        }
    }
}

/// Readiness as the stream carries it.
fn summary(found: &[Obstacle]) -> PreflightSummary {
    PreflightSummary {
        ok: found.is_empty(),
        codes: found.iter().map(|obstacle| check_of(obstacle).to_owned()).collect(),
    }
}

fn checks(
    project: &Project,
    now: &Circumstances,
    found: &[Obstacle],
    login: bool,
    servers: &[McpServer],
) -> Vec<Check> {
    let fails = |name: &str| found.iter().find(|obstacle| check_of(obstacle) == name);
    let check = |name: &str, fine: String| match fails(name) {
        Some(obstacle) => {
            let error = refuse(&project.name, obstacle);
            Check {
                name: name.to_owned(),
                status: CheckStatus::Fail.into(),
                detail: error.message,
                hint: hint(obstacle, project),
            }
        }
        None => Check {
            name: name.to_owned(),
            status: CheckStatus::Ok.into(),
            detail: fine,
            hint: None,
        },
    };
    let trust = match &now.trust {
        Trust::Granted => "trusted",
        Trust::Missing | Trust::Unreadable(_) => "not trusted",
    };
    let git = if now.is_git_repo { "a git repository" } else { "not a git repository" };
    let program = match &now.program {
        Program::Present => "found",
        Program::Missing(_) => "missing",
    };
    let capacity = match now.max_bridges {
        Some(max) => format!("{} of {max} bridges are live", now.live_bridges),
        None => format!("{} bridges are live, no cap", now.live_bridges),
    };
    let bridge = match &now.live_standard {
        Some(_) => "a launch returns the live bridge",
        None if now.unrecorded.pid().is_some() => "a launch takes over the bridge that runs here",
        None => "no other bridge is in the way",
    };
    vec![
        check("trust", trust.to_owned()),
        check("git", git.to_owned()),
        approval_check(servers),
        check("agent", program.to_owned()),
        login_check(login),
        check("capacity", capacity),
        check("permissions", "the default permission mode is allowed".to_owned()),
        check("disk", "enough free space".to_owned()),
        check("directory", "the project's own directory".to_owned()),
        check("bridge", bridge.to_owned()),
    ]
}

/// Servers that nobody approved do not stop a bridge.
/// Its sessions work without them, and a session in a terminal asks. So this is a warning.
fn approval_check(servers: &[McpServer]) -> Check {
    let open: Vec<&str> = servers
        .iter()
        .filter(|server| server.approved.is_none())
        .map(|server| server.name.as_str())
        .collect();
    let (status, detail, hint) = if open.is_empty() {
        (CheckStatus::Ok, "no MCP server waits for approval".to_owned(), None)
    } else {
        let detail = format!("MCP servers wait for approval: {}", open.join(", "));
        let hint = "run `claude` in the project directory and approve or reject them";
        (CheckStatus::Warn, detail, Some(hint.to_owned()))
    };
    Check { name: "mcp-approval".to_owned(), status: status.into(), detail, hint }
}

/// A missing login is a warning.
/// The agent says it itself, and credentials may come from places that the probe does not see.
fn login_check(is_logged_in: bool) -> Check {
    let (status, detail, hint) = if is_logged_in {
        (CheckStatus::Ok, "logged in".to_owned(), None)
    } else {
        let hint = "run `claude` on this machine and log in".to_owned();
        (CheckStatus::Warn, "the agent is not logged in".to_owned(), Some(hint))
    };
    Check { name: "agent-login".to_owned(), status: status.into(), detail, hint }
}

/// The check an obstacle belongs to.
fn check_of(obstacle: &Obstacle) -> &'static str {
    match obstacle {
        Obstacle::Alias(_)
        | Obstacle::NameReadsAsOption
        | Obstacle::ProjectReadsAsOption
        | Obstacle::UnknownConversation
        | Obstacle::SharedTranscripts => "directory",
        Obstacle::OtherService(_) | Obstacle::Held { .. } | Obstacle::MayBeLive(_) => "bridge",
        Obstacle::NotGit | Obstacle::NoCommit | Obstacle::ForeignGit(_) => "git",
        Obstacle::SessionNeedsStandard
        | Obstacle::BypassForbidden
        | Obstacle::InheritedBypassForbidden => "permissions",
        Obstacle::NotTrusted | Obstacle::TrustUnreadable(_) => "trust",
        Obstacle::Capacity { .. } => "capacity",
        Obstacle::AgentMissing(_) | Obstacle::NoTerminal => "agent",
        Obstacle::DiskFull => "disk",
    }
}

fn hint(obstacle: &Obstacle, project: &Project) -> Option<String> {
    match obstacle {
        Obstacle::NotTrusted => Some(format!("svc start --trust {}", project.name)),
        Obstacle::NotGit => Some(format!("git init {}", project.path.display())),
        Obstacle::Alias(name) => Some(format!("svc start {name}")),
        Obstacle::OtherService(_)
        | Obstacle::Held { .. }
        | Obstacle::MayBeLive(_)
        | Obstacle::NoCommit
        | Obstacle::ForeignGit(_)
        | Obstacle::SessionNeedsStandard
        | Obstacle::NameReadsAsOption
        | Obstacle::ProjectReadsAsOption
        | Obstacle::UnknownConversation
        | Obstacle::SharedTranscripts
        | Obstacle::NoTerminal
        | Obstacle::BypassForbidden
        | Obstacle::InheritedBypassForbidden
        | Obstacle::TrustUnreadable(_)
        | Obstacle::Capacity { .. }
        | Obstacle::AgentMissing(_)
        | Obstacle::DiskFull => None,
    }
}

fn verdict(found: &[Obstacle]) -> LaunchVerdict {
    match found.first() {
        None => LaunchVerdict { ok: true, code: None },
        Some(Obstacle::NotGit | Obstacle::NoCommit | Obstacle::ForeignGit(_)) => no("not_git"),
        Some(Obstacle::NoTerminal) => no("pty_unavailable"),
        Some(obstacle) => no(code(obstacle).as_str()),
    }
}

fn no(code: &str) -> LaunchVerdict {
    LaunchVerdict { ok: false, code: Some(code.to_owned()) }
}

#[cfg(test)]
mod tests;
