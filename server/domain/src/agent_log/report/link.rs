//! The remote link: `down` only by evidence, never by silence (H107).

use std::time::Duration;

use svc_shared::Timestamp;
use svc_shared::status::{EvidenceSource, LinkState};

use super::DEBUG_FILE;
use crate::agent_log::marker::message;

/// Silence of a bridge below capacity after which `up` becomes `unknown`.
pub const SILENCE: Duration = Duration::from_secs(15 * 60);

/// Signs of life are noted in steps, so that not every line is a change.
const STEP: Duration = Duration::from_secs(60);

/// Most characters kept of a reason.
const REASON: usize = 200;

/// The remote link, and what is known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// What is known.
    pub state: LinkState,
    /// Since when; `None` before the first sign.
    pub since: Option<Timestamp>,
    /// Why it is down or unknown; redacted and clipped.
    pub reason: Option<String>,
    /// Where that was read.
    pub source: Option<EvidenceSource>,
    /// What kind of loss it is, while it is down.
    pub loss: Option<Loss>,
    /// Whether it was up at some time.
    pub was_up: bool,
    /// The last sign of life, in steps of a minute.
    pub heard_at: Option<Timestamp>,
    pub(crate) is_full: bool,
    pub(crate) down_seen_at: Option<Timestamp>,
}

/// A kind of loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The remote service is not reached or answers with an error.
    /// The agent tries again.
    Unreachable,
    /// The login is refused.
    Login,
    /// The agent has given up.
    GaveUp,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            state: LinkState::Unknown,
            since: None,
            reason: None,
            source: None,
            loss: None,
            was_up: false,
            heard_at: None,
            is_full: false,
            down_seen_at: None,
        }
    }
}

impl Link {
    /// When silence will make this link unknown; `None` when it will not.
    /// At capacity the agent polls too rarely for silence to mean anything.
    #[must_use]
    pub fn silence_ends_trust_at(&self) -> Option<Timestamp> {
        let counts = self.state == LinkState::Up && !self.is_full;
        self.heard_at.filter(|_| counts).map(|heard| heard.plus(SILENCE + STEP))
    }

    /// When a line last told of the present loss.
    #[must_use]
    pub fn loss_seen_at(&self) -> Option<Timestamp> {
        self.down_seen_at
    }

    /// The same link after a silence that was too long.
    #[must_use]
    pub fn silenced(&self, now: Timestamp) -> Self {
        Self {
            state: LinkState::Unknown,
            since: Some(now),
            reason: Some("the log has had no sign of the link for 15 minutes".to_owned()),
            source: Some(EvidenceSource::Silence),
            ..self.clone()
        }
    }

    /// A session ended or began: whether the bridge is full is not known any more.
    pub(super) fn has_room(&mut self) {
        self.is_full = false;
    }

    /// A line with another tag than those of conversations and sessions.
    pub(super) fn debug_line(&mut self, tag: &str, text: &str, at: Timestamp) -> bool {
        if text.starts_with("Token refresh failed")
            || text.starts_with("Retry after refresh also got 401")
            || tag == "bridge:api" && is_unauthorised(text)
        {
            let reason = "the remote service refuses the agent's login".to_owned();
            return self.down(at, at, reason, Loss::Login, DEBUG_FILE);
        }
        match tag {
            "bridge:api" => self.api(text, at),
            "bridge:poll" if text.starts_with("Reconnected after ") => {
                self.reconnected(Some(at), DEBUG_FILE)
            }
            "bridge:work" if text.starts_with("At capacity (") => {
                self.is_full = true;
                self.heard(at)
            }
            // The host slept: silence counts from here, and nothing is wrong.
            "bridge:work" if text.starts_with("Detected system sleep (") => self.heard(at),
            "bridge:sdk" => match text.strip_prefix("State change: ") {
                Some(state) => self.flag_form_state(word(state), "", at),
                None => false,
            },
            _ => false,
        }
    }

