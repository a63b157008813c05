//! Servers of the model context protocol in a settings file.

use super::names::is_server;
use super::secrets::{masked, unmasked};
use super::{BadConfig, bad};
use crate::log_escape::quoted;
use serde_json::{Map, Value};

/// The servers as they are shown: without their secrets.
#[must_use]
pub fn shown(servers: Option<&Value>) -> Value {
    match servers {
        Some(Value::Object(_)) => servers.map_or(Value::Null, masked),
        Some(_) | None => Value::Object(Map::new()),
    }
}

/// The servers to store when these were sent.
///
/// # Errors
/// A name or an entry does not fit.
pub fn wanted(sent: &Value, stored: Option<&Value>) -> Result<Value, BadConfig> {
    let Value::Object(sent) = sent else {
        return Err(bad("`servers` must be an object of servers by name"));
    };
    let mut servers = Map::new();
    for (name, entry) in sent {
        let before = stored.and_then(|stored| stored.get(name));
        servers.insert(name.clone(), wanted_one(name, entry, before)?);
    }
    Ok(Value::Object(servers))
}

/// The entry to store when this one was sent.
///
/// An unchanged one passes whatever is in it.
///
/// # Errors
/// The name or the entry does not fit.
pub fn wanted_one(name: &str, sent: &Value, stored: Option<&Value>) -> Result<Value, BadConfig> {
    let called = quoted(name);
    let entry = unmasked(sent, stored)
        .map_err(|BadConfig(text)| bad(format!("in the server {called}: {text}")))?;
    if Some(&entry) == stored {
        return Ok(entry);
    }
    if !is_server(name) {
        return Err(bad(format!(
            "{called} cannot be the name of a server; use letters, digits, `_`, `.` and `-`, and \
             begin with a letter, a digit or `_`"
        )));
    }
    check(&entry, stored).map_err(|text| bad(format!("the server {called} {text}")))?;
    Ok(entry)
}

fn check(entry: &Value, stored: Option<&Value>) -> Result<(), String> {
    let Value::Object(members) = entry else {
        return Err("must be an object".to_owned());
    };
    let text = |key: &str| match members.get(key) {
        None => Ok(None),
        Some(Value::String(text)) if !text.is_empty() && !text.contains('\0') => Ok(Some(text)),
        Some(_) => Err(format!("needs a text as its `{key}`")),
    };
    let (command, url, kind) = (text("command")?, text("url")?, text("type")?);
    let known: &[&str] = match (command, url, kind.map(String::as_str)) {
        (Some(_), None, None | Some("stdio")) => &["command", "args", "env", "type"],
        (None, Some(url), Some("sse" | "http")) => {
            let is_web = url.starts_with("https://") || url.starts_with("http://");
            if !is_web || url.chars().any(|c| c.is_whitespace() || c.is_control()) {
                return Err("needs a `url` that begins with `https://` or `http://`".to_owned());
            }
            &["url", "type", "headers", "env"]
        }
        (None, Some(_), _) => {
            return Err("has a `url` and needs `type` with `sse` or `http`".to_owned());
        }
        (Some(_), Some(_), _) => return Err("has both `command` and `url`; keep one".to_owned()),
        (Some(_), None, Some(_)) => {
            return Err("has a `command`, so its `type` must be `stdio`".to_owned());
        }
        (None, None, _) => return Err("needs a `command` or a `url`".to_owned()),
    };
    if let Some(args) = members.get("args") {
        let is_list = args.as_array().is_some_and(|args| args.iter().all(Value::is_string));
        if !is_list {
            return Err("needs a list of texts as its `args`".to_owned());
        }
    }
    for key in ["env", "headers"] {
        let is_map =
            |map: &Value| map.as_object().is_some_and(|map| map.values().all(Value::is_string));
        if members.get(key).is_some_and(|map| !is_map(map)) {
            return Err(format!("needs an object of texts as its `{key}`"));
        }
    }
    // What a newer agent stored there may stay.
    let may_stay = |(key, value): (&String, &Value)| {
        known.contains(&key.as_str()) || stored.and_then(|stored| stored.get(key)) == Some(value)
    };
    match members.iter().find(|member| !may_stay(*member)) {
        Some((key, _)) => Err(format!("has an unknown member {}", quoted(key))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent_config::secrets::MASK;
    use serde_json::json;

    #[test]
    fn entries_are_checked_and_keep_their_secrets() {
        let stored = json!({
            "mine": {"command": "npx", "args": ["-y"], "env": {"KEY": "k"}, "timeout": 5},
            "odd name": {"anything": 1},
        });
        let sent = shown(Some(&stored));
        assert_eq!(sent["mine"]["env"]["KEY"], MASK);
        assert_eq!(wanted(&sent, Some(&stored)).unwrap(), stored);
        let mut edited = sent;
        edited["mine"]["args"] = json!(["-y", "x"]);
        edited["new"] = json!({"url": "https://x.example/mcp", "type": "http"});
        let done = wanted(&edited, Some(&stored)).unwrap();
        assert_eq!(done["mine"]["env"]["KEY"], "k");
        assert_eq!(done["mine"]["timeout"], 5);
        for (odd, why) in [
            (json!({"x": {"command": "a", "url": "https://x"}}), "both"),
            (json!({"x": {"url": "https://x"}}), "type"),
            (json!({"x": {"url": "file:///etc", "type": "sse"}}), "https"),
            (json!({"x": {"command": "a", "args": "b"}}), "args"),
            (json!({"x": {"command": "a", "env": {"A": 1}}}), "env"),
            (json!({"x": {"command": "a", "timeout": 5}}), "timeout"),
            (json!({"x": {"command": "a", "env": {"A": MASK}}}), "env.A"),
            (json!({"-x": {"command": "a"}}), "name"),
            (json!({"x": {}}), "needs"),
            (json!({"x": 5}), "object"),
            (json!([]), "object"),
        ] {
            let refused = wanted(&odd, Some(&stored)).unwrap_err().0;
            assert!(refused.contains(why), "{odd}: {refused}");
        }
    }
}
