//! Tests of the rules of the launch dialog.

use super::*;
use crate::model::sample::{basics, bridge, check, preflight, project};
use serde_json::{Value, json};
use svc_shared::Timestamp;
use svc_shared::status::BridgeStatus;

fn asked(members: &[(&str, &str)]) -> Choice {
    let value = |name: &str| members.iter().find(|(n, _)| *n == name).map(|(_, value)| *value);
    Choice::of(|name| value(name).unwrap_or_default().to_owned())
}

struct Case {
    project: Project,
    basics: Basics,
    preflight: Option<Preflight>,
    beside: usize,
}

impl Case {
    fn new() -> Self {
        Self { project: project("api"), basics: basics(), preflight: None, beside: 0 }
    }
    fn ground(&self) -> Ground<'_> {
        let preflight = self.preflight.as_ref();
        Ground { project: &self.project, basics: &self.basics, preflight, beside: self.beside }
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
    let bypass = asked(&[("permission_mode", "bypassPermissions")]);
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
    let worktree = asked(&[("spawn_mode", "worktree")]);
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
    let remarks = case.ground().remarks(&form);
    assert_eq!(remarks, [("agent-login found".to_owned(), None)]);
    // Until the reset of a plan limit others may have ended.
    form.waits = true;
    let found: Vec<String> = case.blocks(&form).iter().map(Block::words).collect();
    assert_eq!(found, ["git found", "permissions found"]);
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
    let body = serde_json::to_value(case.ground().dispatch(&form)).unwrap();
    (case.ground().blocks(&form), body)
}

#[test]
fn the_last_choice_is_kept_except_for_a_bypass_and_the_texts() {
    let mut form = Form { kind: Kind::Background, ..Case::new().form() };
    form.permission_mode = "plan".into();
    form.name = "n".into();
    form.prompt = "do it".into();
    let kept = Choice::read(&Choice::kept(&form).text());
    let expected =
        [("kind", "background"), ("permission_mode", "plan"), ("spawn_mode", "same-dir")];
    assert_eq!(kept, asked(&expected));
    form.permission_mode = "bypassPermissions".into();
    assert_eq!(Choice::kept(&form).get("permission_mode"), None);
    assert_eq!(Choice::read("{"), Choice::default());
}

#[test]
fn a_draft_brings_back_everything_but_the_gates() {
    let case = Case::new();
    for registers in [false, true] {
        let form = Form {
            kind: Kind::Background,
            prompt: "line 1\nline 2".into(),
            registers,
            model: "opus".into(),
            permission_mode: "plan".into(),
            name: if registers { "nightly" } else { "" }.into(),
            ..case.form()
        };
        let gated = Form { trusts: true, typed: "api".into(), ..form.clone() };
        let draft = Choice::read(&Choice::drafted(&gated).text());
        assert_eq!(case.ground().form(&Choice::default(), &draft), form);
    }
    let bare = Form { registers: true, ..case.form() };
    assert_eq!(case.ground().form(&Choice::default(), &Choice::drafted(&bare)), bare);
}

#[test]
fn a_direct_session_has_a_name_and_neither_a_place_nor_a_restart_policy() {
    let mut case = Case::new();
    let mut form = case.form();
    form.choose(Kind::Direct);
    form.name = "fix the build".into();
    form.restart = "on-crash".into();
    let request = case.ground().request(&form);
    assert_eq!(request.mode.as_deref(), Some("hosted"));
    assert_eq!((request.spawn_mode, request.restart), (None, None));
    assert_eq!(request.name.as_deref(), Some("fix the build"));
    assert!(case.ground().summary(&form).starts_with("Direct Session, "));

    let mut off = preflight(Vec::new());
    let code = Some("hosted_unavailable".to_owned());
    let verdict = svc_shared::internal::LaunchVerdict { ok: false, code };
    off.launch.insert("hosted".into(), verdict);
    case.preflight = Some(off);
    assert!(case.ground().kind_off(Kind::Direct).unwrap().contains("hosted.enabled"));
    assert_eq!(case.ground().kind_off(Kind::ServerMode), None);
    assert_eq!(case.blocks(&form).len(), 1);
}

