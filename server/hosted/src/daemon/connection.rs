//! One connection: reads requests, answers them, and streams frames.

use super::admitted::Admitted;
use super::methods::{self, Outcome};
use super::state::Daemon;
use crate::lines::{LineError, next_line};
use crate::protocol::{LONGEST_INPUT, LONGEST_LINE, Reattached, Request, RpcError, answer, code};
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use subtle::ConstantTimeEq as _;
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Wrong tokens until the connection is closed.
const STRIKES: u32 = 3;
/// Who does not show the token for so long is sent away.
const INTRODUCTION: Duration = Duration::from_secs(10);
/// Lines that wait for the socket.
/// Frames wait in the ring of their process instead.
const QUEUE: usize = 64;
/// Frames that are taken from a ring at once.
const BATCH: usize = 16;
/// A peer that accepts nothing for this long is given up.
const STALL: Duration = Duration::from_secs(30);

/// One connection.
pub(super) struct Connection {
    pub daemon: Arc<Daemon>,
    out: mpsc::Sender<Bytes>,
    streams: Mutex<HashMap<String, JoinHandle<()>>>,
    /// Input of which more is to come, by process.
    parts: Mutex<HashMap<String, Vec<u8>>>,
}

/// Serves a connection to its end.
pub(super) async fn serve(daemon: Arc<Daemon>, socket: UnixStream, mut admitted: Admitted) {
    let (read, write) = socket.into_split();
    let (out, lines) = mpsc::channel(QUEUE);
    let closed = CancellationToken::new();
    let (streams, parts) = (Mutex::default(), Mutex::default());
    let connection = Arc::new(Connection { daemon, out, streams, parts });
    connection.daemon.table.tasks.spawn(write_lines(write, lines, closed.clone()));
    let mut reader = BufReader::new(read);
    let (mut line, mut strikes) = (Vec::new(), 0);
    let (asked_to_go, mut is_known) = (admitted.asked_to_go(), false);
    let introduction = tokio::time::sleep(INTRODUCTION);
    tokio::pin!(introduction);
    loop {
        let next = tokio::select! {
            next = next_line(&mut reader, &mut line, LONGEST_LINE) => next,
            () = closed.cancelled() => break,
            () = asked_to_go.cancelled(), if !is_known => break,
            () = &mut introduction, if !is_known => break,
        };
        match next {
            Ok(Some(line)) => {
                if !connection.take(&line, &mut strikes, &mut admitted).await {
                    break;
                }
                is_known = admitted.has_shown_the_token();
            }
            Ok(None) | Err(LineError::Io(_)) => break,
            Err(LineError::TooLong(_)) => {
                let error = RpcError::new(code::PARSE, "the line is too long");
                connection.send(answer(&Value::Null, &Err(error))).await;
                // What was queued is sent before the socket closes.
                break;
            }
        }
    }
    let streams = std::mem::take(&mut *connection.streams());
    streams.into_values().for_each(|stream| stream.abort());
}

async fn write_lines(
    mut socket: OwnedWriteHalf,
    mut lines: mpsc::Receiver<Bytes>,
    closed: CancellationToken,
) {
    while let Some(line) = lines.recv().await {
        let written = tokio::time::timeout(STALL, socket.write_all(&line)).await;
        if !matches!(written, Ok(Ok(()))) {
            break;
        }
    }
    closed.cancel();
}

impl Connection {
    async fn send(&self, line: impl Into<Bytes>) -> bool {
        self.out.send(line.into()).await.is_ok()
    }

    /// Takes one request; `false` ends the connection.
    async fn take(
        self: &Arc<Self>,
        line: &[u8],
        strikes: &mut u32,
        admitted: &mut Admitted,
    ) -> bool {
        let request = match serde_json::from_slice::<Value>(line) {
            Err(_) => return self.refuse(&Value::Null, code::PARSE, "this is no JSON").await,
            Ok(value) => {
                let id = value.get("id").cloned().unwrap_or_default();
                match serde_json::from_value::<Request>(value) {
                    Ok(request) => request,
                    Err(_) => {
                        return self.refuse(&id, code::INVALID_REQUEST, "this is no request").await;
                    }
                }
            }
        };
        let id = Value::from(request.id);
        if !bool::from(request.auth.as_bytes().ct_eq(self.daemon.token.as_bytes())) {
            *strikes += 1;
            let sent = self.refuse(&id, code::UNAUTHORIZED, "the token is wrong").await;
            return sent && *strikes < STRIKES;
        }
        if !admitted.is_known() {
            self.refuse(&id, code::CAPACITY, "too many connections").await;
            return false;
        }
        match methods::call(self, &request.method, &request.params) {
            Outcome::Now(result) => self.send(answer(&id, &result)).await,
            // Others go on while this one waits.
            Outcome::Later(work) => {
                let this = Arc::clone(self);
                self.daemon.table.tasks.spawn(async move {
                    let result = work.await;
                    this.send(answer(&id, &result)).await;
                });
                true
            }
            Outcome::Stream { process, from } => {
                self.stream(&process, from, Some(id));
                true
            }
            Outcome::Spawned { process, result } => {
                let sent = self.send(answer(&id, &Ok(result))).await;
                self.stream(&process, 0, None);
                sent
            }
            Outcome::Close => false,
        }
    }

