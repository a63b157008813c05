//! Identifiers. Each has one checked constructor; no raw string stands for an id.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::text::is_unprintable;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $error:ident, $format:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = $error;
            fn from_str(raw: &str) -> Result<Self, $error> {
                let check: fn(&str) -> Result<(), $error> = $check;
                check(raw)?;
                Ok(Self(raw.into()))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let raw = String::deserialize(from)?;
                raw.parse().map_err(de::Error::custom)
            }
        }

        #[cfg(feature = "openapi")]
        crate::text::string_schema!($name, "string", $format);
    };
}

/// Why a text is not an instance id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an instance id: use a lower-case UUID")]
pub struct BadInstanceId;

/// Why a text is not a reference token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a reference: use 16 lower-case hexadecimal digits")]
pub struct BadRef;

/// Why a text is not the id of a background job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a job id: use 8 lower-case hexadecimal digits")]
pub struct BadJobId;

/// Why a name is not a project name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadProjectName {
    /// Nothing at all.
    #[error("a project name is never empty")]
    Empty,
    /// Over 255 bytes.
    #[error("a project name has at most 255 bytes")]
    TooLong,
    /// A separator, a leading `.`, a trailing `.` or blank.
    #[error(
        "a project name is one directory name: no `/` or `\\`, no leading `.`, no trailing `.` or blank"
    )]
    NotAComponent,
    /// A control, format or unassigned character.
    #[error("a project name has no control or invisible characters")]
    Unprintable,
    /// A device name of Windows, with or without extension.
    #[error("this project name is a reserved device name")]
    Reserved,
}

fn is_lower_hex(raw: &str, len: usize) -> bool {
    raw.len() == len && raw.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_lower_uuid(raw: &str) -> bool {
    raw.len() == 36
        && raw.bytes().enumerate().all(|(i, b)| match i {
            8 | 13 | 18 | 23 => b == b'-',
            _ => matches!(b, b'0'..=b'9' | b'a'..=b'f'),
        })
}

/// Device names of Windows; superscript digits count as digits there.
fn is_reserved_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end_matches(' ');
    let upper = stem.to_uppercase();
    if matches!(upper.as_str(), "CON" | "PRN" | "AUX" | "NUL") {
        return true;
    }
    let Some(rest) = upper.strip_prefix("COM").or_else(|| upper.strip_prefix("LPT")) else {
        return false;
    };
    let mut digits = rest.chars();
    matches!(
        (digits.next(), digits.next()),
        (Some('1'..='9' | '\u{b9}' | '\u{b2}' | '\u{b3}'), None)
    )
}

fn check_project_name(raw: &str) -> Result<(), BadProjectName> {
    if raw.is_empty() {
        return Err(BadProjectName::Empty);
    }
    if raw.len() > 255 {
        return Err(BadProjectName::TooLong);
    }
    let edge = raw.starts_with('.') || raw.ends_with(['.', ' ']);
    if edge || raw.contains(['/', '\\']) {
        return Err(BadProjectName::NotAComponent);
    }
    if raw.chars().any(is_unprintable) {
        return Err(BadProjectName::Unprintable);
    }
    if is_reserved_device(raw) {
        return Err(BadProjectName::Reserved);
    }
    Ok(())
}

id! {
    /// Id of one instance row, stable over stop and resume. A lower-case UUID.
    InstanceId, BadInstanceId, "uuid",
    |raw| is_lower_uuid(raw).then_some(()).ok_or(BadInstanceId)
}

id! {
    /// Name of a directory directly under `projects_root`, byte for byte.
    ///
    /// One safe path component by the rule of `http-api` §0.5.
    ProjectName, BadProjectName, "project-name",
    check_project_name
}

id! {
    /// A correlation token in the place of a raw session or environment id.
    ///
    /// 16 lower-case hex digits, not reversible, equal for equal raw ids of one installation.
    SessionRef, BadRef, "ref",
    |raw| is_lower_hex(raw, 16).then_some(()).ok_or(BadRef)
}

id! {
    /// Id of a background job: 8 lower-case hex digits, from the agent (2.1.197).
    JobId, BadJobId, "job",
    |raw| is_lower_hex(raw, 8).then_some(()).ok_or(BadJobId)
}

impl InstanceId {
    /// The first 8 characters, as tables print them.
    #[must_use]
    pub fn short(&self) -> &str {
        self.0.get(..8).unwrap_or(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ordinary_directory_names_are_project_names() {
        for name in [
            "api",
            "has.dot",
            "has space",
            "übung",
            "ａ",
            "a",
            "-leading-dash",
            "console",
            "com",
            "com10",
            "lpt0",
            &"x".repeat(65),
            &"x".repeat(255),
        ] {
            assert!(name.parse::<ProjectName>().is_ok(), "{name}");
        }
    }

    #[test]
    fn h37_unsafe_directory_names_are_not_project_names() {
        for (name, why) in [
            ("", BadProjectName::Empty),
            (".", BadProjectName::NotAComponent),
            ("..", BadProjectName::NotAComponent),
            (".hidden", BadProjectName::NotAComponent),
            ("a/b", BadProjectName::NotAComponent),
            ("a\\b", BadProjectName::NotAComponent),
            ("a ", BadProjectName::NotAComponent),
            ("a.", BadProjectName::NotAComponent),
            ("a\u{0}", BadProjectName::Unprintable),
            ("a\u{7f}", BadProjectName::Unprintable),
            ("a\u{202e}b", BadProjectName::Unprintable),
            ("a\u{2029}b", BadProjectName::Unprintable),
            ("CON", BadProjectName::Reserved),
            ("nul", BadProjectName::Reserved),
            ("Aux.txt", BadProjectName::Reserved),
            ("com1", BadProjectName::Reserved),
            ("LPT\u{b2}", BadProjectName::Reserved),
        ] {
            assert_eq!(name.parse::<ProjectName>(), Err(why), "{name:?}");
        }
        assert_eq!("x".repeat(256).parse::<ProjectName>(), Err(BadProjectName::TooLong));
    }

    #[test]
    fn an_instance_id_is_a_lower_case_uuid() {
        let id = "3a375c2e-0a3b-4c5d-8e9f-001122334455";
        assert_eq!(id.parse::<InstanceId>().unwrap().short(), "3a375c2e");
        for bad in ["", "3A375C2E-0a3b-4c5d-8e9f-001122334455", "3a375c2e", "../../etc/passwd"] {
            assert_eq!(bad.parse::<InstanceId>(), Err(BadInstanceId), "{bad}");
        }
    }

    #[test]
    fn a_job_id_is_eight_lower_case_hexadecimal_digits() {
        assert!("450f4654".parse::<JobId>().is_ok());
        for bad in ["", "450F4654", "450f465", "450f46540", "../../ab", "450f465\u{0}"] {
            assert_eq!(bad.parse::<JobId>(), Err(BadJobId), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn h37_a_project_name_never_leaves_its_directory(raw in ".*") {
            if let Ok(name) = raw.parse::<ProjectName>() {
                let path = std::path::Path::new("/root").join(name.as_str());
                prop_assert_eq!(path.parent(), Some(std::path::Path::new("/root")));
            }
        }
    }
}
