//! What exactly an agent asks for, as a person reads it before deciding.
//!
//! The members are those of the agent's own tools (agent 2.1.197).

use crate::redact::redact_text;
use serde_json::Value;
use svc_shared::api::approvals::{ApprovalRequest, RequestKind, RequestedEdit};
use url::Url;

/// Most bytes of one text that are shown.
pub const MOST: usize = 64 * 1024;
/// Most edits of one request that are shown.
const MOST_EDITS: usize = 100;
/// So many bytes more are read, so that no secret is halved by the cut.
const MARGIN: usize = 4 * 1024;

/// Texts on their way to a person.
#[derive(Default)]
struct Shown {
    is_masked: bool,
    left_out: usize,
}

impl Shown {
    /// The text without secrets, cut where it is too long.
    fn text(&mut self, raw: &str) -> String {
        let redacted = redact_text(until(raw, MOST + MARGIN));
        self.is_masked |= redacted != until(raw, MOST + MARGIN);
        if raw.len() <= MOST {
            return redacted;
        }
        self.left_out += raw.len() - MOST;
        until(&redacted, MOST).to_owned()
    }
}

/// The beginning of a text, of at most so many bytes.
fn until(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.get(..end.unwrap_or_default()).unwrap_or_default()
}

/// What an agent wants to do with a tool.
///
/// `line` finds the line of a file at which a text begins.
#[must_use]
pub fn requested(
    tool: Option<&str>,
    input: &Value,
    line: impl Fn(&str, &str) -> Option<u64>,
) -> ApprovalRequest {
    let member = |name: &str| input.get(name).and_then(Value::as_str);
    let mut shown = Shown::default();
    let path = member("file_path").or_else(|| member("notebook_path"));
    let found = |old: &str| path.and_then(|path| line(path, old));
    let edits = match tool {
        Some("Edit") => edit(input, &mut shown, found).into_iter().collect(),
        Some("MultiEdit") => several(input, &mut shown, found),
        _ => Vec::new(),
    };
    let (kind, text) = match (tool, path) {
        (Some("Edit" | "MultiEdit"), Some(_)) if !edits.is_empty() => (RequestKind::Edit, None),
        (Some("Write"), Some(_)) => (RequestKind::Write, member("content")),
        (Some("NotebookEdit"), Some(_)) => (RequestKind::Write, member("new_source")),
        _ if member("command").is_some() => (RequestKind::Command, member("command")),
        _ if member("url").is_some() => (RequestKind::Url, member("url")),
        _ => (RequestKind::Other, None),
    };
    let whole = serde_json::to_string_pretty(input).unwrap_or_default();
    let raw = Shown::default().text(&whole);
    let is_masked = raw != until(&whole, MOST);
    let text = match (kind, text) {
        (RequestKind::Edit, _) => String::new(),
        (_, Some(text)) => shown.text(text),
        // Nothing that is asked for may be hidden.
        (_, None) => shown.text(&whole),
    };
    let host = (kind == RequestKind::Url).then(|| host(&text)).flatten();
    let note = member("description").or_else(|| member("prompt"));
    ApprovalRequest {
        kind: kind.into(),
        host,
        path: path.map(|path| shown.text(path)),
        note: note.map(|note| shown.text(note)),
        directory: None,
        edits,
        raw,
        masked: shown.is_masked || is_masked,
        left_out: u64::try_from(shown.left_out).unwrap_or(u64::MAX),
        text,
    }
}

/// What one edit replaces; `None` where it is not one.
fn edit(
    input: &Value,
    shown: &mut Shown,
    line: impl Fn(&str) -> Option<u64>,
) -> Option<RequestedEdit> {
    let (old, new) = (input.get("old_string")?.as_str()?, input.get("new_string")?.as_str()?);
    let everywhere = input.get("replace_all").and_then(Value::as_bool).unwrap_or(false);
    let line = (!everywhere && old.len() <= MOST).then(|| line(old)).flatten();
    Some(RequestedEdit { old: shown.text(old), new: shown.text(new), line, everywhere })
}

/// What several edits replace; nothing where one of them is none.
fn several(
    input: &Value,
    shown: &mut Shown,
    line: impl Fn(&str) -> Option<u64>,
) -> Vec<RequestedEdit> {
    let all = input.get("edits").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if all.len() > MOST_EDITS {
        return Vec::new();
    }
    let edits = all.iter().map(|one| edit(one, shown, &line)).collect::<Option<_>>();
    edits.unwrap_or_default()
}

