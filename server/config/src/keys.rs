//! How a key of the configuration is defined: once, as a field of a section.
//!
//! `section!` makes of one definition the field that the service reads, the row of the table in
//! [`crate::table`] (loading, environment, JSON Schema, manual and `config show` follow it) and
//! the step from a checked value to the field's type.

use crate::schema::{Kind, Leaf};
use crate::setting::{ProjectSettings, Settings};
use crate::value::Value;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use svc_shared::ids::ProjectName;

/// Defines a section: its type, and of every field the key behind it.
///
/// A key reads: meaning (the first line is shown to people), field, key where it is named
/// otherwise, type, kind, default; editor, apply class and marks. After `sections:` come the
/// sections in it, after `besides:` fields that are no keys.
macro_rules! section {
    (
        $(#[$meta:meta])*
        $name:ident $prefix:literal {
            $(
                #[doc = $about:literal] $(#[doc = $more:literal])*
                $field:ident $(as $key:literal)?: $type:ty = $kind:expr => $preset:expr,
                $edit:ident $apply:ident $($mark:ident)*;
            )*
            $(sections: $(#[doc = $sub_about:literal] $sub:ident: $sub_type:ty,)*)?
            $(besides: $($(#[doc = $extra_about:literal])* $extra:ident: $extra_type:ty,)*)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $(#[doc = $about] $(#[doc = $more])* pub $field: $type,)*
            $($(#[doc = $sub_about] pub $sub: $sub_type,)*)?
            $($($(#[doc = $extra_about])* pub $extra: $extra_type,)*)?
        }

        impl $crate::keys::Section for $name {
            const PREFIX: &'static str = $prefix;

            const KEYS: &'static [$crate::schema::Leaf] = &[$(
                $crate::schema::Leaf::new(
                    $crate::keys::key!($prefix, $field $(, $key)?),
                    $kind,
                    $preset,
                    $crate::schema::Edit::$edit,
                    $crate::schema::Apply::$apply,
                    $about,
                )$(.$mark())*
            ),*];

            fn list(keys: &mut Vec<&'static $crate::schema::Leaf>) {
                keys.extend(Self::KEYS);
                $($(<$sub_type as $crate::keys::Section>::list(keys);)*)?
            }

            fn read(values: &$crate::keys::Values<'_>) -> Option<Self> {
                Some(Self {
                    $($field: values.get(Self::KEYS, $crate::keys::key!($prefix, $field $(, $key)?))?,)*
                    $($($sub: $crate::keys::Section::read(values)?,)*)?
                    $($($extra: Default::default(),)*)?
                })
            }

            fn with_live_of(&self, newer: &Self) -> Self {
                let _ = newer; // of a section whose keys all wait for a restart
                Self {
                    $($field: $crate::keys::in_force!($apply self newer).$field.clone(),)*
                    $($($sub: $crate::keys::Section::with_live_of(&self.$sub, &newer.$sub),)*)?
                    $($($extra: self.$extra.clone(),)*)?
                }
            }
        }
    };
}

/// Whose value of a key is in force while the service runs.
macro_rules! in_force {
    (Restart $old:ident $newer:ident) => {
        $old
    };
    ($apply:ident $old:ident $newer:ident) => {
        $newer
    };
}

/// Dotted path of a field.
macro_rules! key {
    ($prefix:literal, $field:ident) => {
        concat!($prefix, stringify!($field))
    };
    ($prefix:literal, $field:ident, $key:literal) => {
        concat!($prefix, $key)
    };
}

/// Defines an enumeration together with the words of the file.
macro_rules! choice {
    ($(#[$meta:meta])* $name:ident { $($(#[$about:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
        pub enum $name {
            $($(#[$about])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// The words of the file, in the order of the variants.
            const WORDS: &[&str] = &[$($word),+];
        }
    };
}

pub(crate) use {choice, in_force, key, section};

/// A part of the configuration.
pub(crate) trait Section: Sized {
    /// What stands before its keys: nothing, or the section and a dot.
    const PREFIX: &'static str;

    /// Its own keys, without those of the sections in it.
    const KEYS: &'static [Leaf];

    /// Adds its keys, those of the sections in it last.
    fn list(keys: &mut Vec<&'static Leaf>);

    /// The section from checked values.
    ///
    /// None when the type of a field cannot hold the values of its kind.
    fn read(values: &Values<'_>) -> Option<Self>;

    /// These values, with those of `newer` that need no restart.
    fn with_live_of(&self, newer: &Self) -> Self;
}

/// A section that is off as long as nothing of it is written anywhere.
impl<S: Section> Section for Option<S> {
    const PREFIX: &'static str = S::PREFIX;
    const KEYS: &'static [Leaf] = S::KEYS;

    fn list(keys: &mut Vec<&'static Leaf>) {
        S::list(keys);
    }

    fn read(values: &Values<'_>) -> Option<Self> {
        let is_written = values.written.contains(S::PREFIX.trim_end_matches('.'));
        if is_written { S::read(values).map(Some) } else { Some(None) }
    }

    /// Whether there is a section at all is settled at the start.
    fn with_live_of(&self, newer: &Self) -> Self {
        match (self, newer) {
            (Some(old), Some(newer)) => Some(old.with_live_of(newer)),
            (old, _) => old.as_ref().map(|old| old.with_live_of(old)),
        }
    }
}

/// A section that exists once per project.
impl<S: Section> Section for BTreeMap<ProjectName, S> {
    const PREFIX: &'static str = S::PREFIX;
    const KEYS: &'static [Leaf] = S::KEYS;

    fn list(keys: &mut Vec<&'static Leaf>) {
        S::list(keys);
    }

    fn read(values: &Values<'_>) -> Option<Self> {
        let one = |(name, settings): (&ProjectName, _)| {
            Some((name.clone(), S::read(&Values { settings, ..*values })?))
        };
        values.projects.iter().map(one).collect()
    }

    /// Projects come and go with the file.
    fn with_live_of(&self, newer: &Self) -> Self {
        let one = |(name, newer): (&ProjectName, &S)| {
            let old = self.get(name).unwrap_or(newer);
            (name.clone(), old.with_live_of(newer))
        };
        newer.iter().map(one).collect()
    }
}

/// Checked values of all keys.
#[derive(Clone, Copy)]
pub(crate) struct Values<'a> {
    /// What is set; a key that is absent has its default.
    pub(crate) settings: &'a Settings,
    /// The same for every project that the file names.
    pub(crate) projects: &'a ProjectSettings,
    /// Sections of which something is written.
    pub(crate) written: &'a BTreeSet<String>,
}

impl Values<'_> {
    /// The value of one of `keys` as the type of its field.
    pub(crate) fn get<T: DeserializeOwned>(&self, keys: &[Leaf], key: &str) -> Option<T> {
        let leaf = keys.iter().find(|leaf| leaf.key == key)?;
        let json = match self.settings.get(key) {
            Some(setting) => setting.value.to_json(),
            None => Value::preset(leaf.preset)?.to_json(),
        };
        let json = match (leaf.kind, json.as_f64()) {
            (Kind::Seconds { .. }, Some(seconds)) => {
                serde_json::to_value(Duration::try_from_secs_f64(seconds).ok()?).ok()?
            }
            _ => json,
        };
        serde_json::from_value(json).ok()
    }
}

/// The words in which definitions state kinds and defaults.
pub(crate) mod terms {
    use crate::schema::{ItemRule, Kind, Preset, Range, TextRule};

    pub(crate) const BOOL: Kind = Kind::Bool;
    pub(crate) const PATH: Kind = Kind::Path;
    pub(crate) const PROGRAM: Kind = Kind::Program;
    pub(crate) const LINE: Kind = Kind::Text(TextRule::Any);

    pub(crate) const ON: Preset = Preset::Bool(true);
    pub(crate) const OFF: Preset = Preset::Bool(false);
    pub(crate) const NULL: Preset = Preset::Null;
    pub(crate) const EMPTY: Preset = Preset::List(&[]);

    /// A century: long enough for every purpose, short enough that no clock overflows.
    const LONGEST_SECONDS: f64 = 3_155_760_000.0;

    pub(crate) const fn int(min: i64) -> Kind {
        Kind::Int { min, max: u32::MAX as i64 }
    }

    pub(crate) const fn int_between(min: i64, max: i64) -> Kind {
        Kind::Int { min, max }
    }

    pub(crate) const fn seconds(range: Range) -> Kind {
        let max = if range.max < LONGEST_SECONDS { range.max } else { LONGEST_SECONDS };
        Kind::Seconds { whole: false, range: range.up_to(max) }
    }

    pub(crate) const fn whole_seconds(min: f64) -> Kind {
        Kind::Seconds { whole: true, range: Range::at_least(min).up_to(LONGEST_SECONDS) }
    }

    pub(crate) const fn float(range: Range) -> Kind {
        Kind::Float(range)
    }

    pub(crate) const fn text(rule: TextRule) -> Kind {
        Kind::Text(rule)
    }

    pub(crate) const fn list(rule: ItemRule) -> Kind {
        Kind::List(rule)
    }

    pub(crate) const fn one_of(words: &'static [&'static str]) -> Kind {
        Kind::Choice { words, fold: false }
    }

    pub(crate) const fn is(text: &'static str) -> Preset {
        Preset::Text(text)
    }

    pub(crate) const fn num(value: i64) -> Preset {
        Preset::Int(value)
    }

    pub(crate) const fn real(value: f64) -> Preset {
        Preset::Float(value)
    }
}