    /// A line of an Interactive Session's own bridge.
    pub(super) fn flag_form_line(&mut self, text: &str, at: Timestamp) -> bool {
        if let Some(rest) = text.strip_prefix("handleStateChange state=") {
            let detail = quoted(rest, " detail=\"").unwrap_or_default();
            return self.flag_form_state(word(rest), detail, at);
        }
        if let Some(rest) = text.strip_prefix("notifyBridgeFailed ") {
            let detail = quoted(rest, "detail=\"").unwrap_or_default();
            return self.flag_form_state("failed", detail, at);
        }
        if let Some(reason) = text.strip_prefix("Skipping: ") {
            let reason = format!("remote control does not start: {}", clipped(reason));
            return self.down(at, at, reason, Loss::GaveUp, DEBUG_FILE);
        }
        false
    }

    fn flag_form_state(&mut self, state: &str, detail: &str, at: Timestamp) -> bool {
        match state {
            "ready" | "connected" => self.up(at, DEBUG_FILE),
            "reconnecting" | "failed" => {
                let detail = clipped(detail);
                let reason = match (state, detail.is_empty()) {
                    (_, false) => detail,
                    ("failed", true) => "the agent reports that remote control failed".to_owned(),
                    (_, true) => "the agent reconnects to the remote service".to_owned(),
                };
                let loss = if state == "failed" { Loss::GaveUp } else { Loss::Unreachable };
                self.down(at, at, reason, loss, DEBUG_FILE)
            }
            _ => false,
        }
    }

    fn api(&mut self, text: &str, at: Timestamp) -> bool {
        let Some((request, answer)) = text.split_once(" -> ") else { return false };
        let Ok(status) = word(answer).parse::<u16>() else { return false };
        let answered = status < 400;
        if request.starts_with("GET ") && request.ends_with("/work/poll") {
            return match status {
                _ if answered => self.up(at, DEBUG_FILE),
                401 | 403 => {
                    let reason = format!("the remote service refuses the login (HTTP {status})");
                    self.down(at, at, reason, Loss::Login, DEBUG_FILE)
                }
                _ => {
                    let reason = format!("the remote service answers with HTTP {status}");
                    self.down(at, at, reason, Loss::Unreachable, DEBUG_FILE)
                }
            };
        }
        answered && self.state == LinkState::Up && self.heard(at)
    }

    /// A line of the captured output, without colours.
    pub(super) fn output_line(&mut self, text: &str, at: Option<Timestamp>) -> bool {
        let text = without_clock(text.trim());
        if text.starts_with("Reconnected after ") {
            return self.reconnected(at, EvidenceSource::Output);
        }
        let retry = ["Connection error, retrying in ", "Poll failed, retrying in "];
        let gave_up = ["Server unreachable for ", "Persistent errors for "];
        let is_one_of = |starts: [&str; 2]| starts.iter().any(|start| text.starts_with(start));
        // Without a time of its own the line cannot be placed; it is repeated soon.
        let Some(at) = at.filter(|_| is_one_of(retry) || is_one_of(gave_up)) else { return false };
        if is_one_of(gave_up) {
            if !text.contains("giving up") {
                return false;
            }
            let reason = "the agent gave up reaching the remote service".to_owned();
            return self.down(at, at, reason, Loss::GaveUp, EvidenceSource::Output);
        }
        let (elapsed, cause) = match text.split_once(" (").and_then(|(_, t)| t.split_once(')')) {
            Some((elapsed, cause)) => (seconds(elapsed), clipped(cause.trim_start_matches(':'))),
            None => (0, String::new()),
        };
        let since = Timestamp::from_millis(at.as_millis().saturating_sub(elapsed * 1000));
        let reason = match cause.is_empty() {
            true => "the remote service is not reached".to_owned(),
            false => format!("the remote service is not reached: {cause}"),
        };
        self.down(since, at, reason, Loss::Unreachable, EvidenceSource::Output)
    }

