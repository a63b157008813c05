//! Changes of keys as people and programs ask for them.
//!
//! [`Wanted`] names a key of the schema and its next value. [`candidate`] makes the text of the
//! file with it, [`reconciled`] the one without old names.

use crate::edit::{Change, Edit, EditError, edited};
use crate::load::items_of;
use crate::nearest::nearest;
use crate::report::shown_key;
use crate::schema::{Kind, Leaf, PROJECTS};
use crate::table;
use crate::tree::{self, Body};
use crate::value;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use svc_shared::ids::ProjectName;

/// A key and the value that it is to have.
#[derive(Clone)]
pub struct Wanted {
    leaf: &'static Leaf,
    /// Names from the root to the value.
    path: Vec<String>,
    value: Json,
}

impl std::fmt::Debug for Wanted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The value may be a secret.
        f.debug_struct("Wanted").field("key", &self.key()).finish_non_exhaustive()
    }
}

/// A key that can be asked for, and where its value stands.
struct Target {
    leaf: &'static Leaf,
    path: Vec<String>,
    /// Whether it is one name of a map.
    is_below: bool,
}

fn target(key: &str) -> Result<Target, String> {
    let split = |key: &str| key.split('.').map(str::to_owned).collect::<Vec<_>>();
    if let Some(leaf) = table::leaf(key).filter(|leaf| !leaf.is_per_project()) {
        return Ok(Target { leaf, path: split(key), is_below: false });
    }
    let maps = table::leaves().filter(|leaf| is_map(leaf.kind));
    for leaf in maps {
        let below = key.strip_prefix(leaf.key).and_then(|rest| rest.strip_prefix('.'));
        if let Some(name) = below.filter(|name| !name.is_empty()) {
            let mut path = split(leaf.key);
            path.push(name.to_owned());
            return Ok(Target { leaf, path, is_below: true });
        }
    }
    let project = key.strip_prefix("projects.").and_then(|rest| rest.rsplit_once('.'));
    if let Some((name, last)) = project {
        let leaf = table::project_leaves().find(|leaf| leaf.name() == last);
        if let (Some(leaf), Ok(name)) = (leaf, name.parse::<ProjectName>()) {
            let path = vec![PROJECTS.to_owned(), name.to_string(), last.to_owned()];
            return Ok(Target { leaf, path, is_below: false });
        }
    }
    let shown = shown_key(key);
    Err(match nearest(key, table::leaves().map(|leaf| leaf.key)) {
        Some(meant) => format!("{shown} is not a known key; did you mean {meant}?"),
        None => format!("{shown} is not a known key; `svc config show` lists all"),
    })
}

fn is_map(kind: Kind) -> bool {
    matches!(kind, Kind::TextMap | Kind::Switches(_))
}

impl Wanted {
    /// A change as it is typed: `KEY` and the text of its value.
    ///
    /// # Errors
    /// A sentence: there is no such key, or the text is no value of it.
    pub fn from_text(key: &str, text: &str) -> Result<Self, String> {
        let Target { leaf, path, is_below } = target(key)?;
        let wrong = |reason: &str| format!("{key} {reason}");
        if is_map(leaf.kind) && !is_below {
            return Err(wrong("is a map; set one name of it, as in KEY.NAME VALUE"));
        }
        let is_null = text.trim().is_empty() || text.trim() == "null";
        let value = match leaf.kind {
            _ if leaf.nullable && is_null => Json::Null,
            Kind::Bool | Kind::Switches(_) => {
                Json::Bool(value::switch(text).map_err(|e| wrong(&e))?)
            }
            Kind::Int { .. } | Kind::Float(_) => {
                number(text).ok_or_else(|| wrong("must be a number"))?
            }
            Kind::Seconds { .. } => number(text).unwrap_or_else(|| text.trim().into()),
            Kind::List(_) => items_of(text).map_err(|e| wrong(&e))?.into(),
            Kind::Text(_)
            | Kind::Choice { .. }
            | Kind::Path
            | Kind::Program
            | Kind::SocketPath
            | Kind::TextMap => text.into(),
        };
        Ok(Self { leaf, path, value })
    }

