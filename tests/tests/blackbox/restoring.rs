//! Restoring what a reboot of the machine ended: offered, by itself, or not at all.

use crate::harness::{Events, Server, World, gone};
use crate::lost_keepers::end_at_once;
use crate::sessions_in_terminals::{
    ready, session, starts as terminal_starts, talked_to, until_said,
};
use rustix::process::Signal;
use serde_json::{Value, json};
use svc_shared::internal::restore::{RestoreJob, RestoreOffer};

/// A world whose service and bridges a reboot ended.
async fn rebooted(names: &[&str], settings: Value) -> World {
    let world = World::with(settings);
    for name in names {
        world.project(name);
    }
    let server = world.serve().await;
    for name in names {
        server.client.run(name).await;
    }
    server.kill().await;
    for bridge in world.bridges() {
        bridge.signal(Signal::KILL);
        gone(&bridge).await;
    }
    of_another_boot(&world, names.len()).await;
    world
}

/// Lets all records be of another boot.
async fn of_another_boot(world: &World, count: usize) {
    let other = "UPDATE bridges SET bridge_boot_id = '11111111-2222-3333-4444-555555555555', \
         keeper_boot_id = iif(keeper_pid IS NULL, NULL, '11111111-2222-3333-4444-555555555555')";
    assert_eq!(world.sql(other).await.unwrap(), u64::try_from(count).unwrap());
}

async fn offer(server: &Server<'_>) -> RestoreOffer {
    let reply = server.client.get("/api/restore").await.expect(200);
    serde_json::from_value(reply.json()).unwrap()
}

async fn ids(server: &Server<'_>) -> Vec<String> {
    let offered = offer(server).await.candidates;
    offered.iter().map(|one| one.instance_id.to_string()).collect()
}

/// Waits until the restore has an outcome for each session.
async fn outcome(page: &mut Events) -> RestoreJob {
    page.until("the end of the restore", |state| {
        state.restore.clone().filter(|job| job.state.to_string() != "running")
    })
    .await
}

fn steps(job: &RestoreJob) -> Vec<String> {
    job.items.iter().map(|item| item.state.to_string()).collect()
}

fn starts(world: &World, names: &[&str]) -> Vec<usize> {
    names.iter().map(|name| world.starts(name).len()).collect()
}

const TWENTY: [&str; 20] = [
    "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9", "b0", "b1", "b2", "b3", "b4", "b5",
    "b6", "b7", "b8", "b9",
];

#[tokio::test]
async fn f78_h115_twenty_sessions_are_offered_and_restored_once_with_one_summary() {
    let world = rebooted(&TWENTY, json!({})).await;
    let server = world.serve().await;
    let mut page = server.events().await;
    let offered = ids(&server).await;
    assert_eq!(offered.len(), 20);
    let body = json!({ "ids": offered, "parallel": 4 });
    server.client.post_json("/api/restore", &body).await.expect(202);
    let mut most = 0;
    let job = page
        .until("the end of the restore", |state| {
            let rows = state.instances.values();
            most = most.max(rows.filter(|row| row.status.to_string() == "starting").count());
            state.restore.clone().filter(|job| job.state.to_string() != "running")
        })
        .await;
    assert_eq!(steps(&job), ["done"; 20]);
    assert!(most <= 4, "{most} started at the same time");
    assert_eq!(starts(&world, &TWENTY), [2; 20]);
    assert_eq!(world.agree().await.bridges.len(), 20);
    assert!(offer(&server).await.candidates.is_empty());
    server.says("20 of 20 sessions restored").await;
    assert_eq!(server.log().matches("sessions restored").count(), 1);
}

#[tokio::test]
async fn f78_twenty_interactive_sessions_come_back_with_their_own_conversations() {
    let world = World::new();
    let names = ["a", "b", "c", "d", "e"];
    names.iter().for_each(|name| drop(world.project_with(name, talked_to())));
    let server = world.serve().await;
    let mut rows = Vec::new();
    for name in names {
        for _ in 0..4 {
            let row = ready(&server, session(name)).await;
            until_said(&world, &row).await;
            rows.push(row);
        }
    }
    let recorded = "SELECT group_concat(instance_id || conversation_id, ' ') FROM \
         (SELECT instance_id, conversation_id FROM bridges ORDER BY instance_id)";
    let before = world.sql_text(recorded).await;
    let begun = terminal_starts(&world).len();
    server.kill().await;
    for row in &rows {
        end_at_once(row.bridge_pid.map(Into::into));
        end_at_once(row.keeper_pid.map(Into::into));
    }
    of_another_boot(&world, rows.len()).await;
    let server = world.serve().await;
    let mut page = server.events().await;
    let offered = offer(&server).await.candidates;
    assert_eq!(offered.len(), 20);
    let body = json!({ "ids": ids(&server).await, "parallel": 4 });
    server.client.post_json("/api/restore", &body).await.expect(202);
    assert_eq!(steps(&outcome(&mut page).await), ["done"; 20]);
    assert_eq!(world.sql_text(recorded).await, before);
    let again = terminal_starts(&world).split_off(begun);
    assert_eq!(again.len(), 20);
    let goes_on = |argv: &Vec<String>| argv.iter().any(|it| it == "--resume" || it == "--continue");
    assert!(again.iter().all(goes_on), "{again:?}");
    server.says("20 of 20 sessions restored").await;
    for row in &rows {
        server.client.stop(row.instance_id.as_str()).await.expect(200);
    }
}

