//! The table of keys as JSON Schema, for editors and checkers.
//!
//! It describes the plain spellings only, because an editor should suggest those. The loader also
//! reads others: `yes` for `true`, numbers in quotes, old names of keys.

use crate::schema::{self, ItemRule, Kind, Leaf, PROJECTS, TextRule};
use crate::table::leaves;
use crate::value::Value;
use serde_json::{Map, Value as Json, json};

/// Seconds as a text: a number with a unit.
const DURATION: &str = r"^[0-9.]+ *(ms|s|m|h|d)$";

/// JSON Schema (draft 2020-12) of the configuration file.
#[must_use]
pub fn json_schema() -> Json {
    let mut root = section("Configuration of svc.");
    for leaf in leaves() {
        insert(&mut root, leaf.key, property(leaf));
    }
    root.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
    root.insert("title".into(), "svc.yml".into());
    root.insert("type".into(), "object".into());
    let required: Vec<&str> = leaves()
        .filter(|leaf| matches!(leaf.preset, schema::Preset::Required))
        .map(|leaf| leaf.key)
        .collect();
    root.insert("required".into(), required.into());
    Json::Object(root)
}

/// A mapping of known keys. An empty section is null in YAML, and allowed.
fn section(about: &str) -> Map<String, Json> {
    let mut section = Map::new();
    section.insert("description".into(), about.into());
    section.insert("type".into(), json!(["object", "null"]));
    section.insert("properties".into(), Json::Object(Map::new()));
    section.insert("additionalProperties".into(), false.into());
    section
}

fn insert(parent: &mut Map<String, Json>, key: &str, property: Json) {
    let Some((name, rest)) = key.split_once('.') else {
        if let Some(properties) = object(parent, "properties") {
            properties.insert(key.to_owned(), property);
        }
        return;
    };
    // Children of `projects` are named by the operator.
    let place = if name == "<name>" { "additionalProperties" } else { "properties" };
    if place == "additionalProperties" {
        if parent.get(place).is_none_or(|schema| !schema.is_object()) {
            parent.insert(place.into(), Json::Object(section("Settings of one project.")));
        }
        if let Some(each) = object(parent, place) {
            insert(each, rest, property);
        }
        return;
    }
    let about = if name == PROJECTS {
        "Settings by project name.".into()
    } else {
        format!("Section `{name}`.")
    };
    if let Some(properties) = object(parent, place)
        && let Some(child) =
            properties.entry(name).or_insert_with(|| Json::Object(section(&about))).as_object_mut()
    {
        insert(child, rest, property);
    }
}

fn object<'m>(map: &'m mut Map<String, Json>, name: &str) -> Option<&'m mut Map<String, Json>> {
    map.get_mut(name).and_then(Json::as_object_mut)
}

fn property(leaf: &Leaf) -> Json {
    let mut property = shape(leaf.kind);
    if leaf.nullable || matches!(leaf.kind, Kind::List(_) | Kind::TextMap | Kind::Switches(_)) {
        property = json!({ "anyOf": [property, { "type": "null" }] });
    }
    let mut about = leaf.about.to_owned();
    if let Some(variable) = leaf.variable() {
        about.push_str(&format!(" Environment: {variable}."));
    }
    if let Some(property) = property.as_object_mut() {
        property.insert("description".into(), about.into());
        if let Some(preset) = Value::preset(leaf.preset) {
            property.insert("default".into(), preset.to_json());
        }
        if leaf.secret {
            property.insert("writeOnly".into(), true.into());
        }
    }
    property
}

fn shape(kind: Kind) -> Json {
    match kind {
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Int { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Float(range) => bounded("number", range),
        Kind::Seconds { whole, range } => {
            let number = bounded(if whole { "integer" } else { "number" }, range);
            json!({ "anyOf": [number, { "type": "string", "pattern": DURATION }] })
        }
        Kind::Text(rule) => text(rule),
        Kind::Choice { words, .. } => json!({ "enum": words }),
        Kind::Path | Kind::Program | Kind::SocketPath => {
            json!({ "type": "string", "minLength": 1 })
        }
        Kind::List(rule) => json!({ "type": "array", "items": item(rule) }),
        Kind::TextMap => json!({
            "type": "object",
            "propertyNames": { "pattern": "^[^=]+$" },
            "additionalProperties": { "type": ["string", "number", "boolean"] }
        }),
        Kind::Switches(known) => {
            let switches: Map<String, Json> = known
                .iter()
                .map(|(name, _)| ((*name).to_owned(), json!({ "type": "boolean" })))
                .collect();
            json!({ "type": "object", "properties": switches, "additionalProperties": false })
        }
    }
}

fn bounded(kind: &str, range: schema::Range) -> Json {
    let lower = if range.is_open { "exclusiveMinimum" } else { "minimum" };
    let mut shape = json!({ "type": kind, lower: range.min });
    if range.max.is_finite()
        && let Some(shape) = shape.as_object_mut()
    {
        shape.insert("maximum".into(), range.max.into());
    }
    shape
}

fn text(rule: TextRule) -> Json {
    match rule {
        TextRule::Any | TextRule::RootPath | TextRule::Currency => json!({ "type": "string" }),
        TextRule::Host => json!({ "type": "string", "pattern": r"^\S+$" }),
        TextRule::InstanceName => {
            json!({ "type": "string", "pattern": "^[A-Za-z0-9_.-]{1,32}$" })
        }
        TextRule::SessionName => json!({ "type": "string", "maxLength": 128 }),
        TextRule::HeaderName => {
            json!({ "type": "string", "pattern": "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$" })
        }
        TextRule::Sha256Hex => json!({ "type": "string", "pattern": "^[0-9a-f]{64}$" }),
        TextRule::QuietHours => {
            json!({ "type": "string", "pattern": r"^\d\d:\d\d-\d\d:\d\d$" })
        }
    }
}

/// Entries are read as texts: a port number in a host pattern needs no quotes.
fn item(rule: ItemRule) -> Json {
    match rule {
        ItemRule::Any
        | ItemRule::Path
        | ItemRule::Network
        | ItemRule::Origin
        | ItemRule::HostPattern
        | ItemRule::HostName => json!({ "type": "string", "minLength": 1 }),
    }
}