    async fn refuse(&self, id: &Value, code: i64, why: &str) -> bool {
        self.send(answer(id, &Err(RpcError::new(code, why)))).await
    }

    fn streams(&self) -> MutexGuard<'_, HashMap<String, JoinHandle<()>>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops streaming a process.
    ///
    /// After the future nothing of the stream is queued any more: what is sent next comes after
    /// every frame of it.
    pub(super) fn detach(&self, process: &str) -> impl Future<Output = ()> + Send + 'static {
        let stream = self.streams().remove(process);
        if let Some(stream) = &stream {
            stream.abort();
        }
        async move {
            if let Some(stream) = stream {
                let _ = stream.await; // it was aborted
            }
        }
    }

    /// Input of a process together with the parts that came before.
    ///
    /// `None` while more is to come: an agent gets whole lines or nothing.
    pub(super) fn joined(
        &self,
        process: &str,
        data: Vec<u8>,
        (is_first, is_last): (bool, bool),
    ) -> Result<Option<Vec<u8>>, RpcError> {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let before = parts.remove(process);
        let mut whole = match (is_first, before) {
            // What was never finished is over.
            (true, _) => Vec::new(),
            (false, Some(before)) => before,
            (false, None) => {
                return Err(RpcError::new(code::INVALID_PARAMS, "the parts before are missing"));
            }
        };
        if whole.len() + data.len() > LONGEST_INPUT {
            return Err(RpcError::new(code::INVALID_PARAMS, "the input is too long"));
        }
        whole.extend_from_slice(&data);
        if is_last {
            return Ok(Some(whole));
        }
        parts.insert(process.to_owned(), whole);
        Ok(None)
    }

    /// Streams the frames of a process after `from`.
    /// First what is kept, then the answer to `reattach`, then what comes. Nothing is lost in
    /// between, because all of it is read from the same ring, at the pace of the reader.
    fn stream(self: &Arc<Self>, process: &str, from: u64, reattach: Option<Value>) {
        let before = self.detach(process);
        let Some(process) = self.daemon.table.get(process) else { return };
        let (id, this) = (process.id.clone(), Arc::clone(self));
        let work = async move {
            before.await;
            let mut news = process.news();
            let (first, last) = process.range();
            let mut cursor = from.min(last);
            if !this.replay(&process, &mut cursor, last).await {
                return;
            }
            if let Some(id) = reattach {
                let running = process.end().is_none();
                let answered =
                    Reattached { found: true, running, first_seq: first, last_seq: last };
                let result = serde_json::to_value(answered).unwrap_or_default();
                this.send(answer(&id, &Ok(result))).await;
            }
            loop {
                news.borrow_and_update();
                let (first, last) = process.range();
                if first > cursor + 1 && last > cursor {
                    let lag = json!({ "type": "lag", "processId": process.id,
                        "fromSeq": cursor + 1, "toSeq": first - 1 });
                    this.send(format!("{lag}\n")).await;
                }
                if !this.replay(&process, &mut cursor, last).await {
                    return;
                }
                // Nothing follows the end: whoever streams an ended process keeps its frames.
                let is_over = process.end().is_some() && cursor >= process.range().1;
                if is_over || news.changed().await.is_err() {
                    return;
                }
            }
        };
        let stream = self.daemon.table.tasks.spawn(work);
        let mut streams = self.streams();
        streams.retain(|_, stream| !stream.is_finished());
        streams.insert(id, stream);
    }

    async fn replay(
        &self,
        process: &super::process::Process,
        cursor: &mut u64,
        until: u64,
    ) -> bool {
        while *cursor < until {
            let Some((last, frames)) = process.after(*cursor, BATCH) else { break };
            for frame in frames {
                if !self.send(frame).await {
                    return false;
                }
            }
            *cursor = last;
        }
        true
    }
}
