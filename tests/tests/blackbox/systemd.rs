//! Under a real systemd as process 1 of its own namespaces.
//!
//! Restarting and stopping the unit leaves the bridges, the next start finds each once, and
//! readiness is announced. Each bridge has a scope: nothing escapes its end, and a manager that
//! hangs delays no start.

use crate::harness::{Client, Events, Process, World, gone, service, within};
use rustix::process::{Pid, Signal, getuid, kill_process};
use serde_json::json;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use svc_skip::skip;

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

/// What a session needs of a world, as lines of a unit.
fn environment(world: &World) -> String {
    let line = |(name, value): &(std::ffi::OsString, std::ffi::OsString)| {
        format!("Environment=\"{}={}\"\n", name.to_string_lossy(), value.to_string_lossy())
    };
    world.environment().iter().map(line).collect()
}

fn boot(world: &World, kill_mode: &str) -> Manager {
    let environment = environment(world);
    let unit = format!(
        "[Unit]\nDefaultDependencies=no\n[Service]\nType=notify\nKillMode={kill_mode}\n\
         ExecStart={} run --config {}\n{environment}StandardError=append:{}\n\
         TimeoutStartSec=30\nTimeoutStopSec=20\n",
        service().canonicalize().unwrap().display(),
        world.config.display(),
        world.root.join("service.log").display(),
    );
    boot_with(world, &unit, "")
}

/// A manager with this unit, and what lies over it.
fn boot_with(world: &World, unit: &str, over: &str) -> Manager {
    let units = world.root.join("units");
    fs::create_dir_all(units.join("svc.service.d")).unwrap();
    fs::write(units.join("svc.service"), unit).unwrap();
    fs::write(units.join("svc.service.d/over.conf"), over).unwrap();
    fs::write(units.join("blackbox.target"), "[Unit]\nDefaultDependencies=no\n").unwrap();
    // A manager may tidy up the temporary directory; ours has no unit for that, but cover it.
    let needed = [world.root.as_path(), &service(), &crate::harness::simulator()]
        .iter()
        .any(|path| path.starts_with("/tmp"));
    let cover = if needed { "" } else { "mount -t tmpfs tmpfs /tmp\n" };
    let script = world.root.join("boot.sh");
    svc_programs::write(
        &script,
        format!(
            "#!/bin/sh\nset -e\nmount --make-rprivate /\nmount -t tmpfs tmpfs /run\n\
             mkdir /run/u\ncp -r {}/* /run/u/\n{cover}\
             export container=docker SYSTEMD_UNIT_PATH=/run/u SYSTEMD_LOG_TARGET=console\n\
             exec {PROGRAM} --system --unit=blackbox.target --log-level=notice\n",
            units.display()
        ),
    )
    .unwrap();
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
    /// Waits until the manager answers. Nothing that can be watched tells when.
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

    /// Stops or continues it, as a manager that hangs would.
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.init).unwrap(), signal).unwrap();
    }

    async fn must(&self, world: &World, args: &[&str]) -> String {
        let (code, said) = self.ask(args).await;
        let log = || fs::read_to_string(world.root.join("service.log")).unwrap_or_default();
        assert_eq!(code, Some(0), "systemctl {args:?}: {said}\n{}", log());
        said
    }
}

/// `/run` is covered inside; the temporary directory may be too.
fn world_with(settings: serde_json::Value) -> World {
    World::inside(&PathBuf::from(env!("CARGO_TARGET_TMPDIR")), settings)
}

