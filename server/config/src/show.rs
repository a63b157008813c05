//! The configuration for people: every key, its value and the source of the value.

use crate::loaded::Loaded;
use crate::schema::Leaf;
use crate::secret::MASK;
use crate::setting::{Settings, Source};
use crate::table;
use crate::value::Value;
use serde_json::Value as Json;
use svc_shared::ids::ProjectName;

/// Which values are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// As configured: a key that follows another one is null.
    Configured,
    /// As the service uses them: derived and inherited values filled in.
    Effective,
}

/// One line of `config show`.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Dotted key.
    pub key: String,
    /// Value; secrets are masked, names in maps are not.
    pub value: Json,
    /// Where it comes from.
    pub source: Source,
}

impl Row {
    /// The value on one line: texts bare, everything else as JSON.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.value {
            Json::String(text) => crate::report::printable(text),
            other => other.to_string(),
        }
    }
}

/// Every key in the order of the documentation.
///
/// Keys of projects are listed for the projects that the file names.
#[must_use]
pub fn show(loaded: &Loaded, view: View) -> Vec<Row> {
    let mut rows = Vec::new();
    for leaf in table::leaves() {
        if leaf.is_per_project() {
            for (name, settings) in &loaded.projects {
                rows.push(project_row(loaded, leaf, name, settings, view));
            }
        } else if let Some(setting) = loaded.settings.get(leaf.key) {
            let value = match view {
                View::Configured => setting.value.to_json(),
                View::Effective => effective(loaded, leaf, &setting.value),
            };
            let value = if leaf.secret { masked(&setting.value) } else { without_urls(value) };
            let source = setting.source.clone();
            rows.push(Row { key: leaf.key.to_owned(), value, source });
        }
    }
    rows
}

fn project_row(
    loaded: &Loaded,
    leaf: &Leaf,
    name: &ProjectName,
    settings: &Settings,
    view: View,
) -> Row {
    let (value, source) = match settings.get(leaf.key) {
        Some(setting) => (setting.value.to_json(), setting.source.clone()),
        None => (
            Value::preset(leaf.preset).map_or(Json::Null, |value| value.to_json()),
            Source::Default,
        ),
    };
    let value = match (view, leaf.name()) {
        (View::Effective, "restart") => loaded.config.restart_policy(name).as_str().into(),
        (View::Configured | View::Effective, _) => value,
    };
    Row { key: format!("projects.{name}.{}", leaf.name()), value, source }
}

/// The value that the service uses when the key follows from other keys.
fn effective(loaded: &Loaded, leaf: &Leaf, value: &Value) -> Json {
    match leaf.key {
        "hosted.socket_path" => loaded.config.hosted_socket().to_string_lossy().into_owned().into(),
        "usage.currency_symbol" => loaded.config.usage.symbol().into(),
        _ => value.to_json(),
    }
}

/// The shape of a secret without its content.
fn masked(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Map(map) => map.keys().map(|name| (name.clone(), Json::from(MASK))).collect(),
        Value::List(items) => items.iter().map(|_| Json::from(MASK)).collect(),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Text(_) | Value::Switches(_) => {
            MASK.into()
        }
    }
}

/// Removes credentials from URLs: an operator may have written them in any key.
fn without_urls(value: Json) -> Json {
    match value {
        Json::String(text) if text.contains("://") => {
            crate::report::without_credentials(&text).into_owned().into()
        }
        Json::Array(items) => items.into_iter().map(without_urls).collect(),
        other => other,
    }
}
