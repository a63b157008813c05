//! Starting the agent for a row: the steps that spawn, resume and relaunch share.
//!
//! The caller holds the project lock. The row is durable before anything runs; the identity is
//! durable before the agent runs; a crash between any two steps is repaired by the reconciler.

use crate::agent::Agent;
use crate::agent_config::AgentConfigEditor;
use crate::bridges::family::Families;
use crate::bridges::launch_id::new_launch_id;
use crate::bridges::transition::Changed;
use crate::bridges::transition::Transitions;
use crate::failpoint::hit;
use crate::log_files;
use crate::read_model::ReadModel;
use crate::tasks::Tasks;
use crate::tasks::blocking;
use crate::{AppError, Class};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use svc_agent::environment::Variables;
use svc_agent::log_set::LogSet;
use svc_config::Config;
use svc_config::ScopeUse;
use svc_domain::approval_hook;
use svc_domain::argv::{Argv, Interactive, ServerMode};
use svc_domain::bridge::{Bridge, Launch};
use svc_domain::conversation::TakeUp;
use svc_domain::identity::{LaunchId, ProcessIdentity};
use svc_domain::observe::{Cause, Fact};
use svc_domain::recap;
use svc_domain::worktree::WorktreeName;
use svc_ports::ProcessHost;
use svc_ports::process::{Enclosed, LaunchError, LaunchSpec, TerminalSpec};
use svc_shared::error::ErrorCode;
use svc_shared::ids::{InstanceId, ProjectName};
use svc_shared::status::{
    BridgeStatus, ExitReason, HealMode, PermissionMode, ResumeMode, SpawnMode,
};

/// Size of a new terminal (`agent-cli` §15.1).
const COLUMNS: u16 = 120;
const ROWS: u16 = 40;
/// Lines kept above the screen (`agent-cli` §15.2).
const SCROLLBACK_LINES: u32 = 2000;

/// Longest wait for the hook of the recap; a launch has a deadline of its own.
const HOOK_PATIENCE: Duration = Duration::from_secs(2);
/// How often the start of an agent is recorded at most, and the pause between.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(200);
/// Why nothing can be asked for a scope.
const NO_MANAGER: &str = "systemd is not available here";

/// Everything a launch needs, prepared before the row is written.
/// Dropped unused, its files go.
pub(crate) struct Prepared {
    pub launch: Launch,
    program: PathBuf,
    args: Vec<String>,
    files: LogSet,
    used: bool,
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // A refusal leaves no file.
        if !self.used {
            self.files.remove();
        }
    }
}

/// The options of the agent that a row carries.
pub(crate) struct LaunchRequest<'a> {
    pub project: &'a ProjectName,
    pub permission_mode: PermissionMode,
    pub form: Form<'a>,
}

/// What is particular to one kind of bridge.
pub(crate) enum Form<'a> {
    /// Server Mode.
    Server { label: &'a str, spawn_mode: SpawnMode },
    /// Interactive Session.
    Session { worktree: Option<&'a WorktreeName>, take_up: &'a TakeUp },
}

impl<'a> LaunchRequest<'a> {
    /// The launch of a row that exists; `take_up` is for Interactive Sessions.
    pub fn of(bridge: &'a Bridge, take_up: &'a TakeUp) -> Self {
        let form = match bridge.resume_mode {
            ResumeMode::Standard => {
                Form::Server { label: bridge.label(), spawn_mode: bridge.spawn_mode }
            }
            ResumeMode::Pty => Form::Session { worktree: bridge.worktree.as_ref(), take_up },
        };
        Self { project: &bridge.project, permission_mode: bridge.permission_mode, form }
    }
}

/// Starts the agent for rows.
pub(crate) struct Launcher {
    pub config: Arc<Config>,
    pub families: Arc<Families>,
    pub agent: Arc<Agent>,
    pub host: Arc<dyn ProcessHost>,
    pub transitions: Arc<Transitions>,
    pub read_model: Arc<ReadModel>,
    pub agent_config: Arc<AgentConfigEditor>,
    pub tasks: Tasks,
    pub umask: u32,
}

