//! The frames between a keeper and its clients.
//!
//! A frame is a length (4 bytes, big-endian) and a JSON object. The first frame of a client is
//! `hello`. New members are optional and unknown members are ignored, so that both ends may be of
//! different releases. A change that an old end would misread needs a new protocol number.

use crate::screen::{Cursor, Modes, Row};
use crate::sidecar::Token;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::RangeInclusive;
use svc_domain::identity::{BootId, Pid, ProcessIdentity};
use svc_shared::Timestamp;

/// The protocols that a keeper of this release speaks.
pub const KEEPER_PROTOCOLS: RangeInclusive<u32> = 1..=1;
/// The protocols that a service of this release speaks.
///
/// The previous protocol stays in here: keepers outlive the release that started them.
pub const CLIENT_PROTOCOLS: RangeInclusive<u32> = 1..=1;

/// Longest frame in bytes, without its length.
pub const MAX_FRAME_BYTES: usize = 1 << 20;
/// Most clients of one keeper.
pub const MAX_CLIENTS: usize = 16;
/// Most frames in a second to one client.
pub const MAX_FPS: u8 = 30;
/// Most bytes of one input.
pub const MAX_INPUT_BYTES: usize = 16 << 10;
/// Most scrollback lines in one answer.
pub const MAX_SCROLL_LINES: u32 = 500;

/// A range of protocol numbers on the wire: lowest and highest.
pub type ProtocolRange = [u32; 2];

/// The range as it is written on the wire.
#[must_use]
pub fn on_wire(range: &RangeInclusive<u32>) -> ProtocolRange {
    [*range.start(), *range.end()]
}

/// The highest protocol that both ends speak.
#[must_use]
pub fn common_protocol(one: ProtocolRange, other: ProtocolRange) -> Option<u32> {
    let highest = one[1].min(other[1]);
    (highest >= one[0] && highest >= other[0]).then_some(highest)
}

/// What a client may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The service: may stop, resize and type, and is told the connect URL.
    /// A new controller takes the role over, and the previous one becomes an observer.
    Controller,
    /// Only reads.
    Observer,
}

/// What a client says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "snake_case")]
pub enum ToKeeper {
    /// The first frame, within 2 s.
    Hello {
        /// Lowest and highest protocol that the client speaks.
        proto: ProtocolRange,
        /// What it wants to do.
        role: Role,
        /// The token of the sidecar.
        token: Token,
        /// Name and release of the client, for logs.
        #[serde(default)]
        client: String,
    },
    /// Starts streaming.
    Sub {
        /// The last frame that the client has of this keeper.
        ///
        /// It gets the changes since, or a keyframe.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<u64>,
        /// Most frames in a second, 1 to 30.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_fps: Option<u8>,
        /// That many lines above the screen are sent too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scrollback: Option<u32>,
    },
    /// Types into the terminal. Answered by `ack`.
    Input {
        /// The bytes, base64.
        data_b64: String,
        /// Comes back in the answer.
        id: u64,
    },
    /// Changes the size of the terminal. Followed by a keyframe.
    Resize {
        /// Columns, 20 to 400.
        cols: u16,
        /// Rows, 5 to 200.
        rows: u16,
    },
    /// Ends the agent.
    ///
    /// Two interrupts, then after the grace a kill of its process group.
    Stop {
        /// Time between the interrupts and the kill.
        grace_ms: u64,
    },
    /// Asks for scrollback lines. Answered by `line` frames and one `scrolled`.
    Scroll {
        /// Number of the first line wanted.
        from: u64,
        /// How many, at most 500.
        n: u32,
    },
    /// Asks for a `pong`.
    Ping,
    /// Asks for the counters.
    Stat,
}

