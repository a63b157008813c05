//! A machine without disk space, descriptors or processes, and very large trees.

use crate::harness::{
    Client, Server, SmallDisk, Start, World, gone, limit, limit_as, open_descriptors, service,
    simulator, within,
};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use svc_skip::skip;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// F14, F62, H91: the disk fills up under a running bridge and gets space again.
#[tokio::test]
async fn f14_f62_h91_a_full_disk_refuses_writes_harms_no_bridge_and_is_recovered_from() {
    let world = World::new();
    let Some(disk) = SmallDisk::at(&world.state, 100) else {
        skip!("this user may not mount a small file system");
    };
    world.project_with("runs", json!({ "chatter_ms": 5 }));
    world.project("new");
    let server = world.serve().await;
    let running = server.client.run("runs").await;

    let ballast = disk.fill();
    let refused = server.client.launch("new").await;
    assert!([503, 507].contains(&refused.status), "{}: {}", refused.status, refused.text());
    assert_eq!(refused.json()["code"], "disk_full", "{}", refused.text());
    assert!(world.starts("new").is_empty() && world.bridges_of("new").is_empty());
    let shown = server.client.instances().await;
    assert_eq!(shown.len(), 1, "no half record: {shown:?}");
    assert_eq!(shown[0].bridge_pid, running.bridge_pid);
    assert_eq!(shown[0].status.to_string(), "running");
    server.client.get("/api/state").await.expect(200);
    server.client.get("/healthz").await.expect(200);
    // Its end cannot be recorded now; whatever is answered, it is no lie and no crash later.
    let stopped = server.client.stop("runs").await;
    assert!([200, 503, 507].contains(&stopped.status), "{}", stopped.text());

    fs::remove_file(ballast).unwrap();
    let stopped = server.client.stop("runs").await.expect(200).instance();
    assert_eq!(stopped.status.to_string(), "stopped", "{stopped:?}");
    server.client.run("new").await;
    server.client.resume(stopped.instance_id.as_str()).await.expect(200);
    let found = world.agree().await;
    assert_eq!((found.rows.len(), found.bridges.len()), (2, 2));
    server.kill().await;
}

/// H95: below the floor no bridge is launched, and the running one can be stopped.
#[tokio::test]
async fn h95_below_the_floor_of_free_space_nothing_new_is_begun() {
    let world = World::new();
    let Some(disk) = SmallDisk::at(&world.state, 200) else {
        skip!("this user may not mount a small file system");
    };
    world.project("runs");
    world.project("new");
    let server = world.serve().await;
    let running = server.client.run("runs").await;
    // 40 MiB are left of 200: room for every file, and less than the floor of 64 MiB.
    let ballast = world.state.join("ballast");
    fs::write(&ballast, vec![b'x'; 160 * 1024 * 1024]).unwrap();
    let refused = server.client.launch("new").await;
    assert_eq!(refused.refused(507), "disk_full");
    let preflight = server.client.get("/api/projects/new/preflight").await.expect(200).json();
    let checks = preflight["checks"].as_array().unwrap();
    let told = checks.iter().find(|check| check["check"] == "disk" || check["name"] == "disk");
    let told = told.unwrap_or_else(|| panic!("{preflight}"));
    assert_ne!(told["ok"], json!(true), "{preflight}");
    let job = json!({ "project": "new", "prompt": "work", "trust": true });
    let job = server.client.post_json("/api/v1/agents", &job).await;
    assert_eq!(job.refused(507), "disk_full");
    assert!(world.starts("new").is_empty() && crate::jobs::dispatches(&world).is_empty());
    // What was begun can be ended, and recorded.
    let stopped = server.client.stop(running.instance_id.as_str()).await.expect(200).instance();
    assert_eq!(stopped.status.to_string(), "stopped");
    fs::remove_file(ballast).unwrap();
    server.client.run("new").await;
    world.agree().await;
    drop((server, disk));
}