#[tokio::test]
async fn a_restore_goes_on_after_the_service_was_killed_and_doubles_nothing() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let world = rebooted(&names, json!({})).await;
    for name in names {
        world.set_knobs(name, json!({ "ready_ms": 300 }));
    }
    let server = world.serve().await;
    let mut page = server.events().await;
    let body = json!({ "ids": ids(&server).await, "parallel": 1 });
    server.client.post_json("/api/restore", &body).await.expect(202);
    page.until("the first that runs again", |state| {
        state.restore.as_ref()?.items.iter().find(|item| item.state.to_string() == "done").cloned()
    })
    .await;
    server.kill().await;
    let server = world.serve().await;
    let mut page = server.events().await;
    for name in names {
        page.until_status(name, "running").await;
    }
    outcome(&mut page).await;
    assert_eq!(starts(&world, &names), [2; 6]);
    assert_eq!(world.agree().await.bridges.len(), 6);
}

#[tokio::test]
async fn what_cannot_be_restored_is_named_and_the_rest_comes_back() {
    let names = ["good", "gone", "broken"];
    let world = rebooted(&names, json!({})).await;
    world.set_knobs("broken", json!({ "fatal": "network" }));
    std::fs::remove_dir_all(world.projects.join("gone")).unwrap();
    let server = world.serve().await;
    let mut page = server.events().await;
    let offered = offer(&server).await.candidates;
    let blocked = offered.iter().find(|one| one.project == "gone").unwrap().blocked.clone();
    assert_eq!(blocked.unwrap().to_string(), "unknown_project");
    let body = json!({ "ids": ids(&server).await });
    server.client.post_json("/api/restore", &body).await.expect(202);
    server.client.post_json("/api/restore", &body).await.expect(409);
    let job = outcome(&mut page).await;
    assert_eq!(steps(&job), ["done", "failed", "failed"], "{job:?}");
    assert!(job.items[1].detail.as_ref().unwrap().contains("not restarted"), "{job:?}");
    server.says("1 of 3 sessions restored; gone: ").await;
    assert_eq!(offer(&server).await.job.unwrap(), job);
}

#[tokio::test]
async fn a_restore_can_be_cancelled_and_an_offer_declined() {
    let names = ["a", "b", "c"];
    let world = rebooted(&names, json!({})).await;
    world.set_knobs("a", json!({ "ready": "never" }));
    let server = world.serve().await;
    let mut page = server.events().await;
    server.client.post("/api/restore/cancel").await.expect(409);
    let offered = ids(&server).await;
    let body = json!({ "ids": offered, "parallel": 1 });
    server.client.post_json("/api/restore", &body).await.expect(202);
    page.until_status("a", "starting").await;
    server.client.post("/api/restore/cancel").await.expect(202);
    server.client.stop(&offered[0]).await.expect(200);
    let job = outcome(&mut page).await;
    assert_eq!(
        (job.state.to_string().as_str(), steps(&job)),
        ("cancelled", vec!["skipped".to_owned(); 3])
    );
    // The first may have been stopped before its agent ran; the others were not started at all.
    assert_eq!(starts(&world, &names)[1..], [1, 1]);
    assert_eq!(ids(&server).await, offered[1..]);
    let body = json!({ "ids": [offered[1]] });
    server.client.post_json("/api/restore/dismiss", &body).await.expect(200);
    assert_eq!(ids(&server).await, offered[2..]);
}

#[tokio::test]
async fn sessions_come_back_by_themselves_or_not_at_all_as_configured() {
    let names = ["a", "b", "c"];
    let world = rebooted(&names, json!({ "claude": { "after_reboot": "resume" } })).await;
    let own = "UPDATE bridges SET after_reboot = 'never' WHERE project = 'b'";
    assert_eq!(world.sql(own).await.unwrap(), 1);
    let server = world.serve().await;
    let mut page = server.events().await;
    page.until_status("a", "running").await;
    page.until_status("c", "running").await;
    let job = outcome(&mut page).await;
    assert_eq!(steps(&job), ["done", "done"]);
    assert!(offer(&server).await.candidates.is_empty());
    assert_eq!(starts(&world, &names), [2, 1, 2]);
    server.says("2 of 2 sessions restored").await;
}

#[tokio::test]
async fn the_command_lists_and_restores_without_a_service_and_beside_one() {
    let names = ["a", "b", "c"];
    let world = rebooted(&names, json!({})).await;
    let listed = world.cli(&["restore-sessions", "--json"]).await.ok().json();
    assert_eq!(listed["candidates"].as_array().unwrap().len(), 3);
    let wrong = world.cli(&["restore-sessions", "nothing"]).await;
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
    let one = world.cli(&["restore-sessions", "b", "--json"]).await.ok().json();
    assert_eq!(one["items"][0]["restored"], true);
    let server = world.serve().await;
    let rest = world.cli(&["restore-sessions", "--all"]).await.ok();
    assert!(rest.stdout.contains("2 of 2 sessions restored"), "{}", rest.stdout);
    assert!(offer(&server).await.candidates.is_empty());
    assert_eq!(starts(&world, &names), [2; 3]);
    assert_eq!(world.agree().await.bridges.len(), 3);
}