#[tokio::test]
async fn f81_a_unit_leaves_its_bridges_and_finds_each_of_them_once() {
    if let Some(why) = obstacle() {
        skip!("{why}");
    }
    let world = world_with(json!({ "claude": { "scope": "off" } }));
    for name in ["a", "b"] {
        world.project(name);
    }
    let mut manager = boot(&world, "process");
    manager.up(&world).await;

    // A unit of type notify is started when it has said so.
    manager.must(&world, &["start", "svc.service"]).await;
    let status = manager
        .must(&world, &["show", "-p", "ActiveState,StatusText,NotifyAccess", "svc.service"])
        .await;
    assert!(status.contains("ActiveState=active"), "{status}");
    let base = format!("http://127.0.0.1:{}", world.port());
    let client = Client::new(&base);
    client.run("a").await;
    client.run("b").await;
    let before = identities(&world);
    assert_eq!(before.len(), 2);

    manager.must(&world, &["restart", "svc.service"]).await;
    assert_same(&world, &base, &before).await;

    manager.must(&world, &["stop", "svc.service"]).await;
    let (_, state) = manager.ask(&["is-active", "svc.service"]).await;
    assert_eq!(state.trim(), "inactive", "it ended well");
    let left = identities(&world);
    assert_eq!(left, before, "stopping the unit leaves the bridges");

    manager.must(&world, &["start", "svc.service"]).await;
    assert_same(&world, &base, &before).await;
    let client = Client::new(&base);
    for name in ["a", "b"] {
        let stopped = client.stop(name).await.expect(200).instance();
        assert_eq!(stopped.status.to_string(), "stopped");
    }
    assert!(world.bridges().is_empty());
    manager.must(&world, &["stop", "svc.service"]).await;
    eprintln!("systemd: restart and stop left 2 bridges, each was found once");
}

#[tokio::test]
async fn h113_the_hardened_unit_serves_and_its_watchdog_ends_a_service_that_hangs() {
    if let Some(why) = obstacle() {
        skip!("{why}");
    }
    let world = world_with(json!({ "claude": { "scope": "off" } }));
    for name in ["a", "b"] {
        world.project(name);
    }
    let made = ["install-service", "systemd", "--harden", "--user", "root"];
    let unit = world.cli(&made).await.ok().stdout;
    assert!(unit.contains("WatchdogSec=60") && unit.contains("ProtectSystem=strict"), "{unit}");
    // Nothing but times and what a test world has in its environment.
    let over = format!(
        "[Unit]\nDefaultDependencies=no\nWants=\nAfter=\n[Service]\nWatchdogSec=2\nRestartSec=100ms\n\
         {}StandardError=append:{}\n",
        environment(&world),
        world.root.join("service.log").display(),
    );
    let mut manager = boot_with(&world, &unit, &over);
    manager.up(&world).await;
    manager.must(&world, &["start", "svc.service"]).await;
    let base = format!("http://127.0.0.1:{}", world.port());
    let client = Client::new(&base);
    client.run("a").await;
    client.run("b").await;
    let before = identities(&world);
    for (pid, _) in &before {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        assert!(status.contains("NoNewPrivs:\t1"), "sessions inherit what the unit forbids");
    }

    manager.must(&world, &["kill", "--signal=STOP", "--kill-whom=main", "svc.service"]).await;
    let wait = async {
        let mut look = tokio::time::interval(std::time::Duration::from_millis(100));
        loop {
            look.tick().await;
            let (_, said) =
                manager.ask(&["show", "-p", "NRestarts,ActiveState", "svc.service"]).await;
            if said.contains("NRestarts=1") && said.contains("ActiveState=active") {
                return;
            }
        }
    };
    within("another service after the watchdog", wait).await;
    assert_same(&world, &base, &before).await;
    for name in ["a", "b"] {
        client.stop(name).await.expect(200);
    }
    manager.must(&world, &["stop", "svc.service"]).await;
}

/// Pid and start of every bridge, in order.
fn identities(world: &World) -> Vec<(i32, u64)> {
    let bridges = world.bridges();
    let mut all: Vec<_> = bridges.iter().map(|one| (one.pid, one.start_ticks)).collect();
    all.sort_unstable();
    all
}

async fn assert_same(world: &World, base: &str, before: &[(i32, u64)]) {
    let mut page = Events::open(base).await;
    page.until_status("a", "running").await;
    page.until_status("b", "running").await;
    assert_eq!(page.state.instances.len(), 2, "each once");
    assert!(page.state.instances.values().all(|row| row.generation == 1));
    let after = identities(world);
    assert_eq!(after, before);
}

/// The process that a bridge with knob `child_mode: escaped` forked away.
async fn escaped(world: &World, project: &str) -> Process {
    let dir = world.projects.join(project).canonicalize().unwrap();
    let look = || {
        let mut found = world.processes().into_iter();
        found.find(|process| {
            process.cwd.as_deref() == Some(dir.as_path())
                && process.launch_id.is_none()
                && process.argv.iter().any(|argument| argument == "unmarked")
        })
    };
    let wait = async {
        let mut tick = tokio::time::interval(std::time::Duration::from_millis(50));
        loop {
            tick.tick().await;
            if let Some(found) = look() {
                return found;
            }
        }
    };
    within("the process that escapes", wait).await
}

