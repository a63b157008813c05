//! The accept loop: counts connections, limits them per peer, ends them (H76, H79).
//!
//! The framework's own server has no deadline for request heads and no cap on connections, so the
//! loop is ours; requests and replies are the framework's. HTTP/1.1 only, over TLS too: a second
//! protocol would need every limit a second time.

mod framing;
mod options;
mod socket;
mod wire;

use crate::layers::headers;
use futures_util::task::AtomicWaker;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
pub use options::ServeOptions;
use poem::http::uri::Scheme;
use poem::http::{HeaderValue, StatusCode, header};
use poem::web::{LocalAddr, RemoteAddr};
use socket::Socket;
use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::task::Waker;
use std::time::Duration;
use svc_domain::peer;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_rustls::rustls::ServerConfig;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use wire::Wire;

/// `EMFILE` and `ENFILE` on Linux and macOS: no descriptor is left.
const OUT_OF_DESCRIPTORS: [i32; 2] = [24, 23];
/// Idle connections dropped at once to get descriptors back.
const SHED: usize = 16;
/// A client that speaks no TLS, or slowly, is dropped after this (H13).
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Pause of the loop when no descriptor is left.
const BACK_OFF: Duration = Duration::from_millis(50);
/// Sent when a connection is taken only to be turned away.
static NO_ROOM: LazyLock<String> = LazyLock::new(|| {
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 1\r\n\
         connection: close\r\n{}\r\n",
        headers::constant()
    )
});

/// Time for one more request on an open connection before a restart.
///
/// A client that asks again and again would otherwise ask just when its connection is closed, and
/// cannot tell whether that request was carried out.
const LINGER: Duration = Duration::from_secs(1);

/// What ends a listener and its connections.
#[derive(Debug, Clone)]
pub(crate) struct Closing {
    /// No more connections are taken.
    /// Each one there is has its last request answered, and is told.
    pub(crate) leaving: CancellationToken,
    /// Connections without a request under way end at once.
    pub(crate) over: CancellationToken,
}

/// Answers the requests of a listener: the service, or the setup page before it.
pub(crate) trait Answers: Clone + Send + Sync + 'static {
    /// Answers one request; refusals and defects are replies too.
    fn answer(&self, request: poem::Request) -> impl Future<Output = poem::Response> + Send;
    /// Waits until what outlives its request has ended.
    fn ended(&self) -> impl Future<Output = ()> + Send;
}

/// Deadlines of one connection.
#[derive(Debug, Clone, Copy)]
struct Deadlines {
    head: Duration,
    idle: Duration,
    stall: Duration,
}

/// What request, connection and loop know of one another.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionFacts {
    pub(crate) peer: IpAddr,
    /// Everybody with whom the peer counts together.
    network: IpAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    opened: Instant,
    requests: AtomicUsize,
    answered: AtomicU64,
    on_answer: AtomicWaker,
    is_upgraded: AtomicBool,
    /// Somebody whom we know asked for something here.
    is_known: AtomicBool,
    /// A body of somebody whom we do not know is awaited.
    awaits_stranger: AtomicBool,
    /// Milliseconds after `opened` at which the last request ended.
    last_used: AtomicU64,
    drop_now: CancellationToken,
    /// Cancelled when the socket that came out of this connection is gone.
    socket_over: CancellationToken,
}

impl ConnectionFacts {
    fn new(peer: IpAddr) -> Self {
        let shared = Shared {
            opened: Instant::now(),
            requests: AtomicUsize::new(0),
            answered: AtomicU64::new(0),
            on_answer: AtomicWaker::new(),
            is_upgraded: AtomicBool::new(false),
            is_known: AtomicBool::new(false),
            awaits_stranger: AtomicBool::new(false),
            last_used: AtomicU64::new(0),
            drop_now: CancellationToken::new(),
            socket_over: CancellationToken::new(),
        };
        Self { peer: peer.to_canonical(), network: peer::network(peer), shared: Arc::new(shared) }
    }

