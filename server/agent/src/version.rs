//! Versions of the agent CLI: parsing, order, and that of a running process.

use std::cmp::Ordering;
use std::fmt;
use std::path::{Component, Path};
use std::str::FromStr;

/// A version as `--version` prints it: one to four numbers, then an optional part.
/// The part begins with `-` or `+`.
///
/// Missing numbers count as zero, so `2.1` equals `2.1.0.0`; `-x` sorts below its release, `+x` is
/// only a label.
#[derive(Debug, Clone)]
pub struct AgentVersion {
    numbers: [u64; 4],
    pre_release: Option<String>,
    text: String,
}

/// Why a text is not a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a version: expected one to four numbers with dots, such as 2.1.197")]
pub struct BadVersion;

impl AgentVersion {
    /// The text it was read from.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The version in what `--version` printed: its first word.
    /// Agent 2.1.197 prints `2.1.197 (Claude Code)`.
    ///
    /// # Errors
    /// The first word is missing or not a version.
    pub fn from_output(stdout: &str) -> Result<Self, BadVersion> {
        stdout.split_whitespace().next().ok_or(BadVersion)?.parse()
    }

    /// The version in the path of a native installation: `…/claude/versions/<version>`.
    ///
    /// Other tools use the same layout (`nvm/versions/…`), so the folder must be `claude`.
    #[must_use]
    pub fn from_program(path: &Path) -> Option<Self> {
        let mut names = path.components().filter_map(|part| match part {
            Component::Normal(name) => name.to_str(),
            Component::Prefix(_)
            | Component::RootDir
            | Component::CurDir
            | Component::ParentDir => None,
        });
        let mut last = ("", "");
        names.find_map(|name| {
            let found = (last == ("claude", "versions"))
                .then(|| name.split(' ').next().unwrap_or(name).parse::<Self>().ok())
                .flatten()
                // One number alone is no release of the CLI.
                .filter(|version| version.text.contains('.'));
            last = (last.1, name);
            found
        })
    }
}

impl FromStr for AgentVersion {
    type Err = BadVersion;

    fn from_str(raw: &str) -> Result<Self, BadVersion> {
        let (release, rest) = match raw.find(['-', '+']) {
            Some(at) => raw.split_at(at),
            None => (raw, ""),
        };
        let mut numbers = [0; 4];
        let mut slots = numbers.iter_mut();
        for part in release.split('.') {
            let slot = slots.next().ok_or(BadVersion)?;
            if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
                return Err(BadVersion);
            }
            *slot = part.parse().map_err(|_| BadVersion)?;
        }
        let label = rest.get(1..).unwrap_or_default();
        let is_label = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-');
        if !rest.is_empty() && (label.is_empty() || !label.bytes().all(is_label)) {
            return Err(BadVersion);
        }
        Ok(Self {
            numbers,
            pre_release: rest.starts_with('-').then(|| label.to_owned()),
            text: raw.to_owned(),
        })
    }
}

impl fmt::Display for AgentVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl Ord for AgentVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| {
            match (&self.pre_release, &other.pre_release) {
                (None, None) => Ordering::Equal,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(own), Some(others)) => pre_release_order(own, others),
            }
        })
    }
}

/// Compares part by part: numbers by value, and numbers below words.
fn pre_release_order(own: &str, other: &str) -> Ordering {
    let key = |part: &str| match part.parse::<u64>() {
        Ok(number) => (false, number, String::new()),
        Err(_) => (true, 0, part.to_owned()),
    };
    own.split('.').map(key).cmp(other.split('.').map(key))
}

impl PartialOrd for AgentVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for AgentVersion {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for AgentVersion {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn version(raw: &str) -> AgentVersion {
        raw.parse().unwrap_or_else(|_| panic!("{raw}"))
    }

    #[test]
    fn versions_are_ordered_by_number_and_pre_releases_come_first() {
        let ascending = [
            "2",
            "2.1.9",
            "2.1.145",
            "2.1.197-alpha",
            "2.1.197-beta.2",
            "2.1.197-beta.11",
            "2.1.197",
            "2.1.197.1",
            "2.2",
            "10.0.0",
        ];
        for pair in ascending.windows(2) {
            assert!(version(pair[0]) < version(pair[1]), "{pair:?}");
        }
        assert_eq!(version("2"), version("2.0.0"));
        assert_eq!(version("2.1.197+build.5"), version("2.1.197"));
    }

    #[test]
    fn other_texts_are_no_versions() {
        for raw in [
            "",
            "v2.1",
            "2.",
            ".2",
            "2.1.1.1.1",
            "2.1-",
            "2.1+",
            "2.1-a b",
            "2.x",
            "-1",
            "2.1-é",
            "99999999999999999999999",
        ] {
            assert!(raw.parse::<AgentVersion>().is_err(), "{raw}");
        }
    }

    #[test]
    fn the_first_word_of_the_output_is_the_version() {
        let printed = AgentVersion::from_output("2.1.197 (Claude Code)\n").unwrap();
        assert_eq!(printed.as_str(), "2.1.197");
        for output in ["", " \n", "Claude Code 2.1.197", "error: 5"] {
            assert!(AgentVersion::from_output(output).is_err(), "{output:?}");
        }
    }

    #[test]
    fn only_the_agents_own_install_layout_shows_a_version() {
        let check = |path: &str, expected: Option<&str>| {
            let found = AgentVersion::from_program(Path::new(path));
            assert_eq!(found.as_ref().map(AgentVersion::as_str), expected, "{path}");
        };
        check("/home/u/.local/share/claude/versions/2.1.197", Some("2.1.197"));
        check("/home/u/.local/share/claude/versions/2.1.197 (deleted)", Some("2.1.197"));
        check("/opt/claude/versions/2.1.197/claude", Some("2.1.197"));
        check("/home/u/.nvm/versions/node/v20.1.0/bin/node", None);
        check("/home/u/.pyenv/versions/3.12.1/bin/python", None);
        check("/home/u/claude/versions/latest", None);
        check("/home/u/claude/versions/2", None);
        check("/usr/bin/claude", None);
    }

    fn any_version() -> impl Strategy<Value = AgentVersion> {
        "[0-9]{1,2}(\\.[0-9]{1,2}){0,3}([-+][0-9a-b.-]{1,4})?".prop_map(|raw| version(&raw))
    }

    proptest! {
        #[test]
        fn the_order_of_versions_is_total(
            a in any_version(), b in any_version(), c in any_version(),
        ) {
            prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
            prop_assert_eq!(a.cmp(&b) == Ordering::Equal, a == b);
            if a <= b && b <= c {
                prop_assert!(a <= c, "{} {} {}", a, b, c);
            }
        }

        #[test]
        fn what_is_read_as_a_version_is_shown_as_it_was_written(raw in "\\PC{0,12}|[0-9.+-]{0,9}") {
            if let Ok(found) = raw.parse::<AgentVersion>() {
                prop_assert_eq!(found.as_str(), raw.as_str());
                prop_assert!(raw.is_ascii());
            }
            let _ = AgentVersion::from_output(&raw);
            let _ = AgentVersion::from_program(Path::new(&format!("/claude/versions/{raw}")));
        }
    }
}
