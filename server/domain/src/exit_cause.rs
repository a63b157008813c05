//! Why a bridge ended, from its wait status and its last words (`agent-cli` §11).
//!
//! Reasons that the service knows by itself (a deliberate stop, an expired grace, a restart of
//! the host) are set by the transition and not found here.

use svc_shared::status::ExitReason;

use crate::agent_log::lines::LogPiece;
use crate::agent_log::marker::{
    LOGIN_REFUSAL, Marker, RC_IGNORED, Source, TRUST_REFUSAL, contains_ignoring_case, debug_marker,
    source,
};
use crate::redact::{MASK, redact_text, strip_ansi};

/// Bytes to read from the end of the debug file.
pub const DEBUG_TAIL: u64 = 256 * 1024;
/// Bytes to read from the end of the captured output.
pub const OUTPUT_TAIL: u64 = 64 * 1024;
/// Longest detail, in characters.
pub const DETAIL: usize = 2_000;
/// Most lines of the tail in a detail.
const DETAIL_LINES: usize = 20;

const SIGKILL: i32 = 9;

/// What is known about an end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ended {
    /// Exit code; `None` when a signal ended it or nobody could collect it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether we had sent it a signal: then a signal explains nothing.
    pub our_signal: bool,
    /// Whether the kernel killed a process of its group for memory meanwhile.
    pub oom_kill: bool,
}

/// The last words of a bridge. Both may begin in the middle of a line.
#[derive(Clone, Copy, Default)]
pub struct LastWords<'a> {
    /// End of the debug file, at most [`DEBUG_TAIL`] bytes.
    pub debug: &'a [u8],
    /// End of the captured output, at most [`OUTPUT_TAIL`] bytes.
    pub output: &'a [u8],
}

/// Why it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitCause {
    /// The word on the record.
    pub reason: ExitReason,
    /// The agent's own words: redacted, at most [`DETAIL`] characters.
    /// `None` when it wrote nothing.
    pub detail: Option<String>,
}

/// Finds the cause of an end.
#[must_use]
pub fn exit_cause(ended: Ended, last_words: LastWords<'_>) -> ExitCause {
    let words = Words::read(last_words);
    let evidence = words.evidence();
    let (reason, key_line) = match by_wait_status(ended) {
        Some(reason) => (reason, None),
        None if words.asked_to_end && !ended.our_signal => (ExitReason::ExternalStop, None),
        None => match evidence {
            Some((reason, at)) => (reason, Some(at)),
            None if ended.code == Some(0) => (ExitReason::CleanExit, None),
            None => (ExitReason::Unknown, None),
        },
    };
    let detail = match reason {
        ExitReason::LoginRequired => words.login_detail(key_line),
        _ => words.detail(reason, key_line),
    };
    ExitCause { reason, detail: Some(detail).filter(|detail| !detail.is_empty()) }
}

/// A foreign signal is decisive, whatever was logged before it.
fn by_wait_status(ended: Ended) -> Option<ExitReason> {
    let signal = ended.signal?;
    if signal == SIGKILL && ended.oom_kill {
        Some(ExitReason::OutOfMemory)
    } else if ended.our_signal {
        None
    } else {
        Some(ExitReason::Killed)
    }
}

/// One line of the last words.
struct Word {
    /// Without escape sequences: what is looked for evidence. Never shown.
    plain: String,
    /// The same, redacted: what may be shown.
    text: String,
    /// Quotes a conversation: shown, but no evidence.
    quoted: bool,
    /// From the debug file, the message that the session is gone for good.
    poison: bool,
}

/// The last lines that a process printed, redacted.
///
/// Blank lines around them are left out.
///
/// `tail` is the end of the captured output, at most [`OUTPUT_TAIL`] bytes.
#[must_use]
pub fn printed(tail: &[u8], most: usize) -> Vec<String> {
    let clean = redact_text(&whole_lines(tail, OUTPUT_TAIL));
    let mut lines: Vec<String> = clean.lines().map(|line| line.trim_end().to_owned()).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    let blank = lines.iter().take_while(|line| line.is_empty()).count();
    lines.drain(..blank.max(lines.len().saturating_sub(most)));
    lines
}

