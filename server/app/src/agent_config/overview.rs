//! How much there is of each surface in each scope.

use super::parts::instructions;
use super::servers;
use super::{AgentConfigEditor, ConfigTarget, read_all};
use crate::AppError;
use crate::tasks::blocking;
use serde_json::Value;
use std::collections::BTreeMap;
use svc_agent::json_document::JsonDocument;
use svc_agent::scope_file::{EntryKind, ScopeFile};
use svc_domain::agent_config::ConfigScope;
use svc_domain::agent_config::parts::Part;
use svc_shared::internal::agent_config::ConfigOverview;

/// Most subagents or skills that are counted.
const MOST_COUNTED: usize = 500;

type Counts = BTreeMap<String, BTreeMap<String, Option<u64>>>;

impl AgentConfigEditor {
    /// How many entries each surface has in each scope that is open.
    ///
    /// What cannot be read has no number; what the agent has not is left out.
    ///
    /// # Errors
    /// There is no such project, or the agent's files cannot be found.
    pub async fn overview(&self, project: Option<&str>) -> Result<ConfigOverview, AppError> {
        self.check_open()?;
        let mut scopes = Vec::new();
        if project.is_some() {
            scopes.extend([ConfigScope::Project, ConfigScope::Local]);
        }
        if self.config.config_write.allow_user_scope {
            scopes.push(ConfigScope::User);
        }
        let mut parts = Counts::new();
        let mut name = None;
        for scope in scopes {
            let target = self.target(scope, project)?;
            name = name.or_else(|| target.project_name());
            for (surface, count) in self.counted(&target).await? {
                let of = parts.entry(surface.to_owned()).or_default();
                of.insert(scope.as_str().to_owned(), count);
            }
        }
        Ok(ConfigOverview { project: name, parts })
    }

    async fn counted(
        &self,
        target: &ConfigTarget,
    ) -> Result<Vec<(&'static str, Option<u64>)>, AppError> {
        let document = readable(&target.settings()).await?;
        let of = |count: fn(&Value) -> u64| document.as_ref().map(count);
        let mut found = vec![
            ("settings", of(|it| len(&Part::Settings.shown(it)))),
            ("permissions", of(|it| rules(&Part::Permissions.shown(it)))),
            ("hooks", of(|it| hooks(&Part::Hooks.shown(it)))),
            ("plugins", of(|it| it.get("enabledPlugins").map_or(0, len))),
            ("marketplaces", of(|it| it.get("extraKnownMarketplaces").map_or(0, len))),
        ];
        let text = read_all(vec![instructions(target)]).await;
        let is_there = |found: Vec<_>| u64::from(found.iter().any(Option::is_some));
        found.push(("claude-md", text.ok().map(is_there)));
        let servers = self.servers(target).await.ok();
        let servers = servers.and_then(|found| found.part.get("servers").map(len));
        found.push((servers::WORD, servers));
        if target.scope == ConfigScope::Project {
            let decided = self.approvals(target).await.ok();
            let decided = decided.map(|it| (it.enabled.len() + it.disabled.len()) as u64);
            found.push(("approvals", decided));
        }
        if target.scope == ConfigScope::Local {
            let overrides = of(|it| len(&Part::SkillOverrides.shown(it)));
            found.push(("skills", overrides));
        } else {
            for (surface, kind) in
                [("subagents", EntryKind::File), ("skills", EntryKind::Directory)]
            {
                found.push((surface, entries(target, surface, kind).await?));
            }
        }
        Ok(found)
    }
}

/// How many files or directories a directory of the scope has.
///
/// None where it cannot be read.
async fn entries(
    target: &ConfigTarget,
    surface: &str,
    kind: EntryKind,
) -> Result<Option<u64>, AppError> {
    let directory = if surface == "subagents" { "agents" } else { surface };
    let directory = target.file(directory, &format!(".claude/{directory}"), 0);
    let entries = blocking(move || directory.entries(MOST_COUNTED)).await?;
    let is_one = |name: &str| kind == EntryKind::Directory || name.ends_with(".md");
    Ok(entries.ok().map(|entries| {
        let of = |entry: &&svc_agent::scope_file::Entry| {
            (entry.kind == kind || entry.kind == EntryKind::Link) && is_one(&entry.name)
        };
        entries.iter().filter(of).count() as u64
    }))
}

/// The object of a file; none where it cannot be read.
async fn readable(file: &ScopeFile) -> Result<Option<Value>, AppError> {
    let file = file.clone();
    let read = blocking(move || {
        let text = file.read().ok()?.map(|found| found.text).unwrap_or_default();
        Some(JsonDocument::parse(&text).ok()?.value().clone())
    });
    read.await
}

fn len(value: &Value) -> u64 {
    match value {
        Value::Object(members) => members.len() as u64,
        Value::Array(items) => items.len() as u64,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Rules of all lists; the default mode is one.
fn rules(permissions: &Value) -> u64 {
    let members = permissions.as_object().into_iter().flatten();
    members.map(|(_, value)| if value.is_string() { 1 } else { len(value) }).sum()
}

fn hooks(events: &Value) -> u64 {
    let groups = events.as_object().into_iter().flat_map(|events| events.values());
    let groups = groups.filter_map(Value::as_array).flatten();
    groups.map(|group| group.get("hooks").map_or(0, len)).sum()
}
