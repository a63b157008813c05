//! Files of the agent or a person, read from disk as the service reads them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;
use svc_agent::home::AgentHome;
use svc_agent::jobs::{Jobs, roster};
use svc_agent::pointer::Found;
use svc_agent::registry::Registry;
use svc_domain::identity::LaunchId;

struct Workspace {
    dir: PathBuf,
    launch: LaunchId,
}

/// A directory of this process; in memory where the machine has one there.
static WORKSPACE: LazyLock<Workspace> = LazyLock::new(|| {
    let memory = PathBuf::from("/dev/shm");
    let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
    // Several runs may be under way; the fuzzer never ends in an orderly way.
    let dir = parent.join(format!("svc-fuzz-{}", std::process::id()));
    for inside in ["sessions", "jobs/0123abcd"] {
        std::fs::create_dir_all(dir.join(inside)).unwrap_or_else(|error| panic!("{error}"));
    }
    let launch = "0123456789abcdef0123456789abcdef".parse();
    Workspace { dir, launch: launch.unwrap_or_else(|error| panic!("{error}")) }
});

fn write(name: &str, data: &[u8]) -> PathBuf {
    let path = WORKSPACE.dir.join(name);
    std::fs::write(&path, data).unwrap_or_else(|error| panic!("{error}"));
    path
}

/// The bridge pointer of a project.
pub(crate) fn pointer(data: &[u8]) {
    let path = write("bridge-pointer.json", data);
    if let Found::Pointer(pointer) = svc_agent::pointer::read(&path) {
        let _ = pointer.reuse_expires_at();
        let _ = pointer.is_garbage(pointer.written_at);
        assert!(!format!("{pointer:?}").contains("session_0123456789"), "a credential is shown");
    }
}

/// A job's `state.json` and the roster of workers.
pub(crate) fn job_files(data: &[u8]) {
    write("jobs/0123abcd/state.json", data);
    let mut jobs = Jobs::default();
    let reading = jobs.read(&WORKSPACE.dir.join("jobs")).unwrap_or_else(|error| panic!("{error}"));
    let _ = format!("{:?}", reading.jobs);
    let _ = roster::read(&write("roster.json", data));
}

/// An entry of the agent's session registry.
pub(crate) fn registry(data: &[u8]) {
    write("sessions/4242.json", data);
    let mut registry = Registry::new(WORKSPACE.dir.join("sessions"));
    let reading = registry.read().unwrap_or_else(|error| panic!("{error}"));
    for entry in &reading.entries {
        let _ = (entry.is_background(), entry.state());
    }
}

/// The agent's own configuration file: trust, approvals.
pub(crate) fn trust(data: &[u8]) {
    write(".claude.json", data);
    let variables: BTreeMap<_, _> =
        [("CLAUDE_CONFIG_DIR".into(), WORKSPACE.dir.clone().into_os_string())].into();
    let Ok(home) = AgentHome::of_child(&variables) else { return };
    let locks = svc_process::locks::FileLocks::new(WORKSPACE.dir.join("locks"));
    let config = svc_agent::trust::AgentConfig::new(home, locks);
    if let Ok(known) = config.known() {
        let _ = known.is_trusted(&WORKSPACE.dir, None);
    }
}

/// What a launcher says it is.
pub(crate) fn launch_file(data: &[u8]) {
    let path = write("x.launch.json", data);
    if let Ok(Some(identity)) = svc_process::launcher::read_identity(&path, &WORKSPACE.launch) {
        assert!(identity.pid.get() > 1);
    }
}
