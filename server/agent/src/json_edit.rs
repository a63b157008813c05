//! Sets one value in another program's JSON document and keeps every other byte.
//!
//! Reading it into a map and writing it again would renumber, reorder and re-escape what other
//! programs wrote. The offsets come from the JSON parser itself; nothing is parsed twice.

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;
use std::ops::Range;

/// Why nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EditError {
    /// The document is no JSON.
    #[error("it is not valid JSON at line {line}, column {column}")]
    NotJson {
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 0.
        column: usize,
    },
    /// A value that must be an object is something else. Empty: the document itself.
    #[error("{}", not_an_object(.0))]
    NotAnObject(String),
}

fn not_an_object(place: &str) -> String {
    if place.is_empty() {
        "it is not a JSON object".to_owned()
    } else {
        format!("its `{place}` is not an object")
    }
}

impl From<serde_json::Error> for EditError {
    fn from(error: serde_json::Error) -> Self {
        Self::NotJson { line: error.line(), column: error.column() }
    }
}

/// The document with `true` at `path`; missing objects are added.
/// `None` if it is already there.
///
/// # Errors
/// The document has another shape; see [`EditError`].
pub(crate) fn with_true(document: &str, path: &[&str]) -> Result<Option<String>, EditError> {
    // Also refuses documents that are nested too deeply for any reader.
    let mut expected: Value = serde_json::from_str(document)?;
    let Some(edit) = find_edit(document, path)? else {
        return Ok(None);
    };
    let mut edited = document.to_owned();
    edited.replace_range(edit.range, &edit.text);

    // The file is somebody's whole configuration: a wrong edit must never be returned.
    set_true(&mut expected, path);
    let is_right = serde_json::from_str::<Value>(&edited).is_ok_and(|found| found == expected);
    if is_right { Ok(Some(edited)) } else { Err(EditError::NotAnObject(String::new())) }
}

fn set_true(value: &mut Value, path: &[&str]) {
    match path.split_first() {
        None => *value = Value::Bool(true),
        Some((key, rest)) => {
            if let Value::Object(fields) = value {
                let empty = || Value::Object(serde_json::Map::new());
                set_true(fields.entry(*key).or_insert_with(empty), rest);
            }
        }
    }
}

struct Edit {
    range: Range<usize>,
    text: String,
}

fn find_edit(document: &str, path: &[&str]) -> Result<Option<Edit>, EditError> {
    let style = Style::of(document);
    let mut object = document.trim_matches([' ', '\t', '\n', '\r']);
    let mut rest = path;
    let mut place = String::new();
    loop {
        let Some((key, below)) = rest.split_first() else { return Ok(None) };
        if !object.starts_with('{') {
            return Err(EditError::NotAnObject(place));
        }
        let fields = fields(object)?;
        // The last of several equal keys counts, as for every reader of such a file.
        let Some(field) = fields.iter().rev().find(|field| field.key == *key) else {
            return Ok(Some(insertion(document, object, &fields, rest, &style)));
        };
        let value = field.value.get();
        if below.is_empty() {
            let replaced = Edit { range: range_in(document, value), text: "true".to_owned() };
            return Ok((value != "true").then_some(replaced));
        }
        place = if place.is_empty() { (*key).to_owned() } else { format!("{place}.{key}") };
        object = value;
        rest = below;
    }
}

