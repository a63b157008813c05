//! Names of members: which are accepted, and where they lead.
//!
//! A name that could mean another file on any system is refused, and with it the whole archive
//! (H40).

use crate::manifest::MANIFEST;
use std::fmt;
use std::path::PathBuf;

/// Longest part of a name, bytes: what file systems take.
const LONGEST_PART: usize = 255;
/// Longest name, bytes: `PATH_MAX`.
const LONGEST: usize = 4096;
/// Most directories above a file, the area included. The service makes three.
const DEEPEST: usize = 32;

/// The part of an archive that a member belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Area {
    /// The state directory.
    State,
    /// The configuration file.
    Config,
}

/// An accepted name: in one of the areas, and nothing in it leads out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberPath {
    area: Area,
    /// The whole name without a slash at its end.
    text: String,
}

/// What a name means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Named {
    Manifest,
    /// The directory of an area itself.
    Root(Area),
    Inside(MemberPath),
}

/// Why a name is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// No text.
    #[error("is empty")]
    Empty,
    /// Longer than file systems take.
    #[error("is too long")]
    TooLong,
    /// More directories than the service makes.
    #[error("is nested too deeply")]
    TooDeep,
    /// Not UTF-8.
    #[error("is not UTF-8")]
    NotText,
    /// A byte 0, or another control character.
    #[error("contains a control character")]
    Control,
    /// A backslash separates names on some systems.
    #[error("contains a backslash")]
    Backslash,
    /// It begins at the root or with a drive.
    #[error("is absolute")]
    Absolute,
    /// `.`, `..` or nothing between two slashes.
    #[error("contains `.`, `..` or an empty part")]
    Relative,
    /// Not below `state/` or `config/`.
    #[error("is outside manifest.json, state/ and config/")]
    Outside,
}

impl MemberPath {
    /// Accepts the name of a member of a tree.
    ///
    /// # Errors
    /// The name is refused, or is not below an area.
    pub fn new(raw: &[u8]) -> Result<Self, BadName> {
        match parse(raw)? {
            Named::Inside(path) => Ok(path),
            Named::Manifest | Named::Root(_) => Err(BadName::Outside),
        }
    }

    /// The area it is in.
    #[must_use]
    pub fn area(&self) -> Area {
        self.area
    }

    /// The whole name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The name below its area.
    #[must_use]
    pub fn below(&self) -> &str {
        self.text.split_once('/').map_or("", |(_, rest)| rest)
    }

    /// The name below its area as a path; joining it cannot lead out of a directory.
    #[must_use]
    pub fn to_path(&self) -> PathBuf {
        self.below().split('/').collect()
    }
}

impl fmt::Display for MemberPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Reads a name. One slash at its end is accepted, as directories have it.
pub(crate) fn parse(raw: &[u8]) -> Result<Named, BadName> {
    let text = std::str::from_utf8(raw).map_err(|_| BadName::NotText)?;
    if text.is_empty() {
        return Err(BadName::Empty);
    }
    if text.len() > LONGEST {
        return Err(BadName::TooLong);
    }
    if text.chars().any(char::is_control) {
        return Err(BadName::Control);
    }
    if text.contains('\\') {
        return Err(BadName::Backslash);
    }
    if text.starts_with('/') || has_drive(text) {
        return Err(BadName::Absolute);
    }
    let text = text.strip_suffix('/').unwrap_or(text);
    let parts: Vec<&str> = text.split('/').collect();
    if parts.iter().any(|part| matches!(*part, "" | "." | "..")) {
        return Err(BadName::Relative);
    }
    if parts.iter().any(|part| part.len() > LONGEST_PART) {
        return Err(BadName::TooLong);
    }
    if parts.len() > DEEPEST {
        return Err(BadName::TooDeep);
    }
    let inside = |area| Ok(Named::Inside(MemberPath { area, text: text.to_owned() }));
    match parts.as_slice() {
        [only] if *only == MANIFEST => Ok(Named::Manifest),
        ["state"] => Ok(Named::Root(Area::State)),
        ["config"] => Ok(Named::Root(Area::Config)),
        ["state", ..] => inside(Area::State),
        // One file, and no tree.
        ["config", _] => inside(Area::Config),
        _ => Err(BadName::Outside),
    }
}

fn has_drive(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|letter| letter.is_ascii_alphabetic()) && letters.next() == Some(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h40_names_that_lead_elsewhere_are_refused() {
        let long = format!("state/{}", "x".repeat(256));
        let deep = format!("state/{}x", "d/".repeat(40));
        let endless = "state/a/".repeat(600);
        let table: &[(&[u8], BadName)] = &[
            (b"", BadName::Empty),
            (b"/etc/passwd", BadName::Absolute),
            (b"C:/state/x", BadName::Absolute),
            (b"state/../x", BadName::Relative),
            (b"../state/x", BadName::Relative),
            (b"state/./x", BadName::Relative),
            (b"state//x", BadName::Relative),
            (b"state/x//", BadName::Relative),
            (b"..", BadName::Relative),
            (b"state\\..\\x", BadName::Backslash),
            (b"state/a\0b", BadName::Control),
            (b"state/a\nb", BadName::Control),
            (b"state/\xff", BadName::NotText),
            (b"other/x", BadName::Outside),
            (b"manifest.json/x", BadName::Outside),
            (b"config/a/b", BadName::Outside),
            (long.as_bytes(), BadName::TooLong),
            (endless.as_bytes(), BadName::TooLong),
            (deep.as_bytes(), BadName::TooDeep),
        ];
        for (raw, reason) in table {
            assert_eq!(parse(raw).unwrap_err(), *reason, "{}", String::from_utf8_lossy(raw));
        }
    }

    #[test]
    fn names_of_our_own_archives_are_accepted() {
        assert_eq!(parse(b"manifest.json").unwrap(), Named::Manifest);
        assert_eq!(parse(b"state/").unwrap(), Named::Root(Area::State));
        let path = MemberPath::new("state/logs/übung-1.log".as_bytes()).unwrap();
        assert_eq!(path.below(), "logs/übung-1.log");
        assert_eq!(path.to_path(), PathBuf::from("logs/übung-1.log"));
        assert_eq!(MemberPath::new(b"config/svc.yml").unwrap().area(), Area::Config);
    }
}