    /// Marks a connection whose protocol changes with the reply to this request.
    ///
    /// It keeps its place until the returned guard is dropped.
    pub(crate) fn upgraded(&self) -> DropGuard {
        self.shared.is_upgraded.store(true, Ordering::Release);
        self.shared.socket_over.clone().drop_guard()
    }

    fn is_upgraded(&self) -> bool {
        self.shared.is_upgraded.load(Ordering::Acquire)
    }

    /// Somebody whom we know asks here.
    /// The connection is kept longer than those of strangers.
    pub(crate) fn known(&self) {
        self.shared.is_known.store(true, Ordering::Release);
    }

    /// A stranger's body is awaited until the returned value is dropped.
    ///
    /// Until then the connection is the first to go when there are too many.
    pub(crate) fn await_stranger(&self) -> Awaited {
        self.shared.awaits_stranger.store(true, Ordering::Release);
        Awaited(self.clone())
    }

    /// A request is under way.
    fn is_busy(&self) -> bool {
        self.shared.requests.load(Ordering::Acquire) > 0
    }

    /// Requests that were answered.
    fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::Acquire)
    }

    fn wake_when_answered(&self, waker: &Waker) {
        self.shared.on_answer.register(waker);
    }

    /// When it was last used, if nothing uses it now.
    fn idle_since(&self) -> Option<Instant> {
        let is_idle = !self.is_busy() && !self.is_upgraded();
        let used = Duration::from_millis(self.shared.last_used.load(Ordering::Acquire));
        is_idle.then(|| self.shared.opened + used)
    }

    fn begin(&self) -> Flight {
        self.shared.requests.fetch_add(1, Ordering::AcqRel);
        Flight(self.clone())
    }
}

/// A request under way.
struct Flight(ConnectionFacts);

impl Drop for Flight {
    fn drop(&mut self) {
        let shared = &self.0.shared;
        let used = u64::try_from(shared.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        shared.last_used.store(used, Ordering::Release);
        shared.answered.fetch_add(1, Ordering::AcqRel);
        shared.requests.fetch_sub(1, Ordering::AcqRel);
        shared.on_answer.wake();
    }
}

/// A body of somebody whom we do not know is awaited.
pub(crate) struct Awaited(ConnectionFacts);

impl Drop for Awaited {
    fn drop(&mut self) {
        self.0.shared.awaits_stranger.store(false, Ordering::Release);
    }
}

/// Open connections.
#[derive(Debug, Default)]
struct Connections {
    open: Mutex<HashMap<u64, ConnectionFacts>>,
}

impl Connections {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, ConnectionFacts>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for one more, or says that there is none.
    fn admit(&self, id: u64, facts: &ConnectionFacts, options: &ServeOptions) -> bool {
        let mut open = self.lock();
        if !facts.network.is_loopback() {
            let is_same = |other: &ConnectionFacts| other.network == facts.network;
            let of_peer = open.values().filter(|other| is_same(other)).count();
            if of_peer >= options.max_per_peer && drop_awaiting(&mut open, is_same) == 0 {
                return false;
            }
        }
        if open.len() >= options.max_connections
            && drop_awaiting(&mut open, |_| true) == 0
            && drop_idle(&mut open, 1) == 0
        {
            return false;
        }
        open.insert(id, facts.clone());
        true
    }