/// A new field at the end of an object, in the layout of the fields before it.
fn insertion(
    document: &str,
    object: &str,
    fields: &[Field<'_>],
    path: &[&str],
    style: &Style,
) -> Edit {
    let inside = object.strip_prefix('{').unwrap_or(object);
    let start = range_in(document, object).start;
    match fields.last() {
        Some(last) => {
            let gap = inside.len() - inside.trim_start_matches([' ', '\t', '\n', '\r']).len();
            let gap = inside.get(..gap).unwrap_or_default();
            let indent = gap.rsplit_once('\n').map(|(_, indent)| indent);
            let end = range_in(document, last.value.get()).end;
            let text = format!(",{gap}{}", style.field(path, indent));
            Edit { range: end..end, text }
        }
        None => {
            let indent = style.unit.as_ref().map(|unit| {
                let line = document.get(..start).unwrap_or_default();
                let line = line.rsplit_once('\n').map_or(line, |(_, line)| line);
                let own = line.len() - line.trim_start_matches([' ', '\t']).len();
                let own = line.get(..own).unwrap_or_default().to_owned();
                (format!("{own}{unit}"), own)
            });
            let text = match indent {
                Some((indent, own)) => {
                    format!("{{\n{indent}{}\n{own}}}", style.field(path, Some(&indent)))
                }
                None => format!("{{{}}}", style.field(path, None)),
            };
            Edit { range: range_in(document, object), text }
        }
    }
}

/// The layout of a document.
struct Style {
    /// One step of indentation. `None` if everything is on one line.
    unit: Option<String>,
}

impl Style {
    fn of(document: &str) -> Self {
        let trimmed = document.trim();
        if !trimmed.contains('\n') && trimmed.len() > 2 {
            return Self { unit: None };
        }
        let second = trimmed.lines().nth(1).unwrap_or_default();
        let width = second.len() - second.trim_start_matches([' ', '\t']).len();
        let unit = second.get(..width).filter(|unit| !unit.is_empty());
        // The CLI writes with two blanks.
        Self { unit: Some(unit.unwrap_or("  ").to_owned()) }
    }

    /// `"key": value` for the first name of `path`, with `true` inside nested objects.
    /// `indent` is that of the field; `None` writes it on one line.
    fn field(&self, path: &[&str], indent: Option<&str>) -> String {
        let Some((key, rest)) = path.split_first() else { return String::new() };
        let key = Value::from(*key).to_string();
        let unit = self.unit.as_deref().unwrap_or("  ");
        match (rest.is_empty(), indent) {
            (true, Some(_)) => format!("{key}: true"),
            (true, None) => format!("{key}:true"),
            (false, Some(indent)) => {
                let deeper = format!("{indent}{unit}");
                format!("{key}: {{\n{deeper}{}\n{indent}}}", self.field(rest, Some(&deeper)))
            }
            (false, None) => format!("{key}:{{{}}}", self.field(rest, None)),
        }
    }
}

/// The position of a part of a document.
fn range_in(document: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr().saturating_sub(document.as_ptr().addr());
    start..start + part.len()
}

struct Field<'a> {
    key: String,
    value: &'a RawValue,
}

