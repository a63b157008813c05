//! The knobs of one start: where they come from and which source wins.
//!
//! Profile, then the scenario file (its own knobs, then the first matching rule), then the
//! environment, then `.agent-sim.json` in the working directory.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::failure::Failure;
use super::files;
use super::home::AgentHome;
use super::hosted::Hosted;
use super::link::LinkStep;
use super::tui::Tui;
use super::values::{
    AgentsOutput, Ansi, Auth, Bg, ChildMode, ExitSignal, Fatal, JobStep, LogTarget, Login,
    PointerKind, PoisonOn, Ready, RegistryKind, Turn, WorktreeKind,
};

/// Prefix of a knob in the environment.
pub(crate) const PREFIX: &str = "AGENT_SIM_";
/// Names the scenario file; not a knob itself.
const SCENARIO: &str = "AGENT_SIM_SCENARIO";
/// Hands a command's count to the session it asked for; not a knob itself.
pub(crate) const START_NUMBER: &str = "AGENT_SIM_START_NUMBER";
/// Knobs of one project, in its directory.
const PROJECT_FILE: &str = ".agent-sim.json";
/// Knobs whose value in the environment is text even if it reads as a number.
const TEXT_KNOBS: [&str; 5] =
    ["profile", "stderr_text", "version_output", "agents_file", "session_id"];

/// Everything that can be turned at one start. Times are milliseconds.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Knobs {
    pub(crate) profile: String,
    pub(crate) seed: u64,
    pub(crate) ready: Ready,
    pub(crate) ready_ms: u64,
    pub(crate) exit_at_ms: Option<u64>,
    pub(crate) exit_after_ready_ms: Option<u64>,
    pub(crate) exit_code: u8,
    pub(crate) exit_signal: Option<ExitSignal>,
    pub(crate) stderr_text: Option<String>,
    pub(crate) fatal: Option<Fatal>,
    pub(crate) ignore_sigint: bool,
    pub(crate) ignore_sigterm: bool,
    /// An interactive session lives on when its terminal hangs up.
    pub(crate) ignore_sighup: bool,
    pub(crate) shutdown_ms: u64,
    pub(crate) children: u32,
    pub(crate) child_mode: ChildMode,
    /// Longest life of a child that outlives the bridge, so that no test leaves one.
    pub(crate) child_life_ms: u64,
    /// After each such period a running bridge starts a child and holds `leak_mb` more.
    pub(crate) leak_ms: Option<u64>,
    pub(crate) leak_mb: u64,
    pub(crate) log_mb_per_s: f64,
    pub(crate) log_line_bytes: u64,
    pub(crate) log_for_ms: u64,
    pub(crate) split_utf8: bool,
    pub(crate) ansi: Ansi,
    pub(crate) invalid_utf8: bool,
    pub(crate) log_target: LogTarget,
    pub(crate) forge_markers: bool,
    pub(crate) poison_ms: Option<u64>,
    pub(crate) poison_on: PoisonOn,
    pub(crate) pointer: PointerKind,
    pub(crate) pointer_refresh_s: u64,
    pub(crate) registry: RegistryKind,
    /// Session that a bridge and its workers register with, instead of a new one.
    pub(crate) session_id: Option<String>,
    pub(crate) worktree: WorktreeKind,
    pub(crate) agents_ms: u64,
    pub(crate) agents_output: AgentsOutput,
    pub(crate) agents_file: Option<PathBuf>,
    pub(crate) version_output: Option<String>,
    pub(crate) version_ms: u64,
    pub(crate) bg: Bg,
    /// Steps of a job, each with its time since the session's start.
    pub(crate) job_script: Option<Vec<JobStep>>,
    pub(crate) job_ignore_sigint: bool,
    /// When the background service starts a killed host again; `null` is never.
    pub(crate) bg_respawn_ms: Option<u64>,
    pub(crate) auth: Auth,
    pub(crate) auth_ms: u64,
    pub(crate) login: Login,
    pub(crate) hosted: Option<Hosted>,
    pub(crate) turns: Option<Vec<Turn>>,
    /// A worker ends by itself this long after its start.
    pub(crate) session_ms: Option<u64>,
    pub(crate) memory_mb: u64,
    pub(crate) cpu: u8,
    pub(crate) record_env: Vec<String>,
    /// The interactive form does not get its remote link, and goes on.
    pub(crate) rc_ignored: bool,
    /// The interactive form asks whether the directory is trusted, even if it is.
    pub(crate) trust_dialog: bool,
    /// The interactive form begins with the questions of a first start.
    pub(crate) onboarding: bool,
    pub(crate) tui: Tui,
    /// What is said about the remote link, each with its time since readiness.
    pub(crate) link: Vec<LinkStep>,
    /// Period of the lines a quiet bridge writes; 0 writes the markers only.
    pub(crate) chatter_ms: u64,
    /// Counts the starts of this form and directory, for scenarios.
    #[serde(skip)]
    pub(crate) start_number: Option<u64>,
}

