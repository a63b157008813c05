//! Jobs as `agents --json` shows them: the record, and its live session if any.

use serde_json::{Map, Value, json};

use super::record;
use crate::sim::double::Double;

/// The listed jobs; `ended` also asks for those in a terminal state.
pub(crate) fn items(
    double: &Double,
    live: &[Map<String, Value>],
    ended: bool,
) -> Vec<Map<String, Value>> {
    let records = record::all(&double.home).into_iter();
    records.filter_map(|record| item(&record.fields()?, record.id(), live, ended)).collect()
}

fn item(
    fields: &Map<String, Value>,
    id: &str,
    live: &[Map<String, Value>],
    ended: bool,
) -> Option<Map<String, Value>> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or("");
    let state = text("state");
    let terminal = record::is_terminal(state);
    if terminal && !ended {
        return None;
    }
    let entry = live.iter().find(|entry| entry.get("jobId") == Some(&json!(id)));
    let mut item = Map::new();
    if let Some(pid) = entry.and_then(|entry| entry.get("pid")).filter(|_| !terminal) {
        item.insert("pid".into(), pid.clone());
    }
    item.insert("id".into(), json!(id));
    item.insert("cwd".into(), json!(text("cwd")));
    item.insert("kind".into(), json!("background"));
    let started = entry.and_then(|entry| entry.get("startedAt")).cloned();
    item.insert("startedAt".into(), started.unwrap_or_else(|| json!(epoch_ms(text("createdAt")))));
    item.insert("sessionId".into(), json!(text("sessionId")));
    let name = [text("name"), text("intent")].into_iter().find(|name| !name.is_empty());
    let name = name.map(|name| json!(name)).or_else(|| entry?.get("name").cloned());
    item.extend(name.map(|name| ("name".to_owned(), name)));
    let status = entry.and_then(|entry| entry.get("status")).filter(|_| !terminal);
    item.extend(status.map(|status| ("status".to_owned(), status.clone())));
    let shown = match (text("tempo"), state) {
        ("blocked", "working" | "running") => "blocked",
        (_, "running") => "working",
        (_, other) => other,
    };
    item.insert("state".into(), json!(shown));
    Some(item)
}

/// Milliseconds since the epoch of a time in the agent's format; 0 for other text.
fn epoch_ms(text: &str) -> i128 {
    let format = &time::format_description::well_known::Rfc3339;
    let parsed = time::OffsetDateTime::parse(text, format);
    parsed.map_or(0, |at| at.unix_timestamp_nanos() / 1_000_000)
}
