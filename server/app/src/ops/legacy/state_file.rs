//! What a `state.json` of an earlier service says (`configuration` §11.1).
//! Text in, records out.

use serde_json::{Map, Value};
use svc_domain::log_escape::quoted;

/// Version of the file that is written and read as it is.
const VERSION: u64 = 1;
/// Members of a record, in the order in which they are written.
const TEXTS: [&str; 5] = ["project_name", "label", "spawn_mode", "permission_mode", "resume_mode"];
const SWITCH: &str = "intentional_stop";

/// One record, as far as it could be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub project: String,
    pub label: Option<String>,
    pub intentional_stop: bool,
    pub spawn_mode: Option<String>,
    pub permission_mode: Option<String>,
    pub resume_mode: Option<String>,
}

/// A file that could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reading {
    /// It says another version than this one knows.
    pub is_other_version: bool,
    pub records: Vec<Record>,
    /// What was left out, and why.
    pub remarks: Vec<String>,
}

/// A file in its canonical form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Canonical {
    pub is_other_version: bool,
    pub records: usize,
    pub text: String,
}

/// Takes what can be understood.
/// Only a file that is no such file at all is refused.
pub(super) fn lenient(bytes: &[u8]) -> Result<Reading, String> {
    let root = root(bytes)?;
    let empty = Map::new();
    let instances = match root.get("instances") {
        None | Some(Value::Null) => &empty,
        Some(Value::Object(instances)) => instances,
        Some(_) => return Err("`instances` is not an object".to_owned()),
    };
    let mut remarks = Vec::new();
    let mut records = Vec::new();
    for (project, record) in instances {
        let Some(record) = record.as_object() else {
            remarks.push(format!("the record of {} is not an object", quoted(project)));
            continue;
        };
        let mut text = |name: &str| match record.get(name) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => {
                remarks.push(format!("`{name}` of {} is not a text", quoted(project)));
                None
            }
        };
        let (label, spawn_mode) = (text("label"), text("spawn_mode"));
        let (permission_mode, resume_mode) = (text("permission_mode"), text("resume_mode"));
        let intentional_stop = match record.get(SWITCH) {
            None | Some(Value::Null) => false,
            Some(Value::Bool(stop)) => *stop,
            Some(_) => {
                remarks.push(format!("`{SWITCH}` of {} is not true or false", quoted(project)));
                false
            }
        };
        records.push(Record {
            project: project.clone(),
            label,
            intentional_stop,
            spawn_mode,
            permission_mode,
            resume_mode,
        });
    }
    Ok(Reading { is_other_version: is_other_version(&root), records, remarks })
}

/// The same file as this version would have written it. Anything odd is refused.
pub(super) fn canonical(bytes: &[u8]) -> Result<Canonical, String> {
    let root = root(bytes)?;
    let instances = match root.get("instances") {
        Some(Value::Object(instances)) => instances,
        Some(_) => return Err("`instances` is not an object".to_owned()),
        None => return Err("`instances` is missing".to_owned()),
    };
    match root.get("schema_version") {
        None => {}
        Some(version) if version.is_u64() => {}
        Some(_) => return Err("`schema_version` is not a whole number".to_owned()),
    }
    let mut out = Map::new();
    for (project, record) in instances {
        let Some(record) = record.as_object() else {
            return Err(format!("the record of {} is not an object", quoted(project)));
        };
        let mut kept = Map::new();
        for (name, value) in record {
            let fits = match value {
                Value::Null => continue,
                Value::String(_) => TEXTS.contains(&name.as_str()),
                Value::Bool(_) => name == SWITCH,
                Value::Number(_) | Value::Array(_) | Value::Object(_) => false,
            };
            let is_known = TEXTS.contains(&name.as_str()) || name == SWITCH;
            match (fits, is_known) {
                (true, _) => drop(kept.insert(name.clone(), value.clone())),
                (false, true) => {
                    return Err(format!("`{name}` of {} has the wrong type", quoted(project)));
                }
                (false, false) => {}
            }
        }
        out.insert(project.clone(), Value::Object(kept));
    }
    let records = out.len();
    let mut text = String::new();
    // Written by hand down to the records: the version stands first, whatever the map's order.
    text.push_str(&format!("{{\n  \"schema_version\": {VERSION},\n  \"instances\": "));
    let pretty = serde_json::to_string_pretty(&out).map_err(|error| error.to_string())?;
    text.push_str(&pretty.replace('\n', "\n  "));
    text.push_str("\n}\n");
    Ok(Canonical { is_other_version: is_other_version(&root), records, text })
}

