//! Applies what the file sets.

use super::draft::{Draft, with_value};
use crate::nearest::nearest;
use crate::report::{ConfigErrors, Location, WarningKind, shown_key, shown_project};
use crate::schema::{self, Kind, Leaf, SECURITY_SECTIONS};
use crate::setting::{Setting, Source};
use crate::table;
use crate::tree::{self, Body, Duplicate, Entry, Node};
use crate::value::{self, Value};
use rustix::fs::{Mode, OFlags, open};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use svc_shared::ids::ProjectName;

/// Largest file that is read: 1 MiB, far above every real configuration.
const LARGEST_FILE: u64 = 1024 * 1024;

/// Most suggestions per file.
///
/// Each costs a comparison with every sibling.
const MOST_SUGGESTIONS: usize = 100;

/// Reads the file, within its size limit.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, ConfigErrors> {
    let failed =
        |reason: String| Err(ConfigErrors::one(Location::File(path.to_path_buf()), None, reason));
    let mut bytes = Vec::new();
    // A pipe without a writer would be waited for. What is found at the start is looked at before;
    // an editor of a running service comes here straight away.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = open(path, flags, Mode::empty()).map(std::fs::File::from);
    let opened =
        opened.map_err(std::io::Error::from).and_then(|file| match file.metadata()?.is_file() {
            true => file.take(LARGEST_FILE + 1).read_to_end(&mut bytes),
            false => Err(std::io::Error::other("it is not a regular file")),
        });
    match opened {
        Err(error) => failed(format!("cannot be read ({error}); make it readable for this user")),
        Ok(_) if bytes.len() as u64 > LARGEST_FILE => {
            failed("is larger than 1 MiB; is this the right file?".to_owned())
        }
        Ok(_) => Ok(bytes),
    }
}

