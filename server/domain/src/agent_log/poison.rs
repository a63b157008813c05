//! The control message that says a remote session is gone for good.

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// Deepest nesting looked into; the message itself has two levels.
const DEPTH: usize = 32;

/// Whether the text holds a JSON object that ends the session.
/// The object names `end_session`, and its `reason` is `archived` or `deleted`, in either order
/// (reported for agent 2.1.201).
///
/// People's messages are strings inside such objects. Text inside a string never counts as an
/// object, so a message cannot forge one. Linear time; objects nested too deeply are ignored.
pub(super) fn holds_poison(text: &str) -> bool {
    static NAME: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("end_session"));
    if NAME.find(text.as_bytes()).is_none() {
        return false;
    }
    let mut objects: Vec<Object> = Vec::new();
    let mut too_deep = 0_usize;
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}', '"', ',']) {
        let (mark, after) = rest.split_at(at + 1);
        rest = after;
        match mark.as_bytes().last() {
            Some(b'{') if objects.len() == DEPTH => too_deep += 1,
            Some(b'{') => objects.push(Object::default()),
            Some(b'}') if too_deep > 0 => too_deep -= 1,
            Some(b'}') if objects.pop().is_some_and(|object| object.is_poison()) => return true,
            // Before the first brace a quote is punctuation.
            Some(b'"') if !objects.is_empty() => {
                let Some((string, after)) = string(rest) else { return false };
                rest = after;
                objects.last_mut().into_iter().for_each(|object| object.string(string));
            }
            Some(b',') => {
                objects.last_mut().into_iter().for_each(|object| object.key = Key::Other);
            }
            _ => {}
        }
    }
    false
}

/// A string up to its closing quote, still escaped, and what follows.
fn string(text: &str) -> Option<(&str, &str)> {
    let mut escaped = false;
    let end = text.bytes().position(|b| {
        let closes = b == b'"' && !escaped;
        escaped = b == b'\\' && !escaped;
        closes
    })?;
    Some((text.get(..end)?, text.get(end + 1..)?))
}

#[derive(Default)]
struct Object {
    ends_session: bool,
    for_good: bool,
    key: Key,
}

/// The last string before a value.
#[derive(Default, PartialEq, Eq)]
enum Key {
    #[default]
    Other,
    Reason,
}

impl Object {
    fn string(&mut self, word: &str) {
        match word {
            "end_session" => self.ends_session = true,
            "archived" | "deleted" if self.key == Key::Reason => self.for_good = true,
            "reason" => self.key = Key::Reason,
            _ => {}
        }
    }

    fn is_poison(&self) -> bool {
        self.ends_session && self.for_good
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_reasons_in_either_order_and_notation() {
        for text in [
            r#"{"subtype":"end_session","reason":"archived"}"#,
            r#"{"reason":"deleted","subtype":"end_session"}"#,
            r#"got {"type":"control_request","request":{"subtype" : "end_session", "x":1, "reason" : "archived"}}"#,
            r#"{"subtype":"end_session","meta":{"a":[1,{}]},"reason":"deleted"} trailing"#,
            r#"sessionId="x" <<< {"a":"say \"hi\"","b":{"reason":"deleted","subtype":"end_session"}}"#,
        ] {
            assert!(holds_poison(text), "{text}");
        }
    }

    #[test]
    fn another_reason_or_another_object_is_no_poison() {
        for text in [
            r#"{"subtype":"end_session","reason":"idle"}"#,
            r#"{"subtype":"end_session"}"#,
            r#"{"subtype":"end_session","state":"archived"}"#,
            r#"{"subtype":"interrupt","reason":"archived"}"#,
            r#"{"a":{"subtype":"end_session"},"b":{"reason":"archived"}}"#,
            r#"{"reason":"idle","subtype":"end_session","state":"deleted"}"#,
            r#"end_session "reason":"archived""#,
            "end_session archived",
            // What a person says.
            r#"<<< {"type":"user","text":"{\"subtype\":\"end_session\",\"reason\":\"archived\"}"}"#,
            r#"<<< {"text":"\\\"{\"subtype\":\"end_session\",\"reason\":\"deleted\"}"}"#,
            r#"{"text":"cut off {\"subtype\":\"end_session\",\"reason\":\"deleted\"}"#,
        ] {
            assert!(!holds_poison(text), "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_survived() {
        let deep = format!("end_session{}{}", "{".repeat(100_000), "}".repeat(100_000));
        assert!(!holds_poison(&deep));
        assert!(holds_poison(&format!("{deep}{{\"reason\":\"deleted\",\"s\":\"end_session\"}}")));
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "(end_session|reason|archived|[{}\":,\\\\é ]){0,40}") {
            let _ = holds_poison(&text);
        }
    }
}