fn fields(object: &str) -> Result<Vec<Field<'_>>, serde_json::Error> {
    struct Fields;
    impl<'de> Visitor<'de> for Fields {
        type Value = Vec<Field<'de>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut fields = Vec::new();
            while let Some((key, value)) = map.next_entry::<String, &'de RawValue>()? {
                fields.push(Field { key, value });
            }
            Ok(fields)
        }
    }
    serde_json::Deserializer::from_str(object).deserialize_map(Fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PATH: [&str; 3] = ["projects", "/p", "ok"];

    #[track_caller]
    fn check(before: &str, after: &str) {
        assert_eq!(with_true(before, &PATH).unwrap().as_deref(), Some(after), "{before}");
        assert_eq!(with_true(after, &PATH).unwrap(), None, "written once");
    }

    #[test]
    fn only_the_value_changes_whatever_else_is_there() {
        check(
            "{\n  \"z\": 1.50,\n  \"big\": 123456789012345678901234567890,\n  \"ü\": \"\\u00fc é\",\n  \"projects\": {\n    \"/q\": {},\n    \"/p\": {\n      \"ok\": false,\n      \"n\": 1e2\n    }\n  }\n}\n",
            "{\n  \"z\": 1.50,\n  \"big\": 123456789012345678901234567890,\n  \"ü\": \"\\u00fc é\",\n  \"projects\": {\n    \"/q\": {},\n    \"/p\": {\n      \"ok\": true,\n      \"n\": 1e2\n    }\n  }\n}\n",
        );
        check(r#"{"projects":{"/p":{"ok":"yes"}}}"#, r#"{"projects":{"/p":{"ok":true}}}"#);
        check(
            r#"{"projects":{"/p":{"ok":true}},"projects":{"/p":{"ok":null}}}"#,
            r#"{"projects":{"/p":{"ok":true}},"projects":{"/p":{"ok":true}}}"#,
        );
    }

    #[test]
    fn new_fields_take_the_layout_of_their_neighbours() {
        check("{}", "{\n  \"projects\": {\n    \"/p\": {\n      \"ok\": true\n    }\n  }\n}");
        check(
            "{\n  \"a\": 1\n}",
            "{\n  \"a\": 1,\n  \"projects\": {\n    \"/p\": {\n      \"ok\": true\n    }\n  }\n}",
        );
        check(
            "{\n\t\"projects\": {\n\t\t\"/q\": {}\n\t}\n}",
            "{\n\t\"projects\": {\n\t\t\"/q\": {},\n\t\t\"/p\": {\n\t\t\t\"ok\": true\n\t\t}\n\t}\n}",
        );
        check(
            "{\n  \"projects\": {}\n}",
            "{\n  \"projects\": {\n    \"/p\": {\n      \"ok\": true\n    }\n  }\n}",
        );
        check(r#"{"a":1}"#, r#"{"a":1,"projects":{"/p":{"ok":true}}}"#);
        check(r#"{ "a": {} }"#, r#"{ "a": {}, "projects":{"/p":{"ok":true}} }"#);
    }

    #[test]
    fn odd_documents_are_refused_with_the_place() {
        let refused = |text: &str| with_true(text, &PATH).unwrap_err();
        assert_eq!(refused("[]"), EditError::NotAnObject(String::new()));
        assert_eq!(refused("null"), EditError::NotAnObject(String::new()));
        assert_eq!(refused(r#"{"projects":5}"#), EditError::NotAnObject("projects".into()));
        assert_eq!(
            refused(r#"{"projects":{"/p":[]}}"#),
            EditError::NotAnObject("projects./p".into())
        );
        assert_eq!(refused("{\n  \"a\": 1,\n}"), EditError::NotJson { line: 3, column: 1 });
        assert!(matches!(refused(""), EditError::NotJson { .. }));
        assert!(matches!(refused("{} x"), EditError::NotJson { .. }));
        assert!(matches!(refused(&"[".repeat(5000)), EditError::NotJson { .. }));
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(5000), "]".repeat(5000));
        assert!(matches!(refused(&deep), EditError::NotJson { .. }));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z{}\\[\\]\":, \\\\é]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            let key =
                prop_oneof![Just("projects".to_owned()), Just("/p".to_owned()), "[ok\"\\\\]{0,3}"];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(key, inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn h90_whatever_the_document_the_edit_is_the_wanted_one(value in any_json(), pretty: bool) {
            let text = if pretty {
                serde_json::to_string_pretty(&value).unwrap()
            } else {
                value.to_string()
            };
            if let Ok(Some(edited)) = with_true(&text, &PATH) {
                let found: Value = serde_json::from_str(&edited).unwrap();
                prop_assert_eq!(&found["projects"]["/p"]["ok"], &Value::Bool(true));
                prop_assert_eq!(with_true(&edited, &PATH), Ok(None));
                // Every other byte is kept: the text before and after one position is the same.
                let same = |a: &u8, b: &u8| a == b;
                let (before, after) = (text.as_bytes(), edited.as_bytes());
                let head = before.iter().zip(after).take_while(|(a, b)| same(a, b)).count();
                let tail = before.iter().rev().zip(after.iter().rev());
                let tail = tail.take_while(|(a, b)| same(a, b)).count();
                let end = before.len().saturating_sub(tail).max(head);
                let removed = String::from_utf8_lossy(&before[head..end]).into_owned();
                let ink = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count();
                let old = value.pointer("/projects/~1p/ok").map_or(0, |old| ink(&old.to_string()));
                prop_assert!(ink(&removed) <= old.max(2), "{} became {}", text, edited);
            } else {
                let is_object = |value: &Value| value.is_object();
                let projects = value.get("projects");
                let entry = projects.and_then(|projects| projects.get("/p"));
                let odd = !value.is_object()
                    || projects.is_some_and(|one| !is_object(one))
                    || entry.is_some_and(|one| !is_object(one));
                let there = entry.and_then(|entry| entry.get("ok")) == Some(&Value::Bool(true));
                prop_assert!(odd || there, "{}", text);
            }
        }
    }
}
