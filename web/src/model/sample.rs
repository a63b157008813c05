//! Records for the tests of this crate.

use svc_shared::Timestamp;
use svc_shared::api::instances::{Instance, PendingPermission};
use svc_shared::api::jobs::BackgroundJob;
use svc_shared::api::limits::PlanLimit;
use svc_shared::api::planned_launches::PlannedLaunch;
use svc_shared::api::projects::Project;
use svc_shared::api::sessions::WorkingSession;
use svc_shared::internal::agent_sign_in::{SignInMode, SignInRecord, SignInStage};
use svc_shared::internal::clones::{CloneJob, CloneState};
use svc_shared::internal::{AuthInfo, Bootstrap, Check, Defaults, Features, Limits, Preflight};
use svc_shared::status::{
    BridgeStatus, CheckStatus, EvidenceSource, PermissionMode, Phase, PlanLimitKind, PlannedState,
    ResumeMode, SpawnMode, TrustState,
};

/// A Server Mode bridge of `project`.
///
/// It was started at 0 s and last changed at 60 s. Its id is derived from the name.
pub fn bridge(project: &str, status: BridgeStatus) -> Instance {
    let mut hex: String = project.bytes().map(|b| format!("{b:02x}")).collect();
    hex.push_str("00000000");
    let id = format!("{}-0a3b-4c5d-8e9f-001122334455", hex.get(..8).unwrap());
    Instance {
        status: status.into(),
        bridge_pid: status.is_live().then_some(4711),
        status_since: Timestamp::from_millis(60_000),
        started_at: Some(Timestamp::from_millis(0)),
        ended_at: (!status.is_live()).then_some(Timestamp::from_millis(60_000)),
        phase: if status.is_live() { Phase::Ready.into() } else { Phase::Exited.into() },
        has_log: true,
        ..Instance::blank(id.parse().unwrap(), project.to_owned())
    }
}

/// A request of a Direct Session.
pub fn asked() -> PendingPermission {
    PendingPermission {
        request_id: "1f2e".into(),
        subtype: "can_use_tool".into(),
        since: Timestamp::from_millis(60_000),
        tool: Some("Bash".into()),
        summary: "git push".into(),
        truncated: false,
        expires_at: None,
        session_rules: vec!["Bash(git push:*)".into()],
    }
}

/// A working session in `state`.
pub fn inside(state: &str) -> WorkingSession {
    WorkingSession {
        pid: 12,
        cwd: "/p".into(),
        kind: "interactive".into(),
        state: state.into(),
        name: None,
        waiting_for: None,
        started_at: 0,
        session_ref: None,
        parent_instance: None,
        attribution: "tracked".into(),
        also_in: Vec::new(),
        activity: None,
    }
}

/// A sign-in of the agent that waits for a code.
pub fn sign_in() -> SignInRecord {
    SignInRecord {
        mode: SignInMode::Login.into(),
        stage: SignInStage::Waiting.into(),
        ends_at: Timestamp::from_millis(1_795_000_900_000),
    }
}

/// A job of `api` in `state`.
pub fn clone_job() -> CloneJob {
    CloneJob {
        job_id: "0123456789abcdef0123456789abcdef".into(),
        name: "ledger".into(),
        state: CloneState::Running.into(),
        shallow: false,
        phase: "Receiving".into(),
        percent: Some(54),
        bytes: Some(1_572_864),
        started_at: None,
        ended_at: None,
        error: None,
        cancelled: false,
    }
}

/// A launch that waits for a plan limit.
pub fn planned() -> PlannedLaunch {
    PlannedLaunch {
        id: "61706900-0a3b-4c5d-8e9f-001122334455".parse().unwrap(),
        project: "api".into(),
        mode: "background".into(),
        prompt: None,
        asked_at: Timestamp::from_millis(0),
        due_at: Timestamp::from_millis(3_600_000),
        state: PlannedState::Waiting.into(),
        started_as: None,
        reason: None,
    }
}

/// A plan limit.
pub fn limit() -> PlanLimit {
    PlanLimit {
        kind: PlanLimitKind::Session.into(),
        resets_at: Some(Timestamp::from_millis(3_500_000)),
        since: Timestamp::from_millis(0),
        source: EvidenceSource::Transcript.into(),
        continues_at: None,
        hint: None,
    }
}

/// A background job.
pub fn job(state: &str) -> BackgroundJob {
    BackgroundJob {
        id: "3c509237".parse().unwrap(),
        project: Some("api".into()),
        state: state.into(),
        detail: String::new(),
        tempo: "active".into(),
        needs: None,
        result: None,
        intent: "Translate it".into(),
        name: None,
        cwd: None,
        session_ref: None,
        remote_registered: false,
        has_transcript: true,
        cli_version: "2.1.197".into(),
        created_at: String::new(),
        updated_at: "2026-11-21T08:07:35Z".into(),
        worker_pid: Some(12),
        worker_alive: true,
        limit: None,
        activity: None,
    }
}

/// A trusted git project.
pub fn project(name: &str) -> Project {
    Project {
        name: name.parse().unwrap(),
        path: format!("/srv/projects/{name}"),
        is_git_repo: true,
        has_claude_md: false,
        has_claude_dir: false,
        trust_state: TrustState::Trusted.into(),
        allow_bypass_permissions: false,
        alias_of: None,
    }
}

/// A server with every default.
pub fn bootstrap() -> Bootstrap {
    Bootstrap {
        version: "1.0.0".into(),
        build: "b".into(),
        root_path: String::new(),
        projects_root: "/srv/projects".into(),
        auth: AuthInfo {
            enabled: false,
            password_set: false,
            method: "off".into(),
            allowed_origins: Vec::new(),
        },
        features: Features::default(),
        defaults: Defaults {
            spawn_mode: SpawnMode::SameDir.into(),
            permission_mode: PermissionMode::Default.into(),
            resume_mode: ResumeMode::Standard.into(),
        },
        permission_labels: std::collections::BTreeMap::new(),
        limits: Limits {
            startup_grace_seconds: 60.0,
            max_bridges: None,
            name_chars: 128,
            prompt_bytes: 100_000,
            message_bytes: 262_144,
            claude_md_bytes: 65_536,
            elevation_seconds: 600,
            session_max_age_seconds: 0,
        },
        demo: false,
        hostname: "buildbox".into(),
        timezone: "Europe/Berlin".into(),
        ui_prefs: None,
        usage: svc_shared::internal::usage::UsageDisplay::default(),
        notifications: svc_shared::internal::PageNotifications::default(),
    }
}

/// A check with this verdict.
pub fn check(name: &str, status: CheckStatus) -> Check {
    Check { name: name.into(), status: status.into(), detail: format!("{name} found"), hint: None }
}

/// Readiness of `api`.
pub fn preflight(checks: Vec<Check>) -> Preflight {
    Preflight {
        project: "api".into(),
        ok: false,
        checks,
        launch: std::collections::BTreeMap::new(),
        facts: None,
    }
}

/// A healthy service.
pub fn health() -> svc_shared::api::health::Health {
    svc_shared::api::health::Health {
        status: "ok".into(),
        version: "1".into(),
        claude_ok: true,
        claude_version: None,
        claude_login_ok: true,
        claude_login_method: None,
        claude_login_expires_at: None,
        instances_running: 1,
        hosted: None,
        demo: None,
    }
}

/// The same server as the page reads it.
pub fn basics() -> crate::model::basics::Basics {
    bootstrap().into()
}
