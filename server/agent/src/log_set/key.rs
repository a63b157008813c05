//! Names of log files: made for a launch, and parsed back.

use std::fmt;
use std::str::FromStr;
use svc_shared::Timestamp;
use svc_shared::ids::ProjectName;

/// Longest project part of a file name, in bytes.
const PROJECT_CAP: usize = 160;

/// Prefix of the transcript of each remote session (agent 2.1.197).
const TRANSCRIPT: &str = "bridge-transcript-";

/// Stem of the files of one launch: one safe path component.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LogSetKey {
    text: String,
    project_len: usize,
    created: i64,
}

/// Why a text is not the key of a log set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the name of a log set: expected <project>-<milliseconds>-<number>")]
pub struct BadLogSetKey;

impl LogSetKey {
    pub(super) fn new(project: &ProjectName, created: i64, sequence: u64) -> Self {
        let mut text = escaped(project.as_str());
        let project_len = text.len();
        text.push_str(&format!("-{created}-{sequence}"));
        Self { text, project_len, created }
    }

    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// When the set was created.
    #[must_use]
    pub fn created_at(&self) -> Timestamp {
        Timestamp::from_millis(self.created)
    }

    /// Whether this may be a set of the project.
    /// Long names may be cut to the same text. Then the record decides.
    #[must_use]
    pub fn is_of(&self, project: &ProjectName) -> bool {
        self.text.get(..self.project_len) == Some(escaped(project.as_str()).as_str())
    }

    /// Key and suffix (from its first `.` on) of a file in the log directory.
    #[must_use]
    pub fn of_file(name: &str) -> Option<(Self, &str)> {
        // A project name may contain dots and dashes, so the end decides:
        // `-<digits>-<digits>.<suffix>`.
        let (_, last) = name.rsplit_once('-')?;
        let dot = last.find('.')?;
        let stem = name.len() - last.len() + dot;
        let (key, suffix) = name.split_at_checked(stem)?;
        Some((key.parse().ok()?, suffix))
    }
}

impl FromStr for LogSetKey {
    type Err = BadLogSetKey;

    fn from_str(raw: &str) -> Result<Self, BadLogSetKey> {
        let number = |text: &str| {
            let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            plain.then(|| text.parse::<i64>().ok()).flatten()
        };
        let (rest, sequence) = raw.rsplit_once('-').ok_or(BadLogSetKey)?;
        let (project, created) = rest.rsplit_once('-').ok_or(BadLogSetKey)?;
        let is_project = !project.is_empty()
            && project.len() <= PROJECT_CAP
            && !project.starts_with('.')
            && project.bytes().all(|b| is_plain(b) || b == b'%');
        match (number(created), number(sequence)) {
            (Some(created), Some(_)) if is_project => {
                Ok(Self { project_len: project.len(), text: raw.to_owned(), created })
            }
            _ => Err(BadLogSetKey),
        }
    }
}

impl fmt::Display for LogSetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn is_plain(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')
}

/// A project name as part of a safe file name of bounded length.
pub(super) fn escaped(project: &str) -> String {
    let mut out = String::with_capacity(project.len());
    for b in project.bytes() {
        let piece = if is_plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") };
        // Never cut in the middle of an escape.
        if out.len() + piece.len() > PROJECT_CAP {
            break;
        }
        out.push_str(&piece);
    }
    out
}

/// A file in the log directory, by the names that this service or its agents give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogFileName {
    /// A file of a set.
    Of(LogSetKey),
    /// Log of a remote session, which the agent puts beside the bridge's log (2.1.197).
    Session {
        /// The bridge's set.
        set: LogSetKey,
        /// The agent's name of the session: a credential.
        session: String,
    },
    /// Transcript of a remote session. Its name does not say of which bridge.
    Transcript {
        /// The agent's name of the session: a credential.
        session: String,
    },
}

impl LogFileName {
    /// Parses a name. `None` for a name that neither we nor the agent would give.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        if let Some(session) = name.strip_prefix(TRANSCRIPT) {
            let session = session.strip_suffix(".jsonl").filter(|s| is_session(s))?.to_owned();
            return Some(Self::Transcript { session });
        }
        // Checked before sets: the name of a session may end in two numbers.
        if let Some(stem) = without_number(name).strip_suffix(".log")
            && let Some((set, session)) = split_session(stem)
        {
            return Some(Self::Session { set, session: session.to_owned() });
        }
        let (set, suffix) = LogSetKey::of_file(name)?;
        let is_ours = match suffix {
            ".launch.json" | ".mirror.json" | ".keeper.json" | ".keeper.log" => true,
            other => matches!(
                without_number(other.strip_suffix(".new").unwrap_or(other)),
                ".log" | ".stderr.log" | ".raw.log"
            ),
        };
        is_ours.then_some(Self::Of(set))
    }
}

/// `a.log.3` without its number.
fn without_number(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((rest, number))
            if !number.is_empty()
                && number.len() <= 3
                && number.bytes().all(|b| b.is_ascii_digit()) =>
        {
            rest
        }
        Some(_) | None => name,
    }
}

