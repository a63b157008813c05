//! Following the state stream: which frame may be applied, and when to start over.

use crate::model::usage::Use;
use crate::model::wire;
use svc_shared::internal::{State, StateAt};
use svc_shared::stream::{ClientFrame, EventFrame, Op, PROTOCOL};

/// Silence after which a socket counts as dead, milliseconds.
///
/// The server sends a frame at least every 15 s, and a page cannot see pings.
pub const SILENCE_MS: f64 = 45_000.0;
/// Milliseconds without the stream before the banner is shown.
pub const BANNER_AFTER_MS: i64 = 2_000;
/// Clock difference to the server from which the page says so, milliseconds.
pub const SKEW_MS: i64 = 30_000;

/// Asks for measurements, or for none while nobody sees them.
#[must_use]
pub fn samples(on: bool) -> String {
    wire::written(&ClientFrame::Samples { on })
}

const FIRST_DELAY_MS: f64 = 500.0;
const MAX_DELAY_MS: f64 = 15_000.0;
const RESTART_DELAY_MS: f64 = 1_000.0;

/// Milliseconds to wait before try `attempt` (0 is the first after a loss).
///
/// `chance` in 0..1 spreads the tries of many pages by ±20 %. A restart takes about a second, so
/// its first try is not sooner.
#[must_use]
pub fn delay_ms(attempt: u32, restarting: bool, chance: f64) -> f64 {
    let doubled = FIRST_DELAY_MS * 2f64.powi(i32::try_from(attempt.min(10)).unwrap_or(10));
    let base =
        if restarting && attempt == 0 { RESTART_DELAY_MS } else { doubled.min(MAX_DELAY_MS) };
    (base * (0.8 + 0.4 * chance.clamp(0.0, 1.0))).round()
}

/// How the page caught up after a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaughtUp {
    /// Every step was replayed.
    Replayed(u64),
    /// Another server process.
    Restarted,
    /// Steps were missed.
    Gap,
}

/// What to do with a frame.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Nothing.
    Nothing,
    /// The stream is connected.
    Connected {
        /// Server clock, milliseconds.
        time: i64,
        /// Another server process than the one the state is from.
        new_boot: bool,
        /// Another version than at the start.
        other_version: bool,
        /// Steps missed, to be said; `None` on the first connection and before a snapshot.
        caught_up: Option<CaughtUp>,
    },
    /// Apply these to the state.
    Apply(Vec<Op>),
    /// This is the state now.
    Replace(Box<State>, Option<CaughtUp>),
    /// The server says something.
    Notice {
        /// `info`, `warn` or `error`.
        level: String,
        /// A sentence.
        text: String,
    },
    /// Something happened: its name, and what is told of it.
    Happened(String, serde_json::Value),
    /// What bridges use, at this time.
    Sample(i64, Vec<(String, Use)>),
    /// Steps are missing: close, and start over from a snapshot.
    StartOver,
    /// The server speaks another protocol: only a reload helps.
    OtherProtocol,
}

/// Where the page stands in the stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Follower {
    position: Option<(String, u64)>,
    version: Option<String>,
    /// Between a `hello` that announced one and its snapshot.
    awaiting: Option<Awaited>,
    greeted: bool,
    was_connected: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Awaited {
    boot: String,
    new_boot: bool,
}

impl Follower {
    /// Starts from the state read at the beginning, and the version that served it.
    pub fn start(&mut self, at: &StateAt, version: &str) {
        self.position = Some((at.boot.clone(), at.seq));
        self.version = Some(version.to_owned());
    }

    /// The version that served the page's start was read again.
    pub fn set_version(&mut self, version: &str) {
        self.version = Some(version.to_owned());
    }

    /// A socket was opened: nothing of the last one counts any more.
    pub fn opened(&mut self) {
        self.greeted = false;
        self.awaiting = None;
    }

    /// Query of the address: where to go on.
    #[must_use]
    pub fn query(&self) -> String {
        match &self.position {
            Some((boot, seq)) => {
                format!("?boot={}&since={seq}", svc_shared::paths::segment(boot))
            }
            None => String::new(),
        }
    }

    /// What to do with a frame.
    pub fn take(&mut self, frame: EventFrame) -> Step {
        match frame {
            EventFrame::Hello { v, boot, seq, server_version, resumed, time } => {
                if v != PROTOCOL {
                    return Step::OtherProtocol;
                }
                self.hello(boot, seq, &server_version, resumed, time.as_millis())
            }
            EventFrame::Snapshot { seq, reason, state } => self.snapshot(seq, &reason, state),
            EventFrame::Delta { seq, ops, .. } => self.delta(seq, ops),
            EventFrame::Tick { seq, .. } => match &self.position {
                Some((_, at)) if *at == seq && self.greeted => Step::Nothing,
                _ => self.start_over(),
            },
            EventFrame::Notice { level, text, .. } => Step::Notice { level, text },
            // Not a part of the state: it has no place in its order.
            EventFrame::Sample { time, metrics } => {
                let used = metrics.iter().map(|(id, now)| (id.clone(), Use::from(now)));
                Step::Sample(time.as_millis(), used.collect())
            }
            // It repeats what the records say, for who does not look at them.
            EventFrame::Event { name, data, .. } => Step::Happened(name, data),
            // Of a newer version.
            EventFrame::Other => Step::Nothing,
        }
    }