/// H79: no descriptor is left for connections or launches; then all is as before.
#[tokio::test]
async fn h79_a_service_out_of_descriptors_fails_launches_cleanly_and_recovers() {
    let world = World::new();
    world.project("app");
    world.project("other");
    let server = world.serve().await;
    server.client.run("other").await;
    let floor = open_descriptors(server.pid) + 12;
    if !limit(server.pid, "nofile", &format!("{floor}:20000")) {
        skip!("the limit of another process cannot be set here");
    }
    let address = server.base.trim_start_matches("http://").to_owned();
    let mut crowd = Vec::new();
    for _ in 0..60 {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(b"GET /api/state HTTP/1.1\r\nHost: localhost\r\n").await.unwrap();
        crowd.push(stream);
    }
    // Whatever becomes of a launch now, it is told or the connection is dropped; nobody hangs.
    let launch = launch_raw(&server, &address, "app").await;
    assert!(!launch.starts_with("HTTP/1.1 500"), "{launch}");
    drop(crowd);
    assert!(limit(server.pid, "nofile", "20000:20000"));
    // A client of its own: the pool of the other holds connections that were shed.
    let client = Client::new(&server.base);
    let answered = within("an answer", async {
        loop {
            let request = client.request(reqwest::Method::POST, "/api/v1/instances");
            let request = request.json(&json!({ "project": "app" }));
            if let Ok(reply) = client.try_send(request).await
                && [200, 201].contains(&reply.status)
            {
                return reply.instance();
            }
        }
    });
    let row = answered.await;
    assert_eq!(row.project, "app");
    let mut page = server.events().await;
    page.until("one of them runs", |state| {
        let mut rows = state.instances.values();
        rows.find(|row| row.project == "app" && row.status.to_string() == "running").map(|_| ())
    })
    .await;
    let found = world.agree().await;
    assert_eq!(found.bridges.len(), 2, "{found:?}");
    assert!(open_descriptors(server.pid) < floor + 40, "descriptors leak");
    drop(page);
}

