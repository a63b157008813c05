//! Reading the records: by hand, member by member. The derived readers of the shared types were an
//! eighth of the module. What the page does not show is not read.

use crate::model::wire::{FromWire, Members, Read, Unreadable, list};
use serde_json::Value;
use std::collections::BTreeMap;
use svc_shared::api::health::Health;
use svc_shared::api::instances::{
    ConnectInfo, Instance, Outcome, Quarantine, Restart, SpawnResult,
};
use svc_shared::api::projects::Project;
use svc_shared::api::sessions::WorkingSession;
use svc_shared::error::SchemaProblem;
use svc_shared::internal::strays::Stray;
use svc_shared::internal::{
    CapacityFact, Check, Connect, Doctor, Facts, InheritFact, LaunchVerdict, LogPage,
    McpServerFact, Preflight,
};

impl FromWire for Instance {
    fn from_wire(value: Value) -> Read<Self> {
        instance(&mut Members::of(value)?)
    }
}

fn instance(all: &mut Members) -> Read<Instance> {
    let mut connect = all.members("connect")?;
    let mut restart = all.members("restart")?;
    let quarantined = match all.members("quarantined") {
        Ok(mut hold) => Some(Quarantine { kind: hold.word("kind")?, code: hold.text("code")? }),
        Err(_) => None,
    };
    Ok(Instance {
        instance_id: all.parsed("instance_id")?,
        project: all.text("project")?,
        label: all.text("label")?,
        channel: all.word("channel")?,
        status: all.word("status")?,
        resume_mode: all.word("resume_mode")?,
        spawn_mode: all.word("spawn_mode")?,
        permission_mode: all.word("permission_mode")?,
        sandbox_mode: all.word("sandbox_mode")?,
        session_ref: all.parsed("session_ref").ok(),
        environment_ref: all.parsed("environment_ref").ok(),
        connect: ConnectInfo {
            available: connect.flag("available")?,
            kind: connect.word("kind").ok(),
        },
        process_id: all.maybe("process_id"),
        worktree_name: all.maybe("worktree_name"),
        bridge_pid: all.integer("bridge_pid"),
        keeper_pid: all.integer("keeper_pid"),
        agent_pid: all.integer("agent_pid"),
        status_since: all.parsed("status_since")?,
        started_at: all.parsed("started_at").ok(),
        ended_at: all.parsed("ended_at").ok(),
        generation: all.small("generation")?,
        exit_reason: all.word("exit_reason").ok(),
        exit_signal: all.integer("exit_signal"),
        phase: all.word("phase")?,
        origin: all.word("origin")?,
        quarantined,
        restart: Restart {
            policy: restart.word("policy")?,
            state: restart.word("state")?,
            attempt: restart.small("attempt")?,
            next_at: restart.parsed("next_at").ok(),
            crashes_in_window: restart.small("crashes_in_window")?,
        },
        intentional_stop: all.flag("intentional_stop")?,
        adopted: all.flag("adopted")?,
        is_orphan: all.flag("is_orphan")?,
        agent_version: all.maybe("agent_version"),
        error_detail: all.maybe("error_detail"),
        exit_code: all.integer("exit_code"),
        notice: all.maybe("notice"),
        resumable: all.flag("resumable")?,
        resume_blocked: all.word("resume_blocked").ok(),
        reuse_expires_at: all.parsed("reuse_expires_at").ok(),
        has_log: all.flag("has_log")?,
        // Direct Sessions are not shown here.
        pending_permissions: Vec::new(),
        last_event_seq: 0,
    })
}

impl FromWire for SpawnResult {
    fn from_wire(value: Value) -> Read<Self> {
        let mut all = Members::of(value)?;
        let outcome = Outcome {
            created: all.flag("created")?,
            reason: all.maybe("reason"),
            reason_code: all.word("reason_code").ok(),
            warnings: all.texts("warnings")?,
        };
        Ok(Self { instance: instance(&mut all)?, outcome })
    }
}

