//! What becomes of edits when the file has changed since it was read.

use serde_json::{Map, Value};
use similar::TextMerge;
use std::collections::BTreeSet;

/// Lists whose order means nothing.
const SETS: [&str; 5] = ["allow", "deny", "ask", "enabled", "disabled"];

/// The edits on top of what is in the file now.
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    /// The value; where both changed the same, the edits win.
    pub value: Value,
    /// Both changed the same.
    pub conflicts: bool,
}

/// Puts edits on top of another state of the file.
///
/// `base` is what was read first, `mine` is that with the edits, `theirs` is in the file now.
#[must_use]
pub fn merge(base: &Value, mine: &Value, theirs: &Value) -> Merged {
    let mut conflicts = false;
    let value = both("", Some(base), Some(mine), Some(theirs), &mut conflicts);
    Merged { value: value.unwrap_or_default(), conflicts }
}

fn both(
    key: &str,
    base: Option<&Value>,
    mine: Option<&Value>,
    theirs: Option<&Value>,
    conflicts: &mut bool,
) -> Option<Value> {
    if mine == theirs || theirs == base {
        return mine.cloned();
    }
    if mine == base {
        return theirs.cloned();
    }
    match (base, mine, theirs) {
        (Some(Value::Object(base)), Some(Value::Object(mine)), Some(Value::Object(theirs))) => {
            let keys: BTreeSet<&String> = mine.keys().chain(theirs.keys()).collect();
            let mut members = Map::new();
            for key in keys {
                let of = [base, mine, theirs].map(|members| members.get(key));
                if let Some(value) = both(key, of[0], of[1], of[2], conflicts) {
                    members.insert(key.clone(), value);
                }
            }
            Some(Value::Object(members))
        }
        (base, Some(Value::Array(mine)), Some(Value::Array(theirs))) if SETS.contains(&key) => {
            let base: &[Value] = base.and_then(Value::as_array).map_or(&[], Vec::as_slice);
            let stays = |item: &&Value| mine.contains(item) || !base.contains(item);
            let mut items: Vec<Value> = theirs.iter().filter(stays).cloned().collect();
            let is_new = |item: &&Value| !base.contains(item) && !theirs.contains(item);
            items.extend(mine.iter().filter(is_new).cloned());
            Some(Value::Array(items))
        }
        (Some(Value::String(base)), Some(Value::String(mine)), Some(Value::String(theirs)))
            if [base, mine, theirs].iter().any(|text| text.contains('\n')) =>
        {
            let merged = TextMerge::from_lines(base.as_str(), mine.as_str(), theirs.as_str());
            if merged.is_conflicted() {
                *conflicts = true;
                return Some(Value::from(mine.as_str()));
            }
            Some(Value::from(merged.to_string()))
        }
        _ => {
            *conflicts = true;
            mine.cloned()
        }
    }
}

/// How many values differ.
#[must_use]
pub fn count(before: &Value, after: &Value) -> usize {
    match (before, after) {
        (before, after) if before == after => 0,
        (Value::Object(before), Value::Object(after)) => {
            let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            let of = |key| match (before.get(key), after.get(key)) {
                (Some(before), Some(after)) => count(before, after),
                (_, _) => 1,
            };
            keys.into_iter().map(of).sum()
        }
        (Value::Array(before), Value::Array(after)) => {
            let longest = before.len().max(after.len());
            let of = |index| match (before.get(index), after.get(index)) {
                (Some(before), Some(after)) => count(before, after),
                (_, _) => 1,
            };
            (0..longest).map(of).sum()
        }
        (Value::String(before), Value::String(after)) if before.contains('\n') => {
            super::diff::parts_of(before, after).len()
        }
        (_, _) => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(base: Value, mine: Value, theirs: Value, wanted: Value, conflicts: bool) {
        assert_eq!(merge(&base, &mine, &theirs), Merged { value: wanted, conflicts });
    }

    #[test]
    fn edits_of_other_parts_are_kept_beside_each_other() {
        check(
            json!({"a": 1, "b": {"c": 1, "d": 1}}),
            json!({"a": 2, "b": {"c": 1, "d": 1}}),
            json!({"a": 1, "b": {"c": 1}, "e": 5}),
            json!({"a": 2, "b": {"c": 1}, "e": 5}),
            false,
        );
        // What both did is no conflict, and neither is what one of them left alone.
        check(json!({"a": 1}), json!({"a": 2}), json!({"a": 2}), json!({"a": 2}), false);
        check(json!({"a": 1}), json!({}), json!({"a": 1}), json!({}), false);
        check(json!({}), json!({}), json!({"a": 1}), json!({"a": 1}), false);
    }

    #[test]
    fn rules_of_both_are_kept_and_removed_ones_stay_removed() {
        check(
            json!({"allow": ["A", "B"]}),
            json!({"allow": ["B", "C"]}),
            json!({"allow": ["A", "B", "D"]}),
            json!({"allow": ["B", "D", "C"]}),
            false,
        );
    }

    #[test]
    fn lines_of_a_text_are_merged_unless_both_changed_the_same() {
        let base = json!("one\ntwo\nthree\n");
        check(
            base.clone(),
            json!("ONE\ntwo\nthree\n"),
            json!("one\ntwo\nTHREE\n"),
            json!("ONE\ntwo\nTHREE\n"),
            false,
        );
        check(
            base,
            json!("1\ntwo\nthree\n"),
            json!("!\ntwo\nthree\n"),
            json!("1\ntwo\nthree\n"),
            true,
        );
    }

    #[test]
    fn where_both_changed_the_same_the_edits_win_and_it_is_said() {
        check(json!({"a": 1}), json!({"a": 2}), json!({"a": 3}), json!({"a": 2}), true);
        check(json!({"a": 1}), json!({}), json!({"a": 3}), json!({}), true);
        check(
            json!({"a": [1]}),
            json!({"a": [1, 2]}),
            json!({"a": [1, 3]}),
            json!({"a": [1, 2]}),
            true,
        );
    }

    #[test]
    fn changes_are_counted_by_value() {
        let before = json!({"Stop": [{"matcher": "Edit", "hooks": [{"command": "a"}]}]});
        let after =
            json!({"Stop": [{"matcher": "Edit|Write", "hooks": [{"command": "a", "timeout": 3}]}]});
        assert_eq!(count(&before, &after), 2);
        assert_eq!(count(&before, &before), 0);
        assert_eq!(count(&json!({"allow": ["A"]}), &json!({"allow": ["A", "B"], "deny": []})), 2);
        assert_eq!(count(&json!(""), &json!("text")), 1);
    }
}