#[test]
fn a_launch_is_asked_for_again_with_its_own_options() {
    let mut row = bridge("api", BridgeStatus::Error);
    row.permission_mode = PermissionMode::Plan.into();
    row.spawn_mode = SpawnMode::Worktree.into();
    let form = Case::new().ground().form(&Choice::default(), &Choice::again(&row));
    assert_eq!((form.permission_mode.as_str(), form.spawn_mode.as_str()), ("plan", "worktree"));
    assert_eq!(form.name, "");
    row.label = "nightly".into();
    assert_eq!(Choice::again(&row).get("name"), Some("nightly"));
}

#[test]
fn a_refusal_for_want_of_trust_opens_the_gate_although_the_record_says_trusted() {
    let case = Case::new();
    let mut form = Form { must_trust: true, ..case.form() };
    assert_eq!(case.blocks(&form), [Block::Trust]);
    form.trusts = true;
    assert_eq!(case.ground().request(&form).trust, Some(true));
}

#[test]
fn an_interactive_session_is_off_only_where_no_terminal_can_be_made() {
    let mut case = Case::new();
    let mut told = preflight(Vec::new());
    let form = Form { kind: Kind::Interactive, ..case.form() };
    for (code, off) in [("pty_unavailable", true), ("capacity", false), ("not_trusted", false)] {
        let verdict =
            svc_shared::internal::LaunchVerdict { ok: false, code: Some(code.to_owned()) };
        told.launch.insert("pty".into(), verdict);
        case.preflight = Some(told.clone());
        let found = case.ground().kind_off(Kind::Interactive);
        assert_eq!(found, off.then(|| words::verdict(code)), "{code}");
        assert_eq!(case.blocks(&form).is_empty(), code == "not_trusted", "{code}");
        assert_eq!(case.ground().kind_off(Kind::ServerMode), None);
    }
}

#[test]
fn an_interactive_session_asks_for_its_own_kind_place_and_policy() {
    let case = Case::new();
    let query = [("kind", "pty"), ("spawn_mode", "worktree"), ("restart", "on-crash")];
    let form = case.ground().form(&Choice::default(), &asked(&query));
    let request = case.ground().request(&form);
    assert_eq!(request.mode.as_deref(), Some("pty"));
    assert_eq!(request.spawn_mode.as_deref(), Some("worktree"));
    assert_eq!(request.restart.as_deref(), Some("on-crash"));
    assert_eq!(case.ground().request(&case.form()).restart, None);
    let odd = case.ground().form(&Choice::default(), &asked(&[("restart", "moon")]));
    assert_eq!(odd.restart, "");
    assert!(case.ground().summary(&form).starts_with("Interactive Session in a worktree"));
}

#[test]
fn a_place_that_a_kind_does_not_have_is_left_when_the_kind_is_chosen() {
    let mut form = Form { spawn_mode: "session".into(), ..Case::new().form() };
    form.choose(Kind::Background);
    assert_eq!(form.spawn_mode, "session", "the way back keeps it");
    form.choose(Kind::Interactive);
    assert_eq!(form.spawn_mode, "same-dir");
    let asked = asked(&[("kind", "pty"), ("spawn_mode", "session")]);
    let form = Case::new().ground().form(&Choice::default(), &asked);
    assert_eq!(form.spawn_mode, "same-dir");
}

#[test]
fn the_kind_of_the_configuration_is_chosen_first() {
    let mut case = Case::new();
    case.basics.resume_mode = "pty".into();
    assert_eq!(case.form().kind, Kind::Interactive);
    let asked = asked(&[("kind", "background")]);
    let form = case.ground().form(&Choice::default(), &asked);
    assert_eq!(form.kind, Kind::Background);
}

