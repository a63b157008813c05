//! The argv of `remote-control`, parsed as agent 2.1.197 parses it.

use std::path::{Path, PathBuf};

use crate::sim::failure::Failure;
use crate::sim::texts::PERMISSION_MODES;

/// Sessions at a time when nothing is said (agent 2.1.197).
const DEFAULT_CAPACITY: u32 = 32;

/// Options that take a value, also behind `=`.
const VALUED: [&str; 6] = [
    "--name",
    "--remote-control-session-name-prefix",
    "--debug-file",
    "--permission-mode",
    "--spawn",
    "--capacity",
];

/// Where the sessions of a bridge work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spawn {
    SameDir,
    Worktree,
    Session,
}

impl Spawn {
    /// The mode's name in the debug file, which is not the one on the command line.
    pub(crate) fn logged(self) -> &'static str {
        match self {
            Self::SameDir => "same-dir",
            Self::Worktree => "worktree",
            Self::Session => "single-session",
        }
    }
}

/// The options of a standard bridge.
#[derive(Debug)]
pub(crate) struct Args {
    pub(crate) name: Option<String>,
    pub(crate) permission_mode: Option<String>,
    pub(crate) spawn: Spawn,
    capacity: Option<u32>,
    pub(crate) verbose: bool,
    pub(crate) help: bool,
    pub(crate) create_session: bool,
}

impl Args {
    /// Reads the words after `remote-control`.
    pub(crate) fn parse(words: &[String]) -> Result<Self, Failure> {
        let mut args = Self {
            name: None,
            permission_mode: None,
            spawn: Spawn::SameDir,
            capacity: None,
            verbose: false,
            help: false,
            create_session: true,
        };
        let mut spawn = None;
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let (flag, inline) = match word.split_once('=') {
                Some((flag, value)) if flag.starts_with("--") => (flag, Some(value.to_owned())),
                _ => (word.as_str(), None),
            };
            if inline.is_some() && !VALUED.contains(&flag) {
                return Err(unknown(word));
            }
            // A value may start with a dash: the agent takes whatever stands there.
            let value = |rest: &mut std::slice::Iter<'_, String>| {
                inline.clone().or_else(|| rest.next().cloned())
            };
            match flag {
                "--help" | "-h" => args.help = true,
                "--verbose" | "-v" => args.verbose = true,
                "--sandbox" | "--no-sandbox" => {}
                "--create-session-in-dir" => args.create_session = true,
                "--no-create-session-in-dir" => args.create_session = false,
                "--name" => args.name = Some(value(&mut rest).ok_or_else(|| unknown(word))?),
                "--remote-control-session-name-prefix" => {
                    value(&mut rest).ok_or_else(|| unknown(word))?;
                }
                "--debug-file" => {
                    value(&mut rest).ok_or_else(|| unknown(word))?;
                }
                "--permission-mode" => {
                    args.permission_mode = Some(value(&mut rest).ok_or_else(|| unknown(word))?);
                }
                "--spawn" if spawn.is_some() => {
                    return Err(bad("--spawn may only be specified once"));
                }
                "--spawn" => spawn = Some(parse_spawn(value(&mut rest))?),
                "--capacity" if args.capacity.is_some() => {
                    return Err(bad("--capacity may only be specified once"));
                }
                "--capacity" => args.capacity = Some(parse_capacity(value(&mut rest))?),
                _ => return Err(unknown(word)),
            }
        }
        args.spawn = spawn.unwrap_or(Spawn::SameDir);
        args.check()
    }

    /// The debug file, found before anything else is parsed.
    /// So it exists for a wrong argv too, as with the agent.
    pub(crate) fn debug_file(words: &[String]) -> Option<PathBuf> {
        let (at, word) = words
            .iter()
            .enumerate()
            .find(|(_, word)| *word == "--debug-file" || word.starts_with("--debug-file="))?;
        let inline = word.strip_prefix("--debug-file=").map(str::to_owned);
        let file = inline.or_else(|| words.get(at + 1).cloned())?;
        std::path::absolute(Path::new(&file)).ok()
    }

    fn check(self) -> Result<Self, Failure> {
        if self.spawn == Spawn::Session && self.capacity.is_some() {
            return Err(bad("--capacity cannot be used with --spawn=session (single-session \
                            mode has fixed capacity 1)."));
        }
        match self.permission_mode.as_deref() {
            Some(mode) if !self.help && !PERMISSION_MODES.contains(&mode) => Err(bad(&format!(
                "Invalid permission mode '{mode}'. Valid modes: {}",
                PERMISSION_MODES.join(", ")
            ))),
            _ => Ok(self),
        }
    }

    /// Sessions this bridge serves at a time.
    pub(crate) fn capacity(&self) -> u32 {
        match self.spawn {
            Spawn::Session => 1,
            Spawn::SameDir | Spawn::Worktree => self.capacity.unwrap_or(DEFAULT_CAPACITY),
        }
    }
}

fn parse_spawn(value: Option<String>) -> Result<Spawn, Failure> {
    match value.as_deref() {
        Some("same-dir") => Ok(Spawn::SameDir),
        Some("worktree") => Ok(Spawn::Worktree),
        Some("session") => Ok(Spawn::Session),
        odd => Err(bad(&format!(
            "--spawn requires one of: session, same-dir, worktree (got: {})",
            odd.unwrap_or("<missing>")
        ))),
    }
}

fn parse_capacity(value: Option<String>) -> Result<u32, Failure> {
    value.as_deref().and_then(|text| text.parse().ok()).filter(|n| *n > 0).ok_or_else(|| {
        bad(&format!(
            "--capacity requires a positive integer (got: {})",
            value.as_deref().unwrap_or("<missing>")
        ))
    })
}

fn bad(text: &str) -> Failure {
    Failure::agent(format!("Error: {text}"))
}

pub(super) fn unknown(word: &str) -> Failure {
    bad(&format!("Unknown argument: {word}\nRun 'claude remote-control --help' for usage."))
}
