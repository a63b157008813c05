//! Background jobs of the agent: the meaning of their states, and what they allow.

use crate::argv::reads_as_option;
use std::time::Duration;
use svc_shared::api::jobs::{MODEL_CHARS, PROMPT_BYTES};
use svc_shared::status::PermissionMode;
use svc_shared::text::is_hidden;

/// How long a job may be without a worker before it counts as lost.
/// The agent's background service replaces workers that ended.
pub const LOST_AFTER: Duration = Duration::from_secs(10);

/// After the first interrupt, the second: a session at work asks for confirmation.
pub const INTERRUPT_AGAIN: Duration = Duration::from_millis(1500);

/// How long a worker may take to end after the first interrupt.
/// It is never killed, because that would leave its remote session behind.
pub const SETTLE: Duration = Duration::from_secs(20);

/// What is known about the process of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worker {
    /// It lives.
    Alive,
    /// There is none, for this long.
    Missing(Duration),
    /// The process table does not say.
    Unclear,
}

/// Whether the agent calls this state an end (agent 2.1.197).
/// An unknown word of a newer agent is no end.
#[must_use]
pub fn has_ended(state: &str) -> bool {
    matches!(state, "done" | "failed" | "stopped")
}

/// The state that readers see, from the words on disk and the process.
///
/// The agent shows a job that waits for a prompt as `blocked` although its file says `working`
/// with the tempo `blocked` (agent 2.1.197, `agents --json`).
#[must_use]
pub fn shown_state<'a>(state: &'a str, tempo: &str, worker: Worker) -> &'a str {
    match (state, worker) {
        ("working" | "blocked", Worker::Missing(since)) if since >= LOST_AFTER => "lost",
        ("working", _) if tempo == "blocked" => "blocked",
        _ => state,
    }
}

/// Options of a job that are passed to the agent as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dispatch<'a> {
    /// Session whose transcript the job inherits.
    pub resume: Option<&'a str>,
    /// Name under which it is registered with the remote service.
    pub rc_name: Option<&'a str>,
    /// Model.
    pub model: Option<&'a str>,
    /// Permission mode; `inherit` passes no flag.
    pub permission_mode: PermissionMode,
    /// What it shall do.
    pub prompt: Option<&'a str>,
}

/// A value that does not fit: the field, and a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unfit(String);

fn unfit<T>(sentence: impl Into<String>) -> Result<T, Unfit> {
    Err(Unfit(sentence.into()))
}

/// Whether a prompt says nothing. A byte order mark is no text.
#[must_use]
pub fn is_blank(prompt: &str) -> bool {
    prompt.chars().all(|c| c.is_whitespace() || c == '\u{feff}')
}

/// The rule for model names.
///
/// # Errors
/// A sentence naming the field.
pub fn check_model(model: &str) -> Result<(), Unfit> {
    let is_usable = !reads_as_option(model)
        && model.chars().count() <= MODEL_CHARS
        && !model.chars().any(is_hidden);
    if is_usable {
        return Ok(());
    }
    unfit(
        "`model` must have 1 to 128 characters, no control or invisible characters, and not begin with `-`; \
         give the name of a model or leave it out",
    )
}

/// Checks a first prompt.
/// A job needs one unless it is registered, because then the remote side can send it.
///
/// # Errors
/// A sentence naming the field.
pub fn check_prompt(prompt: Option<&str>, is_registered: bool) -> Result<(), Unfit> {
    let prompt = prompt.unwrap_or_default();
    if prompt.len() > PROMPT_BYTES {
        return unfit("`prompt` has more than 100,000 bytes; shorten it");
    }
    if prompt.contains('\0') {
        return unfit("`prompt` holds a NUL character; remove it");
    }
    if is_blank(prompt) && !is_registered {
        return unfit("`prompt` is missing; give one, or an `rc_name`");
    }
    Ok(())
}

impl Dispatch<'_> {
    /// The arguments after the program (agent 2.1.197, `--bg`).
    /// The prompt is last, after `--`, so that it is never read as an option.
    ///
    /// # Errors
    /// A value would be read as an option.
    pub fn args(&self) -> Result<Vec<String>, Unfit> {
        let mut args = vec!["--bg".to_owned()];
        let mode = match self.permission_mode {
            PermissionMode::Inherit => None,
            mode => Some(mode.as_str()),
        };
        let options = [
            ("--resume", "session", self.resume),
            ("--rc", "rc_name", self.rc_name),
            ("--model", "model", self.model),
            ("--permission-mode", "permission_mode", mode),
        ];
        for (flag, field, value) in options {
            let Some(value) = value else { continue };
            if reads_as_option(value) {
                return unfit(format!(
                    "`{field}` must not be empty or begin with `-`, or the agent reads it as an \
                     option; choose another value"
                ));
            }
            args.extend([flag.to_owned(), value.to_owned()]);
        }
        if let Some(prompt) = self.prompt.filter(|prompt| !is_blank(prompt)) {
            args.extend(["--".to_owned(), prompt.to_owned()]);
        }
        Ok(args)
    }
}

