//! The service dies at every named point over an Interactive Session (H98).
//!
//! Its keeper outlives the service, so each point leaves other processes behind.

use crate::crash_consistency::{SPAWN_POINTS, STOP_POINTS, armed, dies_of, told_once};
use crate::harness::{World, gone, service_with_fail_points};
use crate::sessions_in_terminals::{continues, ready, session, starts, talked_to, until_said};
use reqwest::Method;
use svc_skip::{NO_FAIL_POINTS, skip};

const INSTANCES: &str = "/api/v1/instances";

#[tokio::test]
async fn h98_f11_a_session_whose_launch_is_interrupted_at_any_point_runs_once_or_not_at_all() {
    let Some(program) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    for point in SPAWN_POINTS {
        let world = World::new();
        world.project("app");
        let server = armed(&world, &program, point).await;
        dies_of(server, Method::POST, INSTANCES, Some(session("app"))).await;

        let server = world.serve().await;
        let found = world.agree().await;
        let survives = usize::from(point == "spawn.after_exec");
        assert_eq!(found.bridges.len(), survives, "{point}: {found:?}");
        assert!(found.rows.len() <= 1, "{point}: {found:?}");
        ready(&server, session("app")).await;
        let found = world.agree().await;
        assert_eq!(found.bridges.len(), survives + 1, "{point}: {found:?}");
        assert_eq!(starts(&world).len(), survives + 1, "{point}: an agent ran twice");
        told_once(&world, point).await;
    }
}

#[tokio::test]
async fn h98_a_session_whose_resume_is_interrupted_at_any_point_goes_on_with_its_conversation() {
    let Some(program) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    for point in &SPAWN_POINTS[1..] {
        let world = World::new();
        world.project_with("app", talked_to());
        let server = world.serve().await;
        let row = ready(&server, session("app")).await;
        until_said(&world, &row).await;
        let id = row.instance_id.to_string();
        server.client.stop(&id).await.expect(200);
        server.stop().await;
        let server = armed(&world, &program, point).await;
        dies_of(server, Method::POST, &format!("{INSTANCES}/{id}/resume"), None).await;

        let server = world.serve().await;
        world.agree().await;
        let again = server.client.resume(&id).await.expect(200).json();
        assert_eq!(again["instance_id"], id, "{point}: the same record");
        let mut page = server.events().await;
        page.until_status("app", "running").await;
        let found = world.agree().await;
        assert_eq!((found.rows.len(), found.bridges.len()), (1, 1), "{point}");
        assert_eq!(starts(&world).len(), 2, "{point}: the resume ran twice");
        assert!(continues(&world), "{point}: the conversation is another one");
        told_once(&world, point).await;
    }
}

#[tokio::test]
async fn h98_a_session_whose_stop_is_interrupted_at_any_point_is_stopped_with_its_keeper() {
    let Some(program) = service_with_fail_points() else { skip!("{NO_FAIL_POINTS}") };
    for point in STOP_POINTS {
        let world = World::new();
        world.project("app");
        let server = armed(&world, &program, point).await;
        let id = ready(&server, session("app")).await.instance_id.to_string();
        dies_of(server, Method::DELETE, &format!("{INSTANCES}/{id}"), None).await;

        let server = world.serve().await;
        let mut page = server.events().await;
        let row = page.until_status("app", "stopped").await;
        let reason = row.exit_reason.map(|reason| reason.to_string());
        assert_eq!(reason.as_deref(), Some("operator_stop"), "{point}");
        assert!(world.agree().await.bridges.is_empty(), "{point}");
        // A keeper whose service is gone shows its last screen for half a minute at most.
        for keeper in world.keepers() {
            gone(&keeper).await;
        }
        told_once(&world, point).await;
        server.client.resume(&id).await.expect(200);
        assert_eq!(world.agree().await.bridges.len(), 1, "{point}");
    }
}
