//! Settings while they are edited: what is typed, and what differs from the file.

use serde_json::{Number, Value};
use std::collections::{BTreeMap, BTreeSet};
use svc_shared::internal::settings::{ConfigReport, ConfigSpec, FileOnlyKey};

/// Next values that are not saved yet.
pub type Edits = BTreeMap<String, Value>;

/// A value as the text of a field.
#[must_use]
pub fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) => {
            // A whole number of seconds needs no fraction.
            let text = number.to_string();
            text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
        }
        Value::Array(items) => items.iter().map(text_of).collect::<Vec<_>>().join("\n"),
        Value::Bool(_) | Value::Object(_) => value.to_string(),
    }
}

/// The value that a typed text means.
///
/// # Errors
/// The bound that it breaks, or `None` where it is no number at all.
pub fn value_of(spec: &ConfigSpec, typed: &str) -> Result<Value, Option<Bound>> {
    let typed = typed.trim();
    if typed.is_empty() && spec.nullable {
        return Ok(Value::Null);
    }
    match spec.kind.as_str() {
        "int" | "float" => {
            let number = match (typed.parse::<i64>(), spec.kind.as_str()) {
                (Ok(whole), _) => Number::from(whole),
                (Err(_), "float") => typed.parse().ok().and_then(Number::from_f64).ok_or(None)?,
                (Err(_), _) => return Err(None),
            };
            let value = number.as_f64().unwrap_or_default();
            let is_low =
                spec.min.is_some_and(|min| value < min || (spec.min_exclusive && value <= min));
            if is_low || spec.max.is_some_and(|max| value > max) {
                return Err(Some(bound(spec)));
            }
            Ok(Value::Number(number))
        }
        "list" => Ok(typed
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .map(Value::from)
            .collect()),
        _ => Ok(typed.into()),
    }
}

/// The bounds of a number.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// Smallest number.
    pub min: Option<f64>,
    /// Whether the smallest number itself is outside.
    pub is_open: bool,
    /// Largest number.
    pub max: Option<f64>,
}

/// The bounds of a key.
#[must_use]
pub fn bound(spec: &ConfigSpec) -> Bound {
    Bound { min: spec.min, is_open: spec.min_exclusive, max: spec.max }
}

/// Whether two values mean the same: 60 and 60.0 do.
#[must_use]
pub fn is_same(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => one.to_bits() == other.to_bits(),
        _ => one == other,
    }
}

/// The edits after a key got a value; one that the file has already is no edit.
pub fn edit(edits: &mut Edits, report: &ConfigReport, key: &str, value: Value) {
    match report.fields.get(key) {
        Some(now) if is_same(now, &value) => drop(edits.remove(key)),
        Some(_) | None => drop(edits.insert(key.to_owned(), value)),
    }
}

/// Keys that somebody else changed in the file while they were edited here.
#[must_use]
pub fn conflicts(before: &ConfigReport, now: &ConfigReport, edits: &Edits) -> BTreeSet<String> {
    edits.keys().filter(|key| before.fields.get(*key) != now.fields.get(*key)).cloned().collect()
}

/// What the service said about single keys, from lines `key: reason`.
#[must_use]
pub fn reasons(detail: &str, edits: &Edits) -> BTreeMap<String, String> {
    detail
        .lines()
        .filter_map(|line| line.split_once(": "))
        .filter(|(key, _)| edits.contains_key(*key))
        .map(|(key, reason)| (key.to_owned(), reason.to_owned()))
        .collect()
}

/// What a key is found by: two names and a description.
pub type Texts = [String; 3];

/// What a key is found by.
#[must_use]
pub fn texts_of(spec: &ConfigSpec) -> Texts {
    [spec.label.clone(), spec.key.clone(), spec.description.clone()]
}

/// What a key that no editor changes is found by.
#[must_use]
pub fn texts_of_file_only(one: &FileOnlyKey) -> Texts {
    [one.key.clone(), one.reason.clone(), one.description.clone()]
}

/// Whether each of the words stands in one of the texts.
#[must_use]
pub fn is_found(words: &str, texts: &Texts) -> bool {
    let words = words.trim().to_lowercase();
    words.split_whitespace().all(|word| texts.iter().any(|text| text.to_lowercase().contains(word)))
}