struct Words {
    lines: Vec<Word>,
    asked_to_end: bool,
}

impl Words {
    fn read(last_words: LastWords<'_>) -> Self {
        let mut words = Self { lines: Vec::new(), asked_to_end: false };
        words.add_debug(&whole_lines(last_words.debug, DEBUG_TAIL));
        words.add_output(&whole_lines(last_words.output, OUTPUT_TAIL));
        words
    }

    fn add_debug(&mut self, raw: &str) {
        let clean = redact_text(raw);
        let mut quoted = false;
        for (raw, text) in raw.lines().zip(clean.lines()) {
            quoted = match source(raw) {
                Source::Conversation => true,
                Source::Bridge { .. } | Source::Other(_) => false,
                Source::Continuation => quoted,
            };
            let marker = debug_marker(LogPiece { text: raw, begins_line: true });
            self.asked_to_end |= matches!(marker, Some(Marker::StopSignal(_)));
            let poison = matches!(marker, Some(Marker::Poison));
            let plain = strip_ansi(raw).into_owned();
            self.lines.push(Word { plain, text: text.to_owned(), quoted, poison });
        }
    }

    fn add_output(&mut self, raw: &str) {
        let clean = redact_text(raw);
        self.lines.extend(raw.lines().zip(clean.lines()).map(|(raw, text)| Word {
            plain: strip_ansi(raw).into_owned(),
            text: text.to_owned(),
            quoted: false,
            poison: false,
        }));
    }

    /// The first row of the table for which a line speaks, and that line.
    fn evidence(&self) -> Option<(ExitReason, usize)> {
        ROWS.iter().find_map(|(reason, speaks)| {
            let at = self.lines.iter().position(|word| !word.quoted && speaks(word))?;
            Some((*reason, at))
        })
    }

    /// The last lines, followed by the line that decided.
    /// A reader that shows only one line shows the last one.
    fn detail(&self, reason: ExitReason, key_line: Option<usize>) -> String {
        let decisive = key_line.map(|at| {
            // The reason for an ignored flag is the line before it.
            let with_reason = reason == ExitReason::RemoteControlUnavailable;
            if with_reason { at.saturating_sub(1)..=at } else { at..=at }
        });
        let is_decisive = |at: usize| decisive.as_ref().is_some_and(|lines| lines.contains(&at));
        let shown: Vec<usize> = (0..self.lines.len())
            .rev()
            .filter(|at| self.line(*at).is_some())
            .take(DETAIL_LINES)
            .filter(|at| !is_decisive(*at))
            .collect();
        let tail: Vec<&str> = shown.into_iter().rev().filter_map(|at| self.line(at)).collect();
        let decisive = decisive.clone().into_iter().flatten();
        let key: Vec<&str> = decisive.filter_map(|at| self.line(at)).collect();
        fit(&tail.join("\n"), &key.join("\n"))
    }

    /// The agent's words about the login, without ids, and the message.
    fn login_detail(&self, key_line: Option<usize>) -> String {
        let Some(at) = key_line else { return String::new() };
        let mut state: Vec<&str> = Vec::new();
        let block = self.lines.iter().skip(at + 1);
        let block = block.skip_while(|word| !word.plain.contains(LOGIN_STATE)).skip(1);
        for word in block {
            let Some((key, value)) = word.text.trim().split_once('=') else { break };
            if key.contains(char::is_whitespace) {
                break;
            }
            if !looks_like_id(value) {
                state.push(word.text.trim());
            }
        }
        fit(&state.join("\n"), self.line(at).unwrap_or_default())
    }

    fn line(&self, at: usize) -> Option<&str> {
        self.lines.get(at).map(|word| word.text.trim()).filter(|text| !text.is_empty())
    }
}

/// Begins the block of `key=value` lines behind [`LOGIN_REFUSAL`] (agent 2.1.197).
const LOGIN_STATE: &str = "[debug] Remote Control auth state:";

fn looks_like_id(value: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let id = value.len() >= 12
        && value.chars().all(part)
        && value.contains(|c: char| c.is_ascii_digit());
    id || value.contains(MASK) || value.contains('@')
}

