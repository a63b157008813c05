//! Many browsers and bridges when the service comes back (H111).

use crate::harness::{Events, World};
use futures_util::future::join_all;
use serde_json::json;
use std::collections::BTreeSet;
use svc_shared::stream::EventFrame;

const BRIDGES: usize = 40;
const BROWSERS: usize = 100;

#[tokio::test]
async fn h111_a_crowd_that_comes_back_gets_each_thing_once_and_no_failure() {
    let world = World::with(json!({ "instance_defaults": { "max_bridges": BRIDGES } }));
    let names: Vec<String> = (0..BRIDGES).map(|number| format!("p{number:02}")).collect();
    for name in &names {
        world.project(name);
    }
    let server = world.serve().await;
    let mut pids = BTreeSet::new();
    for name in &names {
        pids.insert(server.client.run(name).await.bridge_pid);
    }
    let pages: Vec<Events> = join_all((0..BROWSERS).map(|_| server.events())).await;
    let asked_before = world.calls().len();
    server.kill().await;
    for page in pages {
        page.until_the_end().await;
    }

    let server = world.serve().await;
    let back = join_all((0..BROWSERS).map(|_| async {
        // Each reads the lists as a page does that was loaded again.
        for path in ["/api/bootstrap", "/api/state", "/api/v1/instances", "/healthz"] {
            server.client.get(path).await.expect(200);
        }
        let mut page = server.events().await;
        let mut snapshots = 1; // the one it opened with
        let is_back = |page: &Events| {
            let rows = page.state.instances.values();
            let running = rows.filter(|row| row.status.to_string() == "running");
            running.filter(|row| pids.contains(&row.bridge_pid)).count() == BRIDGES
        };
        while !is_back(&page) {
            if let EventFrame::Snapshot { .. } = page.next().await {
                snapshots += 1;
            }
        }
        (page, snapshots)
    }))
    .await;
    for (page, snapshots) in &back {
        assert_eq!(*snapshots, 1, "more than one snapshot for one browser");
        assert!(page.happened.is_empty(), "nothing happened: {:?}", page.happened);
    }
    let found = world.agree().await;
    assert_eq!(found.bridges.len(), BRIDGES);
    // Browsers are no reason to ask the agent: each kind of probe ran once or twice.
    let asked = world.calls().split_off(asked_before);
    for kind in ["--version", "auth", "agents"] {
        let count = asked.iter().filter(|call| call["argv"][0] == kind).count();
        assert!(count <= 8, "{count} probes `{kind}` for {BROWSERS} browsers");
    }
    let log = server.log();
    assert!(!log.contains(" 500 ") && !log.contains("ERROR"), "{log}");
}