    /// The changes that a program asks for with a JSON value.
    /// A map is one change per name.
    ///
    /// # Errors
    /// A sentence: there is no such key, or the value has the wrong type.
    pub fn from_json(key: &str, value: &Json) -> Result<Vec<Self>, String> {
        let Target { leaf, path, is_below } = target(key)?;
        if let (Kind::Switches(_), false, Json::Object(states)) = (leaf.kind, is_below, value) {
            return states
                .iter()
                .map(|(name, state)| match state {
                    Json::Bool(_) => {
                        let path = path.iter().cloned().chain([name.clone()]).collect();
                        Ok(Self { leaf, path, value: state.clone() })
                    }
                    _ => Err(format!("{key}: every value must be true or false")),
                })
                .collect();
        }
        let expected = match (leaf.kind, value) {
            (_, Json::Null) if leaf.nullable => None,
            (Kind::Bool, Json::Bool(_)) => None,
            (Kind::Switches(_), Json::Bool(_)) if is_below => None,
            (Kind::Int { .. } | Kind::Float(_), Json::Number(_)) => None,
            (Kind::Seconds { .. }, Json::Number(_) | Json::String(_)) => None,
            (Kind::List(_), Json::Array(items)) if items.iter().all(Json::is_string) => None,
            (
                Kind::Text(_) | Kind::Choice { .. } | Kind::Path | Kind::Program | Kind::SocketPath,
                Json::String(_),
            ) => None,
            (Kind::TextMap, Json::String(_)) if is_below => None,
            (Kind::Bool, _) => Some("true or false"),
            (Kind::Int { .. } | Kind::Float(_), _) => Some("a number"),
            (Kind::Seconds { .. }, _) => Some("a number of seconds, or a text such as 5m"),
            (Kind::List(_), _) => Some("a list of texts"),
            (Kind::Switches(_) | Kind::TextMap, _) => Some("an object"),
            (
                Kind::Text(_) | Kind::Choice { .. } | Kind::Path | Kind::Program | Kind::SocketPath,
                _,
            ) => Some("a text"),
        };
        match expected {
            None => Ok(vec![Self { leaf, path, value: value.clone() }]),
            Some(expected) => Err(format!("{key}: must be {expected}")),
        }
    }

    /// The definition of the key.
    #[must_use]
    pub fn leaf(&self) -> &'static Leaf {
        self.leaf
    }

    /// The dotted key, with the name of a project or of an entry.
    #[must_use]
    pub fn key(&self) -> String {
        self.path.join(".")
    }

    /// The value that the key is to have.
    #[must_use]
    pub fn value(&self) -> &Json {
        &self.value
    }
}

fn number(text: &str) -> Option<Json> {
    let text = text.trim();
    match text.parse::<i64>() {
        Ok(whole) => Some(whole.into()),
        // `inf` and `nan` are no JSON numbers.
        Err(_) => serde_json::Number::from_f64(text.parse().ok()?).map(Json::Number),
    }
}

/// The text of the file with the wanted values.
///
/// What the file has already stays as it is written.
///
/// # Errors
/// The text cannot be read, or a key cannot be changed without changing something else.
pub fn candidate(text: &str, wanted: &[Wanted]) -> Result<String, EditError> {
    let document = tree::read(text.strip_prefix('\u{feff}').unwrap_or(text)).map_err(|error| {
        EditError::Unreadable { line: error.line, reason: error.reason.to_owned() }
    })?;
    let has = |one: &Wanted| {
        let mut node = document.root.as_deref();
        for name in &one.path {
            node = match node.map(|node| &node.body) {
                Some(Body::Map(entries)) => {
                    entries.iter().find(|entry| *entry.key == **name).map(|entry| &*entry.value)
                }
                Some(Body::List(_) | Body::Scalar(_)) | None => None,
            };
        }
        let (Some(node), Some(text)) = (node, as_text(&one.value)) else { return false };
        match &node.body {
            Body::Scalar(scalar) => !node.is_null() && *scalar.text == *text,
            Body::List(_) | Body::Map(_) => false,
        }
    };
    let edits: Vec<Edit> = wanted
        .iter()
        .filter(|one| !has(one))
        .map(|one| Edit { path: one.path.clone(), change: Change::Set(one.value.clone()) })
        .collect();
    edited(text, &edits)
}

