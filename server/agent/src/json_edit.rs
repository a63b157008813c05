//! Changes values in another program's JSON document and keeps every other byte.
//!
//! Reading it into a map and writing it again would renumber, reorder and re-escape what other
//! programs wrote. The offsets come from the JSON parser itself; nothing is parsed twice.

use crate::json_part::{Wanted, part};
use serde::Serialize as _;
use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::Value;
use serde_json::ser::PrettyFormatter;
use serde_json::value::RawValue;
use std::fmt;
use std::ops::Range;

/// More changes than these rewrite the object in which they are.
/// Each of them reads the document once.
const MOST_CHANGES: usize = 64;
/// What JSON allows between its parts.
const BLANK: [char; 4] = [' ', '\t', '\n', '\r'];

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
    with_value(document, path, Some(&Value::Bool(true)))
}

/// The document in which `wanted` is at `path`, or nothing is there.
/// Only the members that differ are written. `None` if nothing differs.
///
/// # Errors
/// As [`with_true`].
pub(crate) fn with_merged(
    document: &str,
    path: &[&str],
    wanted: Option<&Value>,
) -> Result<Option<String>, EditError> {
    let found = value_at(document, path)?;
    let mut changes = Vec::new();
    let mut at: Vec<&str> = path.to_vec();
    differences(found.as_ref(), wanted, &mut at, &mut changes);
    if changes.len() > MOST_CHANGES {
        return with_value(document, path, wanted);
    }
    let mut edited = None;
    for (path, value) in changes {
        let text = edited.as_deref().unwrap_or(document);
        edited = with_value(text, &path, value)?.or(edited);
    }
    Ok(edited)
}

/// The value at a path.
///
/// Of the rest no tree is made, which would take several times its size.
fn value_at(document: &str, path: &[&str]) -> Result<Option<Value>, EditError> {
    part(document, Wanted::Nothing)?;
    let mut text = document;
    for key in path {
        if !text.trim_matches(BLANK).starts_with('{') {
            return Ok(None);
        }
        match last(&fields(text)?, key) {
            Some(found) => text = found,
            None => return Ok(None),
        }
    }
    Ok(Some(serde_json::from_str(text)?))
}

/// The text of a member. The last of several equal keys counts.
fn last<'a>(fields: &[Field<'a>], key: &str) -> Option<&'a str> {
    let found = fields.iter().rfind(|field| field.key == key);
    found.map(|field| field.value.get())
}

/// The members of `wanted` that differ, and those that it lacks.
fn differences<'v>(
    found: Option<&'v Value>,
    wanted: Option<&'v Value>,
    at: &mut Vec<&'v str>,
    changes: &mut Vec<(Vec<&'v str>, Option<&'v Value>)>,
) {
    match (found, wanted) {
        (Some(Value::Object(found)), Some(Value::Object(wanted))) => {
            let removed = found.keys().filter(|key| !wanted.contains_key(*key));
            changes.extend(removed.map(|key| {
                let path = at.iter().copied().chain([key.as_str()]).collect();
                (path, None)
            }));
            for (key, value) in wanted {
                at.push(key);
                differences(found.get(key), Some(value), at, changes);
                at.pop();
            }
        }
        (found, wanted) if found == wanted => {}
        (_, wanted) => changes.push((at.clone(), wanted)),
    }
}

/// The document with a value at `path`, or without what is there.
/// `None` if it is already so. Missing objects are added.
fn with_value(
    document: &str,
    path: &[&str],
    value: Option<&Value>,
) -> Result<Option<String>, EditError> {
    // Also refuses documents that are nested too deeply for any reader.
    part(document, Wanted::Nothing)?;
    let edits = find_edits(document, path, value)?;
    if edits.is_empty() {
        return Ok(None);
    }
    let mut edited = String::with_capacity(document.len());
    let mut from = 0;
    for Edit { range, text } in edits {
        edited.push_str(document.get(from..range.start).unwrap_or_default());
        edited.push_str(&text);
        from = range.end;
    }
    edited.push_str(document.get(from..).unwrap_or_default());

    // The file is somebody's whole configuration: a wrong edit must never be returned.
    let is_right = part(&edited, Wanted::Nothing).is_ok()
        && differs_only_at(Some(document), &edited, path, value);
    if is_right { Ok(Some(edited)) } else { Err(EditError::NotAnObject(String::new())) }
}

/// Whether nothing but what is at `path` differs, and that is `value` now.
///
/// Along the path texts are compared, for the same reason as in [`value_at`].
fn differs_only_at(
    before: Option<&str>,
    after: &str,
    path: &[&str],
    value: Option<&Value>,
) -> bool {
    let Some((key, below)) = path.split_first() else {
        return serde_json::from_str::<Value>(after).is_ok_and(|found| Some(&found) == value);
    };
    let before = before.map_or_else(|| Ok(Vec::new()), fields);
    let (Ok(before), Ok(after)) = (before, fields(after)) else { return false };
    let is_other = |field: &&Field<'_>| field.key != *key;
    let others = before.iter().filter(is_other).eq(after.iter().filter(is_other));
    let (old, new) = (last(&before, key), last(&after, key));
    others
        && match (new, value) {
            (None, None) => below.is_empty(),
            (None, Some(_)) => false,
            (Some(_), None) if below.is_empty() => false,
            (Some(new), value) => differs_only_at(old, new, below, value),
        }
}

