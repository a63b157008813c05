//! A JSON file of the agent, changed with every other byte kept.

use crate::json_edit::with_merged;
use serde_json::{Map, Value};

/// The marker that some editors write before a text.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// The text of a file and the object in it.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonDocument {
    text: String,
    value: Value,
}

/// Why a text is not used, with line and column where they are known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotAnObject(String);

impl JsonDocument {
    /// Reads a text. An empty one is an empty object.
    ///
    /// # Errors
    /// It is not a JSON object.
    pub fn parse(text: &str) -> Result<Self, NotAnObject> {
        let json = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        if json.trim().is_empty() {
            let value = Value::Object(Map::new());
            return Ok(Self { text: String::new(), value });
        }
        match serde_json::from_str::<Value>(json) {
            Ok(value @ Value::Object(_)) => Ok(Self { text: text.to_owned(), value }),
            Ok(_) => Err(NotAnObject("it is not a JSON object".to_owned())),
            Err(error) => Err(NotAnObject(format!(
                "it is not valid JSON at line {}, column {}",
                error.line(),
                error.column()
            ))),
        }
    }

    /// The object.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The text that holds this object. Only the members that differ are written.
    ///
    /// # Errors
    /// It cannot be written without a change elsewhere, as where one name stands twice.
    pub fn changed_to(&self, wanted: &Value) -> Result<String, NotAnObject> {
        let json = self.text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.text);
        let is_new = json.is_empty();
        let edited = with_merged(if is_new { "{}" } else { json }, &[], Some(wanted))
            .map_err(|error| NotAnObject(error.to_string()))?;
        let Some(edited) = edited else { return Ok(self.text.clone()) };
        let mark = if json.len() < self.text.len() { BYTE_ORDER_MARK } else { "" };
        let end = if is_new { "\n" } else { "" };
        Ok(format!("{mark}{edited}{end}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_document_keeps_what_is_not_changed() {
        let empty = JsonDocument::parse(" \n").unwrap();
        assert_eq!(empty.changed_to(&json!({"a": 1})).unwrap(), "{\n  \"a\": 1\n}\n");
        assert_eq!(empty.changed_to(&json!({})).unwrap(), "");
        let marked = JsonDocument::parse("\u{feff}{\"b\": 1.0, \"a\": 2}\n").unwrap();
        assert_eq!(
            marked.changed_to(&json!({"b": 1.0, "a": 3})).unwrap(),
            "\u{feff}{\"b\": 1.0, \"a\": 3}\n"
        );
        let odd = |text: &str| JsonDocument::parse(text).unwrap_err().0;
        assert!(odd("{\n,}").contains("line 2"));
        assert!(odd("[]").contains("object"));
        assert!(odd(&"[".repeat(5000)).contains("line 1"));
    }
}
