//! The frames of the two streams, as far as the page shows what they carry.

use crate::model::job::Job;
use crate::model::state::{Book, Change};
use crate::model::usage::Use;
use crate::model::wire::{FromWire, Members, Read, Unreadable, list};
use serde_json::Value;
use std::sync::Arc;
use svc_shared::Timestamp;
use svc_shared::api::health::Health;
use svc_shared::api::instances::Instance;
use svc_shared::api::projects::Project;
use svc_shared::stream::{LogFrame, MarkKind};

/// A frame of the state stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame {
    /// First frame.
    Hello {
        /// Frame format version.
        v: u32,
        /// Random per server process.
        boot: String,
        /// Head of the stream.
        seq: u64,
        /// Service version.
        version: String,
        /// Deltas follow, no snapshot.
        resumed: bool,
        /// Server clock, milliseconds.
        time: i64,
    },
    /// The whole state.
    Snapshot {
        /// Position of this state.
        seq: u64,
        /// Why it was sent.
        reason: String,
        /// Everything the page shows.
        book: Box<Book>,
    },
    /// One step.
    Delta {
        /// One more than the step before.
        seq: u64,
        /// What changed.
        changes: Vec<Change>,
    },
    /// Something the operator should know.
    Notice {
        /// `info`, `warn` or `error`.
        level: String,
        /// A sentence.
        text: String,
    },
    /// Sign of life.
    Tick {
        /// Head of the stream.
        seq: u64,
    },
    /// Measurements, by instance id.
    Sample(i64, Vec<(String, Use)>),
    /// Something this page has no use for.
    Other,
}

/// The state at one point of the stream.
#[derive(Debug, Clone, PartialEq)]
pub struct BookAt {
    /// Random per server process.
    pub boot: String,
    /// Position in the stream.
    pub seq: u64,
    /// Everything the page shows.
    pub book: Book,
}

impl FromWire for BookAt {
    fn from_wire(value: Value) -> Read<Self> {
        let mut at = Members::of(value)?;
        Ok(Self {
            boot: at.text("boot")?,
            seq: at.number("seq")?,
            book: Book::from_wire(at.value("state")?)?,
        })
    }
}

impl FromWire for Book {
    fn from_wire(value: Value) -> Read<Self> {
        let mut state = Members::of(value)?;
        let mut book = Self::default();
        for (name, v) in Members::of(state.value("projects")?)? {
            book.projects.insert(name, Arc::new(Project::from_wire(v)?));
        }
        for (id, v) in Members::of(state.value("instances")?)? {
            book.instances.insert(id, Arc::new(Instance::from_wire(v)?));
        }
        for (id, v) in Members::of(state.value("tracked")?)? {
            book.tracked.insert(id, Arc::new(sessions(v)?));
        }
        for (id, v) in Members::of(state.value("jobs")?)? {
            book.jobs.insert(id, Arc::new(Job::from_wire(v)?));
        }
        for (name, v) in Members::of(state.value("external")?)? {
            book.external.insert(name, Arc::new(sessions(v)?));
        }
        for (name, v) in Members::of(state.value("preflight")?)? {
            book.refuse(name, failing(v)?);
        }
        book.adoptable = state.texts("adoptable")?.into_iter().collect();
        if let Ok(health) = state.value("health") {
            book.health = maybe(health)?;
        }
        Ok(book)
    }
}

/// Ids of the checks that fail; none when a launch would happen.
fn failing(value: Value) -> Read<Vec<String>> {
    let mut found = Members::of(value)?;
    let codes = found.texts("codes")?;
    Ok(if found.flag("ok")? { Vec::new() } else { codes })
}

/// The report, unless it is null: before the first.
fn maybe(value: Value) -> Read<Option<Health>> {
    if value.is_null() { Ok(None) } else { Health::from_wire(value).map(Some) }
}

fn sessions(value: Value) -> Read<Vec<svc_shared::api::sessions::WorkingSession>> {
    list(value)?.map(FromWire::from_wire).collect()
}

