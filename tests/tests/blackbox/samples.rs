//! What bridges use: by project and by bridge, and not at all when switched off.

use crate::harness::{Events, World, within};
use serde_json::{Value, json};
use svc_shared::Timestamp;
use svc_shared::stream::EventFrame;

fn quick(more: Value) -> World {
    let mut settings = json!({
        "metrics": { "poll_seconds": 1.0 },
        "observability": { "prometheus_enabled": true },
    });
    for (section, keys) in more.as_object().into_iter().flatten() {
        settings[section] = keys.clone();
    }
    World::with(settings)
}

/// The next sample of a bridge that is as wanted.
async fn sample(page: &mut Events, id: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
    within("a sample", async {
        loop {
            if let EventFrame::Sample { metrics, .. } = page.next().await
                && let Some(found) = metrics.get(id).map(|found| json!(found))
                && is_wanted(&found)
            {
                return found;
            }
        }
    })
    .await
}

fn value_of(text: &str, family: &str, project: &str) -> Option<f64> {
    let name = format!("{family}{{project=\"{project}\"}} ");
    text.lines().find_map(|line| line.strip_prefix(&name))?.parse().ok()
}

#[tokio::test]
async fn a_bridge_is_measured_with_everything_that_it_started() {
    let world = quick(json!({}));
    world.project_with("busy", json!({ "cpu": 40, "memory_mb": 64, "children": 3 }));
    world.project("quiet");
    world.project("ended");
    let server = world.serve().await;
    let mut page = server.events().await;
    let busy = server.client.run("busy").await.instance_id.to_string();
    let quiet = server.client.run("quiet").await.instance_id.to_string();
    let ended = server.client.run("ended").await.instance_id.to_string();

    let is_whole = |now: &Value| {
        now["procs"].as_u64() >= Some(4)
            && now["rss_bytes"].as_u64() >= Some(64 << 20)
            && now["cpu_percent"].as_f64() > Some(1.0)
    };
    let seen = sample(&mut page, &busy, is_whole).await;
    assert_eq!((&seen["running"], &seen["cpu_normalized"]), (&json!(true), &json!(false)));
    assert!(seen["disk_read_bps"].is_u64() && seen["disk_write_bps"].is_u64(), "{seen}");
    let still = sample(&mut page, &quiet, |_| true).await;
    assert!(still["rss_bytes"].as_u64() < Some(64 << 20), "{still}");
    sample(&mut page, &ended, |_| true).await;

    let bridges = server.client.get("/api/metrics").await.expect(200).json();
    assert!(is_whole(&bridges[&busy]), "{bridges}");
    assert!(bridges[&busy].get("history").is_none(), "only on request");
    let curves = server.client.get("/api/metrics?history=true").await.expect(200).json();
    let points = curves[&busy]["history"].as_array().expect("points");
    assert!((1..=60).contains(&points.len()), "{points:?}");
    assert!(points.iter().all(|point| point["time"].is_string()), "{points:?}");

    let project = server.client.get("/api/projects/busy/metrics").await.expect(200).json();
    assert!(is_whole(&project) && project["bridges"] == 1, "{project}");
    let row = server.client.get("/api/projects/busy/row").await.expect(200).json();
    assert_eq!(row["metrics"]["bridges"], 1);
    let text = server.client.get("/metrics").await.expect(200).text();
    assert!(value_of(&text, "svc_bridge_cpu_percent", "busy") > Some(1.0), "{text}");
    assert!(value_of(&text, "svc_bridge_rss_bytes", "busy") >= Some(67_108_864.0), "{text}");
    assert!(value_of(&text, "svc_bridge_rss_bytes", "quiet").is_some(), "{text}");

    // An end is no sample of zero: the bridge is gone from the figures at once.
    server.client.stop(&ended).await.expect(200);
    let bridges = server.client.get("/api/metrics").await.expect(200).json();
    assert!(bridges.get(&ended).is_none() && bridges.get(&quiet).is_some(), "{bridges}");
    let project = server.client.get("/api/projects/ended/metrics").await.expect(200).json();
    assert_eq!(project, json!({ "running": false }));
    let text = server.client.get("/metrics").await.expect(200).text();
    assert_eq!(value_of(&text, "svc_bridge_rss_bytes", "ended"), None);
    server.client.get("/api/projects/nothing/metrics").await.refused(404);

    // A new generation is measured, too, and begins a curve of its own.
    server.client.resume(&ended).await;
    sample(&mut page, &ended, |_| true).await;
}