/// The host of an address, in the form that is really asked.
fn host(address: &str) -> Option<String> {
    Url::parse(address).ok()?.host_str().map(str::to_owned)
}

/// The line at which a text begins in a file, if it is there just once.
#[must_use]
pub fn line_of(file: &str, text: &str) -> Option<u64> {
    let mut found = file.match_indices(text).map(|(at, _)| at);
    let (at, None) = (found.next().filter(|_| !text.is_empty())?, found.next()) else {
        return None;
    };
    let before = file.get(..at)?.bytes().filter(|byte| *byte == b'\n').count();
    u64::try_from(before).ok().map(|before| before + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(tool: &str, input: &Value) -> ApprovalRequest {
        requested(Some(tool), input, |_, _| None)
    }

    #[test]
    fn a_command_is_shown_whole_with_its_purpose() {
        let command = "x".repeat(2_000);
        let asked = of("Bash", &json!({ "command": command, "description": "Build it" }));
        assert!(asked.kind.is(&RequestKind::Command));
        assert_eq!((asked.text.as_str(), asked.note.as_deref()), (&*command, Some("Build it")));
        assert!(!asked.masked && asked.left_out == 0 && asked.raw.contains("description"));
    }

    #[test]
    fn an_edit_says_what_it_replaces_and_where() {
        let input = json!({ "file_path": "/p/a.rs", "old_string": "b\n", "new_string": "c\n" });
        let file = "a\nb\nd\n";
        let asked = requested(Some("Edit"), &input, |path, old| {
            assert_eq!(path, "/p/a.rs");
            line_of(file, old)
        });
        assert!(asked.kind.is(&RequestKind::Edit));
        assert_eq!((asked.edits[0].line, asked.edits[0].new.as_str()), (Some(2), "c\n"));
        let all = json!({ "file_path": "/p/a.rs", "edits": [
            { "old_string": "a", "new_string": "b", "replace_all": true },
            { "old_string": "d", "new_string": "e" },
        ] });
        let asked = requested(Some("MultiEdit"), &all, |_, old| line_of(file, old));
        let lines: Vec<_> = asked.edits.iter().map(|one| (one.line, one.everywhere)).collect();
        assert_eq!(lines, [(None, true), (Some(3), false)]);
    }

    #[test]
    fn a_text_that_occurs_twice_or_never_has_no_line() {
        assert_eq!(line_of("a\nb\na\n", "a"), None);
        assert_eq!((line_of("a\n", "z"), line_of("a\n", "")), (None, None));
    }

    #[test]
    fn odd_edits_are_shown_as_what_they_are() {
        for input in [
            json!({ "file_path": "/a", "old_string": 5, "new_string": "x" }),
            json!({ "file_path": "/a", "edits": [{ "old_string": "x", "new_string": "y" }, 5] }),
            json!({ "old_string": "x", "new_string": "y" }),
            json!([1, 2]),
            Value::Null,
        ] {
            for tool in ["Edit", "MultiEdit"] {
                let asked = of(tool, &input);
                assert!(asked.kind.is(&RequestKind::Other), "{input}");
                assert_eq!(asked.text, serde_json::to_string_pretty(&input).unwrap());
            }
        }
    }

    #[test]
    fn an_address_tells_its_host_and_not_what_looks_like_one() {
        let asked = of("WebFetch", &json!({ "url": "https://good.example@evil.example/x" }));
        assert!(asked.kind.is(&RequestKind::Url));
        assert_eq!(asked.host.as_deref(), Some("evil.example"));
        assert_eq!(of("WebFetch", &json!({ "url": "no address" })).host, None);
    }

    #[test]
    fn secrets_are_masked_also_where_the_text_is_cut() {
        let secret = format!("sk-ant-api03-{}", "Ab1_".repeat(24));
        let filler = "x\n".repeat((MOST - 20) / 2);
        let text = format!("{filler}{secret}\nmore");
        let input = json!({ "file_path": "/a", "content": text });
        let asked = of("Write", &input);
        assert!(asked.masked && asked.kind.is(&RequestKind::Write));
        let whole = serde_json::to_string(&asked).unwrap();
        assert!(!whole.contains("Ab1_Ab1_"), "{}", &asked.text[asked.text.len() - 60..]);
        assert_eq!(asked.left_out, (text.len() - MOST) as u64);
    }
}
