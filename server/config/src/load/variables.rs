//! Applies what the environment sets.

use super::draft::{Draft, with_value};
use crate::environment::Environment;
use crate::nearest::nearest;
use crate::report::{Location, WarningKind, printable, shown_key};
use crate::schema::{Kind, Leaf};
use crate::secret::Secret;
use crate::setting::{Setting, Source};
use crate::table;
use crate::value::{self, Value};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Read as _;
use std::path::Path;

/// Largest file a `_FILE` variable may name.
const LARGEST_FILE: u64 = 64 * 1024;

/// Fewest bytes of the cookie-signing key.
const SHORTEST_SECRET: usize = 32;

const SESSION_SECRET: &str = "SVC_SESSION_SECRET";
const OLD_LAUNCH_MODE: &str = "SVC_CLAUDE_RESUME_MODE";
const DATABASE_URL: &str = "SVC_DATABASE_URL";

/// Variables with a meaning of their own, outside the key table.
const RESERVED: [&str; 9] = [
    "SVC_CONFIG",
    "SVC_HOME",
    SESSION_SECRET,
    "SVC_SESSION_SECRET_FILE",
    "SVC_SETUP_HOST",
    "SVC_SETUP_PORT",
    "SVC_RESUME_RECAP",
    "SVC_RESUME_RECAP_MAX_CHARS",
    "SVC_LAUNCH_ID",
];

