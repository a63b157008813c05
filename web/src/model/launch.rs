//! The rules of the launch dialog.
//!
//! They say what can be chosen, what blocks the launch, and what is sent.

use crate::model::basics::{Basics, Label};
use crate::model::order::sorted;
use crate::model::wire;
use crate::text::launch as words;
use std::collections::BTreeMap;
use std::sync::Arc;
use svc_shared::api::instances::{Instance, SpawnRequest};
use svc_shared::api::jobs::{DispatchRequest, MODEL_CHARS, PROMPT_BYTES};
use svc_shared::api::projects::Project;
use svc_shared::error::ErrorCode;
use svc_shared::internal::Preflight;
use svc_shared::status::{CheckStatus, PermissionMode, SpawnMode, TrustState};
use svc_shared::text::{is_hidden, session_name};

/// Bridges that are offered to be stopped when no further one fits.
const LEAST_USED: usize = 5;

/// What is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// A bridge in Server Mode.
    #[default]
    ServerMode,
    /// A background job.
    Background,
}

impl Kind {
    /// Everything that can be started here.
    pub const ALL: [Self; 2] = [Self::ServerMode, Self::Background];

    /// The word in addresses, and the key of the verdict in preflight.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::ServerMode => "standard",
            Self::Background => "background",
        }
    }

    /// The name.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::ServerMode => words::SERVER_MODE,
            Self::Background => crate::text::job::KIND,
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
    /// The box of the trust gate.
    pub trusts: bool,
    /// The service has refused for want of trust, whatever the record says.
    pub must_trust: bool,
    /// The project name, typed to allow bypassing permissions.
    pub typed: String,
}

/// Values to fill the launch dialog with.
///
/// They come from the last launch of the project or from the address. Trust and the confirmation of
/// a bypass are never part of them: the user gives both at each launch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice([Option<String>; MEMBERS.len()]);

/// Members of the query that fill in the dialog, and of what is kept.
pub const MEMBERS: [&str; 8] =
    ["kind", "permission_mode", "spawn_mode", "name", "prompt", "rc_name", "model", SANDBOX];
/// The member that is taken and has no effect.
pub const SANDBOX: &str = "sandbox";

impl Choice {
    /// From a reader of members; blank is absent.
    pub fn of(mut read: impl FnMut(&str) -> String) -> Self {
        Self(MEMBERS.map(|name| Some(read(name)).filter(|value| !value.is_empty())))
    }

    /// This kind, the rest as usual.
    #[must_use]
    pub fn of_kind(kind: Kind) -> Self {
        Self::of(|name| if name == "kind" { kind.word().to_owned() } else { String::new() })
    }

    /// The same launch once more.
    #[must_use]
    pub fn again(bridge: &Instance) -> Self {
        let name = if bridge.label == bridge.project { "" } else { bridge.label.as_str() };
        Self::of(|member| match member {
            "kind" => Kind::ServerMode.word().to_owned(),
            "permission_mode" => bridge.permission_mode.to_string(),
            "spawn_mode" => bridge.spawn_mode.to_string(),
            "name" => name.to_owned(),
            _ => String::new(),
        })
    }

    /// Everything that is filled in, without the gates.
    #[must_use]
    pub fn drafted(form: &Form) -> Self {
        Self::of(|member| {
            match member {
                "kind" => form.kind.word(),
                "permission_mode" => &form.permission_mode,
                "spawn_mode" => &form.spawn_mode,
                "name" => &form.name,
                "prompt" => &form.prompt,
                // Registered under the usual name is not the same as not registered.
                "rc_name" if form.registers && form.name.is_empty() => " ",
                "rc_name" if form.registers => &form.name,
                "model" => &form.model,
                _ => "",
            }
            .to_owned()
        })
    }

    /// A member.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let at = MEMBERS.iter().position(|member| *member == name)?;
        self.0.get(at)?.as_deref()
    }

    /// What was kept by [`Choice::text`]; nothing of what cannot be read.
    #[must_use]
    pub fn read(kept: &str) -> Self {
        let mut kept: BTreeMap<String, Option<String>> = wire::read(kept).unwrap_or_default();
        Self::of(|name| kept.remove(name).flatten().unwrap_or_default())
    }

    /// For keeping.
    #[must_use]
    pub fn text(&self) -> String {
        wire::written(&MEMBERS.iter().zip(&self.0).collect::<BTreeMap<_, _>>())
    }

    /// The values to suggest at the next launch of the project.
    ///
    /// A bypass is never suggested: the user confirms it at each launch.
    #[must_use]
    pub fn kept(form: &Form) -> Self {
        let all = Self::drafted(form);
        Self::of(|name| {
            let keeps = match name {
                "permission_mode" => !is_bypass(form),
                _ => matches!(name, "kind" | "spawn_mode"),
            };
            all.get(name).filter(|_| keeps).unwrap_or_default().to_owned()
        })
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

    /// Kinds that this server does not offer, with the reason.
    ///
    /// The reason is `None` until it is known.
    #[must_use]
    pub fn kinds_off(&self) -> Vec<(&'static str, Option<String>)> {
        let kinds = [("pty", words::INTERACTIVE), ("hosted", words::DIRECT)];
        let why = |word| match self.preflight {
            None => Some(None),
            Some(preflight) => {
                let refused = preflight.launch.get(word).filter(|verdict| !verdict.ok)?;
                Some(Some(words::verdict(refused.code.as_deref().unwrap_or_default())))
            }
        };
        kinds.into_iter().filter_map(|(word, label)| Some((label, why(word)?))).collect()
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
        Form {
            kind: Kind::ALL.into_iter().find(|kind| Some(kind.word()) == word).unwrap_or_default(),
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
            ..Form::default()
        }
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
            Kind::ServerMode => {
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
            "capacity" => form.kind == Kind::ServerMode,
            "git" if form.kind == Kind::Background => false,
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
        let verdict = preflight.launch.get(form.kind.word()).filter(|v| !v.ok);
        let code = verdict.and_then(|v| v.code.as_deref());
        let asked_here = [ErrorCode::NotTrusted, ErrorCode::BypassForbidden]
            .iter()
            .any(|c| code == Some(c.as_str()));
        if blocks.is_empty() && self.project.alias_of.is_none() && !asked_here {
            blocks
                .extend(code.map(|code| Block::Check { detail: words::verdict(code), hint: None }));
        }
        blocks
    }

    /// Remarks that do not stand in the way.
    #[must_use]
    pub fn remarks(&self) -> Vec<(String, Option<String>)> {
        self.preflight
            .iter()
            .flat_map(|preflight| &preflight.checks)
            .filter(|check| check.status.is(&CheckStatus::Warn))
            .map(|check| (check.detail.clone(), check.hint.clone()))
            .collect()
    }

    /// What is asked for.
    #[must_use]
    pub fn request(&self, form: &Form) -> SpawnRequest {
        SpawnRequest {
            project: self.project.name.to_string(),
            mode: Some("standard".to_owned()),
            trust: (self.needs_trust(form) && form.trusts).then_some(true),
            spawn_mode: Some(form.spawn_mode.clone()),
            permission_mode: Some(form.permission_mode.clone()),
            name: session_name(&form.name).ok().flatten(),
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
            Kind::ServerMode => words::summary(
                &crate::text::status::spawn_mode_where(&form.spawn_mode),
                &label.short,
            ),
            Kind::Background => words::summary_background(&label.short),
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
    form.kind == Kind::ServerMode || form.registers
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
