//! What clients say and are answered.

use super::super::client::{Client, Received, Subscribed};
use super::super::machine::window;
use super::super::report::say;
use super::{FRAME, Keeper, MOST_INPUT, SECOND_INTERRUPT, Stop};
use crate::message::{
    Counters, ErrorCode, FromKeeper, KEEPER_PROTOCOLS, MAX_CLIENTS, MAX_FPS, MAX_INPUT_BYTES,
    MAX_SCROLL_LINES, ProcessWire, Role, SessionFacts, SessionState, ToKeeper, common_protocol,
    on_wire,
};
use crate::screen::Size;
use base64::Engine as _;
use rustix::event::PollFlags;
use rustix::process::Signal;
use std::time::{Duration, Instant};

impl Keeper {
    /// Takes new clients. The kernel says who they are.
    pub(super) fn accept(&mut self, now: Instant) {
        while let Ok((stream, _)) = self.parts.listener.accept() {
            let user = svc_process::sockets::peer_uid(&stream);
            let is_ours = user.is_ok_and(|user| user == rustix::process::geteuid().as_raw());
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            let mut client = Client::new(stream, now);
            if !is_ours {
                refuse(&mut client, ErrorCode::Auth, "this session belongs to another user", now);
            } else if self.clients.len() >= MAX_CLIENTS {
                refuse(&mut client, ErrorCode::Busy, "too many clients are connected", now);
            }
            if client.closing {
                client.write(now);
                continue;
            }
            self.clients.push(client);
        }
    }

