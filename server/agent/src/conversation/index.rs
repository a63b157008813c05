//! What is known of a transcript after each byte of it was read once.

use super::lines::{Line, Lines};
use super::record::{Record, Spent, record};
use super::{Listed, written_at};
use crate::plain_path::plain_directory;
use crate::regular_file::open_regular;
use crate::transcript::{prompt, title};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use svc_domain::activity::{QUESTION_TOOL, tells_sign_out};
use svc_domain::plan_limit::told;
use svc_domain::token_cost::Tokens;
use svc_shared::Timestamp;
use svc_shared::api::limits::PlanLimit;
use svc_shared::status::ActivityState;

/// The offset of every so many turns is remembered.
pub(crate) const STRIDE: u64 = 32;

/// Longest first prompt, characters (`http-api` §3.2).
const PROMPT: usize = 120;

/// So many lines show whether a helper speaks (`agent-cli` §6.7).
const HEAD_LINES: u64 = 200;

/// Milliseconds of a day.
const DAY: i64 = 24 * 60 * 60 * 1000;

/// Most models whose names are kept apart.
/// A transcript that names more is nobody's work.
const MODELS: usize = 256;

/// A message of a model, with the largest figures it was written with.
///
/// Written without names: there are very many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(i32, u32, [u32; 4])", into = "(i32, u32, [u32; 4])")]
struct Message {
    /// Days since the Unix epoch.
    day: i32,
    /// Its place among the models.
    model: u32,
    /// Read, written, written into the cache, read from the cache.
    tokens: [u32; 4],
}

impl From<(i32, u32, [u32; 4])> for Message {
    fn from((day, model, tokens): (i32, u32, [u32; 4])) -> Self {
        Self { day, model, tokens }
    }
}

impl From<Message> for (i32, u32, [u32; 4]) {
    fn from(Message { day, model, tokens }: Message) -> Self {
        (day, model, tokens)
    }
}

impl Message {
    fn tokens(&self) -> Tokens {
        let [input, output, cache_creation, cache_read] = self.tokens.map(u64::from);
        Tokens { input, output, cache_creation, cache_read }
    }

    fn set(&mut self, tokens: Tokens) {
        let Tokens { input, output, cache_creation, cache_read } = tokens;
        // No message has so many: the largest figure stands for nonsense.
        self.tokens = [input, output, cache_creation, cache_read]
            .map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    }
}

/// What a message of a conversation used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Used<'a> {
    /// Fingerprint of the id of the message.
    /// A copy of a transcript has the same messages.
    pub message: u64,
    /// Days since the Unix epoch.
    pub day: i64,
    /// The model.
    pub model: &'a str,
    /// What it read and wrote.
    pub tokens: Tokens,
}

/// What is known of a transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// Device and inode of the file that was read.
    identity: (u64, u64),
    /// How often the file was replaced or cut.
    resets: u64,
    /// Up to here the file was read.
    offset: u64,
    /// Length and time of writing of the file when it was read to its end; 0 before.
    ended_at: (u64, i64),
    /// The offset lies in a line that is too long.
    is_skipping: bool,
    /// The directory that the conversation works in.
    pub cwd: Option<PathBuf>,
    /// How it began, redacted.
    pub first_prompt: Option<String>,
    /// Time of its first record.
    pub first_at: Option<Timestamp>,
    /// Time of its last record.
    pub last_at: Option<Timestamp>,
    /// Complete lines.
    lines: u64,
    /// Turns.
    pub turns: u64,
    /// Lines that could not be read.
    pub skipped: u64,
    is_program: bool,
    has_sidechain: bool,
    has_main: bool,
    /// Offsets of the turns 0, 32, 64 and so on.
    marks: Vec<u64>,
    /// The models that wrote.
    models: Vec<String>,
    /// What they wrote, by the fingerprint of the id of each message.
    messages: BTreeMap<u64, Message>,
    /// The plan limit that the last turn tells.
    #[serde(default)]
    pub limit: Option<PlanLimit>,
    /// What the last turn waits for besides a limit.
    #[serde(default)]
    pub waits: Option<Waits>,
}

/// Why a conversation waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// `question` or `logged_out`.
    pub state: ActivityState,
    /// When it was written.
    pub since: Timestamp,
}

