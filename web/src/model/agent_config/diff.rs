//! What a save would change, line by line, without secrets.

use super::MASK;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};
use svc_shared::internal::changes::{ChangedLine, ChangedPart, LineSign};

/// Lines that are shown around a change.
const AROUND: usize = 3;
/// Members whose texts are all secret.
const WHOLLY: [&str; 2] = ["env", "headers"];
/// Parts of names whose texts are secret.
const TELLING: [&str; 5] = ["token", "secret", "password", "apikey", "authorization"];
/// Stands for a secret that was typed.
const TYPED: &str = "******** (new)";

/// Lines that a value consists of.
#[must_use]
pub fn lines_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(&concealed(other, false)).unwrap_or_default(),
    }
}

fn concealed(value: &Value, is_secret: bool) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| (key.clone(), concealed(value, is_secret || tells(key))))
            .collect(),
        Value::Array(items) => items.iter().map(|item| concealed(item, is_secret)).collect(),
        Value::String(text) if is_secret && text != MASK => Value::from(TYPED),
        Value::Number(_) if is_secret => Value::from(TYPED),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Whether values under this name are secret, by the rules of the service.
#[must_use]
pub fn tells(key: &str) -> bool {
    let lower = key.to_ascii_lowercase().replace(['_', '-'], "");
    let is_other = lower.ends_with("helper") || lower.ends_with("tokens");
    WHOLLY.contains(&key) || (!is_other && TELLING.iter().any(|part| lower.contains(part)))
}

/// The changed parts between two values.
#[must_use]
pub fn parts(before: &Value, after: &Value) -> Vec<ChangedPart> {
    parts_of(&lines_of(before), &lines_of(after))
}

/// The changed parts between two texts.
#[must_use]
pub fn parts_of(before: &str, after: &str) -> Vec<ChangedPart> {
    let diff = TextDiff::from_lines(before, after);
    let number = |index: usize, len: usize| (index + usize::from(len > 0)) as u64;
    diff.grouped_ops(AROUND)
        .iter()
        .filter_map(|ops| {
            let (first, last) = (ops.first()?, ops.last()?);
            let old = first.old_range().start..last.old_range().end;
            let new = first.new_range().start..last.new_range().end;
            let lines = ops.iter().flat_map(|op| diff.iter_changes(op)).map(|change| ChangedLine {
                t: match change.tag() {
                    ChangeTag::Equal => LineSign::Same,
                    ChangeTag::Delete => LineSign::Deleted,
                    ChangeTag::Insert => LineSign::Added,
                }
                .into(),
                text: change.value().trim_end_matches(['\n', '\r']).to_owned(),
            });
            Some(ChangedPart {
                old_start: number(old.start, old.len()),
                old_lines: old.len() as u64,
                new_start: number(new.start, new.len()),
                new_lines: new.len() as u64,
                lines: lines.collect(),
            })
        })
        .collect()
}

/// Added and deleted lines.
#[must_use]
pub fn totals(parts: &[ChangedPart]) -> (usize, usize) {
    let of = |sign: LineSign| {
        let lines = parts.iter().flat_map(|part| &part.lines);
        lines.filter(|line| line.t.is(&sign)).count()
    };
    (of(LineSign::Added), of(LineSign::Deleted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn changed_lines_have_their_numbers_and_their_neighbours() {
        let text = |middle: &str| format!("1\n2\n3\n4\n{middle}\n6\n7\n8\n9\n");
        let parts = parts_of(&text("5"), &text("five"));
        assert_eq!(parts.len(), 1);
        assert_eq!((parts[0].old_start, parts[0].new_start, parts[0].lines.len()), (2, 2, 8));
        assert_eq!(totals(&parts), (1, 1));
        let parts = parts_of("", "a\nb\n");
        assert_eq!((parts[0].old_start, parts[0].old_lines, parts[0].new_start), (0, 0, 1));
        assert!(parts_of("a\n", "a\n").is_empty());
    }

    #[test]
    fn no_secret_is_in_what_is_shown() {
        let before = json!({"env": {"KEY": MASK}, "model": "opus"});
        let after = json!({"env": {"KEY": "hunter2", "N": 5}, "model": "opus", "apiToken": "x"});
        let shown = lines_of(&after);
        assert!(!shown.contains("hunter2") && !shown.contains("\"x\""), "{shown}");
        assert_eq!(totals(&parts(&before, &after)).1, 1, "the stored one is replaced");
        assert_eq!(lines_of(&json!("a text")), "a text");
        assert!(!tells("maxOutputTokens") && !tells("apiKeyHelper") && tells("API_KEY"));
    }
}
