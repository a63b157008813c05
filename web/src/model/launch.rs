//! The rules of the launch dialog.
//!
//! They say what can be chosen, what blocks the launch, and what is sent.

mod choice;

use crate::model::basics::{Basics, Label};
use crate::model::order::sorted;
use crate::text::launch as words;
use crate::text::status as status_words;
use std::sync::Arc;
use svc_shared::api::instances::{Instance, SpawnRequest};
use svc_shared::api::jobs::{DispatchRequest, MODEL_CHARS, PROMPT_BYTES};
use svc_shared::api::projects::Project;
use svc_shared::error::ErrorCode;
use svc_shared::internal::{Check, Preflight};
use svc_shared::status::{CheckStatus, PermissionMode, RestartPolicy, SpawnMode, TrustState};
use svc_shared::text::{is_hidden, session_name};

pub use choice::{Choice, MEMBERS, SANDBOX};

/// Bridges that are offered to be stopped when no further one fits.
const LEAST_USED: usize = 5;
/// Verdict where no terminal can be made.
const NO_TERMINAL: &str = "pty_unavailable";
/// Verdict where Direct Sessions are switched off.
const NO_DAEMON: &str = "hosted_unavailable";
/// Verdict where no worktree can be made.
const NOT_GIT: &str = "not_git";

/// What is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// A bridge in Server Mode.
    #[default]
    ServerMode,
    /// An Interactive Session: one conversation in a terminal.
    Interactive,
    /// A background job.
    Background,
    /// A Direct Session: one conversation, driven from here.
    Direct,
}

impl Kind {
    /// Everything that can be started here.
    pub const ALL: [Self; 4] =
        [Self::ServerMode, Self::Interactive, Self::Background, Self::Direct];

    /// The word in addresses, and the key of the verdict in preflight.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::ServerMode => "standard",
            Self::Interactive => "pty",
            Self::Background => "background",
            Self::Direct => "hosted",
        }
    }

    /// The name.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::ServerMode => words::SERVER_MODE,
            Self::Interactive => words::INTERACTIVE,
            Self::Background => crate::text::job::KIND,
            Self::Direct => words::DIRECT,
        }
    }

    /// What it does, in one or two sentences.
    #[must_use]
    pub fn effect(self) -> &'static str {
        match self {
            Self::ServerMode => words::SERVER_MODE_EFFECT,
            Self::Interactive => words::INTERACTIVE_EFFECT,
            Self::Background => words::BACKGROUND_EFFECT,
            Self::Direct => words::DIRECT_EFFECT,
        }
    }

    /// Whether a bridge is started, with a place to run in and a restart policy.
    #[must_use]
    pub fn is_bridge(self) -> bool {
        match self {
            Self::ServerMode | Self::Interactive => true,
            Self::Background | Self::Direct => false,
        }
    }

    /// Whether the session takes text from the service.
    #[must_use]
    pub fn takes_text(self) -> bool {
        match self {
            Self::Interactive | Self::Direct => true,
            Self::ServerMode | Self::Background => false,
        }
    }

    /// Where its sessions can work.
    #[must_use]
    pub fn places(self) -> &'static [SpawnMode] {
        match self {
            Self::ServerMode => SpawnMode::ALL,
            Self::Interactive => &[SpawnMode::SameDir, SpawnMode::Worktree],
            Self::Background | Self::Direct => &[],
        }
    }
}

/// What a person has filled in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Form {
    /// What is started.
    pub kind: Kind,
    /// First prompt of a background job.
    pub prompt: String,
    /// A background job is registered with the remote service, under `name`.
    pub registers: bool,
    /// Model of a background job; blank means the agent's own.
    pub model: String,
    /// Word of the permission mode.
    pub permission_mode: String,
    /// Word of the spawn mode.
    pub spawn_mode: String,
    /// Session name, or name in the remote service; blank means the project name.
    pub name: String,
    /// Word of the restart policy of a bridge; blank follows the configuration.
    pub restart: String,
    /// What a session does after a plan limit; blank follows the configuration.
    pub on_limit: String,
    /// It starts when the plan limit that is known is reset.
    pub waits: bool,
    /// The box of the trust gate.
    pub trusts: bool,
    /// The service has refused for want of trust, whatever the record says.
    pub must_trust: bool,
    /// The project name, typed to allow bypassing permissions.
    pub typed: String,
}

impl Form {
    /// Chooses what is started; where it runs stays, if that is possible there.
    pub fn choose(&mut self, kind: Kind) {
        self.kind = kind;
        let stays = kind.places().iter().any(|place| place.as_str() == self.spawn_mode);
        if kind.is_bridge() && !stays {
            self.spawn_mode = SpawnMode::SameDir.as_str().to_owned();
        }
    }
}