/// A complete screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// Number of the frame.
    pub seq: u64,
    /// Columns.
    pub cols: u16,
    /// How many rows.
    #[serde(rename = "lines")]
    pub row_count: u16,
    /// Cursor.
    pub cursor: Cursor,
    /// Modes.
    pub modes: Modes,
    /// All rows, from the top.
    pub rows: Vec<Row>,
    /// Number of the first row.
    ///
    /// Every line that ever left the screen at its top is counted, from 0.
    pub scroll_base: u64,
    /// Number of the oldest line kept above the screen.
    ///
    /// `scroll_base` when none is kept.
    pub scroll_first: u64,
}

/// Rows that moved inside the screen before the changed rows are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// First row of the region.
    pub top: u16,
    /// Last row of the region.
    pub bottom: u16,
    /// Rows moved up. The freed rows at the bottom are blank.
    pub n: u16,
}

/// What changed since an earlier frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diff {
    /// Number of the frame.
    pub seq: u64,
    /// The frame it applies to: the one sent to this client before.
    pub base: u64,
    /// Changed rows with their place. Applied after `scroll`.
    #[serde(default)]
    pub rows: Vec<(u16, Row)>,
    /// The cursor, if it changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
    /// The modes, if they changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modes: Option<Modes>,
    /// Applied before the rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scroll: Option<Moved>,
    /// As in [`Key`], if it changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scroll_base: Option<u64>,
    /// As in [`Key`], if it changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scroll_first: Option<u64>,
}

/// How far the session is, as far as the terminal shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The keeper runs, the agent is held before its start.
    #[default]
    Launching,
    /// The agent runs.
    Starting,
    /// The screen showed the connect URL.
    Ready,
    /// The screen asks a question that nobody may answer; see the reason.
    Failed,
    /// The agent has ended.
    Exited,
}

/// What the screen asks instead of starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Whether the directory is trusted.
    TrustRequired,
    /// The questions of a first run, such as the theme.
    OnboardingRequired,
}

/// The state of a session. The connect URL is only told to the controller.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionState {
    /// How far it is.
    pub phase: Phase,
    /// The connect URL. It is a credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Id of the session at its vendor, from the URL. It is a credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Set with [`Phase::Failed`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Question>,
    /// Exit code, with [`Phase::Exited`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Signal that ended the agent, with [`Phase::Exited`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_signal: Option<i32>,
}

/// Shows everything but the credentials.
impl fmt::Debug for SessionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionState")
            .field("phase", &self.phase)
            .field("has_url", &self.url.is_some())
            .field("reason", &self.reason)
            .field("exit_code", &self.exit_code)
            .field("exit_signal", &self.exit_signal)
            .finish_non_exhaustive()
    }
}

/// A process on the wire. Proven by the reader before it is believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessWire {
    /// Process id.
    pub pid: i64,
    /// Clock ticks from boot to its start.
    pub start_ticks: u64,
}

impl ProcessWire {
    /// The identity in that boot. `None` if the number cannot be that of a process.
    #[must_use]
    pub fn in_boot(&self, boot_id: &BootId) -> Option<ProcessIdentity> {
        let pid = Pid::new(self.pid)?;
        Some(ProcessIdentity { pid, start_ticks: self.start_ticks, boot_id: boot_id.clone() })
    }
}

impl From<&ProcessIdentity> for ProcessWire {
    fn from(identity: &ProcessIdentity) -> Self {
        Self { pid: i64::from(identity.pid.get()), start_ticks: identity.start_ticks }
    }
}

/// Who answers, in the keeper's first frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFacts {
    /// The keeper.
    pub keeper: ProcessWire,
    /// The agent.
    pub agent: ProcessWire,
    /// The boot that both run in.
    pub boot_id: String,
    /// When the keeper started.
    pub started_at: Timestamp,
    /// SHA-256 of the agent's arguments, hexadecimal.
    pub argv_sha256: String,
    /// Columns.
    pub cols: u16,
    /// Rows.
    pub rows: u16,
    /// Whether the keeper accepts input.
    #[serde(default)]
    pub input_allowed: bool,
    /// State of the session.
    pub state: SessionState,
}

