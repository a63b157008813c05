//! The API description, generated from the operations and then completed.
//!
//! One pass adds what the generator cannot say (`http-api` §7).

use crate::context::Context;
use crate::digest;
use crate::public::Operations;
use poem::endpoint::BoxEndpoint;
use poem::http::Method;
use poem_openapi::registry::{MetaApi, Registry};
use poem_openapi::{OpenApi, OpenApiService};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use svc_shared::error::ErrorCode;
use svc_shared::status::{
    AfterReboot, Channel, LaunchMode, OnLimit, PermissionMode, RestartPolicy, ResumeMode,
    SandboxMode, SpawnMode,
};

/// Schemas of bodies that callers send: open, every optional member may be null.
const REQUESTS: [&str; 3] = ["SpawnRequest", "ResumeRequest", "DispatchRequest"];
/// Members that are left out when they do not apply, by schema.
const OMITTED: [(&str, &str); 3] =
    [("Health", "demo"), ("Health", "hosted"), ("WorkingSession", "also_in")];
/// Schema of an instance that allows more members, for launch results.
const OPEN_INSTANCE: &str = "InstanceMembers";

/// Words of a problem with a request (`http-api` §0.3).
const PROBLEMS: [&str; 9] = [
    "json_invalid",
    "object_type",
    "missing",
    "string_type",
    "bool_type",
    "int_type",
    "list_type",
    "too_long",
    "enum",
];
/// Words for whose a working session is.
const ATTRIBUTIONS: [&str; 4] = ["tracked", "hosted", "untracked", "external"];

/// What depends on the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Configured prefix; empty without one.
    pub root: String,
    /// Authentication is on.
    pub is_auth_on: bool,
    /// Name of the session cookie.
    pub cookie: String,
    /// Header in which a trusted proxy names the user.
    pub user_header: String,
}

/// The description of a running service.
pub(crate) fn document(context: &Arc<Context>) -> Value {
    let settings = context.app.settings();
    let state_dir = settings.state_dir.as_os_str().as_encoded_bytes();
    let tag: String = digest::short_hash(state_dir).chars().take(12).collect();
    description(&Facts {
        root: context.root.as_str().to_owned(),
        is_auth_on: settings.auth.enabled,
        cookie: format!("svc_session_{tag}"),
        user_header: settings.auth.reverse_proxy.user_header.clone(),
    })
}

/// The description for these settings.
#[must_use]
pub fn description(settings: &Facts) -> Value {
    let server = if settings.root.is_empty() { "/" } else { &settings.root };
    let text = spec(server);
    // The generator's own output: always JSON.
    let mut document: Value = serde_json::from_str(&text).unwrap_or_default();
    if let Some(schemas) = object_at(&mut document, "/components/schemas") {
        let names: Vec<String> = schemas.keys().cloned().collect();
        for name in names {
            if let Some(schema) = schemas.get_mut(&name).and_then(Value::as_object_mut) {
                complete(&name, schema);
            }
        }
        limits(schemas);
        open_up_launch_results(schemas);
    }
    tidy(&mut document);
    security(&mut document, settings);
    document
}

