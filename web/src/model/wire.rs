//! Reading what the service sends, with one generic reader.
//!
//! The derived readers of tagged and flattened types exist once per source of data, and together
//! were a fifth of the module. Here every text becomes a JSON value first, the tags are looked at
//! by hand, and the records are read from that one kind of source. A test reads the same frames
//! with the derived readers and compares.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use svc_shared::api::instances::{Outcome, SpawnResult};
use svc_shared::error::{ErrorBody, ErrorDetail};
use svc_shared::internal::{State, StateAt};
use svc_shared::stream::{EventFrame, LogFrame, MarkKind, Op, Put, Record};

/// The text is not what was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable;

type Read<T> = Result<T, Unreadable>;

/// A type that can be read from a JSON value.
pub trait FromWire: Sized {
    /// Reads it.
    ///
    /// # Errors
    /// When the value does not have its shape.
    fn from_wire(value: Value) -> Read<Self>;
}

macro_rules! plain {
    ($($type:ty),+ $(,)?) => {
        $(impl FromWire for $type {
            fn from_wire(value: Value) -> Read<Self> {
                record(value)
            }
        })+
    };
}

plain!(
    svc_shared::api::instances::Instance,
    svc_shared::api::projects::Project,
    svc_shared::internal::Bootstrap,
    svc_shared::internal::Connect,
    svc_shared::internal::Forgotten,
    svc_shared::internal::LogPage,
    svc_shared::internal::Preflight,
);

/// Reads a text.
///
/// # Errors
/// When it is not JSON, or not of this shape.
pub fn read<T: FromWire>(text: &str) -> Read<T> {
    T::from_wire(serde_json::from_str(text).map_err(|_| Unreadable)?)
}

fn record<T: DeserializeOwned>(value: Value) -> Read<T> {
    serde_json::from_value(value).map_err(|_| Unreadable)
}

/// An object whose members are taken one by one.
struct Members(Map<String, Value>);

impl Members {
    fn of(value: Value) -> Read<Self> {
        match value {
            Value::Object(members) => Ok(Self(members)),
            _ => Err(Unreadable),
        }
    }
    fn value(&mut self, name: &str) -> Read<Value> {
        self.0.remove(name).ok_or(Unreadable)
    }
    fn text(&mut self, name: &str) -> Read<String> {
        match self.value(name)? {
            Value::String(text) => Ok(text),
            _ => Err(Unreadable),
        }
    }
    fn number(&mut self, name: &str) -> Read<u64> {
        self.value(name)?.as_u64().ok_or(Unreadable)
    }
    fn small(&mut self, name: &str) -> Read<u32> {
        u32::try_from(self.number(name)?).map_err(|_| Unreadable)
    }
    fn flag(&mut self, name: &str) -> Read<bool> {
        self.value(name)?.as_bool().ok_or(Unreadable)
    }
    fn time(&mut self, name: &str) -> Read<svc_shared::Timestamp> {
        self.text(name)?.parse().map_err(|_| Unreadable)
    }
}

impl FromWire for StateAt {
    fn from_wire(value: Value) -> Read<Self> {
        let mut at = Members::of(value)?;
        Ok(Self {
            boot: at.text("boot")?,
            seq: at.number("seq")?,
            state: record::<State>(at.value("state")?)?,
        })
    }
}

impl FromWire for SpawnResult {
    fn from_wire(value: Value) -> Read<Self> {
        let outcome = record::<Outcome>(value.clone())?;
        Ok(Self { instance: record(value)?, outcome })
    }
}

impl FromWire for ErrorBody {
    fn from_wire(value: Value) -> Read<Self> {
        let mut body = Members::of(value)?;
        let detail = match body.value("detail")? {
            Value::String(text) => ErrorDetail::Text(text),
            problems => ErrorDetail::Schema(record(problems)?),
        };
        Ok(Self {
            detail,
            code: body.text("code")?,
            candidates: match body.value("candidates") {
                Ok(ids) => record(ids)?,
                Err(Unreadable) => None,
            },
            error_id: body.text("error_id").ok(),
        })
    }
}

