//! The order of reasons against a launch, and each of them.

use super::*;

fn wanted() -> Wanted {
    Wanted {
        resume_mode: ResumeMode::Standard,
        spawn_mode: SpawnMode::SameDir,
        permission_mode: PermissionMode::Default,
        trust: false,
        name_reads_as_option: false,
    }
}

fn fine() -> Circumstances {
    Circumstances {
        alias_of: None,
        is_git_repo: true,
        has_commit: true,
        foreign_git: None,
        bypass_allowed: false,
        inherits_bypass: false,
        live_standard: None,
        unrecorded: Unrecorded::Nothing,
        trust: Trust::Granted,
        live_bridges: 0,
        max_bridges: None,
        program: Program::Present,
        has_terminal: true,
        picked: Picked::Nothing,
        disk_has_room: true,
    }
}

fn live() -> InstanceId {
    "3a375c2e-0a3b-4c5d-8e9f-001122334455".parse().unwrap()
}

fn pid() -> Pid {
    Pid::new(4242).unwrap()
}

#[track_caller]
fn refused(wanted: Wanted, now: &Circumstances, obstacle: &Obstacle) {
    assert_eq!(admit(wanted, now), Admission::Refused(obstacle.clone()));
    assert!(obstacles(wanted, now).contains(obstacle));
}

#[test]
fn a_plain_launch_in_a_trusted_directory_is_admitted() {
    assert_eq!(admit(wanted(), &fine()), Admission::Launch { grant_trust: false });
    assert_eq!(obstacles(wanted(), &fine()), []);
}

#[test]
fn an_untrusted_directory_needs_an_explicit_acknowledgement() {
    let now = Circumstances { trust: Trust::Missing, ..fine() };
    refused(wanted(), &now, &Obstacle::NotTrusted);
    let acknowledged = Wanted { trust: true, ..wanted() };
    assert_eq!(admit(acknowledged, &now), Admission::Launch { grant_trust: true });
}

#[test]
fn a_broken_trust_file_refuses_even_an_acknowledged_launch() {
    let why = "broken".to_owned();
    let now = Circumstances { trust: Trust::Unreadable(why.clone()), ..fine() };
    refused(Wanted { trust: true, ..wanted() }, &now, &Obstacle::TrustUnreadable(why));
}

#[test]
fn a_live_server_mode_bridge_is_reused_regardless_of_trust_and_capacity() {
    let now = Circumstances {
        live_standard: Some(live()),
        trust: Trust::Missing,
        live_bridges: 3,
        max_bridges: Some(3),
        ..fine()
    };
    assert_eq!(admit(wanted(), &now), Admission::Reuse(live()));
    assert_eq!(obstacles(wanted(), &now), [], "a preflight says the same");
}

#[test]
fn a_bridge_started_elsewhere_is_returned_regardless_of_trust_and_capacity() {
    let now = Circumstances {
        unrecorded: Unrecorded::Adoptable(pid()),
        trust: Trust::Missing,
        live_bridges: 3,
        max_bridges: Some(3),
        ..fine()
    };
    assert_eq!(admit(wanted(), &now), Admission::TakeOver(pid()));
    assert_eq!(obstacles(wanted(), &now), [], "a preflight says the same");
}

#[test]
fn a_bridge_that_may_not_be_taken_over_is_an_obstacle_of_its_own() {
    let id = live();
    let code = QuarantineCode::Unkillable;
    for (unrecorded, obstacle) in [
        (Unrecorded::OtherService(pid()), Obstacle::OtherService(pid())),
        (Unrecorded::Held { id: id.clone(), code }, Obstacle::Held { id: id.clone(), code }),
        (Unrecorded::MayBeLive(id.clone()), Obstacle::MayBeLive(id.clone())),
    ] {
        let now = Circumstances { unrecorded, trust: Trust::Missing, ..fine() };
        refused(wanted(), &now, &obstacle);
    }
}

#[test]
fn a_wrongly_ended_record_is_corrected_before_anything_else_is_judged() {
    let wrong = |is_stopping| Circumstances {
        unrecorded: Unrecorded::WronglyEnded { id: live(), is_stopping },
        trust: Trust::Missing,
        ..fine()
    };
    for is_stopping in [true, false] {
        assert_eq!(admit(wanted(), &wrong(is_stopping)), Admission::Correct(live()));
    }
    assert_eq!(obstacles(wanted(), &wrong(false)), [], "it is the answer then");
    assert_eq!(obstacles(wanted(), &wrong(true)), [Obstacle::NotTrusted], "it ends first");
}