/// Takes parts that only describe out of `allOf`.
///
/// The description stands beside it already. Generators of clients ask each part for its type.
fn tidy(value: &mut Value) {
    if let Some(parts) = value.get_mut("allOf").and_then(Value::as_array_mut) {
        parts.retain(|part| {
            part.as_object().is_none_or(|part| part.keys().any(|key| key != "description"))
        });
    }
    match value {
        Value::Object(members) => members.values_mut().for_each(tidy),
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

fn spec(server: &str) -> String {
    OpenApiService::new(Description, "svc", env!("CARGO_PKG_VERSION")).server(server).spec()
}

/// The operations as the generator sees them, without a service behind them.
struct Description;

impl OpenApi for Description {
    fn meta() -> Vec<MetaApi> {
        Operations::meta()
    }
    fn register(registry: &mut Registry) {
        Operations::register(registry);
    }
    fn add_routes(self, _: &mut HashMap<String, HashMap<Method, BoxEndpoint<'static>>>) {}
}

fn object_at<'v>(value: &'v mut Value, pointer: &str) -> Option<&'v mut Map<String, Value>> {
    value.pointer_mut(pointer).and_then(Value::as_object_mut)
}

/// Adds `required`, `nullable` and `additionalProperties` to a schema.
fn complete(name: &str, schema: &mut Map<String, Value>) {
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return;
    }
    let is_request = REQUESTS.contains(&name);
    let mandatory: Vec<String> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default();
    let mut always = Vec::new();
    if let Some(members) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for (member, schema) in members.iter_mut() {
            if OMITTED.contains(&(name, member.as_str())) {
                continue;
            }
            always.push(member.clone());
            if !mandatory.contains(member) {
                make_nullable(schema);
            }
        }
    }
    schema.insert("required".into(), json!(if is_request { mandatory } else { always }));
    if schema.get("required").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        schema.remove("required");
    }
    schema.insert("additionalProperties".into(), json!(is_request));
}

/// Allows null.
///
/// An enumeration or a reference is wrapped: beside `$ref` nothing counts, and an
/// enumeration without null in it would forbid it again.
fn make_nullable(schema: &mut Value) {
    let is_wrapped = schema.get("$ref").is_some() || schema.get("enum").is_some();
    if is_wrapped {
        *schema = json!({"allOf": [schema.take()]});
    }
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("nullable".into(), json!(true));
    }
}

/// Words, patterns and lengths that the shared types check by themselves.
fn limits(schemas: &mut Map<String, Value>) {
    fn words<T: Copy>(all: &[T], word: fn(T) -> &'static str) -> Value {
        json!({"enum": all.iter().map(|value| word(*value)).collect::<Vec<_>>()})
    }
    let codes = words(ErrorCode::ALL, ErrorCode::as_str);
    let modes = words(PermissionMode::ALL, PermissionMode::as_str);
    let reference = json!({"pattern": "^[0-9a-f]{16}$"});
    let job = json!({"pattern": "^[0-9a-f]{8}$"});
    let uuid = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$";
    let rules = [
        ("SpawnRequest", "project", json!({"minLength": 1, "maxLength": 255})),
        ("SpawnRequest", "channel", words(Channel::ALL, Channel::as_str)),
        ("SpawnRequest", "mode", words(LaunchMode::ALL, LaunchMode::as_str)),
        ("SpawnRequest", "spawn_mode", words(SpawnMode::ALL, SpawnMode::as_str)),
        ("SpawnRequest", "permission_mode", modes.clone()),
        ("SpawnRequest", "resume_mode", words(ResumeMode::ALL, ResumeMode::as_str)),
        ("SpawnRequest", "sandbox", words(SandboxMode::ALL, SandboxMode::as_str)),
        ("SpawnRequest", "restart", words(RestartPolicy::ALL, RestartPolicy::as_str)),
        ("SpawnRequest", "after_reboot", words(AfterReboot::ALL, AfterReboot::as_str)),
        ("SpawnRequest", "on_limit", words(OnLimit::ALL, OnLimit::as_str)),
        ("SpawnRequest", "conversation", reference.clone()),
        ("SpawnRequest", "resume_session_id", json!({"pattern": uuid})),
        ("DispatchRequest", "project", json!({"minLength": 1, "maxLength": 255})),
        ("DispatchRequest", "prompt", json!({"maxLength": 100_000})),
        ("DispatchRequest", "model", json!({"minLength": 1})),
        ("DispatchRequest", "permission_mode", modes),
        ("Instance", "session_ref", reference.clone()),
        ("Instance", "environment_ref", reference.clone()),
        ("Instance", "error_detail", json!({"maxLength": 2000})),
        ("Instance", "instance_id", json!({"pattern": uuid})),
        ("WorkingSession", "session_ref", reference.clone()),
        ("BackgroundJob", "session_ref", reference),
        ("BackgroundJob", "id", job.clone()),
        ("DispatchResult", "id", job.clone()),
        ("StopAgentResult", "id", job.clone()),
        ("ResumeAgentResult", "id", job),
        ("Error", "code", codes),
        ("SchemaProblem", "type", json!({"enum": PROBLEMS})),
        ("WorkingSession", "attribution", json!({"enum": ATTRIBUTIONS})),
        ("SchemaError", "code", json!({"enum": ["schema"]})),
        ("AmbiguousError", "code", json!({"enum": ["ambiguous"]})),
        ("Health", "status", json!({"enum": ["ok"]})),
        ("HealthMinimal", "status", json!({"enum": ["ok"]})),
    ];
    for (schema, member, rule) in rules {
        let found = schemas
            .get_mut(schema)
            .and_then(|schema| schema.get_mut("properties"))
            .and_then(|members| members.get_mut(member));
        let Some(found) = found else { continue };
        apply_rule(found, rule);
    }
    // A defect has an id beside its text.
    let error_id = json!({
        "type": "string",
        "pattern": "^[0-9a-f]{8}$",
        "description": "Code `internal`: finds the line in the service log."
    });
    if let Some(error) = schemas.get_mut("Error").and_then(|error| error.get_mut("properties"))
        && let Some(error) = error.as_object_mut()
    {
        error.insert("error_id".into(), error_id);
    }
}