fn split_session(stem: &str) -> Option<(LogSetKey, &str)> {
    stem.match_indices('-').find_map(|(at, _)| {
        let (set, session) = (stem.get(..at)?, stem.get(at + 1..)?);
        let is_named = ["session_", "cse_"].iter().any(|prefix| session.starts_with(prefix));
        let is_session = is_session(session) && (is_named || is_uuid(session));
        if is_session { Some((set.parse().ok()?, session)) } else { None }
    })
}

fn is_session(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    (1..=128).contains(&text.len()) && text.bytes().all(plain)
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, b)| match at {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(raw: &str) -> ProjectName {
        raw.parse().unwrap()
    }

    #[test]
    fn a_file_belongs_to_exactly_one_project() {
        let check = |file: &str, project: &str, expected: Option<&str>| {
            let found = LogSetKey::of_file(file).filter(|(key, _)| key.is_of(&name(project)));
            assert_eq!(found.map(|(_, suffix)| suffix), expected, "{file}");
        };
        check("app-170-1.log", "app", Some(".log"));
        check("app-staging-170-1.log", "app", None);
        check("app-staging-170-1.log", "app-staging", Some(".log"));
        check("app-170-1-170-1.stderr.log", "app-170-1", Some(".stderr.log"));
        check("app.v2-170-1.log.3", "app.v2", Some(".log.3"));
        check("app-170-1.launch.json", "app", Some(".launch.json"));
        check("app-170-x.log", "app", None);
        check("app-170-1", "app", None);
        check("-170-1.log", "app", None);
    }

    #[test]
    fn long_and_foreign_names_become_safe_ones() {
        let key = LogSetKey::new(&name(&"ü".repeat(127)), 5, 1);
        let (project, _) = key.as_str().split_once("-5-1").unwrap();
        assert_eq!(project.len(), 159, "a cut never leaves half an escape");
        assert!(project.bytes().all(|b| is_plain(b) || b == b'%'));
        assert_eq!(key.as_str().parse(), Ok(key));
        assert!(LogSetKey::new(&name("100%"), 5, 1).as_str().starts_with("100%25-"));
    }

    /// H96: only names that we or the agent give count.
    #[test]
    fn h96_a_name_says_whose_it_is_or_nothing() {
        let uuid = "0f1e2d3c-4b5a-6978-8796-105432102030";
        let set = |file: &str| match LogFileName::parse(file) {
            Some(LogFileName::Of(set)) => set.as_str().to_owned(),
            other => panic!("{file}: {other:?}"),
        };
        for suffix in [
            ".log",
            ".log.1",
            ".log.12",
            ".log.new",
            ".stderr.log",
            ".stderr.log.2",
            ".raw.log",
            ".raw.log.3",
            ".launch.json",
            ".mirror.json",
            ".keeper.log",
        ] {
            assert_eq!(set(&format!("a-b-170-1{suffix}")), "a-b-170-1");
        }
        for session in ["session_01AB", "cse_01-AB", uuid] {
            let key: LogSetKey = "a-b-170-1".parse().unwrap();
            let session = session.to_owned();
            let name = LogFileName::parse(&format!("a-b-170-1-{session}.log"));
            assert_eq!(name, Some(LogFileName::Session { set: key, session: session.clone() }));
            let name = LogFileName::parse(&format!("bridge-transcript-{session}.jsonl"));
            assert_eq!(name, Some(LogFileName::Transcript { session }));
        }
        for other in [
            "notes.txt",
            "a-170-1.log.bak",
            "a-170-1.log.1234",
            "a-170-1.log.",
            "a-170-1",
            "a-170-1.txt",
            "a-170-1-.log",
            "a-170-1-words.log",
            "bridge-transcript-.jsonl",
            "bridge-transcript-a.json",
            "bridge-transcript-a/b.jsonl",
            "xa-170-1.log.1.gz",
        ] {
            assert_eq!(LogFileName::parse(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn h37_a_file_name_of_any_project_is_one_plain_component_and_read_back(
            project in "\\PC{1,60}", created in 0_i64.., sequence: u32,
        ) {
            let Ok(project) = project.parse::<ProjectName>() else { return Ok(()) };
            let key = LogSetKey::new(&project, created, sequence.into());
            let text = key.as_str();
            prop_assert!(text.len() < 255 && !text.starts_with('.'));
            prop_assert!(text.bytes().all(|b| is_plain(b) || b == b'%'), "{}", text);
            prop_assert!(key.is_of(&project));
            prop_assert_eq!(text.parse::<LogSetKey>(), Ok(key.clone()));
            let file = format!("{text}.log.3");
            prop_assert_eq!(LogSetKey::of_file(&file), Some((key.clone(), ".log.3")));
            prop_assert_eq!(LogFileName::parse(&file), Some(LogFileName::Of(key)));
        }

        #[test]
        fn h96_no_name_makes_the_reader_panic_and_none_leaves_the_directory(
            name in "\\PC{0,30}|(bridge-transcript-)?[a-z0-9./%-]{0,30}(\\.log|\\.jsonl)?",
        ) {
            let stem = match LogFileName::parse(&name) {
                Some(LogFileName::Of(set) | LogFileName::Session { set, .. }) => set.to_string(),
                Some(LogFileName::Transcript { session }) => session,
                None => return Ok(()),
            };
            prop_assert!(!stem.contains('/') && name.contains(&stem), "{}", name);
        }
    }
}
