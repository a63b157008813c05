//! Transcripts of the agent: where they are, and how they begin (`agent-cli` §6.7).
//!
//! Only the begin of a file is read, whatever its size.

use crate::home::AgentHome;
use crate::plain_path::plain_directory;
use crate::regular_file::open_regular;
use crate::transcript_dirs::{MOST, directories};
use serde_json::Value;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use svc_domain::agent_log::RemoteId;
use svc_domain::jobs::is_session_id;
use svc_domain::log_escape::strip_controls;
use svc_domain::redact::{redact_text, strip_ansi};
use svc_shared::Timestamp;

/// Bytes read of a transcript. The first turns are there.
const HEAD: u64 = 64 * 1024;

/// Longest title, in characters.
const TITLE: usize = 80;

/// How a transcript begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The conversation.
    pub conversation: RemoteId,
    /// The directory that the conversation works in.
    pub cwd: Option<PathBuf>,
    /// Time of its first record.
    pub begun_at: Option<Timestamp>,
    /// It was written by a session that a program drives.
    pub is_driven: bool,
    /// Its first prompt, redacted and clipped; `None` without one.
    pub title: Option<String>,
}

/// The begin of the transcript of a conversation of this project. Blocks.
#[must_use]
pub fn of(home: &AgentHome, project: &Path, conversation: &RemoteId) -> Option<Head> {
    if !is_session_id(conversation.expose()) {
        return None;
    }
    let name = format!("{}.jsonl", conversation.expose());
    let heads =
        directories(home, project, MOST).into_iter().filter_map(|dir| head(&dir.join(&name)));
    heads.into_iter().find(|head| is_of(head, project))
}

/// The begins of the project's transcripts that were written since `since`. Blocks.
#[must_use]
pub fn since(home: &AgentHome, project: &Path, since: Timestamp) -> Vec<Head> {
    let files =
        directories(home, project, MOST).into_iter().filter_map(|dir| fs::read_dir(dir).ok());
    let entries = files.flatten().filter_map(Result::ok).take(MOST);
    let recent = entries.filter(|entry| {
        let modified = entry.metadata().and_then(|facts| facts.modified()).ok();
        let millis = modified.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        millis.is_some_and(|at| i128::from(since.as_millis()) <= at.as_millis().cast_signed())
    });
    recent.filter_map(|entry| head(&entry.path())).filter(|head| is_of(head, project)).collect()
}

fn is_of(head: &Head, project: &Path) -> bool {
    head.cwd.as_deref().is_some_and(|cwd| cwd.starts_with(project))
}

/// The begin of one transcript; `None` for any other file.
fn head(path: &Path) -> Option<Head> {
    let id = path.file_name()?.to_str()?.strip_suffix(".jsonl")?;
    if !is_session_id(id) {
        return None;
    }
    let mut bytes = Vec::new();
    open_regular(path).ok()?.take(HEAD).read_to_end(&mut bytes).ok()?;
    let mut head = Head {
        conversation: RemoteId::new(id),
        cwd: None,
        begun_at: None,
        is_driven: false,
        title: None,
    };
    for line in bytes.split(|byte| *byte == b'\n') {
        let Ok(record) = serde_json::from_slice::<Value>(line) else { continue };
        let text = |name: &str| record.get(name).and_then(Value::as_str);
        if head.cwd.is_none() {
            head.cwd = text("cwd").and_then(plain_directory);
        }
        if head.begun_at.is_none() {
            head.begun_at = text("timestamp").and_then(|raw| raw.parse().ok());
            head.is_driven = text("entrypoint").is_some_and(|word| word.starts_with("sdk-"));
        }
        if text("type") == Some("user") {
            head.title = record
                .pointer("/message/content")
                .and_then(prompt)
                .and_then(|text| title(text, TITLE));
        }
        if head.title.is_some() && head.cwd.is_some() && head.begun_at.is_some() {
            break;
        }
    }
    Some(head)
}

/// The text of a message: itself, or its first block of text.
pub(crate) fn prompt(content: &Value) -> Option<&str> {
    if let Some(text) = content.as_str() {
        return Some(text);
    }
    content.as_array()?.iter().find_map(|block| block.get("text")?.as_str())
}

/// The first words of a prompt: one line, redacted, at most so many characters.
pub(crate) fn title(prompt: &str, most: usize) -> Option<String> {
    let prompt: String = prompt.chars().take(20 * most).collect();
    let text = strip_ansi(&prompt);
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = redact_text(&strip_controls(&words.join(" ")));
    if text.is_empty() {
        return None;
    }
    let clipped: String = text.chars().take(most).collect();
    Some(if clipped.len() < text.len() { format!("{clipped}…") } else { clipped })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";

    fn home(dir: &Path) -> AgentHome {
        let env = [("HOME".into(), dir.into())].into_iter().collect();
        AgentHome::of_child(&env).unwrap()
    }

    fn put(home: &AgentHome, at: &str, id: &str, cwd: &str, prompt: &str) {
        let dir = home.project_dir(at);
        fs::create_dir_all(&dir).unwrap();
        let record = serde_json::json!({
            "type": "user", "cwd": cwd, "timestamp": "2026-03-01T10:20:30.123Z",
            "entrypoint": "sdk-cli", "message": { "role": "user", "content": prompt },
        });
        fs::write(dir.join(format!("{id}.jsonl")), format!("{{torn\n{record}\n")).unwrap();
    }

    #[test]
    fn a_conversation_is_found_in_the_project_and_its_worktrees() {
        let dir = tempfile::tempdir().unwrap();
        let home = home(dir.path());
        let conversation = RemoteId::new(ID);
        put(&home, "/p/app", ID, "/p/app", "hello  there\nsecond session_01ABCDEFGHIJ");
        let found = of(&home, Path::new("/p/app"), &conversation).unwrap();
        assert_eq!(found.title.as_deref(), Some("hello there second session_<redacted>"));
        assert!(found.is_driven && found.begun_at.is_some());
        assert_eq!(of(&home, Path::new("/p/other"), &conversation), None);
        // Another project with the same name of its directory.
        assert_eq!(of(&home, Path::new("/p-app"), &conversation), None);
        let dir = tempfile::tempdir().unwrap();
        let home = self::home(dir.path());
        let tree = "/p/app/.claude/worktrees/bridge-x";
        put(&home, tree, ID, tree, "in a tree");
        let found = of(&home, Path::new("/p/app"), &conversation).unwrap();
        assert_eq!(found.cwd.as_deref(), Some(Path::new(tree)));
        let listed = since(&home, Path::new("/p/app"), Timestamp::from_millis(0));
        assert_eq!(listed, [found]);
    }

    #[test]
    fn a_title_is_one_line_and_short() {
        assert_eq!(title(" \n\t ", TITLE), None);
        let long = title(&"word ".repeat(100), TITLE).unwrap();
        assert!(long.ends_with('…') && long.chars().count() == TITLE + 1);
        assert_eq!(title("a\u{1b}[31mb\nc", TITLE).unwrap(), "ab c");
    }
}