#[test]
fn sessions_that_share_the_files_of_the_project_are_warned_about() {
    let mut case = Case::new();
    let mut form = Form { kind: Kind::Interactive, ..case.form() };
    assert_eq!(case.ground().collision(&form), None);
    case.beside = 2;
    assert!(case.ground().collision(&form).is_some_and(|text| text.starts_with("2 other")));
    form.spawn_mode = "worktree".into();
    assert_eq!(case.ground().collision(&form), None);
    let server = Form { kind: Kind::ServerMode, spawn_mode: "same-dir".into(), ..form };
    assert_eq!(case.ground().collision(&server), None);
}

#[test]
fn what_holds_a_server_mode_bridge_up_does_not_concern_a_session_beside_it() {
    let mut case = Case::new();
    let mut checks = vec![check("bridge", CheckStatus::Fail)];
    checks.push(check("mcp-approval", CheckStatus::Warn));
    case.preflight = Some(preflight(checks));
    let form = Form { kind: Kind::Interactive, ..case.form() };
    assert_eq!(case.blocks(&form), []);
    assert_eq!(case.blocks(&case.form()).len(), 1);
    let told = case.ground().remarks(&form);
    assert_eq!(told[0].1.as_deref(), Some(words::MCP_ASKS));
    assert_ne!(case.ground().remarks(&case.form())[0].1.as_deref(), Some(words::MCP_ASKS));
}

#[test]
fn a_repository_without_a_commit_has_no_worktree_to_run_in() {
    let mut case = Case::new();
    let mut told = preflight(Vec::new());
    let verdict = svc_shared::internal::LaunchVerdict { ok: false, code: Some("not_git".into()) };
    told.launch.insert("worktree".into(), verdict);
    case.preflight = Some(told);
    for kind in [Kind::ServerMode, Kind::Interactive] {
        let mut form = Form { kind, ..case.form() };
        assert_eq!(case.blocks(&form), []);
        form.spawn_mode = "worktree".into();
        assert_eq!(case.blocks(&form)[0].words(), words::NO_WORKTREE);
    }
}

#[test]
fn at_the_limit_the_bridges_nobody_uses_are_named_first() {
    let live = |name: &str, since, inside| {
        let mut row = bridge(name, BridgeStatus::Running);
        row.status_since = Timestamp::from_millis(since);
        (Arc::new(row), inside)
    };
    let names = ["busy", "new", "old", "e", "f", "g"];
    let rows: Vec<_> = [(1, 2), (9, 0), (5, 0), (6, 0), (7, 0), (8, 0)]
        .into_iter()
        .zip(names)
        .map(|((since, inside), name)| live(name, since, inside))
        .collect();
    let found = least_used(&rows);
    let name = |id: &String| rows.iter().find(|(row, _)| row.instance_id.as_str() == id);
    let found: Vec<_> =
        found.iter().filter_map(name).map(|(row, _)| row.project.as_str()).collect();
    assert_eq!(found, ["old", "e", "f", "g", "new"]);
    let mut full = preflight(Vec::new());
    assert!(!is_full(&full));
    full.facts = Some(svc_shared::internal::Facts {
        inherit: svc_shared::internal::InheritFact { mode: "default".into(), source: None },
        hooks: Vec::new(),
        mcp_servers: Vec::new(),
        capacity: svc_shared::internal::CapacityFact { live: 2, max: Some(2) },
        restart: None,
    });
    assert!(is_full(&full));
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
    assert!(matches!(blocks.as_slice(), [Block::Check { detail, .. }] if detail == "agent found"));
}

#[test]
fn the_kind_is_taken_from_the_address_before_the_last_choice() {
    let case = Case::new();
    let kind = |word: &str| asked(&[("kind", word)]);
    let form = |last: &Choice, asked: &Choice| case.ground().form(last, asked).kind;
    assert_eq!(form(&kind("background"), &Choice::default()), Kind::Background);
    assert_eq!(form(&kind("background"), &kind("standard")), Kind::ServerMode);
    assert_eq!(form(&kind("moon"), &Choice::default()), Kind::ServerMode);
}