    /// Reads from and writes to a client. False if it is gone.
    pub(super) fn serve(&mut self, index: usize, flags: PollFlags, now: Instant) -> bool {
        let Some(client) = self.clients.get_mut(index) else { return false };
        if flags.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) && !client.closing {
            match client.receive() {
                Received::Closed => return false,
                Received::TooLong(length) => {
                    let why = format!("a frame of {length} bytes is longer than allowed");
                    refuse(client, ErrorCode::Malformed, &why, now);
                }
                Received::Frames(frames) => {
                    for frame in frames {
                        self.hear(index, &frame, now);
                    }
                }
            }
        }
        self.clients.get_mut(index).is_some_and(|client| client.write(now) && !client.ended)
    }

    fn hear(&mut self, index: usize, frame: &[u8], now: Instant) {
        let message = serde_json::from_slice::<ToKeeper>(frame);
        let Some(client) = self.clients.get_mut(index).filter(|client| !client.closing) else {
            return;
        };
        let Ok(message) = message else {
            // The parser's words may repeat what was said, such as a token.
            return refuse(client, ErrorCode::Malformed, "a frame that means nothing", now);
        };
        let role = match (&message, client.role) {
            (ToKeeper::Hello { .. }, None) => return self.welcome(index, &message, now),
            (ToKeeper::Hello { .. }, Some(_)) => {
                return refuse(client, ErrorCode::Malformed, "a second hello", now);
            }
            (_, None) => return refuse(client, ErrorCode::Auth, "the first frame is hello", now),
            (_, Some(role)) => role,
        };
        let readonly = |detail: &str| FromKeeper::Error {
            code: ErrorCode::Readonly,
            detail: detail.to_owned(),
            proto: None,
        };
        let controls = matches!(
            message,
            ToKeeper::Input { .. } | ToKeeper::Resize { .. } | ToKeeper::Stop { .. }
        );
        if controls && role != Role::Controller {
            return client.say(&readonly("only the controller may do this"), now);
        }
        match message {
            ToKeeper::Hello { .. } => {}
            ToKeeper::Ping => client.say(&FromKeeper::Pong, now),
            ToKeeper::Stat => {
                let counters = self.counters();
                if let Some(client) = self.clients.get_mut(index) {
                    client.say(&FromKeeper::Stat(counters), now);
                }
            }
            ToKeeper::Sub { since, max_fps, scrollback } => {
                let fps = max_fps.unwrap_or(MAX_FPS).clamp(1, MAX_FPS);
                let every = FRAME.max(Duration::from_secs(1) / u32::from(fps));
                let sent = since.filter(|since| self.published.knows(*since)).unwrap_or_default();
                client.subscribed = Some(Subscribed { sent, every, next: now, gap_after: None });
                if let Some(lines) = scrollback.filter(|lines| *lines > 0) {
                    let key = self.published.key();
                    let base = key.map_or(0, |key| key.scroll_base);
                    let lines = lines.min(MAX_SCROLL_LINES);
                    self.scroll(index, base.saturating_sub(lines.into()), lines, now);
                }
            }
            ToKeeper::Scroll { from, n } => self.scroll(index, from, n.min(MAX_SCROLL_LINES), now),
            ToKeeper::Input { data_b64, id } => {
                let answer = if self.parts.input_allowed {
                    match base64::engine::general_purpose::STANDARD.decode(data_b64) {
                        Ok(bytes)
                            if bytes.len() <= MAX_INPUT_BYTES
                                && self.to_agent.len().saturating_add(bytes.len())
                                    <= MOST_INPUT =>
                        {
                            self.to_agent.extend(bytes);
                            FromKeeper::Ack { id }
                        }
                        Ok(_) => FromKeeper::Error {
                            code: ErrorCode::Busy,
                            detail: "the agent does not read its input".to_owned(),
                            proto: None,
                        },
                        Err(_) => {
                            return refuse(
                                client,
                                ErrorCode::Malformed,
                                "input is not base64",
                                now,
                            );
                        }
                    }
                } else {
                    readonly("this session was started without input")
                };
                client.say(&answer, now);
                self.write_input();
            }
            ToKeeper::Resize { cols, rows } => self.resize(Size::clamped(cols, rows)),
            ToKeeper::Stop { grace_ms } => {
                if self.ended.is_none() && self.stop.is_none() {
                    let grace = Duration::from_millis(grace_ms.min(24 * 3_600_000));
                    let second = now + SECOND_INTERRUPT;
                    let kill = now + grace;
                    self.stop = Some(Stop {
                        second_interrupt: (second < kill).then_some(second),
                        kill: Some(kill),
                    });
                    self.signal(Signal::INT);
                }
            }
        }
    }

    fn resize(&mut self, size: Size) {
        if let Err(error) = rustix::termios::tcsetwinsize(&self.parts.master, window(size)) {
            say(&format!("the terminal did not take its new size: {error}"));
        }
        self.parts.size = size;
        self.emulator.resize(size);
        self.dirty = true;
    }

    fn welcome(&mut self, index: usize, hello: &ToKeeper, now: Instant) {
        let ToKeeper::Hello { proto, role, token, .. } = hello else { return };
        let facts = self.facts(*role);
        let seq = self.published.seq();
        let ours = self.parts.sidecar.token.reveal().to_owned();
        let Some(client) = self.clients.get_mut(index) else { return };
        if !is_equal(token.reveal().as_bytes(), ours.as_bytes()) {
            return refuse(
                client,
                ErrorCode::Auth,
                "the token is not the one of this session",
                now,
            );
        }
        let speaks = on_wire(&KEEPER_PROTOCOLS);
        let Some(proto) = common_protocol(*proto, speaks) else {
            client.closing = true;
            let detail = "no common protocol".to_owned();
            let error = FromKeeper::Error { code: ErrorCode::Proto, detail, proto: Some(speaks) };
            return client.say(&error, now);
        };
        client.role = Some(*role);
        let keeper = env!("CARGO_PKG_VERSION").to_owned();
        client.say(&FromKeeper::Welcome { proto, keeper, session: facts, seq }, now);
        self.served_after_end |= self.final_until.is_some();
        if *role == Role::Controller {
            // The last one is the controller: a new service takes over from one that hangs.
            let others = self.clients.iter_mut().enumerate().filter(|(other, _)| *other != index);
            for (_, other) in others.filter(|(_, other)| other.role == Some(Role::Controller)) {
                other.role = Some(Role::Observer);
            }
        }
    }

    fn facts(&self, role: Role) -> SessionFacts {
        let sidecar = &self.parts.sidecar;
        SessionFacts {
            keeper: sidecar.keeper.process.clone(),
            agent: ProcessWire::from(&self.parts.agent.identity),
            boot_id: sidecar.keeper.boot_id.clone(),
            started_at: sidecar.started_at,
            argv_sha256: sidecar
                .agent
                .as_ref()
                .map(|agent| agent.argv_sha256.clone())
                .unwrap_or_default(),
            cols: self.parts.size.cols(),
            rows: self.parts.size.rows(),
            input_allowed: self.parts.input_allowed,
            state: told(&self.state, role),
        }
    }

    fn counters(&self) -> Counters {
        Counters {
            parser_faults: self.emulator.faults(),
            string_bytes_dropped: self.emulator.dropped(),
            clients: u32::try_from(self.clients.len()).unwrap_or(u32::MAX),
            scrollback_lines: u32::try_from(self.emulator.lines_above()).unwrap_or(u32::MAX),
            ..self.counters
        }
    }

    fn scroll(&mut self, index: usize, from: u64, n: u32, now: Instant) {
        // Lines that have no room would be redacted for nothing, while the terminal waits.
        let has_room = self.clients.get(index).is_some_and(Client::has_room);
        let wanted = if has_room { usize::try_from(n).unwrap_or_default() } else { 0 };
        let (start, rows) = self.emulator.lines(from, wanted);
        let first = self.published.key().map_or(0, |key| key.scroll_first);
        let Some(client) = self.clients.get_mut(index) else { return };
        let mut sent: u32 = 0;
        for (n, row) in (start..).zip(rows) {
            if !client.has_room() {
                break;
            }
            client.say(&FromKeeper::Line { n, row }, now);
            sent = sent.saturating_add(1);
        }
        client.say(&FromKeeper::Scrolled { from: start, n: sent, first }, now);
    }
}

pub(super) fn refuse(client: &mut Client, code: ErrorCode, detail: &str, now: Instant) {
    client.closing = true;
    client.say(&FromKeeper::Error { code, detail: detail.to_owned(), proto: None }, now);
}

/// The state as this role may know it: the URL is a credential.
pub(super) fn told(state: &SessionState, role: Role) -> SessionState {
    match role {
        Role::Controller => state.clone(),
        Role::Observer => SessionState { url: None, session_id: None, ..state.clone() },
    }
}

/// Compares without telling by its time where they differ.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    let differing = one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b));
    one.len() == other.len() && differing == 0
}
