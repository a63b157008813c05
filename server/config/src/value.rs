//! Reads a text as the value of a key.
//!
//! The reasons of refusals never contain the text. The caller adds it when the key is no secret.

use crate::schema::{ItemRule, Kind, Leaf, Preset, TextRule};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use svc_domain::host::Host;
use svc_domain::origin::Origin;
use svc_shared::text::is_hidden;

/// A value that satisfies its key.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// A switch.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A finite number.
    Float(f64),
    /// A text, a word or a path.
    Text(String),
    /// A list.
    List(Vec<String>),
    /// Names and texts.
    Map(BTreeMap<String, String>),
    /// Names and switches.
    Switches(BTreeMap<String, bool>),
}

impl Value {
    /// The default of a key; none when it must be set or is derived.
    pub fn preset(preset: Preset) -> Option<Self> {
        Some(match preset {
            Preset::Required | Preset::Derived => return None,
            Preset::Null => Self::Null,
            Preset::Bool(value) => Self::Bool(value),
            Preset::Int(value) => Self::Int(value),
            Preset::Float(value) => Self::Float(value),
            Preset::Text(value) => Self::Text(value.to_owned()),
            Preset::List(items) => {
                Self::List(items.iter().map(|item| (*item).to_owned()).collect())
            }
            Preset::EmptyMap => Self::Map(BTreeMap::new()),
            Preset::Switches(states) => Self::Switches(
                states.iter().map(|(name, state)| ((*name).to_owned(), *state)).collect(),
            ),
        })
    }

    /// Whether nothing is set: null, or no entries.
    pub fn is_nothing(&self) -> bool {
        match self {
            Self::Null => true,
            Self::List(items) => items.is_empty(),
            Self::Map(map) => map.is_empty(),
            Self::Bool(_) | Self::Int(_) | Self::Float(_) | Self::Text(_) | Self::Switches(_) => {
                false
            }
        }
    }

    /// The value as JSON.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Null => Json::Null,
            Self::Bool(value) => (*value).into(),
            Self::Int(value) => (*value).into(),
            Self::Float(value) => (*value).into(),
            Self::Text(value) => value.as_str().into(),
            Self::List(items) => items.as_slice().into(),
            Self::Map(map) => {
                map.iter().map(|(name, text)| (name.clone(), Json::from(text.as_str()))).collect()
            }
            Self::Switches(map) => {
                map.iter().map(|(name, state)| (name.clone(), Json::from(*state))).collect()
            }
        }
    }
}

/// The directories that relative paths and `~` refer to.
#[derive(Debug, Clone)]
pub struct PathRoots {
    /// Home directory; none when the environment does not name one.
    pub home: Option<PathBuf>,
    /// Directory of the configuration file.
    pub base: PathBuf,
}

impl PathRoots {
    /// The absolute path that `raw` means.
    ///
    /// # Errors
    /// The text is empty, needs a home directory that is unknown, or cannot be a path.
    pub fn resolve(&self, raw: &str) -> Result<String, String> {
        if raw.trim().is_empty() {
            return Err("must not be empty".to_owned());
        }
        if raw.contains('\0') {
            return Err("contains a NUL character, which no path can".to_owned());
        }
        let path = self.expand(raw)?;
        // `components` drops `.` and doubled separators; `..` stays, it may cross a link.
        let clean: PathBuf = self.base.join(path).components().collect();
        clean
            .into_os_string()
            .into_string()
            .map_err(|_| "lies in a directory whose name is not UTF-8".to_owned())
    }

    fn expand(&self, raw: &str) -> Result<PathBuf, String> {
        let Some(rest) = raw.strip_prefix('~') else { return Ok(PathBuf::from(raw)) };
        let below = rest.trim_start_matches('/');
        if !rest.is_empty() && below.len() == rest.len() {
            return Err("starts with ~ and a name; only ~ and ~/ are expanded".to_owned());
        }
        let home = self.home.as_ref().ok_or(
            "starts with ~ and the environment names no home directory; write the whole path",
        )?;
        Ok(if below.is_empty() { home.clone() } else { home.join(below) })
    }
}

