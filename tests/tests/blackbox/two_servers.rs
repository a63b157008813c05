//! Two services on one state directory, and one after another (H109, F83, F84).

use crate::harness::{Start, World, service, within};
use std::fs;

#[tokio::test]
async fn h109_f83_a_second_service_is_refused_and_names_the_first() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    let second = within("its end", world.command(&service(), &["run"]).output()).await.unwrap();
    let words = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1), "{words}");
    assert!(words.contains(&server.pid.to_string()), "it names the holder: {words}");
    assert!(words.contains(&world.port().to_string()), "and its address: {words}");
    assert_eq!(server.client.get("/healthz").await.status, 200);
    assert_eq!(world.agree().await.bridges.len(), 1);
}

#[tokio::test]
async fn h109_of_services_started_at_once_exactly_one_runs() {
    for _ in 0..3 {
        let world = World::new();
        let start = Start::default();
        let starts = (0..4).map(|_| world.try_serve(&start));
        let started = futures_util::future::join_all(starts).await;
        let refused: Vec<&String> = started.iter().filter_map(|one| one.as_ref().err()).collect();
        assert_eq!(refused.len(), 3, "{refused:?}");
        let lock = world.state.join("run.lock");
        assert!(refused.iter().all(|words| words.contains(lock.to_str().unwrap())), "{refused:?}");
        let winner = started.iter().find_map(|one| one.as_ref().ok()).unwrap();
        assert_eq!(winner.client.get("/healthz").await.status, 200);
    }
}

/// F84: neither the lock file of a dead service nor its bridges prevent a start.
#[tokio::test]
async fn h109_f84_restarts_with_live_bridges_are_never_blocked() {
    let world = World::new();
    for name in ["a", "b"] {
        world.project(name);
    }
    let server = world.serve().await;
    server.client.run("a").await;
    server.client.run("b").await;
    let pids: Vec<i32> = world.bridges().iter().map(|bridge| bridge.pid).collect();
    server.kill().await;
    assert!(world.state.join("run.lock").exists());
    for round in 0..10 {
        let server = world.serve().await;
        let mut page = server.events().await;
        page.until_status("a", "running").await;
        page.until_status("b", "running").await;
        if round % 2 == 0 {
            server.kill().await;
        } else {
            let (code, log) = server.stop().await;
            assert_eq!(code, Some(0), "{log}");
        }
    }
    let after: Vec<i32> = world.bridges().iter().map(|bridge| bridge.pid).collect();
    assert_eq!(after, pids);
}

/// A left-over lock file may hold anything.
#[tokio::test]
async fn f84_a_lock_file_full_of_rubbish_is_no_obstacle() {
    let world = World::new();
    let server = world.serve().await;
    server.stop().await;
    for rubbish in [&b"\xff\xfe{"[..], b"{\"pid\": 1}", b"", &[b'['; 100_000]] {
        fs::write(world.state.join("run.lock"), rubbish).unwrap();
        let server = world.serve().await;
        assert_eq!(server.client.get("/healthz").await.status, 200);
        server.stop().await;
    }
}

/// H108: two services with the same projects leave each other's bridges alone.
#[tokio::test]
async fn h108_another_service_of_the_same_projects_takes_nothing_over() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    let first = world.config.clone();
    let mine = fs::read_to_string(&first).unwrap();

    // The second has its own state directory and port, and everything else in common.
    let settings = serde_json::json!({ "state_dir": world.root.join("other-state") });
    world.configure(settings);
    world.move_port();
    let other = world.serve().await;
    let refused = other.client.launch("app").await;
    assert_eq!(refused.refused(409), "held_elsewhere");
    let adoptable = other.client.get("/api/v1/sessions/adoptable").await.expect(200).json();
    assert_eq!(adoptable, serde_json::json!([]));
    other.stop().await;
    fs::write(&first, mine).unwrap();
    assert_eq!(server.client.instance("app").await.instance().status.to_string(), "running");
    assert_eq!(world.bridges().len(), 1);
}

/// What the service keeps is its owner's alone, whatever the umask was (H28).
#[tokio::test]
async fn h28_state_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    world.project("app");
    fs::create_dir(&world.state).unwrap();
    fs::set_permissions(&world.state, fs::Permissions::from_mode(0o777)).unwrap();
    let server = world.serve().await;
    server.client.run("app").await;
    server.client.stop("app").await.expect(200);
    let mut open = Vec::new();
    let mut dirs = vec![world.state.clone()];
    while let Some(dir) = dirs.pop() {
        let mode = fs::metadata(&dir).unwrap().permissions().mode() & 0o777;
        if mode != 0o700 {
            open.push((dir.clone(), mode));
        }
        for entry in fs::read_dir(&dir).unwrap() {
            let entry = entry.unwrap();
            let meta = entry.metadata().unwrap();
            if meta.is_dir() {
                dirs.push(entry.path());
            } else if meta.permissions().mode() & 0o077 != 0 {
                open.push((entry.path(), meta.permissions().mode() & 0o777));
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[tokio::test]
async fn a_signal_ends_the_service_and_leaves_its_bridges() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    let page = server.events().await;
    let (code, log) = server.stop().await;
    assert_eq!(code, Some(0), "{log}");
    drop(page);
    assert_eq!(world.bridges().len(), 1);
    assert_eq!(world.row("app").await.status, "running");
}

/// H98: a writer killed while it replaces a file leaves a temporary file.
#[tokio::test]
async fn h98_temporary_files_of_killed_writers_are_taken_away_by_the_next_start() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    server.client.stop("app").await.expect(200);
    server.stop().await;
    let beside_pointers = fs::read_dir(world.agent_home.join("projects")).unwrap();
    let mut places: Vec<_> = beside_pointers.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(places.len(), 1, "the agent has one project: {places:?}");
    places.extend([world.state.clone(), world.state.join("logs"), world.agent_home.clone()]);
    let witness = world.witness("writer").await;
    let (pid, ticks) = (witness.process.pid, witness.process.start_ticks);
    for place in &places {
        fs::write(place.join(format!(".svc-{pid}-{}-killed.tmp", ticks - 1)), "half").unwrap();
        fs::write(place.join(format!(".svc-{pid}-{ticks}-writes.tmp")), "half").unwrap();
    }
    let left = || -> Vec<String> {
        let entries = places.iter().flat_map(|place| fs::read_dir(place).unwrap());
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with(".svc-")).collect()
    };
    let server = world.serve().await;
    world.until("their end", || (left().len() == places.len()).then_some(())).await;
    assert!(left().iter().all(|name| name.contains("writes")), "{:?}", left());
    server.kill().await;
}
