//! Compares every documented answer with the description the service publishes.

use super::client::{Client, Reply};
use jsonschema::{Draft, Validator};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use tokio::sync::OnceCell;

/// The description, with its schemas turned into plain JSON Schema.
struct Contract {
    paths: Vec<(Vec<String>, Value)>,
    components: Value,
}

static CONTRACT: OnceCell<Arc<Contract>> = OnceCell::const_new();
/// Operations whose answers were checked, so that a test can see that some were.
static SEEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Panics when an answer of a documented operation is not as described.
pub async fn check(client: &Client, method: &Method, path: &str, reply: &Reply) {
    let v1 = match path.strip_prefix("/api/v1/") {
        Some(_) => path.to_owned(),
        None => match path.strip_prefix("/api/") {
            Some(rest) => format!("/api/v1/{rest}"),
            None => return,
        },
    };
    // Only the service itself can say; one that lost its description has nothing to be held to.
    let Ok(contract) = CONTRACT.get_or_try_init(|| Contract::read(client)).await else { return };
    if *method == Method::HEAD || *method == Method::OPTIONS || reply.status == 304 {
        return;
    }
    let Some((pattern, operations)) = contract.find(&v1) else { return };
    let Some(operation) = operations.get(method.as_str().to_ascii_lowercase()) else { return };
    let answers = &operation["responses"];
    let name = format!("{method} {pattern} {}", reply.status);
    let answer = answers
        .get(reply.status.to_string())
        .or_else(|| answers.get("default"))
        .unwrap_or_else(|| panic!("{name} is not documented: {}", reply.text()));
    let schema = &answer["content"]["application/json; charset=utf-8"]["schema"];
    let schema =
        if schema.is_null() { &answer["content"]["application/json"]["schema"] } else { schema };
    assert!(!schema.is_null(), "{name} has no schema: {answer}");
    let wrong: Vec<String> = contract
        .validator(schema)
        .iter_errors(&reply.json())
        .map(|error| format!("{}: {error}", error.instance_path))
        .collect();
    assert!(wrong.is_empty(), "{name} is not as described: {wrong:?}\n{}", reply.text());
    SEEN.lock().expect("nobody panics with it").insert(name);
}

/// Operations whose answers were checked so far.
pub fn seen() -> BTreeSet<String> {
    SEEN.lock().expect("nobody panics with it").clone()
}

impl Contract {
    async fn read(client: &Client) -> Result<Arc<Self>, String> {
        let request = client.request(Method::GET, "/openapi.json").send();
        let answer = request.await.map_err(|error| error.to_string())?;
        let status = answer.status();
        let document: Value = answer.json().await.map_err(|error| format!("{status}: {error}"))?;
        let paths = document["paths"].as_object().ok_or("no paths")?;
        let paths = paths.iter().map(|(path, operations)| {
            (path.split('/').map(str::to_owned).collect(), operations.clone())
        });
        let paths = paths.collect();
        let mut components = document["components"].clone();
        plain(&mut components);
        Ok(Arc::new(Self { paths, components }))
    }

    fn find(&self, path: &str) -> Option<(String, &Value)> {
        let segments: Vec<&str> = path.split('/').collect();
        let fits = |pattern: &[String]| {
            pattern.len() == segments.len()
                && pattern.iter().zip(&segments).all(|(p, s)| p.starts_with('{') || p == s)
        };
        let mut found: Vec<_> = self.paths.iter().filter(|(pattern, _)| fits(pattern)).collect();
        // A literal segment wins over a named one.
        found.sort_by_key(|(pattern, _)| pattern.iter().filter(|p| p.starts_with('{')).count());
        found.first().map(|(pattern, operations)| (pattern.join("/"), operations))
    }

    fn validator(&self, schema: &Value) -> Validator {
        let mut schema = schema.clone();
        plain(&mut schema);
        let whole = json!({ "allOf": [schema], "components": self.components });
        let options = jsonschema::options().with_draft(Draft::Draft4);
        options.build(&whole).unwrap_or_else(|error| panic!("a wrong schema: {error}"))
    }
}

/// OpenAPI 3.0 says `nullable`, JSON Schema says "or null".
fn plain(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(plain),
        Value::Object(members) => {
            members.values_mut().for_each(plain);
            if members.remove("nullable") == Some(Value::Bool(true)) {
                let own = std::mem::take(members);
                *schema = json!({ "anyOf": [own, { "type": "null" }] });
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
