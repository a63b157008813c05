//! An [`App`] for tests, over a real registry, real files and a given process host.
//! A bridge and a process for it.

use crate::{Agent, App, Parts, ProjectSource, Role};
use async_trait::async_trait;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use svc_agent::cli::{AgentCli, AgentSetup};
use svc_domain::bridge::{Anchor, Bridge, Launch, Live, Stage, State};
use svc_domain::identity::{BootId, LaunchId, Pid, ProcessIdentity, Verdict};
use svc_ports::process::{
    Carrier, Exited, HeldLaunch, LaunchError, LaunchSpec, ProcessFacts, Signal, Signalled, Target,
};
use svc_ports::{Clock, ProcessHost};
use svc_process::Host;
use svc_projects::{Projects, Rules, scan};
use svc_shared::Timestamp;
use svc_shared::status::{Origin, PermissionMode, ResumeMode, SpawnMode};
use svc_store::{Access, Store};
use tokio::sync::watch;

/// A clock that stands still.
pub(crate) struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(7)
    }
}

/// Of [`bridge`].
pub(crate) const ID: &str = "b0000000-0000-4000-8000-000000000001";

/// A bridge of the project of [`app`], ready since [`Still`], without a process.
pub(crate) fn bridge(tree: &Path) -> Bridge {
    Bridge {
        id: ID.parse().unwrap(),
        project: "api".parse().unwrap(),
        cwd: tree.join("projects/api"),
        custom_name: None,
        resume_mode: ResumeMode::Standard,
        spawn_mode: SpawnMode::SameDir,
        permission_mode: PermissionMode::Default,
        origin: Origin::Spawned,
        generation: 1,
        state: State::Live(Live { stage: Stage::Ready, stop_requested: false }),
        status_since: Still.now(),
        started_at: Some(Still.now()),
        launch: None,
        process: None,
        keeper: None,
        worktree: None,
        conversation: None,
        anchor: Anchor::default(),
        notice: None,
        quarantine: None,
        restarts: Default::default(),
        reboot: Default::default(),
        on_limit: None,
    }
}

/// A launch of the project of [`app`].
pub(crate) fn launch() -> Launch {
    Launch {
        id: crate::bridges::launch_id::new_launch_id().unwrap(),
        argv: ["claude"].into_iter().collect(),
        log_stem: "api-7-1".to_owned(),
        relaunched: false,
    }
}

/// A process in a group of its own. Ends with the test, however that ends.
pub(crate) struct Sleeper(Child);

impl Sleeper {
    pub(crate) fn new() -> Self {
        Self::with([])
    }

    /// The same as the process of a launch.
    pub(crate) fn of(launch: &LaunchId) -> Self {
        Self::with([("SVC_LAUNCH_ID", launch.as_str())])
    }

    fn with<const N: usize>(variables: [(&str, &str); N]) -> Self {
        let mut sleep = Command::new("sleep");
        Self(sleep.arg("600").process_group(0).envs(variables).spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::new(self.0.id().into()).unwrap()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// The machine as it is, but for what a test changes.
pub(crate) struct Machine {
    pub host: Host,
    /// Processes in uninterruptible sleep.
    /// The kernel takes every signal and none has an effect.
    pub ignores_signals: bool,
    /// Threads that asked for a process.
    pub inspected_on: Mutex<Vec<ThreadId>>,
}

impl Machine {
    pub(crate) fn new(host: Host) -> Self {
        Self { host, ignores_signals: false, inspected_on: Mutex::default() }
    }
}

#[async_trait]
impl ProcessHost for Machine {
    fn boot_id(&self) -> &BootId {
        self.host.boot_id()
    }

    async fn launch(&self, spec: LaunchSpec) -> Result<Box<dyn HeldLaunch>, LaunchError> {
        self.host.launch(spec).await
    }

    fn probe(&self, identity: &ProcessIdentity) -> Verdict {
        self.host.probe(identity)
    }

    fn inspect(&self, pid: Pid) -> Option<ProcessFacts> {
        self.inspected_on.lock().unwrap().push(std::thread::current().id());
        self.host.inspect(pid)
    }

    fn launch_of(&self, identity: &ProcessIdentity) -> Option<LaunchId> {
        self.host.launch_of(identity)
    }

    fn is_own_child(&self, identity: &ProcessIdentity) -> bool {
        self.host.is_own_child(identity)
    }

    fn find_launch(&self, launch_id: &LaunchId) -> Option<ProcessFacts> {
        self.host.find_launch(launch_id)
    }

    fn launch_members(&self, launch_id: &LaunchId) -> Vec<ProcessFacts> {
        self.host.launch_members(launch_id)
    }

    fn remains(&self, first: Option<&ProcessIdentity>, launch_id: &LaunchId) -> Vec<ProcessFacts> {
        self.host.remains(first, launch_id)
    }

    fn carriers(&self) -> Vec<Carrier> {
        self.host.carriers()
    }

    fn processes(&self) -> Vec<ProcessFacts> {
        self.host.processes()
    }

    fn signal(&self, identity: &ProcessIdentity, signal: Signal, target: Target) -> Signalled {
        if !self.ignores_signals {
            return self.host.signal(identity, signal, target);
        }
        match self.host.probe(identity) {
            Verdict::Same => Signalled::Sent,
            Verdict::Gone(_) => Signalled::Gone,
            Verdict::Unknown => Signalled::Unproven,
        }
    }

    fn exited(&self, identity: &ProcessIdentity) -> Exited {
        self.host.exited(identity)
    }

    fn descendants(&self, identity: &ProcessIdentity) -> Vec<ProcessFacts> {
        self.host.descendants(identity)
    }
}

struct Fixed(Arc<Projects>);

impl ProjectSource for Fixed {
    fn snapshot(&self) -> Arc<Projects> {
        Arc::clone(&self.0)
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        None
    }
}

/// A service in an empty directory, with one project `api` in `projects`.
/// It supervises nothing.
pub(crate) async fn app(tree: &Path, host: Arc<dyn ProcessHost>) -> App {
    let (projects, state) = (tree.join("projects"), tree.join("state"));
    fs::create_dir_all(projects.join("api")).unwrap();
    fs::create_dir(&state).unwrap();
    let text = format!("projects_root: {}\nstate_dir: {}\n", projects.display(), state.display());
    let config = svc_config::load_text(&text, tree).unwrap().config;
    let store = Store::open(&state, Access::ReadWrite { snapshot: false }).await.unwrap();
    let agent = AgentCli::new(AgentSetup {
        binary: config.claude.binary.clone(),
        env: Default::default(),
        cwd: state.clone(),
        locks: state.join("locks"),
    });
    let rules = Rules { root: projects, refused: vec![state], private: Vec::new() };
    let found = scan(&rules);
    App::new(Parts {
        config,
        origin: Default::default(),
        role: Role::Server,
        demo: false,
        store,
        host,
        clock: Arc::new(Still),
        agent: Arc::new(Agent::new(agent, None)),
        watcher: svc_watch::Watcher::new(),
        projects: Arc::new(Fixed(Arc::new(found))),
        project_rules: rules,
        refs: None,
        umask: 0o022,
        port: 0,
    })
}
