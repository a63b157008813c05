//! The Debian package in a Debian with a systemd of its own.

use crate::bridge::Caller;
use crate::room::Room;
use crate::{good, package, path, run, simulator, tools};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const UNIT: &str = "svc@me.service";
const ENV: [(&str, &str); 2] = [("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"), ("LANG", "C.UTF-8")];
/// What the account of the service has; the unit has the last three by a drop-in.
const OF_ME: [(&str, &str); 6] = [
    ("PATH", "/home/me/.local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ENV[1],
    ("HOME", "/home/me"),
    ("CLAUDE_CONFIG_DIR", "/home/me/agent"),
    ("AGENT_SIM", "1"),
    ("AGENT_SIM_READY_MS", "20"),
];
const SVC: [&str; 7] = ["runuser", "-u", "me", "--", "svc", "-c", "/etc/svc/me.yml"];
/// Its time starts nothing of the machine: every unit of Debian is switched off.
const TARGET: &str = "[Unit]\nDefaultDependencies=no\n";
const BOOT: [&str; 4] =
    ["/lib/systemd/systemd", "--system", "--unit=packages.target", "--log-level=info"];

/// A Debian with an account, an agent, and none of its own units.
fn machine() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    run("tar", &["-xf", path(&tools().join("debian.tar")), "-C", path(root)]);
    let system = root.join("usr/lib/systemd/system");
    for wants in fs::read_dir(&system).unwrap().flatten().map(|entry| entry.path()) {
        if wants.extension().is_some_and(|suffix| suffix == "wants") {
            fs::remove_dir_all(wants).unwrap();
        }
    }
    fs::write(root.join("etc/systemd/system/packages.target"), TARGET).unwrap();
    let environment: String =
        OF_ME[3..].iter().map(|(name, value)| format!("Environment={name}={value}\n")).collect();
    let drop_in = root.join("etc/systemd/system/svc@.service.d");
    fs::create_dir(&drop_in).unwrap();
    fs::write(drop_in.join("agent.conf"), format!("[Service]\n{environment}")).unwrap();
    let mut add = Command::new("/usr/sbin/chroot");
    add.arg(root).args(["useradd", "-m", "-u", "1000", "me"]).env_clear().envs(ENV);
    good(&mut add);
    crate::room::install(&simulator(), root, "home/me/.local/bin/claude");
    fs::create_dir_all(root.join("home/me/projects/app")).unwrap();
    run(path(&simulator()), &["init", path(&root.join("home/me/agent"))]);
    run("chown", &["-R", "1000:1000", path(&root.join("home/me"))]);
    dir
}

/// Everything below a root that the package manager does not keep for itself.
fn files(root: &Path) -> BTreeSet<String> {
    let mut find = Command::new("find");
    find.current_dir(root).args([".", "-xdev", "-path", "./var/lib/dpkg", "-prune"]);
    find.args(["-o", "-path", "./var/log", "-prune", "-o", "-path", "./home/me", "-prune"]);
    find.args(["-o", "-path", "./var/cache", "-prune", "-o", "-path", "./tmp/*", "-prune"]);
    good(find.args(["-o", "-print"])).lines().map(ToOwned::to_owned).collect()
}

/// The same package with a later number, and another program in it.
fn later(dir: &Path) -> PathBuf {
    let (tree, file) = (dir.join("later"), dir.join("later.deb"));
    run("dpkg-deb", &["-R", path(&package(".deb")), path(&tree)]);
    let control = tree.join("DEBIAN/control");
    let text = fs::read_to_string(&control).unwrap();
    let version = text.lines().find(|line| line.starts_with("Version: ")).unwrap();
    fs::write(&control, text.replace(version, &format!("{version}+later"))).unwrap();
    let mut program = fs::read(tree.join("usr/bin/svc")).unwrap();
    program.extend(b"later");
    fs::write(tree.join("usr/bin/svc"), program).unwrap();
    run("dpkg-deb", &["--root-owner-group", "-Znone", "-b", path(&tree), path(&file)]);
    file
}

fn properties(room: &Room, names: &str) -> String {
    room.does(&["systemctl", "show", "-p", names, UNIT], &ENV)
}

/// What the process of the service runs now.
fn digest_of_running(room: &Room) -> String {
    let main = room.does(&["systemctl", "show", "-p", "MainPID", "--value", UNIT], &ENV);
    let program = format!("/proc/{}/exe", main.trim());
    room.does(&["sha256sum", &program], &ENV).split(' ').next().unwrap().to_owned()
}

