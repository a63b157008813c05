//! Under a real systemd as process 1 of its own namespaces: restarting and stopping the unit
//! leaves the bridges, the next start finds each once, readiness is announced.

use crate::harness::{World, service, within};
use rustix::process::{Pid, Signal, getuid, kill_process};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PROGRAM: &str = "/lib/systemd/systemd";

/// A system manager with nothing but our unit, and its process id outside.
struct Manager {
    outside: std::process::Child,
    init: i32,
}

impl Drop for Manager {
    fn drop(&mut self) {
        // As process 1 of its namespace it takes everything inside with it.
        if let Some(init) = Pid::from_raw(self.init) {
            let _ = kill_process(init, Signal::KILL); // gone already: fine
        }
        let _ = self.outside.kill();
        let _ = self.outside.wait();
    }
}

/// Why there is no systemd to test with.
fn obstacle() -> Option<String> {
    if !getuid().is_root() {
        return Some("it needs root".into());
    }
    if !Path::new(PROGRAM).exists() {
        return Some(format!("{PROGRAM} is missing; install the package `systemd`"));
    }
    let tried = Command::new("unshare")
        .args(["--pid", "--mount", "--uts", "--ipc", "--cgroup", "--fork", "--mount-proc", "true"])
        .stderr(Stdio::null())
        .status();
    (!tried.is_ok_and(|status| status.success())).then(|| "namespaces are refused here".into())
}

fn boot(world: &World) -> Manager {
    let units = world.root.join("units");
    fs::create_dir(&units).unwrap();
    let environment: String = world
        .environment()
        .iter()
        .map(|(name, value)| {
            format!("Environment=\"{}={}\"\n", name.to_string_lossy(), value.to_string_lossy())
        })
        .collect();
    let unit = format!(
        "[Unit]\nDefaultDependencies=no\n[Service]\nType=notify\nKillMode=process\n\
         ExecStart={} run --config {}\n{environment}StandardError=append:{}\n\
         TimeoutStartSec=30\nTimeoutStopSec=20\n",
        service().canonicalize().unwrap().display(),
        world.config.display(),
        world.root.join("service.log").display(),
    );
    fs::write(units.join("svc.service"), unit).unwrap();
    fs::write(units.join("blackbox.target"), "[Unit]\nDefaultDependencies=no\n").unwrap();
    // A manager may tidy up the temporary directory; ours has no unit for that, but cover it.
    let needed = [world.root.as_path(), &service(), &crate::harness::simulator()]
        .iter()
        .any(|path| path.starts_with("/tmp"));
    let cover = if needed { "" } else { "mount -t tmpfs tmpfs /tmp\n" };
    let script = world.root.join("boot.sh");
    fs::write(
        &script,
        format!(
            "#!/bin/sh\nset -e\nmount --make-rprivate /\nmount -t tmpfs tmpfs /run\n\
             mkdir /run/u\ncp {}/* /run/u/\n{cover}\
             export container=docker SYSTEMD_UNIT_PATH=/run/u SYSTEMD_LOG_TARGET=console\n\
             exec {PROGRAM} --system --unit=blackbox.target --log-level=notice\n",
            units.display()
        ),
    )
    .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let log = fs::File::create(world.root.join("manager.log")).unwrap();
    let mut unshare = Command::new("unshare");
    unshare
        .args(["--pid", "--mount", "--uts", "--ipc", "--cgroup", "--fork", "--mount-proc"])
        .arg(&script)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .process_group(0);
    let outside = unshare.spawn().unwrap();
    Manager { outside, init: 0 }
}

impl Manager {
    /// Waits until the manager answers. It says so nowhere that could be watched from here.
    async fn up(&mut self, world: &World) {
        let children = format!("/proc/{0}/task/{0}/children", self.outside.id());
        let wait = async {
            let mut look = tokio::time::interval(std::time::Duration::from_millis(50));
            loop {
                look.tick().await;
                let text = fs::read_to_string(&children).unwrap_or_default();
                let Some(init) = text.split_whitespace().next() else { continue };
                self.init = init.parse().unwrap();
                let (code, state) = self.ask(&["is-system-running"]).await;
                if code == Some(0) || state.trim() == "running" || state.trim() == "degraded" {
                    return;
                }
            }
        };
        let log = world.root.join("manager.log");
        if tokio::time::timeout(crate::harness::DEADLINE, wait).await.is_err() {
            panic!("no manager: {}", fs::read_to_string(log).unwrap_or_default());
        }
    }

