//! Whether the agent CLI is logged in, and until when.

use crate::home::AgentHome;
use serde_json::Value;
use std::io;
use std::path::Path;
use svc_shared::Timestamp;

/// Credentials are a few KiB.
const CREDENTIALS_CAP: u64 = 1024 * 1024;

/// The answer of `auth status --json`, or that there is none.
///
/// The account's name, mail address and organisation are never read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// Not known yet. A start is allowed.
    Unasked,
    /// The CLI answered.
    Answered {
        /// Whether it is logged in, with any method.
        logged_in: bool,
        /// The CLI's word for the method: `claude.ai`, `api_key`, `none`, ….
        method: String,
        /// When the login ends. Only a login made with the CLI has an end.
        expires_at: Option<Timestamp>,
    },
    /// No usable answer.
    Failed {
        /// What happened, as a sentence.
        reason: String,
    },
}

impl Login {
    /// Whether a start can succeed, as far as is known.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        match self {
            Self::Unasked => true,
            Self::Answered { logged_in, .. } => *logged_in,
            Self::Failed { .. } => false,
        }
    }

    /// The login method, once known.
    #[must_use]
    pub fn method(&self) -> Option<&str> {
        match self {
            Self::Answered { method, .. } => Some(method),
            Self::Unasked | Self::Failed { .. } => None,
        }
    }

    /// When the login ends, if that is known.
    #[must_use]
    pub fn expires_at(&self) -> Option<Timestamp> {
        match self {
            Self::Answered { expires_at, .. } => *expires_at,
            Self::Unasked | Self::Failed { .. } => None,
        }
    }

    /// Whether the login is of the kind that Remote Control needs.
    /// Agent 2.1.197 needs a claude.ai subscription; with an API key a bridge start fails.
    #[must_use]
    pub fn is_subscription(&self) -> bool {
        self.is_ok() && self.method().is_some_and(is_subscription)
    }
}

fn is_subscription(method: &str) -> bool {
    matches!(method, "claude.ai" | "claudeai" | "oauth")
}

/// Reads the standard output of `auth status --json`.
/// Agent 2.1.197 prints JSON with exit code 0 when logged in and 1 when logged out, so the code
/// adds nothing.
#[must_use]
pub fn parse(stdout: &[u8]) -> Login {
    let failed = |reason: &str| Login::Failed { reason: reason.to_owned() };
    let Ok(answer) = serde_json::from_slice::<Value>(stdout) else {
        return failed("the agent CLI answered the login question with something else than JSON");
    };
    let Some(logged_in) = answer.get("loggedIn").and_then(Value::as_bool) else {
        return failed("the agent CLI's answer to the login question has no `loggedIn`");
    };
    let method = answer.get("authMethod").and_then(Value::as_str);
    // Only a word, not any text: other fields of the answer contain personal data.
    let is_word = |word: &&str| {
        (1..=40).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_graphic() && b != b'@')
    };
    let fallback = if logged_in { "unknown" } else { "none" };
    Login::Answered {
        logged_in,
        method: method.filter(is_word).unwrap_or(fallback).to_owned(),
        expires_at: None,
    }
}

/// Adds the end of the login from the credentials file, if the method has one.
#[must_use]
pub fn with_expiry(login: Login, home: &AgentHome) -> Login {
    match login {
        Login::Answered { logged_in, method, expires_at: _ } if is_subscription(&method) => {
            Login::Answered {
                logged_in,
                expires_at: expires_at(&home.credentials_file()).unwrap_or(None),
                method,
            }
        }
        other => other,
    }
}

