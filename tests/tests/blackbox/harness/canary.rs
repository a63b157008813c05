//! H65: compares all output of the program with what must never leave it.
//!
//! Secrets are planted in the environment of every world. Identifiers come from the files of the
//! agent. Of the paths of a world only its projects may be named.

use super::World;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Secrets in the environment of every process: one of the service, one of nobody.
pub const PLANTED: [(&str, &str); 2] = [
    ("SVC_SESSION_SECRET", "c4n4ry-of-the-service-7f3a9b1c5d2e8f60"),
    ("DEPLOY_TOKEN", "c4n4ry-of-the-operator-91d0c7e2b4a6f835"),
];

/// Beginnings of the server's identifiers, long enough (agent 2.1.197).
const RAW: [&str; 3] = ["env_01", "session_01", "cse_01"];
const RAW_TAIL: usize = 10;

/// Private directories of a world. In `tmp` the demo has its projects.
const PRIVATE: [&str; 3] = ["state", "agent", "home"];

/// Every world of this run: its root, and the identifiers its agents had so far.
static WORLDS: Mutex<Vec<Known>> = Mutex::new(Vec::new());

struct Known {
    root: PathBuf,
    sessions: BTreeSet<String>,
}

/// What may stand in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// An answer or a frame: no identifier, no private path in the service's words.
    Reader,
    /// Words of the agent, or output on this machine: both may name paths.
    Operator,
    /// Who asked for the link of a bridge: it is the identifier.
    Linked,
}

/// From now on nothing of this world may leave.
pub fn guard(root: &Path) {
    let known = Known { root: root.to_owned(), sessions: BTreeSet::new() };
    WORLDS.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(known);
}

/// Panics when `text` tells what must not leave.
#[track_caller]
pub fn check(what: &str, audience: Audience, text: &str) {
    let found = leak(audience, text);
    assert!(found.is_none(), "{what} tells {}:\n{text}", found.unwrap_or_default());
}

/// The same for a document of the service. In `error_detail` it quotes the agent.
#[track_caller]
pub fn check_document(what: &str, text: &str) {
    check(what, Audience::Operator, text);
    match serde_json::from_str::<Value>(text) {
        Ok(mut document) => {
            without_quotes(&mut document);
            check(what, Audience::Reader, &document.to_string());
        }
        Err(_) => check(what, Audience::Reader, text),
    }
}

fn without_quotes(document: &mut Value) {
    match document {
        Value::Array(items) => items.iter_mut().for_each(without_quotes),
        Value::Object(members) => {
            members.remove("error_detail");
            members.values_mut().for_each(without_quotes);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn leak(audience: Audience, text: &str) -> Option<String> {
    if let Some((name, _)) = PLANTED.iter().find(|(_, secret)| text.contains(secret)) {
        return Some(format!("the secret {name}"));
    }
    let mut worlds = WORLDS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for world in worlds.iter_mut() {
        world.learn();
    }
    if audience != Audience::Linked {
        if let Some(prefix) = RAW.iter().find(|prefix| has_raw(text, prefix)) {
            return Some(format!("an identifier {prefix}…"));
        }
        let mut sessions = worlds.iter().flat_map(|world| &world.sessions);
        if let Some(session) = sessions.find(|session| text.contains(session.as_str())) {
            return Some(format!("the session {session}"));
        }
    }
    if audience != Audience::Operator {
        for world in worlds.iter() {
            let private = PRIVATE.map(|name| world.root.join(name));
            let named = |path: &&PathBuf| path.to_str().is_some_and(|path| text.contains(path));
            if let Some(path) = private.iter().find(named) {
                return Some(format!("the path {}", path.display()));
            }
        }
    }
    None
}

fn has_raw(text: &str, prefix: &str) -> bool {
    text.match_indices(prefix).any(|(at, _)| {
        // The cookie of an instance is named `svc_session_` and some digits of a hash.
        let is_cookie = text[..at].ends_with("svc_");
        let tail = text[at + prefix.len()..].bytes();
        !is_cookie && tail.take_while(u8::is_ascii_alphanumeric).count() >= RAW_TAIL
    })
}

impl Known {
    /// Reads the identifiers that the agent's registry shows at this moment.
    fn learn(&mut self) {
        let Ok(files) = fs::read_dir(self.root.join("agent/sessions")) else { return };
        for file in files.filter_map(Result::ok).take(200) {
            let text = fs::read_to_string(file.path()).unwrap_or_default();
            let entry: Value = serde_json::from_str(&text).unwrap_or_default();
            let session = entry["sessionId"].as_str().filter(|id| id.len() == 36);
            self.sessions.extend(session.map(str::to_owned));
        }
    }
}

impl World {
    /// Nothing of this world is looked for any more.
    pub(super) fn unguard(&self) {
        let mut worlds = WORLDS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        worlds.retain(|world| world.root != self.root);
    }
}

#[test]
fn h65_the_scan_itself_finds_what_is_planted() {
    let world = World::new();
    let reader = |text: &str| leak(Audience::Reader, text);
    assert_eq!(reader("env_01 and session_01SIM are words"), None);
    assert!(reader("at env_01SIMabcdefghijk").is_some());
    assert_eq!(reader("svc_session_01a2b3c4d5e6=…"), None);
    assert!(leak(Audience::Linked, "session_01SIMabcdefghijk").is_none());
    assert!(leak(Audience::Linked, PLANTED[0].1).is_some());
    let own = world.state.join("svc.db").display().to_string();
    assert!(reader(&own).is_some() && leak(Audience::Operator, &own).is_none());
    let project = world.projects.join("app").display().to_string();
    assert_eq!(reader(&project), None);
}