/// Fits both parts into [`DETAIL`] characters.
/// The key lines are kept from their beginning; the others fill the remaining room with their end.
fn fit(others: &str, key: &str) -> String {
    let key: String = key.chars().take(DETAIL).collect();
    let gap = usize::from(!key.is_empty());
    let room = DETAIL.saturating_sub(key.chars().count() + gap);
    if others.is_empty() || room == 0 {
        return key;
    }
    let skip = others.chars().count().saturating_sub(room);
    let mut detail = String::new();
    if skip == 0 {
        detail.push_str(others);
    } else {
        detail.push('…');
        detail.extend(others.chars().skip(skip + 1));
    }
    if gap == 1 {
        detail.push('\n');
        detail.push_str(&key);
    }
    detail
}

/// The whole lines of the end of a log.
/// A tail of exactly the requested length may begin inside a line. That fragment is dropped,
/// because it could be the end of a secret.
fn whole_lines(tail: &[u8], asked: u64) -> String {
    let full = u64::try_from(tail.len()).is_ok_and(|len| len >= asked);
    let begin = match tail.iter().position(|b| *b == b'\n') {
        Some(newline) if full => newline + 1,
        None if full => tail.len(),
        Some(_) | None => 0,
    };
    let text = String::from_utf8_lossy(tail.get(begin..).unwrap_or_default());
    // A lone carriage return moves the cursor: what follows is the next line of the display.
    text.replace("\r\n", "\n").replace('\r', "\n")
}

type Row = (ExitReason, fn(&Word) -> bool);

/// The table of §11: the first row wins.
const ROWS: [Row; 10] = [
    (ExitReason::LoginRequired, |word| word.plain.contains(LOGIN_REFUSAL)),
    (ExitReason::RemoteControlUnavailable, |word| {
        any_of(
            word,
            &[
                RC_IGNORED,
                "Remote Control environments are not available for your account",
                "disabled by your organization's policy",
            ],
        )
    }),
    (ExitReason::TrustRequired, |word| {
        contains_ignoring_case(&word.plain, TRUST_REFUSAL) || any_of(word, &["trust dialog"])
    }),
    (ExitReason::WorktreeUnavailable, |word| {
        any_of(word, &["Worktree mode requires a git repository", "Error creating worktree:"])
    }),
    (ExitReason::BadArgument, |word| {
        any_of(
            word,
            &[
                "Unknown argument:",
                "--spawn requires one of",
                "Invalid permission mode",
                "error: option",
                "error: unknown option",
            ],
        )
    }),
    (ExitReason::AlreadyServed, |word| {
        // Agent 2.1.329 words the answer 409 without its number.
        any_of(word, &["already served by another Claude Code"])
            || word.plain.contains("409") && contains_ignoring_case(&word.plain, "already served")
    }),
    (ExitReason::RegistrationFailed, |word| {
        // Agent 2.1.197 prints the second form and logs no status of a registration that failed.
        any_of(word, &["Bridge registration failed", "Error: Registration: "])
            || registration_refused(&word.plain)
    }),
    (ExitReason::Network, |word| {
        any_of(
            word,
            &[
                "ENOTFOUND",
                "ECONNREFUSED",
                "ETIMEDOUT",
                "Unable to connect to Anthropic services",
                "giving up",
            ],
        )
    }),
    (ExitReason::ConfigError, |word| {
        // Agent 2.1.197 ends `remote-control` with the second form.
        any_of(word, &["Configuration error in", "ConfigParseError"])
    }),
    (ExitReason::PoisonedSession, |word| word.poison),
];

fn any_of(word: &Word, texts: &[&str]) -> bool {
    texts.iter().any(|text| word.plain.contains(text))
}

/// The answer to the registration was an HTTP error.
fn registration_refused(text: &str) -> bool {
    text.split_once("POST /v1/environments/bridge -> ")
        .and_then(|(_, status)| status.get(..3))
        .and_then(|status| status.parse::<u16>().ok())
        .is_some_and(|status| (400..600).contains(&status))
}

#[cfg(test)]
mod tests;
