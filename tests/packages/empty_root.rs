//! The static program where there is nothing else.

use crate::bridge::Caller;
use crate::programs::unpacked;
use crate::room::{Room, install, shell};
use crate::{path, run, simulator};
use std::fs;

const ENV: [(&str, &str); 5] = [
    ("PATH", "/bin"),
    ("HOME", "/home"),
    ("CLAUDE_CONFIG_DIR", "/home/agent"),
    ("AGENT_SIM", "1"),
    ("AGENT_SIM_READY_MS", "20"),
];

/// A shell may have an `svc` of its own.
///
/// It collects what is orphaned, as the first process of a container should.
const INIT: &str = "/bin/svc -c /svc.yml run & wait";

#[test]
fn the_static_program_does_the_main_job_in_a_root_with_nothing_else() {
    let (programs, root) = (unpacked(), tempfile::tempdir().unwrap());
    let root = root.path();
    install(&programs.path().join("svc"), root, "bin/svc");
    install(&simulator(), root, "bin/claude");
    install(&shell(), root, "bin/sh");
    for folder in ["home", "projects/app"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    let config = "projects_root: /projects\nstate_dir: /home/state\n\
                  claude: {binary: /bin/claude, node_from_nvm: false}\n";
    fs::write(root.join("svc.yml"), config).unwrap();
    run(path(&simulator()), &["init", path(&root.join("home/agent"))]);
    let mut room = Room::enter(root, &["/bin/sh", "-c", INIT], &ENV, 0);
    room.until("http://");
    let caller = Caller { room: &room, svc: vec!["/bin/svc", "-c", "/svc.yml"], env: ENV.to_vec() };
    caller.does_the_main_job("app");
    let told = caller.says(&["--version"]);
    assert!(told.starts_with("svc "), "{told}");
}