#[test]
fn h141_the_debian_package_is_installed_runs_is_upgraded_and_removed() {
    let dir = machine();
    let root = dir.path();
    let parts = tempfile::tempdir().unwrap();
    let before = files(root);
    let mut room = Room::enter(root, &BOOT, &[ENV[0], ("container", "docker")], 0);
    room.boots();
    for (from, to) in [(package(".deb"), "svc.deb"), (later(parts.path()), "later.deb")] {
        fs::copy(from, root.join("root").join(to)).unwrap();
    }

    // Installed: nothing starts by itself, and everything is where Debian looks for it.
    room.does(&["dpkg", "-i", "/root/svc.deb"], &ENV);
    room.does(&["sh", "-c", "! systemctl is-active svc@me"], &ENV);
    for file in [
        "/usr/share/bash-completion/completions/svc",
        "/usr/share/zsh/vendor-completions/_svc",
        "/usr/share/fish/vendor_completions.d/svc.fish",
        "/usr/share/man/man1/svc.1.gz",
        "/usr/share/man/man1/svc-start.1.gz",
        "/usr/share/man/man5/svc.yml.5.gz",
        "/usr/share/doc/svc/copyright",
        "/usr/lib/systemd/user/svc.service",
    ] {
        assert!(root.join(&file[1..]).is_file(), "{file} is missing");
    }
    room.does(&["bash", "-n", "/usr/share/bash-completion/completions/svc"], &ENV);
    let verify = ["systemd-analyze", "verify", "--man=no", UNIT];
    let told = crate::said(&room.tries(&verify, &ENV));
    assert!(!told.contains("svc@"), "{told}");

    // Enabled and started as the unit says, it does the main job.
    let config = "projects_root: /home/me/projects\n\
                  claude: {node_from_nvm: false}\n";
    fs::write(root.join("etc/svc/me.yml"), config).unwrap();
    run("chown", &["1000:1000", path(&root.join("etc/svc/me.yml"))]);
    room.does(&["systemctl", "enable", "--now", UNIT], &ENV);
    let told = properties(&room, "ActiveState,User,NRestarts");
    assert!(told.contains("ActiveState=active") && told.contains("User=me"), "{told}");
    let me = Caller { room: &room, svc: SVC.to_vec(), env: OF_ME.to_vec() };
    me.does_the_main_job("app");
    me.says(&["resume", "app"]);
    let bridge = me.bridge();
    assert_eq!(bridge.0, "running");

    // Upgraded: what runs goes on as it is, until it is told to begin the new program.
    let old = (properties(&room, "MainPID"), digest_of_running(&room));
    let done = room.tries(&["dpkg", "-i", "/root/later.deb"], &ENV);
    let told = crate::said(&done);
    assert!(done.status.success() && told.contains("svc restart"), "{told}");
    assert_eq!((properties(&room, "MainPID"), digest_of_running(&room)), old);
    me.says(&["restart"]);
    let new = digest_of_running(&room);
    assert_ne!(new, old.1, "the new program runs");
    assert!(room.does(&["sha256sum", "/usr/bin/svc"], &ENV).starts_with(&new));
    assert!(properties(&room, "ActiveState").contains("=active"));
    assert_eq!(me.bridge(), bridge, "the bridge is the same");

    // Removed: the service ends, its bridges and what belongs to the account stay.
    room.does(&["dpkg", "-r", "svc"], &ENV);
    assert!(properties(&room, "ActiveState").contains("=inactive"));
    assert!(!root.join("usr/bin/svc").exists());
    assert!(root.join("etc/svc/me.yml").is_file());
    let pid = bridge.1.unwrap().to_string();
    room.does(&["test", "-d", &format!("/proc/{pid}")], &ENV);

    // Installed again, the service finds its bridge.
    room.does(&["dpkg", "-i", "/root/svc.deb"], &ENV);
    room.does(&["systemctl", "start", UNIT], &ENV);
    assert_eq!(me.bridge(), bridge);
    me.says(&["stop", "app"]);

    // Purged: no file is left of what the package and `systemctl enable` brought.
    fs::remove_file(root.join("etc/svc/me.yml")).unwrap();
    room.does(&["dpkg", "-P", "svc"], &ENV);
    assert!(properties(&room, "ActiveState").contains("=inactive"));
    let failed = room.does(&["systemctl", "list-units", "--failed", "--no-legend"], &ENV);
    assert_eq!(failed.trim(), "", "failed units");
    for name in ["svc.deb", "later.deb"] {
        fs::remove_file(root.join("root").join(name)).unwrap();
    }
    let after = files(root);
    let left: Vec<_> = after.difference(&before).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}
