//! Sockets of the service: one that is read, and a crowd of them on one thread.

use crate::http::word;
use crate::world::DEADLINE;
use anyhow::{Context as _, Result, bail};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::OwnedFd;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};
use tungstenite::client::IntoClientRequest as _;
use tungstenite::{Error, Message, WebSocket};

pub struct Socket(WebSocket<TcpStream>);

fn open(port: u16, path: &str) -> Result<WebSocket<TcpStream>> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    let mut request = format!("ws://127.0.0.1:{port}{path}").into_client_request()?;
    request.headers_mut().insert("Origin", format!("http://127.0.0.1:{port}").parse()?);
    let opened = tungstenite::client(request, stream);
    Ok(opened.map_err(|error| anyhow::anyhow!("no socket at {path}: {error}"))?.0)
}

impl Socket {
    pub fn open(port: u16, path: &str) -> Result<Self> {
        let socket = open(port, path)?;
        socket.get_ref().set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Self(socket))
    }

    /// The next text frame and when it came.
    pub fn next(&mut self) -> Result<(Instant, String)> {
        loop {
            match self.0.read().context("the socket went silent")? {
                Message::Text(text) => return Ok((Instant::now(), text.as_str().to_owned())),
                Message::Close(why) => bail!("the socket was closed: {why:?}"),
                Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_) => {}
            }
        }
    }
}

/// A socket that is read all the time, so that each frame has its arrival time.
pub struct Stream {
    frames: Receiver<Result<(Instant, String)>>,
}

impl Stream {
    pub fn of(mut socket: Socket) -> Self {
        let (sender, frames) = mpsc::channel();
        std::thread::spawn(move || {
            loop {
                let frame = socket.next();
                let is_over = frame.is_err();
                if sender.send(frame).is_err() || is_over {
                    return;
                }
            }
        });
        Self { frames }
    }

    /// The stream that the page follows.
    pub fn open(port: u16) -> Result<Self> {
        Ok(Self::of(Socket::open(port, "/ws/events")?))
    }

    /// When the next frame comes that satisfies `look`.
    pub fn until<T>(&mut self, mut look: impl FnMut(&str) -> Option<T>) -> Result<(Instant, T)> {
        loop {
            let (at, text) =
                self.frames.recv_timeout(DEADLINE).context("the stream is silent")??;
            if let Some(found) = look(&text) {
                return Ok((at, found));
            }
        }
    }

    /// When a frame with certain words comes.
    pub fn until_text(&mut self, look: impl Fn(&str) -> bool) -> Result<Instant> {
        Ok(self.until(|text| look(text).then_some(()))?.0)
    }

    /// When it is told that all these bridges were in this status, each at least once.
    pub fn until_status(&mut self, bridges: &[&Value], status: &str) -> Result<Instant> {
        let ids = bridges.iter().map(|bridge| word(bridge, "instance_id").to_owned());
        let mut left: BTreeSet<String> = ids.collect();
        let (at, ()) = self.until(|text| {
            for record in changed(text) {
                if word(&record, "status") == status {
                    left.remove(word(&record, "instance_id"));
                }
            }
            left.is_empty().then_some(())
        })?;
        Ok(at)
    }
}

/// The records that a frame sets.
fn changed(text: &str) -> Vec<Value> {
    let frame: Value = serde_json::from_str(text).unwrap_or_default();
    let ops = frame.get("ops").and_then(Value::as_array);
    ops.into_iter().flatten().filter_map(|op| op.get("v").cloned()).collect()
}

/// Many sockets that are only counted.
pub struct Crowd {
    poll: OwnedFd,
    sockets: Vec<Option<WebSocket<TcpStream>>>,
}

impl Crowd {
    pub fn open(port: u16, path: &str, sockets: usize) -> Result<Self> {
        let poll = epoll::create(CreateFlags::CLOEXEC)?;
        let mut all = Vec::new();
        for number in 0..sockets {
            let socket = open(port, path)?;
            socket.get_ref().set_nonblocking(true)?;
            epoll::add(&poll, socket.get_ref(), EventData::new_u64(number as u64), EventFlags::IN)?;
            all.push(Some(socket));
        }
        Ok(Self { poll, sockets: all })
    }

    /// How many are still open.
    pub fn len(&self) -> usize {
        self.sockets.iter().flatten().count()
    }

    /// Hands each text frame and the number of its socket to `look`.
    /// Ends when `look` is satisfied or the time is over, and returns which of the two.
    pub fn read(
        &mut self,
        until: Instant,
        mut look: impl FnMut(usize, Instant, &str) -> bool,
    ) -> Result<bool> {
        let mut events = Vec::with_capacity(64);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            let left = Timespec {
                tv_sec: i64::try_from(left.as_secs())?,
                tv_nsec: left.subsec_nanos().into(),
            };
            events.clear();
            epoll::wait(&self.poll, rustix::buffer::spare_capacity(&mut events), Some(&left))?;
            let mut satisfied = false;
            for event in &events {
                let number = usize::try_from(event.data.u64())?;
                let Some(place) = self.sockets.get_mut(number) else { continue };
                satisfied |= drain(number, place, &mut look);
            }
            if satisfied {
                return Ok(true);
            }
        }
    }
}

/// Reads what there is. A socket that was closed leaves its place.
fn drain(
    number: usize,
    place: &mut Option<WebSocket<TcpStream>>,
    look: &mut impl FnMut(usize, Instant, &str) -> bool,
) -> bool {
    let mut satisfied = false;
    loop {
        let Some(socket) = place else { return satisfied };
        match socket.read() {
            Ok(Message::Text(text)) => satisfied |= look(number, Instant::now(), &text),
            Ok(Message::Close(_)) => *place = None,
            Ok(Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_)) => {}
            Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => return satisfied,
            Err(_) => *place = None,
        }
    }
}