    /// Drops some connections that nobody uses; whether there was one.
    fn shed(&self) -> bool {
        let mut open = self.lock();
        let awaiting = (0..SHED).map(|_| drop_awaiting(&mut open, |_| true)).sum::<usize>();
        awaiting + drop_idle(&mut open, SHED.saturating_sub(awaiting)) > 0
    }
}

/// Drops the oldest connection that awaits a stranger's body.
/// Returns how many were dropped.
fn drop_awaiting(
    open: &mut HashMap<u64, ConnectionFacts>,
    is_meant: impl Fn(&ConnectionFacts) -> bool,
) -> usize {
    let awaiting = open.iter().filter(|(_, facts)| {
        facts.shared.awaits_stranger.load(Ordering::Acquire) && is_meant(facts)
    });
    let oldest = awaiting.min_by_key(|(_, facts)| facts.shared.opened).map(|(id, _)| *id);
    close(open, oldest)
}

/// Drops up to `most` idle connections, and returns how many.
///
/// Those of strangers first, then the oldest first.
fn drop_idle(open: &mut HashMap<u64, ConnectionFacts>, most: usize) -> usize {
    let is_known = |facts: &ConnectionFacts| facts.shared.is_known.load(Ordering::Acquire);
    let mut idle: Vec<(bool, Instant, u64)> = open
        .iter()
        .filter_map(|(id, facts)| Some((is_known(facts), facts.idle_since()?, *id)))
        .collect();
    idle.sort_unstable();
    close(open, idle.into_iter().take(most).map(|(_, _, id)| id))
}

fn close(open: &mut HashMap<u64, ConnectionFacts>, ids: impl IntoIterator<Item = u64>) -> usize {
    let closed = ids.into_iter().filter_map(|id| open.remove(&id));
    closed.map(|facts| facts.shared.drop_now.cancel()).count()
}

/// Serves until it is told to leave, then waits for requests under way.
///
/// Then it says goodbye to the sockets.
///
/// # Errors
/// Only when the listener has no address.
pub(crate) async fn run(
    listener: TcpListener,
    service: impl Answers,
    closing: Closing,
    options: ServeOptions,
    tls: Option<Arc<ServerConfig>>,
) -> io::Result<()> {
    let local = listener.local_addr()?;
    let connections = Arc::new(Connections::default());
    let tasks = TaskTracker::new();
    let mut spare = Spare::new();
    let mut next_id = 0_u64;
    loop {
        let accepted = tokio::select! {
            () = closing.leaving.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let (socket, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                if error.raw_os_error().is_some_and(|code| OUT_OF_DESCRIPTORS.contains(&code)) {
                    // Who waits first may be somebody whom we know: as long as others can make
                    // room, nobody who waits is turned away.
                    if !connections.shed() {
                        spare.turn_one_away(&listener).await;
                    }
                    tokio::time::sleep(BACK_OFF).await;
                }
                // Every other error is that of one connection, gone before it was taken.
                continue;
            }
        };
        let facts = ConnectionFacts::new(peer.ip());
        next_id += 1;
        let id = next_id;
        if !connections.admit(id, &facts, &options) {
            // In clear text it would only confuse a client that speaks TLS.
            if tls.is_none() {
                turn_away(socket);
            }
            continue;
        }
        let connection = Connection { socket, tls: tls.clone(), local, peer, facts };
        let (service, closing, connections) =
            (service.clone(), closing.clone(), Arc::clone(&connections));
        tasks.spawn(async move {
            connection.serve(service, closing, options).await;
            connections.lock().remove(&id);
        });
    }
    drop(listener);
    tasks.close();
    let ended = async {
        tasks.wait().await;
        service.ended().await;
    };
    if tokio::time::timeout(options.grace, ended).await.is_err() {
        tracing::warn!("some connections did not end in time and were cut");
    }
    Ok(())
}

struct Connection {
    socket: TcpStream,
    tls: Option<Arc<ServerConfig>>,
    local: SocketAddr,
    peer: SocketAddr,
    facts: ConnectionFacts,
}

impl Connection {
    async fn serve(self, service: impl Answers, closing: Closing, options: ServeOptions) {
        let Self { socket, tls, local, peer, facts } = self;
        // Replies are small and complete: waiting to fill a packet only delays them.
        let _ = socket.set_nodelay(true);
        let shared = Arc::clone(&facts.shared);
        let scheme = if tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP };
        let socket = match tls {
            None => Socket::Plain(socket),
            // Until it is over the connection counts as idle: it makes room when there is none.
            Some(config) => tokio::select! {
                shaken = tokio::time::timeout(HANDSHAKE, Socket::secure(socket, config)) => {
                    // An error is the peer's: it spoke no TLS, or left.
                    let Ok(Ok(socket)) = shaken else { return };
                    socket
                }
                () = shared.drop_now.cancelled() => return,
                () = closing.over.cancelled() => return,
            },
        };
        let service = service_fn({
            let (facts, leaving) = (facts.clone(), closing.leaving.clone());
            move |request: hyper::Request<Incoming>| {
                let (service, facts, scheme) = (service.clone(), facts.clone(), scheme.clone());
                let leaving = leaving.clone();
                async move {
                    let _flight = facts.begin();
                    let mut request = poem::Request::from((
                        request,
                        LocalAddr(local.into()),
                        RemoteAddr(peer.into()),
                        scheme,
                    ));
                    request.set_data(facts);
                    let mut response = service.answer(request).await;
                    if leaving.is_cancelled()
                        && response.status() != StatusCode::SWITCHING_PROTOCOLS
                    {
                        let close = HeaderValue::from_static("close");
                        response.headers_mut().insert(header::CONNECTION, close);
                    }
                    Ok::<_, Infallible>(hyper::Response::from(response))
                }
            }
        });
        let deadlines = Deadlines { head: options.head, idle: options.idle, stall: options.stall };
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            // Heads arrive here complete: their deadline is the wire's.
            .header_read_timeout(None)
            .max_headers(512)
            .max_buf_size(64 * 1024)
            .serve_connection(TokioIo::new(Wire::new(socket, facts, deadlines)), service)
            .with_upgrades();
        let mut connection = pin!(connection);
        let last_request = async {
            closing.leaving.cancelled().await;
            tokio::select! {
                () = tokio::time::sleep(LINGER) => {}
                () = closing.over.cancelled() => {}
            }
        };
        tokio::select! {
            // An error is the peer's: it left, or what it sent was no request.
            _ = connection.as_mut() => {
                if shared.is_upgraded.load(Ordering::Acquire) {
                    shared.socket_over.cancelled().await;
                }
                return;
            }
            () = shared.drop_now.cancelled() => return,
            () = last_request => connection.as_mut().graceful_shutdown(),
        }
        // Bounded by the grace period of the loop.
        let _ = connection.await;
    }
}