/// What a variable means.
enum Meaning {
    Leaf(&'static Leaf),
    OldLaunchMode,
    Removed,
    FileOnly(&'static str),
    Reserved,
    Nothing,
}

/// A variable and its `_FILE` form.
#[derive(Default)]
struct VariablePair<'a> {
    plain: Option<(String, &'a OsStr)>,
    file: Option<(String, &'a OsStr)>,
}

impl<'a> VariablePair<'a> {
    fn note(&mut self, name: &str, value: &'a OsStr, is_file: bool) {
        let slot = if is_file { &mut self.file } else { &mut self.plain };
        *slot = Some((name.to_owned(), value));
    }
}

/// The text of a variable, and the name of that variable.
struct VariableText {
    name: String,
    text: String,
}

impl Draft {
    /// Applies everything that the environment sets; it wins over the file.
    pub(super) fn apply_variables(&mut self, environment: &Environment) {
        let names: BTreeMap<String, &'static Leaf> =
            table::leaves().filter_map(|leaf| Some((leaf.variable()?, leaf))).collect();
        let mut leaves: BTreeMap<&'static str, (&'static Leaf, VariablePair<'_>)> = BTreeMap::new();
        let mut old_launch_mode = VariablePair::default();
        for (name, value) in environment.service_variables() {
            let (meaning, is_file) = meaning(name, &names);
            match meaning {
                Meaning::Leaf(leaf) => {
                    let (_, pair) =
                        leaves.entry(leaf.key).or_insert((leaf, VariablePair::default()));
                    pair.note(name, value, is_file);
                }
                Meaning::OldLaunchMode => {
                    old_launch_mode.note(name, value, is_file);
                }
                Meaning::Removed => self.database_url.push(Location::Variable(name.to_owned())),
                Meaning::FileOnly(key) => self.warn_file_only(name, key),
                Meaning::Reserved => {}
                Meaning::Nothing => self.warn_unknown_variable(name, &names),
            }
        }
        self.apply_old_variable(&old_launch_mode, leaves.contains_key("claude.launch_mode"));
        for (leaf, pair) in leaves.into_values() {
            self.apply_leaf(leaf, &pair);
        }
    }

    fn apply_leaf(&mut self, leaf: &'static Leaf, pair: &VariablePair<'_>) {
        let Some(setting) = self.setting_of(leaf, pair) else { return };
        if let Some((section, _)) = leaf.key.rsplit_once('.') {
            self.sections.insert(section.to_owned());
        }
        // The variable wins over the file. A problem of the value in the file was reported
        // already, because it would appear again once the variable is removed.
        self.settings.insert(leaf.key, setting);
    }

    fn setting_of(&mut self, leaf: &'static Leaf, pair: &VariablePair<'_>) -> Option<Setting> {
        let given = match self.given(pair) {
            Ok(given) => given?,
            Err((name, reason)) => {
                self.reject(leaf, Location::Variable(name), leaf.key.to_owned(), reason);
                return None;
            }
        };
        match self.parse(leaf, &given.text) {
            Ok(value) => Some(Setting { value, source: Source::Env { name: given.name } }),
            Err(reason) => {
                self.reject(leaf, Location::Variable(given.name), leaf.key.to_owned(), reason);
                None
            }
        }
    }

    /// The text of a variable; its `_FILE` form wins unless it is blank.
    fn given(&self, pair: &VariablePair<'_>) -> Result<Option<VariableText>, (String, String)> {
        if let Some((name, path)) = &pair.file
            && !path.to_string_lossy().trim().is_empty()
        {
            let text = self.read_named_file(path).map_err(|reason| (name.clone(), reason))?;
            return Ok(Some(VariableText { name: name.clone(), text }));
        }
        let Some((name, value)) = &pair.plain else { return Ok(None) };
        match value.to_str() {
            Some(text) => Ok(Some(VariableText { name: name.clone(), text: text.to_owned() })),
            None => Err((name.clone(), "is not UTF-8".to_owned())),
        }
    }

    /// Content of the file that a `_FILE` variable names, without outer blanks.
    fn read_named_file(&self, path: &OsStr) -> Result<String, String> {
        let path = path.to_str().ok_or("names a path that is not UTF-8")?;
        let path = self.roots.resolve(path.trim())?;
        let shown = printable(&path);
        let path = Path::new(&path);
        // A pipe without a writer would block the start for ever.
        match std::fs::metadata(path) {
            Ok(metadata) if !metadata.is_file() => {
                return Err(format!("names {shown}, which is not a regular file"));
            }
            Ok(_) => {}
            Err(error) => return Err(format!("names {shown}, which cannot be read ({error})")),
        }
        let mut bytes = Vec::new();
        std::fs::File::open(path)
            .and_then(|file| file.take(LARGEST_FILE + 1).read_to_end(&mut bytes))
            .map_err(|error| format!("names {shown}, which cannot be read ({error})"))?;
        if bytes.len() as u64 > LARGEST_FILE {
            return Err(format!("names {shown}, which is larger than 64 KiB"));
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| format!("names {shown}, which is not UTF-8 text"))?;
        let text = text.trim();
        if text.is_empty() {
            return Err(format!("names {shown}, which is empty"));
        }
        Ok(text.to_owned())
    }

    fn parse(&self, leaf: &Leaf, text: &str) -> Result<Value, String> {
        if let Kind::List(rule) = leaf.kind {
            let items = items_of(text)?;
            return value::list(rule, &items, &self.roots).map_err(|(position, reason)| {
                let raw = items.get(position - 1).map_or("", String::as_str);
                with_value(leaf, &format!("entry {position} {reason}"), raw)
            });
        }
        if text.is_empty() && leaf.nullable {
            return Ok(Value::Null);
        }
        if text.trim().is_empty() && !leaf.nullable {
            return Err("is set to nothing; give it a value or unset it".to_owned());
        }
        value::from_text(leaf, text, &self.roots).map_err(|reason| with_value(leaf, &reason, text))
    }

    fn apply_old_variable(&mut self, pair: &VariablePair<'_>, is_new_set: bool) {
        let Some((name, _)) = pair.file.as_ref().or(pair.plain.as_ref()) else { return };
        let name = name.clone();
        let message = if is_new_set {
            "is an old name and ignored, because SVC_CLAUDE_LAUNCH_MODE is set; unset it"
        } else {
            "is an old name; use SVC_CLAUDE_LAUNCH_MODE"
        };
        let key = "claude.launch_mode";
        self.warn(WarningKind::Deprecated, Location::Variable(name), key, message);
        if is_new_set {
            return;
        }
        if let Some(leaf) = table::leaf(key)
            && let Some(setting) = self.setting_of(leaf, pair)
        {
            self.settings.insert(leaf.key, setting);
        }
    }

    fn warn_file_only(&mut self, name: &str, key: &'static str) {
        let message = "is a mapping, which one variable cannot hold; set it in the file";
        self.warn(WarningKind::FileOnly, Location::Variable(name.to_owned()), key, message);
    }

    fn warn_unknown_variable(&mut self, name: &str, names: &BTreeMap<String, &'static Leaf>) {
        let bare = |name: &str| name.strip_prefix("SVC_").unwrap_or(name).to_owned();
        let known: Vec<String> = names
            .keys()
            .map(String::as_str)
            .chain(RESERVED)
            .flat_map(|name| [bare(name), format!("{}_FILE", bare(name))])
            .collect();
        let meant = nearest(&bare(name), known.iter().map(String::as_str))
            .map(|meant| format!("SVC_{meant}"));
        let message = match &meant {
            Some(meant) => format!("means nothing to this program; did you mean {meant}?"),
            None => "means nothing to this program".to_owned(),
        };
        self.warnings.push(crate::report::Warning {
            kind: WarningKind::UnknownVariable { nearest: meant },
            location: Location::Variable(shown_key(name)),
            keys: Vec::new(),
            message,
        });
    }

    /// The cookie-signing key, where the environment gives one.
    pub(super) fn session_secret(&mut self, environment: &Environment) -> Option<Secret> {
        let named = |name: &str| Some((name.to_owned(), environment.value(name)?));
        let file = format!("{SESSION_SECRET}_FILE");
        let pair = VariablePair { plain: named(SESSION_SECRET), file: named(&file) };
        let refusal = match self.given(&pair) {
            Ok(None) => return None,
            Ok(Some(given)) if given.text.len() >= SHORTEST_SECRET => {
                return Some(Secret::new(given.text));
            }
            Ok(Some(given)) => {
                let reason = format!(
                    "gives a session secret shorter than {SHORTEST_SECRET} bytes; make it longer, \
                     or unset it to use the one in the state directory"
                );
                (given.name, reason)
            }
            Err(refusal) => refusal,
        };
        let (name, reason) = refusal;
        let location = Location::Variable(name);
        self.problems.push(crate::report::Problem { location, key: None, reason });
        None
    }
}

/// What a variable means, and whether it names a file with the value.
fn meaning(name: &str, names: &BTreeMap<String, &'static Leaf>) -> (Meaning, bool) {
    // An exact name wins over the `_FILE` form: `SVC_TLS_CERT_FILE` is `tls.cert_file`.
    if let Some(leaf) = names.get(name) {
        return (Meaning::Leaf(leaf), false);
    }
    if RESERVED.contains(&name) {
        return (Meaning::Reserved, false);
    }
    let (base, is_file) = match name.strip_suffix("_FILE") {
        Some(base) => (base, true),
        None => (name, false),
    };
    let meaning = match base {
        OLD_LAUNCH_MODE => Meaning::OldLaunchMode,
        DATABASE_URL => Meaning::Removed,
        "SVC_PROJECTS" => Meaning::FileOnly("projects"),
        "SVC_CLAUDE_ENV" => Meaning::FileOnly("claude.env"),
        "SVC_WEBHOOKS_EVENTS" => Meaning::FileOnly("webhooks.events"),
        _ => match names.get(base) {
            Some(leaf) if is_file => Meaning::Leaf(leaf),
            Some(_) | None => Meaning::Nothing,
        },
    };
    (meaning, is_file)
}

/// The entries of a list in a variable.
///
/// A JSON array of texts, or the parts between commas and line ends without blank ones.
pub(crate) fn items_of(text: &str) -> Result<Vec<String>, String> {
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(text).map_err(|_| {
            "starts with [ and is not a JSON array of texts; write [\"a\", \"b\"] or a, b"
                .to_owned()
        });
    }
    Ok(text
        .split([',', '\n'])
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .map(str::to_owned)
        .collect())
}
