//! What can be edited of the agent's own configuration, and in which scopes.

pub mod diff;
pub mod faults;
pub mod merge;
pub mod place;

use crate::model::route::Query;
use serde_json::{Map, Value};
use svc_shared::paths::{CONFIG_WRITE, segment};

/// Stands for a secret that is stored and not shown.
pub const MASK: &str = "********";

/// How far a file reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// All projects of this user.
    User,
    /// Everybody who works in the project.
    #[default]
    Project,
    /// This user in one project.
    Local,
}

impl Scope {
    /// All, from the widest to the narrowest.
    pub const ALL: [Self; 3] = [Self::User, Self::Project, Self::Local];

    /// The word of the service.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
        }
    }

    /// The scope of a word; the project's for any other.
    #[must_use]
    pub fn of(word: &str) -> Self {
        Self::ALL.into_iter().find(|scope| scope.word() == word).unwrap_or_default()
    }

    /// What is typed before a save.
    #[must_use]
    pub fn confirmation(self, project: &str) -> String {
        match self {
            Self::User => "USER SCOPE".to_owned(),
            Self::Project => project.to_owned(),
            Self::Local => format!("{project} (local)"),
        }
    }
}

/// A part of the configuration with an editor of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// `CLAUDE.md`.
    Instructions,
    /// Every key of a settings file without an editor of its own.
    Settings,
    /// What may be done without a question.
    Permissions,
    /// Commands that run at events.
    Hooks,
    /// Servers of the model context protocol.
    Servers,
    /// Which servers of a project may run.
    Approvals,
    /// Agents that an agent may call.
    Subagents,
    /// How visible skills are.
    Skills,
    /// Plugins.
    Plugins,
    /// Where plugins come from.
    Marketplaces,
}

impl Surface {
    /// All, in the order of the list.
    pub const ALL: [Self; 10] = [
        Self::Instructions,
        Self::Settings,
        Self::Permissions,
        Self::Hooks,
        Self::Servers,
        Self::Approvals,
        Self::Subagents,
        Self::Skills,
        Self::Plugins,
        Self::Marketplaces,
    ];

    /// Its name in an address of the page.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Instructions => "claude-md",
            Self::Settings => "settings",
            Self::Permissions => "permissions",
            Self::Hooks => "hooks",
            Self::Servers => "mcp",
            Self::Approvals => "approvals",
            Self::Subagents => "subagents",
            Self::Skills => "skills",
            Self::Plugins => "plugins",
            Self::Marketplaces => "marketplaces",
        }
    }

    /// The surface of a word.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|surface| surface.word() == word)
    }

    /// Whether the agent has it in this scope.
    #[must_use]
    pub fn has(self, scope: Scope) -> bool {
        match self {
            Self::Approvals => scope == Scope::Project,
            Self::Subagents => scope != Scope::Local,
            Self::Instructions
            | Self::Settings
            | Self::Permissions
            | Self::Hooks
            | Self::Servers
            | Self::Skills
            | Self::Plugins
            | Self::Marketplaces => true,
        }
    }

    /// The file of a scope, or the directory of one of several, as a person knows it.
    #[must_use]
    pub fn file(self, scope: Scope, is_one: bool) -> &'static str {
        match (self, scope) {
            (Self::Instructions, Scope::User) => "<agent home>/CLAUDE.md",
            (Self::Instructions, Scope::Project) => "CLAUDE.md",
            (Self::Instructions, Scope::Local) => "CLAUDE.local.md",
            (Self::Servers, Scope::Project) => ".mcp.json",
            (Self::Servers | Self::Approvals, _) => ".claude.json",
            (Self::Skills, _) if is_one && scope == Scope::User => "<agent home>/skills",
            (Self::Skills, _) if is_one => ".claude/skills",
            (Self::Subagents, Scope::User) => "<agent home>/agents",
            (Self::Subagents, _) => ".claude/agents",
            (_, Scope::User) => "<agent home>/settings.json",
            (_, Scope::Project) => ".claude/settings.json",
            (_, Scope::Local) => ".claude/settings.local.json",
        }
    }
}

/// What an editor is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The surface.
    pub surface: Surface,
    /// The scope.
    pub scope: Scope,
    /// The project; empty where none is chosen.
    pub project: String,
    /// One of several: a subagent or a skill.
    pub name: String,
    /// A file of a skill; empty for [`MAIN_FILE`].
    pub file: String,
}