impl FromWire for Frame {
    fn from_wire(value: Value) -> Read<Self> {
        let mut frame = Members::of(value)?;
        Ok(match frame.text("type")?.as_str() {
            "hello" => Self::Hello {
                v: frame.small("v")?,
                boot: frame.text("boot")?,
                seq: frame.number("seq")?,
                version: frame.text("server_version")?,
                resumed: frame.flag("resumed")?,
                time: frame.text("time")?.parse::<Timestamp>().map_err(|_| Unreadable)?.as_millis(),
            },
            "snapshot" => Self::Snapshot {
                seq: frame.number("seq")?,
                reason: frame.text("reason")?,
                book: Box::new(Book::from_wire(frame.value("state")?)?),
            },
            "delta" => Self::Delta {
                seq: frame.number("seq")?,
                changes: list(frame.value("ops")?)?.map(change).collect::<Read<_>>()?,
            },
            "notice" => Self::Notice { level: frame.text("level")?, text: frame.text("text")? },
            "tick" => Self::Tick { seq: frame.number("seq")? },
            "sample" => {
                let at = frame.parsed::<Timestamp>("time")?.as_millis();
                let of = |(id, value)| Ok((id, Use::from_wire(value)?));
                let all = Members::of(frame.value("metrics")?)?;
                Self::Sample(at, all.into_iter().map(of).collect::<Read<_>>()?)
            }
            // Events repeat what the records say; others are newer.
            _ => Self::Other,
        })
    }
}

fn change(value: Value) -> Read<Change> {
    let mut op = Members::of(value)?;
    let kind = op.text("k")?;
    let id = op.text("id")?;
    let value = match op.text("op")?.as_str() {
        "put" => Some(op.value("v")?),
        "del" => None,
        _ => return Err(Unreadable),
    };
    Ok(match kind.as_str() {
        "project" => Change::Project(id, value.map(FromWire::from_wire).transpose()?.map(Arc::new)),
        "instance" => {
            Change::Instance(id, value.map(FromWire::from_wire).transpose()?.map(Arc::new))
        }
        "tracked" => Change::Tracked(id, value.map(sessions).transpose()?.map(Arc::new)),
        "job" => Change::Job(id, value.map(Job::from_wire).transpose()?.map(Arc::new)),
        "external" => Change::External(id, value.map(sessions).transpose()?.map(Arc::new)),
        "adoptable" => Change::Adoptable(id, value == Some(Value::Bool(true))),
        "preflight" => Change::Preflight(id, value.map(failing).transpose()?.unwrap_or_default()),
        "health" => Change::Health(value.map(maybe).transpose()?.flatten()),
        _ => Change::Other,
    })
}

