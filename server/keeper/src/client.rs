//! The client of a keeper: connects, proves who answers, and exchanges frames.
//!
//! A connection has two ends that can be held by different tasks: [`Commands`] sends, [`Events`]
//! receives. Dropping both closes it. The keeper never waits for a client: read the events, or frames
//! are replaced by a gap and a keyframe, and after 10 s the keeper closes the connection.

use crate::frame;
use crate::message::{
    CLIENT_PROTOCOLS, ErrorCode, FromKeeper, ProtocolRange, Role, SessionFacts, ToKeeper,
    common_protocol, on_wire,
};
use crate::sidecar::Sidecar;
use serde::de::DeserializeOwned;
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;
use svc_domain::identity::ProcessIdentity;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Mutex;
use tokio::time::timeout;

/// A keeper answers within a few milliseconds; after this time it hangs.
const HELLO_LIMIT: Duration = Duration::from_secs(5);
/// A command is some hundred bytes: only a keeper that hangs does not take them.
const SEND_LIMIT: Duration = Duration::from_secs(5);

/// How to connect.
#[derive(Debug, Clone)]
pub struct Options {
    /// What the connection is for.
    pub role: Role,
    /// Name and release of this program, for the keeper's log.
    pub client: String,
    /// The protocols that this end speaks.
    pub protocols: RangeInclusive<u32>,
}

