//! Places in a value, named by JSON pointers (RFC 6901), and what is changed there.

use serde_json::{Map, Value};

/// The pointer to a member of what `at` points to.
#[must_use]
pub fn member(at: &str, key: &str) -> String {
    format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// The pointer to an item of what `at` points to.
#[must_use]
pub fn item(at: &str, index: usize) -> String {
    format!("{at}/{index}")
}

/// The text at a place; empty where there is none.
#[must_use]
pub fn text(value: &Value, at: &str) -> String {
    match value.pointer(at) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

/// Puts something at a place, or takes away what is there.
///
/// Objects on the way are made; a place beyond the end of a list is its next item.
pub fn put(value: &mut Value, at: &str, to: Option<Value>) {
    let Some((parent, last)) = at.rsplit_once('/') else {
        *value = to.unwrap_or_default();
        return;
    };
    if value.pointer(parent).is_none_or(Value::is_null) {
        if to.is_none() {
            return;
        }
        put(value, parent, Some(Value::Object(Map::new())));
    }
    let key = last.replace("~1", "/").replace("~0", "~");
    match (value.pointer_mut(parent), to) {
        (Some(Value::Object(members)), Some(to)) => drop(members.insert(key, to)),
        (Some(Value::Object(members)), None) => drop(members.remove(&key)),
        (Some(Value::Array(items)), to) => {
            let Ok(index) = key.parse::<usize>() else { return };
            match (items.get_mut(index), to) {
                (Some(item), Some(to)) => *item = to,
                (Some(_), None) => drop(items.remove(index)),
                (None, Some(to)) => items.push(to),
                (None, None) => {}
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn something_is_put_where_it_belongs_and_taken_away() {
        let mut value = json!({"Stop": [{"hooks": [{"command": "a"}]}]});
        put(&mut value, "/Stop/0/hooks/0/timeout", Some(json!(5)));
        put(&mut value, "/Stop/0/hooks/1", Some(json!({"command": "b"})));
        put(&mut value, &member("", "a/b"), Some(json!(1)));
        put(&mut value, "/env/KEY", Some(json!("v")));
        put(&mut value, "/nothing/here", None);
        assert_eq!(
            value,
            json!({"Stop": [{"hooks": [{"command": "a", "timeout": 5}, {"command": "b"}]}],
                "a/b": 1, "env": {"KEY": "v"}})
        );
        put(&mut value, &item("/Stop/0/hooks", 0), None);
        put(&mut value, "/env", None);
        put(&mut value, &member("", "a/b"), None);
        assert_eq!(value, json!({"Stop": [{"hooks": [{"command": "b"}]}]}));
        assert_eq!(text(&value, "/Stop/0/hooks/0/command"), "b");
        assert_eq!(text(&value, "/Stop/7"), "");
        put(&mut value, "", Some(json!("whole")));
        assert_eq!(value, json!("whole"));
    }
}
