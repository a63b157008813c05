//! Masks what leaves in a support bundle.

use serde_json::Value;
use svc_domain::redact::{MASK, redact_text};
use svc_shared::ids::InstanceId;

/// What is masked beside secrets: where the user of this machine lives.
#[derive(Debug, Clone)]
pub(super) struct Mask {
    home: Option<String>,
}

impl Mask {
    pub fn of_this_user() -> Self {
        let home = std::env::var("HOME").ok();
        Self { home: home.filter(|home| home.trim_end_matches('/').len() > 1) }
    }

    /// A document, each of its texts masked, and then all of it once more.
    pub fn document(&self, value: &Value) -> String {
        let mut value = value.clone();
        self.value("", &mut value);
        let text = serde_json::to_string_pretty(&value).unwrap_or_default();
        self.text(&text)
    }

    fn value(&self, name: &str, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.named(name, text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(name, item)),
            Value::Object(members) => {
                // A name can be a secret too, such as one of a map that a person filled in.
                let old = std::mem::take(members);
                for (name, mut member) in old {
                    self.value(&name, &mut member);
                    members.insert(redact_text(&name), member);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// A text whose name may tell that it is a secret.
    fn named(&self, name: &str, text: &str) -> String {
        // The whole id of a session is masked like every other id; its beginning names it.
        if let Ok(id) = text.parse::<InstanceId>() {
            return id.short().to_owned();
        }
        let with_name = redact_text(&format!("{name}={text}"));
        match with_name.ends_with(&format!("={MASK}")) && !text.is_empty() {
            true => MASK.to_owned(),
            false => redact_text(text),
        }
    }

    /// A text with its last line ended.
    pub fn text(&self, text: &str) -> String {
        let mut clean = redact_text(text);
        if let Some(home) = &self.home {
            clean = clean.replace(home.trim_end_matches('/'), "~");
        }
        if !clean.ends_with('\n') {
            clean.push('\n');
        }
        clean
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_values_and_ids_are_masked_and_the_document_stays_one() {
        let mask = Mask { home: Some("/home/anna/".to_owned()) };
        let id = "0f1e2d3c-4b5a-4978-8796-a5b4c3d2e1f0";
        let document = mask.document(&json!({
            "password": "correct horse battery",
            "instance_id": id,
            "nested": [{ "text": "key ghp_0123456789abcdefghijklmnopqrstuvwxyz12" }],
            "path": "/home/anna/projects/api",
            "port": 7621,
        }));
        for secret in ["correct horse", "4b5a-4978", "0123456789abcdef", "/home/anna"] {
            assert!(!document.contains(secret), "{secret} is left in {document}");
        }
        let again: Value = serde_json::from_str(&document).unwrap();
        assert_eq!((&again["instance_id"], &again["port"]), (&json!("0f1e2d3c"), &json!(7621)));
        assert_eq!(again["path"], "~/projects/api");
    }
}