/// How an update ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Updated {
    /// There is more to read than the budget allowed.
    pub is_more: bool,
    /// The file was replaced or cut, and reading began anew.
    pub is_reset: bool,
    /// Anything was read.
    pub is_changed: bool,
}

impl Index {
    /// Opens the file of a transcript. Blocks.
    ///
    /// # Errors
    /// It is missing, unreadable or no regular file.
    pub fn open(path: &Path) -> io::Result<File> {
        open_regular(path)
    }

    /// Reads the end of a transcript, for what its last turn says. Blocks.
    ///
    /// `None` if it cannot be read.
    #[must_use]
    pub fn of_end(path: &Path, bytes: u64) -> Option<Self> {
        let file = Self::open(path).ok()?;
        let begin = file.metadata().ok()?.len().saturating_sub(bytes);
        let mut index = Self::default();
        // The first line is incomplete, unless it is the first of the file.
        let mut lines = Lines::new(&file, begin, begin > 0);
        loop {
            match lines.next().ok()? {
                Line::Whole(start, line) => index.take(start, line),
                Line::TooLong => {}
                Line::End => return Some(index),
            }
        }
    }

    /// How often the file was replaced or cut. What was shown before no longer counts.
    #[must_use]
    pub fn resets(&self) -> u64 {
        self.resets
    }

    /// Up to here the file was read.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether a listed file was read to its end, but for a last line without an end.
    #[must_use]
    pub fn is_current(&self, listed: &Listed) -> bool {
        let ended_at = (listed.size, listed.written_at.as_millis());
        self.identity == listed.identity && self.ended_at == ended_at
    }

    /// Written by a helper of the agent or a program that drives it, not by a person.
    #[must_use]
    pub fn is_subagent(&self) -> bool {
        self.is_program || (self.has_sidechain && !self.has_main)
    }