/// Reads a text as a value of `leaf`.
///
/// # Errors
/// A reason that completes the sentence "KEY …" and does not contain the text.
pub fn from_text(leaf: &Leaf, raw: &str, roots: &PathRoots) -> Result<Value, String> {
    if leaf.blank_is_null && raw.trim().is_empty() {
        return Ok(Value::Null);
    }
    Ok(match leaf.kind {
        Kind::Bool => Value::Bool(switch(raw)?),
        Kind::Int { min, max } => Value::Int(whole(raw, min, max)?),
        Kind::Float(range) => {
            let value = number(raw)?;
            if !range.contains(value) {
                return Err(format!("must be {}", range.in_words()));
            }
            Value::Float(value)
        }
        Kind::Seconds { whole, range } => {
            let value = duration(raw)?;
            if !range.contains(value) {
                return Err(format!("must be {} seconds", range.in_words()));
            }
            if whole { Value::Int(integral(value)?) } else { Value::Float(value) }
        }
        Kind::Text(rule) => match text(rule, raw)? {
            Some(text) => Value::Text(text),
            None if leaf.nullable => Value::Null,
            None => return Err("must not be empty".to_owned()),
        },
        Kind::Choice { words, fold } => {
            let folded = if fold { raw.trim().to_ascii_lowercase() } else { raw.to_owned() };
            if !words.contains(&folded.as_str()) {
                return Err(format!("must be one of {}", words.join(", ")));
            }
            Value::Text(folded)
        }
        Kind::Path => Value::Text(roots.resolve(raw)?),
        Kind::Program => Value::Text(program(raw, roots)?),
        Kind::SocketPath => {
            let path = roots.resolve(raw)?;
            if path.len() >= SHORTEST_SUN_PATH {
                return Err(format!(
                    "is {} bytes long as a whole path; a socket path must stay below \
                     {SHORTEST_SUN_PATH}",
                    path.len()
                ));
            }
            Value::Text(path)
        }
        Kind::List(_) => return Err("must be a list".to_owned()),
        Kind::TextMap | Kind::Switches(_) => {
            return Err("must be a mapping of names and values".to_owned());
        }
    })
}

/// Bytes of a socket path where there is least room: macOS, with the closing NUL.
const SHORTEST_SUN_PATH: usize = 104;

/// Reads the entries of a list.
///
/// # Errors
/// The position from 1 and the reason of the first entry that does not fit.
pub fn list(rule: ItemRule, items: &[String], roots: &PathRoots) -> Result<Value, (usize, String)> {
    let mut out = Vec::with_capacity(items.len());
    for (index, raw) in items.iter().enumerate() {
        out.push(item(rule, raw, roots).map_err(|reason| (index + 1, reason))?);
    }
    Ok(Value::List(out))
}

fn item(rule: ItemRule, raw: &str, roots: &PathRoots) -> Result<String, String> {
    let raw = raw.trim();
    if raw.is_empty() {
        return Err("is empty".to_owned());
    }
    if raw.chars().any(is_hidden) {
        return Err("contains a control or invisible character".to_owned());
    }
    match rule {
        ItemRule::Any => Ok(raw.to_owned()),
        ItemRule::Path => roots.resolve(raw),
        ItemRule::Network => network(raw).map(|_| raw.to_owned()).ok_or_else(|| {
            "is neither an address nor a range of addresses such as 10.0.0.0/8".to_owned()
        }),
        ItemRule::Origin => Ok(origin(raw).unwrap_or_else(|| raw.to_owned())),
        ItemRule::HostPattern => {
            let lower = raw.to_ascii_lowercase();
            let name = lower.strip_prefix("*.").unwrap_or(&lower);
            let is_sound = match Host::parse(name) {
                Some(Host::Name(_)) => true,
                Some(Host::V4(_) | Host::V6(_)) => !lower.starts_with('*'),
                None => false,
            };
            if !is_sound {
                return Err("is neither a host name nor *. and a host name".to_owned());
            }
            Ok(lower)
        }
        ItemRule::HostName => Ok(raw.to_owned()),
    }
}

/// An address, or a range of addresses with host bits allowed.
pub fn network(raw: &str) -> Option<ipnet::IpNet> {
    raw.parse().ok().or_else(|| raw.parse::<std::net::IpAddr>().ok().map(ipnet::IpNet::from))
}

/// The browser origin that a text means, in the form that browsers send.
///
/// None if the text is no origin.
pub fn origin(raw: &str) -> Option<String> {
    Origin::parse_entry(raw).ok().map(|origin| origin.to_string())
}

/// A switch, in any of the spellings people use (`configuration` §3).
pub fn switch(raw: &str) -> Result<bool, String> {
    match raw.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "y" | "t" | "1" => Ok(true),
        "false" | "no" | "off" | "n" | "f" | "0" => Ok(false),
        _ => Err("must be true or false".to_owned()),
    }
}

