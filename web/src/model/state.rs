//! Which records a step of the stream or a whole state changes.
//!
//! The state itself is that of `shared`, folded by the function that the service uses.

use std::collections::BTreeMap;
use svc_shared::api::instances::Instance;
use svc_shared::internal::State;
use svc_shared::status::BridgeStatus;
use svc_shared::stream::{self, Op, Put, Record};

/// Which records are no longer what they were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changed {
    /// Names.
    pub projects: Vec<String>,
    /// Ids.
    pub instances: Vec<String>,
    /// Ids of instances whose inner sessions changed.
    pub tracked: Vec<String>,
    /// Background jobs.
    pub jobs: bool,
    /// Sessions started elsewhere.
    pub external: bool,
    /// What sessions ask that nobody manages.
    pub questions: bool,
    /// Launches that wait for a plan limit, or the limit.
    pub launches: bool,
    /// Readiness of projects.
    pub refused: bool,
    /// Clones.
    pub clones: bool,
    /// The sign-in of the agent.
    pub sign_in: bool,
    /// The health report.
    pub health: bool,
    /// The restore after a restart of the machine.
    pub restore: bool,
    /// Ids of bridges that settled, well or badly, in a step of the stream.
    pub settled: Vec<String>,
}

impl Changed {
    fn record(&mut self, kind: &str, id: &str) {
        match kind {
            "project" => self.projects.push(id.to_owned()),
            // Steps that came close together are applied as one.
            "instance" if self.instances.iter().any(|known| known == id) => {}
            "instance" => self.instances.push(id.to_owned()),
            "tracked" => self.tracked.push(id.to_owned()),
            "job" => self.jobs = true,
            "external" | "adoptable" => self.external = true,
            "question" => self.questions = true,
            "launch" | "plan_limit" => self.launches = true,
            "preflight" => self.refused = true,
            "clone" => self.clones = true,
            "shepherd" => self.sign_in = true,
            "health" => self.health = true,
            "restore" => self.restore = true,
            // The page does not show it.
            _ => {}
        }
    }
}

/// Applies a step of the stream, and says what it changed.
pub fn apply(state: &mut State, ops: Vec<Op>) -> Changed {
    let mut changed = Changed::default();
    for op in ops {
        match &op {
            Op::Put(Put { id, record }) => {
                if let Record::Instance(next) = record
                    && settles(state.instances.get(id).map(|before| &**before), next)
                {
                    changed.settled.push(id.clone());
                }
                changed.record(record.kind(), id);
            }
            Op::Del { k, id } => changed.record(k, id),
        }
        stream::apply(state, op);
    }
    changed
}

/// Whether the bridge leaves a state in which something was awaited of it.
fn settles(before: Option<&Instance>, next: &Instance) -> bool {
    let Some(before) = before else {
        // A launch may fail before its record is first seen here.
        return next.status.is(&BridgeStatus::Error);
    };
    let bad = next.status.is(&BridgeStatus::Crashed) || next.status.is(&BridgeStatus::Error);
    before.status != next.status
        && (before.status.is(&BridgeStatus::Starting) || (before.is_live() && bad))
}

/// Takes another state, and says what is different in it.
pub fn replace(state: &mut State, next: State) -> Changed {
    let changed = Changed {
        projects: differing(&state.projects, &next.projects),
        instances: differing(&state.instances, &next.instances),
        tracked: differing(&state.tracked, &next.tracked),
        jobs: state.jobs != next.jobs,
        external: state.external != next.external || state.adoptable != next.adoptable,
        questions: state.questions != next.questions,
        launches: state.launches != next.launches || state.plan_limit != next.plan_limit,
        refused: state.preflight != next.preflight,
        clones: state.clones != next.clones,
        sign_in: state.shepherd != next.shepherd,
        health: state.health != next.health,
        restore: state.restore != next.restore,
        settled: Vec::new(),
    };
    *state = next;
    changed
}

