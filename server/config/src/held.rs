//! The configuration as the service holds it: replaced while others read it.

use crate::config::ConfigValues;
use append_only_vec::AppendOnlyVec;
use std::fmt;
use std::ops::Deref;

/// Most values that replace others while a service runs.
///
/// Earlier values stay in memory, because somebody may read them.
pub(crate) const MOST: usize = 1000;

/// The configuration: read as the values of now, replaced as a whole.
pub struct Config {
    first: ConfigValues,
    later: AppendOnlyVec<ConfigValues>,
}

impl Config {
    /// A configuration that has these values.
    #[must_use]
    pub fn new(values: ConfigValues) -> Self {
        Self { first: values, later: AppendOnlyVec::new() }
    }

    /// Replaces the values for everybody who reads from now on.
    pub(crate) fn replace(&self, values: ConfigValues) {
        self.later.push(values);
    }

    /// Whether values can still be replaced; otherwise only a restart does.
    pub(crate) fn has_room(&self) -> bool {
        self.later.len() < MOST
    }
}

impl Deref for Config {
    type Target = ConfigValues;

    fn deref(&self) -> &ConfigValues {
        self.later.iter().next_back().unwrap_or(&self.first)
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl PartialEq for Config {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}