    fn hello(&mut self, boot: String, head: u64, version: &str, resumed: bool, time: i64) -> Step {
        let other_version = self.version.as_deref().is_some_and(|v| v != version);
        let known = self.position.as_ref();
        let new_boot = known.is_some_and(|(b, _)| *b != boot);
        let again = std::mem::replace(&mut self.was_connected, true);
        self.greeted = true;
        let caught_up = if resumed {
            let Some((_, at)) = known.filter(|(b, _)| *b == boot) else {
                return self.start_over();
            };
            again.then(|| CaughtUp::Replayed(head.saturating_sub(*at)))
        } else {
            self.awaiting = Some(Awaited { boot, new_boot });
            None
        };
        Step::Connected { time, new_boot, other_version, caught_up }
    }

    fn snapshot(&mut self, seq: u64, reason: &str, state: Box<State>) -> Step {
        if !self.greeted {
            return self.start_over();
        }
        let awaited = self.awaiting.take();
        let Some(boot) = awaited
            .as_ref()
            .map(|a| a.boot.clone())
            .or_else(|| self.position.as_ref().map(|(boot, _)| boot.clone()))
        else {
            return self.start_over();
        };
        let caught_up = match reason {
            _ if awaited.is_some_and(|a| a.new_boot) => Some(CaughtUp::Restarted),
            "boot" => Some(CaughtUp::Restarted),
            "gap" | "overflow" => Some(CaughtUp::Gap),
            _ => None,
        };
        self.position = Some((boot, seq));
        Step::Replace(state, caught_up)
    }

    fn delta(&mut self, seq: u64, ops: Vec<Op>) -> Step {
        match &mut self.position {
            Some((_, at)) if self.greeted && self.awaiting.is_none() && seq == *at + 1 => {
                *at = seq;
                Step::Apply(ops)
            }
            _ => self.start_over(),
        }
    }