fn groups_of(process: &Process) -> String {
    fs::read_to_string(format!("/proc/{}/cgroup", process.pid)).unwrap_or_default()
}

async fn check(client: &Client) -> serde_json::Value {
    let doctor = client.get("/api/doctor").await.expect(200).json();
    let checks = doctor["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == "systemd").unwrap().clone()
}

#[tokio::test]
async fn f81_f41_h104_a_scope_of_its_own_outlives_the_unit_and_lets_nothing_escape() {
    if let Some(why) = obstacle() {
        skip!("{why}");
    }
    let world = world_with(json!({ "claude": { "scope": "require" } }));
    for name in ["a", "b", "c"] {
        world.project_with(name, json!({ "children": 1, "child_mode": "escaped" }));
    }
    // The unit takes along whatever is in it, as units do by default.
    let mut manager = boot(&world, "control-group");
    manager.up(&world).await;
    manager.must(&world, &["start", "svc.service"]).await;
    let base = format!("http://127.0.0.1:{}", world.port());
    let client = Client::new(&base);
    let mut left = Vec::new();
    for name in ["a", "b", "c"] {
        client.run(name).await;
        let child = escaped(&world, name).await;
        let bridge = world.bridges_of(name).remove(0);
        let scope = format!("svc-bridge-{}.scope", bridge.launch_id.as_deref().unwrap());
        for process in [&bridge, &child] {
            let groups = groups_of(process);
            assert!(groups.contains(&format!("svc-bridges.slice/{scope}")), "{groups}");
        }
        manager.must(&world, &["is-active", &scope]).await;
        left.push((bridge, child));
    }
    let told = check(&client).await;
    assert_eq!(told["status"], "ok", "{told}");
    assert_eq!(client.get("/api/strays").await.expect(200).json(), json!([]), "they are known");

    manager.must(&world, &["restart", "svc.service"]).await;
    manager.must(&world, &["stop", "svc.service"]).await;
    for (bridge, child) in &left {
        assert!(bridge.is_alive() && child.is_alive(), "{bridge:?} {child:?}");
    }
    manager.must(&world, &["start", "svc.service"]).await;
    let mut page = Events::open(&base).await;
    for name in ["a", "b", "c"] {
        page.until_status(name, "running").await;
    }
    let client = Client::new(&base);

    // A stop takes everything along, and so does a crash.
    client.stop("a").await.expect(200);
    assert!(!left[0].1.is_alive(), "it outlived the answer");
    left[1].0.signal(Signal::KILL);
    page.until_status("b", "crashed").await;
    gone(&left[1].1).await;

    // Where nobody was there to end it, it is a stray that can be named and killed.
    let main = manager.must(&world, &["show", "-p", "MainPID", "--value", "svc.service"]).await;
    assert_ne!(main.trim(), "0");
    manager.must(&world, &["kill", "-s", "KILL", "--kill-who=main", "svc.service"]).await;
    left[2].0.signal(Signal::KILL);
    gone(&left[2].0).await;
    let edit = "UPDATE bridges SET status = 'stopped', phase = 'exited', ended_at = 2, \
         intentional_stop = 1, exit_reason = 'operator_stop', revision = revision + 1";
    world.sql(edit).await.unwrap();
    manager.ask(&["reset-failed"]).await;
    within("another process of the unit", async {
        // The manager may not have heard of the end yet: then a start changes nothing.
        loop {
            manager.must(&world, &["start", "svc.service"]).await;
            let shown = ["show", "-p", "ActiveState", "-p", "MainPID", "--value", "svc.service"];
            let now = manager.must(&world, &shown).await;
            if now.lines().any(|line| line == "active") && !now.lines().any(|l| l == main.trim()) {
                return;
            }
        }
    })
    .await;
    let client = Client::new(&base);
    assert!(left[2].1.is_alive());
    let listed = client.get("/api/strays").await.expect(200).json();
    assert_eq!((&listed[0]["kind"], &listed[0]["project"]), (&json!("leftover"), &json!("c")));
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    let pid = &listed[0]["pid"];
    client.post(&format!("/api/strays/{pid}/kill")).await.expect(200);
    gone(&left[2].1).await;

    // What is empty is collected.
    let units = manager.must(&world, &["list-units", "--all", "--no-legend", "svc-bridge-*"]).await;
    assert_eq!(units.trim(), "", "{units}");
    manager.must(&world, &["stop", "svc.service"]).await;
    eprintln!("systemd: 3 scopes outlived the unit, what escaped from each was ended");
}

#[tokio::test]
async fn f81_a_manager_that_hangs_holds_up_no_start_and_where_a_scope_is_required_none_is_made() {
    if let Some(why) = obstacle() {
        skip!("{why}");
    }
    let world = world_with(json!({ "claude": { "scope": "auto" } }));
    for name in ["a", "b", "c"] {
        world.project(name);
    }
    let mut manager = boot(&world, "process");
    manager.up(&world).await;
    manager.must(&world, &["start", "svc.service"]).await;
    let base = format!("http://127.0.0.1:{}", world.port());
    let client = Client::new(&base);
    manager.signal(Signal::STOP);
    for name in ["a", "b"] {
        client.run(name).await;
        let groups = groups_of(&world.bridges_of(name).remove(0));
        assert!(!groups.contains("svc-bridge-"), "{groups}");
    }
    let told = check(&client).await;
    assert_eq!(told["status"], "warn", "{told}");
    manager.signal(Signal::CONT);
    for name in ["a", "b"] {
        client.stop(name).await.expect(200);
    }

    world.configure(json!({ "claude": { "scope": "require" } }));
    manager.must(&world, &["restart", "svc.service"]).await;
    let client = Client::new(&base);
    manager.signal(Signal::STOP);
    let refused = client.launch("c").await.instance();
    assert_eq!(refused.status.to_string(), "error");
    let detail = serde_json::to_string(&refused).unwrap();
    assert!(detail.contains("claude.scope") && detail.contains("did not answer"), "{detail}");
    assert!(world.bridges_of("c").is_empty(), "nothing was started");
    assert_eq!(check(&client).await["status"], "fail");
    manager.signal(Signal::CONT);
    manager.must(&world, &["stop", "svc.service"]).await;
}

/// Why no control group here can have a memory limit.
fn memory_obstacle() -> Option<String> {
    let controllers = fs::read_to_string("/proc/cgroups").unwrap_or_default();
    let has_memory = controllers.lines().any(|line| {
        let mut fields = line.split_whitespace();
        fields.next() == Some("memory") && fields.next_back() == Some("1")
    });
    (!has_memory).then(|| "the kernel has no memory controller enabled".into())
}

#[tokio::test]
async fn f80_a_bridge_that_the_kernel_kills_for_memory_says_so() {
    if let Some(why) = obstacle().or_else(memory_obstacle) {
        skip!("{why}");
    }
    let world = world_with(json!({ "claude": { "scope": "require" } }));
    world.project_with("greedy", json!({ "leak_ms": 100, "leak_mb": 30 }));
    world.project("killed");
    let mut manager = boot(&world, "process");
    manager.up(&world).await;
    manager.must(&world, &["start", "svc.service"]).await;
    let base = format!("http://127.0.0.1:{}", world.port());
    let client = Client::new(&base);
    let mut page = Events::open(&base).await;
    client.run("greedy").await;
    client.run("killed").await;
    let bridge = world.bridges_of("greedy").remove(0);
    let scope = format!("svc-bridge-{}.scope", bridge.launch_id.as_deref().unwrap());
    manager.must(&world, &["set-property", "--runtime", &scope, "MemoryMax=200M"]).await;

    let ended = page.until_status("greedy", "crashed").await;
    assert_eq!(ended.exit_signal, Some(9), "{ended:?}");
    assert_eq!(ended.exit_reason.map(|reason| reason.to_string()), Some("out_of_memory".into()));

    // The same signal from a person is something else, although another bridge ran out of memory.
    world.bridges_of("killed").remove(0).signal(Signal::KILL);
    let ended = page.until_status("killed", "crashed").await;
    assert_eq!(ended.exit_reason.map(|reason| reason.to_string()), Some("killed".into()));

    // The unit goes on (a part of H113).
    let state = manager.must(&world, &["is-active", "svc.service"]).await;
    assert_eq!(state.trim(), "active");
    manager.must(&world, &["stop", "svc.service"]).await;
    eprintln!("systemd: a bridge above the limit of its scope ended with `out_of_memory`");
}