fn root(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    match serde_json::from_str(text) {
        Ok(Value::Object(root)) => Ok(root),
        Ok(_) => Err("it is JSON, but not an object".to_owned()),
        // The text of the error names a place, never the content.
        Err(error) => Err(format!("it is not JSON that can be read ({error})")),
    }
}

fn is_other_version(root: &Map<String, Value>) -> bool {
    root.get("schema_version").is_some_and(|version| version.as_u64() != Some(VERSION))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_record_that_is_none_is_left_out_and_the_rest_is_taken() {
        let reading = lenient(
            br#"{"schema_version":1,"extra":[],"instances":{"a":{"label":"x","pid":7},"b":5,
                "c":{"intentional_stop":true,"spawn_mode":9}}}"#,
        )
        .unwrap();
        let names: Vec<&str> = reading.records.iter().map(|one| one.project.as_str()).collect();
        assert_eq!(names, ["a", "c"]);
        assert_eq!(reading.records[0].label.as_deref(), Some("x"));
        assert!(reading.records[1].intentional_stop && reading.records[1].spawn_mode.is_none());
        assert_eq!(reading.remarks.len(), 2, "{:?}", reading.remarks);
        assert!(!reading.is_other_version);
    }

    #[test]
    fn what_is_no_such_file_is_refused_and_what_lacks_the_map_is_empty() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for bad in [&b"\xff{}"[..], b"", b"{", b"[]", b"5", br#"{"instances":[]}"#, deep.as_bytes()]
        {
            assert!(lenient(bad).is_err());
            assert!(canonical(bad).is_err());
        }
        assert!(lenient(b"{}").unwrap().records.is_empty());
        assert!(canonical(b"{}").is_err(), "nothing is guessed when it is rewritten");
        assert!(lenient(br#"{"schema_version":2}"#).unwrap().is_other_version);
    }

    #[test]
    fn the_canonical_form_is_read_as_the_same_and_stays_itself() {
        let odd = br#"{"instances":{"b":{"label":null,"pid":3,"resume_mode":"pty"},
            "a":{"intentional_stop":false,"label":"\u00fc \"q\"\nline"}},"schema_version":3}"#;
        let canonical_form = canonical(odd).unwrap();
        assert!(canonical_form.is_other_version);
        assert_eq!(canonical_form.records, 2);
        let again = canonical(canonical_form.text.as_bytes()).unwrap();
        assert_eq!(again.text, canonical_form.text);
        assert!(!again.is_other_version);
        let records = |bytes: &[u8]| lenient(bytes).unwrap().records;
        assert_eq!(records(odd), records(canonical_form.text.as_bytes()));
        assert!(canonical(br#"{"instances":{"a":{"label":5}}}"#).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = lenient(&bytes);
            let _ = canonical(&bytes);
        }

        #[test]
        fn whatever_can_be_made_canonical_keeps_its_records(
            label in "\\PC{0,12}", project in "[a-z\"\\\\ü]{1,8}", stop in any::<bool>(),
        ) {
            let file = serde_json::json!({
                "instances": {project: {"label": label, "intentional_stop": stop}}
            }).to_string();
            let text = canonical(file.as_bytes()).unwrap().text;
            prop_assert_eq!(
                lenient(file.as_bytes()).unwrap().records,
                lenient(text.as_bytes()).unwrap().records
            );
        }
    }
}
