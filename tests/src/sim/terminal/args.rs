//! The words of the interactive form.

use std::path::PathBuf;

use crate::sim::failure::Failure;
use crate::sim::texts::PERMISSION_MODES;

/// Which conversation a session begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Begin {
    New,
    /// `--continue`: the latest conversation of the directory.
    Latest,
    /// `--resume UUID`.
    Named(String),
}

#[derive(Debug)]
pub(super) struct Args {
    /// What remote clients see; derived from the directory if none is given.
    pub(super) name: Option<String>,
    pub(super) debug_file: Option<PathBuf>,
    pub(super) permission_mode: Option<String>,
    /// `--worktree [W]`: without a name the agent draws one.
    pub(super) worktree: Option<Option<String>>,
    pub(super) begin: Begin,
    pub(super) fork: bool,
    pub(super) prompt: Option<String>,
}

impl Args {
    pub(super) fn parse(words: &[String]) -> Result<Self, Failure> {
        let mut args = Self {
            name: None,
            debug_file: None,
            permission_mode: None,
            worktree: None,
            begin: Begin::New,
            fork: false,
            prompt: None,
        };
        let mut rest = words.iter().peekable();
        while let Some(word) = rest.next() {
            // An optional value is the next word, unless that is an option.
            let optional = |rest: &mut std::iter::Peekable<std::slice::Iter<'_, String>>| {
                rest.next_if(|next| !next.starts_with('-')).cloned()
            };
            let mut value = || {
                rest.next().cloned().ok_or_else(|| {
                    Failure::agent(format!("error: option '{word}' argument missing"))
                })
            };
            match word.as_str() {
                "--remote-control" | "--rc" => args.name = optional(&mut rest),
                "--debug-file" => args.debug_file = std::path::absolute(value()?).ok(),
                "--permission-mode" => args.permission_mode = Some(value()?),
                "--worktree" | "-w" => args.worktree = Some(optional(&mut rest)),
                "--continue" | "-c" => args.begin = Begin::Latest,
                "--resume" | "-r" => args.begin = Begin::Named(value()?),
                "--fork-session" => args.fork = true,
                "--verbose" => {}
                "--model" | "--name" | "-n" => drop(value()?),
                "--" => args.prompt = rest.next().cloned(),
                odd if odd.starts_with('-') => {
                    return Err(Failure::agent(format!("error: unknown option '{odd}'")));
                }
                prompt => args.prompt = Some(prompt.to_owned()),
            }
        }
        match args.permission_mode.as_deref() {
            Some(mode) if !PERMISSION_MODES.contains(&mode) => Err(Failure::agent(format!(
                "error: option '--permission-mode <mode>' argument '{mode}' is invalid. Allowed \
                 choices are {}.",
                PERMISSION_MODES.join(", ")
            ))),
            _ => Ok(args),
        }
    }
}
