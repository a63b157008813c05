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

pub(crate) fn write(name: &str, data: &[u8]) -> PathBuf {
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

/// Keeps nothing, and reads each file to its end.
struct Nowhere;

impl svc_archive::Sink for Nowhere {
    fn directory(&mut self, path: &svc_archive::MemberPath) -> std::io::Result<()> {
        let _ = path.to_path();
        Ok(())
    }

    fn file(
        &mut self,
        path: &svc_archive::MemberPath,
        _: svc_archive::Facts,
        content: &mut dyn std::io::Read,
    ) -> std::io::Result<()> {
        assert!(!path.to_path().is_absolute() && !path.as_str().contains(".."), "{path:?}");
        std::io::copy(content, &mut std::io::sink()).map(drop)
    }
}

/// A backup archive, as it comes or packed, and an archive of a release.
pub(crate) fn archive(data: &[u8]) {
    use std::io::Write as _;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(data).unwrap_or_else(|error| panic!("{error}"));
    let packed = packed.finish().unwrap_or_else(|error| panic!("{error}"));
    let limits = svc_archive::Limits { total_bytes: 1 << 20, ..Default::default() };
    for bytes in [data, &packed] {
        let path = write("backup.tar.gz", bytes);
        let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{error}"));
        let stop = svc_archive::Stop::default();
        if let Err(error) = svc_archive::read(file, &limits, &mut Nowhere, &stop) {
            assert!(!error.to_string().is_empty());
        }
        let _ = svc_archive::read_program(bytes, "svc");
    }
}
