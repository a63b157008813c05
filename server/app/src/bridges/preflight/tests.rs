//! Preflight and launch never disagree.

use super::*;
use crate::bridges::circumstances::judged;
use proptest::prelude::*;
use proptest::sample::select;
use svc_domain::admission::{Admission, Picked};
use svc_domain::identity::Pid;
use svc_shared::error::ErrorCode;
use svc_shared::ids::{InstanceId, ProjectName};
use svc_shared::status::QuarantineCode;

fn id() -> InstanceId {
    "3a375c2e-0a3b-4c5d-8e9f-001122334455".parse().unwrap()
}

fn name() -> ProjectName {
    "api".parse().unwrap()
}

fn project() -> Project {
    Project {
        name: name(),
        path: "/p/api".into(),
        shown_path: "/p/api".into(),
        git_root: None,
        has_claude_md: false,
        has_claude_dir: false,
        alias_of: None,
    }
}

fn any_unrecorded() -> impl Strategy<Value = Unrecorded> {
    let pid = Pid::new(4242).unwrap();
    select(vec![
        Unrecorded::Nothing,
        Unrecorded::Nothing,
        Unrecorded::Adoptable(pid),
        Unrecorded::OtherService(pid),
        Unrecorded::WronglyEnded { id: id(), is_stopping: false },
        Unrecorded::WronglyEnded { id: id(), is_stopping: true },
        Unrecorded::Held { id: id(), code: QuarantineCode::Unkillable },
        Unrecorded::MayBeLive(id()),
    ])
}

/// Launches with default options, which is what a preflight is about.
fn any_wanted() -> impl Strategy<Value = Wanted> {
    let spawn = select(vec![SpawnMode::SameDir, SpawnMode::Worktree, SpawnMode::Session]);
    let permission = select(vec![
        PermissionMode::Default,
        PermissionMode::Inherit,
        PermissionMode::BypassPermissions,
        PermissionMode::Plan,
    ]);
    (spawn, permission, any::<bool>()).prop_map(|(spawn_mode, permission_mode, odd_name)| Wanted {
        resume_mode: ResumeMode::Standard,
        spawn_mode,
        permission_mode,
        trust: false,
        name_reads_as_option: odd_name,
    })
}

prop_compose! {
    fn any_circumstances()(
        is_alias in prop::bool::weighted(0.1),
        (is_git_repo, has_commit) in any::<(bool, bool)>(),
        leads_elsewhere in prop::bool::weighted(0.1),
        (bypass_allowed, inherits_bypass) in any::<(bool, bool)>(),
        is_occupied in prop::bool::weighted(0.2),
        unrecorded in any_unrecorded(),
        trust in select(vec![
            Trust::Granted, Trust::Granted, Trust::Missing, Trust::Unreadable("broken".into()),
        ]),
        live_bridges in 0..3_u32,
        max_bridges in prop::option::of(0..3_u32),
        has_program in prop::bool::weighted(0.9),
        disk_has_room in prop::bool::weighted(0.9),
    ) -> Circumstances {
        Circumstances {
            alias_of: is_alias.then(|| "real".parse().unwrap()),
            is_git_repo,
            has_commit,
            foreign_git: leads_elsewhere.then(|| "its `.git` leads to another place".to_owned()),
            bypass_allowed,
            inherits_bypass,
            live_standard: is_occupied.then(id),
            unrecorded,
            trust,
            live_bridges,
            max_bridges,
            program: if has_program {
                Program::Present
            } else {
                Program::Missing("no agent".into())
            },
            has_terminal: true,
            picked: Picked::Nothing,
            disk_has_room,
        }
    }
}

/// What a launch answers.
/// A corrected record is live, or its process has been stopped; the launch is judged again then.
fn launched(wanted: Wanted, now: &Circumstances) -> Result<(), ErrorCode> {
    match judged(&name(), wanted, now) {
        Err(error) => Err(error.code),
        Ok(Admission::Correct(corrected)) => {
            let is_stopping =
                matches!(now.unrecorded, Unrecorded::WronglyEnded { is_stopping: true, .. });
            let after = Circumstances {
                unrecorded: Unrecorded::Nothing,
                live_standard: (!is_stopping).then_some(corrected),
                ..now.clone()
            };
            launched(wanted, &after)
        }
        Ok(Admission::Launch { .. } | Admission::Reuse(_) | Admission::TakeOver(_)) => Ok(()),
        Ok(Admission::Refused(_)) => unreachable!("a refusal is an error"),
    }
}

/// The code that a preflight gives for a refusal; git has a word of its own there.
fn told(launch: &LaunchVerdict) -> Result<(), String> {
    if launch.ok { Ok(()) } else { Err(launch.code.clone().expect("a code")) }
}

fn word_of(error: ErrorCode, found: Option<&Obstacle>) -> String {
    match found {
        Some(Obstacle::NotGit | Obstacle::NoCommit | Obstacle::ForeignGit(_)) => {
            "not_git".to_owned()
        }
        Some(_) | None => error.as_str().to_owned(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn preflight_and_launch_agree(
        wanted in any_wanted(),
        now in any_circumstances(),
        login: bool,
    ) {
        let project = project();
        let report =
            Report { project: &project, wanted, now: &now, has_hosted: false, has_commit: now.has_commit,
                foreign_git: now.foreign_git.clone(), login, servers: &[] };
        let shown = report.preflight();
        let found = obstacles(wanted, &now);
        let launch = launched(wanted, &now);

        prop_assert_eq!(shown.ok, launch.is_ok(), "{:?}", shown);
        let failed: Vec<&Check> = shown
            .checks
            .iter()
            .filter(|check| check.status == CheckStatus::Fail.into())
            .collect();
        prop_assert_eq!(failed.is_empty(), shown.ok, "{:?}", failed);
        prop_assert_eq!(
            told(&shown.launch["standard"]),
            launch.map_err(|code| word_of(code, found.first()))
        );
        let brief = summary(&found);
        prop_assert_eq!(brief.ok, shown.ok);
        for code in &brief.codes {
            prop_assert!(failed.iter().any(|check| &check.name == code), "{}", code);
        }
        prop_assert!(failed.iter().all(|check| brief.codes.contains(&check.name)));

        let worktree = Wanted { spawn_mode: SpawnMode::Worktree, ..wanted };
        let first = obstacles(worktree, &now).into_iter().next();
        prop_assert_eq!(
            told(&shown.launch["worktree"]),
            launched(worktree, &now).map_err(|code| word_of(code, first.as_ref()))
        );
    }
}

#[test]
fn servers_that_wait_for_approval_are_a_warning_and_named() {
    let server = |name: &str, approved| McpServer { name: name.to_owned(), approved };
    let open = [server("on", Some(true)), server("off", Some(false)), server("new", None)];
    let check = approval_check(&open);
    assert_eq!(check.status, CheckStatus::Warn.into());
    assert!(check.detail.ends_with(": new"), "{}", check.detail);
    assert!(check.hint.is_some());
    let decided = approval_check(&open[..2]);
    assert_eq!((decided.status, decided.hint), (CheckStatus::Ok.into(), None));
}