impl Launcher {
    /// Finds the program, makes the log files and the argument vector.
    pub(crate) async fn prepare(&self, request: LaunchRequest<'_>) -> Result<Prepared, AppError> {
        let program = self.agent.program().map_err(|error| {
            AppError::new(ErrorCode::AgentMissing, Class::Unavailable, error.to_string())
        })?;
        let (dir, project, now) = (
            log_files::directory(&self.config),
            request.project.clone(),
            self.transitions.clock.now(),
        );
        let mirrored = self.config.logs.redact_session_url;
        let files = blocking(move || LogSet::create(&dir, &project, now, mirrored))
            .await?
            .map_err(|cause| {
                AppError::new(
                    ErrorCode::DiskFull,
                    Class::Storage,
                    "the log files of the bridge cannot be created; check space and permissions \
                     of the directory `logs` in the state directory",
                )
                .because(cause)
            })?;
        let debug_file = files.agent_file();
        let debug_file = debug_file.to_str().ok_or_else(|| {
            AppError::invalid("`state_dir` is not valid UTF-8; choose another state directory")
        })?;
        let defaults = &self.config.instance_defaults;
        let permission_mode = request.permission_mode;
        let args = match request.form {
            Form::Server { label, spawn_mode } => ServerMode {
                name: label,
                debug_file,
                spawn_mode,
                permission_mode,
                session_name_prefix: defaults.session_name_prefix.as_deref(),
                capacity: defaults.capacity,
                // Without it a lost link is told of only when it is back.
                verbose: defaults.verbose || self.config.claude.heal != HealMode::Off,
            }
            .args(),
            Form::Session { worktree, take_up } => {
                let project = request.project.as_str();
                Interactive { project, debug_file, permission_mode, worktree, take_up }.args()
            }
        };
        let args = match args {
            Ok(args) => args,
            Err(bad) => {
                files.remove();
                return Err(AppError::invalid(bad.to_string()));
            }
        };
        let argv = std::iter::once(program.to_string_lossy().into_owned())
            .chain(args.iter().cloned())
            .collect::<Argv>();
        let launch = Launch {
            id: new_launch_id()?,
            argv,
            log_stem: files.stem().to_owned(),
            relaunched: false,
        };
        Ok(Prepared { launch, program, args, files, used: false })
    }

    /// Starts the agent for a row that is recorded as launching.
    /// The row carries the outcome; `true` when there is an agent to be watched.
    pub(crate) async fn start(
        &self,
        bridge: &Bridge,
        mut prepared: Prepared,
    ) -> Result<bool, AppError> {
        prepared.used = true;
        let (id, generation) = (&bridge.id, bridge.generation);
        hit("spawn.after_record").await;
        if self.config.claude.auto_enable_remote_control {
            // Without it the agent asks a question that nobody can answer.
            self.agent.cli().enable_remote_control().await;
        }
        let mut env = self.agent.environment();
        // A service that was started by a session of another one has inherited its wish.
        for name in [recap::SWITCH, recap::MOST_CHARS] {
            env.remove(OsStr::new(name));
        }
        env.remove(OsStr::new(approval_hook::SOCKET));
        if self.config.claude.approval_hook {
            Box::pin(self.offer_approvals(&mut env)).await;
        }
        if self.config.claude.resume_recap && !bridge.is_interactive() {
            Box::pin(self.offer_recap(&mut env)).await;
        }
        let spec = LaunchSpec {
            launch_id: prepared.launch.id.clone(),
            program: prepared.program.clone(),
            args: prepared.args.iter().map(OsString::from).collect(),
            cwd: bridge.cwd.clone(),
            env: svc_agent::environment::with_launch_id(env, &prepared.launch.id)
                .into_iter()
                .collect(),
            umask: self.umask,
            output: prepared.files.output_file(),
            identity_file: prepared.files.identity_file(),
            terminal: bridge.is_interactive().then(|| self.terminal(bridge, &prepared.files)),
        };
        let held = match self.host.launch(spec).await {
            Ok(held) => held,
            Err(error) => return self.not_started(id, generation, &error).await,
        };
        hit("spawn.after_fork").await;
        let (identity, keeper) = (held.identity().clone(), held.keeper().cloned());
        self.families.is_ours(id, generation);
        let fact = Fact::Held { agent: identity.clone(), keeper: keeper.clone() };
        match self.transitions.observe(id, generation, fact).await? {
            Changed::Now(known)
                if known.bridge.is_live() && known.bridge.process.as_ref() == Some(&identity) => {}
            // Forgotten, ended or taken by another generation, which only a broken lock allows: the
            // launcher ends without starting anything.
            Changed::Now(_)
            | Changed::Late
            | Changed::Corrupt
            | Changed::Refused(_)
            | Changed::Occupied
            | Changed::CapReached => return Ok(false),
        }
        hit("spawn.after_pid_saved").await;
        let processes: Vec<&ProcessIdentity> = std::iter::once(&identity).chain(&keeper).collect();
        if let Err(why) = self.enclose(bridge, &processes, &prepared.launch.id).await {
            drop(held);
            let error = LaunchError::NotReady(why);
            return self.not_started(id, generation, &error).await;
        }
        if let Err(error) = held.go().await {
            return self.not_started(id, generation, &error).await;
        }
        hit("spawn.after_exec").await;
        Ok(self.executed(id, generation).await)
    }