/// `claudeAiOauth.expiresAt` (ms since the epoch) and nothing else of that file.
fn expires_at(file: &Path) -> io::Result<Option<Timestamp>> {
    let bytes = svc_process::files::read_plain(file, CREDENTIALS_CAP)?;
    let credentials: Value = serde_json::from_slice(&bytes)?;
    let millis = credentials.pointer("/claudeAiOauth/expiresAt").and_then(Value::as_i64);
    Ok(millis.filter(|at| *at > 0).map(Timestamp::from_millis))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// F38.
    #[test]
    fn f38_the_answer_counts_and_not_the_exit_code() {
        let out = br#"{"loggedIn":false,"authMethod":"none","apiProvider":"firstParty"}"#;
        let login = parse(out);
        assert_eq!((login.is_ok(), login.method()), (false, Some("none")));
        let login = parse(br#"{"loggedIn":true,"authMethod":"claude.ai","email":"a@b.c"}"#);
        assert!(login.is_ok() && login.is_subscription());
        assert!(!format!("{login:?}").contains("a@b.c"));
    }

    #[test]
    fn an_api_key_is_a_login_that_cannot_serve_a_bridge() {
        let login = parse(br#"{"loggedIn":true,"authMethod":"api_key"}"#);
        assert!(login.is_ok() && !login.is_subscription());
    }

    #[test]
    fn odd_answers_are_not_ok_and_say_why() {
        for out in ["", "null", "Not logged in", "[]", "{}", r#"{"loggedIn":"yes"}"#, "{"] {
            let login = parse(out.as_bytes());
            assert!(matches!(&login, Login::Failed { reason } if !reason.is_empty()), "{out}");
            assert!(!login.is_ok());
        }
        assert!(Login::Unasked.is_ok() && Login::Unasked.method().is_none());
        let odd = parse(br#"{"loggedIn":true,"authMethod":"ada@example.org"}"#);
        assert_eq!(odd.method(), Some("unknown"));
    }

    #[test]
    fn only_the_end_of_a_subscription_login_is_read_from_the_credentials() {
        let root = tempfile::tempdir().unwrap();
        let env = [("HOME".into(), root.path().into())].into();
        let home = AgentHome::of_child(&env).unwrap();
        let answer = |method: &str| {
            let out = format!(r#"{{"loggedIn":true,"authMethod":"{method}"}}"#);
            with_expiry(parse(out.as_bytes()), &home).expires_at()
        };
        assert_eq!(answer("claude.ai"), None);
        std::fs::create_dir(home.dir()).unwrap();
        let file = r#"{"claudeAiOauth":{"accessToken":"t","expiresAt":1764000000123}}"#;
        std::fs::write(home.credentials_file(), file).unwrap();
        let expected = Some(Timestamp::from_millis(1_764_000_000_123));
        assert_eq!(answer("claude.ai"), expected);
        assert_eq!(answer("oauth"), expected);
        assert_eq!(answer("api_key"), None);
        for odd in ["{", r#"{"claudeAiOauth":{"expiresAt":"soon"}}"#, r#"{"claudeAiOauth":5}"#] {
            std::fs::write(home.credentials_file(), odd).unwrap();
            assert_eq!(answer("oauth"), None, "{odd}");
        }
    }

    proptest! {
        #[test]
        fn f38_the_method_is_a_plain_word_whatever_the_answer_says(
            logged_in: bool, method in "\\PC{0,50}|[\u{0}-\u{ff}]{0,10}|[a-z._]{1,20}",
        ) {
            let answer = serde_json::json!({"loggedIn": logged_in, "authMethod": method});
            let login = parse(answer.to_string().as_bytes());
            prop_assert_eq!(login.is_ok(), logged_in);
            let shown = login.method().unwrap();
            prop_assert!(shown.len() <= 40 && shown.bytes().all(|b| b.is_ascii_graphic()), "{}", shown);
            let is_word = !method.is_empty() && method.len() <= 40
                && method.bytes().all(|b| b.is_ascii_graphic() && b != b'@');
            prop_assert_eq!(shown == method, is_word || ["unknown", "none"].contains(&&*method));
        }

        #[test]
        fn no_answer_makes_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = parse(&bytes);
        }
    }
}