/// What a job was started with, as far as a resumption repeats it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartedWith {
    /// Model.
    pub model: Option<String>,
    /// Permission mode as written; `None` when no flag was passed.
    pub permission_mode: Option<String>,
}

impl StartedWith {
    /// Reads the agent's `respawnFlags`, kept for a restart (agent 2.1.197).
    #[must_use]
    pub fn of_flags(flags: &[String]) -> Self {
        let mut found = Self::default();
        let mut rest = flags.iter();
        while let Some(flag) = rest.next() {
            let (name, glued) = match flag.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (flag.as_str(), None),
            };
            match name {
                "--model" => found.model = glued.or_else(|| rest.next().cloned()),
                "--permission-mode" => {
                    found.permission_mode = glued.or_else(|| rest.next().cloned());
                }
                "--dangerously-skip-permissions" => {
                    found.permission_mode =
                        Some(PermissionMode::BypassPermissions.as_str().to_owned());
                }
                _ => {}
            }
        }
        found
    }

    /// The permission mode of the resumed job. An unknown word is an error.
    ///
    /// # Errors
    /// The stored word.
    pub fn mode(&self) -> Result<PermissionMode, Unfit> {
        match self.permission_mode.as_deref() {
            None => Ok(PermissionMode::Inherit),
            Some(word) => match word.parse() {
                Ok(mode) => Ok(mode),
                Err(_) => unfit(
                    "the job was started with a permission mode that is unknown here; start a new \
                     job instead",
                ),
            },
        }
    }
}

/// Why an ended job cannot be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotResumable {
    /// It works, waits, or its process still holds the session.
    #[error("it is still live; stop it, or wait until it has ended")]
    Live,
    /// The agent wrote no session id, or a malformed one.
    #[error("the agent recorded no session for it; start a new job instead")]
    NoSession,
}

/// What a resumption of a job needs to know of it.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// State that readers see.
    pub state: &'a str,
    /// Its process.
    pub worker: Worker,
    /// The agent's own id of its session.
    pub session_id: Option<&'a str>,
}

/// The session that the resumed job continues.
/// A job never runs twice at once: its session must have no process, even if the agent calls the
/// job done.
///
/// # Errors
/// See [`NotResumable`].
pub fn resumable<'a>(candidate: Candidate<'a>) -> Result<&'a str, NotResumable> {
    let is_live = match candidate.worker {
        Worker::Alive | Worker::Unclear => true,
        Worker::Missing(_) => !(has_ended(candidate.state) || candidate.state == "lost"),
    };
    if is_live {
        return Err(NotResumable::Live);
    }
    candidate.session_id.filter(|id| is_session_id(id)).ok_or(NotResumable::NoSession)
}

/// Whether a text is a session id of the agent: a UUID.
#[must_use]
pub fn is_session_id(raw: &str) -> bool {
    raw.len() == 36
        && raw.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// What was seen of the end of a worker that was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settling<'a> {
    /// The state on disk afterwards.
    pub state: &'a str,
    /// The end as the agent's background service logged it: `done`, `killed`, ….
    pub logged: Option<&'a str>,
}