fn apply_rule(schema: &mut Value, rule: Value) {
    let is_nullable = schema.get("nullable").is_some();
    if let (Some(schema), Value::Object(rule)) = (schema.as_object_mut(), rule) {
        if is_nullable && rule.contains_key("enum") {
            let mut words = rule;
            words.extend(schema.remove("type").map(|kind| ("type".to_owned(), kind)));
            schema.insert("allOf".into(), json!([words]));
        } else {
            schema.extend(rule);
        }
    }
}

/// Lets both parts of a launch result, instance and outcome, tolerate the other.
fn open_up_launch_results(schemas: &mut Map<String, Value>) {
    let Some(mut open) = schemas.get("Instance").cloned() else {
        return;
    };
    if let Some(open) = open.as_object_mut() {
        open.remove("additionalProperties");
        // Generators of clients call a type by its title.
        open.insert("title".into(), json!(OPEN_INSTANCE));
    }
    schemas.insert(OPEN_INSTANCE.into(), open);
    if let Some(outcome) = schemas.get_mut("Outcome").and_then(Value::as_object_mut) {
        outcome.remove("additionalProperties");
    }
    if let Some(result) = schemas.get_mut("SpawnResult").and_then(Value::as_object_mut) {
        result.insert(
            "allOf".into(),
            json!([
                {"$ref": format!("#/components/schemas/{OPEN_INSTANCE}")},
                {"$ref": "#/components/schemas/Outcome"}
            ]),
        );
    }
}

fn security(document: &mut Value, settings: &Facts) {
    let schemes = json!({
        "bearerAuth": {"type": "http", "scheme": "bearer"},
        "cookieAuth": {"type": "apiKey", "in": "cookie", "name": settings.cookie},
        "proxyAuth": {"type": "apiKey", "in": "header", "name": settings.user_header},
    });
    if let Some(components) = object_at(document, "/components") {
        components.insert("securitySchemes".into(), schemes);
    }
    let any = json!([{"bearerAuth": []}, {"cookieAuth": []}, {"proxyAuth": []}]);
    let global = if settings.is_auth_on { any } else { json!([]) };
    if let Some(root) = document.as_object_mut() {
        root.insert("security".into(), global);
    }
    if let Some(health) = object_at(document, "/paths/~1healthz/get") {
        health.insert("security".into(), json!([]));
    }
}
