//! The answer of `agents --json`: the agent's list of its own sessions.

use serde_json::{Map, Value};
use std::path::PathBuf;
use svc_domain::identity::Pid;
use svc_shared::Timestamp;

/// Longest text of a field.
const FIELD_CAP: usize = 4096;

/// One session of the agent.
/// Fields whose values a newer CLI may extend are texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CliSession {
    /// Its process. Without one the entry does not prove that the session lives.
    pub pid: Option<Pid>,
    /// Id of a background job: 8 hex digits.
    pub job_id: Option<String>,
    /// Working directory.
    pub cwd: PathBuf,
    /// `interactive`, `background`, …; empty when missing.
    pub kind: String,
    /// When it was started.
    pub started_at: Timestamp,
    /// The agent's own id of the session. A credential: never shown.
    pub session_id: String,
    /// Its title.
    pub name: Option<String>,
    /// `busy`, `shell`, `idle`, `waiting`, ….
    pub status: Option<String>,
    /// State of a background job: `working`, `blocked`, `done`, `failed`, `stopped`, ….
    pub state: Option<String>,
    /// What it waits for.
    pub waiting_for: Option<String>,
}

impl CliSession {
    /// Whether the agent lists it as ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.state.as_deref(), Some("done" | "failed" | "stopped"))
    }
}

/// The content of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listed {
    /// Live sessions, in the order of the answer.
    pub sessions: Vec<CliSession>,
    /// Items without working directory, start or id.
    pub skipped: usize,
    /// The answer was JSON in an unknown format. It counts as empty.
    pub is_odd: bool,
}

/// The answer is no JSON, or was too long. The previous list stays valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the agent CLI answered the session question with something else than JSON")]
pub struct BrokenAnswer;

/// Reads the standard output of `agents --json` (agent 2.1.197).
/// It is an array, or an object with an array under `agents` or `sessions`. No output is an empty
/// list.
///
/// # Errors
/// See [`BrokenAnswer`].
pub fn parse(stdout: &[u8]) -> Result<Listed, BrokenAnswer> {
    if stdout.trim_ascii().is_empty() {
        return Ok(Listed::default());
    }
    let answer: Value = serde_json::from_slice(stdout).map_err(|_| BrokenAnswer)?;
    let items = match &answer {
        Value::Array(items) => Some(items),
        Value::Object(fields) => {
            ["agents", "sessions"].iter().find_map(|key| fields.get(*key).and_then(Value::as_array))
        }
        _ => None,
    };
    let Some(items) = items else {
        return Ok(Listed { is_odd: true, ..Listed::default() });
    };
    let read: Vec<CliSession> = items.iter().filter_map(session).collect();
    Ok(Listed {
        skipped: items.len() - read.len(),
        sessions: read.into_iter().filter(|one| !one.has_ended()).collect(),
        is_odd: false,
    })
}

fn session(item: &Value) -> Option<CliSession> {
    let item = item.as_object()?;
    Some(CliSession {
        pid: item.get("pid").and_then(Value::as_i64).and_then(Pid::new),
        job_id: text(item, "id"),
        cwd: crate::plain_path::plain_directory(&text(item, "cwd")?)?,
        kind: text(item, "kind").unwrap_or_default(),
        started_at: Timestamp::from_millis(item.get("startedAt")?.as_i64()?),
        session_id: text(item, "sessionId")?,
        name: text(item, "name"),
        status: text(item, "status"),
        state: text(item, "state"),
        waiting_for: text(item, "waitingFor"),
    })
}

