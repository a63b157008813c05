//! Large numbers: of bridges, records, projects, and of operations that race.

use crate::harness::{Client, Dice, World};
use futures_util::StreamExt;
use futures_util::stream::iter;
use serde_json::json;
use std::fs;
use svc_shared::api::instances::Instance;

/// Resident memory of a process, in KiB.
fn resident(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}

/// F90: two hundred bridges survive the service and are found again.
#[tokio::test]
async fn f90_two_hundred_bridges_are_found_again_by_the_next_service() {
    const BRIDGES: usize = 200;
    let world = World::with(json!({ "instance_defaults": { "max_bridges": BRIDGES } }));
    let names: Vec<String> = (0..BRIDGES).map(|number| format!("p{number:03}")).collect();
    for name in &names {
        fs::create_dir(world.projects.join(name)).unwrap();
    }
    world.trust(&world.projects);
    let server = world.serve().await;
    let rows: Vec<Instance> =
        iter(&names).map(|name| server.client.run(name)).buffer_unordered(8).collect().await;
    server.kill().await;
    let server = world.serve().await;
    let mut page = server.events().await;
    page.until("all bridges", |state| {
        let running = state.instances.values().filter(|row| row.status.to_string() == "running");
        (running.count() == BRIDGES).then_some(())
    })
    .await;
    for row in rows {
        let now = &page.state.instances[row.instance_id.as_str()];
        assert_eq!(now.bridge_pid, row.bridge_pid, "{}", row.project);
    }
    assert!(page.happened.is_empty(), "{:?}", page.happened);
    assert_eq!(world.agree().await.bridges.len(), BRIDGES);
    eprintln!("200 bridges: {} KiB resident", resident(server.pid));
}

/// A world with so many ended records of many projects, copies of a true one.
async fn with_records(records: u64) -> World {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    server.client.stop("app").await.expect(200);
    server.stop().await;
    let columns = world
        .sql_text(
            "SELECT group_concat(name) FROM pragma_table_info('bridges') \
             WHERE name NOT IN ('number', 'instance_id', 'project')",
        )
        .await
        .unwrap();
    let projects = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 199) \
        INSERT INTO projects SELECT printf('old%03d', i), 0, 0 FROM n";
    world.sql(projects).await.unwrap();
    let copy = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {records}) \
         INSERT INTO bridges (instance_id, project, {columns}) \
         SELECT printf('00000000-0000-4000-8000-%012x', i), printf('old%03d', i % 200), \
         {columns} FROM bridges, n"
    );
    assert_eq!(world.sql(&copy).await.unwrap(), records);
    world
}

/// Reads lists without looking at them, as often as said.
async fn read_lists(base: &str, times: usize) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    for _ in 0..times {
        for path in ["/api/v1/instances", "/api/v1/instances?status=running", "/api/state"] {
            let reply = client.get(format!("{base}{path}")).send().await.unwrap();
            assert_eq!(reply.status(), 200);
            assert!(!reply.bytes().await.unwrap().is_empty());
        }
    }
}

/// H81: a thousand ended records, and readers: memory stays where it was.
#[tokio::test]
async fn h81_a_thousand_ended_records_cost_little_memory_and_reading_costs_none() {
    let world = with_records(1000).await;
    let server = world.serve().await;
    let idle = resident(server.pid);
    read_lists(&server.base, 100).await;
    let before = resident(server.pid);
    read_lists(&server.base, 300).await;
    let after = resident(server.pid);
    eprintln!(
        "1,000 records: {idle} KiB idle, {before} KiB after 300 reads, {after} KiB after 1,200"
    );
    // An unoptimised program is larger than the one that is shipped; growth is the same.
    assert!(idle < 128 * 1024, "{idle} KiB");
    assert!(after < before + before / 10 + 4096, "{before} KiB, then {after} KiB");
}

/// H126: ten thousand ended records are complete in the list and in the stream.
#[tokio::test]
async fn h126_ten_thousand_ended_records_are_listed_whole_and_followed() {
    const RECORDS: u64 = 10_000;
    let world = with_records(RECORDS).await;
    let server = world.serve().await;
    let mut page = server.events().await;
    assert_eq!(page.state.instances.len() as u64, RECORDS + 1);
    read_lists(&server.base, 3).await;
    let row = world.cli(&["start", "app", "--json"]).await.ok().json();
    page.until_status("app", "running").await;
    let one = server.client.instance(row["instance_id"].as_str().unwrap()).await.expect(200);
    assert_eq!(one.json()["status"], "running");
    eprintln!("10,000 records: {} KiB resident", resident(server.pid));
}

/// Processor time that a process has taken, in milliseconds.
fn processor_time(pid: i32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum();
    ticks * 10 // the kernel shows hundredths of a second, whatever it counts in
}

