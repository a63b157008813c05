//! The image, by the tools that registries and container engines use.

use crate::bridge::Caller;
use crate::room::{Room, install};
use crate::{good, package, path, run, simulator};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// What the image says about itself, and its root.
fn unpacked(dir: &std::path::Path) -> (Value, std::path::PathBuf) {
    let archive = format!("oci-archive:{}", path(&package(".oci.tar")));
    let told = run("skopeo", &["inspect", "--config", &archive]);
    let config: Value = serde_json::from_str(&told).unwrap();
    let layout = dir.join("layout");
    let image = format!("oci:{}:svc", path(&layout));
    run("skopeo", &["--insecure-policy", "copy", &archive, &image]);
    let bundle = dir.join("bundle");
    let image = format!("{}:svc", path(&layout));
    good(Command::new("umoci").args(["unpack", "--image", &image]).arg(&bundle));
    (config, bundle.join("rootfs"))
}

#[test]
fn the_image_is_known_to_skopeo_and_umoci_and_its_program_runs() {
    let dir = tempfile::tempdir().unwrap();
    let (told, root) = unpacked(dir.path());
    assert_eq!((&told["architecture"], &told["os"]), (&"amd64".into(), &"linux".into()));
    let config = &told["config"];
    assert_eq!(config["Entrypoint"], serde_json::json!(["/usr/bin/svc"]));
    assert_eq!(config["User"], "1000:1000");
    let env: Vec<(&str, &str)> = config["Env"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one.as_str().unwrap().split_once('=').unwrap())
        .collect();
    // As an engine starts it: its user, its folder, its variables and nothing else.
    let as_user = ["--userspec=1000:1000", path(&root)];
    let program = ["/usr/bin/svc", "--version"];
    let mut chroot = Command::new("/usr/sbin/chroot");
    chroot.args(as_user).args(program).env_clear().envs(env.iter().copied());
    assert!(good(&mut chroot).starts_with("svc "));
    let home = fs::metadata(root.join("home/svc")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&home.permissions()) & 0o7777, 0o1777);
}

#[test]
fn the_image_does_the_main_job_once_an_agent_is_added() {
    let dir = tempfile::tempdir().unwrap();
    let (_, root) = unpacked(dir.path());
    install(&simulator(), &root, "usr/bin/claude");
    let home = root.join("home/svc");
    fs::create_dir_all(home.join("projects/app")).unwrap();
    let config = "projects_root: /home/svc/projects\n\
                  claude: {binary: /usr/bin/claude, node_from_nvm: false}\n";
    fs::write(home.join("svc.yml"), config).unwrap();
    run(path(&simulator()), &["init", path(&home.join("agent"))]);
    run("chown", &["-R", "1000:1000", path(&home)]);
    let env = [
        ("PATH", "/usr/bin:/bin"),
        ("HOME", "/home/svc"),
        ("SVC_CONFIG", "/home/svc/svc.yml"),
        ("CLAUDE_CONFIG_DIR", "/home/svc/agent"),
        ("AGENT_SIM", "1"),
        ("AGENT_SIM_READY_MS", "20"),
    ];
    // As an engine starts it: the program itself is the first process.
    let mut room = Room::enter(&root, &["/usr/bin/svc", "run"], &env, 1000);
    room.until("http://");
    let caller = Caller {
        room: &room,
        svc: vec!["/usr/bin/svc", "-c", "/home/svc/svc.yml"],
        env: env.to_vec(),
    };
    caller.does_the_main_job("app");
}
