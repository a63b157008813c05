//! The service's end of a connection to the daemon.
//!
//! One reader task matches answers to requests and passes frames on to whoever subscribed. A frame
//! that cannot be understood is skipped; a line that is too long ends the connection.

use crate::lines::next_line;
use crate::protocol::{Capabilities, LONGEST_LINE, PROTOCOL, RpcError, StreamFrame, code};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Frames that wait for one session.
/// When they are full the socket waits, and the daemon keeps what comes in its own buffer.
const FRAMES: usize = 256;
/// The first exchange is two short lines.
const GREETING: Duration = Duration::from_secs(2);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nobody listens.
    #[error("nobody listens on the daemon's socket")]
    Unreachable(#[source] io::Error),
    /// Somebody listens and does not answer as a daemon does.
    #[error("the daemon does not answer: {0}")]
    Silent(String),
    /// The token is not the daemon's.
    #[error("the daemon rejects the token")]
    Rejected,
    /// Another protocol.
    #[error("the daemon speaks protocol {0}, and this version speaks 1")]
    Protocol(u64),
}

/// Why a call has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CallError {
    /// The connection is gone, or the answer did not come in time.
    #[error("the daemon is not reachable")]
    Unreachable,
    /// The daemon refuses.
    #[error("the daemon refuses: {0}")]
    Refused(#[from] RpcError),
}

type Pending = HashMap<u64, oneshot::Sender<Result<Value, RpcError>>>;

#[derive(Default)]
struct Shared {
    pending: Mutex<Pending>,
    streams: Mutex<HashMap<String, mpsc::Sender<StreamFrame>>>,
}

impl Shared {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn streams(&self) -> MutexGuard<'_, HashMap<String, mpsc::Sender<StreamFrame>>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection to the daemon.
pub struct Client {
    shared: Arc<Shared>,
    writer: AsyncMutex<OwnedWriteHalf>,
    next: AtomicU64,
    token: String,
    limit: Duration,
    closed: CancellationToken,
    capabilities: Capabilities,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}

impl Client {
    /// Connects, and finds out whether both ends understand each other.
    /// The second value is the reader; it runs until the connection ends and must be spawned.
    ///
    /// # Errors
    /// See [`ConnectError`]: only `Unreachable` is a reason to start a daemon.
    pub async fn connect(
        socket: &Path,
        token: String,
        limit: Duration,
    ) -> Result<(Self, impl Future<Output = ()> + Send + 'static), ConnectError> {
        let stream = UnixStream::connect(socket).await.map_err(ConnectError::Unreachable)?;
        let (read, write) = stream.into_split();
        let shared = Arc::new(Shared::default());
        let closed = CancellationToken::new();
        let mut reader = Box::pin(read_frames(read, Arc::clone(&shared), closed.clone()));
        let mut client = Self {
            shared,
            writer: AsyncMutex::new(write),
            next: AtomicU64::new(1),
            token,
            limit,
            closed,
            capabilities: Capabilities {
                version: String::new(),
                protocol: 0,
                methods: Vec::new(),
                pid: 0,
                children: 0,
            },
        };
        let greeting = client.call("server.capabilities", json!({}));
        let answer = tokio::select! {
            answer = tokio::time::timeout(GREETING, greeting) => answer,
            () = &mut reader => Ok(Err(CallError::Unreachable)),
        };
        let capabilities = match answer {
            Err(_) | Ok(Err(CallError::Unreachable)) => {
                return Err(ConnectError::Silent("no answer to the first question".to_owned()));
            }
            Ok(Err(CallError::Refused(error))) if error.code == code::UNAUTHORIZED => {
                return Err(ConnectError::Rejected);
            }
            Ok(Err(CallError::Refused(error))) => {
                return Err(ConnectError::Silent(error.to_string()));
            }
            Ok(Ok(answer)) => serde_json::from_value::<Capabilities>(answer)
                .map_err(|error| ConnectError::Silent(error.to_string()))?,
        };
        if capabilities.protocol != PROTOCOL {
            return Err(ConnectError::Protocol(capabilities.protocol));
        }
        client.capabilities = capabilities;
        Ok((client, reader))
    }