#[test]
fn an_invalid_request_is_never_answered_with_a_live_bridge() {
    let now = Circumstances { live_standard: Some(live()), is_git_repo: false, ..fine() };
    refused(Wanted { spawn_mode: SpawnMode::Worktree, ..wanted() }, &now, &Obstacle::NotGit);
    let bypass = Wanted { permission_mode: PermissionMode::BypassPermissions, ..wanted() };
    refused(bypass, &now, &Obstacle::BypassForbidden);
}

#[test]
fn an_interactive_session_may_run_beside_a_server_mode_bridge() {
    let now = Circumstances { live_standard: Some(live()), ..fine() };
    let pty = Wanted { resume_mode: ResumeMode::Pty, ..wanted() };
    assert_eq!(admit(pty, &now), Admission::Launch { grant_trust: false });
}

#[test]
fn an_interactive_session_counts_for_the_cap_and_needs_a_terminal() {
    let pty = Wanted { resume_mode: ResumeMode::Pty, ..wanted() };
    let full = Circumstances { live_bridges: 2, max_bridges: Some(2), ..fine() };
    refused(pty, &full, &Obstacle::Capacity { max: 2 });
    let bare = Circumstances { has_terminal: false, ..fine() };
    refused(pty, &bare, &Obstacle::NoTerminal);
    assert_eq!(admit(wanted(), &bare), Admission::Launch { grant_trust: false });
    let odd = Wanted { name_reads_as_option: true, ..pty };
    refused(odd, &fine(), &Obstacle::ProjectReadsAsOption);
}

#[test]
fn only_a_conversation_that_is_surely_of_this_project_is_copied() {
    let pty = Wanted { resume_mode: ResumeMode::Pty, ..wanted() };
    let picked = |picked| Circumstances { picked, ..fine() };
    refused(pty, &picked(Picked::Unknown), &Obstacle::UnknownConversation);
    refused(pty, &picked(Picked::Shared), &Obstacle::SharedTranscripts);
    assert_eq!(admit(pty, &picked(Picked::Found)), Admission::Launch { grant_trust: false });
}

#[test]
fn a_session_in_the_projects_own_directory_is_advised_to_take_a_worktree() {
    let pty = Wanted { resume_mode: ResumeMode::Pty, ..wanted() };
    assert!(advice(pty).is_some());
    assert_eq!(advice(Wanted { spawn_mode: SpawnMode::Worktree, ..pty }), None);
    assert_eq!(advice(wanted()), None);
}

#[test]
fn bypass_is_forbidden_whichever_way_it_is_asked_for() {
    let now = Circumstances { inherits_bypass: true, ..fine() };
    let inherit = Wanted { permission_mode: PermissionMode::Inherit, ..wanted() };
    refused(inherit, &now, &Obstacle::InheritedBypassForbidden);
    let allowed = Circumstances { bypass_allowed: true, ..now };
    assert_eq!(admit(inherit, &allowed), Admission::Launch { grant_trust: false });
    let bypass = Wanted { permission_mode: PermissionMode::BypassPermissions, ..wanted() };
    assert_eq!(admit(bypass, &allowed), Admission::Launch { grant_trust: false });
}

#[test]
fn circumstances_refuse_in_the_documented_order() {
    let mut now = Circumstances {
        trust: Trust::Missing,
        live_bridges: 2,
        max_bridges: Some(2),
        program: Program::Missing("no agent".into()),
        disk_has_room: false,
        ..fine()
    };
    refused(wanted(), &now, &Obstacle::NotTrusted);
    now.trust = Trust::Granted;
    refused(wanted(), &now, &Obstacle::Capacity { max: 2 });
    now.max_bridges = Some(3);
    refused(wanted(), &now, &Obstacle::AgentMissing("no agent".into()));
    now.program = Program::Present;
    refused(wanted(), &now, &Obstacle::DiskFull);
}

#[test]
fn an_alias_cannot_be_started() {
    let name: ProjectName = "real".parse().unwrap();
    let now = Circumstances { alias_of: Some(name.clone()), ..fine() };
    refused(wanted(), &now, &Obstacle::Alias(name));
}

#[test]
fn a_worktree_needs_a_commit() {
    let now = Circumstances { has_commit: false, ..fine() };
    refused(Wanted { spawn_mode: SpawnMode::Worktree, ..wanted() }, &now, &Obstacle::NoCommit);
}

#[test]
fn single_session_mode_is_only_for_server_mode() {
    let pty = Wanted { resume_mode: ResumeMode::Pty, spawn_mode: SpawnMode::Session, ..wanted() };
    refused(pty, &fine(), &Obstacle::SessionNeedsStandard);
}
