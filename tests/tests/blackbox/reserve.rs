//! On a disk that an agent filled, what ends something still works (H91).

use crate::direct_sessions::{asked, enabled, launch, say};
use crate::harness::{Server, SmallDisk, World, gone};
use crate::jobs::{endless, start, until_alive};
use reqwest::Method;
use serde_json::json;
use std::fs;
use svc_skip::skip;

const PASSWORD: &str = "correct horse";
const HASH: &str = "$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q\
    $dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk";

async fn with(server: &Server<'_>, method: Method, path: &str, cookie: &str) -> u16 {
    let request = server.client.request(method, path).header("Origin", &server.base);
    server.client.send(request.header("Cookie", cookie)).await.status
}

async fn sign_in(server: &Server<'_>) -> String {
    let request = server.client.request(Method::POST, "/login").header("Origin", &server.base);
    let reply = server.client.send(request.json(&json!({ "password": PASSWORD }))).await;
    let cookie = reply.expect(200).header("set-cookie").unwrap().to_owned();
    cookie.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn h91_on_a_full_disk_what_ends_something_still_works() {
    let world = World::with(json!({ "auth": {
        "enabled": true, "password_required": true, "password_hash": HASH,
    } }));
    let Some(disk) = SmallDisk::at(&world.state, 150) else {
        skip!("this user may not mount a small file system");
    };
    for n in 0..10 {
        world.project(&format!("app-{n}"));
        world.cli(&["api-token", "issue", &format!("t-{n}")]).await.ok();
    }
    let server = world.serve().await;
    for n in 0..10 {
        world.cli(&["start", &format!("app-{n}")]).await.ok();
    }
    let mut cookies = Vec::new();
    for _ in 0..10 {
        cookies.push(sign_in(&server).await);
    }
    // Ten times in a row, each time on a disk without a byte, and nobody makes room.
    for (n, cookie) in cookies.into_iter().enumerate() {
        fill_up(&disk, n);
        let name = format!("app-{n}");
        if n % 2 == 0 {
            let stop = format!("/api/v1/instances/{name}");
            assert_eq!(with(&server, Method::DELETE, &stop, &cookie).await, 200, "stop {n}");
        } else {
            world.cli(&["stop", &name]).await.ok();
        }
        fill_up(&disk, n + 100);
        world.cli(&["api-token", "revoke", &format!("t-{n}")]).await.ok();
        fill_up(&disk, n + 200);
        // The others are signed out one by one.
        let scope = if n == 9 { "all" } else { "device" };
        let logout = format!("/logout?scope={scope}");
        assert_eq!(with(&server, Method::POST, &logout, &cookie).await, 200, "logout {n}");
        assert_eq!(with(&server, Method::GET, "/api/state", &cookie).await, 401, "logout {n}");
    }
    assert!(world.bridges().is_empty());
    server.kill().await;
}

#[tokio::test]
async fn h91_on_a_full_disk_commands_end_things_without_a_service() {
    let world = World::new();
    let Some(disk) = SmallDisk::at(&world.state, 150) else {
        skip!("this user may not mount a small file system");
    };
    (0..5).for_each(|n| drop(world.project(&format!("app-{n}"))));
    let server = world.serve().await;
    for n in 0..5 {
        server.client.run(&format!("app-{n}")).await;
        world.cli(&["api-token", "issue", &format!("t-{n}")]).await.ok();
    }
    server.stop().await;
    for n in 0..5 {
        fill_up(&disk, n);
        world.cli(&["stop", &format!("app-{n}")]).await.ok();
        fill_up(&disk, n + 100);
        world.cli(&["api-token", "revoke", &format!("t-{n}")]).await.ok();
    }
    assert!(world.bridges().is_empty());
    assert_eq!(world.cli(&["api-token", "list", "--json"]).await.ok().json(), json!([]));
}

fn again(disk: &SmallDisk, n: usize) -> std::path::PathBuf {
    disk.dir().join(format!("ballast-{n}"))
}

fn fill_up(disk: &SmallDisk, n: usize) {
    fs::rename(disk.fill(), again(disk, n)).unwrap();
}

/// Leaves processes of a launch that is over, and returns their pids.
async fn strays(world: &World, count: usize) -> Vec<i32> {
    world.project_with("app", json!({ "children": count, "child_mode": "new_session" }));
    let server = world.serve().await;
    server.client.run("app").await;
    let bridge = world.bridges_of("app").remove(0);
    let of_launch = || {
        let all = world.trees().into_iter().map(|process| process.pid);
        all.filter(|pid| *pid != bridge.pid).collect::<Vec<i32>>()
    };
    world.until("the children", || (of_launch().len() == count).then_some(())).await;
    server.kill().await;
    bridge.signal(rustix::process::Signal::KILL);
    gone(&bridge).await;
    // The record says that all of it is over: no start looks for what it left.
    let edit = "UPDATE bridges SET status = 'stopped', phase = 'exited', ended_at = 2, \
         intentional_stop = 1, exit_reason = 'operator_stop', revision = revision + 1";
    world.sql(edit).await.unwrap();
    of_launch()
}

#[tokio::test]
async fn h91_on_a_full_disk_strays_are_killed_with_and_without_a_service() {
    for is_served in [true, false] {
        let world = World::new();
        let Some(disk) = SmallDisk::at(&world.state, 150) else {
            skip!("this user may not mount a small file system");
        };
        let left = strays(&world, 10).await;
        let server = if is_served { Some(world.serve().await) } else { None };
        let ballast = disk.fill();
        // Ten times in a row, each time on a disk without a byte.
        for (n, pid) in left.iter().enumerate() {
            world.cli(&["strays", "--kill", &pid.to_string()]).await.ok();
            assert!(world.trees().iter().all(|process| process.pid != *pid), "{pid}");
            fill_up(&disk, n);
        }
        assert!(world.trees().iter().all(|process| !left.contains(&process.pid)));
        let _ = fs::remove_file(ballast);
        if let Some(server) = server {
            server.kill().await;
        }
    }
}

/// An agent that fills the disk is refused and ended all the same.
#[tokio::test]
async fn h91_on_a_full_disk_direct_sessions_and_jobs_are_ended() {
    let world = enabled();
    let Some(_disk) = SmallDisk::at(&world.state, 150) else {
        skip!("this user may not mount a small file system");
    };
    world.project_with("work", endless());
    let server = world.serve().await;
    let mut events = server.events().await;
    let disk = || fill(&world);
    for n in 0..10 {
        let one = launch(&server).await;
        let id = one.instance_id.as_str();
        say(&server, id, "use a tool").await;
        let question = asked(&mut events, id).await;
        let job = start(&server, "work").await;
        until_alive(&mut events, &job, "working").await;
        let first = disk();
        let path = format!("/api/instances/{id}/permissions/{}", question.request_id);
        let deny = json!({ "decision": "deny" });
        let refused = server.client.post_json(&path, &deny).await;
        assert_eq!(refused.status, 202, "{n}: {}", refused.text());
        let second = disk();
        if n % 2 == 0 {
            server.client.stop(id).await.expect(200);
        } else {
            world.cli(&["stop", id]).await.ok();
        }
        let third = disk();
        let ended = server.client.delete(&format!("/api/v1/agents/{job}")).await;
        assert_eq!(ended.status, 200, "{n}: {}", ended.text());
        for ballast in [first, second, third] {
            let _ = fs::remove_file(ballast);
        }
        server.client.post(&format!("/api/instances/{id}/forget")).await.expect(200);
    }
    server.kill().await;
}

/// A keeper that no record names any more, ended with and without a service.
#[tokio::test]
async fn h91_on_a_full_disk_orphaned_keepers_are_killed_with_and_without_a_service() {
    for is_served in [true, false] {
        let world = World::new();
        let Some(disk) = SmallDisk::at(&world.state, 150) else {
            skip!("this user may not mount a small file system");
        };
        (0..4).for_each(|n| drop(world.project(&format!("app-{n}"))));
        let server = world.serve().await;
        let mut keepers = Vec::new();
        for n in 0..4 {
            let name = format!("app-{n}");
            let body = json!({ "project": name, "mode": "pty" });
            let one = server.client.launch_with(body).await.expect(201).instance();
            keepers.push(one.keeper_pid.unwrap());
        }
        world.until_recorded().await;
        server.kill().await;
        world.sql("DELETE FROM bridges").await.unwrap();
        let server = if is_served { Some(world.serve().await) } else { None };
        for (n, pid) in keepers.into_iter().enumerate() {
            fill_up(&disk, n);
            let path = format!("/api/keepers/{pid}/kill");
            match &server {
                Some(server) if n % 2 == 0 => drop(server.client.post(&path).await.expect(200)),
                _ => drop(world.cli(&["keepers", "--kill", &pid.to_string()]).await.ok()),
            }
            assert!(world.processes().iter().all(|process| process.pid != pid), "{pid}");
        }
        if let Some(server) = server {
            server.kill().await;
        }
    }
}

/// An agent that fills the disk does not come again after the reset.
#[tokio::test]
async fn h91_on_a_full_disk_launches_that_wait_are_cancelled() {
    let world = World::new();
    let Some(disk) = SmallDisk::at(&world.state, 150) else {
        skip!("this user may not mount a small file system");
    };
    world.project("app");
    let server = world.serve().await;
    let id = |n: usize| format!("0f1e2d3c-4b5a-4978-8796-a5b4c3d2e1{n:02}");
    for n in 0..10 {
        let row = format!(
            "INSERT INTO planned_launches (launch_id, kind, request, asked_at, due_at) VALUES \
             ('{}', 'session', '{{\"project\":\"app\"}}', 1, 4102444800000)",
            id(n)
        );
        assert_eq!(world.sql(&row).await.unwrap(), 1);
    }
    for n in 0..10 {
        fill_up(&disk, n);
        if n % 2 == 0 {
            server.client.delete(&format!("/api/launches/{}", id(n))).await.expect(200);
        } else {
            world.cli(&["launches", "cancel", &id(n)]).await.ok();
        }
    }
    let waiting = "SELECT count(*) || '' FROM planned_launches WHERE state = 'waiting'";
    assert_eq!(world.sql_text(waiting).await.as_deref(), Some("0"));
    server.kill().await;
}

/// Leaves no byte in the state directory, beside what was filled before.
fn fill(world: &World) -> std::path::PathBuf {
    let count = fs::read_dir(&world.state).unwrap().count();
    let path = world.state.join(format!("ballast-{count}-{:?}", std::time::Instant::now()));
    let mut file = fs::File::create(&path).unwrap();
    for size in [1 << 16, 1 << 12, 1] {
        let block = vec![b'x'; size];
        while std::io::Write::write_all(&mut file, &block).is_ok() {}
    }
    path
}