impl FromWire for LogFrame {
    fn from_wire(value: Value) -> Read<Self> {
        let mut frame = Members::of(value)?;
        Ok(match frame.text("type")?.as_str() {
            "line" => {
                Self::Line { cursor: frame.text("cursor")?, text: frame.text("text")?.into() }
            }
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
    use crate::model::sample::{bridge, health, inside, job_on_the_wire, project};
    use crate::model::wire::read;
    use serde_json::json;
    use svc_shared::internal::{LoginStatus, PreflightSummary, State, StateAt};
    use svc_shared::status::BridgeStatus;
    use svc_shared::stream::{EventFrame, Op, Put, Record, apply};

    fn reread(frame: &EventFrame) -> Read<Frame> {
        read(&serde_json::to_string(frame).unwrap())
    }

    fn put(id: &str, record: Record) -> Op {
        Op::Put(Put { id: id.into(), record })
    }

    fn del(k: &str, id: &str) -> Op {
        Op::Del { k: k.into(), id: id.into() }
    }

    fn refused(codes: &[&str]) -> PreflightSummary {
        let codes = codes.iter().map(|code| (*code).to_owned()).collect();
        PreflightSummary { ok: false, codes }
    }

    /// Steps over every kind of record, shown or not.
    fn steps() -> Vec<Vec<Op>> {
        let login = LoginStatus {
            claude_login_ok: true,
            claude_login_method: None,
            claude_login_expires_at: None,
        };
        let api = bridge("api", BridgeStatus::Starting);
        vec![
            vec![
                put("api", Record::Project(Box::new(project("api")))),
                put("web", Record::Project(Box::new(project("web")))),
                put("1", Record::Instance(api.into())),
                put("2", Record::Instance(bridge("web", BridgeStatus::Running).into())),
                put("2", Record::Tracked(vec![inside("working")])),
                put("health", Record::Health(Box::new(health()))),
                put("j", Record::Job(job_on_the_wire("working"))),
                put("api", Record::External(vec![inside("")])),
                put("api", Record::Adoptable(true)),
                put("c", Record::Clone(json!(1))),
                put("api", Record::Preflight(PreflightSummary { ok: true, codes: vec![] })),
                put("web", Record::Preflight(refused(&["settings"]))),
                put("login", Record::Login(login)),
                put("shepherd", Record::Shepherd(json!("s"))),
            ],
            vec![put("1", Record::Instance(bridge("api", BridgeStatus::Running).into()))],
            vec![del("project", "web"), del("tracked", "2"), del("instance", "2"), del("job", "j")],
            vec![del("health", "health"), del("adoptable", "api"), del("moon", "full")],
            vec![del("external", "api"), del("preflight", "web")],
        ]
    }

    fn book_of(state: &State) -> Book {
        read(&serde_json::to_string(state).unwrap()).unwrap()
    }

    #[test]
    fn folding_steps_gives_the_same_as_everywhere_else() {
        let mut state = State::default();
        let mut book = Book::default();
        for (seq, ops) in steps().into_iter().enumerate() {
            let frame = EventFrame::Delta {
                seq: seq as u64,
                time: Timestamp::from_millis(7),
                ops: ops.clone(),
            };
            let Frame::Delta { changes, .. } = reread(&frame).unwrap() else {
                panic!("not a step");
            };
            book.apply(changes);
            ops.into_iter().for_each(|op| apply(&mut state, op));
            assert_eq!(book, book_of(&state), "after step {seq}");
        }
    }

    #[test]
    fn a_snapshot_and_the_state_route_give_the_same_book() {
        let mut state = State::default();
        steps().remove(0).into_iter().for_each(|op| apply(&mut state, op));
        let at = StateAt { boot: "b".into(), seq: 3, state: state.clone() };
        let at = read::<BookAt>(&serde_json::to_string(&at).unwrap()).unwrap();
        assert_eq!((at.boot.as_str(), at.seq, at.book.instances.len()), ("b", 3, 2));
        let frame = EventFrame::Snapshot { seq: 4, reason: "gap".into(), state: Box::new(state) };
        assert_eq!(
            reread(&frame),
            Ok(Frame::Snapshot { seq: 4, reason: "gap".into(), book: Box::new(at.book) })
        );
    }

    #[test]
    fn the_other_frames_are_read_as_they_were_written() {
        let time = Timestamp::from_millis(7);
        let hello = EventFrame::Hello {
            v: 1,
            boot: "b".into(),
            seq: 4,
            server_version: "1".into(),
            resumed: true,
            time,
        };
        let expected = Frame::Hello {
            v: 1,
            boot: "b".into(),
            seq: 4,
            version: "1".into(),
            resumed: true,
            time: 7,
        };
        assert_eq!(reread(&hello), Ok(expected));
        assert_eq!(reread(&EventFrame::Tick { seq: 4, time }), Ok(Frame::Tick { seq: 4 }));
        let notice =
            EventFrame::Notice { level: "warn".into(), code: "c".into(), text: "t".into() };
        assert_eq!(reread(&notice), Ok(Frame::Notice { level: "warn".into(), text: "t".into() }));
        let event = EventFrame::Event { time, name: "crash".into(), data: json!(1) };
        assert_eq!(reread(&event), Ok(Frame::Other));
        assert_eq!(read(r#"{"type":"of a newer server"}"#), Ok(Frame::Other));
        let metrics = svc_shared::internal::metrics::Metrics {
            running: true,
            procs: 1,
            cpu_percent: 12.5,
            cpu_normalized: false,
            rss_bytes: 9,
            disk_read_bps: None,
            disk_write_bps: None,
        };
        let metrics = [("1".to_owned(), serde_json::to_value(metrics).unwrap())].into();
        let used = Use { cpu: 125, is_share: false, memory: 9 };
        assert_eq!(
            reread(&EventFrame::Sample { time, metrics }),
            Ok(Frame::Sample(7, vec![("1".into(), used)]))
        );
        for mark in [MarkKind::Resumed, MarkKind::Rotated, MarkKind::Gap, MarkKind::Ended] {
            let frame = LogFrame::Mark { kind: mark, generation: 3 };
            assert_eq!(read(&serde_json::to_string(&frame).unwrap()), Ok(frame));
        }
        let line = LogFrame::Line { cursor: "1:2".into(), text: "t".into() };
        assert_eq!(read(&serde_json::to_string(&line).unwrap()), Ok(line));
    }

    #[test]
    fn a_frame_with_a_record_that_is_not_understood_is_refused_whole() {
        for text in [
            "",
            "[]",
            r#"{"type":"tick","seq":-1}"#,
            r#"{"type":"hello","v":1,"boot":"b","seq":1,"server_version":"1","resumed":true,"time":"yesterday"}"#,
            r#"{"type":"delta","seq":1,"ops":[{"op":"move","k":"instance","id":"1"}]}"#,
            r#"{"type":"delta","seq":1,"ops":[{"op":"put","k":"instance","id":"1","v":{}}]}"#,
            r#"{"type":"delta","seq":1,"ops":[{"op":"put","k":"instance","id":"1"}]}"#,
        ] {
            assert_eq!(read::<Frame>(text), Err(Unreadable), "{text}");
        }
    }
}