/// What the dialog knows about where it launches.
#[derive(Debug, Clone, Copy)]
pub struct Ground<'a> {
    /// The project.
    pub project: &'a Project,
    /// What the server takes when a request is silent.
    pub basics: &'a Basics,
    /// Readiness; `None` until it is known.
    pub preflight: Option<&'a Preflight>,
    /// Live bridges whose sessions work on the files of the project itself.
    pub beside: usize,
}

/// Something that stands in the way of the launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// The trust box is not checked.
    Trust,
    /// A background job has nothing to do.
    Prompt,
    /// The first prompt is too long.
    PromptTooLong,
    /// The model name breaks a rule.
    Model,
    /// The project name is not typed yet.
    Bypass,
    /// The session name breaks a rule.
    Name(String),
    /// No worktrees here.
    Worktree,
    /// The project is another name of this one.
    Alias(String),
    /// A check fails.
    Check {
        /// What was found.
        detail: String,
        /// What to do about it.
        hint: Option<String>,
    },
}

impl Block {
    /// Where it is put right, for the focus.
    #[must_use]
    pub fn field(&self) -> Option<&'static str> {
        Some(match self {
            Self::Trust => "[data-testid=trust-box]",
            Self::Prompt | Self::PromptTooLong => "#launch-prompt",
            Self::Model => "#launch-model",
            Self::Bypass => "[data-testid=bypass-name]",
            Self::Name(_) => "#launch-name",
            Self::Worktree => "#launch-spawn",
            Self::Alias(_) | Self::Check { .. } => return None,
        })
    }

    /// One sentence for the footer.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Trust => words::WAITS_FOR_TRUST.to_owned(),
            Self::Prompt => words::WAITS_FOR_PROMPT.to_owned(),
            Self::PromptTooLong => words::PROMPT_TOO_LONG.to_owned(),
            Self::Model => words::MODEL_REFUSED.to_owned(),
            Self::Bypass => words::WAITS_FOR_NAME.to_owned(),
            Self::Name(why) => words::name_refused(why),
            Self::Worktree => words::NOT_GIT.to_owned(),
            Self::Alias(of) => words::alias(of),
            Self::Check { detail, .. } => detail.clone(),
        }
    }
}

