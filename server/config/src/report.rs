//! Problems and warnings, worded without showing a secret.

use crate::loaded::Loaded;
use crate::secret::MASK;
use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use svc_shared::text::is_hidden;

/// Most characters of a rejected value that a message repeats.
const LONGEST_ECHO: usize = 80;

/// Where a value or a problem was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// No file or variable: the configuration was given as text.
    Nowhere,
    /// A file.
    File(PathBuf),
    /// A line of a file, counted from 1.
    Line(PathBuf, usize),
    /// An environment variable.
    Variable(String),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nowhere => f.write_str("configuration"),
            Self::File(path) => f.write_str(&printable(&path.to_string_lossy())),
            Self::Line(path, line) => {
                write!(f, "{}:{line}", printable(&path.to_string_lossy()))
            }
            Self::Variable(name) => f.write_str(name),
        }
    }
}

/// Why a configuration cannot be used. Prints as one line: location, key, reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where it is.
    pub location: Location,
    /// Dotted key, when it concerns one.
    pub key: Option<String>,
    /// What is wrong and what to do; never a secret and never a line of the file.
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.location)?;
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        f.write_str(&self.reason)
    }
}

/// What a warning is about: the doctor and `config check` select by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WarningKind {
    /// A key that the schema does not have.
    UnknownKey {
        /// The known key that was probably meant.
        nearest: Option<String>,
        /// Whether it is, or is close to, a key that protects.
        is_security: bool,
    },
    /// A key that still works under another name.
    Deprecated,
    /// A `SVC_` variable without a meaning.
    UnknownVariable {
        /// The known variable that was probably meant.
        nearest: Option<String>,
    },
    /// A variable for a map, which only the file can hold.
    FileOnly,
    /// A section without keys.
    EmptySection,
    /// The file was written for a newer version.
    NewerSchema,
    /// A key of a project whose directory does not exist.
    UnknownProject,
    /// Too many users can read or write the file, or a file that it names.
    FileMode {
        /// Whether others can change the file: it names programs that run.
        is_writable: bool,
    },
    /// A value that loads but cannot have an effect.
    Ineffective,
    /// A combination of values that weakens the protection.
    Posture,
}

/// Something that the operator should know about a configuration that loads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// What it is about.
    pub kind: WarningKind,
    /// Where it is.
    pub location: Location,
    /// The keys concerned.
    pub keys: Vec<String>,
    /// The warning as one sentence.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.location)?;
        if let [key] = self.keys.as_slice() {
            write!(f, "{key}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// Every reason why a configuration cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", self.lines().join("\n"))]
pub struct ConfigErrors {
    /// The reasons; at least one.
    pub problems: Vec<Problem>,
    /// Warnings about the rest of the configuration.
    pub warnings: Vec<Warning>,
    /// The configuration, when every problem is that it would leave the service open.
    ///
    /// For the doctor. It must never be served.
    pub exposed: Option<Box<Loaded>>,
}

impl ConfigErrors {
    pub(crate) fn new(problems: Vec<Problem>, warnings: Vec<Warning>) -> Self {
        Self { problems, warnings, exposed: None }
    }

    pub(crate) fn one(location: Location, key: Option<&str>, reason: impl Into<String>) -> Self {
        let problem = Problem { location, key: key.map(str::to_owned), reason: reason.into() };
        Self::new(vec![problem], Vec::new())
    }

    /// One line per problem, without the prefix of the program.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.problems.iter().map(|problem| format!("config error: {problem}")).collect()
    }
}

/// `text` with everything that is invisible or not printable escaped.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// `text` cut to a length that fits a message.
fn clipped(text: &str) -> String {
    let mut out: String = text.chars().take(LONGEST_ECHO).collect();
    if out.len() < text.len() {
        out.push('…');
    }
    printable(&out)
}

/// A rejected value of a key that is no secret, ready for a message.
pub(crate) fn shown_value(text: &str) -> String {
    clipped(&without_credentials(text))
}

/// `text`, without credentials when it is a URL.
///
/// A URL loses user information, query and fragment. A text that only resembles a URL is masked,
/// because any part of it may be a credential.
pub(crate) fn without_credentials(text: &str) -> Cow<'_, str> {
    if !text.contains("://") && !text.contains('@') {
        return Cow::Borrowed(text);
    }
    match url::Url::parse(text) {
        Ok(mut url) if url.has_host() => {
            let is_clean = url.set_username("").is_ok() && url.set_password(None).is_ok();
            url.set_query(None);
            url.set_fragment(None);
            if is_clean { Cow::Owned(url.into()) } else { Cow::Borrowed(MASK) }
        }
        Ok(_) | Err(_) => Cow::Borrowed(MASK),
    }
}

/// A key of a file, ready for a message.
///
/// A missing blank (`password_hash:"…"`) makes the value a part of the key, so only the characters
/// of a name are repeated.
pub(crate) fn shown_key(key: &str) -> String {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
    let name: String = key.chars().take(64).take_while(|c| is_name(*c)).collect();
    if name.len() == key.len() { name } else { format!("{}…", name.trim_end()) }
}

/// A project name as part of a dotted key.
pub(crate) fn shown_project(name: &str) -> String {
    if name.parse::<svc_shared::ids::ProjectName>().is_ok() {
        clipped(name)
    } else {
        shown_key(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_shown_in_a_message_has_no_credentials() {
        assert_eq!(shown_value("70000"), "70000");
        assert_eq!(shown_value("https://me:pw@host.example/a?k=v#x"), "https://host.example/a");
        assert_eq!(shown_value("me:pw@host"), MASK);
        assert_eq!(shown_value("://me:pw@"), MASK);
        assert_eq!(shown_value("a\nb\u{202e}"), "a\\u{a}b\\u{202e}");
        assert_eq!(shown_value("a\u{3164}b\u{34f}"), "a\\u{3164}b\\u{34f}");
        assert!(shown_value(&"x".repeat(500)).len() < 100);
    }

    #[test]
    fn a_value_glued_to_its_key_is_not_repeated() {
        assert_eq!(shown_key("auth.enabledd"), "auth.enabledd");
        assert_eq!(shown_key("password_hash:\"hunter2\""), "password_hash…");
        assert_eq!(shown_key("\u{1b}[31m"), "…");
        assert_eq!(shown_key(&"k".repeat(200)).chars().count(), 65);
    }
}