impl FromWire for EventFrame {
    fn from_wire(value: Value) -> Read<Self> {
        let mut frame = Members::of(value)?;
        Ok(match frame.text("type")?.as_str() {
            "hello" => Self::Hello {
                v: frame.small("v")?,
                boot: frame.text("boot")?,
                seq: frame.number("seq")?,
                server_version: frame.text("server_version")?,
                resumed: frame.flag("resumed")?,
                time: frame.time("time")?,
            },
            "snapshot" => Self::Snapshot {
                seq: frame.number("seq")?,
                reason: frame.text("reason")?,
                state: Box::new(record(frame.value("state")?)?),
            },
            "delta" => Self::Delta {
                seq: frame.number("seq")?,
                time: frame.time("time")?,
                ops: match frame.value("ops")? {
                    Value::Array(ops) => ops.into_iter().map(op).collect::<Read<_>>()?,
                    _ => return Err(Unreadable),
                },
            },
            "notice" => Self::Notice {
                level: frame.text("level")?,
                code: frame.text("code")?,
                text: frame.text("text")?,
            },
            "tick" => Self::Tick { seq: frame.number("seq")?, time: frame.time("time")? },
            "event" => Self::Event {
                time: frame.time("time")?,
                name: frame.text("name")?,
                data: frame.value("data")?,
            },
            "sample" => Self::Sample {
                time: frame.time("time")?,
                metrics: match frame.value("metrics")? {
                    Value::Object(metrics) => {
                        let mut all = BTreeMap::new();
                        for (id, metrics) in metrics {
                            all.insert(id, metrics);
                        }
                        all
                    }
                    _ => return Err(Unreadable),
                },
            },
            _ => return Err(Unreadable),
        })
    }
}

fn op(value: Value) -> Read<Op> {
    let mut op = Members::of(value)?;
    let kind = op.text("k")?;
    let id = op.text("id")?;
    match op.text("op")?.as_str() {
        "del" => return Ok(Op::Del { k: kind, id }),
        "put" => {}
        _ => return Err(Unreadable),
    }
    let value = op.value("v")?;
    let record = match kind.as_str() {
        "project" => Record::Project(Box::new(record(value)?)),
        "instance" => Record::Instance(Box::new(record(value)?)),
        "job" => Record::Job(value),
        "external" => Record::External(record(value)?),
        "tracked" => Record::Tracked(record(value)?),
        "adoptable" => Record::Adoptable(value.as_bool().ok_or(Unreadable)?),
        "clone" => Record::Clone(value),
        "preflight" => Record::Preflight(record(value)?),
        "health" => Record::Health(Box::new(record(value)?)),
        "login" => Record::Login(record(value)?),
        "shepherd" => Record::Shepherd(value),
        _ => return Err(Unreadable),
    };
    Ok(Op::Put(Put { id, record }))
}

