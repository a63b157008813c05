//! What a command leaves at the worst moment is finished by the running service.
//!
//! Nothing is written any more that would wake it.

use crate::harness::{World, service_with_fail_points};
use svc_shared::status::Phase;
use svc_skip::{NO_FAIL_POINTS, skip};

/// A command is killed after the service has seen its stop.
/// The service left the stop alone, because the command held the lock of the project. No later
/// write tells of the kill.
#[tokio::test]
async fn h98_a_stop_whose_command_dies_after_the_service_has_seen_it_is_finished() {
    let Some(program) = service_with_fail_points() else {
        skip!("{NO_FAIL_POINTS}");
    };
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    server.client.run("app").await;
    let mut page = server.events().await;
    let mut stop = world.command(&program, &["stop", "app"]);
    stop.env("SVC_FAILPOINTS", "stop.after_intent=sleep:600000");
    let mut stop = stop.spawn().unwrap();
    page.until("a stop under way", |state| {
        state.instances.values().find(|row| row.phase() == Some(Phase::Stopping)).map(drop)
    })
    .await;
    // The pass that has shown it looks at the process next; an answer or two later it is over.
    for _ in 0..20 {
        server.client.get("/api/v1/instances").await.expect(200);
    }
    stop.kill().await.unwrap();
    let row = page.until_status("app", "stopped").await;
    assert_eq!(row.exit_reason.map(|reason| reason.to_string()).as_deref(), Some("operator_stop"));
    assert!(world.agree().await.bridges.is_empty());
}