    /// What each message of a model used, in no order.
    pub fn used(&self) -> impl Iterator<Item = Used<'_>> {
        self.messages.iter().map(|(id, message)| {
            let model = usize::try_from(message.model).ok().and_then(|at| self.models.get(at));
            Used {
                message: *id,
                day: message.day.into(),
                model: model.map_or("", String::as_str),
                tokens: message.tokens(),
            }
        })
    }

    /// Reads what was added since, about `budget` bytes at most. Blocks.
    ///
    /// # Errors
    /// The file cannot be read. What was read before still counts.
    pub fn update(&mut self, file: &File, budget: u64) -> io::Result<Updated> {
        // Before anything is read: what is added meanwhile is read the next time.
        let facts = file.metadata()?;
        let identity = (facts.dev(), facts.ino());
        let is_reset = self.identity != identity || facts.len() < self.offset;
        let was_new = self.offset == 0;
        if is_reset {
            let resets = self.resets + u64::from(!was_new);
            *self = Self { identity, resets, ..Self::default() };
        }
        let begun_at = self.offset;
        let mut lines = Lines::new(file, self.offset, self.is_skipping);
        let is_more = loop {
            if lines.offset().saturating_sub(begun_at) >= budget {
                break true;
            }
            match lines.next()? {
                Line::Whole(start, line) => self.take(start, line),
                Line::TooLong => {
                    self.lines += 1;
                    self.skipped += 1;
                }
                Line::End => break false,
            }
            (self.offset, self.is_skipping) = (lines.offset(), lines.is_skipping());
        };
        (self.offset, self.is_skipping) = (lines.offset(), lines.is_skipping());
        let is_changed = is_reset || self.offset != begun_at;
        if !is_more {
            self.ended_at = (facts.len(), written_at(&facts).as_millis());
        }
        Ok(Updated { is_more, is_reset: is_reset && !was_new, is_changed })
    }

    fn take(&mut self, start: u64, line: &[u8]) {
        self.lines += 1;
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let Some(record) = record(line) else {
            self.skipped += 1;
            return;
        };
        if record.is_turn {
            if self.turns.is_multiple_of(STRIDE) {
                self.marks.push(start);
            }
            self.turns += 1;
        }
        // What a helper of the agent says does not end the wait of the conversation.
        if record.is_turn && record.is_sidechain != Some(true) {
            (self.limit, self.waits) =
                record.at.map_or((None, None), |at| waits(&record, line, at));
        }
        if self.first_prompt.is_none() && record.is_prompt {
            self.first_prompt = serde_json::from_slice::<Value>(line).ok().and_then(|whole| {
                let text = whole.pointer("/message/content").and_then(prompt)?;
                title(text, PROMPT)
            });
        }
        self.note(record);
    }

    fn note(&mut self, record: Record) {
        if self.cwd.is_none() {
            self.cwd = record.cwd.as_deref().and_then(plain_directory);
        }
        self.first_at = self.first_at.or(record.at);
        self.last_at = record.at.or(self.last_at);
        self.is_program |= record.is_program;
        if self.lines <= HEAD_LINES {
            self.has_sidechain |= record.is_sidechain == Some(true);
            self.has_main |= record.is_sidechain == Some(false);
        }
        if let Some(spent) = record.spent {
            let day = record.at.or(self.last_at).map_or(0, |at| at.as_millis().div_euclid(DAY));
            self.count(day, spent);
        }
    }

    /// Counts a message once, with the largest figures it was written with.
    fn count(&mut self, day: i64, spent: Spent) {
        let id = match &spent.message {
            Some(id) => fingerprint(id),
            // Without an id each line is a message of its own.
            None => fingerprint(&format!("{:?} {}", self.identity, self.lines)),
        };
        let day = i32::try_from(day).unwrap_or(0);
        let model = self.model(spent.model);
        let message = self.messages.entry(id);
        let message = message.or_insert(Message { day, model, tokens: [0; 4] });
        message.set(message.tokens().max(spent.tokens));
    }

    /// The place of a model.
    fn model(&mut self, name: String) -> u32 {
        let known = self.models.iter().position(|known| *known == name);
        let at = known.unwrap_or_else(|| {
            if self.models.len() < MODELS {
                self.models.push(name);
            }
            self.models.len() - 1
        });
        u32::try_from(at).unwrap_or(0)
    }

    /// Where to begin to read a turn: an offset and the turn there.
    pub(crate) fn mark(&self, turn: u64) -> Option<(u64, u64)> {
        let at = usize::try_from(turn / STRIDE).ok()?;
        self.marks.get(at).map(|offset| (*offset, turn / STRIDE * STRIDE))
    }

    /// The last remembered turn at or before an offset, and its offset.
    pub(crate) fn mark_before(&self, offset: u64) -> Option<(u64, u64)> {
        let at = self.marks.partition_point(|mark| *mark <= offset).checked_sub(1)?;
        self.marks.get(at).map(|mark| (*mark, at as u64 * STRIDE))
    }
}

/// The same in every version of the service, which keeps it.
fn fingerprint(id: &str) -> u64 {
    Sha256::digest(id).iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// What a turn waits for: the reset of a limit, or a person.
fn waits(record: &Record, line: &[u8], at: Timestamp) -> (Option<PlanLimit>, Option<Waits>) {
    let content = || {
        let whole: Value = serde_json::from_slice(line).ok()?;
        whole.pointer("/message/content").cloned()
    };
    let waits = |state| (None, Some(Waits { state, since: at }));
    if record.is_refusal {
        let content = content();
        let Some(text) = content.as_ref().and_then(prompt) else { return (None, None) };
        return match told(text, at) {
            Some(limit) => (Some(limit), None),
            None if tells_sign_out(text) => waits(ActivityState::LoggedOut),
            None => (None, None),
        };
    }
    // Few lines name the tool; only these are read whole.
    let names_it = memchr::memmem::find(line, QUESTION_TOOL.as_bytes()).is_some();
    if record.is_prompt || !names_it {
        return (None, None);
    }
    let is = |block: &Value, name: &str, word: &str| {
        block.get(name).and_then(Value::as_str) == Some(word)
    };
    let asks = |block: &Value| is(block, "type", "tool_use") && is(block, "name", QUESTION_TOOL);
    match content().as_ref().and_then(Value::as_array) {
        Some(blocks) if blocks.iter().any(asks) => waits(ActivityState::Question),
        Some(_) | None => (None, None),
    }
}