impl FromWire for LogFrame {
    fn from_wire(value: Value) -> Read<Self> {
        let mut frame = Members::of(value)?;
        Ok(match frame.text("type")?.as_str() {
            "line" => Self::Line { cursor: frame.text("cursor")?, text: frame.text("text")? },
            "mark" => Self::Mark {
                kind: match frame.text("kind")?.as_str() {
                    "resumed" => MarkKind::Resumed,
                    "rotated" => MarkKind::Rotated,
                    "gap" => MarkKind::Gap,
                    "ended" => MarkKind::Ended,
                    _ => return Err(Unreadable),
                },
                generation: frame.small("generation")?,
            },
            _ => return Err(Unreadable),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample::{bridge, inside, preflight, project};
    use serde_json::json;
    use svc_shared::Timestamp;
    use svc_shared::api::health::Health;
    use svc_shared::error::SchemaProblem;
    use svc_shared::internal::{LoginStatus, PreflightSummary};
    use svc_shared::status::BridgeStatus;

    /// What is written with the derived writer is read as the derived reader reads it.
    #[track_caller]
    fn check<T>(value: T)
    where
        T: FromWire + serde::Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
    {
        let text = serde_json::to_string(&value).unwrap();
        assert_eq!(read::<T>(&text), Ok(value), "{text}");
    }

    fn health() -> Health {
        Health {
            status: "ok".into(),
            version: "1".into(),
            claude_ok: true,
            claude_version: None,
            claude_login_ok: true,
            claude_login_method: None,
            claude_login_expires_at: None,
            instances_running: 1,
            demo: None,
        }
    }

    fn put(id: &str, record: Record) -> Op {
        Op::Put(Put { id: id.into(), record })
    }

    #[test]
    fn every_frame_of_the_stream_is_read_as_it_was_written() {
        let time = Timestamp::from_millis(7);
        let row = bridge("api", BridgeStatus::Crashed);
        let login = LoginStatus {
            claude_login_ok: true,
            claude_login_method: None,
            claude_login_expires_at: None,
        };
        let summary = PreflightSummary { ok: true, codes: vec!["trust".into()] };
        let mut state = State::default();
        state.projects.insert("api".into(), project("api"));
        state.instances.insert("1".into(), row.clone());
        state.tracked.insert("1".into(), vec![inside("working")]);
        check(EventFrame::Hello {
            v: 1,
            boot: "b".into(),
            seq: 4,
            server_version: "1".into(),
            resumed: false,
            time,
        });
        check(EventFrame::Snapshot { seq: 4, reason: "boot".into(), state: Box::new(state) });
        check(EventFrame::Tick { seq: 4, time });
        check(EventFrame::Event { time, name: "crash".into(), data: json!({"a": 1}) });
        check(EventFrame::Sample { time, metrics: [("a".to_owned(), json!(1.5))].into() });
        check(EventFrame::Notice { level: "warn".into(), code: "c".into(), text: "t".into() });
        check(EventFrame::Delta {
            seq: 5,
            time,
            ops: vec![
                put("api", Record::Project(Box::new(project("api")))),
                put("1", Record::Instance(Box::new(row))),
                put("j", Record::Job(json!({"x": null}))),
                put("api", Record::External(vec![inside("")])),
                put("1", Record::Tracked(Vec::new())),
                put("api", Record::Adoptable(true)),
                put("c", Record::Clone(json!(1))),
                put("api", Record::Preflight(summary)),
                put("health", Record::Health(Box::new(health()))),
                put("login", Record::Login(login)),
                put("shepherd", Record::Shepherd(json!("s"))),
                Op::Del { k: "job".into(), id: "j".into() },
            ],
        });
    }

    #[test]
    fn every_frame_of_the_log_is_read_as_it_was_written() {
        check(LogFrame::Line { cursor: "1:2".into(), text: "t".into() });
        for kind in [MarkKind::Resumed, MarkKind::Rotated, MarkKind::Gap, MarkKind::Ended] {
            check(LogFrame::Mark { kind, generation: 3 });
        }
    }

    #[test]
    fn answers_are_read_as_they_were_written() {
        check(preflight(Vec::new()));
        check(StateAt { boot: "b".into(), seq: 3, state: State::default() });
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
    fn a_frame_that_is_not_understood_is_refused_whole() {
        for text in [
            "",
            "[]",
            r#"{"type":"moon"}"#,
            r#"{"type":"tick","seq":-1,"time":"2026-11-21T08:00:00Z"}"#,
            r#"{"type":"tick","seq":1,"time":"yesterday"}"#,
            r#"{"type":"delta","seq":1,"time":"2026-11-21T08:00:00Z","ops":[{"op":"put","k":"moon","id":"1","v":1}]}"#,
            r#"{"type":"delta","seq":1,"time":"2026-11-21T08:00:00Z","ops":[{"op":"put","k":"instance","id":"1","v":{}}]}"#,
        ] {
            assert_eq!(read::<EventFrame>(text), Err(Unreadable), "{text}");
        }
    }
}