#[tokio::test]
async fn without_metrics_nothing_is_measured() {
    let world = quick(json!({ "metrics": { "enabled": false, "poll_seconds": 1.0 } }));
    world.project("app");
    let server = world.serve().await;
    let mut page = server.events().await;
    let bridge = server.client.run("app").await;
    let features = server.client.get("/api/bootstrap").await.json()["features"].clone();
    assert_eq!(
        (&features["metrics"], &features["metrics_show_disk"]),
        (&false.into(), &false.into())
    );
    // A stop and a resume take longer than the first sample would.
    server.client.stop(bridge.instance_id.as_str()).await.expect(200);
    server.client.resume(bridge.instance_id.as_str()).await;
    page.until_status("app", "running").await;
    assert_eq!(server.client.get("/api/metrics").await.expect(200).json(), json!({}));
    let project = server.client.get("/api/projects/app/metrics").await.expect(200).json();
    assert_eq!(project, json!({ "running": false }));
    let text = server.client.get("/metrics").await.expect(200).text();
    assert!(!text.contains("svc_bridge_cpu_percent") && !text.contains("svc_bridge_rss_bytes"));
}

#[tokio::test]
async fn percent_may_be_of_all_cores_and_disk_rates_left_out() {
    let metrics = json!({ "poll_seconds": 1.0, "normalize_cpu": true, "show_disk": false });
    let world = quick(json!({ "metrics": metrics }));
    world.project_with("busy", json!({ "cpu": 40 }));
    let server = world.serve().await;
    let mut page = server.events().await;
    let busy = server.client.run("busy").await.instance_id.to_string();
    let seen = sample(&mut page, &busy, |now| now["cpu_percent"].as_f64() > Some(0.0)).await;
    assert_eq!(seen["cpu_normalized"], true);
    assert!(seen["cpu_percent"].as_f64() <= Some(100.0), "{seen}");
    assert!(seen["disk_read_bps"].is_null() && seen["disk_write_bps"].is_null(), "{seen}");
    let features = server.client.get("/api/bootstrap").await.json()["features"].clone();
    assert_eq!(
        (&features["metrics"], &features["metrics_show_disk"]),
        (&true.into(), &false.into())
    );
}

/// Samples are rarer while no page is open; a new page gets the usual rate at once.
#[tokio::test]
async fn the_pace_is_slower_while_nobody_wants_samples() {
    let world = quick(json!({ "claude": { "stop_grace_seconds": 30 } }));
    world.project("app");
    world.project_with("slow", json!({ "shutdown_ms": 9000 }));
    let server = world.serve().await;
    let id = server.client.run("app").await.instance_id.to_string();
    server.client.run("slow").await;
    // An end that takes its time: three looks and more.
    server.client.stop("slow").await.expect(200);
    let all = server.client.get("/api/metrics?history=true").await.expect(200).json();
    let points = all[&id]["history"].as_array().expect("points");
    let times: Vec<i64> = points.iter().map(|point| millis(&point["time"])).collect();
    let [.., before, last] = times[..] else { panic!("too few: {points:?}") };
    assert!(last - before >= 2_000, "nobody looked: {times:?}");

    let mut page = server.events().await;
    within("two samples at the usual pace", async {
        let mut last = last;
        loop {
            if let EventFrame::Sample { time, metrics } = page.next().await
                && metrics.contains_key(&id)
            {
                let apart = time.as_millis() - last;
                if apart < 2_000 {
                    break;
                }
                last = time.as_millis();
            }
        }
    })
    .await;
}

fn millis(time: &Value) -> i64 {
    let time: Timestamp = time.as_str().and_then(|text| text.parse().ok()).expect("a time");
    time.as_millis()
}