/// A finite number in decimal notation.
fn number(raw: &str) -> Result<f64, String> {
    let raw = raw.trim();
    // Rust also reads `inf`, `nan` and `infinity`; YAML writes them `.inf` and `.nan`.
    let is_decimal = raw.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'))
        && raw.chars().all(|c| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E'));
    match raw.parse::<f64>() {
        Ok(value) if is_decimal && value.is_finite() => Ok(value),
        Ok(_) | Err(_) => Err("must be a finite number".to_owned()),
    }
}

fn whole(raw: &str, min: i64, max: i64) -> Result<i64, String> {
    let trimmed = raw.trim();
    let value = match trimmed.parse::<i64>() {
        Ok(value) => value,
        Err(_) => {
            number(trimmed).and_then(integral).map_err(|_| "must be a whole number".to_owned())?
        }
    };
    if (min..=max).contains(&value) {
        Ok(value)
    } else if max == i64::from(u32::MAX) && value < min {
        Err(format!("must be at least {min}"))
    } else {
        Err(format!("must be between {min} and {max}"))
    }
}

fn integral(value: f64) -> Result<i64, String> {
    /// Beyond it a float no longer holds every whole number.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() != 0.0 || value.abs() > EXACT {
        return Err("must come to a whole number".to_owned());
    }
    #[expect(clippy::cast_possible_truncation, reason = "whole and within the exact range")]
    Ok(value as i64)
}

/// Seconds, written plain or with one of the units ms, s, m, h, d.
fn duration(raw: &str) -> Result<f64, String> {
    const UNITS: [(&str, f64); 5] =
        [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0)];
    let raw = raw.trim();
    let (digits, factor) = UNITS
        .iter()
        .find_map(|(unit, factor)| raw.strip_suffix(unit).map(|digits| (digits, *factor)))
        .unwrap_or((raw, 1.0));
    let value = number(digits)
        .map_err(|_| "must be a number of seconds, or a number with ms, s, m, h or d".to_owned())?;
    // Divides where it can, so that 250ms is 0.25 and not 0.25000000000000006.
    Ok(if factor < 1.0 { value / (1.0 / factor) } else { value * factor })
}

fn program(raw: &str, roots: &PathRoots) -> Result<String, String> {
    if raw.trim().is_empty() {
        return Err("must not be empty".to_owned());
    }
    let is_path = raw.starts_with('~') || Path::new(raw).components().nth(1).is_some();
    if is_path {
        return roots.resolve(raw);
    }
    if raw.chars().any(is_hidden) {
        return Err("contains a control or invisible character".to_owned());
    }
    Ok(raw.to_owned())
}

/// The text in its normal form; none when it is blank.
fn text(rule: TextRule, raw: &str) -> Result<Option<String>, String> {
    if raw.chars().any(is_hidden) {
        return Err("contains a control or invisible character".to_owned());
    }
    let err = |reason: &str| Err(reason.to_owned());
    Ok(match rule {
        TextRule::Any if raw.trim().is_empty() => None,
        TextRule::Any => Some(raw.to_owned()),
        TextRule::Host => {
            if raw.is_empty() || raw.chars().any(char::is_whitespace) {
                return err("must be an address or a host name to bind");
            }
            Some(raw.to_owned())
        }
        TextRule::RootPath => Some(root_path(raw)?),
        TextRule::InstanceName => {
            let is_name =
                raw.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
            if !is_name || raw.is_empty() || raw.len() > 32 {
                return err("must be 1 to 32 of the characters A-Z a-z 0-9 _ . -");
            }
            Some(raw.to_owned())
        }
        TextRule::SessionName => svc_shared::text::session_name(raw)
            .map_err(|error| format!("cannot be part of a session name: {error}"))?,
        TextRule::HeaderName => {
            let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
            if raw.is_empty() || !raw.chars().all(is_token) {
                return err("must be the name of an HTTP header");
            }
            Some(raw.to_owned())
        }
        TextRule::Sha256Hex => {
            let is_hex = raw.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            if raw.len() != 64 || !is_hex {
                return err("must be a SHA-256 as 64 lower-case hexadecimal digits");
            }
            Some(raw.to_owned())
        }
        TextRule::QuietHours => {
            let hours = raw.trim();
            hours
                .parse::<svc_domain::notification::quiet::QuietHours>()
                .map_err(|e| e.to_string())?;
            Some(hours.to_owned())
        }
        TextRule::Currency => {
            let code = raw.trim().to_uppercase();
            (!code.is_empty()).then_some(code)
        }
    })
}

