//! Every documented status is reached, below both prefixes.
//!
//! A status that cannot be reached in this build is listed with its reason.

use crate::harness::{Reply, Server, SmallDisk, World, simulator};
use crate::jobs::{dir, endless, id_of, job, quick, until_alive};
use reqwest::{Method, RequestBuilder};
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use svc_skip::skip;

const NO_DISK: &str = "this user may not mount a small file system";

/// Asks below one prefix, and remembers what was answered.
struct Asker<'s, 'w> {
    server: &'s Server<'w>,
    prefix: &'static str,
    seen: Mutex<BTreeSet<String>>,
}

impl Asker<'_, '_> {
    /// Asks an operation about `value`, which stands for its placeholder.
    async fn ask(
        &self,
        operation: &str,
        value: &str,
        tune: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Reply {
        let (method, pattern) = operation.split_once(' ').unwrap();
        let path = match (pattern.find('{'), pattern.find('}')) {
            (Some(start), Some(end)) => {
                format!("{}{value}{}", &pattern[..start], &pattern[end + 1..])
            }
            _ => format!("{pattern}{value}"),
        };
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let client = &self.server.client;
        let request = tune(client.request(method, &format!("{}{path}", self.prefix)));
        let reply = client.send(request).await;
        self.seen.lock().unwrap().insert(format!("{operation} {}", reply.status));
        reply
    }

    async fn get(&self, operation: &str, value: &str) -> Reply {
        self.ask(operation, value, |request| request).await
    }

    async fn send(&self, operation: &str, value: &str, body: Value) -> Reply {
        self.ask(operation, value, |request| request.json(&body)).await
    }
}

const SPAWN: &str = "POST /instances";
const ONE: &str = "GET /instances/{instance_id}";
const STOP: &str = "DELETE /instances/{instance_id}";
const RESUME: &str = "POST /instances/{instance_id}/resume";
const DISPATCH: &str = "POST /agents";
const STOP_JOB: &str = "DELETE /agents/{job_id}";
const RESUME_JOB: &str = "POST /agents/{job_id}/resume";

/// Why a documented status is not reached here.
fn reason(operation: &str, status: &str, has_small_disk: bool) -> Option<&'static str> {
    let is_reading = operation.starts_with("GET ");
    match status {
        "401" => Some("without authentication there is no missing credential"),
        "403" if is_reading => Some("no credential is limited yet, and reading has no origin"),
        "502" if operation.ends_with("/instances") || operation == RESUME => {
            Some("only the daemon of Direct Sessions fails this way")
        }
        "503" if is_reading => Some("only during the end of the service: server/http/tests/door"),
        "507" if !has_small_disk => Some(NO_DISK),
        _ => None,
    }
}

#[tokio::test]
async fn every_documented_status_is_reached_below_the_versioned_prefix() {
    if !Box::pin(reach_all("/api/v1")).await {
        skip!("{NO_DISK}");
    }
}

#[tokio::test]
async fn every_documented_status_is_reached_below_the_short_prefix() {
    if !Box::pin(reach_all("/api")).await {
        skip!("{NO_DISK}");
    }
}

/// Answers whether the statuses of a full disk were reached too.
async fn reach_all(prefix: &'static str) -> bool {
    let world = World::new();
    let disk = SmallDisk::at(&world.state, 100);
    let agent = world.root.join("the-agent");
    std::os::unix::fs::symlink(simulator(), &agent).unwrap();
    world.configure(json!({ "claude": { "binary": agent } }));
    for project in ["app", "other", "runs", "ended", "later"] {
        world.project(project);
    }
    world.untrusted("untrusted");
    world.project_with("at-work", endless());
    world.project_with("over", quick("done"));
    world.project_with("refuses", json!({ "bg": "rc1" }));
    let mut deaf = endless();
    deaf["job_ignore_sigint"] = json!(true);
    world.project_with("deaf", deaf);
    let server = world.serve().await;
    let asker = Asker { server: &server, prefix, seen: Mutex::default() };
    let documented = documented(&server).await;

    at_the_door(&asker, &documented).await;
    instances(&asker).await;
    let locks = locks_of_a_launch(&asker, &world.state).await;
    tokio::join!(jobs(&asker, &world), held_project(&asker, &locks));
    std::fs::remove_file(&agent).unwrap();
    without_an_agent(&asker, &world).await;
    std::os::unix::fs::symlink(simulator(), &agent).unwrap();
    if let Some(disk) = &disk {
        full_disk(&asker, &world, disk).await;
    }

    let all: BTreeSet<(&String, &String)> =
        documented.iter().flat_map(|(name, found)| found.iter().map(move |s| (name, s))).collect();
    let seen = asker.seen.lock().unwrap();
    for (operation, status) in all {
        let is_seen = seen.contains(&format!("{operation} {status}"));
        let reason = reason(operation, status, disk.is_some());
        assert!(is_seen || reason.is_some(), "{operation} never answered {status}: {seen:#?}");
        assert!(!is_seen || reason.is_none(), "{operation} did answer {status}: {reason:?}");
    }
    disk.is_some()
}