/// H126: a change of one bridge changes no other record, and costs accordingly.
#[tokio::test]
async fn h126_a_change_among_ten_thousand_ended_records_tells_of_itself_only() {
    const ROUNDS: u64 = 4;
    let world = with_records(10_000).await;
    world.project("other");
    let server = world.serve().await;
    let mut page = server.events().await;
    let id = server.client.run("other").await.instance_id.to_string();
    page.until_status("other", "running").await;
    let (ops, since) = (page.instance_ops, processor_time(server.pid));
    for _ in 0..ROUNDS {
        server.client.stop(&id).await.expect(200);
        page.until_status("other", "stopped").await;
        server.client.resume(&id).await.expect(200);
        page.until_status("other", "running").await;
    }
    let ops = page.instance_ops - ops;
    let spent = processor_time(server.pid) - since;
    let began = std::time::Instant::now();
    read_lists(&server.base, 1).await;
    eprintln!(
        "10,000 records of others: {} ms of processor time for a stop and a resume, {ops} changes \
         for {ROUNDS} of them, {:?} for three lists, {} KiB resident",
        spent / ROUNDS,
        began.elapsed(),
        resident(server.pid)
    );
    assert!(ops < 20 * ROUNDS, "{ops} changes");
}

/// H125: ten thousand projects.
#[tokio::test]
async fn h125_ten_thousand_projects_are_listed_and_one_more_is_seen() {
    const PROJECTS: usize = 10_000;
    let world = World::new();
    for number in 0..PROJECTS {
        fs::create_dir(world.projects.join(format!("p{number:05}"))).unwrap();
    }
    let server = world.serve().await;
    let mut page = server.events().await;
    page.until("all projects", |state| (state.projects.len() == PROJECTS).then_some(())).await;
    let listed = server.client.get("/api/v1/projects").await.expect(200).json();
    assert_eq!(listed.as_array().unwrap().len(), PROJECTS);
    world.project("one-more");
    page.until("the new one", |state| state.projects.contains_key("one-more").then_some(())).await;
    fs::remove_dir(world.projects.join("p00000")).unwrap();
    page.until("the end of one", |state| (!state.projects.contains_key("p00000")).then_some(()))
        .await;
    server.client.run("one-more").await;
    eprintln!("10,000 projects: {} KiB resident", resident(server.pid));
}

/// H100: several operations at once on a few projects, in random order.
/// After every round records, processes and answers must agree. `SVC_RACE_STEPS=10000` for the long
/// run.
#[tokio::test]
async fn h100_operations_that_race_at_random_end_in_defined_states() {
    let steps = std::env::var("SVC_RACE_STEPS").ok().and_then(|text| text.parse().ok());
    let steps: usize = steps.unwrap_or(150);
    let (mut dice, seed) = Dice::seeded("SVC_RACE_SEED");
    eprintln!("{steps} steps, seed {seed}");
    let world = World::with(json!({ "claude": { "stop_grace_seconds": 1 } }));
    let names = ["a", "b", "c", "d"];
    for (name, knobs) in [
        ("a", json!({})),
        ("b", json!({ "ready_ms": 150 })),
        ("c", json!({ "shutdown_ms": 100, "children": 2 })),
        ("d", json!({ "exit_after_ready_ms": 60 })),
    ] {
        world.project_with(name, knobs);
    }
    let server = world.serve().await;
    let mut done = 0;
    while done < steps {
        let crowd: Vec<(u64, &str)> = (0..2 + dice.roll(7))
            .map(|_| (dice.roll(10), names[usize::try_from(dice.roll(4)).unwrap()]))
            .collect();
        done += crowd.len();
        let answers = crowd.iter().map(|(what, name)| step(&server.client, *what, name));
        for (answer, (what, name)) in
            futures_util::future::join_all(answers).await.iter().zip(&crowd)
        {
            assert!(
                *answer < 500 || *answer == 503,
                "operation {what} on {name} answered {answer} after {done} steps of seed {seed}"
            );
        }
        // At most one live Server Mode bridge of a project, at every moment.
        for name in names {
            let live =
                world.rows().await.into_iter().filter(|row| row.project == name && row.is_live());
            assert!(live.count() <= 1, "{name}");
            assert!(world.bridges_of(name).len() <= 1, "{name}: two bridges");
        }
    }
    let found = world.agree().await;
    for row in &found.rows {
        assert!(!(row.intentional_stop && row.status == "crashed"), "{row:?}");
    }
    let shown = server.client.instances().await;
    assert_eq!(shown.len(), found.rows.len(), "what is shown is what is recorded");
    for row in &found.rows {
        let seen = shown.iter().find(|seen| seen.instance_id.as_str() == row.instance_id).unwrap();
        assert_eq!(seen.status.to_string(), row.status);
    }
}

async fn step(client: &Client, what: u64, project: &str) -> u16 {
    let newest = async || {
        let mut rows = client.instances().await;
        rows.retain(|row| row.project == project);
        rows.pop().map(|row| row.instance_id.to_string())
    };
    match what {
        0..=2 => client.launch(project).await.status,
        3 | 4 => match newest().await {
            Some(id) => client.stop(&id).await.status,
            None => 404,
        },
        5 | 6 => match newest().await {
            Some(id) => client.resume(&id).await.status,
            None => 404,
        },
        7 => match newest().await {
            Some(id) => client.post(&format!("/api/instances/{id}/forget")).await.status,
            None => 404,
        },
        8 => {
            let path = "/api/v1/instances?wait=0";
            client.post_json(path, &json!({ "project": project })).await.status
        }
        _ => client.get("/api/state").await.status,
    }
}
