//! `svc install-service`: units that the manager itself accepts (H113).

use crate::harness::World;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use svc_skip::skip;

#[tokio::test]
async fn h113_every_unit_that_is_made_is_valid() {
    let world = World::new();
    let forms: [&[&str]; 4] = [&[], &["--harden"], &["--user-unit"], &["--user-unit", "--harden"]];
    for (number, form) in forms.iter().enumerate() {
        let printed = world.cli(&[&["install-service", "systemd"], *form].concat()).await.ok();
        assert!(printed.stderr.contains("daemon-reload"), "{}", printed.stderr);
        let dir = world.root.join(format!("unit{number} with blanks"));
        let file = dir.join("svc.service");
        let write = ["install-service", "systemd", "--write", file.to_str().unwrap()];
        world.cli(&[&write[..], form].concat()).await.ok();
        assert_eq!(fs::read_to_string(&file).unwrap(), printed.stdout);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o644);
        let mut verify = Command::new("systemd-analyze");
        verify.args(["verify", "--man=no"]).arg(&file);
        match verify.output() {
            Ok(done) => {
                let said = String::from_utf8_lossy(&done.stderr);
                let about = said.lines().filter(|line| line.contains("svc.service"));
                assert_eq!(about.count(), 0, "{form:?}: {said}\n{}", printed.stdout);
            }
            Err(error) => skip!("systemd-analyze does not run: {error}"),
        }
    }
    // Nobody said as whom it runs: root, with nothing of this account on its path.
    let unit = world.cli(&["install-service", "systemd"]).await.ok();
    assert!(unit.stderr.contains("run as root; add `--user NAME`"), "{}", unit.stderr);
    assert!(!unit.stdout.contains("User="), "{}", unit.stdout);
    let home = world.root.join("home");
    let path = |unit: &str| unit.lines().find(|line| line.contains("\"PATH=")).unwrap().to_owned();
    assert!(!path(&unit.stdout).contains(home.to_str().unwrap()), "{}", unit.stdout);
    for form in [&["--user", "root"][..], &["--user-unit"]] {
        let unit = world.cli(&[&["install-service", "systemd"], form].concat()).await.ok();
        assert!(!unit.stderr.contains("run as root"), "{form:?}: {}", unit.stderr);
    }
    let ran = world.cli(&["install-service", "systemd", "--write", "/proc/svc.service"]).await;
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    for advice in ["--write PATH", "--user-unit", "by sudo, with --user"] {
        assert!(ran.stderr.contains(advice), "{}", ran.stderr);
    }
    let list = world.cli(&["install-service", "launchd"]).await.ok().stdout;
    assert!(list.contains("<key>RunAtLoad</key><true/>"), "{list}");
    let windows = world.cli(&["install-service", "windows"]).await.ok();
    assert!(windows.stdout.contains("shawl add"));
    assert!(windows.stderr.contains("does not run on Windows"), "{}", windows.stderr);
    for (args, words) in [
        (&["install-service", "launchd", "--harden"][..], "systemd only"),
        (&["install-service", "systemd", "--user", "no-such-user-here"], "no user"),
        (&["install-service", "windows", "--write"], "--write PATH"),
    ] {
        let ran = world.cli(args).await;
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
    }
}
