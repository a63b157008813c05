//! An [`App`] for tests, over a real registry, real files and a given process host.

use crate::{Agent, App, Parts, ProjectSource, Role};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use svc_agent::cli::{AgentCli, AgentSetup};
use svc_ports::{Clock, ProcessHost};
use svc_projects::{Projects, Rules, scan};
use svc_shared::Timestamp;
use svc_store::{Access, Store};
use tokio::sync::watch;

/// A clock that stands still.
pub(crate) struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(7)
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

/// A service in an empty directory, with one project `api` in `projects`. It supervises nothing.
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
    let found = scan(&Rules { root: projects, refused: vec![state] });
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
        refs: None,
        umask: 0o022,
        port: 0,
    })
}