impl Draft {
    /// Applies everything that the file sets.
    ///
    /// Fails only when the text as a whole cannot be read; all other problems are collected.
    pub(super) fn apply_file(&mut self, bytes: &[u8]) -> Result<(), ConfigErrors> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let Ok(text) = std::str::from_utf8(bytes) else {
            let valid = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
            let line = valid.matches('\n').count() + 1;
            let reason = "is not UTF-8; save it as UTF-8";
            return Err(ConfigErrors::one(self.line(line), None, reason));
        };
        let document = tree::read(text).map_err(|error| {
            let column = error.column.map_or(String::new(), |column| format!(" (column {column})"));
            let reason = format!("{}{column}", error.reason);
            ConfigErrors::one(self.line(error.line), None, reason)
        })?;
        for duplicate in &document.duplicates {
            self.report_duplicate(duplicate);
        }
        match document.root.as_deref() {
            None => Ok(()),
            Some(root) if root.is_null() => Ok(()),
            Some(Node { body: Body::Map(entries), .. }) => {
                self.apply_section("", entries);
                Ok(())
            }
            Some(root) => {
                let reason = "must be a mapping of keys and values";
                Err(ConfigErrors::one(self.line(root.line), None, reason))
            }
        }
    }

    fn report_duplicate(&mut self, duplicate: &Duplicate) {
        let mut key = String::new();
        for segment in &duplicate.path {
            if !key.is_empty() {
                key.push('.');
            }
            key.push_str(&shown_key(segment));
            // The names below a secret may contain the secret.
            if table::leaf(&key).is_some_and(|leaf| leaf.secret && leaf.key != "claude.env") {
                break;
            }
        }
        let Duplicate { first, second, .. } = duplicate;
        let reason = format!(
            "is set twice, in lines {first} and {second}; one would silently win, so keep one"
        );
        self.problem(self.line(*second), key, reason);
    }

    fn apply_section(&mut self, section: &str, entries: &[Entry]) {
        for entry in entries {
            if section.is_empty() && entry.key.starts_with("x-") {
                continue;
            }
            let key = if section.is_empty() {
                entry.key.to_string()
            } else {
                format!("{section}.{}", entry.key)
            };
            if key == schema::PROJECTS {
                self.apply_projects(entry);
            } else if let Some(leaf) = table::leaf(&key) {
                if let Some(setting) = self.read_leaf(leaf, leaf.key, entry) {
                    self.settings.insert(leaf.key, setting);
                }
            } else if table::is_section(&key) {
                self.apply_subsection(&key, entry);
            } else if !self.apply_old_key(&key, entry) {
                self.report_unknown(section, entry);
            }
        }
    }

    fn apply_subsection(&mut self, key: &str, entry: &Entry) {
        self.sections.insert(key.to_owned());
        match &entry.value.body {
            Body::Map(entries) => self.apply_section(key, entries),
            _ if entry.value.is_null() => self.warn_empty(key, entry),
            Body::Scalar(_) | Body::List(_) => {
                let reason = "must be a mapping of keys and values, indented below it";
                self.problem(self.line(entry.line), key, reason);
            }
        }
    }

    fn warn_empty(&mut self, key: &str, entry: &Entry) {
        let message = "has nothing below it and is read as an empty section";
        self.warn(WarningKind::EmptySection, self.line(entry.line), key, message);
    }

    /// Applies a key of an earlier version. False when `key` is none.
    fn apply_old_key(&mut self, key: &str, entry: &Entry) -> bool {
        match key {
            "claude.resume_mode" => {
                if let Some(leaf) = table::leaf("claude.launch_mode") {
                    self.old_launch_mode = self.read_leaf(leaf, key, entry);
                }
                let message = "is an old name; use claude.launch_mode";
                self.warn(WarningKind::Deprecated, self.line(entry.line), key, message);
                true
            }
            "database_url" => {
                self.database_url.push(self.line(entry.line));
                true
            }
            _ => false,
        }
    }

    fn report_unknown(&mut self, section: &str, entry: &Entry) {
        let suggested = self
            .warnings
            .iter()
            .filter(|warning| matches!(warning.kind, WarningKind::UnknownKey { .. }))
            .count();
        let meant = if suggested < MOST_SUGGESTIONS { suggest(section, &entry.key) } else { None };
        let shown = shown_key(&entry.key);
        let key = if section.is_empty() { shown } else { format!("{section}.{shown}") };
        self.unknown(key, entry.line, section, meant);
    }

    fn unknown(&mut self, key: String, line: usize, section: &str, meant: Option<String>) {
        let is_guarded = |path: &str| {
            path.split('.').next().is_some_and(|first| SECURITY_SECTIONS.contains(&first))
        };
        let is_security = is_guarded(section) || meant.as_deref().is_some_and(is_guarded);
        let message = match &meant {
            Some(meant) => format!("is not a known key and has no effect; did you mean {meant}?"),
            None => "is not a known key and has no effect".to_owned(),
        };
        let kind = WarningKind::UnknownKey { nearest: meant, is_security };
        self.warn(kind, self.line(line), key, message);
    }

    fn apply_projects(&mut self, entry: &Entry) {
        let projects = match &entry.value.body {
            Body::Map(projects) => projects,
            _ if entry.value.is_null() => return self.warn_empty(schema::PROJECTS, entry),
            Body::Scalar(_) | Body::List(_) => {
                let reason = "must be a mapping of project names";
                return self.problem(self.line(entry.line), schema::PROJECTS, reason);
            }
        };
        for project in projects {
            let key = format!("{}.{}", schema::PROJECTS, shown_project(&project.key));
            let Ok(name) = project.key.parse::<ProjectName>() else {
                let message = "can never be the name of a project, so it has no effect";
                self.warn(WarningKind::UnknownProject, self.line(project.line), key, message);
                continue;
            };
            self.projects.entry(name.clone()).or_default();
            match &project.value.body {
                Body::Map(entries) => self.apply_project(&name, &key, entries),
                _ if project.value.is_null() => self.warn_empty(&key, project),
                Body::Scalar(_) | Body::List(_) => {
                    let reason = "must be a mapping of keys and values";
                    self.problem(self.line(project.line), key, reason);
                }
            }
        }
    }

    fn apply_project(&mut self, name: &ProjectName, key: &str, entries: &[Entry]) {
        for entry in entries {
            let leaf = table::project_leaves().find(|leaf| leaf.name() == &*entry.key);
            let Some(leaf) = leaf else {
                let names = table::project_leaves().map(Leaf::name);
                let meant = nearest(&entry.key, names).map(|meant| format!("{key}.{meant}"));
                let unknown = format!("{key}.{}", shown_key(&entry.key));
                self.unknown(unknown, entry.line, schema::PROJECTS, meant);
                continue;
            };
            let setting = self.read_leaf(leaf, &format!("{key}.{}", leaf.name()), entry);
            if let Some(setting) = setting
                && let Some(settings) = self.projects.get_mut(name)
            {
                settings.insert(leaf.key, setting);
            }
        }
    }

    /// The value of a key; none when it has a problem, which is recorded.
    fn read_leaf(&mut self, leaf: &'static Leaf, key: &str, entry: &Entry) -> Option<Setting> {
        match self.value_of(leaf, &entry.value) {
            Ok(value) => Some(Setting { value, source: Source::File { line: entry.line } }),
            Err(Rejected { below, reason }) => {
                let key = below.map_or(key.to_owned(), |below| format!("{key}.{below}"));
                self.reject(leaf, self.line(entry.line), key, reason);
                None
            }
        }
    }

    fn value_of(&self, leaf: &Leaf, node: &Node) -> Result<Value, Rejected> {
        if node.is_null() {
            return null_of(leaf);
        }
        match (leaf.kind, &node.body) {
            (Kind::List(rule), Body::List(items)) => {
                let texts = items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| match &item.body {
                        Body::Scalar(scalar) if !scalar.is_null() => Ok(scalar.text.to_string()),
                        _ => Err(Rejected::new(format!(
                            "must be a list of texts, which entry {} is not",
                            index + 1
                        ))),
                    })
                    .collect::<Result<Vec<_>, _>>()?;
                value::list(rule, &texts, &self.roots).map_err(|(position, reason)| {
                    let raw = texts.get(position - 1).map_or("", String::as_str);
                    Rejected::new(with_value(leaf, &format!("entry {position} {reason}"), raw))
                })
            }
            (Kind::TextMap, Body::Map(entries)) => text_map(entries),
            (Kind::Switches(known), Body::Map(entries)) => switches(known, entries),
            (_, Body::Scalar(scalar)) => value::from_text(leaf, &scalar.text, &self.roots)
                .map_err(|reason| Rejected::new(with_value(leaf, &reason, &scalar.text))),
            (_, found @ (Body::List(_) | Body::Map(_))) => {
                Err(Rejected::new(misshapen(leaf, found)))
            }
        }
    }
}

