//! Sockets: handshake, inbound limits, and one loop for every stream (H57–H61).
//!
//! See `http-api` §4.1. What is sent is decided by a [`Source`].

pub(crate) mod bridge_log;
pub(crate) mod changes;
pub(crate) mod clone_progress;
pub(crate) mod conversation;
pub(crate) mod events;
mod frames;
mod handshake;
pub(crate) mod hosted;
mod meter;
pub(crate) mod pty_screen;

use crate::accept::ConnectionFacts;
use crate::credential::ActiveCredential;
use crate::error::Refusal;
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use meter::{Metered, Reset};
use poem::{Request, Response};
use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use svc_app::restart::Restart;
use svc_shared::error::ErrorCode;
use svc_shared::stream::close;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use tokio_util::task::TaskTracker;

/// Largest inbound message, bytes.
const MESSAGE: usize = 16 * 1024;
/// Most inbound messages, pings included, in one second.
const MESSAGES_PER_SECOND: u32 = 100;
/// A ping is sent this often.
const PING: Duration = Duration::from_secs(20);
/// Unanswered pings before the socket is closed: a half-open socket ends in 60 s.
const MISSED: u32 = 2;
/// A peer that accepts nothing for this long is given up.
const STALL: Duration = Duration::from_secs(30);
/// Most bytes that one write sends: a write costs more than most frames.
///
/// A peer that takes less than this in [`STALL`] is given up.
const BATCH: usize = 16 * 1024;
/// A peer has this long to answer a close.
const FAREWELL: Duration = Duration::from_secs(1);

/// Not in the shared list: the reply of the protocol to what is too long.
const TOO_BIG: u16 = 1009;
const PROTOCOL: u16 = 1002;
const NOT_TEXT: u16 = 1007;

/// What a stream sends next.
#[derive(Debug)]
pub(crate) enum Out {
    Frame(Bytes),
    Close(u16, Cow<'static, str>),
}

/// Decides what one socket sends.
pub(crate) trait Source: Send {
    /// Waits for the next thing to send. Must be cancel-safe.
    fn next(&mut self) -> impl Future<Output = Out> + Send;
    /// Takes a message of the client; unknown ones are ignored.
    fn receive(&mut self, text: &str);
}

/// Opens sockets and knows how many there are.
pub(crate) struct Sockets {
    places: Arc<Semaphore>,
    tasks: TaskTracker,
    restart: Arc<Restart>,
}

impl Sockets {
    pub(crate) fn new(most: usize, restart: Arc<Restart>) -> Self {
        Self { places: Arc::new(Semaphore::new(most)), tasks: TaskTracker::new(), restart }
    }

    /// Waits until every socket has said goodbye.
    pub(crate) async fn closed(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Answers a handshake and serves the socket on a task of its own.
    ///
    /// # Errors
    /// What is wrong with the handshake, or 503 when there are too many sockets.
    pub(crate) fn open<S: Source + 'static>(
        &self,
        request: &Request,
        source: S,
    ) -> Result<Response, Refusal> {
        let accept = handshake::check(request)?;
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return Err(handshake::too_many());
        };
        let upgrade = request.take_upgrade().map_err(|_| handshake::not_upgradable())?;
        let connection = request.data::<ConnectionFacts>().map(ConnectionFacts::upgraded);
        let stop = Stop {
            restart: Arc::clone(&self.restart),
            credential: request.data::<ActiveCredential>().cloned(),
        };
        self.tasks.spawn(async move {
            let _connection = connection;
            let Ok(Ok(io)) = tokio::time::timeout(STALL, upgrade).await else {
                return;
            };
            let config = WebSocketConfig::default()
                .max_message_size(Some(MESSAGE))
                .max_frame_size(Some(MESSAGE))
                .read_buffer_size(4096);
            let (io, meter) = Metered::new(io);
            let stream = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
            Socket::new(stream, meter, place).serve(source, stop).await;
        });
        Ok(handshake::switch(&accept))
    }
}

type Stream = WebSocketStream<Metered<poem::Upgraded>>;

