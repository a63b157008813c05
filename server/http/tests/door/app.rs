//! The real use-cases over a temporary tree: two projects and three ended bridges.
//!
//! The agent program does not exist, and nothing supervises, so that a test decides what readers
//! see.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use svc_agent::cli::{AgentCli, AgentSetup};
use svc_app::refs::Refs;
use svc_app::{Agent, App, Parts, ProjectSource, Role};
use svc_domain::bridge::{Anchor, Bridge, Ended, Outcome, State};
use svc_ports::Clock;
use svc_process::{Host, HostOptions};
use svc_projects::{Projects, Rules, scan};
use svc_shared::Timestamp;
use svc_shared::status::{Origin, PermissionMode, ResumeMode, SpawnMode};
use svc_store::{Access, Cap, Inserted, Store};
use svc_watch::Watcher;
use tokio::sync::watch;

static NOW: LazyLock<Timestamp> = LazyLock::new(|| Timestamp::from_millis(1_767_225_600_000));

/// The bridges in the registry: id, project and how it ended.
const BRIDGES: [(&str, &str, Outcome); 3] = [
    ("b0000000-0000-4000-8000-000000000001", "api", Outcome::Failed),
    ("a0000000-0000-4000-8000-000000000002", "api", Outcome::Stopped),
    ("a1000000-0000-4000-8000-000000000003", "has space", Outcome::Crashed),
];

/// The use-cases with more lines of configuration.
/// Without a home of its user the agent's own files cannot be found.
pub async fn over(tree: &Path, configuration: &str, home: Option<&Path>, clock: &Arc<Hand>) -> App {
    let (projects, state) = (tree.join("projects"), tree.join("state"));
    for directory in [projects.join("api"), projects.join("has space"), state.clone()] {
        std::fs::create_dir_all(directory).unwrap();
    }
    if let Some(home) = home {
        record_jobs(home, &projects.join("api"));
    }
    let text = format!(
        "projects_root: {}\nstate_dir: {}\nclaude:\n  binary: {}\n{configuration}",
        projects.display(),
        state.display(),
        tree.join("no-agent").display()
    );
    let config = svc_config::load_text(&text, tree).unwrap().config;
    let store = Store::open(&state, Access::ReadWrite { snapshot: false }).await.unwrap();
    for (id, project, outcome) in BRIDGES {
        let inserted = store
            .insert(&ended(id, project, outcome, tree), Cap { max_live: None }, *NOW)
            .await
            .unwrap();
        assert_eq!(inserted, Inserted::Yes);
    }
    let agent = AgentCli::new(AgentSetup {
        binary: config.claude.binary.clone(),
        env: home.map(|home| ("HOME".into(), home.into())).into_iter().collect(),
        cwd: state.clone(),
        locks: state.join("locks"),
    });
    let rules = Rules { root: projects, refused: vec![state], private: Vec::new() };
    let found = scan(&rules);
    App::new(Parts {
        config,
        origin: Default::default(),
        role: Role::Command,
        demo: false,
        store,
        host: Arc::new(Host::new(HostOptions::default()).unwrap()),
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        agent: Arc::new(Agent::new(agent, None)),
        watcher: Watcher::new(),
        projects: Arc::new(Fixed(Arc::new(found))),
        project_rules: rules,
        refs: Some(Refs::from_secret(&[7; 32])),
        umask: 0o022,
        port: 0,
    })
}

/// Ended jobs of a project: a usual one, one with bypass, one without a session.
fn record_jobs(home: &Path, cwd: &Path) {
    let session = "b0000000-059b-4282-b68e-91a110e7f06b";
    for (id, session, flags) in [
        ("b0000000", session, vec![]),
        ("b0000001", session, vec!["--permission-mode", "bypassPermissions"]),
        ("b0000002", "", vec![]),
    ] {
        let state = serde_json::json!({
            "state": "done", "tempo": "idle", "detail": "", "intent": "x", "output": null,
            "sessionId": session, "cwd": cwd, "respawnFlags": flags,
        });
        let dir = home.join(".claude/jobs").join(id);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("state.json"), state.to_string()).unwrap();
    }
}

fn ended(id: &str, project: &str, outcome: Outcome, tree: &Path) -> Bridge {
    Bridge {
        id: id.parse().unwrap(),
        project: project.parse().unwrap(),
        cwd: tree.join("projects").join(project),
        custom_name: None,
        resume_mode: ResumeMode::Standard,
        spawn_mode: SpawnMode::SameDir,
        permission_mode: PermissionMode::Default,
        origin: Origin::Spawned,
        generation: 1,
        state: State::Ended(Ended {
            outcome,
            at: *NOW,
            intentional: outcome == Outcome::Stopped,
            forced: false,
            reason: None,
            exit_code: None,
            exit_signal: None,
            detail: None,
        }),
        status_since: *NOW,
        started_at: None,
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

/// A clock that stands still until a test moves it on.
#[derive(Debug, Default)]
pub struct Hand(AtomicU64);

impl Hand {
    pub fn go_on(&self, millis: u64) {
        self.0.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        NOW.plus(Duration::from_millis(self.0.load(Ordering::SeqCst)))
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
