//! Server Mode bridges that run in a project without a record here: started by hand, or by
//! another service.

use crate::{App, AppError, Class};
use svc_agent::log_set::LogSet;
use svc_agent::role::{Role, debug_file, role};
use svc_domain::bridge::{Anchor, Bridge, Live, Stage, State};
use svc_domain::identity::{Pid, ProcessIdentity};
use svc_ports::process::ProcessFacts;
use svc_projects::Project;
use svc_shared::error::ErrorCode;
use svc_shared::ids::InstanceId;
use svc_shared::status::{Origin, PermissionMode, ResumeMode, SpawnMode};
use svc_store::{Cap, Inserted};

/// A live Server Mode bridge without a record.
#[derive(Debug, Clone)]
pub(crate) struct Unmanaged {
    pub pid: Pid,
    identity: ProcessIdentity,
    anchor: Anchor,
    facts: ProcessFacts,
}

impl App {
    /// The live Server Mode bridge that the agent's pointer names for this very directory, if no
    /// record has it.
    pub(crate) async fn unmanaged(&self, project: &Project) -> Option<Unmanaged> {
        let (app, project) = (self.clone(), project.clone());
        tokio::task::spawn_blocking(move || app.look_for_unmanaged(&project)).await.ok()?
    }

    /// Whether a bridge without a record could be taken over: it is not another service's.
    pub(crate) fn is_adoptable(&self, found: &Unmanaged) -> bool {
        let log = debug_file(&found.facts.argv);
        let is_own =
            log.as_deref().and_then(|file| LogSet::of_debug_file(&self.log_dir(), file)).is_some();
        is_own || self.host().launch_of(&found.identity).is_none()
    }

    /// As [`App::unmanaged`]. Blocks: reads the pointer and the process table.
    pub(crate) fn look_for_unmanaged(&self, project: &Project) -> Option<Unmanaged> {
        let pointer = self.agent().pointer(&project.path)?;
        let identity = self.pointer_identity(&pointer)?;
        let facts = self.host().inspect(identity.pid)?;
        let program = self.agent().program().ok();
        let configured = program.as_deref().unwrap_or(std::path::Path::new("claude"));
        let is_bridge = role(&facts.argv, facts.exe.as_deref(), configured) == Role::StandardBridge;
        let is_here = facts.cwd.as_deref() == Some(project.path.as_path());
        let is_ours = facts.uid == rustix::process::geteuid().as_raw();
        let is_known = self
            .registry()
            .bridges()
            .iter()
            .any(|bridge| bridge.process.as_ref() == Some(&facts.identity));
        let fits = facts.identity == identity && is_bridge && is_here && is_ours && !is_known;
        fits.then(|| Unmanaged {
            pid: identity.pid,
            identity,
            anchor: Anchor {
                environment_id: pointer.environment_id,
                session_id: pointer.session_id.filter(|session| !session.is_empty()),
            },
            facts,
        })
    }

    /// Identity of the process that a pointer names; `None` when it cannot be attributed or the
    /// pointer is older than this boot.
    fn pointer_identity(&self, pointer: &svc_agent::pointer::Pointer) -> Option<ProcessIdentity> {
        let written_in_this_boot =
            self.agent().boot_time().is_none_or(|boot| pointer.written_at >= boot);
        let identity = ProcessIdentity {
            pid: pointer.pid?,
            start_ticks: pointer.start_ticks?,
            boot_id: self.host().boot_id().clone(),
        };
        written_in_this_boot.then_some(identity)
    }

    /// Whether the process that a pointer names lives, or may live.
    pub(crate) fn pointer_is_live(&self, pointer: &svc_agent::pointer::Pointer) -> bool {
        use svc_domain::identity::Verdict;
        self.pointer_identity(pointer).is_some_and(|identity| match self.host().probe(&identity) {
            Verdict::Same | Verdict::Unknown => true,
            Verdict::Gone(_) => false,
        })
    }

    /// Makes a record for a bridge that runs without one. The caller holds the project lock.
    ///
    /// # Errors
    /// It belongs to another service.
    pub(crate) async fn take_over_unmanaged(
        &self,
        project: &Project,
    ) -> Result<Option<InstanceId>, AppError> {
        let Some(found) = self.unmanaged(project).await else { return Ok(None) };
        let log = debug_file(&found.facts.argv);
        let own_log = log.as_deref().and_then(|file| LogSet::of_debug_file(&self.log_dir(), file));
        if own_log.is_none() && self.host().launch_of(&found.identity).is_some() {
            return Err(AppError::new(
                ErrorCode::HeldElsewhere,
                Class::Conflict,
                format!(
                    "another service already runs a bridge in this project (pid {}); stop it there",
                    found.pid
                ),
            ));
        }
        let now = self.clock().now();
        let bridge = Bridge {
            id: uuid::Uuid::new_v4().to_string().parse().map_err(AppError::internal)?,
            project: project.name.clone(),
            cwd: project.path.clone(),
            custom_name: None,
            resume_mode: ResumeMode::Standard,
            spawn_mode: argument(&found.facts, "--spawn").unwrap_or(SpawnMode::SameDir),
            permission_mode: argument(&found.facts, "--permission-mode")
                .unwrap_or(PermissionMode::Inherit),
            origin: Origin::Adopted,
            generation: 1,
            state: State::Live(Live {
                stage: Stage::Registering { deadline: None },
                stop_requested: false,
            }),
            status_since: now,
            started_at: Some(now),
            launch: match own_log {
                Some(set) => Some(svc_domain::bridge::Launch {
                    id: crate::launch::new_launch_id()?,
                    argv: found.facts.argv.clone(),
                    log_stem: set.stem().to_owned(),
                    relaunched: false,
                }),
                None => None,
            },
            process: Some(found.identity.clone()),
            anchor: found.anchor.clone(),
            notice: None,
            quarantine: None,
        };
        match self.store().insert(&bridge, Cap::default(), now).await? {
            Inserted::Yes => {}
            Inserted::CapReached | Inserted::Occupied => return Ok(None),
        }
        self.reload_one(&bridge.id).await?;
        if bridge.launch.is_none() {
            // It writes no log that could show when it registered; the pointer says that it has.
            let fact = svc_domain::observe::Fact::Registered(found.anchor);
            self.observe(&bridge.id, 1, fact).await?;
        }
        self.watch_bridge(&bridge.id, 1);
        Ok(Some(bridge.id))
    }
}

fn argument<T: std::str::FromStr>(facts: &ProcessFacts, flag: &str) -> Option<T> {
    let at = facts.argv.iter().position(|argument| argument == flag)?;
    facts.argv.get(at + 1)?.parse().ok()
}