/// The file of a skill that says what it is for.
pub const MAIN_FILE: &str = "SKILL.md";
/// What is typed before another file of a skill is saved.
pub const REVIEWED: &str = "I HAVE REVIEWED THESE SCRIPTS";

impl Subject {
    /// The part of the path below the prefix.
    fn tail(&self) -> String {
        match self.surface {
            Surface::Approvals => "mcp/approvals".to_owned(),
            Surface::Skills if self.name.is_empty() => "skills/overrides".to_owned(),
            Surface::Subagents if !self.name.is_empty() => {
                format!("subagents/{}", segment(&self.name))
            }
            other => other.word().to_owned(),
        }
    }

    /// Where it is written.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{CONFIG_WRITE}/{}", self.tail())
    }

    /// Whether it is one file of a skill, and which.
    #[must_use]
    pub fn skill_file(&self) -> Option<&str> {
        let is_one = self.surface == Surface::Skills && !self.name.is_empty();
        is_one.then_some(if self.file.is_empty() { MAIN_FILE } else { &self.file })
    }

    /// Whether more than the usual word must be typed: what is saved may be run.
    #[must_use]
    pub fn is_script(&self) -> bool {
        self.skill_file().is_some_and(|file| file != MAIN_FILE)
    }

    /// Whether it is a text, and no value of a settings file.
    #[must_use]
    pub fn is_text(&self) -> bool {
        matches!(self.surface, Surface::Instructions | Surface::Subagents)
            || self.skill_file().is_some()
    }

    /// Where something of this scope is read.
    #[must_use]
    pub fn read_at(&self, tail: &str, more: &[(&str, &str)]) -> String {
        let mut query = Query::default();
        query.set("scope", self.scope.word());
        if self.scope != Scope::User {
            query.set("project", &self.project);
        }
        for (name, value) in more {
            query.set(name, value);
        }
        format!("{CONFIG_WRITE}/{tail}{}", query.text())
    }

    /// Where it is read.
    #[must_use]
    pub fn read(&self) -> String {
        match self.skill_file() {
            Some(file) => self.read_at("skills/file", &[("name", &self.name), ("relative", file)]),
            None => self.read_at(&self.tail(), &[]),
        }
    }

    /// The member that holds it.
    #[must_use]
    pub fn member(&self) -> &'static str {
        match self.surface {
            Surface::Instructions | Surface::Subagents => "content",
            Surface::Skills if !self.name.is_empty() => "content",
            Surface::Servers => "servers",
            Surface::Skills => "overrides",
            other => other.word(),
        }
    }

    /// The word that earlier versions are kept under; none where none are kept.
    #[must_use]
    pub fn kept_as(&self) -> Option<&'static str> {
        match self.surface {
            Surface::Servers if self.scope != Scope::Project => None,
            Surface::Approvals | Surface::Plugins | Surface::Marketplaces => None,
            Surface::Skills if self.name.is_empty() => Some("skills/overrides"),
            Surface::Subagents if self.name.is_empty() => None,
            other => Some(other.word()),
        }
    }

    /// What is typed before a save.
    #[must_use]
    pub fn confirmation(&self) -> String {
        self.scope.confirmation(&self.project)
    }

    /// What every write says.
    #[must_use]
    pub fn body(&self, confirm: &str) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("scope".to_owned(), self.scope.word().into());
        if self.scope != Scope::User {
            body.insert("project".to_owned(), self.project.clone().into());
        }
        body.insert("confirm".to_owned(), confirm.into());
        body
    }

    /// What is in an answer: the part, and the hash of its file.
    #[must_use]
    pub fn taken(&self, mut answer: Map<String, Value>) -> Known {
        let hash = answer.get("hash").and_then(Value::as_str).map(str::to_owned);
        let exists = answer.get("exists").and_then(Value::as_bool).unwrap_or(true);
        let value = match self.surface {
            Surface::Approvals => {
                answer.retain(|key, _| matches!(key.as_str(), "enabled" | "disabled"));
                Value::Object(answer)
            }
            _ => answer.remove(self.member()).unwrap_or_default(),
        };
        Known { value, hash, exists }
    }

    /// What is sent to write a value.
    #[must_use]
    pub fn written(&self, value: Value, hash: Option<String>, confirm: &str) -> Map<String, Value> {
        let mut body = self.body(confirm);
        if let Some(hash) = hash {
            body.insert("hash".to_owned(), hash.into());
        }
        match (self.surface, value) {
            (Surface::Skills, text) if !self.name.is_empty() => {
                let file = self.skill_file().unwrap_or(MAIN_FILE).to_owned();
                body.insert("name".to_owned(), self.name.clone().into());
                body.insert("files".to_owned(), Value::Object(Map::from_iter([(file, text)])));
                if self.is_script() {
                    // The page asks for it to be typed.
                    body.insert("confirm_scripts".to_owned(), REVIEWED.into());
                }
            }
            (Surface::Approvals, Value::Object(lists)) => body.extend(lists),
            (_, value) => drop(body.insert(self.member().to_owned(), value)),
        }
        body
    }
}