impl FromWire for Project {
    fn from_wire(value: Value) -> Read<Self> {
        let mut all = Members::of(value)?;
        Ok(Self {
            name: all.parsed("name")?,
            path: all.text("path")?,
            is_git_repo: all.flag("is_git_repo")?,
            has_claude_md: all.flag("has_claude_md")?,
            has_claude_dir: all.flag("has_claude_dir")?,
            trust_state: all.word("trust_state")?,
            allow_bypass_permissions: all.flag("allow_bypass_permissions")?,
            alias_of: all.parsed("alias_of").ok(),
        })
    }
}

impl FromWire for WorkingSession {
    fn from_wire(value: Value) -> Read<Self> {
        let mut all = Members::of(value)?;
        Ok(Self {
            pid: all.integer("pid").unwrap_or_default(),
            cwd: all.text("cwd")?,
            kind: all.text("kind")?,
            state: all.text("state")?,
            name: all.maybe("name"),
            waiting_for: all.maybe("waiting_for"),
            started_at: all.value("started_at")?.as_i64().unwrap_or_default(),
            session_ref: all.parsed("session_ref").ok(),
            parent_instance: all.parsed("parent_instance").ok(),
            attribution: all.text("attribution")?,
            also_in: match all.value("also_in") {
                Ok(pids) => list(pids)?.filter_map(|pid| pid.as_i64()?.try_into().ok()).collect(),
                Err(_) => Vec::new(),
            },
        })
    }
}

impl FromWire for Stray {
    fn from_wire(value: Value) -> Read<Self> {
        let mut all = Members::of(value)?;
        Ok(Self {
            pid: all.integer("pid").ok_or(Unreadable)?,
            kind: all.text("kind")?,
            project: all.maybe("project"),
            instance_id: all.parsed("instance_id").ok(),
            program: all.text("program")?,
            started_at: all.parsed("started_at")?,
            rss_bytes: all.number("rss_bytes")?,
        })
    }
}

/// All strays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strays(pub Vec<Stray>);

impl FromWire for Strays {
    fn from_wire(value: Value) -> Read<Self> {
        Ok(Self(list(value)?.map(Stray::from_wire).collect::<Read<_>>()?))
    }
}

impl FromWire for Health {
    fn from_wire(value: Value) -> Read<Self> {
        let mut all = Members::of(value)?;
        Ok(Self {
            status: all.text("status")?,
            version: all.text("version")?,
            claude_ok: all.flag("claude_ok")?,
            claude_version: all.maybe("claude_version"),
            claude_login_ok: all.flag("claude_login_ok")?,
            claude_login_method: all.maybe("claude_login_method"),
            claude_login_expires_at: all
                .value("claude_login_expires_at")
                .ok()
                .and_then(|value| value.as_i64()),
            instances_running: all.small("instances_running")?,
            demo: all.flag("demo").ok(),
        })
    }
}

impl FromWire for Connect {
    fn from_wire(value: Value) -> Read<Self> {
        let mut all = Members::of(value)?;
        Ok(Self { url: all.text("url")?, kind: all.word("kind")? })
    }
}

impl FromWire for LogPage {
    fn from_wire(value: Value) -> Read<Self> {
        let mut all = Members::of(value)?;
        Ok(Self {
            lines: all.texts("lines")?,
            first: all.maybe("first"),
            cursor: all.text("cursor")?,
            generation: all.small("generation")?,
            eof: all.flag("eof")?,
        })
    }
}

impl FromWire for Preflight {
    fn from_wire(value: Value) -> Read<Self> {
        let mut all = Members::of(value)?;
        let mut launch = BTreeMap::new();
        for (kind, verdict) in all.members("launch")? {
            let mut verdict = Members::of(verdict)?;
            let verdict = LaunchVerdict { ok: verdict.flag("ok")?, code: verdict.maybe("code") };
            launch.insert(kind, verdict);
        }
        Ok(Self {
            project: all.text("project")?,
            ok: all.flag("ok")?,
            checks: list(all.value("checks")?)?.map(check).collect::<Read<_>>()?,
            launch,
            facts: all.value("facts").ok().map(facts).transpose()?,
        })
    }
}

fn check(value: Value) -> Read<Check> {
    let mut check = Members::of(value)?;
    Ok(Check {
        name: check.text("name")?,
        status: check.word("status")?,
        detail: check.text("detail")?,
        hint: check.maybe("hint"),
    })
}

