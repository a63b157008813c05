//! What the agent's settings say about a start in a project: names and modes, never values.

use crate::home::AgentHome;
use crate::trust::{Approvals, Known, keys, words};
use rustix::fs::{Mode, OFlags, open};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Larger files are no settings.
const SIZE_CAP: u64 = 1024 * 1024;

/// Settings of the machine's administrator (agent 2.1.197).
const MANAGED: &str = "/etc/claude-code/managed-settings.json";

/// The permission mode that a start without `--permission-mode` gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultMode {
    /// The agent's word; may be one of a newer version.
    pub mode: String,
    /// `managed`, `local`, `project` or `user`.
    pub source: &'static str,
}

/// A server of the model context protocol that a start would use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    /// Its name.
    pub name: String,
    /// Whether it may run; `None` while nobody decided about one that the project brings along.
    pub approved: Option<bool>,
}

/// What would be at work in a project.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProjectSettings {
    /// Events that run commands, of all scopes.
    pub hooks: Vec<String>,
    /// Servers by name.
    pub mcp_servers: Vec<McpServer>,
}

/// The settings files of one project, highest precedence first. A file that is missing or not
/// understood says nothing.
#[derive(Debug)]
pub(crate) struct Scopes {
    files: [(&'static str, Option<Value>); 4],
    project_servers: Vec<String>,
}

impl Scopes {
    /// Reads them. Blocks.
    pub(crate) fn read(home: &AgentHome, project: &Path) -> Self {
        Self::read_with(home, project, Path::new(MANAGED))
    }

    fn read_with(home: &AgentHome, project: &Path, managed: &Path) -> Self {
        let own = project.join(".claude");
        let scope = |path: PathBuf| read(&path);
        Self {
            files: [
                ("managed", scope(managed.to_owned())),
                ("local", scope(own.join("settings.local.json"))),
                ("project", scope(own.join("settings.json"))),
                ("user", scope(home.dir().join("settings.json"))),
            ],
            project_servers: keys(
                scope(project.join(".mcp.json")).as_ref().and_then(|file| file.get("mcpServers")),
            ),
        }
    }

    pub(crate) fn default_mode(&self) -> Option<DefaultMode> {
        self.files.iter().find_map(|(source, file)| {
            let mode = file.as_ref()?.pointer("/permissions/defaultMode")?.as_str()?;
            Some(DefaultMode { mode: mode.to_owned(), source })
        })
    }

    pub(crate) fn project_settings(&self, known: &Known, project: &Path) -> ProjectSettings {
        let own = known.approvals(project);
        let mut servers = BTreeMap::new();
        servers.extend(known.user_servers().iter().map(|name| (name.clone(), Some(true))));
        let decided = |name: &String| (name.clone(), self.approval(name, &own));
        servers.extend(self.project_servers.iter().map(decided));
        servers.extend(own.own.iter().map(|name| (name.clone(), Some(true))));
        ProjectSettings {
            hooks: self.hooks(),
            mcp_servers: servers
                .into_iter()
                .map(|(name, approved)| McpServer { name, approved })
                .collect(),
        }
    }

    fn hooks(&self) -> Vec<String> {
        let files = self.files.iter().filter_map(|(_, file)| file.as_ref());
        let events: BTreeSet<String> = files
            .filter_map(|file| file.get("hooks")?.as_object())
            .flatten()
            // An event without an entry runs nothing.
            .filter(|(_, entries)| entries.as_array().is_some_and(|entries| !entries.is_empty()))
            .map(|(event, _)| event.clone())
            .collect();
        events.into_iter().collect()
    }

    fn approval(&self, name: &String, own: &Approvals) -> Option<bool> {
        let files = || self.files.iter().filter_map(|(_, file)| file.as_ref());
        let listed = |key: &str| files().any(|file| words(file.get(key)).contains(name));
        if own.disabled.contains(name) || listed("disabledMcpjsonServers") {
            return Some(false);
        }
        let all =
            || files().any(|file| file.get("enableAllProjectMcpServers") == Some(&true.into()));
        let enabled = own.enabled.contains(name) || listed("enabledMcpjsonServers") || all();
        enabled.then_some(true)
    }
}

fn read(path: &Path) -> Option<Value> {
    // A project is not ours: a pipe in the place of a file must not hold anybody up.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty()).ok()?);
    let facts = file.metadata().ok()?;
    if !facts.is_file() || facts.len() > SIZE_CAP {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(SIZE_CAP).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct Bench {
        root: tempfile::TempDir,
        home: AgentHome,
    }

    impl Bench {
        fn new(files: &[(&str, &str)]) -> Self {
            let root = tempfile::tempdir().unwrap();
            for (name, text) in files {
                let path = root.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            let env = [("HOME".into(), root.path().join("home").into())].into();
            Self { home: AgentHome::of_child(&env).unwrap(), root }
        }

        fn scopes(&self) -> Scopes {
            let managed = self.root.path().join("managed.json");
            Scopes::read_with(&self.home, &self.root.path().join("p"), &managed)
        }
    }

    fn mode(mode: &str) -> String {
        format!(r#"{{"permissions":{{"defaultMode":"{mode}"}}}}"#)
    }

    #[test]
    fn the_default_mode_is_that_of_the_highest_scope() {
        let user = ("home/.claude/settings.json", mode("plan"));
        let project = ("p/.claude/settings.json", mode("acceptEdits"));
        let local = ("p/.claude/settings.local.json", mode("bypassPermissions"));
        let managed = ("managed.json", mode("default"));
        let all = [user, project, local, managed];
        let expected = [
            ("plan", "user"),
            ("acceptEdits", "project"),
            ("bypassPermissions", "local"),
            ("default", "managed"),
        ];
        for (n, (mode, source)) in expected.into_iter().enumerate() {
            let files: Vec<(&str, &str)> =
                all.iter().take(n + 1).map(|(name, text)| (*name, text.as_str())).collect();
            let found = Bench::new(&files).scopes().default_mode();
            assert_eq!(found, Some(DefaultMode { mode: mode.to_owned(), source }));
        }
        assert_eq!(Bench::new(&[]).scopes().default_mode(), None);
        let odd = [("p/.claude/settings.json", "[]"), ("home/.claude/settings.json", "{")];
        assert_eq!(Bench::new(&odd).scopes().default_mode(), None);
    }

    #[test]
    fn hooks_and_servers_are_named_with_what_was_decided_about_them() {
        let bench = Bench::new(&[
            ("p/.mcp.json", r#"{"mcpServers":{"on":{},"off":{},"open":{}}}"#),
            ("p/.claude/settings.json", r#"{"hooks":{"Stop":[{"hooks":[]}],"PreCompact":[]}}"#),
            (
                "home/.claude/settings.json",
                r#"{"hooks":{"SessionStart":[{}]},"disabledMcpjsonServers":["off"]}"#,
            ),
        ]);
        let project = bench.root.path().join("p");
        let text = serde_json::json!({
            "mcpServers": {"mine": {}},
            "projects": {project.to_str().unwrap(): {
                "enabledMcpjsonServers": ["on"], "mcpServers": {"local": {}},
            }},
        });
        let known = Known::parse(&text.to_string()).unwrap();
        let found = bench.scopes().project_settings(&known, &project);
        assert_eq!(found.hooks, ["SessionStart", "Stop"]);
        let servers: Vec<(&str, Option<bool>)> =
            found.mcp_servers.iter().map(|one| (one.name.as_str(), one.approved)).collect();
        let yes = Some(true);
        let expected =
            [("local", yes), ("mine", yes), ("off", Some(false)), ("on", yes), ("open", None)];
        assert_eq!(servers, expected);
    }

    #[test]
    fn a_pipe_or_a_giant_in_the_place_of_settings_says_nothing() {
        let bench = Bench::new(&[("p/.claude/x", "")]);
        let own = bench.root.path().join("p/.claude");
        let kind = rustix::fs::FileType::Fifo;
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, own.join("settings.json"), kind, mode, 0).unwrap();
        let giant = File::create(own.join("settings.local.json")).unwrap();
        giant.set_len(SIZE_CAP + 1).unwrap();
        assert_eq!(bench.scopes().default_mode(), None);
    }
}
