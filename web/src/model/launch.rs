//! The launch dialog: what may be chosen, what still stands in the way, what is sent.

use crate::model::basics::{Basics, Label};
use crate::text::launch as words;
use svc_shared::api::instances::SpawnRequest;
use svc_shared::api::projects::Project;
use svc_shared::error::ErrorCode;
use svc_shared::internal::Preflight;
use svc_shared::status::{CheckStatus, PermissionMode, SpawnMode, TrustState};
use svc_shared::text::session_name;

/// What a person has filled in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Form {
    /// Word of the permission mode.
    pub permission_mode: String,
    /// Word of the spawn mode.
    pub spawn_mode: String,
    /// Session name; blank means the project name.
    pub name: String,
    /// The box of the trust gate.
    pub trusts: bool,
    /// The project name, typed to allow bypassing permissions.
    pub typed: String,
}

/// What was chosen at the last launch of a project, or is asked for by the address.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Choice {
    /// Word of the permission mode.
    pub permission_mode: Option<String>,
    /// Word of the spawn mode.
    pub spawn_mode: Option<String>,
    /// Session name. Not remembered.
    #[serde(skip)]
    pub name: Option<String>,
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
        Form {
            permission_mode: allowed(&asked.permission_mode)
                .or(remembered)
                .or_else(|| allowed(&usual))
                .unwrap_or_else(|| PermissionMode::Default.as_str().to_owned()),
            spawn_mode: possible(&asked.spawn_mode)
                .or_else(|| possible(&last.spawn_mode))
                .or_else(|| possible(&Some(self.basics.spawn_mode.clone())))
                .unwrap_or_else(|| SpawnMode::SameDir.as_str().to_owned()),
            name: asked.name.clone().unwrap_or_default(),
            trusts: false,
            typed: String::new(),
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
        if form.spawn_mode == SpawnMode::Worktree.as_str() && !self.project.is_git_repo {
            blocks.push(Block::Worktree);
        }
        if let Err(why) = session_name(&form.name) {
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
        let verdict = preflight.launch.get("standard").filter(|v| !v.ok);
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

    /// What is sent.
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

    /// The choice in one sentence.
    #[must_use]
    pub fn summary(&self, form: &Form) -> String {
        let label = self.basics.label(&form.permission_mode);
        words::summary(
            &crate::text::status::spawn_mode(&form.spawn_mode).to_lowercase(),
            &label.short,
        )
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
}