/// A launch on a new connection, which the service may refuse; returns the answer.
async fn launch_raw(server: &Server<'_>, address: &str, project: &str) -> String {
    let body = json!({ "project": project }).to_string();
    let head = format!(
        "POST /api/v1/instances?wait=0 HTTP/1.1\r\nHost: {address}\r\nOrigin: {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        server.base,
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    if stream.write_all(head.as_bytes()).await.is_err() {
        return String::new();
    }
    let mut answer = Vec::new();
    // Not accepted before descriptors are free again: then there is no answer to wait for.
    let patience = std::time::Duration::from_secs(5);
    let _ = tokio::time::timeout(patience, stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// F82, H80: the user of the service may have no more processes.
/// Root has no such limit, so the service runs as another user.
#[tokio::test]
async fn f82_h80_a_start_without_a_free_process_fails_with_its_reason_and_leaves_nothing() {
    if !rustix::process::geteuid().is_root() {
        skip!("only root can start a service of another user");
    }
    let world = World::inside(Path::new("/tmp"), json!({}));
    world.project("app");
    // No account of this machine, so that nobody else's processes count.
    let uid = 63_271;
    // Programs below a directory that only root may enter are nobody else's to run.
    let service = brought(&world.root, &service());
    let agent = brought(&world.root, &simulator());
    world.configure(json!({ "claude": { "binary": agent } }));
    give(&world.root, uid);
    let start = Start { uid: Some(uid), program: Some(service), ..Start::default() };
    let server = world.serve_as(start).await;
    server.client.get("/api/state").await.expect(200);
    server.open_connections().await;

    let alive = threads_of(uid);
    assert!(limit_as(Some(uid), server.pid, "nproc", &format!("{alive}:4096")));
    let failed = server.client.launch("app").await;
    assert_eq!(failed.status, 201, "{}", failed.text());
    let failed = failed.instance();
    assert_eq!(failed.status.to_string(), "error", "{failed:?}");
    assert_eq!(failed.exit_reason.map(|why| why.to_string()), Some("exec_failed".into()));
    let detail = failed.error_detail.unwrap_or_default();
    assert!(detail.contains("temporarily unavailable"), "{detail}");
    assert!(world.bridges().is_empty());
    server.client.get("/healthz").await.expect(200);
    server.client.get("/api/v1/projects").await.expect(200);

    assert!(limit_as(Some(uid), server.pid, "nproc", "4096:4096"));
    let resumed = server.client.resume(failed.instance_id.as_str()).await;
    assert_eq!(resumed.expect(200).instance().status.to_string(), "running");
    world.agree().await;
}

/// A program under its own name in another directory.
pub fn brought(dir: &Path, program: &Path) -> PathBuf {
    let to = dir.join(program.file_name().unwrap());
    // No link: its owner is changed.
    svc_programs::copy(program, &to).unwrap();
    to
}

/// Makes a tree somebody else's.
pub fn give(path: &Path, uid: u32) {
    std::os::unix::fs::lchown(path, Some(uid), Some(uid)).unwrap();
    if path.is_dir() && !path.is_symlink() {
        for entry in fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path(), uid);
        }
    }
}

/// Threads of a user: what the kernel counts.
fn threads_of(uid: u32) -> usize {
    let status = |pid: &Path| fs::read_to_string(pid.join("status")).unwrap_or_default();
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let own = processes.filter(|entry| {
        let line = status(&entry.path());
        line.lines().any(|line| line.starts_with(&format!("Uid:\t{uid}\t")))
    });
    own.map(|entry| fs::read_dir(entry.path().join("task")).map_or(0, Iterator::count)).sum()
}

/// H104: five thousand descendants that ignore every signal that can be caught.
/// They have groups and sessions of their own, and the service may open fewer files than that.
#[tokio::test]
async fn h104_a_tree_of_five_thousand_is_ended_whole() {
    const TREE: usize = 5000;
    // Making so many takes long where others work, too.
    const PATIENCE: Duration = Duration::from_secs(300);
    if most_processes() < TREE + 1000 {
        skip!("this machine allows no {TREE} processes");
    }
    let patient = json!({ "stop_grace_seconds": 1, "startup_grace_seconds": PATIENCE.as_secs() });
    let world = World::with(json!({ "claude": patient }));
    let knobs = json!({
        "children": TREE, "child_mode": "ignore_signals", "child_life_ms": 600_000,
        "ignore_sigint": true, "ready_ms": 0,
    });
    world.project_with("app", knobs);
    let server = world.serve().await;
    if !limit(server.pid, "nofile", "20000:20000") {
        skip!("the agent may not open enough pipes here");
    }
    let mut page = server.events().await;
    page.limit = PATIENCE;
    server.client.launch("app").await.expect(201);
    page.until_status("app", "running").await;
    drop(page);
    let bridge = world.bridges_of("app").remove(0);
    let of_bridge = || {
        let children = format!("/proc/{0}/task/{0}/children", bridge.pid);
        fs::read_to_string(children).unwrap_or_default().split_whitespace().count()
    };
    world.until("the tree", || (of_bridge() >= TREE).then_some(())).await;
    assert!(limit(server.pid, "nofile", "1024:20000"));
    let stopped = server.client.stop("app").await.expect(200).instance();
    assert_eq!(stopped.status.to_string(), "stopped", "{stopped:?}");
    gone(&bridge).await;
    let left = world.trees();
    assert!(left.is_empty(), "left of the tree: {left:?}");
}

/// How many processes the kernel and the control groups around this one allow.
fn most_processes() -> usize {
    let number = |path: PathBuf| -> Option<usize> {
        fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok())
    };
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let groups =
        groups.lines().filter_map(|line| line.rsplit_once(':')).flat_map(|(kind, path)| {
            let root =
                if kind.ends_with("pids") { "/sys/fs/cgroup/pids" } else { "/sys/fs/cgroup" };
            let around = Path::new(path).ancestors();
            around.map(move |group| format!("{root}{}/pids.max", group.display()))
        });
    let all = groups.map(PathBuf::from).chain([PathBuf::from("/proc/sys/kernel/pid_max")]);
    all.filter_map(number).min().unwrap_or(usize::MAX)
}
