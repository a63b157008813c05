//! The load generator: connections with one open request each, on one thread.
//!
//! Existing generators use more processor time per request than the service does. On two cores that
//! would measure the generator.

use crate::http::{self, Head};
use crate::machine;
use crate::report::histogram;
use crate::wire::Wire;
use anyhow::{Context as _, Result, bail, ensure};
use hdrhistogram::Histogram;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustls::ClientConfig;
use std::io::{ErrorKind, Read as _, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Connections, as the budgets have it.
pub const CONNECTIONS: usize = 16;
/// A rate is taken over each piece of the run, so that a run has samples.
const SLICE: Duration = Duration::from_millis(250);
const CHUNK: usize = 256 * 1024;

/// What came of a run.
pub struct Load {
    /// Requests per second, one sample per slice.
    pub rates: Vec<f64>,
    pub latencies: Histogram<u64>,
    pub answers: u64,
    /// Bytes of one body.
    pub body: usize,
    /// Share of one processor that the generator itself used.
    pub own_share: f64,
    /// Processor time of the service for one answer, in microseconds.
    /// Other work on the machine disturbs it far less than the rate.
    pub cost: f64,
}

impl Load {
    /// Takes another run of the same question into this one.
    pub fn join(&mut self, other: Self) -> Result<()> {
        ensure!(self.body == other.body, "the answers of two runs are not alike");
        let (own, theirs) = (self.answers as f64, other.answers as f64);
        let both = |one: f64, two: f64| (one * own + two * theirs) / (own + theirs);
        self.cost = both(self.cost, other.cost);
        self.own_share = both(self.own_share, other.own_share);
        self.answers += other.answers;
        self.rates.extend(other.rates);
        Ok(self.latencies.add(other.latencies)?)
    }
}

struct Client {
    stream: Wire,
    sent: Instant,
    buffer: Vec<u8>,
    /// Bytes of the body that are still to come, once the head is known.
    left: Option<usize>,
}

/// Sends one request over and over for the given time, after a warm-up.
/// Every answer must have the status and the length of the first.
pub fn run(place: (u32, u16), request: &[u8], warm: Duration, time: Duration) -> Result<Load> {
    run_over(place, None, request, warm, time)
}

/// The same, over TLS where a configuration is given.
pub fn run_over(
    (pid, port): (u32, u16),
    tls: Option<&Arc<ClientConfig>>,
    request: &[u8],
    warm: Duration,
    time: Duration,
) -> Result<Load> {
    let expected = first(Wire::open(port, tls)?, request)?;
    let body = expected.body.context("what is measured must say how long it is")?;
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    let mut clients = Vec::new();
    for number in 0..CONNECTIONS {
        let stream = Wire::open(port, tls)?;
        stream.socket().set_nonblocking(true)?;
        epoll::add(&poll, stream.socket(), EventData::new_u64(number as u64), EventFlags::IN)?;
        clients.push(Client { stream, sent: Instant::now(), buffer: Vec::new(), left: None });
    }
    for client in &mut clients {
        client.ask(request)?;
    }
    let mut load = Load {
        rates: Vec::new(),
        latencies: histogram(),
        answers: 0,
        body,
        own_share: 0.0,
        cost: 0.0,
    };
    let mut chunk = vec![0; CHUNK];
    let mut events = Vec::with_capacity(CONNECTIONS);
    let began = Instant::now() + warm;
    let (mut slice, mut in_slice, mut own) = (began, 0_u64, machine::own_seconds());
    let mut used = 0.0;
    let mut is_warm = false;
    loop {
        events.clear();
        epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in &events {
            let number = usize::try_from(event.data.u64())?;
            let Some(client) = clients.get_mut(number) else { continue };
            let Some(took) = client.read(&mut chunk, expected)? else { continue };
            client.ask(request)?;
            if is_warm {
                load.latencies.saturating_record(u64::try_from(took.as_nanos())?);
                load.answers += 1;
                in_slice += 1;
            }
        }
        let now = Instant::now();
        if !is_warm && now >= began {
            (is_warm, slice, own) = (true, now, machine::own_seconds());
            used = machine::processor_seconds(pid)?;
        }
        let passed = now.saturating_duration_since(slice);
        if is_warm && passed >= SLICE {
            load.rates.push(in_slice as f64 / passed.as_secs_f64());
            (slice, in_slice) = (now, 0);
            if now.saturating_duration_since(began) >= time {
                break;
            }
        }
    }
    load.cost = (machine::processor_seconds(pid)? - used) / load.answers as f64 * 1e6;
    load.own_share = (machine::own_seconds() - own) / began.elapsed().as_secs_f64();
    Ok(load)
}

/// The answer that all others must be like.
fn first(mut stream: Wire, request: &[u8]) -> Result<Head> {
    stream.write_all(request)?;
    let (mut bytes, mut chunk) = (Vec::new(), vec![0; CHUNK]);
    loop {
        if let Some(head) = http::head(&bytes)? {
            ensure!(head.status == 200, "the answer to measure is {}", head.status);
            return Ok(head);
        }
        let read = stream.read(&mut chunk)?;
        ensure!(read > 0, "the service closed the connection");
        bytes.extend_from_slice(chunk.get(..read).unwrap_or_default());
    }
}

impl Client {
    fn ask(&mut self, request: &[u8]) -> Result<()> {
        self.sent = Instant::now();
        // A request is far smaller than the room of a socket that holds nothing else.
        Ok(self.stream.write_all(request)?)
    }

    /// Reads what there is; the time it took when an answer is whole.
    fn read(&mut self, chunk: &mut [u8], expected: Head) -> Result<Option<Duration>> {
        loop {
            let read = match self.stream.read(chunk) {
                Ok(0) => bail!("the service closed a connection in the middle of its work"),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            let part = chunk.get(..read).unwrap_or_default();
            let left = match self.left {
                Some(left) => left.checked_sub(read),
                None => {
                    self.buffer.extend_from_slice(part);
                    let Some(head) = http::head(&self.buffer)? else { continue };
                    ensure!(
                        (head.status, head.body) == (expected.status, expected.body),
                        "an answer differs from the first: {head:?}, {expected:?}"
                    );
                    let length = head.length + head.body.unwrap_or_default();
                    let rest = length.checked_sub(self.buffer.len());
                    self.buffer.clear();
                    rest
                }
            };
            match left {
                Some(0) => {
                    self.left = None;
                    return Ok(Some(self.sent.elapsed()));
                }
                Some(left) => self.left = Some(left),
                None => bail!("an answer is longer than it says"),
            }
        }
    }
}
