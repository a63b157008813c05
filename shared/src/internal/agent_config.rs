//! The agent's own configuration, as an editor shows it in its scopes.

use crate::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Whether it can be changed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigWriteStatus {
    /// Files of projects can be changed.
    pub enabled: bool,
    /// Files of the user can be changed too.
    pub allow_user_scope: bool,
}

/// How many entries each surface has in each scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigOverview {
    /// The project; none where only the files of the user were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Numbers by surface and scope; null where a file cannot be read.
    pub parts: BTreeMap<String, BTreeMap<String, Option<u64>>>,
}

/// One part of a file as it is now. Secrets are shown as `********`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfigPart {
    /// `user`, `project` or `local`.
    pub scope: String,
    /// The project; none in the scope of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// SHA-256 of the file, hexadecimal; null for a part of the agent's own state file.
    pub hash: Option<String>,
    /// The file exists.
    pub exists: bool,
    /// The part, under the name that it is written by.
    #[serde(flatten)]
    pub part: Map<String, Value>,
}

/// What a write left behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigSaved {
    /// `user`, `project` or `local`.
    pub scope: String,
    /// The project; none in the scope of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Always true.
    pub ok: bool,
    /// SHA-256 of the file as it is now; null for a part of the agent's own state file.
    pub hash: Option<String>,
}

/// The settings that are in force in a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EffectiveSettings {
    /// The project.
    pub project: String,
    /// Each key with `value` and `source`: `local`, `project` or `user`.
    pub effective: Map<String, Value>,
}

/// What was decided about the servers that a project brings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerApprovals {
    /// The project.
    pub project: String,
    /// Names that may run.
    pub enabled: Vec<String>,
    /// Names that may not.
    pub disabled: Vec<String>,
    /// Names that a settings file decides about: they are changed there.
    pub locked: Vec<String>,
}

/// What was done to one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerChanged {
    /// `user`, `project` or `local`.
    pub scope: String,
    /// The project; none in the scope of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Its name.
    pub name: String,
    /// `add`, `remove` or `edit`.
    pub op: String,
    /// Always true.
    pub ok: bool,
}

/// The copies that are kept of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigCopies {
    /// `user`, `project` or `local`.
    pub scope: String,
    /// The project; none in the scope of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The surface.
    pub surface: String,
    /// SHA-256 of the file as it is now.
    pub hash: String,
    /// What it contained before its last changes, newest first.
    pub copies: Vec<ConfigCopy>,
}

/// What a file contained before a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigCopy {
    /// Names it among the copies of its file.
    pub id: String,
    /// When the change was made.
    pub at: Timestamp,
    /// Size of the file.
    pub bytes: u64,
}

/// The subagents of a scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subagents {
    /// `user` or `project`.
    pub scope: String,
    /// The project; none in the scope of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// By name; those that the agent brings come last.
    pub agents: Vec<SubagentItem>,
}

/// One subagent in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentItem {
    /// Its name.
    pub name: String,
    /// `project`, `user`, `built-in` or `plugin`.
    pub source: String,
    /// It can be changed here.
    pub editable: bool,
    /// What the agent chooses it by; null where that cannot be read.
    pub description: Option<String>,
}

/// One subagent. Secrets are masked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Subagent {
    /// `user` or `project`.
    pub scope: String,
    /// The project; none in the scope of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Its name.
    pub name: String,
    /// `project`, `user`, `built-in` or `plugin`.
    pub source: String,
    /// It can be changed here.
    pub editable: bool,
    /// It is there.
    pub exists: bool,
    /// Its file; empty where it is not shown.
    pub content: String,
    /// The members of its front matter.
    pub frontmatter: Option<Value>,
    /// Why the front matter cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frontmatter_error: Option<String>,
    /// SHA-256 of the file.
    pub hash: String,
}

/// What was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigDeleted {
    /// `user` or `project`.
    pub scope: String,
    /// The project; none in the scope of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Its name.
    pub name: String,
    /// Always true.
    pub deleted: bool,
}

/// The skills of a scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skills {
    /// `user` or `project`.
    pub scope: String,
    /// The project; none in the scope of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// By name.
    pub skills: Vec<SkillItem>,
}

/// One skill in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillItem {
    /// Its name.
    pub name: String,
    /// It can be changed here.
    pub editable: bool,
    /// It has a `SKILL.md`: without one the agent does not see it.
    pub has_skill_md: bool,
    /// Its files, by their path in it.
    pub files: Vec<String>,
    /// What the agent chooses it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Only a person calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_model_invocation: Option<bool>,
    /// Why the front matter cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frontmatter_error: Option<String>,
    /// Why not all of its files are listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_error: Option<String>,
}

/// One file of a skill. Secrets are masked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillFile {
    /// `user` or `project`.
    pub scope: String,
    /// The project; none in the scope of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Name of the skill.
    pub name: String,
    /// Path of the file in it.
    pub relative: String,
    /// Its text.
    pub content: String,
    /// SHA-256 of the file.
    pub hash: String,
    /// It is there.
    pub exists: bool,
}

/// What a write of a skill left behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillSaved {
    /// `user` or `project`.
    pub scope: String,
    /// The project; none in the scope of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Name of the skill.
    pub name: String,
    /// Always true.
    pub ok: bool,
    /// SHA-256 of each file that was sent, as it is now.
    pub hashes: BTreeMap<String, String>,
}

/// What became of a skill that was to be removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillDeleted {
    /// `user` or `project`.
    pub scope: String,
    /// The project; none in the scope of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Its name.
    pub name: String,
    /// It was there.
    pub existed: bool,
}

/// A list of a scope, as the agent or its settings file has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfigList {
    /// `user`, `project` or `local`.
    pub scope: String,
    /// The project; none in the scope of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The list, under its name.
    #[serde(flatten)]
    pub list: Map<String, Value>,
}

/// What the agent tells about a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginDetails {
    /// Its id.
    pub plugin: String,
    /// The agent's own words.
    pub details: String,
}

/// What the agent did with a plugin or with marketplaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginChanged {
    /// `user`, `project` or `local`.
    pub scope: String,
    /// The project; none in the scope of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// What was done.
    pub op: String,
    /// The plugin, the marketplace or its source.
    pub subject: String,
    /// Always true.
    pub ok: bool,
    /// The agent's own words.
    pub output: String,
}