struct Edit {
    range: Range<usize>,
    text: String,
}

/// Edits in the order of the document; none where it is already so.
fn find_edits(
    document: &str,
    path: &[&str],
    value: Option<&Value>,
) -> Result<Vec<Edit>, EditError> {
    let style = Style::of(document);
    let mut object = document.trim_matches(BLANK);
    let mut rest = path;
    let mut place = String::new();
    loop {
        let Some((key, below)) = rest.split_first() else {
            let text = value.map_or_else(|| "{}".to_owned(), |value| style.value(value, Some("")));
            let edit = (text != object).then(|| Edit { range: range_in(document, object), text });
            return Ok(edit.into_iter().collect());
        };
        if !object.starts_with('{') {
            return Err(EditError::NotAnObject(place));
        }
        let fields = fields(object)?;
        // The last of several equal keys counts, as for every reader of such a file.
        let found = fields.iter().rposition(|field| field.key == *key);
        let Some(index) = found else {
            let insert = |value| insertion(document, object, &fields, rest, value, &style);
            return Ok(value.map(insert).into_iter().collect());
        };
        let Some(field) = fields.get(index) else { return Ok(Vec::new()) };
        let text = field.value.get();
        if below.is_empty() {
            let Some(value) = value else {
                return Ok(removals(document, object, &fields, key));
            };
            let is_same = serde_json::from_str::<Value>(text).is_ok_and(|found| found == *value);
            let range = range_in(document, text);
            let indent = style.unit.as_ref().map(|_| indent_at(document, range.start));
            let replaced = || Edit { range, text: style.value(value, indent) };
            return Ok((!is_same).then(replaced).into_iter().collect());
        }
        place = if place.is_empty() { (*key).to_owned() } else { format!("{place}.{key}") };
        object = text;
        rest = below;
    }
}

/// The blanks at the begin of the line in which a place is.
fn indent_at(document: &str, place: usize) -> &str {
    let line = document.get(..place).unwrap_or_default();
    let line = line.rsplit_once('\n').map_or(line, |(_, line)| line);
    let own = line.len() - line.trim_start_matches([' ', '\t']).len();
    line.get(..own).unwrap_or_default()
}