impl Default for Knobs {
    fn default() -> Self {
        Self {
            profile: "2.1.197".into(),
            seed: 1,
            ready: Ready::Ok,
            ready_ms: 300,
            exit_at_ms: None,
            exit_after_ready_ms: None,
            exit_code: 1,
            exit_signal: None,
            stderr_text: None,
            fatal: None,
            ignore_sigint: false,
            ignore_sigterm: false,
            ignore_sighup: false,
            shutdown_ms: 0,
            children: 0,
            child_mode: ChildMode::SameGroup,
            child_life_ms: 120_000,
            leak_ms: None,
            leak_mb: 0,
            log_mb_per_s: 0.0,
            log_line_bytes: 120,
            log_for_ms: 1000,
            split_utf8: false,
            ansi: Ansi::None,
            invalid_utf8: false,
            log_target: LogTarget::File,
            forge_markers: false,
            poison_ms: None,
            poison_on: PoisonOn::Reattach,
            pointer: PointerKind::Ok,
            // Agent 2.1.197 rewrites the pointer every hour.
            pointer_refresh_s: 3600,
            registry: RegistryKind::Ok,
            session_id: None,
            worktree: WorktreeKind::Ok,
            agents_ms: 0,
            agents_output: AgentsOutput::Ok,
            agents_file: None,
            version_output: None,
            version_ms: 0,
            bg: Bg::Ok,
            job_script: None,
            job_ignore_sigint: false,
            // Agent 2.1.197: 8 to 10 seconds.
            bg_respawn_ms: Some(10_000),
            auth: Auth::ClaudeAi,
            auth_ms: 0,
            login: Login::Ok,
            hosted: None,
            turns: None,
            session_ms: None,
            memory_mb: 0,
            cpu: 0,
            record_env: Vec::new(),
            rc_ignored: false,
            trust_dialog: false,
            onboarding: false,
            tui: Tui::default(),
            link: Vec::new(),
            chatter_ms: 0,
            start_number: None,
        }
    }
}

/// A part of a scenario that applies to some starts only.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    #[serde(rename = "match", default)]
    when: When,
    set: Map<String, Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct When {
    form: Option<String>,
    /// Pattern with `*` and `?` over the directory's name or its whole path.
    project: Option<String>,
    /// Counts from 1, per form and working directory.
    nth: Option<u64>,
}

impl Knobs {
    /// Reads every source for one start of `form` in `cwd`.
    pub(crate) fn load(home: &AgentHome, form: &str, cwd: &Path) -> Result<Self, Failure> {
        let mut merged = Map::new();
        let mut start_number = None;
        if let Some(path) = env::var_os(SCENARIO).filter(|p| !p.is_empty()) {
            let path = PathBuf::from(path);
            let mut scenario = read_object(&path)?.ok_or_else(|| {
                Failure::refused(format!("{SCENARIO} names {}, which is missing", path.display()))
            })?;
            let rules = scenario.remove("rules");
            merged.extend(scenario);
            let given = env::var(START_NUMBER).ok().and_then(|number| number.parse().ok());
            let nth = given.map_or_else(|| count_start(home, form, cwd), Ok)?;
            start_number = Some(nth);
            merged.extend(matching_rule(rules, form, cwd, nth).map_err(|cause| {
                Failure::refused(format!("the rules of {} are wrong: {cause}", path.display()))
            })?);
        }
        for (name, value) in env::vars_os() {
            let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else {
                continue;
            };
            if let Some(knob) =
                name.strip_prefix(PREFIX).filter(|_| ![SCENARIO, START_NUMBER].contains(&name))
            {
                let knob = knob.to_ascii_lowercase();
                let value = parse_variable(&knob, value);
                merged.insert(knob, value);
            }
        }
        merged.extend(read_object(&cwd.join(PROJECT_FILE))?.unwrap_or_default());
        let knobs: Self = serde_json::from_value(Value::Object(merged)).map_err(|cause| {
            Failure::refused(format!(
                "a knob is wrong: {cause}; correct it in the scenario, the environment \
                 ({PREFIX}…) or {PROJECT_FILE}"
            ))
        })?;
        Ok(Self { start_number, ..knobs })
    }
}

fn parse_variable(knob: &str, value: &str) -> Value {
    let text = || Value::String(value.to_owned());
    if TEXT_KNOBS.contains(&knob) {
        return text();
    }
    serde_json::from_str(value).unwrap_or_else(|_| text())
}

