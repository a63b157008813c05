//! The poll loop.
//!
//! It drains the terminal, publishes screens, serves clients, and ends with the agent.

mod conversation;

use super::agent::{Agent, End};
use super::allowance::Allowance;
use super::client::{Client, STALL_LIMIT};
use super::machine;
use super::publish::Published;
use super::report::say;
use super::{socket, watch};
use crate::emulator::Emulator;
use crate::message::{Counters, ErrorCode, FromKeeper, Phase, SessionState};
use crate::screen::Size;
use crate::sidecar::{ExitRecord, FinalScreen, Secret, Sidecar, screen_file};
use conversation::{refuse, told};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Signal;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Least time between two frames.
const FRAME: Duration = Duration::from_millis(33);
/// Time between the two interrupts of a stop.
const SECOND_INTERRUPT: Duration = Duration::from_millis(400);
/// How long the last screen is served after the end.
const FINAL: Duration = Duration::from_secs(30);
/// How long output of a child of the agent is awaited after the agent's end.
const LAST_OUTPUT: Duration = Duration::from_millis(500);
/// Bytes of output drawn before others have their turn.
const TURN: usize = 256 << 10;
/// How long drawing goes on before others have their turn.
const LONGEST_TURN: Duration = Duration::from_millis(50);
/// Most input that waits for the agent to read it.
const MOST_INPUT: usize = 64 << 10;
/// Lines above the last screen that are kept on disk.
const TAIL_LINES: usize = 200;

pub(super) struct Parts {
    pub(super) agent: Agent,
    pub(super) master: OwnedFd,
    pub(super) size: Size,
    pub(super) listener: UnixListener,
    pub(super) signals: UnixStream,
    pub(super) sidecar: Sidecar,
    pub(super) sidecar_path: PathBuf,
    pub(super) scrollback: usize,
    pub(super) input_allowed: bool,
}

struct Stop {
    second_interrupt: Option<Instant>,
    kill: Option<Instant>,
}

pub(super) struct Keeper {
    parts: Parts,
    emulator: Emulator,
    published: Published,
    state: SessionState,
    clients: Vec<Client>,
    /// Bytes that wait until the agent reads them.
    to_agent: Vec<u8>,
    counters: Counters,
    allowance: Allowance,
    buffer: Vec<u8>,
    /// The screen may have changed since the last frame.
    dirty: bool,
    last_frame: Option<Instant>,
    terminal_open: bool,
    stop: Option<Stop>,
    ended: Option<(Instant, End)>,
    /// Set when the end is recorded: until then it is served.
    final_until: Option<Instant>,
    served_after_end: bool,
}

fn earliest(times: impl IntoIterator<Item = Option<Instant>>) -> Option<Instant> {
    times.into_iter().flatten().min()
}

impl Keeper {
    pub(super) fn new(parts: Parts) -> Self {
        Self {
            emulator: Emulator::new(parts.size, parts.scrollback),
            parts,
            published: Published::default(),
            state: SessionState { phase: Phase::Starting, ..SessionState::default() },
            clients: Vec::new(),
            to_agent: Vec::new(),
            counters: Counters::default(),
            allowance: Allowance::new(Instant::now(), machine::processor_time()),
            buffer: vec![0; 64 << 10],
            dirty: true,
            last_frame: None,
            terminal_open: true,
            stop: None,
            ended: None,
            final_until: None,
            served_after_end: false,
        }
    }

    /// Runs until the agent has ended and its last screen was served.
    pub(super) fn run(mut self) {
        self.collect(Instant::now());
        while !self.is_over(Instant::now()) {
            self.turn();
        }
        socket::remove(&self.parts.sidecar.socket);
    }

    fn is_over(&self, now: Instant) -> bool {
        let Some(until) = self.final_until else { return false };
        now >= until || (self.served_after_end && self.clients.is_empty())
    }