    /// What the daemon said about itself.
    #[must_use]
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// Cancelled when the connection ends.
    #[must_use]
    pub fn closed(&self) -> &CancellationToken {
        &self.closed
    }

    /// Asks the daemon.
    ///
    /// A call that is dropped while its line is sent ends the connection: nothing can follow a
    /// part of a line.
    ///
    /// # Errors
    /// It refuses, the connection ends, or the answer does not come within the limit. A late answer
    /// is ignored.
    pub async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params,
            "auth": self.token });
        let mut line = request.to_string();
        line.push('\n');
        if line.len() > LONGEST_LINE {
            return Err(RpcError::new(code::INVALID_PARAMS, "the request is too long").into());
        }
        let (answer, answered) = oneshot::channel();
        self.shared.pending().insert(id, answer);
        let _forget = Forget(&self.shared, id);
        // After the registration: the reader empties the map once, at its end.
        if self.closed.is_cancelled() {
            return Err(CallError::Unreachable);
        }
        let exchange = async {
            let mut writer = self.writer.lock().await;
            // Also when the caller goes away or the time is over in the middle of a line.
            let half_sent = self.closed.clone().drop_guard();
            if writer.write_all(line.as_bytes()).await.is_err() {
                return Err(CallError::Unreachable);
            }
            half_sent.disarm();
            drop(writer);
            match answered.await {
                Ok(result) => result.map_err(CallError::Refused),
                Err(_) => Err(CallError::Unreachable),
            }
        };
        tokio::time::timeout(self.limit, exchange).await.unwrap_or(Err(CallError::Unreachable))
    }

    /// The frames of a process, from now on. A later subscription replaces this one.
    #[must_use]
    pub fn subscribe(&self, process: &str) -> mpsc::Receiver<StreamFrame> {
        let (frames, receiver) = mpsc::channel(FRAMES);
        self.shared.streams().insert(process.to_owned(), frames);
        receiver
    }
}

/// Nobody waits for the answer any more.
struct Forget<'a>(&'a Shared, u64);

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.0.pending().remove(&self.1);
    }
}

async fn read_frames(read: OwnedReadHalf, shared: Arc<Shared>, closed: CancellationToken) {
    let mut reader = BufReader::with_capacity(64 * 1024, read);
    let mut line = Vec::new();
    loop {
        let next = tokio::select! {
            next = next_line(&mut reader, &mut line, LONGEST_LINE) => next,
            () = closed.cancelled() => break,
        };
        match next {
            Ok(Some(line)) => {
                tokio::select! {
                    () = dispatch(&line, &shared) => {}
                    () = closed.cancelled() => break,
                }
            }
            Ok(None) => break,
            Err(error) => {
                tracing::warn!("the connection to the hosted-session daemon ends: {error}");
                break;
            }
        }
    }
    closed.cancel();
    // Whoever waits for an answer or a frame learns that none will come.
    shared.pending().clear();
    shared.streams().clear();
}

async fn dispatch(line: &[u8], shared: &Shared) {
    let skip = |what: &str| tracing::debug!("skipped a message of the daemon: {what}");
    let Ok(Value::Object(mut message)) = serde_json::from_slice(line) else {
        return skip("no object");
    };
    if message.get("type").and_then(Value::as_str) == Some("stream") {
        let Ok(frame) = serde_json::from_value::<StreamFrame>(Value::Object(message)) else {
            return skip("no frame");
        };
        let stream = shared.streams().get(&frame.process_id).cloned();
        if let Some(stream) = stream
            && stream.send(frame).await.is_err()
        {
            // Nobody reads it now.
        }
        return;
    }
    let Some(id) = message.get("id").and_then(Value::as_u64) else {
        return skip("neither answer nor frame");
    };
    let Some(answer) = shared.pending().remove(&id) else {
        return skip("an answer nobody waits for");
    };
    let result = match message.remove("error") {
        Some(error) => Err(serde_json::from_value(error)
            .unwrap_or_else(|_| RpcError::new(code::INTERNAL, "an error without a reason"))),
        None => Ok(message.remove("result").unwrap_or_default()),
    };
    // Whoever asked may have gone.
    let _ = answer.send(result);
}
