//! The agent home of the double, and the gate that keeps it away from a real one.

use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::console::print;
use super::failure::Failure;
use super::{calls, files};

/// Directory that marks an agent home as the simulator's and holds its own files.
const MARK: &str = ".agent-sim";

/// Names a real agent leaves in its home; `init` refuses a directory that has one.
const REAL_HOME_FILES: [&str; 8] = [
    ".claude.json",
    ".credentials.json",
    "backups",
    "history.jsonl",
    "projects",
    "sessions",
    "settings.json",
    "statsig",
];

/// Where the agent keeps its files, by its own rule.
#[derive(Debug, Clone)]
pub(crate) struct AgentHome {
    dir: PathBuf,
    config_file: PathBuf,
}

impl AgentHome {
    /// `$CLAUDE_CONFIG_DIR`, else `~/.claude`.
    /// The configuration file is inside the first, and beside the second (agent 2.1.197).
    pub(crate) fn from_env() -> Result<Self, Failure> {
        if let Some(dir) = env::var_os("CLAUDE_CONFIG_DIR").filter(|d| !d.is_empty()) {
            let dir = absolute(Path::new(&dir))?;
            return Ok(Self { config_file: dir.join(".claude.json"), dir });
        }
        let Some(home) = env::var_os("HOME").filter(|h| !h.is_empty()) else {
            return Err(Failure::refused(
                "neither CLAUDE_CONFIG_DIR nor HOME is set, so there is no agent home; set one",
            ));
        };
        let home = absolute(Path::new(&home))?;
        Ok(Self { dir: home.join(".claude"), config_file: home.join(".claude.json") })
    }

    /// Refuses to stand in for the agent in a home that was not made for it.
    pub(crate) fn require_double(&self) -> Result<(), Failure> {
        if env::var_os("AGENT_SIM").is_none_or(|v| v != "1") {
            return Err(Failure::refused(
                "refusing to act as the agent: AGENT_SIM is not 1; \
                 set it only where the double is wanted",
            ));
        }
        self.require_mark()
    }

    /// Refuses a home without the mark of `init`.
    pub(crate) fn require_mark(&self) -> Result<(), Failure> {
        if self.mark().is_dir() {
            return Ok(());
        }
        Err(Failure::refused(format!(
            "refusing to use the agent home {}: it has no {MARK} directory, so it may be a real \
             one; make one for the double with `svc-agent-sim init DIR` and set CLAUDE_CONFIG_DIR",
            self.dir.display()
        )))
    }

    /// The directory of the double's own files.
    pub(crate) fn mark(&self) -> PathBuf {
        self.dir.join(MARK)
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn config_file(&self) -> &Path {
        &self.config_file
    }

    /// The directory of pointers and transcripts of one working directory.
    pub(crate) fn project_dir(&self, cwd: &Path) -> PathBuf {
        self.dir.join("projects").join(slug(&cwd.to_string_lossy()))
    }

    /// The agent configuration as a bridge reads it.
    /// A missing file counts as empty. A broken one is left alone and ends the start (agent
    /// 2.1.197).
    pub(crate) fn config(&self) -> Result<Value, Failure> {
        self.read_config().map_err(|cause| Failure::agent(format!("ConfigParseError: {cause}")))
    }

    /// The agent configuration as other commands read it.
    /// A broken file is saved to `backups/` and replaced by a new one, and the complaint is
    /// returned (agent 2.1.197).
    pub(crate) fn repair_config(&self) -> Result<(), Failure> {
        let Err(cause) = self.read_config() else {
            return Ok(());
        };
        let file = self.config_file.display();
        let backups = self.dir.join("backups");
        let saved = backups.join(format!(".claude.json.corrupted.{}", calls::now_ms()));
        let _ = fs::create_dir_all(&backups).and_then(|()| fs::copy(&self.config_file, &saved));
        let fresh = "{\n  \"installMethod\": \"unknown\",\n  \"autoUpdates\": true\n}\n";
        let _ = files::replace(&self.config_file, fresh.as_bytes()); // reported all the same
        Err(Failure::agent(format!(
            "Configuration error in {file}: {cause}\n\nClaude configuration file at {file} is \
             corrupted: {cause}\nThe corrupted file has been backed up to: {}\n",
            saved.display()
        )))
    }

    /// The configuration, or the words of the parser.
    fn read_config(&self) -> Result<Value, String> {
        let text = match fs::read_to_string(&self.config_file) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Value::Null),
            Err(e) => return Err(e.to_string()),
        };
        serde_json::from_str(&text).map_err(|_| {
            let cause = if text.trim().is_empty() { "Unexpected EOF" } else { "Expected '}'" };
            format!("JSON Parse error: {cause}")
        })
    }
}

/// `svc-agent-sim init DIR`: makes an agent home the double may use.
pub(crate) fn init(args: &[String]) -> Result<u8, Failure> {
    let [dir] = args else {
        return Err(Failure::refused("usage: svc-agent-sim init DIR"));
    };
    let dir = absolute(Path::new(dir))?;
    let mark = dir.join(MARK);
    if !mark.is_dir() {
        let real = REAL_HOME_FILES.iter().find(|name| dir.join(name).symlink_metadata().is_ok());
        if let Some(name) = real {
            return Err(Failure::refused(format!(
                "refusing to initialise {}: it holds {name}, so a real agent may use it; \
                 name a new or empty directory",
                dir.display()
            )));
        }
    }
    DirBuilder::new().recursive(true).mode(0o700).create(&mark).map_err(|e| {
        Failure::refused(format!("cannot create {}: {e}; check the path", mark.display()))
    })?;
    print(&format!("{}\n", dir.display()));
    Ok(0)
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|e| Failure::refused(format!("cannot make {} absolute: {e}", path.display())))
}

/// The agent's directory name for a working directory.
///
/// Every UTF-16 unit outside ASCII letters and digits becomes `-`; past 200 units a rolling
/// 32-bit hash in base 36 is appended (agent 2.1.197).
pub(crate) fn slug(path: &str) -> String {
    let units: Vec<u16> = path.encode_utf16().collect();
    let clean = |unit: &u16| match u8::try_from(*unit) {
        Ok(byte) if byte.is_ascii_alphanumeric() => char::from(byte),
        _ => '-',
    };
    if units.len() <= 200 {
        return units.iter().map(clean).collect();
    }
    let hash =
        units.iter().fold(0_i32, |h, unit| h.wrapping_mul(31).wrapping_add(i32::from(*unit)));
    let head: String = units.iter().take(200).map(clean).collect();
    format!("{head}-{}", base36(hash.unsigned_abs()))
}

fn base36(mut value: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit(value % 36, 36));
        value /= 36;
        if value == 0 {
            return digits.iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_path_keeps_only_ascii_letters_and_digits() {
        assert_eq!(slug("/srv/p/my_app"), "-srv-p-my-app");
        // One character outside the basic plane is two UTF-16 units.
        assert_eq!(slug("/p/\u{1F680}é"), "-p----");
    }

    #[test]
    fn a_long_path_ends_in_the_hash_of_the_whole_path() {
        let long = slug(&format!("/{}", "a".repeat(300)));
        let other = slug(&format!("/{}b", "a".repeat(299)));
        assert_eq!(long.get(..200), other.get(..200));
        assert_ne!(long, other);
        assert!(long.len() <= 200 + 1 + 7, "{long}");
    }
}
