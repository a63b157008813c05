//! The API description: a reviewed snapshot, and a check of every reply against it.

use crate::client::{Reply, Sent};
use crate::harness::{Server, instance, project};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::LazyLock;
use svc_http::{Facts, ServeOptions};

/// Set to write the snapshot anew.
const UPDATE: &str = "SVC_UPDATE_SNAPSHOTS";
const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/openapi.json");

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| description(""));

fn description(root: &str) -> Value {
    svc_http::description(&Facts {
        root: root.into(),
        is_auth_on: false,
        cookie: "svc_session_0123456789ab".into(),
        user_header: "X-Forwarded-User".into(),
    })
}

#[test]
fn the_description_is_the_reviewed_one() {
    let now = serde_json::to_string_pretty(&*DOCUMENT).unwrap() + "\n";
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(SNAPSHOT, &now).unwrap();
    }
    let reviewed = std::fs::read_to_string(SNAPSHOT).unwrap_or_default();
    assert!(now == reviewed, "the description changed; review it with {UPDATE}=1 and `git diff`");
}

#[test]
fn every_operation_is_there_with_its_name_and_its_refusals() {
    let mut operations = BTreeSet::new();
    for (path, item) in DOCUMENT["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            operations.insert(operation["operationId"].as_str().unwrap());
            for status in ["401", "403", "421", "503"] {
                assert!(operation["responses"][status].is_object(), "{method} {path}: {status}");
            }
            if operation["requestBody"].is_object() {
                for status in ["413", "415", "422"] {
                    assert!(
                        operation["responses"][status].is_object(),
                        "{method} {path}: {status}"
                    );
                }
            }
        }
    }
    assert_eq!(
        operations.into_iter().collect::<Vec<_>>(),
        [
            "dispatchAgent",
            "getHealth",
            "getInstance",
            "getMetrics",
            "listAdoptableProjects",
            "listAgents",
            "listExternalSessions",
            "listInstances",
            "listProjects",
            "listTrackedSessions",
            "resumeAgent",
            "resumeInstance",
            "spawnInstance",
            "stopAgent",
            "stopInstance",
        ]
    );
}

#[test]
fn replies_say_everything_and_requests_may_leave_things_out() {
    let schemas = DOCUMENT["components"]["schemas"].as_object().unwrap();
    for (name, schema) in schemas {
        if schema["type"] != "object" {
            continue;
        }
        let is_request = name.ends_with("Request");
        let is_part = matches!(name.as_str(), "InstanceMembers" | "Outcome");
        if !is_part {
            assert_eq!(schema["additionalProperties"], json!(is_request), "{name}");
        }
        if !is_request {
            let required = schema["required"].as_array().unwrap().len();
            let omitted = match name.as_str() {
                "Health" => 2,
                "Error" | "WorkingSession" => 1,
                _ => 0,
            };
            assert_eq!(
                required + omitted,
                schema["properties"].as_object().unwrap().len(),
                "{name}"
            );
        }
    }
    let instance = &schemas["Instance"]["properties"];
    assert_eq!(instance["process_id"]["nullable"], true);
    assert_eq!(instance["quarantined"]["nullable"], true);
    assert!(instance["quarantined"]["allOf"].is_array());
    assert_eq!(schemas["SpawnRequest"]["required"], json!(["project"]));
}

#[tokio::test]
async fn the_description_is_served_only_when_asked_for() {
    let off = Server::start().await;
    assert_eq!(off.get("/openapi.json").await.status, 404);
    assert_eq!(off.send(Sent::new("POST", "/openapi.json")).await.status, 404);
    let on = "root_path: /a/b\napi:\n  openapi_enabled: true\n";
    let on = Server::with(on, ServeOptions::default()).await;
    let served = on.get("/a/b/openapi.json").await.json();
    assert_eq!(served["servers"][0]["url"], "/a/b");
    assert_eq!(served["paths"], DOCUMENT["paths"]);
    assert_eq!(on.get("/a/b/docs").await.status, 200);
    assert_eq!(off.get("/docs").await.status, 404);
}

/// What serde writes of each shared type fits what the document says of it.
#[test]
fn shared_types_write_what_the_document_says() {
    use svc_shared::api::instances::{Outcome, SpawnResult};
    let row = instance("b0000000-0000-4000-8000-000000000001", "api", "running");
    check("Instance", &row);
    check("Project", &project("api", "trusted").1);
    let outcome = Outcome {
        created: false,
        reason: Some("it is live".into()),
        reason_code: Some(svc_shared::status::NotCreated::AlreadyRunning.into()),
        warnings: vec!["w".into()],
    };
    check("SpawnResult", &SpawnResult { instance: row.clone(), outcome });
    let mut bare = row;
    (bare.session_ref, bare.quarantined, bare.exit_reason, bare.resume_blocked) =
        (None, None, None, None);
    bare.started_at = None;
    check("Instance", &bare);
    check(
        "WorkingSession",
        &json!({"pid": 1, "cwd": "/p", "kind": "interactive", "state": "", "name": null,
            "waiting_for": null, "started_at": 1, "session_ref": null, "parent_instance": null,
            "attribution": "external", "activity": null}),
    );
    check(
        "WorkingSession",
        &json!({"pid": 1, "cwd": "/p", "kind": "interactive", "state": "", "name": null,
            "waiting_for": null, "started_at": 1, "session_ref": null, "parent_instance": null,
            "attribution": "external", "also_in": [7], "activity": null}),
    );
}

