//! The launch dialog: what may be chosen, what still stands in the way, what is sent.

use crate::model::basics::{Basics, Label};
use crate::model::wire::{self, Members};
use crate::text::launch as words;
use serde_json::{Value, json};
use svc_shared::api::instances::SpawnRequest;
use svc_shared::api::jobs::{MODEL_CHARS, PROMPT_BYTES};
use svc_shared::api::projects::Project;
use svc_shared::error::ErrorCode;
use svc_shared::internal::Preflight;
use svc_shared::status::{CheckStatus, PermissionMode, SpawnMode, TrustState};
use svc_shared::text::session_name;

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
    /// The project name, typed to allow bypassing permissions.
    pub typed: String,
}

/// What was chosen at the last launch of a project, or is asked for by the address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// Word of the kind.
    pub kind: Option<String>,
    /// Word of the permission mode.
    pub permission_mode: Option<String>,
    /// Word of the spawn mode.
    pub spawn_mode: Option<String>,
    /// Session name. Not remembered.
    pub name: Option<String>,
}

impl Choice {
    /// What was kept by [`Choice::kept`]; nothing of what cannot be read.
    #[must_use]
    pub fn read(kept: &str) -> Self {
        let Ok(mut kept) = wire::read::<Members>(kept) else {
            return Self::default();
        };
        Self {
            kind: kept.maybe("kind"),
            permission_mode: kept.maybe("permission_mode"),
            spawn_mode: kept.maybe("spawn_mode"),
            name: None,
        }
    }