/// Why a value was refused, and the name below its key when it is a map.
struct Rejected {
    below: Option<String>,
    reason: String,
}

impl Rejected {
    fn new(reason: impl Into<String>) -> Self {
        Self { below: None, reason: reason.into() }
    }

    fn below(name: &str, reason: impl Into<String>) -> Self {
        Self { below: Some(shown_key(name)), reason: reason.into() }
    }
}

fn null_of(leaf: &Leaf) -> Result<Value, Rejected> {
    match leaf.kind {
        Kind::List(_) => Ok(Value::List(Vec::new())),
        Kind::TextMap | Kind::Switches(_) => {
            Value::preset(leaf.preset).ok_or_else(|| Rejected::new("must be a mapping"))
        }
        _ if leaf.nullable => Ok(Value::Null),
        Kind::Path | Kind::Program => Err(Rejected::new(
            "is null, as an empty value and a lone ~ are; write a path, \"~\" in quotes for the home \
             directory",
        )),
        _ => Err(Rejected::new("is null; write a value, or remove the key for the default")),
    }
}

fn misshapen(leaf: &Leaf, found: &Body) -> String {
    let found = match found {
        Body::List(_) => "a list",
        Body::Map(_) => "a mapping",
        Body::Scalar(_) => "a single value",
    };
    let wanted = match leaf.kind {
        Kind::List(_) => "a list",
        Kind::TextMap | Kind::Switches(_) => "a mapping of names and values",
        _ => "a single value",
    };
    format!("must be {wanted}, not {found}")
}

fn text_map(entries: &[Entry]) -> Result<Value, Rejected> {
    let mut map = BTreeMap::new();
    for entry in entries {
        let Body::Scalar(scalar) = &entry.value.body else {
            return Err(Rejected::below(&entry.key, "must be a text"));
        };
        if scalar.is_null() {
            return Err(Rejected::below(&entry.key, "is null; write \"\" for an empty text"));
        }
        if entry.key.is_empty() || entry.key.contains(['=', '\0']) {
            return Err(Rejected::below(&entry.key, "is no name a variable can have"));
        }
        if scalar.text.contains('\0') {
            return Err(Rejected::below(&entry.key, "contains a NUL character"));
        }
        map.insert(entry.key.to_string(), scalar.text.to_string());
    }
    Ok(Value::Map(map))
}

fn switches(known: &[(&str, bool)], entries: &[Entry]) -> Result<Value, Rejected> {
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    let mut states: BTreeMap<String, bool> =
        known.iter().map(|(name, state)| ((*name).to_owned(), *state)).collect();
    for entry in entries {
        let Some(state) = states.get_mut(&*entry.key) else {
            let reason = format!("is no known event; use {}", names.join(", "));
            return Err(Rejected::below(&entry.key, reason));
        };
        let Body::Scalar(scalar) = &entry.value.body else {
            return Err(Rejected::below(&entry.key, "must be true or false"));
        };
        *state =
            value::switch(&scalar.text).map_err(|reason| Rejected::below(&entry.key, reason))?;
    }
    Ok(Value::Switches(states))
}

/// The key that an unknown key probably means.
///
/// A sibling with a similar name, else a key with the same name in another section.
fn suggest(section: &str, name: &str) -> Option<String> {
    if let Some(sibling) = nearest(name, table::children(section)) {
        let is_root = section.is_empty();
        return Some(if is_root { sibling.to_owned() } else { format!("{section}.{sibling}") });
    }
    table::leaves()
        .find(|leaf| leaf.name() == name && !leaf.is_per_project())
        .map(|leaf| leaf.key.to_owned())
}
