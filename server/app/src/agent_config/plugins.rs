//! Plugins and marketplaces, through the agent's own commands and never a shell.
//!
//! The agent reads the settings of the directory that it runs in. In a project that is not trusted
//! it is not run.

use super::{AgentConfigEditor, ConfigTarget, bad, ignore, parsed, read_one};
use crate::jobs::ask::{Answer, Question};
use crate::ops::audit::{Change, Surface};
use crate::tasks::blocking;
use crate::{AppError, Class};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use svc_domain::admission::Trust;
use svc_domain::agent_config::plugins::{
    MarketplaceOp, PluginOp, PluginRequest, check_plugin, marketplace_args, plugin_args,
};
use svc_domain::agent_config::secrets::masked;
use svc_domain::log_escape::quoted;
use svc_domain::redact::redact_text;
use svc_shared::error::ErrorCode;
use svc_shared::internal::agent_config::{ConfigList, PluginChanged, PluginDetails};

/// How long one command may take (`http-api` §3.7).
const MOST_TIME: Duration = Duration::from_secs(60);
/// Characters of the agent's words that are passed on.
const MOST_CHARS: usize = 2_000;
/// Stands for the agent's own directory, whose path stays on the machine.
const AGENT_DIRECTORY: &str = "<agent home>";

impl AgentConfigEditor {
    /// The plugins that the agent lists.
    ///
    /// # Errors
    /// The agent is missing, failed, or may not run in the project.
    pub async fn plugins(&self, target: &ConfigTarget) -> Result<ConfigList, AppError> {
        let list = self.listed(target, &["plugin", "list", "--json"]).await?;
        Ok(of_scope(target, "plugins", list))
    }

    /// The marketplaces that the agent lists.
    ///
    /// # Errors
    /// The agent is missing, failed, or may not run in the project.
    pub async fn marketplaces(&self, target: &ConfigTarget) -> Result<ConfigList, AppError> {
        let list = self.listed(target, &["plugin", "marketplace", "list", "--json"]).await?;
        Ok(of_scope(target, "marketplaces", list))
    }

    /// Which plugins the settings of a scope switch on or off.
    ///
    /// # Errors
    /// The settings file is not one that can be shown.
    pub async fn plugins_enabled(&self, target: &ConfigTarget) -> Result<ConfigList, AppError> {
        let found = self.setting(target, "enabledPlugins").await?;
        Ok(of_scope(target, "enabled", found))
    }

    /// The marketplaces that the settings of a scope declare.
    ///
    /// # Errors
    /// The settings file is not one that can be shown.
    pub async fn marketplaces_declared(
        &self,
        target: &ConfigTarget,
    ) -> Result<ConfigList, AppError> {
        let found = self.setting(target, "extraKnownMarketplaces").await?;
        Ok(of_scope(target, "marketplaces", found))
    }

    /// What the agent tells about one plugin.
    ///
    /// # Errors
    /// There is none, or the agent is missing, failed, or may not run in the project.
    pub async fn plugin(&self, target: &ConfigTarget, id: &str) -> Result<PluginDetails, AppError> {
        check_plugin(id).map_err(bad)?;
        let args = ["plugin", "details", id].map(str::to_owned).to_vec();
        let answer = self.ask_agent(target, args).await?;
        let details = Self::words(target, &answer);
        Ok(PluginDetails { plugin: id.to_owned(), details })
    }

    /// Switches, installs, updates or removes a plugin.
    ///
    /// # Errors
    /// An installation is not confirmed by the plugin's id, a value does not fit, or the agent is
    /// missing, failed, or may not run in the project.
    pub async fn change_plugin(
        self: &Arc<Self>,
        target: ConfigTarget,
        request: PluginRequest,
        confirmed: Option<&str>,
    ) -> Result<PluginChanged, AppError> {
        if request.op == PluginOp::Install && confirmed != Some(request.plugin.as_str()) {
            return Err(AppError::new(
                ErrorCode::ConfirmRequired,
                Class::Invalid,
                "`confirm_plugin` must be the id of the plugin: what is installed runs on this \
                 machine",
            ));
        }
        let args = plugin_args(&request, target.scope).map_err(bad)?;
        let change = (Surface::Plugins, request.op.as_str(), request.plugin);
        self.changed_by_agent(target, args, change).await
    }

    /// Adds, updates or removes marketplaces.
    ///
    /// # Errors
    /// A value does not fit, or the agent is missing, failed, or may not run in the project.
    pub async fn change_marketplace(
        self: &Arc<Self>,
        target: ConfigTarget,
        op: MarketplaceOp,
    ) -> Result<PluginChanged, AppError> {
        let args = marketplace_args(&op, target.scope).map_err(bad)?;
        let change = (Surface::Marketplaces, op.as_str(), op.subject().to_owned());
        self.changed_by_agent(target, args, change).await
    }