impl Options {
    /// A connection of this release.
    #[must_use]
    pub fn new(role: Role) -> Self {
        let client = format!("svc {}", env!("CARGO_PKG_VERSION"));
        Self { role, client, protocols: CLIENT_PROTOCOLS }
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nobody listens at the socket of the sidecar.
    #[error("the keeper does not answer at its socket")]
    NoKeeper(#[source] io::Error),
    /// The process at the socket is not the keeper of the sidecar.
    #[error("another process answers at the keeper's socket")]
    Stranger,
    /// Keeper and client have no protocol in common.
    #[error("the keeper speaks protocols {} to {}, this program {} to {}", keeper[0], keeper[1], client[0], client[1])]
    Version {
        /// What the keeper speaks.
        keeper: ProtocolRange,
        /// What this end speaks.
        client: ProtocolRange,
    },
    /// The keeper refused.
    #[error("the keeper refused the connection ({code:?}): {detail}")]
    Refused {
        /// Its code.
        code: ErrorCode,
        /// Its words.
        detail: String,
    },
    /// It did not answer in time.
    #[error("the keeper accepted the connection and said nothing for {} s", HELLO_LIMIT.as_secs())]
    Silent,
    /// It broke the protocol.
    #[error("the keeper answered with something else than a welcome")]
    Broken(#[source] io::Error),
}

/// The connection is closed: by the keeper, by its end, or by a failure.
#[derive(Debug, thiserror::Error)]
#[error("the connection to the keeper is closed")]
pub struct Closed(#[source] pub io::Error);

/// What the keeper said first.
#[derive(Debug, Clone)]
pub struct Welcome {
    /// The protocol of this connection.
    pub proto: u32,
    /// Release of the keeper.
    pub keeper_version: String,
    /// Who it is and what it runs. The identities are those of the sidecar.
    pub session: SessionFacts,
    /// Number of the last published frame.
    pub seq: u64,
}

/// An open connection.
#[derive(Debug)]
pub struct Connection {
    /// What the keeper said first.
    pub welcome: Welcome,
    /// Sends.
    pub commands: Commands,
    /// Receives.
    pub events: Events,
}

/// Connects to the keeper of a sidecar and checks that it is that keeper.
///
/// The caller has proven that the recorded process lives. Cancel-safe: a dropped call closes the
/// connection.
///
/// # Errors
/// There is no connection. Only [`ConnectError::Version`] says that the keeper is well.
pub async fn connect(sidecar: &Sidecar, options: &Options) -> Result<Connection, ConnectError> {
    timeout(HELLO_LIMIT, open(sidecar, options)).await.unwrap_or(Err(ConnectError::Silent))
}

async fn open(sidecar: &Sidecar, options: &Options) -> Result<Connection, ConnectError> {
    let stream = UnixStream::connect(&sidecar.socket).await.map_err(ConnectError::NoKeeper)?;
    let recorded = sidecar.keeper().ok_or(ConnectError::Stranger)?;
    check_peer(&stream, &recorded)?;
    let (from_keeper, to_keeper) = stream.into_split();
    let commands = Commands { to_keeper: Arc::new(Mutex::new(Some(to_keeper))) };
    let mut events = Events { from_keeper, buffer: Vec::new() };
    let client = on_wire(&options.protocols);
    let hello = ToKeeper::Hello {
        proto: client,
        role: options.role,
        token: sidecar.token.clone(),
        client: options.client.clone(),
    };
    // A keeper that refuses at once may close before it reads: its answer explains more.
    let sent = commands.send(&hello).await;
    let answer = match (events.next().await, sent) {
        (Ok(answer), _) => answer,
        (Err(Closed(cause)), _) => return Err(ConnectError::Broken(cause)),
    };
    match answer {
        FromKeeper::Welcome { proto, keeper, session, seq } => {
            if !is_same(&session, sidecar, &recorded) {
                return Err(ConnectError::Stranger);
            }
            if common_protocol([proto, proto], client).is_none() {
                let error = io::Error::other("it chose a protocol that was not offered");
                return Err(ConnectError::Broken(error));
            }
            let welcome = Welcome { proto, keeper_version: keeper, session, seq };
            Ok(Connection { welcome, commands, events })
        }
        FromKeeper::Error { code: ErrorCode::Proto, proto, .. } => {
            Err(ConnectError::Version { keeper: proto.unwrap_or(sidecar.keeper.proto), client })
        }
        FromKeeper::Error { code, detail, .. } => Err(ConnectError::Refused { code, detail }),
        _ => Err(ConnectError::Broken(io::ErrorKind::InvalidData.into())),
    }
}

/// Whether the other end of the socket is the recorded process of this user.
///
/// So the token is never told to another program.
fn check_peer(stream: &UnixStream, recorded: &ProcessIdentity) -> Result<(), ConnectError> {
    let peer = stream.peer_cred().map_err(ConnectError::NoKeeper)?;
    let is_same_user = peer.uid() == rustix::process::geteuid().as_raw();
    // 0 if the keeper is outside of this pid namespace.
    let is_same_process = peer.pid().is_none_or(|pid| pid == recorded.pid.get());
    (is_same_user && is_same_process).then_some(()).ok_or(ConnectError::Stranger)
}

fn is_same(session: &SessionFacts, sidecar: &Sidecar, recorded: &ProcessIdentity) -> bool {
    session.keeper == sidecar.keeper.process
        && session.boot_id == recorded.boot_id.as_str()
        && sidecar.agent.as_ref().is_none_or(|agent| agent.process == session.agent)
}

/// The sending end. Clones share the connection.
#[derive(Debug, Clone)]
pub struct Commands {
    /// `None` after a frame was cut off: the rest would be read as another frame.
    to_keeper: Arc<Mutex<Option<OwnedWriteHalf>>>,
}

impl Commands {
    /// Starts the stream of screens.
    ///
    /// It begins with the changes since a frame that this client has, or with a keyframe.
    ///
    /// # Errors
    /// The connection is closed.
    pub async fn sub(
        &self,
        since: Option<u64>,
        max_fps: Option<u8>,
        scrollback: Option<u32>,
    ) -> Result<(), Closed> {
        self.send(&ToKeeper::Sub { since, max_fps, scrollback }).await
    }

    /// Ends the agent.
    ///
    /// Two interrupts, then after the grace a kill of its process group.
    ///
    /// # Errors
    /// The connection is closed.
    pub async fn stop(&self, grace: Duration) -> Result<(), Closed> {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        self.send(&ToKeeper::Stop { grace_ms }).await
    }

    /// Changes the size of the terminal.
    ///
    /// The keeper takes the nearest size that it allows.
    ///
    /// # Errors
    /// The connection is closed.
    pub async fn resize(&self, cols: u16, rows: u16) -> Result<(), Closed> {
        self.send(&ToKeeper::Resize { cols, rows }).await
    }

    /// Types. `data_b64` is base64; the answer is `ack` with the same id, or a refusal.
    ///
    /// # Errors
    /// The connection is closed.
    pub async fn input(&self, data_b64: String, id: u64) -> Result<(), Closed> {
        self.send(&ToKeeper::Input { data_b64, id }).await
    }

    /// Asks for scrollback lines, at most 500.
    ///
    /// # Errors
    /// The connection is closed.
    pub async fn scroll(&self, from: u64, n: u32) -> Result<(), Closed> {
        self.send(&ToKeeper::Scroll { from, n }).await
    }

    /// Asks for the counters.
    ///
    /// # Errors
    /// The connection is closed.
    pub async fn stat(&self) -> Result<(), Closed> {
        self.send(&ToKeeper::Stat).await
    }

    /// Asks for a `pong`.
    ///
    /// # Errors
    /// The connection is closed.
    pub async fn ping(&self) -> Result<(), Closed> {
        self.send(&ToKeeper::Ping).await
    }

    async fn send(&self, message: &ToKeeper) -> Result<(), Closed> {
        let bytes = frame::encode(message).map_err(Closed)?;
        let mut guard = self.to_keeper.lock().await;
        // Taken out while it writes: a call that is dropped half-way closes the connection.
        let Some(mut half) = guard.take() else {
            return Err(Closed(io::ErrorKind::BrokenPipe.into()));
        };
        match timeout(SEND_LIMIT, half.write_all(&bytes)).await {
            Ok(Ok(())) => {
                *guard = Some(half);
                Ok(())
            }
            Ok(Err(error)) => Err(Closed(error)),
            Err(_) => Err(Closed(io::ErrorKind::TimedOut.into())),
        }
    }
}

/// The receiving end.
#[derive(Debug)]
pub struct Events {
    from_keeper: OwnedReadHalf,
    /// What was read of the next frame.
    buffer: Vec<u8>,
}

impl Events {
    /// The next frame. Frames of later releases arrive as [`FromKeeper::Unknown`].
    ///
    /// Cancel-safe: bytes that were read stay for the next call.
    ///
    /// # Errors
    /// The connection is closed, or the keeper broke the protocol.
    pub async fn next(&mut self) -> Result<FromKeeper, Closed> {
        next(&mut self.from_keeper, &mut self.buffer).await.map_err(Closed)
    }
}

async fn next<T: DeserializeOwned>(
    from: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> io::Result<T> {
    loop {
        if let Some(head) = buffer.first_chunk::<{ frame::HEAD }>() {
            let length = frame::body_length(*head).map_err(io::Error::other)?;
            let end = frame::HEAD.saturating_add(length);
            if let Some(body) = buffer.get(frame::HEAD..end) {
                let message = serde_json::from_slice(body).map_err(|error| {
                    // The parser's message may repeat a value of the screen.
                    io::Error::other(format!("not a frame (column {})", error.column()))
                })?;
                buffer.drain(..end);
                return Ok(message);
            }
        }
        if from.read_buf(buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn h58_a_frame_cut_at_any_byte_arrives_whole_and_in_order() {
        let mut bytes = frame::encode(&FromKeeper::Ack { id: 1 }).unwrap();
        bytes.extend(frame::encode(&FromKeeper::Gap { from: 2, to: 3 }).unwrap());
        for cut in 0..bytes.len() {
            let (start, rest) = bytes.split_at(cut);
            let mut from = start.chain(rest);
            let mut buffer = Vec::new();
            let one: FromKeeper = next(&mut from, &mut buffer).await.unwrap();
            let two: FromKeeper = next(&mut from, &mut buffer).await.unwrap();
            assert_eq!((one, two), (FromKeeper::Ack { id: 1 }, FromKeeper::Gap { from: 2, to: 3 }));
            assert!(next::<FromKeeper>(&mut from, &mut buffer).await.is_err());
        }
    }

    #[tokio::test]
    async fn f69_an_excessive_length_ends_the_connection_before_the_bytes_are_read() {
        let mut from: &[u8] = &[0x7f, 0xff, 0xff, 0xff, b'{'];
        let error = next::<FromKeeper>(&mut from, &mut Vec::new()).await.unwrap_err();
        assert!(error.to_string().contains("longer than allowed"), "{error}");
    }
}
