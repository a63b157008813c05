//! Values as YAML text.

use super::spans::Style;
use serde_json::Value as Json;

/// Texts that a YAML reader may take for something else than a text.
const AMBIGUOUS: [&str; 12] =
    ["y", "n", "yes", "no", "on", "off", "true", "false", "t", "f", "null", "nan"];

/// A scalar or a list on one line.
pub(super) fn flow(value: &Json) -> String {
    match value {
        Json::String(text) => scalar(text),
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}

/// A value in the place of a scalar, in the quotes that it had.
pub(super) fn like(value: &Json, style: Style) -> String {
    match (value, style) {
        (Json::String(text), Style::Double) => quoted(text),
        (Json::String(text), Style::Single) if !text.chars().any(char::is_control) => {
            format!("'{}'", text.replace('\'', "''"))
        }
        _ => flow(value),
    }
}

/// A text or a name, without quotes where nobody can misread it.
pub(super) fn scalar(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'))
        && !AMBIGUOUS.contains(&text.to_ascii_lowercase().as_str());
    if is_plain { text.to_owned() } else { quoted(text) }
}

/// A JSON string is a YAML string, whatever stands in it.
fn quoted(text: &str) -> String {
    Json::from(text).to_string()
}