/// A part as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// Its value.
    pub value: Value,
    /// Hash of its file, where it has one.
    pub hash: Option<String>,
    /// The file exists.
    pub exists: bool,
}

/// The path of the page for a surface.
#[must_use]
pub fn address(subject: &Subject) -> String {
    let mut query = Query::default();
    query.set("project", &subject.project);
    if subject.scope != Scope::Project {
        query.set("scope", subject.scope.word());
    }
    query.set("name", &subject.name);
    query.set("file", &subject.file);
    format!("/ui/agent-config/{}{}", subject.surface.word(), query.text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn subject(surface: Surface, scope: Scope) -> Subject {
        let (name, file) = (String::new(), String::new());
        Subject { surface, scope, project: "a b".into(), name, file }
    }

    #[test]
    fn a_surface_is_read_and_written_by_its_own_words() {
        let hooks = subject(Surface::Hooks, Scope::Local);
        assert_eq!(hooks.read(), "/api/config-write/hooks?scope=local&project=a%20b");
        let body = hooks.written(json!({"Stop": []}), Some("h".into()), "a b (local)");
        assert_eq!(
            Value::Object(body),
            json!({"scope": "local", "project": "a b", "confirm": "a b (local)", "hash": "h",
                "hooks": {"Stop": []}})
        );
        let user = subject(Surface::Servers, Scope::User);
        assert_eq!(user.read(), "/api/config-write/mcp?scope=user");
        assert_eq!((user.member(), user.kept_as()), ("servers", None));
        assert_eq!(user.confirmation(), "USER SCOPE");
        let one = Subject { name: "me".into(), ..subject(Surface::Subagents, Scope::Project) };
        assert_eq!(one.path(), "/api/config-write/subagents/me");
        assert_eq!(address(&one), "/ui/agent-config/subagents?project=a%20b&name=me");
        let skill = Subject { surface: Surface::Skills, file: "run.sh".into(), ..one };
        assert_eq!(
            skill.read(),
            "/api/config-write/skills/file?scope=project&project=a%20b&name=me&relative=run.sh"
        );
        let body = Value::Object(skill.written(json!("echo"), None, "a b"));
        assert_eq!(
            (&body["files"]["run.sh"], &body["confirm_scripts"]),
            (&json!("echo"), &json!(REVIEWED))
        );
        assert!(skill.is_script() && !Subject { file: String::new(), ..skill }.is_script());
    }

    #[test]
    fn what_was_read_is_the_part_with_its_hash() {
        let read = |surface, answer: Value| {
            subject(surface, Scope::Project).taken(answer.as_object().unwrap().clone())
        };
        let known = read(Surface::Hooks, json!({"hash": "h", "exists": false, "hooks": {}}));
        assert_eq!(known, Known { value: json!({}), hash: Some("h".into()), exists: false });
        let known = read(
            Surface::Approvals,
            json!({"project": "a", "enabled": ["x"], "disabled": [], "locked": ["y"]}),
        );
        assert_eq!((known.value, known.hash), (json!({"enabled": ["x"], "disabled": []}), None));
    }

    #[test]
    fn every_surface_has_its_address() {
        for surface in Surface::ALL {
            assert_eq!(Surface::of(surface.word()), Some(surface));
            assert!(surface.has(Scope::Project));
        }
        assert_eq!(Surface::of("moon"), None);
        assert_eq!((Scope::of("user"), Scope::of("moon")), (Scope::User, Scope::Project));
    }
}