impl Settling<'_> {
    /// Whether the session deregistered, by the background service or else by the file.
    /// The file of a job that was waiting stays as it was (agent 2.1.197).
    #[must_use]
    pub fn is_confirmed(self) -> bool {
        match self.logged {
            Some(word) => word == "done",
            None => self.state == "done",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GONE: Worker = Worker::Missing(Duration::from_secs(10));
    const JUST_GONE: Worker = Worker::Missing(Duration::from_secs(9));
    const SESSION: &str = "450f4654-059b-4282-b68e-91a110e7f06b";

    #[test]
    fn f74_a_job_without_worker_is_lost_after_ten_seconds_and_an_ended_one_never() {
        for state in ["working", "blocked"] {
            assert_eq!(shown_state(state, "active", GONE), "lost");
            assert_eq!(shown_state(state, "active", JUST_GONE), state);
            assert_eq!(shown_state(state, "active", Worker::Alive), state);
            assert_eq!(shown_state(state, "active", Worker::Unclear), state);
        }
        for state in ["done", "failed", "stopped", "paused", ""] {
            assert_eq!(shown_state(state, "idle", GONE), state);
        }
    }

    #[test]
    fn a_job_that_waits_for_a_prompt_is_blocked_as_the_agent_itself_says() {
        assert_eq!(shown_state("working", "blocked", Worker::Alive), "blocked");
        assert_eq!(shown_state("done", "blocked", Worker::Alive), "done");
    }

    fn dispatch() -> Dispatch<'static> {
        Dispatch {
            resume: None,
            rc_name: None,
            model: None,
            permission_mode: PermissionMode::Inherit,
            prompt: None,
        }
    }

    #[test]
    fn h29_a_prompt_stands_behind_the_dashes_and_no_option_value_begins_with_one() {
        let full = Dispatch {
            resume: Some(SESSION),
            rc_name: Some("n"),
            model: Some("sonnet"),
            permission_mode: PermissionMode::Plan,
            prompt: Some("--dangerously-skip-permissions"),
        };
        let words = "--bg --resume 450f4654-059b-4282-b68e-91a110e7f06b --rc n --model sonnet \
                     --permission-mode plan -- --dangerously-skip-permissions";
        assert_eq!(full.args().unwrap(), words.split_whitespace().collect::<Vec<_>>());
        for bad in ["-x", "--help", ""] {
            assert!(Dispatch { rc_name: Some(bad), ..dispatch() }.args().is_err());
            assert!(Dispatch { model: Some(bad), ..dispatch() }.args().is_err());
            assert!(Dispatch { resume: Some(bad), ..dispatch() }.args().is_err());
        }
        let blank = Dispatch { prompt: Some(" \u{feff}"), ..dispatch() };
        assert_eq!(blank.args().unwrap(), ["--bg"]);
    }

    #[test]
    fn a_first_prompt_is_needed_unless_the_job_is_registered() {
        for prompt in [None, Some(""), Some(" \u{feff}\n")] {
            assert!(check_prompt(prompt, false).unwrap_err().to_string().contains("`prompt`"));
            assert_eq!(check_prompt(prompt, true), Ok(()));
        }
        assert_eq!(check_prompt(Some("do it"), false), Ok(()));
        let long = "x".repeat(PROMPT_BYTES);
        assert_eq!(check_prompt(Some(&long), false), Ok(()));
        assert!(check_prompt(Some(&format!("{long}x")), true).is_err());
        assert!(check_prompt(Some("a\0b"), true).is_err());
    }

    #[test]
    fn a_model_is_a_printable_word() {
        for model in ["", "-x", "a\u{7}", "a\u{202e}b", "a\u{2066}b", "a\u{3164}", &"x".repeat(129)]
        {
            assert!(check_model(model).unwrap_err().to_string().contains("`model`"), "{model:?}");
        }
        assert_eq!(check_model(&"x".repeat(128)), Ok(()));
    }

    #[test]
    fn a_resumption_repeats_model_and_mode_of_the_start() {
        let of = |words: &str| {
            let flags: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
            StartedWith::of_flags(&flags)
        };
        let found = of("--rc name --permission-mode plan --model opus");
        assert_eq!(
            (found.mode(), found.model.as_deref()),
            (Ok(PermissionMode::Plan), Some("opus"))
        );
        assert_eq!(of("--rc").mode(), Ok(PermissionMode::Inherit));
        assert_eq!(of("--permission-mode=auto").mode(), Ok(PermissionMode::Auto));
        let bypass = Ok(PermissionMode::BypassPermissions);
        assert_eq!(of("--dangerously-skip-permissions").mode(), bypass);
        assert!(of("--permission-mode bogus").mode().is_err());
        assert_eq!(of("--model").model, None);
    }

    #[test]
    fn a_job_is_never_run_twice_at_once() {
        let session_id = Some(SESSION);
        let of = |state, worker| resumable(Candidate { state, worker, session_id });
        for state in ["working", "blocked", "done", "failed", "stopped", "lost", "paused"] {
            assert_eq!(of(state, Worker::Alive), Err(NotResumable::Live), "{state}");
            assert_eq!(of(state, Worker::Unclear), Err(NotResumable::Live), "{state}");
        }
        for state in ["working", "blocked", "paused", ""] {
            assert_eq!(of(state, JUST_GONE), Err(NotResumable::Live), "{state}");
        }
        for state in ["done", "failed", "stopped", "lost"] {
            assert_eq!(of(state, GONE), Ok(SESSION), "{state}");
        }
        for session_id in [None, Some(""), Some("--help"), Some("450f4654")] {
            let found = resumable(Candidate { state: "done", worker: GONE, session_id });
            assert_eq!(found, Err(NotResumable::NoSession), "{session_id:?}");
        }
    }

    #[test]
    fn an_end_is_settled_only_when_the_agent_says_so() {
        let confirmed = |state, logged| Settling { state, logged }.is_confirmed();
        assert!(confirmed("blocked", Some("done")));
        assert!(confirmed("done", None));
        assert!(!confirmed("done", Some("killed")));
        assert!(!confirmed("stopped", None));
        assert!(!confirmed("working", None));
    }
}