    /// What to suggest at the next launch of the same project. A bypass is never suggested: it is
    /// asked for anew at each launch.
    #[must_use]
    pub fn kept(form: &Form) -> String {
        json!({
            "kind": form.kind.word(),
            "permission_mode": (!is_bypass(form)).then_some(&form.permission_mode),
            "spawn_mode": form.spawn_mode,
        })
        .to_string()
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
    pub fn needs_trust(&self) -> bool {
        !self.project.trust_state.is(&TrustState::Trusted)
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

    /// A form with the defaults of the server, the last choice, and what the address asks for.
    #[must_use]
    pub fn form(&self, last: &Choice, asked: &Choice) -> Form {
        let allowed = |raw: &Option<String>| {
            raw.clone().filter(|raw| self.permission_modes().iter().any(|(m, _)| m.as_str() == raw))
        };
        let possible = |raw: &Option<String>| {
            raw.clone().filter(|raw| {
                raw.parse().is_ok_and(|mode: SpawnMode| {
                    mode != SpawnMode::Worktree || self.project.is_git_repo
                })
            })
        };
        let usual = Some(self.basics.permission_mode.clone());
        // A past bypass is never suggested again: it is asked for anew at each launch.
        let remembered = allowed(&last.permission_mode)
            .filter(|m| m != PermissionMode::BypassPermissions.as_str());
        let word = asked.kind.as_deref().or(last.kind.as_deref());
        Form {
            kind: Kind::ALL.into_iter().find(|kind| Some(kind.word()) == word).unwrap_or_default(),
            permission_mode: allowed(&asked.permission_mode)
                .or(remembered)
                .or_else(|| allowed(&usual))
                .unwrap_or_else(|| PermissionMode::Default.as_str().to_owned()),
            spawn_mode: possible(&asked.spawn_mode)
                .or_else(|| possible(&last.spawn_mode))
                .or_else(|| possible(&Some(self.basics.spawn_mode.clone())))
                .unwrap_or_else(|| SpawnMode::SameDir.as_str().to_owned()),
            name: asked.name.clone().unwrap_or_default(),
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
        if self.needs_trust() && !form.trusts {
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
            trust: (self.needs_trust() && form.trusts).then_some(true),
            spawn_mode: Some(form.spawn_mode.clone()),
            permission_mode: Some(form.permission_mode.clone()),
            name: session_name(&form.name).ok().flatten(),
            ..SpawnRequest::default()
        }
    }

    /// The body that asks for it.
    #[must_use]
    pub fn body(request: &SpawnRequest) -> Value {
        json!({
            "project": request.project,
            "mode": request.mode,
            "trust": request.trust,
            "spawn_mode": request.spawn_mode,
            "permission_mode": request.permission_mode,
            "name": request.name,
        })
    }

    /// What is sent to start a background job.
    #[must_use]
    pub fn dispatch(&self, form: &Form) -> Value {
        let name = || {
            let typed = session_name(&form.name).ok().flatten();
            typed.unwrap_or_else(|| self.project.name.to_string())
        };
        json!({
            "project": self.project.name,
            "prompt": (!is_blank(&form.prompt)).then_some(&form.prompt),
            "rc_name": form.registers.then(name),
            "model": model(&form.model).ok().flatten(),
            "permission_mode": form.permission_mode,
            "trust": (self.needs_trust() && form.trusts).then_some(true),
        })
    }

    /// The choice in one sentence.
    #[must_use]
    pub fn summary(&self, form: &Form) -> String {
        let label = self.basics.label(&form.permission_mode);
        match form.kind {
            Kind::ServerMode => words::summary(
                &crate::text::status::spawn_mode(&form.spawn_mode).to_lowercase(),
                &label.short,
            ),
            Kind::Background => words::summary_background(&label.short),
        }
    }
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
    if name.starts_with('-') || name.chars().any(char::is_control) {
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
mod tests {
    use super::*;
    use crate::model::sample::{basics, check, preflight, project};

    struct Case {
        project: Project,
        basics: Basics,
        preflight: Option<Preflight>,
    }

    impl Case {
        fn new() -> Self {
            Self { project: project("api"), basics: basics(), preflight: None }
        }
        fn ground(&self) -> Ground<'_> {
            Ground {
                project: &self.project,
                basics: &self.basics,
                preflight: self.preflight.as_ref(),
            }
        }
        fn form(&self) -> Form {
            self.ground().form(&Choice::default(), &Choice::default())
        }
        fn blocks(&self, form: &Form) -> Vec<Block> {
            self.ground().blocks(form)
        }
    }

    #[test]
    fn a_trusted_project_launches_with_the_defaults_of_the_server() {
        let case = Case::new();
        let form = case.form();
        assert_eq!(case.blocks(&form), []);
        let request = case.ground().request(&form);
        assert_eq!(request.permission_mode.as_deref(), Some("default"));
        assert_eq!(request.spawn_mode.as_deref(), Some("same-dir"));
        assert_eq!((request.trust, request.name), (None, None));
    }

    #[test]
    fn an_untrusted_project_waits_for_the_box_and_only_then_sends_the_trust() {
        let mut case = Case::new();
        case.project.trust_state = TrustState::Untrusted.into();
        let mut form = case.form();
        assert_eq!(case.blocks(&form), [Block::Trust]);
        assert_eq!(case.ground().request(&form).trust, None);
        form.trusts = true;
        assert_eq!(case.blocks(&form), []);
        assert_eq!(case.ground().request(&form).trust, Some(true));
    }

    #[test]
    fn bypassing_is_offered_only_where_allowed_and_asks_for_the_name_each_time() {
        let mut case = Case::new();
        let bypass =
            Choice { permission_mode: Some("bypassPermissions".into()), ..Choice::default() };
        let none = Choice::default();
        assert_eq!(case.ground().form(&none, &bypass).permission_mode, "default");
        case.project.allow_bypass_permissions = true;
        assert_eq!(case.ground().form(&bypass, &none).permission_mode, "default");
        let mut form = case.ground().form(&none, &bypass);
        assert!(is_bypass(&form));
        form.typed = "API".into();
        assert_eq!(case.blocks(&form), [Block::Bypass]);
        form.typed = "api".into();
        assert_eq!(case.blocks(&form), []);
    }

    #[test]
    fn worktrees_are_not_suggested_outside_a_repository() {
        let mut case = Case::new();
        case.project.is_git_repo = false;
        let worktree = Choice { spawn_mode: Some("worktree".into()), ..Choice::default() };
        let mut form = case.ground().form(&worktree, &Choice::default());
        assert_eq!(form.spawn_mode, "same-dir");
        form.spawn_mode = "worktree".into();
        assert_eq!(case.blocks(&form), [Block::Worktree]);
    }

    #[test]
    fn a_bad_session_name_says_which_rule_it_breaks() {
        let case = Case::new();
        let mut form = case.form();
        form.name = "--help".into();
        assert!(matches!(case.blocks(&form).as_slice(), [Block::Name(why)] if why.contains('-')));
        form.name = "  nightly ".into();
        assert_eq!(case.ground().request(&form).name.as_deref(), Some("nightly"));
    }

    #[test]
    fn a_failing_check_blocks_unless_the_form_already_answers_it() {
        let mut case = Case::new();
        case.preflight = Some(preflight(vec![
            check("trust", CheckStatus::Fail),
            check("git", CheckStatus::Fail),
            check("permissions", CheckStatus::Fail),
            check("capacity", CheckStatus::Fail),
            check("agent-login", CheckStatus::Warn),
        ]));
        let mut form = case.form();
        form.permission_mode = "plan".into();
        let found: Vec<String> = case.blocks(&form).iter().map(Block::words).collect();
        assert_eq!(found, ["capacity found"]);
        form.permission_mode = "inherit".into();
        form.spawn_mode = "worktree".into();
        let found: Vec<String> = case.blocks(&form).iter().map(Block::words).collect();
        assert_eq!(found, ["git found", "permissions found", "capacity found"]);
        let remarks = case.ground().remarks();
        assert_eq!(remarks, [("agent-login found".to_owned(), None)]);
    }

    #[test]
    fn a_verdict_without_a_failing_check_still_blocks_with_its_word() {
        let mut case = Case::new();
        let mut verdict = preflight(Vec::new());
        verdict.launch.insert(
            "standard".into(),
            svc_shared::internal::LaunchVerdict { ok: false, code: Some("held_elsewhere".into()) },
        );
        case.preflight = Some(verdict);
        assert_eq!(case.blocks(&case.form()).len(), 1);
    }

    fn job(fill: impl Fn(&mut Form)) -> (Vec<Block>, Value) {
        let case = Case::new();
        let mut form = Form { kind: Kind::Background, ..case.form() };
        fill(&mut form);
        (case.ground().blocks(&form), case.ground().dispatch(&form))
    }

    #[test]
    fn the_last_choice_is_kept_except_for_a_bypass_and_the_name() {
        let mut form = Form { kind: Kind::Background, ..Case::new().form() };
        form.permission_mode = "plan".into();
        form.name = "n".into();
        let kept = Choice::read(&Choice::kept(&form));
        assert_eq!(kept.kind.as_deref(), Some("background"));
        assert_eq!((kept.permission_mode.as_deref(), kept.name), (Some("plan"), None));
        form.permission_mode = "bypassPermissions".into();
        assert_eq!(Choice::read(&Choice::kept(&form)).permission_mode, None);
        assert_eq!(Choice::read("{"), Choice::default());
    }

    #[test]
    fn a_job_needs_a_first_prompt_unless_it_is_registered() {
        let (blocks, _) = job(|form| form.prompt = " \n\u{feff}".into());
        assert_eq!(blocks, [Block::Prompt]);
        let (blocks, body) = job(|form| form.registers = true);
        assert!(blocks.is_empty());
        assert_eq!((&body["prompt"], &body["rc_name"]), (&Value::Null, &json!("api")));
        let (blocks, body) = job(|form| form.prompt = "do it".into());
        assert!(blocks.is_empty());
        assert_eq!((&body["prompt"], &body["rc_name"]), (&json!("do it"), &Value::Null));
        assert_eq!(body["permission_mode"], "default");
    }

    #[test]
    fn a_prompt_or_a_model_that_the_service_would_refuse_is_refused_here() {
        let (blocks, _) = job(|form| form.prompt = "ä".repeat(PROMPT_BYTES / 2 + 1));
        assert_eq!(blocks, [Block::PromptTooLong]);
        for bad in ["-x", "a\u{7}b", &"m".repeat(129)] {
            let (blocks, _) = job(|form| {
                form.prompt = "x".into();
                form.model = bad.into();
            });
            assert_eq!(blocks, [Block::Model], "{bad:?}");
        }
        let (_, body) = job(|form| form.model = " opus ".into());
        assert_eq!(body["model"], "opus");
    }

    #[test]
    fn the_limit_of_bridges_and_a_missing_repository_do_not_concern_a_job() {
        let mut case = Case::new();
        case.project.is_git_repo = false;
        let checks = ["capacity", "git", "agent"].map(|name| check(name, CheckStatus::Fail));
        case.preflight = Some(preflight(checks.to_vec()));
        let form = Form {
            kind: Kind::Background,
            prompt: "x".into(),
            spawn_mode: "worktree".into(),
            ..case.form()
        };
        let blocks = case.ground().blocks(&form);
        assert!(
            matches!(blocks.as_slice(), [Block::Check { detail, .. }] if detail == "agent found")
        );
    }

    #[test]
    fn the_kind_is_taken_from_the_address_before_the_last_choice() {
        let case = Case::new();
        let kind = |word: &str| Choice { kind: Some(word.into()), ..Choice::default() };
        let form = |last: &Choice, asked: &Choice| case.ground().form(last, asked).kind;
        assert_eq!(form(&kind("background"), &Choice::default()), Kind::Background);
        assert_eq!(form(&kind("background"), &kind("standard")), Kind::ServerMode);
        assert_eq!(form(&kind("moon"), &Choice::default()), Kind::ServerMode);
    }
}