/// The statuses of each public operation.
async fn documented(server: &Server<'_>) -> BTreeMap<String, BTreeSet<String>> {
    let document = server.client.get("/openapi.json").await.expect(200).json();
    let mut found = BTreeMap::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        let Some(pattern) = path.strip_prefix("/api/v1") else { continue };
        for (method, operation) in operations.as_object().unwrap() {
            let statuses = operation["responses"].as_object().unwrap().keys().cloned().collect();
            found.insert(format!("{} {pattern}", method.to_uppercase()), statuses);
        }
    }
    assert_eq!(found.len(), 13, "{:?}", found.keys());
    found
}

/// What is refused before anybody looks what it is about.
async fn at_the_door(asker: &Asker<'_, '_>, documented: &BTreeMap<String, BTreeSet<String>>) {
    let large = "x".repeat(2 * 1024 * 1024);
    for (operation, statuses) in documented {
        let value = if operation.contains('{') { "00000000" } else { "" };
        let foreign = asker.ask(operation, value, |r| r.header("Host", "evil.example")).await;
        assert_eq!(foreign.refused(421), "host_not_allowed", "{operation}");
        if !operation.starts_with("GET ") {
            let page = asker.ask(operation, value, |r| r.header("Origin", "https://evil.example"));
            assert_eq!(page.await.refused(403), "origin_check_failed", "{operation}");
        }
        if statuses.contains("415") {
            let text = asker.ask(operation, value, |r| r.body("{}")).await;
            assert_eq!(text.refused(415), "invalid_json_type", "{operation}");
            let body = json!({ "project": large });
            assert_eq!(asker.send(operation, value, body).await.refused(413), "too_large");
        }
        if operation.starts_with("GET ") && value.is_empty() {
            asker.get(operation, "").await.expect(200);
        }
    }
    for (operation, query) in [("GET /projects", "?trust=x"), ("GET /instances", "?status=x")] {
        asker.get(operation, query).await.expect(422);
    }
}

async fn instances(asker: &Asker<'_, '_>) {
    let spawn = |body: Value| asker.send(SPAWN, "", body);
    spawn(json!({})).await.expect(422);
    assert_eq!(spawn(json!({ "project": "nope" })).await.refused(404), "unknown_project");
    assert_eq!(spawn(json!({ "project": "untrusted" })).await.refused(409), "not_trusted");
    let hosted = json!({ "project": "app", "channel": "hosted" });
    assert_eq!(spawn(hosted).await.refused(503), "hosted_unavailable");
    for project in ["runs", "ended"] {
        spawn(json!({ "project": project })).await.expect(201);
    }
    asker.get(STOP, "ended").await.expect(200);
    let first = spawn(json!({ "project": "app" })).await.expect(201).instance();
    spawn(json!({ "project": "app" })).await.expect(200);
    let id = first.instance_id.as_str();
    asker.get(ONE, id).await.expect(200);
    asker.get(STOP, id).await.expect(200);
    asker.get(RESUME, id).await.expect(200);
    asker.get(STOP, id).await.expect(200);
    let second = spawn(json!({ "project": "app" })).await.expect(201).instance();
    asker.get(STOP, second.instance_id.as_str()).await.expect(200);
    for operation in [ONE, STOP] {
        assert_eq!(asker.get(operation, "app").await.refused(409), "ambiguous", "{operation}");
    }
    for operation in [ONE, STOP, RESUME] {
        assert_eq!(asker.get(operation, "nope").await.refused(404), "unknown_instance");
    }
    // Of seventeen ids two begin alike.
    let mut ids = vec![id.to_owned(), second.instance_id.to_string()];
    let shared = |ids: &[String]| {
        let mut firsts: Vec<&str> = ids.iter().map(|id| &id[..1]).collect();
        firsts.sort_unstable();
        firsts.windows(2).find(|two| two[0] == two[1]).map(|two| two[0].to_owned())
    };
    let prefix = loop {
        if let Some(prefix) = shared(&ids) {
            break prefix;
        }
        let more = spawn(json!({ "project": "app" })).await.expect(201).instance().instance_id;
        asker.get(STOP, more.as_str()).await.expect(200);
        ids.push(more.to_string());
    };
    assert_eq!(asker.get(RESUME, &prefix).await.refused(409), "ambiguous");
    // Without a live one, the one that ran last is resumed.
    let resumed = asker.get(RESUME, "app").await.expect(200).instance();
    assert_eq!(
        (resumed.instance_id.as_str(), resumed.generation),
        (ids[ids.len() - 1].as_str(), 2)
    );
    asker.send(RESUME, id, json!({ "trust": 5 })).await.expect(422);
}