/// Takes every field of a name with its comma.
///
/// Where one name stands twice, all of them go.
fn removals(document: &str, object: &str, fields: &[Field<'_>], key: &str) -> Vec<Edit> {
    let end_of = |field: &Field<'_>| range_in(document, field.value.get()).end;
    let Some(first_kept) = fields.iter().position(|field| field.key != key) else {
        let range = range_in(document, object);
        return vec![Edit { range, text: "{}".to_owned() }];
    };
    let gap = |at: usize| {
        let text = document.get(at..).unwrap_or_default();
        text.len() - text.trim_start_matches(BLANK).len()
    };
    let mut edits = Vec::new();
    // Those at the begin go with the comma and the blanks after them.
    if let Some(last) = first_kept.checked_sub(1).and_then(|last| fields.get(last)) {
        let start = range_in(document, object).start + 1;
        let start = start + gap(start);
        let comma = end_of(last) + gap(end_of(last)) + 1;
        edits.push(Edit { range: start..comma + gap(comma), text: String::new() });
    }
    // The others go with the comma before them.
    for pair in fields.get(first_kept..).unwrap_or_default().windows(2) {
        if let [before, this] = pair
            && this.key == key
        {
            edits.push(Edit { range: end_of(before)..end_of(this), text: String::new() });
        }
    }
    edits
}

/// A new field at the end of an object, in the layout of the fields before it.
fn insertion(
    document: &str,
    object: &str,
    fields: &[Field<'_>],
    path: &[&str],
    value: &Value,
    style: &Style,
) -> Edit {
    let inside = object.strip_prefix('{').unwrap_or(object);
    let start = range_in(document, object).start;
    match fields.last() {
        Some(last) => {
            let gap = inside.len() - inside.trim_start_matches(BLANK).len();
            let gap = inside.get(..gap).unwrap_or_default();
            let indent = gap.rsplit_once('\n').map(|(_, indent)| indent);
            let end = range_in(document, last.value.get()).end;
            let text = format!(",{gap}{}", style.field(path, value, indent));
            Edit { range: end..end, text }
        }
        None => {
            let indent = style.unit.as_ref().map(|unit| {
                let own = indent_at(document, start);
                (format!("{own}{unit}"), own)
            });
            let text = match indent {
                Some((indent, own)) => {
                    format!("{{\n{indent}{}\n{own}}}", style.field(path, value, Some(&indent)))
                }
                None => format!("{{{}}}", style.field(path, value, None)),
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

    /// `"key": value` for the first name of `path`, the rest in nested objects.
    /// `indent` is that of the field; `None` writes it on one line.
    fn field(&self, path: &[&str], value: &Value, indent: Option<&str>) -> String {
        let Some((key, rest)) = path.split_first() else { return String::new() };
        let key = Value::from(*key).to_string();
        let unit = self.unit.as_deref().unwrap_or("  ");
        match (rest.is_empty(), indent) {
            (true, Some(_)) => format!("{key}: {}", self.value(value, indent)),
            (true, None) => format!("{key}:{value}"),
            (false, Some(indent)) => {
                let deeper = format!("{indent}{unit}");
                let inner = self.field(rest, value, Some(&deeper));
                format!("{key}: {{\n{deeper}{inner}\n{indent}}}")
            }
            (false, None) => format!("{key}:{{{}}}", self.field(rest, value, None)),
        }
    }

    /// A value whose first line has this indentation; `None` writes it on one line.
    fn value(&self, value: &Value, indent: Option<&str>) -> String {
        let Some(indent) = indent else { return value.to_string() };
        let unit = self.unit.as_deref().unwrap_or("  ");
        let mut bytes = Vec::new();
        let layout = PrettyFormatter::with_indent(unit.as_bytes());
        let mut writer = serde_json::Serializer::with_formatter(&mut bytes, layout);
        // Writing a value into memory cannot fail.
        let text = value.serialize(&mut writer).ok().and_then(|()| String::from_utf8(bytes).ok());
        // Line ends inside of texts are escaped: each of these is one of the layout.
        text.map_or_else(|| value.to_string(), |text| text.replace('\n', &format!("\n{indent}")))
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

impl PartialEq for Field<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.value.get() == other.value.get()
    }
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

    #[track_caller]
    fn merged(before: &str, path: &[&str], wanted: Option<Value>, after: &str) {
        let edited = with_merged(before, path, wanted.as_ref()).unwrap();
        assert_eq!(edited.as_deref(), Some(after), "{before}");
        assert_eq!(with_merged(after, path, wanted.as_ref()).unwrap(), None, "written once");
    }

    #[test]
    fn a_name_that_stands_very_often_goes_at_once() {
        let often = "\"a\":1,".repeat(150_000);
        merged(&format!("{{{often}\"b\":2}}"), &["a"], None, "{\"b\":2}");
    }

    #[test]
    fn only_the_members_that_differ_are_written() {
        use serde_json::json;
        merged(
            "{\n  \"z\": 1.50,\n  \"env\": { \"B\": \"1\", \"A\": \"2\" },\n  \"x\": 1\n}\n",
            &[],
            Some(json!({"z": 1.5, "env": {"B": "9", "A": "2"}, "x": 1, "list": [1, {"a": 2}]})),
            "{\n  \"z\": 1.50,\n  \"env\": { \"B\": \"9\", \"A\": \"2\" },\n  \"x\": 1,\n  \"list\": [\n    1,\n    {\n      \"a\": 2\n    }\n  ]\n}\n",
        );
        let three = "{\n  \"a\": 1,\n  \"b\": [2],\n  \"c\": 3\n}";
        merged(three, &["a"], None, "{\n  \"b\": [2],\n  \"c\": 3\n}");
        merged(three, &["b"], None, "{\n  \"a\": 1,\n  \"c\": 3\n}");
        merged(three, &["c"], None, "{\n  \"a\": 1,\n  \"b\": [2]\n}");
        merged("{ \"a\" : 1 , \"b\":2}", &["a"], None, "{ \"b\":2}");
        merged("{\"a\":1,\"a\":2}", &["a"], None, "{}");
        merged("{\"a\":1,\"a\":2, \"b\":3, \"a\":4,\"a\":5}", &["a"], None, "{\"b\":3}");
        merged("{\"b\":3,\"a\":1, \"c\":4,\"a\":5}", &["a"], None, "{\"b\":3, \"c\":4}");
        merged("{}", &["a"], Some(json!(["x"])), "{\n  \"a\": [\n    \"x\"\n  ]\n}");
        assert_eq!(with_merged("{}", &["a", "b"], None).unwrap(), None);
        // More changes than are made one by one.
        let many: serde_json::Map<_, _> = (0..100).map(|n| (format!("k{n}"), json!(n))).collect();
        let edited = with_merged("{\"old\": 1}", &[], Some(&json!(many))).unwrap().unwrap();
        assert_eq!(serde_json::from_str::<Value>(&edited).unwrap(), json!(many));
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
        fn what_is_merged_is_what_was_wanted(
            before in any_json(), wanted in any_json(), pretty: bool,
        ) {
            let text = if pretty {
                serde_json::to_string_pretty(&before).unwrap()
            } else {
                before.to_string()
            };
            let edited = with_merged(&text, &[], Some(&wanted)).unwrap().unwrap_or(text);
            prop_assert_eq!(serde_json::from_str::<Value>(&edited).unwrap(), wanted);
        }

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