    /// `systemctl` inside.
    async fn ask(&self, args: &[&str]) -> (Option<i32>, String) {
        let mut ask = tokio::process::Command::new("nsenter");
        ask.args(["-t", &self.init.to_string(), "-m", "-p", "-u", "-i", "-C", "systemctl"])
            .args(args)
            .stdin(Stdio::null());
        let done = within("systemctl", ask.output()).await.unwrap();
        let said = [done.stdout, done.stderr].concat();
        (done.status.code(), String::from_utf8_lossy(&said).into_owned())
    }

    async fn must(&self, world: &World, args: &[&str]) -> String {
        let (code, said) = self.ask(args).await;
        let log = || fs::read_to_string(world.root.join("service.log")).unwrap_or_default();
        assert_eq!(code, Some(0), "systemctl {args:?}: {said}\n{}", log());
        said
    }
}

#[tokio::test]
async fn f81_a_unit_leaves_its_bridges_and_finds_each_of_them_once() {
    if let Some(why) = obstacle() {
        eprintln!("skipped: systemd: {why}");
        return;
    }
    // `/run` is covered inside; the temporary directory may be too.
    let world = World::inside(&PathBuf::from(env!("CARGO_TARGET_TMPDIR")), serde_json::json!({}));
    for name in ["a", "b"] {
        world.project(name);
    }
    let mut manager = boot(&world);
    manager.up(&world).await;

    // A unit of type notify is started when it has said so.
    manager.must(&world, &["start", "svc.service"]).await;
    let status = manager
        .must(&world, &["show", "-p", "ActiveState,StatusText,NotifyAccess", "svc.service"])
        .await;
    assert!(status.contains("ActiveState=active"), "{status}");
    let base = format!("http://127.0.0.1:{}", world.port());
    let client = crate::harness::Client::new(&base);
    client.run("a").await;
    client.run("b").await;
    let mut before: Vec<_> =
        world.bridges().iter().map(|bridge| (bridge.pid, bridge.start_ticks)).collect();
    before.sort_unstable();
    assert_eq!(before.len(), 2);

    manager.must(&world, &["restart", "svc.service"]).await;
    assert_same(&world, &base, &before).await;

    manager.must(&world, &["stop", "svc.service"]).await;
    let (_, state) = manager.ask(&["is-active", "svc.service"]).await;
    assert_eq!(state.trim(), "inactive", "it ended well");
    let mut left: Vec<_> =
        world.bridges().iter().map(|bridge| (bridge.pid, bridge.start_ticks)).collect();
    left.sort_unstable();
    assert_eq!(left, before, "stopping the unit leaves the bridges");

    manager.must(&world, &["start", "svc.service"]).await;
    assert_same(&world, &base, &before).await;
    let client = crate::harness::Client::new(&base);
    for name in ["a", "b"] {
        let stopped = client.stop(name).await.expect(200).instance();
        assert_eq!(stopped.status.to_string(), "stopped");
    }
    assert!(world.bridges().is_empty());
    manager.must(&world, &["stop", "svc.service"]).await;
    eprintln!("systemd: restart and stop left 2 bridges, each was found once");
}

async fn assert_same(world: &World, base: &str, before: &[(i32, u64)]) {
    let mut page = crate::harness::Events::open(base).await;
    page.until_status("a", "running").await;
    page.until_status("b", "running").await;
    assert_eq!(page.state.instances.len(), 2, "each once");
    assert!(page.state.instances.values().all(|row| row.generation == 1));
    let mut after: Vec<_> =
        world.bridges().iter().map(|bridge| (bridge.pid, bridge.start_ticks)).collect();
    after.sort_unstable();
    assert_eq!(after, before);
}