async fn jobs(asker: &Asker<'_, '_>, world: &World) {
    let mut events = asker.server.events().await;
    let dispatch = |project: &str| {
        asker.send(DISPATCH, "", json!({ "project": project, "prompt": "look around" }))
    };
    let at_work = id_of(&dispatch("at-work").await);
    let deaf = id_of(&dispatch("deaf").await);
    let over = id_of(&dispatch("over").await);
    asker.send(DISPATCH, "", json!({})).await.expect(422);
    assert_eq!(dispatch("nope").await.refused(404), "unknown_project");
    assert_eq!(dispatch("untrusted").await.refused(409), "not_trusted");
    assert_eq!(dispatch("refuses").await.refused(502), "agent_failed");
    for operation in [STOP_JOB, RESUME_JOB] {
        assert_eq!(asker.get(operation, "0123abcd").await.refused(404), "unknown_job");
        asker.get(operation, "nope").await.expect(422);
    }
    until_alive(&mut events, &at_work, "working").await;
    assert_eq!(asker.get(RESUME_JOB, &at_work).await.refused(409), "still_live");
    asker.get(STOP_JOB, &at_work).await.expect(200);
    events
        .until("the end of a job", |state| {
            job(state, &over).filter(|job| job.state == "done" && !job.worker_alive)
        })
        .await;
    asker.get(RESUME_JOB, &over).await.expect(201);
    world.set_knobs("over", json!({ "bg": "rc1" }));
    assert_eq!(asker.get(RESUME_JOB, &over).await.refused(502), "agent_failed");
    until_alive(&mut events, &deaf, "working").await;
    assert_eq!(asker.get(STOP_JOB, &deaf).await.refused(409), "still_live");
}

/// Somebody else works on the project of a bridge for longer than anybody waits.
async fn held_project(asker: &Asker<'_, '_>, locks: &[PathBuf]) {
    let held: Vec<File> = locks.iter().map(|path| File::open(path).unwrap()).collect();
    for file in &held {
        flock(file, FlockOperation::LockExclusive).unwrap();
    }
    let (stop, resume) = tokio::join!(asker.get(STOP, "other"), asker.get(RESUME, "other"));
    assert_eq!((stop.refused(503), resume.refused(503)), ("busy".into(), "busy".into()));
}

/// The lock files that launching in a project brought.
async fn locks_of_a_launch(asker: &Asker<'_, '_>, state: &Path) -> Vec<PathBuf> {
    let all = || -> BTreeSet<PathBuf> {
        let locks = std::fs::read_dir(state.join("locks")).unwrap();
        locks.map(|entry| entry.unwrap().path()).collect()
    };
    let before = all();
    asker.send(SPAWN, "", json!({ "project": "other" })).await.expect(201);
    let new: Vec<PathBuf> = all().difference(&before).cloned().collect();
    assert!(!new.is_empty());
    new
}

async fn without_an_agent(asker: &Asker<'_, '_>, world: &World) {
    let spawn = asker.send(SPAWN, "", json!({ "project": "later" })).await;
    assert_eq!(spawn.refused(503), "agent_missing");
    let body = json!({ "project": "at-work", "prompt": "x" });
    assert_eq!(asker.send(DISPATCH, "", body).await.refused(503), "agent_missing");
    let ended = ended_job(world);
    assert_eq!(asker.get(RESUME_JOB, &ended).await.refused(503), "agent_missing");
    assert_eq!(asker.get(STOP_JOB, &ended).await.refused(503), "agent_missing");
}

/// A job that ended, as its file says.
fn ended_job(world: &World) -> String {
    let jobs = std::fs::read_dir(world.agent_home.join("jobs")).unwrap();
    let mut names = jobs.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let is_over = |id: &String| {
        let text = std::fs::read_to_string(dir(world, id).join("state.json")).unwrap_or_default();
        text.contains("\"done\"")
    };
    names.find(is_over).unwrap()
}

/// The file system of the state directory has no byte left.
async fn full_disk(asker: &Asker<'_, '_>, world: &World, disk: &SmallDisk) {
    // The space that is kept for a stop is used up too.
    std::fs::remove_dir_all(world.state.join("reserve")).unwrap();
    let ballast = disk.fill();
    let spawn = asker.send(SPAWN, "", json!({ "project": "later" })).await;
    assert_eq!(spawn.refused(507), "disk_full");
    let job = asker.send(DISPATCH, "", json!({ "project": "at-work", "prompt": "x" })).await;
    assert_eq!(job.refused(507), "disk_full");
    let job = asker.get(RESUME_JOB, &ended_job(world)).await;
    assert_eq!(job.refused(507), "disk_full");
    let resume = asker.get(RESUME, "ended").await;
    let stop = asker.get(STOP, "runs").await;
    std::fs::remove_file(ballast).unwrap();
    assert_eq!((resume.status, stop.status), (507, 507), "{} {}", resume.text(), stop.text());
}
