//! Problems and warnings, and how they are worded without showing what must stay hidden.

use crate::load::Loaded;
use crate::secret::MASK;
use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use svc_shared::characters::is_invisible;
use svc_shared::text::is_unprintable;

/// Longest piece of foreign text repeated in a message.
const LONGEST_ECHO: usize = 80;

/// Where a value or a fault comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The configuration as a whole, before any file is involved.
    Nowhere,
    /// A file.
    File(PathBuf),
    /// A line of a file, counted from 1.
    Line(PathBuf, usize),
    /// An environment variable.
    Variable(String),
}

impl fmt::Display for Place {
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

/// Why a configuration cannot be used. Prints as one line: place, key, reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where it is.
    pub place: Place,
    /// Dotted key, when it concerns one.
    pub key: Option<String>,
    /// What is wrong and what to do; never a secret and never a line of the file.
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        f.write_str(&self.reason)
    }
}

/// What a warning is about, for those who sort them (doctor, `config check`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Concern {
    /// A key the schema does not have.
    UnknownKey {
        /// The known key that was probably meant.
        nearest: Option<String>,
        /// Whether it is, or is close to, a key that protects.
        is_security: bool,
    },
    /// A key that still works under another name.
    Deprecated,
    /// A `SVC_` variable that means nothing.
    UnknownVariable {
        /// The known variable that was probably meant.
        nearest: Option<String>,
    },
    /// A variable for a map, which only the file can hold.
    FileOnly,
    /// A section with nothing in it.
    EmptySection,
    /// Keys whose feature is not part of this build; see [`Warning::keys`].
    NotInThisBuild,
    /// The file was written for a newer version.
    NewerSchema,
    /// A project key for a directory that is not there.
    UnknownProject,
    /// The file, or one it names, can be read or written by too many.
    FileMode {
        /// Whether others can change it: it names programs that run.
        is_writable: bool,
    },
    /// A value that loads and cannot do what was meant.
    Ineffective,
    /// A combination that weakens the guard.
    Posture,
}

/// Something that loads but that the operator should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// What it is about.
    pub concern: Concern,
    /// Where it is.
    pub place: Place,
    /// The keys concerned.
    pub keys: Vec<String>,
    /// One sentence.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if let [key] = self.keys.as_slice() {
            write!(f, "{key}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// Every reason why a configuration cannot be used, found in one pass.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", self.lines().join("\n"))]
pub struct ConfigErrors {
    /// At least one.
    pub problems: Vec<Problem>,
    /// What else was noticed on the way.
    pub warnings: Vec<Warning>,
    /// The configuration itself, when every problem is that it would leave the service open: to be
    /// examined, never to be served.
    pub exposed: Option<Box<Loaded>>,
}

impl ConfigErrors {
    pub(crate) fn new(problems: Vec<Problem>, warnings: Vec<Warning>) -> Self {
        Self { problems, warnings, exposed: None }
    }

    pub(crate) fn one(place: Place, key: Option<&str>, reason: impl Into<String>) -> Self {
        let problem = Problem { place, key: key.map(str::to_owned), reason: reason.into() };
        Self::new(vec![problem], Vec::new())
    }

    /// One line per problem, as standard error shows them after the program's own prefix.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.problems.iter().map(|problem| format!("config error: {problem}")).collect()
    }
}

/// `text` with everything that is invisible or not printable escaped.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unprintable(c) || is_invisible(c) {
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

/// `text`, or what may be shown of it when it is a URL.
///
/// A URL loses user information, query and fragment; what only half looks like one is masked,
/// because credentials hide in exactly those.
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

/// A key as found in a file, ready for a message.
///
/// A missing blank (`password_hash:"…"`) turns a value into a part of the key, so only what can
/// be a name is repeated.
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
