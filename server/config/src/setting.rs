//! The value of a configuration key and where the value comes from.

use crate::value::Value;
use std::collections::BTreeMap;
use std::fmt;
use svc_shared::ids::ProjectName;

/// Where the value of a key comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The default: nothing sets the key.
    Default,
    /// The file.
    File {
        /// Line of the key, from 1.
        line: usize,
    },
    /// The environment.
    Env {
        /// Name of the variable that decided.
        name: String,
    },
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { line } => write!(f, "file:{line}"),
            Self::Env { name } => write!(f, "env:{name}"),
        }
    }
}

/// The value of a key and its source.
#[derive(Clone)]
pub(crate) struct Setting {
    pub(crate) value: Value,
    pub(crate) source: Source,
}

pub(crate) type Settings = BTreeMap<&'static str, Setting>;
pub(crate) type ProjectSettings = BTreeMap<ProjectName, Settings>;