    async fn changed_by_agent(
        self: &Arc<Self>,
        target: ConfigTarget,
        args: Vec<String>,
        (surface, op, subject): (Surface, &'static str, String),
    ) -> Result<PluginChanged, AppError> {
        let this = Arc::clone(self);
        let work = async move {
            // The agent writes the settings file, which the other surfaces are parts of.
            let _writing = this.writing.lock().await;
            let settings = target.settings();
            let before = read_one(&settings).await?;
            this.check_trusted(&target).await?;
            let change = Change {
                surface,
                scope: target.audit_scope(),
                target: subject.clone(),
                action: op,
                keys: Vec::new(),
            };
            let ignored = before.is_none().then(|| target.ignored(&settings)).flatten();
            let work = async {
                if let Some(ignored) = ignored {
                    blocking(move || ignore(&ignored)).await??;
                }
                this.ask_agent(&target, args).await
            };
            let answer = this.audit.record(change, work).await?;
            Ok(PluginChanged {
                scope: target.scope.as_str().to_owned(),
                project: target.project_name(),
                op: op.to_owned(),
                subject,
                ok: true,
                output: Self::words(&target, &answer),
            })
        };
        self.tasks.complete(work).await
    }

    async fn setting(&self, target: &ConfigTarget, key: &str) -> Result<Value, AppError> {
        let file = target.settings();
        let found = read_one(&file).await?;
        let document = parsed(&file, found.as_ref())?;
        let value = document.value().get(key).filter(|value| value.is_object()).cloned();
        Ok(masked(&value.unwrap_or_else(|| Value::Object(Map::new()))))
    }

    async fn listed(&self, target: &ConfigTarget, args: &[&str]) -> Result<Value, AppError> {
        let args = args.iter().map(|&arg| arg.to_owned()).collect();
        let answer = self.ask_agent(target, args).await?;
        // A warning may stand before the list.
        let from = answer.output.find(['[', '{']).unwrap_or_default();
        let text = answer.output.get(from..).unwrap_or_default();
        let mut lists = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        match lists.next() {
            Some(Ok(list)) => Ok(without_paths(&masked(&list), &directory_of(target))),
            Some(Err(_)) | None => Err(failed(
                "the agent answered something else than a list; `claude plugin list --json` on \
                 the machine shows it"
                    .to_owned(),
            )),
        }
    }

    async fn check_trusted(&self, target: &ConfigTarget) -> Result<(), AppError> {
        let Some(project) = target.project.clone() else { return Ok(()) };
        let agent = Arc::clone(&self.agent);
        let name = project.name.clone();
        let trust =
            blocking(move || agent.trust(&project.path, project.git_root.as_deref())).await?;
        if trust == Trust::Granted {
            return Ok(());
        }
        let text = format!(
            "project {name} is not trusted, and the agent is not run in it; trust it, then try \
             again"
        );
        Err(AppError::new(ErrorCode::NotTrusted, Class::Forbidden, text))
    }

    async fn ask_agent(
        &self,
        target: &ConfigTarget,
        args: Vec<String>,
    ) -> Result<Answer, AppError> {
        self.check_trusted(target).await?;
        let program = self.agent.program_now().await?;
        let cwd = match &target.project {
            Some(project) => project.path.clone(),
            None => self.agent.cli().setup().cwd.clone(),
        };
        let question = Question { program, args, cwd, timeout: MOST_TIME };
        let answer = self.runs.ask(question).await?;
        if answer.code == Some(0) {
            return Ok(answer);
        }
        let text = Self::words(target, &answer);
        if text.to_ascii_lowercase().contains("not found") {
            return Err(AppError::new(ErrorCode::NotFound, Class::NotFound, text));
        }
        Err(failed(format!("the agent refused: {}", quoted(&text))))
    }

    /// What the agent said, without secrets and without the paths of its own files.
    fn words(target: &ConfigTarget, answer: &Answer) -> String {
        let text = redact_text(answer.output.trim());
        let text = text.replace(&directory_of(target), AGENT_DIRECTORY);
        text.chars().filter(|&c| c == '\n' || !c.is_control()).take(MOST_CHARS).collect()
    }
}

/// The value with [`AGENT_DIRECTORY`] in the place of the agent's own directory.
fn without_paths(value: &Value, directory: &str) -> Value {
    match value {
        Value::String(text) => Value::from(text.replace(directory, AGENT_DIRECTORY)),
        Value::Array(items) => items.iter().map(|item| without_paths(item, directory)).collect(),
        Value::Object(members) => Value::Object(
            members
                .iter()
                .map(|(key, value)| (key.clone(), without_paths(value, directory)))
                .collect(),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn directory_of(target: &ConfigTarget) -> String {
    target.home.dir().to_string_lossy().into_owned()
}

fn of_scope(target: &ConfigTarget, member: &str, list: Value) -> ConfigList {
    ConfigList {
        scope: target.scope.as_str().to_owned(),
        project: target.project_name(),
        list: Map::from_iter([(member.to_owned(), list)]),
    }
}

/// The agent could not do it: nothing is wrong with the service.
fn failed(text: String) -> AppError {
    AppError::new(ErrorCode::AgentFailed, Class::Invalid, text)
}
