//! Use-case: would a launch happen? Answered by the function that decides the launch.

use crate::bridges::circumstances::{Scene, code, refuse};
use crate::{App, AppError};
use std::collections::BTreeMap;
use svc_domain::admission::{Circumstances, Obstacle, Program, Trust, Wanted, obstacles};
use svc_projects::Project;
use svc_shared::internal::{
    CapacityFact, Check, Facts, InheritFact, LaunchVerdict, McpServerFact, Preflight, PreflightAll,
    PreflightBrief, PreflightSummary,
};
use svc_shared::status::{CheckStatus, PermissionMode, ResumeMode, SpawnMode};

impl App {
    /// Readiness of one project, with facts for a launch dialog on request.
    ///
    /// # Errors
    /// No such project.
    pub async fn preflight(&self, name: &str, facts: bool) -> Result<Preflight, AppError> {
        let project = self.project(name)?;
        let app = self.clone();
        tokio::task::spawn_blocking(move || app.preflight_now(&project, facts))
            .await
            .map_err(AppError::internal)
    }

    /// Readiness of every project.
    ///
    /// # Errors
    /// The scan was interrupted.
    pub async fn preflight_all(&self) -> Result<PreflightAll, AppError> {
        let app = self.clone();
        tokio::task::spawn_blocking(move || {
            let scene = app.scene(&app.registry().live());
            let projects = app.projects();
            projects
                .iter()
                .map(|project| {
                    let (wanted, now) = app.default_launch(project, &scene);
                    let found = obstacles(wanted, &now);
                    let checks = app.checks(project, &now, &found);
                    let ok = found.is_empty();
                    (project.name.to_string(), PreflightBrief { ok, checks })
                })
                .collect()
        })
        .await
        .map_err(AppError::internal)
    }

    /// Verdict of one project as the stream carries it.
    pub(crate) fn preflight_summary(&self, project: &Project, scene: &Scene) -> PreflightSummary {
        let (wanted, now) = self.default_launch(project, scene);
        let found = obstacles(wanted, &now);
        PreflightSummary {
            ok: found.is_empty(),
            codes: found.iter().map(|obstacle| check_of(obstacle).to_owned()).collect(),
        }
    }

    fn default_launch(&self, project: &Project, scene: &Scene) -> (Wanted, Circumstances) {
        let wanted = self.default_wanted(&project.name, ResumeMode::Standard);
        (wanted, self.circumstances(project, wanted, scene))
    }

    fn preflight_now(&self, project: &Project, facts: bool) -> Preflight {
        let scene = self.scene(&self.registry().live());
        let (wanted, now) = self.default_launch(project, &scene);
        let found = obstacles(wanted, &now);
        let worktree = Wanted { spawn_mode: SpawnMode::Worktree, ..wanted };
        let with_commit = Circumstances { has_commit: project.has_commit(), ..now.clone() };
        let launch = BTreeMap::from([
            ("standard".to_owned(), verdict(&found)),
            ("worktree".to_owned(), verdict(&obstacles(worktree, &with_commit))),
            ("pty".to_owned(), no("pty_unavailable")),
            ("hosted".to_owned(), no("hosted_unavailable")),
            ("background".to_owned(), Self::background(wanted, &now)),
        ]);
        Preflight {
            project: project.name.to_string(),
            ok: found.is_empty(),
            checks: self.checks(project, &now, &found),
            launch,
            facts: facts.then(|| self.facts(project, &now)),
        }
    }

    /// A background job may run beside a live bridge, so that one hides nothing.
    fn background(wanted: Wanted, now: &Circumstances) -> LaunchVerdict {
        let alone = Circumstances { live_standard: None, ..now.clone() };
        verdict(&for_a_job(&obstacles(wanted, &alone)))
    }

    fn facts(&self, project: &Project, now: &Circumstances) -> Facts {
        let settings = self.agent().project_settings(&project.path);
        Facts {
            inherit: self.agent().default_mode(&project.path).map_or(
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
        }
    }

    fn checks(&self, project: &Project, now: &Circumstances, found: &[Obstacle]) -> Vec<Check> {
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
        vec![
            check("trust", trust.to_owned()),
            check("git", git.to_owned()),
            check("agent", program.to_owned()),
            self.login_check(),
            check("capacity", capacity),
            check("permissions", "the default permission mode is allowed".to_owned()),
            check("disk", "enough free space".to_owned()),
            check("directory", "the project's own directory".to_owned()),
        ]
    }

    /// A missing login is a warning: the agent says it itself, and credentials may come from
    /// places that the probe does not see.
    fn login_check(&self) -> Check {
        let login = self.agent().cli().login();
        let (status, detail, hint) = if login.is_ok() {
            (CheckStatus::Ok, "logged in".to_owned(), None)
        } else {
            let hint = "run `claude` on this machine and log in".to_owned();
            (CheckStatus::Warn, "the agent is not logged in".to_owned(), Some(hint))
        };
        Check { name: "agent-login".to_owned(), status: status.into(), detail, hint }
    }
}

/// The check an obstacle belongs to.
fn check_of(obstacle: &Obstacle) -> &'static str {
    match obstacle {
        Obstacle::Alias(_) | Obstacle::NameReadsAsOption => "directory",
        Obstacle::NotGit | Obstacle::NoCommit => "git",
        Obstacle::SessionNeedsStandard
        | Obstacle::BypassForbidden
        | Obstacle::InheritedBypassForbidden => "permissions",
        Obstacle::NotTrusted | Obstacle::TrustUnreadable(_) => "trust",
        Obstacle::Capacity { .. } => "capacity",
        Obstacle::AgentMissing(_) => "agent",
        Obstacle::DiskFull => "disk",
    }
}

fn hint(obstacle: &Obstacle, project: &Project) -> Option<String> {
    match obstacle {
        Obstacle::NotTrusted => Some(format!("svc start --trust {}", project.name)),
        Obstacle::NotGit => Some(format!("git init {}", project.path.display())),
        Obstacle::Alias(name) => Some(format!("svc start {name}")),
        Obstacle::NoCommit
        | Obstacle::SessionNeedsStandard
        | Obstacle::NameReadsAsOption
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
        Some(Obstacle::NotGit | Obstacle::NoCommit) => no("not_git"),
        Some(obstacle) => no(code(obstacle).as_str()),
    }
}

/// What of it also stands in the way of a background job, which is no bridge and keeps no log.
fn for_a_job(found: &[Obstacle]) -> Vec<Obstacle> {
    let applies = |obstacle: &&Obstacle| match obstacle {
        Obstacle::Alias(_)
        | Obstacle::BypassForbidden
        | Obstacle::InheritedBypassForbidden
        | Obstacle::NotTrusted
        | Obstacle::TrustUnreadable(_)
        | Obstacle::AgentMissing(_) => true,
        Obstacle::NotGit
        | Obstacle::NoCommit
        | Obstacle::SessionNeedsStandard
        | Obstacle::NameReadsAsOption
        | Obstacle::Capacity { .. }
        | Obstacle::DiskFull => false,
    };
    found.iter().filter(applies).cloned().collect()
}

fn no(code: &str) -> LaunchVerdict {
    LaunchVerdict { ok: false, code: Some(code.to_owned()) }
}