/// A text field that is neither empty nor too long.
pub(crate) fn text(item: &Map<String, Value>, key: &str) -> Option<String> {
    let text = item.get(key)?.as_str()?;
    (1..=FIELD_CAP).contains(&text.len()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: &str = r#"{"pid":30401,"cwd":"/p","kind":"interactive","startedAt":1764000000000,
        "sessionId":"u-1","name":"n","status":"busy","future":{"x":1}}"#;

    #[test]
    fn arrays_and_wrapped_arrays_are_lists() {
        for answer in [
            format!("[{ONE}]"),
            format!(r#"{{"agents":[{ONE}]}}"#),
            format!(r#"{{"sessions":[{ONE}],"v":2}}"#),
        ] {
            let listed = parse(answer.as_bytes()).unwrap();
            assert_eq!(listed.sessions.len(), 1, "{answer}");
            let one = &listed.sessions[0];
            assert_eq!(one.pid, Pid::new(30401));
            assert_eq!((one.kind.as_str(), one.status.as_deref()), ("interactive", Some("busy")));
        }
    }

    /// F52.
    #[test]
    fn f52_odd_answers_never_become_sessions() {
        assert_eq!(parse(b" \n"), Ok(Listed::default()));
        assert_eq!(parse(b"[]"), Ok(Listed::default()));
        for odd in ["5", "null", "{}", r#"{"agents":5}"#, r#""text""#] {
            let listed = parse(odd.as_bytes()).unwrap();
            assert!(listed.is_odd && listed.sessions.is_empty(), "{odd}");
        }
        let deep = "[".repeat(5000);
        for broken in ["[", "error: no", "[{]", "\u{0}", deep.as_str()] {
            assert_eq!(parse(broken.as_bytes()), Err(BrokenAnswer));
        }
    }

    /// F7, F52.
    #[test]
    fn f7_f52_items_without_their_core_are_skipped_and_bad_pids_are_absent() {
        let without = |key: &str| ONE.replace(&format!("\"{key}\""), "\"other\"");
        let answer = format!(
            "[{},{},{},{},{},{},5,null]",
            without("cwd"),
            ONE.replace("\"/p\"", "\"/p/../etc\""),
            ONE.replace("\"/p\"", "\"p\""),
            ONE.replace("\"/p\"", "\"/p/a/../../etc\""),
            without("startedAt"),
            without("sessionId")
        );
        let listed = parse(answer.as_bytes()).unwrap();
        assert_eq!((listed.sessions.len(), listed.skipped), (0, 8));
        for pid in ["-1", "0", "1", "2147483648", "true", "\"12\"", "1e3", "null"] {
            let answer = format!("[{}]", ONE.replace("30401", pid));
            let listed = parse(answer.as_bytes()).unwrap();
            assert_eq!(listed.sessions[0].pid, None, "{pid}");
        }
    }

    #[test]
    fn ended_jobs_are_left_out_and_unknown_states_are_not() {
        let with =
            |state: &str| ONE.replacen("\"pid\":30401", &format!("\"state\":\"{state}\""), 1);
        let states = ["working", "done", "failed", "stopped", "blocked", "paused"];
        let answer = format!("[{}]", states.map(with).join(","));
        let listed = parse(answer.as_bytes()).unwrap();
        let left: Vec<&str> =
            listed.sessions.iter().filter_map(|one| one.state.as_deref()).collect();
        assert_eq!(left, ["working", "blocked", "paused"]);
        assert_eq!(listed.skipped, 0);
    }

    proptest! {
        #[test]
        fn f52_an_answer_with_broken_bytes_is_broken_or_a_list_of_believable_sessions(
            at in any::<prop::sample::Index>(),
            cut in 0_usize..6,
            put in prop::collection::vec(any::<u8>(), 0..6),
        ) {
            let mut bytes = format!("[{ONE},{ONE}]").into_bytes();
            let from = at.index(bytes.len());
            let to = (from + cut).min(bytes.len());
            bytes.splice(from..to, put);
            if let Ok(listed) = parse(&bytes) {
                prop_assert!(listed.sessions.len() + listed.skipped <= 2);
                for one in &listed.sessions {
                    prop_assert!(one.pid.is_none_or(|pid| pid.get() > 1));
                    prop_assert!(!one.session_id.is_empty() && !one.has_ended());
                }
            }
        }
    }
}