fn differing<T: PartialEq>(
    before: &BTreeMap<String, T>,
    after: &BTreeMap<String, T>,
) -> Vec<String> {
    let changed = after.iter().filter(|(key, now)| before.get(*key) != Some(*now));
    let gone = before.keys().filter(|key| !after.contains_key(*key));
    changed.map(|(key, _)| key).chain(gone).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample::{self, bridge, health, inside, job, project};
    use crate::model::wire;
    use std::sync::Arc;
    use svc_shared::Timestamp;
    use svc_shared::internal::{LoginStatus, PreflightSummary, StateAt};
    use svc_shared::stream::EventFrame;

    fn put(id: &str, record: Record) -> Op {
        Op::Put(Put { id: id.into(), record })
    }

    fn row(row: Instance) -> Op {
        let id = row.instance_id.to_string();
        put(&id, Record::Instance(Arc::new(row)))
    }

    fn del(k: &str, id: &str) -> Op {
        Op::Del { k: k.into(), id: id.into() }
    }

    /// Steps over every kind of record, shown or not.
    fn steps() -> Vec<Vec<Op>> {
        let login = LoginStatus {
            claude_login_ok: true,
            claude_login_method: None,
            claude_login_expires_at: None,
        };
        let refused = PreflightSummary { ok: false, codes: vec!["settings".into()] };
        let api = bridge("api", BridgeStatus::Starting);
        vec![
            vec![
                put("api", Record::Project(project("api").into())),
                put("web", Record::Project(project("web").into())),
                put("1", Record::Instance(api.into())),
                put("2", Record::Instance(bridge("web", BridgeStatus::Running).into())),
                put("2", Record::Tracked(vec![inside("working")])),
                put("health", Record::Health(Box::new(health()))),
                put("j", Record::Job(job("working").into())),
                put("api", Record::External(vec![inside("")])),
                put("api", Record::Adoptable(true)),
                put("c", Record::Clone(sample::clone_job())),
                put("l", Record::Launch(Box::new(sample::planned()))),
                put("now", Record::PlanLimit(Box::new(sample::limit()))),
                put("api", Record::Preflight(PreflightSummary { ok: true, codes: vec![] })),
                put("web", Record::Preflight(refused)),
                put("login", Record::Login(login)),
                put("shepherd", Record::Shepherd(sample::sign_in())),
            ],
            vec![put("1", Record::Instance(bridge("api", BridgeStatus::Running).into()))],
            vec![del("project", "web"), del("tracked", "2"), del("instance", "2"), del("job", "j")],
            vec![del("health", "health"), del("adoptable", "api"), del("moon", "full")],
            vec![del("external", "api"), del("preflight", "web")],
            vec![del("launch", "l"), del("plan_limit", "now")],
        ]
    }

    #[test]
    fn folding_steps_gives_the_same_as_everywhere_else() {
        let mut state = State::default();
        let mut page = State::default();
        for (seq, ops) in steps().into_iter().enumerate() {
            let time = Timestamp::from_millis(7);
            let frame = EventFrame::Delta { seq: seq as u64, time, ops: ops.clone() };
            let Ok(EventFrame::Delta { ops: read, .. }) = wire::read(&wire::written(&frame)) else {
                panic!("not a step");
            };
            assert_eq!(read, ops);
            apply(&mut page, read);
            ops.into_iter().for_each(|op| stream::apply(&mut state, op));
            assert_eq!(page, state, "after step {seq}");
            assert_eq!(wire::read(&wire::written(&state)), Ok(page.clone()), "after step {seq}");
        }
    }

    #[test]
    fn a_snapshot_and_the_state_route_give_the_same_state() {
        let mut state = State::default();
        apply(&mut state, steps().remove(0));
        let at = StateAt { boot: "b".into(), seq: 3, state: state.clone() };
        assert_eq!(wire::read(&wire::written(&at)), Ok(at));
        let frame = EventFrame::Snapshot { seq: 4, reason: "gap".into(), state: Box::new(state) };
        assert_eq!(wire::read(&wire::written(&frame)), Ok(frame));
    }

    #[test]
    fn a_step_names_only_the_records_it_touched() {
        let mut state = State::default();
        let api = bridge("api", BridgeStatus::Running);
        let id = api.instance_id.to_string();
        let web = put("web", Record::Project(project("web").into()));
        let changed = apply(&mut state, vec![row(api), web, put("x", Record::Other)]);
        assert_eq!(changed.instances.first(), Some(&id));
        assert_eq!(changed.projects, ["web".to_owned()]);
        assert!(changed.tracked.is_empty() && !changed.health);
        let gone = apply(&mut state, vec![del("instance", &id)]);
        assert_eq!(gone.instances, [id]);
        assert!(state.instances.is_empty());
    }

    #[test]
    fn a_snapshot_touches_only_what_differs() {
        let mut state = State::default();
        let other = bridge("other", BridgeStatus::Running);
        let same = row(bridge("same", BridgeStatus::Running));
        apply(&mut state, vec![same, row(other.clone())]);
        let mut next = state.clone();
        let id = other.instance_id.to_string();
        let again = Instance { generation: 2, ..other };
        next.instances.insert(id.clone(), Arc::new(again));
        let changed = replace(&mut state, next);
        assert_eq!(changed.instances, [id]);
        assert!(changed.projects.is_empty() && !changed.health);
        assert_eq!(replace(&mut state, State::default()).instances.len(), 2);
    }

    #[test]
    fn what_was_awaited_is_told_once_and_a_stop_is_not() {
        let mut state = State::default();
        let id = bridge("api", BridgeStatus::Running).instance_id.to_string();
        let mut step = |status| apply(&mut state, vec![row(bridge("api", status))]).settled;
        assert!(step(BridgeStatus::Starting).is_empty());
        assert_eq!(step(BridgeStatus::Running).first(), Some(&id));
        assert!(step(BridgeStatus::Running).is_empty());
        assert_eq!(step(BridgeStatus::Crashed).first(), Some(&id));
        assert!(step(BridgeStatus::Crashed).is_empty());
        assert!(step(BridgeStatus::Starting).is_empty());
        assert_eq!(step(BridgeStatus::Running), [id]);
        assert!(step(BridgeStatus::Stopped).is_empty());
    }
}