/// Why a keeper refused a frame. It closes the connection, except after `readonly`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// No common protocol.
    Proto,
    /// Wrong token or another user.
    Auth,
    /// Too many clients.
    Busy,
    /// Input is not allowed by this keeper or for this role.
    Readonly,
    /// A frame that is too long or means nothing.
    Malformed,
    /// No first frame in time.
    Timeout,
    /// A code of a later release.
    #[serde(other)]
    Other,
}

/// Counters of a keeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Bytes that the agent wrote to its terminal.
    pub bytes: u64,
    /// Frames published.
    pub frames: u64,
    /// Frames that slow clients did not get.
    pub frames_dropped: u64,
    /// Times that the emulator failed and was reset.
    pub parser_faults: u64,
    /// Bytes of control strings that were dropped for their length.
    pub string_bytes_dropped: u64,
    /// Clients connected.
    pub clients: u32,
    /// Clients that were disconnected because they did not read.
    pub clients_dropped: u64,
    /// Scrollback lines kept.
    pub scrollback_lines: u32,
}

/// What a keeper says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "snake_case")]
pub enum FromKeeper {
    /// The answer to `hello`.
    Welcome {
        /// The protocol of this connection.
        proto: u32,
        /// Release of the keeper.
        keeper: String,
        /// Who it is and what it runs.
        session: SessionFacts,
        /// Number of the last published frame.
        seq: u64,
    },
    /// A refusal.
    Error {
        /// Why.
        code: ErrorCode,
        /// For people.
        #[serde(default)]
        detail: String,
        /// With [`ErrorCode::Proto`]: what the keeper speaks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        proto: Option<ProtocolRange>,
    },
    /// A complete screen.
    Key(Key),
    /// What changed.
    Diff(Diff),
    /// One line of scrollback.
    Line {
        /// Its number.
        n: u64,
        /// Its content.
        row: Row,
    },
    /// The end of an answer to `scroll`.
    Scrolled {
        /// Number of the first line sent, or asked for if none was sent.
        from: u64,
        /// How many lines were sent.
        n: u32,
        /// Number of the oldest line that is kept.
        first: u64,
    },
    /// The state of the session changed.
    State(SessionState),
    /// Frames were skipped because this client is slow. A keyframe follows.
    Gap {
        /// First frame skipped.
        from: u64,
        /// Last frame skipped.
        to: u64,
    },
    /// Input was written to the terminal.
    Ack {
        /// The id of the input.
        id: u64,
    },
    /// The answer to `ping`.
    Pong,
    /// The answer to `stat`.
    Stat(Counters),
    /// A frame of a later release: ignored.
    #[serde(other)]
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_common_protocol_is_used() {
        assert_eq!(common_protocol([1, 1], [1, 2]), Some(1));
        assert_eq!(common_protocol([1, 3], [2, 5]), Some(3));
        assert_eq!(common_protocol([0, 0], [1, 2]), None);
        assert_eq!(common_protocol([3, 4], [1, 2]), None);
        // An empty range speaks nothing.
        assert_eq!(common_protocol([2, 1], [1, 2]), None);
    }

    #[test]
    fn a_frame_of_a_later_release_is_read_as_unknown() {
        let read = |text: &str| serde_json::from_str::<FromKeeper>(text).unwrap();
        assert_eq!(read("{\"t\":\"hologram\",\"x\":1}"), FromKeeper::Unknown);
        assert_eq!(read("{\"t\":\"ack\",\"id\":3,\"later\":true}"), FromKeeper::Ack { id: 3 });
    }

    #[test]
    fn the_connect_url_is_in_no_debug_output() {
        let state = SessionState {
            url: Some("https://claude.ai/code/session_secret".to_owned()),
            session_id: Some("secret".to_owned()),
            ..SessionState::default()
        };
        assert!(!format!("{state:?}").contains("secret"));
    }
}