fn facts(value: Value) -> Read<Facts> {
    let mut facts = Members::of(value)?;
    let mut inherit = facts.members("inherit")?;
    let mut capacity = facts.members("capacity")?;
    Ok(Facts {
        inherit: InheritFact { mode: inherit.text("mode")?, source: inherit.maybe("source") },
        hooks: facts.texts("hooks")?,
        mcp_servers: list(facts.value("mcp_servers")?)?.map(server).collect::<Read<_>>()?,
        capacity: CapacityFact { live: capacity.small("live")?, max: capacity.small("max").ok() },
    })
}

fn server(value: Value) -> Read<McpServerFact> {
    let mut server = Members::of(value)?;
    Ok(McpServerFact { name: server.text("name")?, approved: server.flag("approved").ok() })
}

impl FromWire for Doctor {
    fn from_wire(value: Value) -> Read<Self> {
        let mut all = Members::of(value)?;
        Ok(Self {
            ok: all.flag("ok")?,
            at: all.parsed("at")?,
            version: all.text("version")?,
            config_path: all.maybe("config_path"),
            checks: list(all.value("checks")?)?.map(check).collect::<Read<_>>()?,
        })
    }
}

impl FromWire for SchemaProblem {
    fn from_wire(value: Value) -> Read<Self> {
        let mut problem = Members::of(value)?;
        Ok(Self {
            loc: problem.texts("loc")?,
            msg: problem.text("msg")?,
            kind: problem.text("type")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample::{bridge, check, health, inside, preflight, project};
    use crate::model::wire::read;
    use serde::Serialize;
    use svc_shared::Timestamp;
    use svc_shared::status::{
        BridgeStatus, CheckStatus, ConnectKind, ExitReason, QuarantineKind, ResumeBlocked,
    };

    #[track_caller]
    fn same<T: FromWire + Serialize + PartialEq + std::fmt::Debug>(record: T) {
        assert_eq!(read::<T>(&serde_json::to_string(&record).unwrap()), Ok(record));
    }

    #[test]
    fn a_bridge_is_read_as_it_was_written_with_and_without_what_may_be_null() {
        same(bridge("api", BridgeStatus::Running));
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
        same(full);
    }

    #[test]
    fn the_other_records_are_read_as_they_were_written() {
        same(project("api"));
        same(Project { alias_of: "web".parse().ok(), ..project("api") });
        same(inside("working"));
        let mut session = inside("blocked");
        session.name = Some("n".into());
        session.waiting_for = Some("w".into());
        session.session_ref = "0123456789abcdef".parse().ok();
        session.parent_instance = Some(bridge("api", BridgeStatus::Running).instance_id);
        session.also_in = vec![7, 4_194_304];
        same(session);
        let mut stray = Stray {
            pid: 7,
            kind: "leftover".into(),
            project: None,
            instance_id: None,
            program: "node".into(),
            started_at: Timestamp::from_millis(9),
            rss_bytes: 1 << 40,
        };
        same(stray.clone());
        stray.project = Some("api".into());
        stray.instance_id = Some(bridge("api", BridgeStatus::Running).instance_id);
        same(stray.clone());
        let list = serde_json::to_string(&[&stray, &stray]).unwrap();
        assert_eq!(read::<Strays>(&list), Ok(Strays(vec![stray.clone(), stray])));
        same(health());
        let mut known = health();
        known.claude_version = Some("2".into());
        known.claude_login_method = Some("m".into());
        known.claude_login_expires_at = Some(7);
        known.demo = Some(true);
        same(known);
        let mut whole = preflight(vec![check("agent", CheckStatus::Warn)]);
        same(whole.clone());
        whole.launch.insert("x".into(), LaunchVerdict { ok: false, code: Some("c".into()) });
        whole.facts = Some(Facts {
            inherit: InheritFact { mode: "plan".into(), source: Some("user".into()) },
            hooks: vec!["h".into()],
            mcp_servers: vec![McpServerFact { name: "m".into(), approved: Some(false) }],
            capacity: CapacityFact { live: 1, max: Some(2) },
        });
        same(whole);
        same(Doctor {
            ok: false,
            at: Timestamp::from_millis(9),
            version: "1".into(),
            config_path: Some("/c".into()),
            checks: vec![check("agent", CheckStatus::Fail)],
        });
    }
}