/// A sub-path in the form `/a/b`; empty for the root.
fn root_path(raw: &str) -> Result<String, String> {
    let trimmed = raw.trim().trim_start_matches('/').trim_end_matches('/');
    if trimmed.is_empty() {
        return Ok(String::new());
    }
    let is_segment = |segment: &str| {
        !segment.is_empty()
            && segment != ".."
            && segment != "."
            && segment
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~'))
    };
    if raw.trim().starts_with("//") || raw.trim().ends_with("//") {
        return Err("must not contain //".to_owned());
    }
    if !trimmed.split('/').all(is_segment) {
        return Err("must be a path of segments with A-Z a-z 0-9 - . _ ~, such as /svc".to_owned());
    }
    Ok(format!("/{trimmed}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    fn roots() -> PathRoots {
        PathRoots { home: Some("/home/ada".into()), base: "/etc/svc".into() }
    }

    fn parse(key: &str, raw: &str) -> Result<Value, String> {
        from_text(table::leaf(key).unwrap(), raw, &roots())
    }

    #[track_caller]
    fn gives(key: &str, raw: &str, value: Value) {
        assert_eq!(parse(key, raw), Ok(value), "{key}: {raw:?}");
    }

    #[track_caller]
    fn fails(key: &str, raw: &str, reason: &str) {
        let found = parse(key, raw).unwrap_err();
        assert!(found.contains(reason), "{key}: {raw:?}: {found}");
    }

    fn text(value: &str) -> Value {
        Value::Text(value.to_owned())
    }

    #[test]
    fn switches_take_every_spelling_and_nothing_else() {
        for raw in ["true", "YES", "On", "y", "T", "1", " true "] {
            gives("auth.enabled", raw, Value::Bool(true));
        }
        for raw in ["false", "No", "OFF", "n", "f", "0"] {
            gives("auth.enabled", raw, Value::Bool(false));
        }
        for raw in ["", "2", "enabled", "truee", "null", "-1", "1.0"] {
            fails("auth.enabled", raw, "true or false");
        }
    }

    #[test]
    fn whole_numbers_are_bounded_and_no_switches() {
        gives("port", "80", Value::Int(80));
        gives("port", " 7621 ", Value::Int(7621));
        gives("port", "8.0e3", Value::Int(8000));
        for raw in ["0", "65536", "-1", "99999999999"] {
            fails("port", raw, "between 1 and 65535");
        }
        for raw in ["true", "80.5", "0x50", "1_000", "", "NaN", "1e999", &"9".repeat(5_000)] {
            fails("port", raw, "whole number");
        }
        fails("instance_defaults.capacity", "0", "at least 1");
    }

    #[test]
    fn numbers_are_finite() {
        gives("usage.fx_rate", "0.92", Value::Float(0.92));
        for raw in [".inf", "-.inf", ".nan", "inf", "NaN", "infinity", "1e999", "one", ""] {
            fails("usage.fx_rate", raw, "finite number");
            fails("claude.startup_grace_seconds", raw, "number");
        }
        fails("usage.fx_rate", "0", "greater than 0");
        fails("restart.multiplier", "10.5", "between 1 and 10");
    }

    #[test]
    fn durations_take_units_and_fractions() {
        for (raw, seconds) in
            [("60", 60.0), ("250ms", 0.25), ("1.5m", 90.0), ("2h", 7200.0), ("7d", 604_800.0)]
        {
            gives("claude.startup_grace_seconds", raw, Value::Float(seconds));
        }
        gives("auth.session_max_age_seconds", "7d", Value::Int(604_800));
    }

    #[test]
    fn a_whole_number_of_seconds_is_asked_for_where_it_matters() {
        fails("clone.timeout_seconds", "1500ms", "whole number");
        fails("claude.startup_grace_seconds", "5 weeks", "ms, s, m, h or d");
        fails("claude.startup_grace_seconds", "1e300", "at most");
        fails("claude.stop_grace_seconds", "200", "between 0.5 and 120");
        fails("metrics.sample_interval_seconds", "0", "greater than 0 and at most 2");
    }

    #[test]
    fn paths_know_home_and_the_directory_of_the_file() {
        gives("projects_root", "~/work", text("/home/ada/work"));
        gives("projects_root", "~", text("/home/ada"));
        gives("projects_root", "projects/./x/", text("/etc/svc/projects/x"));
        gives("projects_root", "/srv//p", text("/srv/p"));
        fails("projects_root", "~bob/work", "only ~ and ~/");
        fails("projects_root", "  ", "empty");
        fails("projects_root", "a\0b", "NUL");
        let homeless = PathRoots { home: None, ..roots() };
        let error = homeless.resolve("~/x").unwrap_err();
        assert!(error.contains("no home directory"), "{error}");
    }

    #[test]
    fn a_bare_program_name_stays_a_name() {
        gives("claude.binary", "claude", text("claude"));
        gives("claude.binary", "~/bin/claude", text("/home/ada/bin/claude"));
        gives("claude.binary", "bin/claude", text("/etc/svc/bin/claude"));
        gives("claude.binary", "./claude", text("/etc/svc/claude"));
        fails("claude.binary", "", "empty");
    }

    #[test]
    fn the_sub_path_is_normalised_or_refused() {
        for (raw, value) in [("", ""), ("/", ""), ("foo/", "/foo"), ("/a/b.c~d", "/a/b.c~d")] {
            gives("root_path", raw, text(value));
        }
        for raw in ["/a//b", "//a", "/a/../b", "/a b", "/a?b", "/ä", "/a\"><script>", "/./"] {
            fails("root_path", raw, "");
        }
    }

    #[test]
    fn words_are_exact_except_the_log_level() {
        gives("log_level", " WARNING ", text("warning"));
        gives("usage.mode", "off", text("off"));
        fails("instance_defaults.permission_mode", "acceptedits", "acceptEdits");
        fails("tls.provision", "false", "off, self-signed");
    }

    #[test]
    fn texts_follow_their_rules() {
        fails("instance_name", "", "1 to 32");
        fails("instance_name", "with blank", "1 to 32");
        fails("auth.reverse_proxy.user_header", "Remote User", "header");
        fails("auth.api_token_hash", &"A".repeat(64), "SHA-256");
        gives("auth.api_token_hash", "  ", Value::Null);
        gives("usage.currency", " eur ", text("EUR"));
        fails("usage.currency", " ", "empty");
        fails("instance_defaults.session_name_prefix", "--evil", "session name");
        gives("instance_defaults.session_name_prefix", " ", Value::Null);
        fails("host", "127.0.0.1 ", "bind");
        fails("hosted.socket_path", &format!("/{}", "s".repeat(103)), "below 104");
    }

    #[test]
    fn what_hides_in_a_name_or_an_entry_of_a_list_is_refused() {
        for hidden in ['\u{7}', '\u{202e}', '\u{2066}', '\u{200b}', '\u{3164}'] {
            let raw = format!("a{hidden}b");
            fails("instance_name", &raw, "invisible character");
            fails("instance_defaults.session_name_prefix", &raw, "invisible character");
            assert!(item(ItemRule::Any, &raw, &roots()).unwrap_err().contains("invisible"));
            fails("claude.binary", &raw, "invisible character");
        }
    }

    #[test]
    fn list_entries_follow_their_rules() {
        let read = |rule, items: &[&str]| {
            let items: Vec<String> = items.iter().map(|item| (*item).to_owned()).collect();
            list(rule, &items, &roots())
        };
        let gives = |rule, raw: &str, value: &str| {
            assert_eq!(read(rule, &[raw]), Ok(Value::List(vec![value.to_owned()])), "{raw}");
        };
        gives(ItemRule::Network, "10.1.2.3/8", "10.1.2.3/8");
        gives(ItemRule::Network, "::1", "::1");
        assert_eq!(read(ItemRule::Network, &["::1", "10.0.0.0/33"]).unwrap_err().0, 2);
        gives(ItemRule::Origin, "HTTPS://Svc.Example:443/", "https://svc.example");
        gives(ItemRule::Origin, "http://host:8080", "http://host:8080");
        gives(ItemRule::Origin, "ftp://x", "ftp://x");
        gives(ItemRule::HostPattern, "*.Example.com", "*.example.com");
        for bad in ["*", "*.", "a b", "http://x", "*.10.0.0.1", "a.*.b", "x:80"] {
            assert!(read(ItemRule::HostPattern, &[bad]).is_err(), "{bad}");
        }
        gives(ItemRule::Path, "~/bin", "/home/ada/bin");
        assert!(read(ItemRule::HostName, &[" "]).is_err());
        for no_origin in ["https://u:p@x", "https://x/path", "https://x?q", "x.example", ""] {
            assert_eq!(origin(no_origin), None, "{no_origin}");
        }
    }
}
