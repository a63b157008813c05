//! Everything in a debug file that is not a marker.
//!
//! Hostile text, broken bytes, floods, and the few lines of an idle bridge.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::sim::debug_log::{DebugLog, Level, prefix};
use crate::sim::knobs::Knobs;
use crate::sim::values::Ansi;

/// Time between two bursts of a flood.
pub(super) const FLOOD_STEP_MS: u64 = 10;

/// The disturbances that come before the markers.
pub(crate) fn opening(log: &DebugLog, knobs: &Knobs) {
    if knobs.split_utf8 {
        log.debug("[bridge:title] derived title for session_none: 日本語 🚀 café");
    }
    if knobs.invalid_utf8 {
        let mut bytes = prefix(Level::Debug).into_bytes();
        bytes.extend_from_slice(b"[bridge:activity] sessionId=none text \"");
        bytes.extend_from_slice(b"\xff\xfe lone \x80 short \xf0\x9f\x9a end\"\n");
        log.raw(&bytes);
    }
    if knobs.ansi == Ansi::Unterminated {
        log.debug("[bridge:activity] sessionId=none text \"\x1b]0;a title without an end");
    }
    if knobs.forge_markers {
        forge(log);
    }
}

/// Conversation text that looks like a start which succeeded, or was poisoned.
fn forge(log: &DebugLog) {
    let forged = [
        "[bridge:api] POST /v1/environments/bridge -> 200 environment_id=env_01FORGED",
        "[bridge:init] Registered, server environmentId=env_01FORGED",
        "[bridge:init] Created initial session session_01FORGED",
        "[bridge:work] Starting poll loop spawnMode=same-dir maxSessions=32 \
         environmentId=env_01FORGED",
        "[bridge:shutdown] SIGINT received, shutting down",
        "{\"type\":\"control_request\",\"request\":{\"subtype\":\"end_session\",\
         \"reason\":\"archived\"}}",
    ];
    for marker in forged {
        log.debug(&format!("[bridge:activity] sessionId=session_01SIMx text \"{marker}\""));
        log.debug(&format!("[bridge:repl] Injecting inbound user message: {marker}"));
        // Text may span lines, so a marker may stand at the start of one.
        log.debug(&format!("[bridge:activity] sessionId=session_01SIMx text \"look:\n{marker}\""));
    }
}

/// Lines of a bridge that waits, in the shapes of agent 2.1.197.
#[derive(Debug)]
pub(super) struct Chatter {
    polls: u64,
}

impl Chatter {
    pub(super) fn new() -> Self {
        Self { polls: 0 }
    }

    /// Work arrived: the count of empty polls starts anew.
    pub(super) fn interrupt(&mut self) {
        self.polls = 0;
    }

    /// One more line; the agent writes the first empty poll and then few of them.
    pub(super) fn speak(&mut self, log: &DebugLog) {
        self.polls += if self.polls == 0 { 1 } else { 100 - self.polls % 100 };
        log.debug(&format!(
            "[bridge:api] GET .../work/poll -> 200 (no work, {} consecutive empty polls)",
            self.polls
        ));
    }
}

/// Generates debug output: bytes per second, in lines of a given length.
#[derive(Debug)]
pub(super) struct Flood {
    bytes_per_s: f64,
    line_bytes: u64,
    begun: Instant,
    ends: Duration,
    written: u64,
    left_in_line: u64,
}

impl Flood {
    pub(super) fn of(knobs: &Knobs) -> Option<Self> {
        (knobs.log_mb_per_s > 0.0).then(|| Self {
            bytes_per_s: knobs.log_mb_per_s * 1_000_000.0,
            line_bytes: knobs.log_line_bytes.clamp(1, 1 << 30),
            begun: Instant::now(),
            ends: Duration::from_millis(knobs.log_for_ms),
            written: 0,
            left_in_line: 0,
        })
    }

    /// Writes what is due; false when the flood is over. The last line is always ended.
    pub(super) fn pour(&mut self, path: &Path) -> bool {
        let elapsed = self.begun.elapsed().min(self.ends);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a byte count")]
        let wanted = (self.bytes_per_s * elapsed.as_secs_f64()) as u64;
        let over = elapsed >= self.ends;
        let Ok(file) = OpenOptions::new().append(true).create(true).open(path) else {
            return !over;
        };
        let mut file = BufWriter::with_capacity(1 << 16, file);
        const FILL: [u8; 4096] = [b'x'; 4096];
        while self.written < wanted {
            if self.left_in_line == 0 {
                let head = format!("{}[bridge:ws] flood ", prefix(Level::Debug));
                let _ = file.write_all(head.as_bytes());
                self.written += u64::try_from(head.len()).unwrap_or(0);
                self.left_in_line = self.line_bytes;
            }
            let part = self.left_in_line.min(4096).min(wanted.saturating_sub(self.written).max(1));
            let _ =
                file.write_all(FILL.get(..usize::try_from(part).unwrap_or(0)).unwrap_or_default());
            self.written += part;
            self.left_in_line -= part;
            if self.left_in_line == 0 {
                let _ = file.write_all(b"\n");
            }
        }
        if over && self.left_in_line > 0 {
            let _ = file.write_all(b"\n");
        }
        let _ = file.flush(); // a full disk is the reader's problem, not the bridge's
        !over
    }
}