    /// A frame that cannot be read counts as a missing step.
    pub fn start_over(&mut self) -> Step {
        self.position = None;
        self.opened();
        Step::StartOver
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_shared::Timestamp;
    use svc_shared::internal::metrics::Metrics;

    fn following(seq: u64) -> Follower {
        let mut follower = Follower::default();
        let at = StateAt { boot: "b1".into(), seq, state: State::default() };
        follower.start(&at, "1.0.0");
        follower.opened();
        follower
    }

    fn hello(boot: &str, seq: u64, resumed: bool) -> EventFrame {
        EventFrame::Hello {
            v: PROTOCOL,
            boot: boot.into(),
            seq,
            server_version: "1.0.0".into(),
            resumed,
            time: Timestamp::from_millis(7),
        }
    }

    fn delta(seq: u64) -> EventFrame {
        let ops = vec![Op::Del { k: "moon".into(), id: "full".into() }];
        EventFrame::Delta { seq, time: Timestamp::from_millis(7), ops }
    }

    fn snapshot(seq: u64, reason: &str) -> EventFrame {
        EventFrame::Snapshot { seq, reason: reason.into(), state: Box::default() }
    }

    fn tick(seq: u64) -> EventFrame {
        EventFrame::Tick { seq, time: Timestamp::from_millis(7) }
    }

    #[test]
    fn steps_are_applied_one_after_the_other() {
        let mut follower = following(4);
        assert_eq!(follower.query(), "?boot=b1&since=4");
        assert!(matches!(
            follower.take(hello("b1", 5, true)),
            Step::Connected { new_boot: false, other_version: false, caught_up: None, .. }
        ));
        assert!(matches!(follower.take(delta(5)), Step::Apply(ops) if ops.len() == 1));
        assert_eq!(follower.take(tick(5)), Step::Nothing);
        assert_eq!(follower.query(), "?boot=b1&since=5");
    }

    #[test]
    fn a_hole_a_repeat_and_a_head_that_ran_ahead_start_over_without_a_position() {
        for bad in [delta(6), delta(4), tick(5), tick(3)] {
            let mut follower = following(4);
            follower.take(hello("b1", 4, true));
            assert_eq!(follower.take(bad), Step::StartOver);
            assert_eq!(follower.query(), "");
        }
    }

    #[test]
    fn nothing_counts_before_the_greeting() {
        for early in [delta(5), tick(4), snapshot(5, "initial")] {
            assert_eq!(following(4).take(early), Step::StartOver);
        }
    }

    #[test]
    fn a_step_between_greeting_and_snapshot_is_not_applied_to_the_old_state() {
        let mut follower = following(4);
        follower.take(hello("b2", 1, false));
        assert_eq!(follower.take(delta(5)), Step::StartOver);
    }

    #[test]
    fn another_process_brings_a_snapshot_and_is_announced() {
        let mut follower = following(4);
        assert!(matches!(
            follower.take(hello("b2", 9, false)),
            Step::Connected { new_boot: true, .. }
        ));
        assert!(matches!(
            follower.take(snapshot(9, "boot")),
            Step::Replace(_, Some(CaughtUp::Restarted))
        ));
        assert!(matches!(follower.take(delta(10)), Step::Apply(_)));
        assert_eq!(follower.query(), "?boot=b2&since=10");
    }

    #[test]
    fn an_overflow_in_the_middle_is_a_gap_and_the_stream_goes_on() {
        let mut follower = following(4);
        follower.take(hello("b1", 4, true));
        assert!(matches!(
            follower.take(snapshot(90, "overflow")),
            Step::Replace(_, Some(CaughtUp::Gap))
        ));
        assert!(matches!(follower.take(delta(91)), Step::Apply(_)));
    }

    #[test]
    fn after_a_loss_the_steps_missed_are_counted() {
        let mut follower = following(4);
        follower.take(hello("b1", 4, true));
        follower.opened();
        assert!(matches!(
            follower.take(hello("b1", 18, true)),
            Step::Connected { caught_up: Some(CaughtUp::Replayed(14)), .. }
        ));
    }

    #[test]
    fn a_resume_that_was_never_asked_for_starts_over() {
        assert_eq!(following(4).take(hello("b2", 4, true)), Step::StartOver);
    }

    #[test]
    fn h133_another_protocol_asks_for_a_reload_and_another_version_says_so() {
        let other = EventFrame::Hello {
            v: PROTOCOL + 1,
            boot: "b1".into(),
            seq: 4,
            server_version: "9".into(),
            resumed: true,
            time: Timestamp::from_millis(0),
        };
        assert_eq!(following(4).take(other), Step::OtherProtocol);
        let mut follower = following(4);
        follower.set_version("0.9.0");
        assert!(matches!(
            follower.take(hello("b1", 4, true)),
            Step::Connected { other_version: true, .. }
        ));
    }

    #[test]
    fn what_the_page_says_is_what_the_server_reads() {
        for on in [true, false] {
            let frame = serde_json::from_str::<ClientFrame>(&samples(on)).unwrap();
            assert_eq!(frame, ClientFrame::Samples { on });
        }
    }

    #[test]
    fn a_frame_of_a_newer_service_changes_nothing_and_the_stream_goes_on() {
        let mut follower = following(4);
        follower.take(hello("b1", 4, true));
        let unknown = wire::read(r#"{"type":"of a newer server","seq":"x"}"#).unwrap();
        assert_eq!(follower.take(unknown), Step::Nothing);
        let event = EventFrame::Event {
            time: Timestamp::from_millis(7),
            name: "crash".into(),
            data: serde_json::json!(1),
        };
        let happened = Step::Happened("crash".into(), serde_json::json!(1));
        assert_eq!(follower.take(event), happened);
        let record = r#"{"type":"delta","seq":5,"time":"1970-01-01T00:00:00.007Z",
            "ops":[{"op":"put","k":"moon","id":"full","v":{"bright":true}}]}"#;
        assert!(matches!(follower.take(wire::read(record).unwrap()), Step::Apply(_)));
        assert_eq!(follower.take(tick(5)), Step::Nothing);
    }

    #[test]
    fn messages_and_measurements_are_handed_on() {
        let mut follower = following(4);
        let (level, code, text) = ("warn".to_owned(), "c".to_owned(), "t".to_owned());
        let notice = EventFrame::Notice { level: level.clone(), code, text: text.clone() };
        assert_eq!(follower.take(notice), Step::Notice { level, text });
        let now = Metrics {
            running: true,
            procs: 1,
            cpu_percent: 12.5,
            cpu_normalized: false,
            rss_bytes: 9,
            disk_read_bps: None,
            disk_write_bps: None,
        };
        let sample = EventFrame::Sample {
            time: Timestamp::from_millis(7),
            metrics: [("1".to_owned(), now)].into(),
        };
        let used = Use { cpu: 125, is_share: false, memory: 9 };
        let read = wire::read(&wire::written(&sample)).unwrap();
        assert_eq!(follower.take(read), Step::Sample(7, vec![("1".into(), used)]));
    }

    #[test]
    fn the_wait_doubles_up_to_its_limit_and_spreads() {
        let waits: Vec<f64> = (0..8).map(|n| delay_ms(n, false, 0.5)).collect();
        assert_eq!(waits, [500.0, 1000.0, 2000.0, 4000.0, 8000.0, 15000.0, 15000.0, 15000.0]);
        assert_eq!(delay_ms(0, true, 0.5), 1000.0);
        assert_eq!(delay_ms(u32::MAX, false, 1.0), 18000.0);
        assert_eq!(delay_ms(0, false, 0.0), 400.0);
    }
}