    fn reconnected(&mut self, at: Option<Timestamp>, source: EvidenceSource) -> bool {
        // The agent names the end of the loss itself, so it ends whatever the clocks say.
        self.down_seen_at = None;
        match at.or(self.heard_at).or(self.since) {
            Some(at) => self.up(at, source),
            None => false,
        }
    }

    fn up(&mut self, at: Timestamp, source: EvidenceSource) -> bool {
        // The two files are read one after the other: an older success does not end a loss.
        if self.state == LinkState::Down && self.down_seen_at.is_some_and(|seen| at < seen) {
            return false;
        }
        let heard = self.heard(at);
        if self.state == LinkState::Up {
            return heard;
        }
        self.state = LinkState::Up;
        self.since = Some(at);
        self.reason = None;
        self.source = Some(source);
        self.loss = None;
        self.was_up = true;
        self.down_seen_at = None;
        true
    }

    fn down(
        &mut self,
        since: Timestamp,
        seen_at: Timestamp,
        reason: String,
        loss: Loss,
        source: EvidenceSource,
    ) -> bool {
        self.down_seen_at = self.down_seen_at.max(Some(seen_at));
        let is_new = self.state != LinkState::Down;
        if is_new {
            self.since = Some(since);
            self.state = LinkState::Down;
        }
        // Having given up is final; a refused login explains the errors that follow it.
        let is_weaker = !is_new && self.loss.is_some_and(|known| known.weight() > loss.weight());
        if is_weaker || !is_new && self.loss == Some(loss) && self.reason.as_ref() == Some(&reason)
        {
            return is_new;
        }
        self.reason = Some(reason);
        self.loss = Some(loss);
        self.source = Some(source);
        true
    }

    fn heard(&mut self, at: Timestamp) -> bool {
        if self.heard_at.is_some_and(|heard| at < heard.plus(STEP)) {
            return false;
        }
        self.heard_at = Some(at);
        true
    }
}

impl Loss {
    fn weight(self) -> u8 {
        match self {
            Self::Unreachable => 0,
            Self::Login => 1,
            Self::GaveUp => 2,
        }
    }
}

/// Whether an API line reports a refused token: `<op>: 401 received…`.
fn is_unauthorised(text: &str) -> bool {
    text.split_once(": ").is_some_and(|(_, rest)| {
        rest.starts_with("401 received") || rest.starts_with("Retry after refresh also got 401")
    })
}

/// The text up to the first space.
fn word(text: &str) -> &str {
    text.split([' ', ',', ';']).next().unwrap_or_default()
}

/// What stands between `open` and the next quotation mark.
fn quoted<'a>(text: &'a str, open: &str) -> Option<&'a str> {
    text.split_once(open)?.1.split('"').next()
}

/// A text of the agent as it may be shown.
fn clipped(text: &str) -> String {
    message(text).chars().take(REASON).collect()
}

/// The text without a clock (`[12:34:56] `) and the word `Error:` before it.
fn without_clock(text: &str) -> &str {
    let is_clock = |clock: &str| {
        clock.len() == 8 && clock.bytes().all(|byte| byte.is_ascii_digit() || byte == b':')
    };
    let rest = text.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    let rest = rest.filter(|(clock, _)| is_clock(clock)).map_or(text, |(_, rest)| rest);
    rest.strip_prefix("Error: ").unwrap_or(rest)
}

/// Seconds of a text such as `42s elapsed` or `9m 30s elapsed`; at most a day.
fn seconds(text: &str) -> i64 {
    let mut sum: i64 = 0;
    for part in text.split(' ') {
        let (number, unit) = part.split_at(part.find(|c: char| !c.is_ascii_digit()).unwrap_or(0));
        let Ok(number) = number.parse::<i64>() else { continue };
        let scale = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            _ => 0,
        };
        sum = sum.saturating_add(number.saturating_mul(scale));
    }
    sum.clamp(0, 24 * 3600)
}