impl Ground<'_> {
    /// Whether the trust gate is shown.
    #[must_use]
    pub fn needs_trust(&self, form: &Form) -> bool {
        form.must_trust || !self.project.trust_state.is(&TrustState::Trusted)
    }

    /// Why a kind cannot be chosen on this machine.
    ///
    /// `None` where it can, or nobody knows yet.
    #[must_use]
    pub fn kind_off(&self, kind: Kind) -> Option<String> {
        let refused = self.preflight?.launch.get(kind.word()).filter(|verdict| !verdict.ok)?;
        let code = refused.code.as_deref()?;
        matches!(code, NO_TERMINAL | NO_DAEMON).then(|| words::verdict(code))
    }

    /// A warning that others work on the files that the session would work on.
    #[must_use]
    pub fn collision(&self, form: &Form) -> Option<String> {
        let shares = form.kind == Kind::Interactive
            && form.spawn_mode == SpawnMode::SameDir.as_str()
            && self.beside > 0;
        shares.then(|| words::collision(self.beside))
    }

    /// The permission modes to offer. Bypassing only where the configuration allows it.
    #[must_use]
    pub fn permission_modes(&self) -> Vec<(PermissionMode, Label)> {
        PermissionMode::ALL
            .iter()
            .filter(|mode| {
                **mode != PermissionMode::BypassPermissions || self.project.allow_bypass_permissions
            })
            .map(|mode| (*mode, self.basics.label(mode.as_str())))
            .collect()
    }

    /// A form with its first values.
    ///
    /// They come from the address, then from the last choice, then from the defaults of the server.
    #[must_use]
    pub fn form(&self, last: &Choice, asked: &Choice) -> Form {
        let allowed = |raw: Option<&str>| {
            let found =
                raw.filter(|raw| self.permission_modes().iter().any(|(m, _)| m.as_str() == *raw));
            found.map(str::to_owned)
        };
        let possible = |raw: Option<&str>| {
            let found = raw.filter(|raw| {
                raw.parse().is_ok_and(|mode: SpawnMode| {
                    mode != SpawnMode::Worktree || self.project.is_git_repo
                })
            });
            found.map(str::to_owned)
        };
        // A past bypass is never suggested again: it is asked for anew at each launch.
        let remembered = allowed(last.get("permission_mode"))
            .filter(|m| m != PermissionMode::BypassPermissions.as_str());
        let word = asked.get("kind").or(last.get("kind"));
        let text = |name| asked.get(name).unwrap_or_default().to_owned();
        let registered = asked.get("rc_name");
        let named = |word: Option<&str>| Kind::ALL.into_iter().find(|k| Some(k.word()) == word);
        let usual = || named(Some(self.basics.resume_mode.as_str()));
        let kind = named(word).or_else(usual).unwrap_or_default();
        let policy = asked.get("restart").filter(|word| word.parse::<RestartPolicy>().is_ok());
        let mut form = Form {
            permission_mode: allowed(asked.get("permission_mode"))
                .or(remembered)
                .or_else(|| allowed(Some(&self.basics.permission_mode)))
                .unwrap_or_else(|| PermissionMode::Default.as_str().to_owned()),
            spawn_mode: possible(asked.get("spawn_mode"))
                .or_else(|| possible(last.get("spawn_mode")))
                .or_else(|| possible(Some(&self.basics.spawn_mode)))
                .unwrap_or_else(|| SpawnMode::SameDir.as_str().to_owned()),
            name: registered.map_or_else(|| text("name"), |name| name.trim().to_owned()),
            prompt: text("prompt"),
            registers: registered.is_some(),
            model: text("model"),
            restart: policy.unwrap_or_default().to_owned(),
            ..Form::default()
        };
        form.choose(kind);
        form
    }

    /// Everything that still stands in the way, the nearest remedy first.
    #[must_use]
    pub fn blocks(&self, form: &Form) -> Vec<Block> {
        let mut blocks = Vec::new();
        if let Some(of) = &self.project.alias_of {
            blocks.push(Block::Alias(of.to_string()));
        }
        blocks.extend(self.failed_checks(form));
        match form.kind {
            Kind::ServerMode | Kind::Interactive => {
                if form.spawn_mode == SpawnMode::Worktree.as_str() && !self.project.is_git_repo {
                    blocks.push(Block::Worktree);
                }
            }
            Kind::Background => {
                if form.prompt.len() > PROMPT_BYTES {
                    blocks.push(Block::PromptTooLong);
                } else if is_blank(&form.prompt) && !form.registers {
                    blocks.push(Block::Prompt);
                }
                if model(&form.model).is_err() {
                    blocks.push(Block::Model);
                }
            }
            Kind::Direct => {}
        }
        if has_name(form)
            && let Err(why) = session_name(&form.name)
        {
            blocks.push(Block::Name(why.to_string()));
        }
        if is_bypass(form) && form.typed != self.project.name.as_str() {
            blocks.push(Block::Bypass);
        }
        if self.needs_trust(form) && !form.trusts {
            blocks.push(Block::Trust);
        }
        blocks
    }

    fn failed_checks(&self, form: &Form) -> Vec<Block> {
        let Some(preflight) = self.preflight else {
            return Vec::new();
        };
        // The verdict is on a default launch. What the form has changed, or asks for itself, is
        // not taken from it.
        let applies = |name: &str| match name {
            "trust" => false,
            // Until the reset of a plan limit others may have ended.
            "capacity" => form.kind.is_bridge() && !form.waits,
            // A session runs beside whatever is there.
            "bridge" => !matches!(form.kind, Kind::Interactive | Kind::Direct),
            "git" if !form.kind.is_bridge() => false,
            "git" => form.spawn_mode == SpawnMode::Worktree.as_str(),
            "permissions" => {
                form.permission_mode == PermissionMode::Inherit.as_str()
                    || form.permission_mode == self.basics.permission_mode
            }
            _ => true,
        };
        let mut blocks: Vec<Block> = preflight
            .checks
            .iter()
            .filter(|check| check.status.is(&CheckStatus::Fail) && applies(&check.name))
            .map(|check| Block::Check { detail: check.detail.clone(), hint: check.hint.clone() })
            .collect();
        // The verdict on the kind is one without a worktree.
        let is_worktree = form.kind.is_bridge() && form.spawn_mode == SpawnMode::Worktree.as_str();
        if is_worktree && self.project.is_git_repo && blocks.is_empty() {
            let refused = preflight.launch.get(SpawnMode::Worktree.as_str()).filter(|v| !v.ok);
            let code = refused.and_then(|v| v.code.as_deref()).filter(|code| *code == NOT_GIT);
            blocks.extend(
                code.map(|_| Block::Check { detail: words::NO_WORKTREE.to_owned(), hint: None }),
            );
        }
        let verdict = preflight.launch.get(form.kind.word()).filter(|v| !v.ok);
        let code = verdict.and_then(|v| v.code.as_deref());
        let asked_here = [ErrorCode::NotTrusted, ErrorCode::BypassForbidden]
            .iter()
            .any(|c| code == Some(c.as_str()))
            || (form.waits && code == Some(ErrorCode::Capacity.as_str()));
        if blocks.is_empty() && self.project.alias_of.is_none() && !asked_here {
            blocks
                .extend(code.map(|code| Block::Check { detail: words::verdict(code), hint: None }));
        }
        blocks
    }

    /// Remarks that do not stand in the way.
    #[must_use]
    pub fn remarks(&self, form: &Form) -> Vec<(String, Option<String>)> {
        let hint = |check: &Check| match check.name.as_str() {
            // The others work without the servers; a terminal shows the question and waits.
            "mcp-approval" if form.kind == Kind::Interactive => Some(words::MCP_ASKS.to_owned()),
            _ => check.hint.clone(),
        };
        self.preflight
            .iter()
            .flat_map(|preflight| &preflight.checks)
            .filter(|check| check.status.is(&CheckStatus::Warn))
            .map(|check| (check.detail.clone(), hint(check)))
            .collect()
    }

    /// What is asked for.
    #[must_use]
    pub fn request(&self, form: &Form) -> SpawnRequest {
        SpawnRequest {
            project: self.project.name.to_string(),
            mode: Some(form.kind.word().to_owned()),
            trust: (self.needs_trust(form) && form.trusts).then_some(true),
            spawn_mode: form.kind.is_bridge().then(|| form.spawn_mode.clone()),
            permission_mode: Some(form.permission_mode.clone()),
            name: session_name(&form.name).ok().flatten(),
            restart: Some(form.restart.clone())
                .filter(|policy| form.kind.is_bridge() && !policy.is_empty()),
            on_limit: Some(form.on_limit.clone())
                .filter(|choice| form.kind.takes_text() && !choice.is_empty()),
            ..SpawnRequest::default()
        }
    }

    /// What is sent to start a background job.
    #[must_use]
    pub fn dispatch(&self, form: &Form) -> DispatchRequest {
        let name = || {
            let typed = session_name(&form.name).ok().flatten();
            typed.unwrap_or_else(|| self.project.name.to_string())
        };
        DispatchRequest {
            project: self.project.name.to_string(),
            prompt: (!is_blank(&form.prompt)).then(|| form.prompt.clone()),
            rc_name: form.registers.then(name),
            model: model(&form.model).ok().flatten().map(str::to_owned),
            permission_mode: Some(form.permission_mode.clone()),
            trust: (self.needs_trust(form) && form.trusts).then_some(true),
        }
    }

    /// The choice in one sentence.
    #[must_use]
    pub fn summary(&self, form: &Form) -> String {
        let label = self.basics.label(&form.permission_mode);
        match form.kind {
            Kind::ServerMode | Kind::Interactive => words::summary(
                form.kind.label(),
                &status_words::spawn_mode_where(form.kind.word(), &form.spawn_mode),
                &label.short,
            ),
            Kind::Background | Kind::Direct => {
                words::summary_anywhere(form.kind.label(), &label.short)
            }
        }
    }
}