struct Socket {
    sink: SplitSink<Stream, Message>,
    stream: SplitStream<Stream>,
    inbound: Inbound,
    ping: Interval,
    _place: OwnedSemaphorePermit,
}

/// What came in lately.
struct Inbound {
    meter: Reset,
    second: Instant,
    messages: u32,
    unanswered: u32,
}

/// What ends a socket from our side.
struct Stop {
    restart: Arc<Restart>,
    credential: Option<ActiveCredential>,
}

impl Stop {
    /// Waits until the service or the credential of the socket ends. Cancel-safe.
    async fn asked(&self) -> End {
        let ended = async {
            match &self.credential {
                Some(credential) => credential.ended().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.restart.leaving().cancelled() => {
                let code = match self.restart.has_begun() {
                    true => close::RESTART,
                    false => close::GOING_AWAY,
                };
                End::Close(code, ErrorCode::ShuttingDown.as_str().into())
            }
            () = ended => {
                End::Close(close::SIGNED_OUT, ErrorCode::AuthRequired.as_str().into())
            }
        }
    }
}

/// Why a socket ends.
enum End {
    /// The peer is gone or has said goodbye.
    Gone,
    /// We say goodbye first.
    Close(u16, Cow<'static, str>),
}

impl Socket {
    fn new(stream: Stream, meter: Reset, place: OwnedSemaphorePermit) -> Self {
        let (sink, stream) = stream.split();
        let mut ping = tokio::time::interval_at(Instant::now() + PING, PING);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let inbound = Inbound { meter, second: Instant::now(), messages: 0, unanswered: 0 };
        Self { sink, stream, inbound, ping, _place: place }
    }

    async fn serve<S: Source>(mut self, mut source: S, stop: Stop) {
        let end = loop {
            if let Err(end) = self.step(&mut source, &stop).await {
                break end;
            }
        };
        if let End::Close(code, reason) = end {
            self.farewell(code, reason).await;
        }
    }

    async fn step<S: Source>(&mut self, source: &mut S, stop: &Stop) -> Result<(), End> {
        tokio::select! {
            biased;
            end = stop.asked() => Err(end),
            message = self.stream.next() => self.inbound.take(message, source),
            _ = self.ping.tick() => {
                self.inbound.ping()?;
                self.send(vec![Message::Ping(Bytes::new())], source, stop).await
            }
            out = source.next() => {
                let (batch, end) = gather(out, source);
                self.send(batch, source, stop).await?;
                end.map_or(Ok(()), Err)
            }
        }
    }

    /// Sends while listening: a peer that leaves in the middle is noticed.
    async fn send<S: Source>(
        &mut self,
        batch: Vec<Message>,
        source: &mut S,
        stop: &Stop,
    ) -> Result<(), End> {
        let sink = &mut self.sink;
        let sending = tokio::time::timeout(STALL, async move {
            for message in batch {
                sink.feed(message).await?;
            }
            sink.flush().await
        });
        let mut sending = std::pin::pin!(sending);
        loop {
            tokio::select! {
                sent = &mut sending => {
                    return match sent {
                        Ok(Ok(())) => Ok(()),
                        Ok(Err(_)) => Err(End::Gone),
                        Err(_) => Err(End::Close(close::SLOW, "slow_consumer".into())),
                    };
                }
                message = self.stream.next() => self.inbound.take(message, source)?,
                end = stop.asked() => return Err(end),
            }
        }
    }

