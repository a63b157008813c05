//! Knob `link`: what a session or a bridge says about its remote link and its work.
//!
//! A list of `[milliseconds since readiness, event]`, in the lines of agent 2.1.197. Lines for the
//! debug file are written as they are; lines of the captured output only where the agent writes
//! them: losses with `--verbose` only.

use serde::Deserialize;

use super::debug_log::{DebugLog, Level};

/// One step: when, and what is said.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct LinkStep(pub(crate) u64, pub(crate) LinkEvent);

/// What is said.
///
/// `session` is the remote session; without one, the first that there is.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum LinkEvent {
    /// A poll that brought nothing, for the n-th time.
    Poll(u64),
    /// A poll that failed with this HTTP status.
    PollStatus(u16),
    /// No connection since so many seconds (said with `--verbose` only).
    ConnectionError {
        elapsed_s: u64,
        cause: String,
    },
    /// Errors since so many seconds (said with `--verbose` only).
    PollFailed {
        elapsed_s: u64,
        cause: String,
    },
    /// The link is back after so many seconds.
    Reconnected(u64),
    /// No connection for so many minutes: the bridge ends with code 1.
    GiveUp(u64),
    /// Errors for so many minutes: the bridge ends with code 1.
    GiveUpErrors(u64),
    /// The service refuses the login: 401, refresh failed, 401 again.
    Unauthorized {},
    /// The host slept for so many seconds.
    Slept(u64),
    HeartbeatFailed {
        session: Option<String>,
    },
    Requeued {
        session: Option<String>,
    },
    /// Full: this many of so many sessions.
    AtCapacity(u32, u32),
    /// Waits for a permission for this tool.
    Perm {
        tool: String,
        session: Option<String>,
    },
    /// The text behind `sessionId=…`, such as `tool_start Bash ls`.
    Activity {
        what: String,
        session: Option<String>,
    },
    /// `[bridge:repl] handleStateChange` of the interactive form.
    State {
        state: String,
        #[serde(default)]
        detail: String,
    },
    SdkState(String),
    Failed {
        detail: String,
        was_connected: bool,
    },
    Skipping(String),
    /// No more lines by themselves (knob `chatter_ms`).
    Silence {},
    /// Any line of the debug file, behind time and level.
    Line(String),
    /// Any line of the captured output.
    Out(String),
}

/// Where a step is said.
pub(crate) struct Voice<'a> {
    pub(crate) log: &'a DebugLog,
    pub(crate) verbose: bool,
    /// The session meant by steps that name none.
    pub(crate) session: Option<&'a str>,
}

/// What a step does besides its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    GoOn,
    Silence,
    End,
}

impl Voice<'_> {
    /// Writes the lines of a step; `out` prints one line of the captured output.
    pub(crate) fn say(&self, event: &LinkEvent, out: impl Fn(&str)) -> Outcome {
        let id = |session: &Option<String>| {
            session.as_deref().or(self.session).unwrap_or("session_none").to_owned()
        };
        let debug = |text: String| self.log.debug(&text);
        match event {
            LinkEvent::Poll(count) => debug(format!(
                "[bridge:api] GET .../work/poll -> 200 (no work, {count} consecutive empty polls)"
            )),
            LinkEvent::PollStatus(status) => {
                debug(format!("[bridge:api] GET .../work/poll -> {status}"));
            }
            LinkEvent::ConnectionError { elapsed_s, cause } if self.verbose => {
                out(&format!("Connection error, retrying in 2.0s ({elapsed_s}s elapsed): {cause}"))
            }
            LinkEvent::PollFailed { elapsed_s, cause } if self.verbose => {
                out(&format!("Poll failed, retrying in 2.0s ({elapsed_s}s elapsed): {cause}"));
            }
            LinkEvent::ConnectionError { .. } | LinkEvent::PollFailed { .. } => {}
            LinkEvent::Reconnected(seconds) => {
                debug(format!("[bridge:poll] Reconnected after {seconds}s"));
                out(&format!("Reconnected after {seconds}s"));
            }
            LinkEvent::GiveUp(minutes) => {
                out(&format!("Server unreachable for {minutes} minutes, giving up."));
                return Outcome::End;
            }
            LinkEvent::GiveUpErrors(minutes) => {
                out(&format!("Persistent errors for {minutes} minutes, giving up."));
                return Outcome::End;
            }
            LinkEvent::Unauthorized {} => {
                debug("[bridge:api] poll: 401 received, attempting token refresh".into());
                debug("[bridge:api] poll: Token refresh failed".into());
                debug("[bridge:api] poll: Retry after refresh also got 401".into());
            }
            LinkEvent::Slept(seconds) => debug(format!(
                "[bridge:work] Detected system sleep ({seconds}s gap), resetting error budget"
            )),
            LinkEvent::HeartbeatFailed { session } => {
                debug(format!("[bridge:heartbeat] Failed for sessionId={}", id(session)));
            }
            LinkEvent::Requeued { session } => {
                debug(format!("[bridge:heartbeat] Re-queued sessionId={}", id(session)));
            }
            LinkEvent::AtCapacity(active, most) => debug(format!(
                "[bridge:work] At capacity ({active}/{most}), cannot spawn new session for \
                 workId=work_none"
            )),
            LinkEvent::Perm { tool, session } => debug(format!(
                "[bridge:perm] sessionId={} tool={tool} request_id=req_sim (not auto-approving)",
                id(session)
            )),
            LinkEvent::Activity { what, session } => {
                debug(format!("[bridge:activity] sessionId={} {what}", id(session)));
            }
            LinkEvent::State { state, detail } => {
                debug(format!("[bridge:repl] handleStateChange state={state} detail=\"{detail}\""))
            }
            LinkEvent::SdkState(state) => debug(format!("[bridge:sdk] State change: {state}")),
            LinkEvent::Failed { detail, was_connected } => debug(format!(
                "[bridge:repl] notifyBridgeFailed detail=\"{detail}\" stateKey=sim \
                 wasConnected={was_connected}"
            )),
            LinkEvent::Skipping(reason) => debug(format!("[bridge:repl] Skipping: {reason}")),
            LinkEvent::Silence {} => return Outcome::Silence,
            LinkEvent::Line(text) => self.log.line(Level::Debug, text),
            LinkEvent::Out(text) => out(text),
        }
        Outcome::GoOn
    }
}