    /// Records that the agent runs; tells whether it could be recorded.
    ///
    /// A failure is no reason to say that nothing was started: whoever asked would start a second
    /// agent. The reconciler takes over what nobody watches.
    async fn executed(&self, id: &InstanceId, generation: u32) -> bool {
        for _ in 0..TRIES {
            match self.transitions.observe(id, generation, Fact::Executed).await {
                Ok(_) => return true,
                Err(error) => tracing::warn!(
                    bridge.id = %id, error = %error,
                    "the start of bridge {} is not recorded yet", id.short()
                ),
            }
            tokio::time::sleep(PAUSE).await;
        }
        false
    }

    /// Lets sessions of this launch begin with a recap of the conversation before them.
    ///
    /// Without its hook the variables do nothing, so what keeps it away is only told.
    async fn offer_recap(&self, env: &mut Variables) {
        let most = self.config.claude.resume_recap_max_chars;
        env.insert(recap::SWITCH.into(), "1".into());
        env.insert(recap::MOST_CHARS.into(), most.to_string().into());
        let installing = self.agent_config.install_hook(recap::HOOK, None);
        let why = match tokio::time::timeout(HOOK_PATIENCE, installing).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "another change of the agent's configuration takes long".to_owned(),
        };
        tracing::warn!(
            "sessions begin without a recap (claude.resume_recap), because its hook is not in the \
             agent's settings: {why}"
        );
    }

    /// Lets sessions of this launch ask for permissions in the inbox.
    ///
    /// Without its hook the variable does nothing, so what keeps it away is only told.
    async fn offer_approvals(&self, env: &mut Variables) {
        let socket = crate::asked::socket(&self.config.state_dir);
        env.insert(approval_hook::SOCKET.into(), socket.clone().into());
        let installing = self.agent_config.install_hook(approval_hook::HOOK, Some(socket));
        let why = match tokio::time::timeout(HOOK_PATIENCE, installing).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "another change of the agent's configuration takes long".to_owned(),
        };
        tracing::warn!(
            "sessions ask for permissions in their own client alone (claude.approval_hook), because its \
             hook is not in the agent's settings: {why}"
        );
    }

    /// The terminal of an Interactive Session.
    fn terminal(&self, bridge: &Bridge, files: &LogSet) -> TerminalSpec {
        let beside = |end: &str| files.directory().join(format!("{}{end}", files.stem()));
        TerminalSpec {
            cols: COLUMNS,
            rows: ROWS,
            scrollback_lines: SCROLLBACK_LINES,
            sidecar: beside(svc_keeper::sidecar::SUFFIX),
            socket_dir: self.config.state_dir.join("run").join("k"),
            keeper_log: beside(".keeper.log"),
            instance_id: bridge.id.clone(),
            project: bridge.project.clone(),
            worktree: bridge.worktree.as_ref().map(ToString::to_string),
            debug_file: Some(files.agent_file()),
            input_allowed: self.config.claude.terminal_input,
        }
    }

    /// Gives a held launch a scope of its own, as far as that is wanted and possible.
    /// The reason why it must not be started without one.
    async fn enclose(
        &self,
        bridge: &Bridge,
        processes: &[&ProcessIdentity],
        launch: &LaunchId,
    ) -> Result<(), String> {
        let wanted = self.config.claude.scope;
        if wanted == ScopeUse::Off {
            return Ok(());
        }
        let about = format!("Agent of {} ({})", bridge.project, bridge.id.short());
        let why = match (self.host.enclose(processes, launch, &about).await, wanted) {
            (Enclosed::Yes, _) => return Ok(()),
            (Enclosed::NoManager, ScopeUse::Require) => NO_MANAGER.to_owned(),
            (Enclosed::NoManager, ScopeUse::Auto | ScopeUse::Off) => return Ok(()),
            (Enclosed::Failed(why), _) => why,
        };
        if wanted == ScopeUse::Require {
            return Err(format!(
                "it got no systemd scope ({why}), and `claude.scope` is `require`; see `svc doctor`"
            ));
        }
        tracing::warn!(
            bridge.id = %bridge.id,
            "bridge {} runs without a systemd scope of its own: {why}; see `svc doctor`",
            bridge.id.short()
        );
        let words = format!(
            "the bridge of {} runs without a systemd scope of its own: {why}",
            bridge.project
        );
        self.read_model.notice("warn", "no_scope", &words);
        Ok(())
    }

    async fn not_started(
        &self,
        id: &InstanceId,
        generation: u32,
        error: &LaunchError,
    ) -> Result<bool, AppError> {
        let (reason, words) = match error {
            LaunchError::Exec { cause, .. } if cause.kind() == io::ErrorKind::NotFound => {
                (ExitReason::BinaryNotFound, format!("{error}: {cause}"))
            }
            LaunchError::Exec { cause, .. } | LaunchError::Launcher(cause) => {
                (ExitReason::ExecFailed, format!("{error}: {cause}"))
            }
            LaunchError::NotReady(_) => (ExitReason::ExecFailed, error.to_string()),
        };
        tracing::warn!(bridge.id = %id, "the agent was not started: {words}");
        let cause =
            Cause { detail: Some(svc_domain::redact::redact_text(&words)), ..Cause::plain(reason) };
        self.transitions.observe(id, generation, Fact::NotExecuted(cause)).await?;
        Ok(false)
    }

    /// Until when a launch of this process must be ready; commands give no deadline.
    pub(crate) fn deadline(&self) -> Option<svc_shared::Timestamp> {
        let is_server = self.transitions.registry.has_readers();
        is_server.then(|| self.transitions.clock.now().plus(self.config.claude.startup_grace))
    }

    /// Waits until a start has an outcome, at most `wait`. The row as it is then.
    pub(crate) async fn settled(&self, id: &InstanceId, wait: Duration) -> Option<Bridge> {
        let deadline = tokio::time::Instant::now() + wait;
        let mut changes = self.transitions.registry.copies.changes();
        loop {
            let bridge = self.transitions.registry.copies.bridge(id)?;
            let open = bridge.is_live() && bridge.status() == BridgeStatus::Starting;
            if !open {
                return Some(bridge);
            }
            // Whoever ends the process has the answer as it is; the launch itself is done.
            let over = tokio::select! {
                changed = tokio::time::timeout_at(deadline, changes.changed()) => changed.is_err(),
                () = self.tasks.shutdown().cancelled() => true,
            };
            if over {
                return Some(bridge);
            }
        }
    }
}
