//! What happens and is told outside: to the page, and to the targets of webhooks.
//!
//! The members of a payload are those of the specification, in its order.

use crate::ids::{InstanceId, ProjectName, SessionRef};
use crate::status::{BridgeStatus, ResumeMode, SpawnMode, words};
use serde::Serialize;

words! {
    /// What happened.
    EventName {
        /// A bridge or Direct Session was started by this service.
        Spawn = "spawn",
        /// It became ready, after a spawn.
        Ready = "ready",
        /// It was stopped on purpose.
        Stop = "stop",
        /// It ended unexpectedly after it was ready.
        Crash = "crash",
        /// A background job reached its end by a stop.
        BgSettled = "bg-settled",
        /// The agent of a Direct Session waits for a permission.
        PermissionNeeded = "permission-needed",
        /// A clone is over.
        CloneDone = "clone-done",
        /// A session came to its end by itself and in order.
        ///
        /// Told to people, not to webhooks.
        SessionEnd = "session-end",
        /// The remote link of a bridge stays down.
        ///
        /// Told to people, not to webhooks.
        ReconnectFailed = "reconnect-failed",
    }
}

/// A step in the life of a bridge or a Direct Session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BridgeEvent {
    /// `spawn`, `ready`, `stop`, `crash`, `session-end` or `reconnect-failed`.
    pub event: EventName,
    /// The project.
    pub project: ProjectName,
    /// What people call the session.
    pub label: String,
    /// The status when it happened.
    pub status: BridgeStatus,
    /// How it runs; Direct Sessions say `standard`.
    pub resume_mode: ResumeMode,
    /// Where its sessions work.
    pub spawn_mode: SpawnMode,
    /// Stands for the remote session id.
    pub session_ref: Option<SessionRef>,
    /// Set when it crashed too often and is not started again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub restart_quarantined: bool,
}

/// The end of a background job by a stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BgSettled {
    /// `bg-settled`.
    pub event: EventName,
    /// The same.
    pub event_type: EventName,
    /// The job.
    pub id: String,
    /// True only for a confirmed end that deregistered its session.
    pub settled: bool,
    /// Whether the job is gone from the list.
    pub removed: bool,
    /// More about the end, redacted.
    pub detail: Option<String>,
}

/// An agent waits for a permission. What it asks is never told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PermissionNeeded {
    /// `permission-needed`.
    pub event: EventName,
    /// The same.
    pub event_type: EventName,
    /// The process that asks, as the daemon names it.
    pub process_id: String,
    /// The kind of request; `unknown` where the agent says none.
    pub subtype: String,
    /// Names the question within its session. Never told outside.
    #[serde(skip)]
    pub request_id: String,
}

/// A clone is over. Its address is never told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CloneDone {
    /// `clone-done`.
    pub event: EventName,
    /// The same.
    pub event_type: EventName,
    /// The project that the clone was to become.
    pub project: String,
    /// `done` or `error`.
    pub status: String,
    /// Why it failed, redacted.
    pub error: Option<String>,
}

/// What is told of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Payload {
    /// A bridge or a Direct Session.
    Bridge(BridgeEvent),
    /// A background job.
    BgSettled(BgSettled),
    /// A permission.
    PermissionNeeded(PermissionNeeded),
    /// A clone.
    CloneDone(CloneDone),
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The bridge or Direct Session. The page is told; webhooks are not.
    pub instance_id: Option<InstanceId>,
    /// The generation of a bridge or Direct Session. Nobody is told.
    pub generation: Option<u32>,
    /// What is told.
    pub payload: Payload,
}

impl Event {
    /// A background job reached its end by a stop.
    #[must_use]
    pub fn bg_settled(id: String, settled: bool, removed: bool, detail: Option<String>) -> Self {
        let event = EventName::BgSettled;
        let told = BgSettled { event, event_type: event, id, settled, removed, detail };
        Self { instance_id: None, generation: None, payload: Payload::BgSettled(told) }
    }

    /// An agent waits for a permission.
    ///
    /// Without an instance where nobody manages its session.
    #[must_use]
    pub fn permission_needed(
        id: Option<InstanceId>,
        process_id: String,
        subtype: &str,
        request_id: String,
    ) -> Self {
        let event = EventName::PermissionNeeded;
        let subtype = if subtype.is_empty() { "unknown" } else { subtype }.to_owned();
        let told = PermissionNeeded { event, event_type: event, process_id, subtype, request_id };
        Self { instance_id: id, generation: None, payload: Payload::PermissionNeeded(told) }
    }

    /// A clone is over.
    #[must_use]
    pub fn clone_done(project: String, status: String, error: Option<String>) -> Self {
        let event = EventName::CloneDone;
        let told = CloneDone { event, event_type: event, project, status, error };
        Self { instance_id: None, generation: None, payload: Payload::CloneDone(told) }
    }

    /// What happened.
    #[must_use]
    pub fn name(&self) -> EventName {
        match &self.payload {
            Payload::Bridge(told) => told.event,
            Payload::BgSettled(told) => told.event,
            Payload::PermissionNeeded(told) => told.event,
            Payload::CloneDone(told) => told.event,
        }
    }

    /// The payload with the instance, as the page is told.
    #[must_use]
    pub fn for_page(&self) -> serde_json::Value {
        let mut data = serde_json::to_value(&self.payload).unwrap_or_default();
        if let (Some(members), Some(id)) = (data.as_object_mut(), &self.instance_id) {
            members.insert("instance_id".to_owned(), id.as_str().into());
        }
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(event: &Event) -> String {
        serde_json::to_string(&event.payload).unwrap()
    }

    #[test]
    fn payloads_have_the_members_of_the_specification_in_its_order() {
        let bridge = BridgeEvent {
            event: EventName::Stop,
            project: "api".parse().unwrap(),
            label: "api".into(),
            status: BridgeStatus::Stopped,
            resume_mode: ResumeMode::Standard,
            spawn_mode: SpawnMode::SameDir,
            session_ref: None,
            restart_quarantined: false,
        };
        let event = Event { instance_id: None, generation: None, payload: Payload::Bridge(bridge) };
        assert_eq!(
            text(&event),
            r#"{"event":"stop","project":"api","label":"api","status":"stopped","resume_mode":"standard","spawn_mode":"same-dir","session_ref":null}"#
        );
        assert_eq!(
            text(&Event::bg_settled("j1".into(), true, false, None)),
            r#"{"event":"bg-settled","event_type":"bg-settled","id":"j1","settled":true,"removed":false,"detail":null}"#
        );
        assert_eq!(
            text(&Event::clone_done("api".into(), "error".into(), Some("cancelled".into()))),
            r#"{"event":"clone-done","event_type":"clone-done","project":"api","status":"error","error":"cancelled"}"#
        );
    }

    #[test]
    fn a_request_without_a_kind_is_unknown() {
        let id: InstanceId = "3f2a91c0-1111-4222-8333-444455556666".parse().unwrap();
        let event = Event::permission_needed(Some(id.clone()), "p1".into(), "", "r1".into());
        assert_eq!(
            text(&event),
            r#"{"event":"permission-needed","event_type":"permission-needed","process_id":"p1","subtype":"unknown"}"#
        );
        assert_eq!(event.for_page()["instance_id"], id.as_str());
    }
}