#[track_caller]
fn check<T: serde::Serialize>(name: &str, value: &T) {
    let value = serde_json::to_value(value).unwrap();
    let problems = problems(&json!({"$ref": format!("#/components/schemas/{name}")}), &value);
    assert!(problems.is_empty(), "{name}: {problems:#?}");
}

/// Holds a reply of a documented operation against the description.
#[track_caller]
pub fn check_recorded(sent: &Sent, reply: &Reply) {
    let path = sent.path.split('?').next().unwrap_or_default();
    let documented = path.strip_prefix("/api/v1").or_else(|| path.strip_prefix("/api"));
    let path = match documented {
        Some(local) => format!("/api/v1{local}"),
        None if path == "/healthz" => path.to_owned(),
        None => return,
    };
    let is_body = !reply.body.is_empty() && reply.header("content-encoding").is_none();
    let Some(operation) = operation(&path, &sent.method).filter(|_| is_body) else {
        return;
    };
    // Beneath the operations: malformed and oversized heads, defects, methods.
    if matches!(reply.status, 304 | 400 | 405 | 408 | 414 | 431 | 500) {
        return;
    }
    let schema =
        &operation["responses"][reply.status.to_string()]["content"]["application/json"]["schema"];
    assert!(schema.is_object(), "{} {path}: {} is not documented", sent.method, reply.status);
    let problems = problems(schema, &reply.json());
    assert!(problems.is_empty(), "{} {path} {}: {problems:#?}", sent.method, reply.status);
}

fn operation(path: &str, method: &str) -> Option<&'static Value> {
    let asked: Vec<&str> = path.split('/').collect();
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let (_, item) = paths.iter().find(|(pattern, _)| {
        let pattern: Vec<&str> = pattern.split('/').collect();
        pattern.len() == asked.len()
            && pattern
                .iter()
                .zip(&asked)
                .all(|(part, asked)| part.starts_with('{') || part == asked)
    })?;
    item.get(method.to_ascii_lowercase())
}

fn problems(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    hold(schema, value, "", &mut found);
    found
}

/// Checks a value against the part of the schema language that is in use here.
/// An unknown keyword fails, so that nothing is passed over.
fn hold(schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    if value.is_null() && schema["nullable"] == true {
        return;
    }
    let mut check = |holds: bool, what: &str| {
        if !holds {
            found.push(format!("{at}: {what}: {value}"));
        }
    };
    let length = || value.as_str().map_or(0, |text| text.chars().count() as u64);
    let mut parts: Vec<(&Value, &Value, String)> = Vec::new();
    for (word, rule) in schema.as_object().unwrap() {
        match word.as_str() {
            "type" => check(is_of_type(value, rule.as_str().unwrap()), "wrong type"),
            "enum" => check(rule.as_array().unwrap().contains(value), "no word of the list"),
            "minLength" => check(length() >= rule.as_u64().unwrap(), "too short"),
            "maxLength" => check(length() <= rule.as_u64().unwrap(), "too long"),
            "required" => {
                for name in rule.as_array().unwrap() {
                    check(value.get(name.as_str().unwrap()).is_some(), &format!("no {name}"));
                }
            }
            "anyOf" => {
                let fits = |schema: &Value| problems(schema, value).is_empty();
                check(rule.as_array().unwrap().iter().any(fits), "none of the alternatives");
            }
            "allOf" => {
                parts.extend(rule.as_array().unwrap().iter().map(|rule| (rule, value, at.into())));
            }
            "$ref" => {
                let target = DOCUMENT.pointer(rule.as_str().unwrap().trim_start_matches('#'));
                parts.push((target.unwrap(), value, at.into()));
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    parts.push((rule, item, format!("{at}/{index}")));
                }
            }
            "properties" => {
                for (name, rule) in rule.as_object().unwrap() {
                    if let Some(member) = value.get(name) {
                        parts.push((rule, member, format!("{at}/{name}")));
                    }
                }
            }
            "additionalProperties" => {
                let known = &schema["properties"];
                for (name, member) in value.as_object().into_iter().flatten() {
                    match rule {
                        _ if known.get(name).is_some() => {}
                        Value::Bool(is_allowed) => check(*is_allowed, &format!("unknown {name}")),
                        rule => parts.push((rule, member, format!("{at}/{name}"))),
                    }
                }
            }
            "nullable" | "description" | "title" | "format" | "pattern" | "default" => {}
            other => check(false, &format!("the test does not know `{other}`")),
        }
    }
    for (schema, value, at) in parts {
        hold(schema, value, &at, found);
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        _ => false,
    }
}
