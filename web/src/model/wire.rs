//! Reads and writes JSON by the serde derives of the shared types.

use serde::{Deserialize, Serialize};

/// The text is not what was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable;

/// What was read, if it could be.
pub type Read<T> = Result<T, Unreadable>;

/// Reads a text.
///
/// # Errors
/// When it is not JSON, or not of this shape.
pub fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Read<T> {
    serde_json::from_str(text).map_err(|_| Unreadable)
}

/// Writes a value of a shared type.
#[must_use]
pub fn written(value: &impl Serialize) -> String {
    // Texts, numbers and switches under texts: nothing that JSON cannot carry.
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample::{bridge, check as verdict, health, inside, preflight, project};
    use svc_shared::Timestamp;
    use svc_shared::api::instances::{ConnectInfo, Outcome, Quarantine, SpawnResult};
    use svc_shared::api::projects::Project;
    use svc_shared::error::{ErrorBody, ErrorDetail, SchemaProblem};
    use svc_shared::internal::strays::Stray;
    use svc_shared::internal::{
        CapacityFact, Doctor, Facts, InheritFact, LaunchVerdict, McpServerFact,
    };
    use svc_shared::status::{
        BridgeStatus, CheckStatus, ConnectKind, ExitReason, QuarantineKind, ResumeBlocked,
    };
    use svc_shared::stream::{LogFrame, MarkKind};

    /// What is written is read as it was.
    #[track_caller]
    fn check<T>(value: T)
    where
        T: serde::de::DeserializeOwned + Serialize + PartialEq + std::fmt::Debug,
    {
        let text = written(&value);
        assert_eq!(read::<T>(&text), Ok(value), "{text}");
    }

    #[test]
    fn answers_are_read_as_they_were_written() {
        check(preflight(Vec::new()));
        check(SpawnResult {
            instance: bridge("api", BridgeStatus::Running),
            outcome: Outcome {
                created: false,
                reason: Some("r".into()),
                reason_code: None,
                warnings: vec!["w".into()],
            },
        });
        let text = |code: &str| ErrorBody {
            detail: ErrorDetail::Text("d".into()),
            code: code.into(),
            candidates: None,
            error_id: None,
        };
        check(text("x"));
        check(ErrorBody { candidates: Some(vec!["1".into()]), ..text("ambiguous") });
        check(ErrorBody { error_id: Some("0badcafe".into()), ..text("internal") });
        let problem =
            SchemaProblem { loc: vec!["body".into()], msg: "m".into(), kind: "missing".into() };
        check(ErrorBody { detail: ErrorDetail::Schema(vec![problem]), ..text("schema") });
    }

    #[test]
    fn a_bridge_is_read_as_it_was_written_with_and_without_what_may_be_null() {
        check(bridge("api", BridgeStatus::Running));
        let at = Some(Timestamp::from_millis(9));
        let mut full = bridge("api", BridgeStatus::Crashed);
        full.session_ref = "0123456789abcdef".parse().ok();
        full.environment_ref = full.session_ref.clone();
        full.connect = ConnectInfo { available: true, kind: Some(ConnectKind::Session.into()) };
        full.process_id = Some("p".into());
        full.worktree_name = Some("w".into());
        (full.bridge_pid, full.keeper_pid, full.agent_pid) = (Some(1), Some(2), Some(3));
        (full.exit_signal, full.exit_code) = (Some(9), Some(-1));
        full.exit_reason = Some(ExitReason::OperatorStop.into());
        full.quarantined =
            Some(Quarantine { kind: QuarantineKind::Identity.into(), code: "c".into() });
        (full.restart.attempt, full.restart.crashes_in_window) = (2, 3);
        (full.restart.next_at, full.reuse_expires_at) = (at, at);
        full.agent_version = Some("2".into());
        full.error_detail = Some("e".into());
        full.notice = Some("n".into());
        full.resume_blocked = Some(ResumeBlocked::StillLive.into());
        (full.resumable, full.adopted, full.is_orphan, full.intentional_stop) =
            (true, true, true, true);
        assert!(full.session_ref.is_some() && full.started_at.is_some());
        check(full);
    }

    #[test]
    fn frames_of_a_log_are_read_as_they_were_written() {
        for kind in [MarkKind::Resumed, MarkKind::Rotated, MarkKind::Gap, MarkKind::Ended] {
            check(LogFrame::Mark { kind, generation: 3, at: None });
            check(LogFrame::Mark { kind, generation: 3, at: Some(Timestamp::from_millis(7)) });
        }
        check(LogFrame::Output { generation: 3, lines: vec!["one".into()] });
        check(LogFrame::Line { cursor: "1:2".into(), text: "t".into() });
    }

    #[test]
    fn the_other_records_are_read_as_they_were_written() {
        check(project("api"));
        check(Project { alias_of: "web".parse().ok(), ..project("api") });
        check(inside("working"));
        let mut session = inside("blocked");
        session.name = Some("n".into());
        session.waiting_for = Some("w".into());
        session.session_ref = "0123456789abcdef".parse().ok();
        session.parent_instance = Some(bridge("api", BridgeStatus::Running).instance_id);
        session.also_in = vec![7, 4_194_304];
        check(session);
        let mut stray = Stray {
            pid: 7,
            kind: "leftover".into(),
            project: None,
            instance_id: None,
            program: "node".into(),
            started_at: Timestamp::from_millis(9),
            rss_bytes: 1 << 40,
        };
        check(stray.clone());
        stray.project = Some("api".into());
        stray.instance_id = Some(bridge("api", BridgeStatus::Running).instance_id);
        check(stray.clone());
        let list = serde_json::to_string(&[&stray, &stray]).unwrap();
        assert_eq!(read::<Vec<Stray>>(&list), Ok(vec![stray.clone(), stray]));
        check(health());
        let mut known = health();
        known.claude_version = Some("2".into());
        known.claude_login_method = Some("m".into());
        known.claude_login_expires_at = Some(7);
        known.demo = Some(true);
        check(known);
        let mut whole = preflight(vec![verdict("agent", CheckStatus::Warn)]);
        check(whole.clone());
        whole.launch.insert("x".into(), LaunchVerdict { ok: false, code: Some("c".into()) });
        whole.facts = Some(Facts {
            inherit: InheritFact { mode: "plan".into(), source: Some("user".into()) },
            hooks: vec!["h".into()],
            mcp_servers: vec![McpServerFact { name: "m".into(), approved: Some(false) }],
            capacity: CapacityFact { live: 1, max: Some(2) },
            restart: None,
        });
        check(whole);
        check(Doctor {
            ok: false,
            at: Timestamp::from_millis(9),
            version: "1".into(),
            config_path: Some("/c".into()),
            checks: vec![verdict("agent", CheckStatus::Fail)],
        });
    }
}