    /// Waits for something to do, and does it.
    fn turn(&mut self) {
        let now = Instant::now();
        let (ready, accept, terminal, signalled) = match self.wait(now) {
            Ok(ready) => ready,
            Err(Errno::INTR) => return,
            Err(error) => {
                // Only a defect of this loop can do this; the clients are its only changing part.
                say(&format!("poll failed: {error}"));
                self.clients.clear();
                return;
            }
        };
        let now = Instant::now();
        if signalled {
            self.collect(now);
        }
        if terminal.intersects(PollFlags::OUT) {
            self.write_input();
        }
        if terminal.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            self.drain(now);
        }
        self.step_stop(now);
        self.emulator.tick(now);
        for (index, flags) in ready.iter().enumerate().rev() {
            if !flags.is_empty() && !self.serve(index, *flags, now) {
                self.clients.remove(index);
            }
        }
        if accept {
            self.accept(now);
        }
        self.publish(Instant::now());
        self.end(now);
        self.drop_silent(now);
    }

    fn wait(&self, now: Instant) -> Result<(Vec<PollFlags>, bool, PollFlags, bool), Errno> {
        let mut terminal = PollFlags::empty();
        if self.terminal_open {
            if self.pauses_until(now).is_none() {
                terminal |= PollFlags::IN;
            }
            if !self.to_agent.is_empty() {
                terminal |= PollFlags::OUT;
            }
        }
        let mut polled = vec![
            PollFd::new(&self.parts.signals, PollFlags::IN),
            PollFd::new(&self.parts.listener, PollFlags::IN),
        ];
        for client in &self.clients {
            let mut flags = PollFlags::IN;
            if !client.is_idle() {
                flags |= PollFlags::OUT;
            }
            polled.push(PollFd::new(&client.stream, flags));
        }
        // Last, because a closed terminal would report its end for ever.
        if self.terminal_open {
            polled.push(PollFd::new(&self.parts.master, terminal));
        }
        let left = self.next_timer(now).map(|at| at.saturating_duration_since(now));
        let left = left.map(|left| Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        poll(&mut polled, left.as_ref())?;
        let flags: Vec<PollFlags> = polled.iter().map(PollFd::revents).collect();
        let at = |index: usize| flags.get(index).copied().unwrap_or(PollFlags::empty());
        let last = self.clients.len().saturating_add(2);
        let clients = flags.get(2..last).unwrap_or_default().to_vec();
        Ok((clients, !at(1).is_empty(), at(last), !at(0).is_empty()))
    }

    fn next_timer(&self, now: Instant) -> Option<Instant> {
        let stop = self.stop.as_ref().filter(|_| self.ended.is_none());
        let clients = self.clients.iter().map(Client::deadline);
        let frames = self.clients.iter().map(|client| {
            let subscribed = client.subscribed.as_ref()?;
            let waits = subscribed.gap_after.is_some() && !client.is_idle();
            (subscribed.sent < self.published.seq() && !waits).then_some(subscribed.next)
        });
        earliest(clients.chain(frames).chain([
            self.dirty.then(|| self.last_frame.map_or_else(Instant::now, |last| last + FRAME)),
            self.emulator.deadline(),
            self.pauses_until(now),
            stop.and_then(|stop| stop.second_interrupt),
            stop.and_then(|stop| stop.kill),
            self.final_until,
            self.ended.filter(|_| self.final_until.is_none()).map(|(at, _)| at + LAST_OUTPUT),
        ]))
    }

    /// Until when a flood is not read.
    ///
    /// The last output of an agent that ended is read at once.
    fn pauses_until(&self, now: Instant) -> Option<Instant> {
        let reads_all = !self.terminal_open || self.ended.is_some();
        self.allowance.pauses_until().filter(|until| !reads_all && *until > now)
    }

    fn collect(&mut self, now: Instant) {
        let mut unread = [0; 64];
        while matches!((&self.parts.signals).read(&mut unread), Ok(count) if count > 0) {}
        if let Some(end) = self.parts.agent.collect()
            && self.ended.is_none()
        {
            self.ended = Some((now, end));
        }
    }

    /// Draws what the agent wrote, at most a turn.
    fn drain(&mut self, now: Instant) {
        let (mut drained, begun): (usize, _) = (0, Instant::now());
        // A few bytes can ask for much drawing: clients and a stop are served in between.
        while self.terminal_open && drained < TURN && begun.elapsed() < LONGEST_TURN {
            match rustix::io::read(&self.parts.master, self.buffer.as_mut_slice()) {
                Ok(0) => self.terminal_open = false,
                Ok(count) => {
                    let bytes = self.buffer.get(..count).unwrap_or_default();
                    self.emulator.feed(bytes, now);
                    drained = drained.saturating_add(count);
                    self.counters.bytes = self.counters.bytes.saturating_add(count as u64);
                    self.dirty = true;
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                // No process has the terminal any more.
                Err(_) => self.terminal_open = false,
            }
        }
        let replies = self.emulator.take_replies();
        if self.to_agent.len().saturating_add(replies.len()) <= MOST_INPUT {
            self.to_agent.extend(replies);
        }
        self.write_input();
        self.allowance.settle(now, machine::processor_time());
    }

    fn write_input(&mut self) {
        while !self.to_agent.is_empty() && self.terminal_open {
            match rustix::io::write(&self.parts.master, &self.to_agent) {
                Ok(count) => drop(self.to_agent.drain(..count.min(self.to_agent.len()))),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => self.to_agent.clear(),
            }
        }
    }

    fn step_stop(&mut self, now: Instant) {
        if self.ended.is_some() {
            return;
        }
        let Some(stop) = &mut self.stop else { return };
        let signal = if stop.second_interrupt.is_some_and(|at| now >= at) {
            stop.second_interrupt = None;
            Signal::INT
        } else if stop.kill.is_some_and(|at| now >= at) {
            stop.kill = None;
            Signal::KILL
        } else {
            return;
        };
        self.signal(signal);
    }

    fn signal(&mut self, signal: Signal) {
        if let Err(error) = self.parts.agent.signal(signal) {
            say(&format!("the agent could not be signalled: {error}"));
        }
    }

    /// Publishes a frame if it is time, and queues what each client lacks.
    fn publish(&mut self, now: Instant) {
        if self.dirty
            && self.last_frame.is_none_or(|last| now.saturating_duration_since(last) >= FRAME)
        {
            self.dirty = false;
            self.last_frame = Some(now);
            if self.published.publish(self.emulator.picture()) {
                self.counters.frames = self.counters.frames.saturating_add(1);
                self.look(now);
            }
        }
        let seq = self.published.seq();
        for client in &mut self.clients {
            let is_idle = client.is_idle();
            let Some(subscribed) = &mut client.subscribed else { continue };
            if subscribed.sent >= seq || now < subscribed.next {
                continue;
            }
            let gap = subscribed.gap_after;
            if gap.is_some() && !is_idle {
                continue;
            }
            let since = subscribed.sent;
            let frame = if gap.is_none() && self.published.knows(since) {
                self.published.diff_frame(since)
            } else {
                self.published.key_frame()
            };
            let Some(frame) = frame else { continue };
            subscribed.next = now + subscribed.every;
            if let Some(last) = gap {
                subscribed.gap_after = None;
                let skipped =
                    FromKeeper::Gap { from: last.saturating_add(1), to: seq.saturating_sub(1) };
                client.say(&skipped, now);
            }
            let shown = client.show(frame, now);
            if let Some(subscribed) = &mut client.subscribed {
                if shown {
                    subscribed.sent = seq;
                } else {
                    subscribed.gap_after = Some(since);
                    self.counters.frames_dropped = self.counters.frames_dropped.saturating_add(1);
                }
            }
        }
        for index in (0..self.clients.len()).rev() {
            if self
                .clients
                .get_mut(index)
                .is_some_and(|client| !client.is_idle() && !client.write(now))
            {
                self.clients.remove(index);
            }
        }
    }

    /// Looks for the connect URL and for questions on the screen.
    fn look(&mut self, now: Instant) {
        let link = self.emulator.take_link();
        let lines = self.emulator.raw_lines();
        if watch::look(&mut self.state, &lines, link.as_deref()) {
            self.tell(now);
        }
    }

    /// Records a changed state, then tells it.
    fn tell(&mut self, now: Instant) {
        let sidecar = &mut self.parts.sidecar;
        sidecar.phase = self.state.phase;
        sidecar.reason = self.state.reason;
        sidecar.url = self.state.url.clone().map(Secret);
        sidecar.session_id = self.state.session_id.clone().map(Secret);
        if let Err(error) = sidecar.write(&self.parts.sidecar_path) {
            say(&format!("{error}"));
        }
        for client in &mut self.clients {
            if let Some(role) = client.role {
                client.say(&FromKeeper::State(told(&self.state, role)), now);
            }
        }
    }

    /// After the agent's last output: the last screen, the record, the news.
    fn end(&mut self, now: Instant) {
        let Some((at, end)) = self.ended else { return };
        let drained = !self.terminal_open || now.saturating_duration_since(at) >= LAST_OUTPUT;
        if self.final_until.is_some() || !drained {
            return;
        }
        self.emulator.flush();
        self.last_frame = None;
        self.dirty = true;
        // The last screen comes before the news of the end, whatever rate a client asked for.
        for subscribed in self.clients.iter_mut().filter_map(|client| client.subscribed.as_mut()) {
            subscribed.next = now;
        }
        self.publish(now);
        if let Some(key) = self.published.key() {
            let from = key.scroll_base.saturating_sub(TAIL_LINES as u64);
            let (_, above) = self.emulator.lines(from, TAIL_LINES);
            let written =
                FinalScreen::new(key, above).write(&screen_file(&self.parts.sidecar_path));
            if let Err(error) = written {
                say(&format!("{error}"));
            }
        }
        self.state.phase = Phase::Exited;
        self.state.exit_code = end.code;
        self.state.exit_signal = end.signal;
        self.parts.sidecar.exit =
            Some(ExitRecord { code: end.code, signal: end.signal, at: machine::now() });
        self.tell(now);
        self.final_until = Some(now + FINAL);
        self.served_after_end = self.clients.iter().any(|client| client.role.is_some());
        for client in &mut self.clients {
            client.write(now);
        }
    }

    /// Disconnects clients that said nothing first, or that do not read.
    fn drop_silent(&mut self, now: Instant) {
        let counters = &mut self.counters;
        self.clients.retain_mut(|client| {
            if client.deadline().is_none_or(|at| now < at) {
                return true;
            }
            if client.role.is_none() && !client.closing {
                refuse(client, ErrorCode::Timeout, "no hello came in time", now);
                client.write(now);
            } else {
                counters.clients_dropped = counters.clients_dropped.saturating_add(1);
                say(&format!("a client did not read for {} s", STALL_LIMIT.as_secs()));
            }
            false
        });
    }
}
