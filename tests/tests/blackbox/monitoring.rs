//! The figures, the alerts and the board, read by a real Prometheus.

use crate::harness::{World, installed, within};
use serde_json::{Value, json};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use svc_skip::skip;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

const NO_PROMETHEUS: &str = "Prometheus is not installed";

fn documents() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/monitoring")
}

fn promtool(program: &Path, args: &[&str]) -> Output {
    let ran = Command::new(program).args(args).current_dir(documents()).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{args:?}: {said}{}", String::from_utf8_lossy(&ran.stderr));
    ran
}

#[test]
fn each_alert_comes_when_it_should_and_only_then() {
    let Some(program) = installed("promtool") else { skip!("{NO_PROMETHEUS}") };
    promtool(&program, &["check", "rules", "svc.rules.yml"]);
    promtool(&program, &["test", "rules", "svc.rules.test.yml"]);
}

/// Every query of the board, as Grafana sends it.
fn queries(board: &Value) -> Vec<String> {
    let panels = board["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    let queries = targets.map(|target| target["expr"].as_str().unwrap());
    queries
        .map(|query| query.replace("$instance", ".*").replace("$__rate_interval", "2m"))
        .collect()
}

#[tokio::test]
async fn prometheus_scrapes_every_family_that_the_board_and_the_alerts_ask_for() {
    let Some(program) = installed("prometheus") else { skip!("{NO_PROMETHEUS}") };
    let Some(tool) = installed("promtool") else { skip!("{NO_PROMETHEUS}") };
    let world = World::with(json!({
        "observability": { "prometheus_enabled": true },
        "metrics": { "sample_interval_seconds": 1, "poll_seconds": 1 },
    }));
    world.project("web");
    let server = world.serve().await;
    let bridge = server.client.run("web").await;

    let text = server.client.get("/metrics").await.expect(200).text();
    let mut check = tokio::process::Command::new(&tool);
    check.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut check = check.stderr(Stdio::piped()).spawn().unwrap();
    check.stdin.take().unwrap().write_all(text.as_bytes()).await.unwrap();
    let checked = within("promtool", check.wait_with_output()).await.unwrap();
    let found = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(checked.status.success() && found.is_empty(), "{found}\n{text}");

    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let rules = fs::read_to_string(documents().join("svc.rules.yml")).unwrap();
    fs::write(world.root.join("svc.rules.yml"), rules).unwrap();
    let settings = json!({
        "global": { "scrape_interval": "1s", "evaluation_interval": "1s" },
        "rule_files": ["svc.rules.yml"],
        "scrape_configs": [{
            "job_name": "svc",
            "static_configs": [{ "targets": [server.base.trim_start_matches("http://")] }],
        }],
    });
    let file = world.root.join("prometheus.yml");
    fs::write(&file, settings.to_string()).unwrap(); // JSON is YAML
    let mut prometheus = tokio::process::Command::new(program);
    prometheus.env_clear().envs(world.environment()).current_dir(&world.root);
    prometheus.arg(format!("--config.file={}", file.display()));
    prometheus.arg(format!("--storage.tsdb.path={}", world.root.join("figures").display()));
    prometheus.arg(format!("--web.listen-address={free}"));
    prometheus.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut prometheus = prometheus.kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(prometheus.stderr.take().unwrap()).lines();
    within("Prometheus", async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("ready to receive web requests") {
                return;
            }
        }
        panic!("it ended");
    })
    .await;
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });

    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let ask = |path: &'static str, query: String| {
        let asked = http.get(format!("http://{free}{path}")).query(&[("query", query)]);
        async move { asked.send().await.unwrap().json::<Value>().await.unwrap() }
    };
    let instant = "/api/v1/query";
    // Each family is asked for until a scrape has brought it.
    for (family, least) in [
        ("svc_build_info", 1),
        ("svc_bridges", 5),
        ("svc_projects", 1),
        ("svc_bridge_cpu_percent", 1),
        ("svc_bridge_rss_bytes", 1),
    ] {
        within(family, async {
            loop {
                let answer = ask(instant, family.to_owned()).await;
                if answer["data"]["result"].as_array().unwrap().len() >= least {
                    return;
                }
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
    let board = fs::read_to_string(documents().join("grafana.json")).unwrap();
    let board: Value = serde_json::from_str(&board).unwrap();
    let all = queries(&board);
    assert!(all.len() > 9, "{all:?}");
    for query in all {
        let answer = ask(instant, query.clone()).await;
        assert_eq!(answer["status"], "success", "{query}: {answer}");
    }
    let running = ask(instant, "sum(svc_bridges{status=\"running\"})".to_owned()).await;
    assert_eq!(running["data"]["result"][0]["value"][1], "1", "{running}");
    let rules = ask("/api/v1/rules", String::new()).await;
    let rules = rules["data"]["groups"][0]["rules"].as_array().unwrap().clone();
    assert_eq!(rules.len(), 5, "{rules:?}");
    assert!(rules.iter().all(|rule| rule["health"] != "err"), "{rules:?}");
    server.client.stop(bridge.instance_id.as_str()).await.expect(200);
    server.stop().await;
}