/// A section of a report.
#[derive(Debug)]
pub struct Section<'a> {
    /// Name in the file.
    pub name: &'a str,
    /// Name for people.
    pub label: &'a str,
    /// The keys in it.
    pub specs: Vec<&'a ConfigSpec>,
}

/// The sections of a report with their keys, in their order.
#[must_use]
pub fn sections(report: &ConfigReport) -> Vec<Section<'_>> {
    const ORDER: [&str; 15] = [
        "general",
        "claude",
        "instance_defaults",
        "restart",
        "ceilings",
        "hosted",
        "logs",
        "usage",
        "metrics",
        "observability",
        "notifications",
        "api",
        "reaper",
        "clone",
        "webhooks",
    ];
    let place = |name: &str| ORDER.iter().position(|one| *one == name).unwrap_or(ORDER.len());
    let mut all: Vec<Section<'_>> = Vec::new();
    for spec in report.specs.values() {
        match all.iter_mut().find(|section| section.label == spec.section_label) {
            Some(section) => section.specs.push(spec),
            None => all.push(Section {
                name: &spec.section,
                label: &spec.section_label,
                specs: vec![spec],
            }),
        }
    }
    all.sort_by_key(|section| place(section.name));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn spec(kind: &str, min: Option<f64>, max: Option<f64>) -> ConfigSpec {
        ConfigSpec {
            key: "a.b".into(),
            section: "a".into(),
            section_label: "A".into(),
            label: "B".into(),
            kind: kind.into(),
            choices: Vec::new(),
            description: String::new(),
            unit: None,
            default: Value::Null,
            nullable: false,
            min,
            max,
            min_exclusive: true,
            map_keys: Vec::new(),
            deprecated: false,
            dep_status: None,
            source: "file".into(),
            env_name: None,
            applies: "restart".into(),
            pending: false,
        }
    }

    fn report(value: Value) -> ConfigReport {
        ConfigReport {
            fields: BTreeMap::from([("a.b".to_owned(), value)]),
            editable: vec!["a.b".into()],
            specs: BTreeMap::from([("a.b".to_owned(), spec("float", None, None))]),
            hash: Some("x".into()),
            file: None,
            can_save: true,
            file_only: Vec::new(),
        }
    }

    #[test]
    fn a_number_is_checked_against_its_bounds_before_it_is_sent() {
        let float = spec("float", Some(0.0), Some(2.0));
        assert_eq!(value_of(&float, " 1.5 "), Ok(json!(1.5)));
        assert_eq!(value_of(&float, "2"), Ok(json!(2)));
        for out in ["0", "2.1", "-1"] {
            assert_eq!(value_of(&float, out), Err(Some(bound(&float))), "{out}");
        }
        assert_eq!(value_of(&float, "inf"), Err(None));
        assert_eq!(value_of(&spec("int", None, None), "1.5"), Err(None));
        assert_eq!(value_of(&spec("list", None, None), "a\n\n b "), Ok(json!(["a", "b"])));
        let nullable = ConfigSpec { nullable: true, ..spec("int", Some(0.0), None) };
        assert_eq!(value_of(&nullable, ""), Ok(Value::Null));
    }

    #[test]
    fn only_what_differs_from_the_file_is_an_edit() {
        let mut edits = Edits::new();
        let report = report(json!(60.0));
        edit(&mut edits, &report, "a.b", json!(90));
        assert_eq!(edits.len(), 1);
        edit(&mut edits, &report, "a.b", json!(60));
        assert!(edits.is_empty());
        assert_eq!(text_of(&json!(60.0)), "60");
    }

    #[test]
    fn a_key_that_somebody_else_changed_is_a_conflict() {
        let edits = Edits::from([("a.b".to_owned(), json!(1))]);
        let (before, same, other) = (report(json!(2)), report(json!(2)), report(json!(3)));
        assert!(conflicts(&before, &same, &edits).is_empty());
        assert_eq!(conflicts(&before, &other, &edits).len(), 1);
        assert_eq!(reasons("a.b: is wrong\nc: no", &edits).len(), 1);
        let texts = ["launch_mode".to_owned(), "The kind".to_owned(), String::new()];
        assert!(is_found("kind Mode", &texts));
        assert!(!is_found("port", &texts));
    }
}