/// Whether no further bridge fits.
#[must_use]
pub fn is_full(preflight: &Preflight) -> bool {
    let capacity = preflight.facts.as_ref().map(|facts| &facts.capacity);
    capacity.is_some_and(|fact| fact.max.is_some_and(|max| fact.live >= max))
}

/// The live bridges that are least used.
///
/// Bridges without a session come first, then those that have not changed for the longest time.
/// Each comes with the number of its sessions; the result is their ids.
#[must_use]
pub fn least_used(live: &[(Arc<Instance>, usize)]) -> Vec<String> {
    let keyed = live.iter().map(|(bridge, inside)| {
        let since = bridge.status_since.as_millis();
        (format!("{}{since:020}", u8::from(*inside > 0)), bridge.instance_id.to_string())
    });
    let mut ids = sorted(keyed.collect());
    ids.truncate(LEAST_USED);
    ids
}

/// Whether a name is asked for.
#[must_use]
pub fn has_name(form: &Form) -> bool {
    match form.kind {
        Kind::ServerMode | Kind::Interactive | Kind::Direct => true,
        Kind::Background => form.registers,
    }
}

/// Nothing but white space, as the service sees it.
fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || c == '\u{feff}')
}

/// A model name, or none; an error when it breaks the rule of the service.
fn model(typed: &str) -> Result<Option<&str>, ()> {
    let name = typed.trim();
    if name.starts_with('-') || name.chars().any(is_hidden) {
        return Err(());
    }
    match name.chars().count() {
        0 => Ok(None),
        1..=MODEL_CHARS => Ok(Some(name)),
        _ => Err(()),
    }
}

/// Whether the form asks to bypass permissions.
#[must_use]
pub fn is_bypass(form: &Form) -> bool {
    form.permission_mode == PermissionMode::BypassPermissions.as_str()
}

#[cfg(test)]
mod tests;