/// One descriptor kept for the moment when there is none.
struct Spare(Option<std::fs::File>);

impl Spare {
    fn new() -> Self {
        // A device, not a file on a disk: opening it does not block.
        Self(std::fs::File::open("/dev/null").ok())
    }

    /// Accepts one waiting connection, answers 503 and closes it.
    ///
    /// Otherwise it would wait for ever,
    /// and the loop would be woken for it again and again.
    async fn turn_one_away(&mut self, listener: &TcpListener) {
        self.0 = None;
        let waiting = tokio::time::timeout(Duration::ZERO, listener.accept()).await;
        if let Ok(Ok((socket, _))) = waiting {
            turn_away(socket);
        }
        *self = Self::new();
    }
}

fn turn_away(socket: TcpStream) {
    // The runtime does not know yet that a new socket can be written, so it would not try.
    let Ok(mut socket) = socket.into_std() else { return };
    // The send buffer of a new socket is empty. If the answer does not fit, the socket just closes.
    let _ = socket.write(NO_ROOM.as_bytes());
    let _ = socket.shutdown(Shutdown::Write);
    // A socket that is closed with unread bytes is reset, and the answer may be lost with it.
    let _ = socket.read(&mut [0; 16 * 1024]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(peer: [u8; 4]) -> ConnectionFacts {
        ConnectionFacts::new(peer.into())
    }

    fn options(max_connections: usize, max_per_peer: usize) -> ServeOptions {
        ServeOptions { max_connections, max_per_peer, ..ServeOptions::default() }
    }

    #[test]
    fn one_peer_cannot_take_every_place_but_loopback_may() {
        let (connections, options) = (Connections::default(), options(100, 2));
        let far = facts([10, 0, 0, 1]);
        assert!(connections.admit(1, &far, &options));
        assert!(connections.admit(2, &far, &options));
        assert!(!connections.admit(3, &far, &options));
        assert!(connections.admit(4, &facts([10, 0, 0, 2]), &options));
        for id in 10..20 {
            assert!(connections.admit(id, &facts([127, 0, 0, 1]), &options));
        }
    }

    #[test]
    fn an_address_counts_the_same_in_both_notations() {
        let mapped: IpAddr = "::ffff:10.0.0.1".parse().unwrap();
        assert_eq!(ConnectionFacts::new(mapped).peer, facts([10, 0, 0, 1]).peer);
    }

    #[test]
    fn h76_strangers_make_room_before_those_whom_we_know() {
        let (connections, options) = (Connections::default(), options(4, 256));
        let local = || facts([127, 0, 0, 1]);
        let (known, stranger, waiting, newer) = (local(), local(), local(), local());
        known.known();
        let flights = [waiting.begin(), newer.begin()];
        let awaited = waiting.await_stranger();
        let later = newer.await_stranger();
        for (id, facts) in [(1, &known), (2, &waiting), (3, &newer), (4, &stranger)] {
            assert!(connections.admit(id, facts, &options));
        }
        let gone = |facts: &ConnectionFacts| facts.shared.drop_now.is_cancelled();
        assert!(connections.admit(5, &local(), &options));
        assert!(gone(&waiting) && !gone(&newer) && !gone(&stranger) && !gone(&known));
        // Its body is complete now: the request is answered to its end.
        drop((awaited, later));
        assert!(connections.admit(6, &local(), &options));
        assert!(!gone(&newer) && gone(&stranger) && !gone(&known));
        drop(flights);
    }

    #[test]
    fn h76_a_peer_at_its_limit_makes_room_by_its_own_awaited_bodies() {
        let (connections, options) = (Connections::default(), options(100, 2));
        let six = |text: &str| ConnectionFacts::new(text.parse().unwrap());
        let (one, two) = (six("2001:db8::1"), six("2001:db8::2"));
        assert!(connections.admit(1, &one, &options) && connections.admit(2, &two, &options));
        assert!(!connections.admit(3, &six("2001:db8::3"), &options), "one network");
        assert!(connections.admit(4, &six("2001:db8:0:1::1"), &options), "another one");
        let _awaited = two.await_stranger();
        assert!(connections.admit(5, &six("2001:db8::4"), &options));
        assert!(two.shared.drop_now.is_cancelled());
        for mapped in ["::ffff:10.0.0.1", "2002:a00:1::1"] {
            assert!(connections.admit(10, &six(mapped), &options));
        }
        assert!(connections.admit(11, &facts([10, 0, 0, 1]), &options), "it replaced number 10");
        assert!(!connections.admit(12, &facts([10, 0, 0, 1]), &options));
    }

    #[tokio::test]
    async fn h79_who_is_turned_away_reads_why() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(b"GET /api/state HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        turn_away(listener.accept().await.unwrap().0);
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, *NO_ROOM);
    }

    #[test]
    fn h79_nobody_is_turned_away_while_somebody_can_make_room() {
        let (connections, options) = (Connections::default(), options(100, 256));
        let (busy, idle) = (facts([127, 0, 0, 1]), facts([127, 0, 0, 1]));
        let _flight = busy.begin();
        assert!(connections.admit(1, &busy, &options) && connections.admit(2, &idle, &options));
        assert!(connections.shed() && idle.shared.drop_now.is_cancelled());
        assert!(!connections.shed() && !busy.shared.drop_now.is_cancelled());
    }

    #[test]
    fn when_full_the_oldest_idle_connection_makes_room_and_a_busy_one_does_not() {
        let (connections, options) = (Connections::default(), options(2, 256));
        let busy = facts([127, 0, 0, 1]);
        let flight = busy.begin();
        let idle = facts([127, 0, 0, 1]);
        assert!(connections.admit(1, &busy, &options));
        assert!(connections.admit(2, &idle, &options));
        assert!(connections.admit(3, &facts([127, 0, 0, 1]), &options));
        assert!(idle.shared.drop_now.is_cancelled());
        assert!(!busy.shared.drop_now.is_cancelled());
        let _socket = connections.lock().get(&3).unwrap().upgraded();
        assert!(!connections.admit(4, &facts([127, 0, 0, 1]), &options));
        drop(flight);
        assert!(connections.admit(5, &facts([127, 0, 0, 1]), &options));
    }
}
