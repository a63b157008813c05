//! The published schema and the loader accept and refuse the same values.

use crate::Fixture;
use serde_json::{Value, json};
use svc_config::schema::{Kind, Leaf, Preset};
use svc_config::table::leaves;
use svc_config::{View, json_schema, show};

/// A file that sets this one key, beside the required one. JSON is YAML, too.
fn file(leaf: &Leaf, value: &Value) -> Value {
    let key = leaf.key.replace("<name>", "app");
    let mut inner = value.clone();
    let mut names: Vec<&str> = key.split('.').collect();
    let first = names.remove(0);
    for name in names.into_iter().rev() {
        inner = json!({ name: inner });
    }
    let mut file = json!({ "projects_root": "projects" });
    file[first] = inner;
    file
}

fn fits(file: &Value) -> bool {
    let options = jsonschema::options().with_draft(jsonschema::Draft::Draft202012);
    options.build(&json_schema()).unwrap().is_valid(file)
}

/// Whether the key loads.
///
/// A protection that this version cannot give is refused for another reason.
fn loads(leaf: &Leaf, file: &Value) -> bool {
    match Fixture::new().load_bytes(file.to_string(), &[]) {
        Ok(_) => true,
        Err(_) if leaf.protects => true,
        Err(_) => false,
    }
}

#[test]
fn the_schema_is_a_schema_and_describes_every_key() {
    let schema = json_schema();
    assert!(jsonschema::meta::is_valid(&schema));
    for leaf in leaves() {
        let pointer = leaf
            .key
            .split('.')
            .map(|name| match name {
                "<name>" => "/additionalProperties".to_owned(),
                name => format!("/properties/{name}"),
            })
            .collect::<String>();
        let property = schema.pointer(&pointer).unwrap_or_else(|| panic!("{}", leaf.key));
        assert!(property["description"].as_str().unwrap().starts_with(leaf.about), "{}", leaf.key);
    }
}

#[test]
fn the_defaults_and_the_smallest_file_fit_the_schema() {
    let loaded = Fixture::new().load("", &[]).unwrap();
    assert!(fits(&json!({ "projects_root": "/srv" })));
    assert!(!fits(&json!({})), "the projects root is required");
    for row in show(&loaded, View::Configured) {
        let leaf = leaves().find(|leaf| leaf.key == row.key).unwrap();
        if matches!(leaf.preset, Preset::Required | Preset::Derived) {
            continue;
        }
        assert!(fits(&file(leaf, &row.value)), "{}: {}", row.key, row.value);
    }
}

#[test]
fn a_value_of_the_wrong_shape_fits_neither_the_schema_nor_the_loader() {
    for leaf in leaves() {
        let wrong = match leaf.kind {
            Kind::Bool => json!("perhaps"),
            Kind::Int { min, .. } => json!(min - 1),
            Kind::Float(_) | Kind::Seconds { .. } => json!(-1.5),
            Kind::Choice { .. } => json!("no-such-word"),
            Kind::Switches(_) => json!({ "no-such-event": true }),
            Kind::TextMap => json!({ "A=B": "x" }),
            Kind::List(_) => json!("one, two"),
            Kind::Text(_) | Kind::Path | Kind::Program | Kind::SocketPath => json!(["a"]),
        };
        let file = file(leaf, &wrong);
        assert!(!fits(&file), "the schema takes {} = {wrong}", leaf.key);
        let fixture = Fixture::new();
        assert!(fixture.load_bytes(file.to_string(), &[]).is_err(), "{} = {wrong}", leaf.key);
    }
}

#[test]
fn spans_of_time_and_empty_sections_fit_as_they_load() {
    let grace = leaves().find(|leaf| leaf.key == "claude.startup_grace_seconds").unwrap();
    for value in [json!("250ms"), json!("1.5 m"), json!(90), json!("2h")] {
        let file = file(grace, &value);
        assert_eq!((fits(&file), loads(grace, &file)), (true, true), "{value}");
    }
    assert!(!fits(&file(grace, &json!("soon"))));
    assert!(fits(&json!({ "projects_root": "/srv", "claude": null, "projects": { "app": null } })));
    assert!(!fits(&json!({ "projects_root": "/srv", "clade": {} })), "a misspelt key is noticed");
}
