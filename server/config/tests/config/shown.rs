//! What `config show` lists.

use crate::Fixture;
use serde_json::json;
use svc_config::{Row, View, show, table};

fn row<'r>(rows: &'r [Row], key: &str) -> &'r Row {
    rows.iter().find(|row| row.key == key).unwrap_or_else(|| panic!("no {key}"))
}

#[test]
fn every_key_is_listed_with_value_and_source() {
    let fixture = Fixture::new();
    for name in ["api", "has.dot"] {
        std::fs::create_dir(fixture.path("projects").join(name)).unwrap();
    }
    let content = "port: 80\nrestart: {policy: always}\nclaude: {env: {A: secret, B: ''}}\n\
                   auth: {api_token_hash: null}\nnotifications: {urls: [a, b]}\n\
                   projects:\n  has.dot: {restart: never}\n  api:\n";
    let loaded = fixture.load(content, &[("SVC_HOST", "::1")]).unwrap();
    let rows = show(&loaded, View::Configured);
    let listed: Vec<_> = rows.iter().map(|row| row.key.as_str()).collect();
    for leaf in table::leaves().filter(|leaf| !leaf.is_per_project()) {
        assert!(listed.contains(&leaf.key), "{}", leaf.key);
    }
    let check = |key: &str, value: serde_json::Value, source: &str| {
        let row = row(&rows, key);
        assert_eq!((&row.value, row.source.to_string().as_str()), (&value, source), "{key}");
    };
    check("port", json!(80), "file:2");
    check("host", json!("::1"), "env:SVC_HOST");
    check("log_level", json!("info"), "default");
    check("claude.env", json!({"A": "********", "B": "********"}), "file:4");
    check("notifications.urls", json!(["********", "********"]), "file:6");
    check("auth.api_token_hash", json!(null), "file:5");
    check("projects.has.dot.restart", json!("never"), "file:8");
    check("projects.api.restart", json!(null), "default");
    check("hosted.socket_path", json!(null), "default");
    assert_eq!(row(&rows, "host").text(), "::1");
    assert_eq!(row(&rows, "claude.path_append").text(), "[]");
    assert_eq!(
        loaded.source("projects.has.dot.restart").map(ToString::to_string).as_deref(),
        Some("file:8")
    );
    assert_eq!(loaded.source("no.such.key"), None);
}

#[test]
fn the_effective_view_fills_in_what_follows_from_the_rest() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("projects/api")).unwrap();
    let content = "state_dir: /var/lib/svc\nrestart: {policy: always}\nprojects: {api: {}}\n";
    let rows = show(&fixture.load(content, &[]).unwrap(), View::Effective);
    assert_eq!(row(&rows, "hosted.socket_path").text(), "/var/lib/svc/hosted/daemon.sock");
    assert_eq!(row(&rows, "usage.currency_symbol").text(), "$");
    assert_eq!(row(&rows, "projects.api.restart").text(), "always");
}