fn read_object(path: &Path) -> Result<Option<Map<String, Value>>, Failure> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => {
            return Err(Failure::refused(format!("cannot read {}: {e}", path.display())));
        }
    };
    serde_json::from_str(&text).map(Some).map_err(|cause| {
        Failure::refused(format!(
            "{} is not a JSON object of knobs: {cause}; correct the file",
            path.display()
        ))
    })
}

/// The number of this start among those of the same form and directory, from 1.
fn count_start(home: &AgentHome, form: &str, cwd: &Path) -> Result<u64, Failure> {
    let path = home.mark().join("starts.json");
    let count = || -> io::Result<u64> {
        let _lock = files::lock_beside(&path)?;
        let mut starts: BTreeMap<String, u64> =
            fs::read(&path).ok().and_then(|b| serde_json::from_slice(&b).ok()).unwrap_or_default();
        let nth = starts.entry(format!("{form} {}", cwd.display())).or_default();
        *nth += 1;
        let nth = *nth;
        files::replace(&path, &serde_json::to_vec(&starts)?)?;
        Ok(nth)
    };
    count().map_err(|e| Failure::refused(format!("cannot count in {}: {e}", path.display())))
}

fn matching_rule(
    rules: Option<Value>,
    form: &str,
    cwd: &Path,
    nth: u64,
) -> Result<Map<String, Value>, serde_json::Error> {
    let rules: Vec<Rule> = match rules {
        Some(rules) => serde_json::from_value(rules)?,
        None => Vec::new(),
    };
    let path = cwd.to_string_lossy();
    let name = cwd.file_name().map(|n| n.to_string_lossy()).unwrap_or_default();
    let applies = |when: &When| {
        when.form.as_deref().is_none_or(|wanted| wanted == form)
            && when.nth.is_none_or(|wanted| wanted == nth)
            && when
                .project
                .as_deref()
                .is_none_or(|glob| matches(glob, &name) || matches(glob, &path))
    };
    Ok(rules.into_iter().find(|rule| applies(&rule.when)).map(|rule| rule.set).unwrap_or_default())
}

/// Whether all of `text` matches `glob`; `*` is any run, `?` any one character.
fn matches(glob: &str, text: &str) -> bool {
    // One row of the table "does this prefix of the pattern match this prefix of the text".
    let text: Vec<char> = text.chars().collect();
    let mut row: Vec<bool> = std::iter::once(true).chain(text.iter().map(|_| false)).collect();
    for wanted in glob.chars() {
        let mut next = vec![row.first().copied().unwrap_or(false) && wanted == '*'];
        for (at, found) in text.iter().enumerate() {
            let shorter = row.get(at).copied().unwrap_or(false);
            let same = row.get(at + 1).copied().unwrap_or(false);
            let before = next.last().copied().unwrap_or(false);
            next.push(match wanted {
                '*' => same || before,
                '?' => shorter,
                literal => shorter && literal == *found,
            });
        }
        row = next;
    }
    row.last().copied().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_matches_the_whole_text() {
        for (glob, text, expected) in [
            ("", "", true),
            ("*", "", true),
            ("a*c", "abbbc", true),
            ("a*c", "abbbd", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*/demo-*", "/srv/demo-1", true),
            ("demo", "demo-1", false),
        ] {
            assert_eq!(matches(glob, text), expected, "{glob} on {text}");
        }
    }

    #[test]
    fn the_first_rule_that_fits_form_project_and_count_wins() {
        let rules = serde_json::json!([
            { "match": { "form": "standard", "nth": 2 }, "set": { "fatal": "login" } },
            { "match": { "project": "slow*" }, "set": { "ready_ms": 9 } },
            { "set": { "seed": 7 } },
        ]);
        let knob = |form, dir, nth| {
            let set = matching_rule(Some(rules.clone()), form, Path::new(dir), nth);
            set.expect("rules").keys().next().cloned()
        };
        assert_eq!(knob("standard", "/p/slow", 2).as_deref(), Some("fatal"));
        assert_eq!(knob("standard", "/p/slow", 1).as_deref(), Some("ready_ms"));
        assert_eq!(knob("auth", "/p/other", 2).as_deref(), Some("seed"));
    }

    #[test]
    fn a_value_in_the_environment_is_json_where_it_can_be() {
        assert_eq!(parse_variable("ready_ms", "5"), Value::from(5));
        assert_eq!(parse_variable("ready", "never"), Value::from("never"));
        assert_eq!(parse_variable("stderr_text", "5"), Value::from("5"));
    }
}