    /// Says why, and gives the peer a moment to take it in.
    async fn farewell(mut self, code: u16, reason: Cow<'static, str>) {
        let frame = CloseFrame { code: CloseCode::from(code), reason: reason.as_ref().into() };
        let goodbye = async {
            if self.sink.send(Message::Close(Some(frame))).await.is_ok() {
                while let Some(Ok(_)) = self.stream.next().await {}
            }
        };
        // A peer that does not answer is dropped with the socket.
        let _ = tokio::time::timeout(FAREWELL, goodbye).await;
    }
}

/// A first frame, the frames that are ready with it, and a close that follows.
fn gather<S: Source>(first: Out, source: &mut S) -> (Vec<Message>, Option<End>) {
    let (mut batch, mut bytes, mut next) = (Vec::new(), 0, Some(first));
    while let Some(out) = next {
        let text = match out {
            Out::Close(code, reason) => return (batch, Some(End::Close(code, reason))),
            Out::Frame(frame) => Utf8Bytes::try_from(frame),
        };
        let Ok(text) = text else {
            let reason = ErrorCode::Internal.as_str().into();
            return (batch, Some(End::Close(close::INTERNAL, reason)));
        };
        bytes += text.len();
        batch.push(Message::Text(text));
        // What is not there yet is not waited for; nothing is lost by asking.
        next = if bytes < BATCH { source.next().now_or_never() } else { None };
    }
    (batch, None)
}

impl Inbound {
    fn take<S: Source>(
        &mut self,
        message: Option<Result<Message, Error>>,
        source: &mut S,
    ) -> Result<(), End> {
        let message = match message {
            None => return Err(End::Gone),
            Some(Err(error)) => return Err(refuse(&error)),
            Some(Ok(message)) => message,
        };
        self.meter.message_arrived();
        self.unanswered = 0;
        self.count()?;
        match message {
            Message::Text(text) => source.receive(text.as_str()),
            Message::Binary(_) => {
                return Err(End::Close(close::UNSUPPORTED, "text_expected".into()));
            }
            Message::Close(_) => return Err(End::Gone),
            // The library has answered the ping already.
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
        }
        Ok(())
    }

    fn count(&mut self) -> Result<(), End> {
        if self.second.elapsed() >= Duration::from_secs(1) {
            self.second = Instant::now();
            self.messages = 0;
        }
        self.messages += 1;
        if self.messages > MESSAGES_PER_SECOND {
            return Err(End::Close(close::POLICY, "too_many_messages".into()));
        }
        Ok(())
    }

    fn ping(&mut self) -> Result<(), End> {
        if self.unanswered >= MISSED {
            return Err(End::Gone);
        }
        self.unanswered += 1;
        Ok(())
    }
}

fn refuse(error: &Error) -> End {
    match error {
        Error::Capacity(_) => End::Close(TOO_BIG, ErrorCode::TooLarge.as_str().into()),
        Error::Utf8(_) => End::Close(NOT_TEXT, "not_utf8".into()),
        Error::Protocol(_) => End::Close(PROTOCOL, "protocol_error".into()),
        _ => End::Gone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says what it has, then nothing.
    struct Said(Vec<Out>);

    impl Source for Said {
        async fn next(&mut self) -> Out {
            if self.0.is_empty() {
                std::future::pending::<()>().await;
            }
            self.0.remove(0)
        }

        fn receive(&mut self, _text: &str) {}
    }

    fn frame(text: &str) -> Out {
        Out::Frame(Bytes::copy_from_slice(text.as_bytes()))
    }

    fn texts(batch: Vec<Message>) -> Vec<String> {
        batch.iter().map(|message| message.to_text().unwrap().to_owned()).collect()
    }

    #[test]
    fn what_is_ready_goes_together_and_in_order() {
        let mut source = Said(vec![frame("two"), frame("three")]);
        let (batch, end) = gather(frame("one"), &mut source);
        assert_eq!(texts(batch), ["one", "two", "three"]);
        assert!(end.is_none());
    }

    #[test]
    fn a_close_comes_after_the_frames_before_it() {
        let close = Out::Close(close::UNKNOWN, "gone".into());
        let mut source = Said(vec![close, frame("never")]);
        let (batch, end) = gather(frame("last"), &mut source);
        assert_eq!(texts(batch), ["last"]);
        assert!(matches!(end, Some(End::Close(close::UNKNOWN, _))));
    }

    #[test]
    fn a_flood_is_sent_in_parts() {
        let mut source = Said((0..100).map(|_| frame(&"x".repeat(1024))).collect());
        let (batch, end) = gather(frame("first"), &mut source);
        assert!(batch.len() <= BATCH / 1024 + 2 && end.is_none());
        assert_eq!(source.0.len(), 101 - batch.len());
    }
}