fn as_text(value: &Json) -> Option<String> {
    match value {
        Json::String(text) => Some(text.clone()),
        Json::Bool(_) | Json::Number(_) => Some(value.to_string()),
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    }
}

/// An old name in the file, and what replaces it.
#[derive(Debug, Clone, PartialEq)]
pub struct OldName {
    /// The old key.
    pub key: &'static str,
    /// Its value as it is written.
    pub value: String,
    /// Why it goes.
    pub reason: &'static str,
    /// What is written instead; none when it only goes.
    pub proposal: Option<(&'static str, String)>,
    /// Values that may be chosen instead of the proposed one.
    pub choices: &'static [&'static str],
}

/// The old names that a file still uses, in a fixed order.
///
/// # Errors
/// The text cannot be read.
pub fn old_names(text: &str) -> Result<Vec<OldName>, EditError> {
    let document = tree::read(text.strip_prefix('\u{feff}').unwrap_or(text)).map_err(|error| {
        EditError::Unreadable { line: error.line, reason: error.reason.to_owned() }
    })?;
    let mut scalars = BTreeMap::new();
    if let Some(Body::Map(entries)) = document.root.as_deref().map(|root| &root.body) {
        for entry in entries {
            match &entry.value.body {
                Body::Map(below) => {
                    for inner in below {
                        if let Body::Scalar(scalar) = &inner.value.body {
                            let key = format!("{}.{}", entry.key, inner.key);
                            scalars.insert(key, scalar.text.to_string());
                        }
                    }
                }
                Body::Scalar(scalar) => {
                    scalars.insert(entry.key.to_string(), scalar.text.to_string());
                }
                Body::List(_) => {}
            }
        }
    }
    let mut found = Vec::new();
    if let Some(value) = scalars.get("claude.resume_mode") {
        let is_set = scalars.contains_key("claude.launch_mode");
        let choices = match table::leaf("claude.launch_mode").map(|leaf| leaf.kind) {
            Some(Kind::Choice { words, .. }) => words,
            _ => &[],
        };
        found.push(OldName {
            key: "claude.resume_mode",
            value: value.clone(),
            reason: "is an old name of claude.launch_mode",
            proposal: (!is_set).then(|| ("claude.launch_mode", value.clone())),
            choices,
        });
    }
    if let Some(value) = scalars.get("usage.show_cost") {
        let is_off = value::switch(value) == Ok(false);
        let is_set = scalars.contains_key("usage.mode");
        let choices = match table::leaf("usage.mode").map(|leaf| leaf.kind) {
            Some(Kind::Choice { words, .. }) => words,
            _ => &[],
        };
        found.push(OldName {
            key: "usage.show_cost",
            value: value.clone(),
            reason: "is replaced by usage.mode",
            proposal: (is_off && !is_set).then(|| ("usage.mode", "off".to_owned())),
            choices,
        });
    }
    if scalars.contains_key("database_url") {
        found.push(OldName {
            key: "database_url",
            // It may hold a password.
            value: crate::secret::MASK.to_owned(),
            reason: "has no effect: the database is in the state directory",
            proposal: None,
            choices: &[],
        });
    }
    Ok(found)
}

/// The text of the file without the given old names.
///
/// # Errors
/// As [`candidate`].
pub fn reconciled(text: &str, names: &[OldName]) -> Result<String, EditError> {
    let mut edits = Vec::new();
    for name in names {
        let path: Vec<String> = name.key.split('.').map(str::to_owned).collect();
        let Some((key, value)) = &name.proposal else {
            edits.push(Edit { path, change: Change::Remove });
            continue;
        };
        let last = key.rsplit('.').next().unwrap_or(key).to_owned();
        edits.push(Edit { path, change: Change::Rename(last) });
        if *value != name.value {
            let path = key.split('.').map(str::to_owned).collect();
            edits.push(Edit { path, change: Change::Set(value.as_str().into()) });
        }
    }
    edited(text, &edits)
}
