//! The only way out for git while it clones over https.
//!
//! Git is told to use it as its proxy. It connects to the addresses that were checked and to nothing
//! else, whatever git asks for (H46), and it counts what comes in, so that the limit of a clone holds
//! to the byte while it is transferred (H51). TLS stays between git and the server.

use super::route::Route;
use crate::AppError;
use crate::tasks::Tasks;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Connections of one clone at the same time. Git uses one or two.
const CONNECTIONS: usize = 8;
/// Longest head of a request.
const HEAD: usize = 8 * 1024;
/// Longest time for a head.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Bytes that are passed on at once.
const CHUNK: usize = 32 * 1024;
/// Pause when no descriptor is left (H79).
const BACK_OFF: Duration = Duration::from_millis(100);

/// A forwarder at work. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Forwarder {
    pub port: u16,
    /// Cancelled when more came in than is allowed.
    pub over: CancellationToken,
    _end: DropGuard,
}

/// What the connections share.
struct Rule {
    /// `host:port` as git must ask for it.
    target: String,
    route: Route,
    left: AtomicU64,
    over: CancellationToken,
}

impl Forwarder {
    /// Listens on a free port of the loopback address.
    ///
    /// `most` counts bytes that come in.
    pub async fn start(
        tasks: &Tasks,
        target: String,
        route: Route,
        most: u64,
    ) -> Result<Self, AppError> {
        let busy = |error: io::Error| {
            AppError::busy("no port of the loopback address is free; try again").because(error)
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(busy)?;
        let port = listener.local_addr().map_err(busy)?.port();
        let (end, over) = (CancellationToken::new(), CancellationToken::new());
        let rule = Arc::new(Rule { target, route, left: AtomicU64::new(most), over: over.clone() });
        let ended = end.clone();
        tasks.spawn(async move {
            let serve = serve(listener, rule);
            ended.run_until_cancelled(serve).await;
        });
        Ok(Self { port, over, _end: end.drop_guard() })
    }
}

/// Dropped at the end, with all connections.
async fn serve(listener: TcpListener, rule: Arc<Rule>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < CONNECTIONS => {
                let Ok((client, _)) = accepted else {
                    tokio::time::sleep(BACK_OFF).await;
                    continue;
                };
                let rule = Arc::clone(&rule);
                connections.spawn(async move {
                    if let Err(error) = rule.forward(client).await {
                        tracing::debug!(error = %error, "a connection of a clone ended");
                    }
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

impl Rule {
    async fn forward(&self, mut client: TcpStream) -> io::Result<()> {
        let asked = tokio::time::timeout(HEAD_TIME, asked(&mut client)).await??;
        if !asked.eq_ignore_ascii_case(&self.target) {
            return client.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n").await;
        }
        let Ok((server, _)) = self.route.connect().await else {
            return client
                .write_all(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
                .await;
        };
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let up = async {
            let (mut from, mut to) = (from_client, to_server);
            tokio::io::copy(&mut from, &mut to).await?;
            to.shutdown().await
        };
        let (_, done) = tokio::join!(up, self.down(from_server, to_client));
        done
    }

    async fn down(
        &self,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
    ) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = from.read(&mut chunk).await?;
            if read == 0 {
                return to.shutdown().await;
            }
            let bytes = u64::try_from(read).unwrap_or(u64::MAX);
            let take = |left: u64| left.checked_sub(bytes);
            if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
                self.over.cancel();
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
            to.write_all(chunk.get(..read).unwrap_or_default()).await?;
        }
    }
}

/// Reads `CONNECT host:port HTTP/1.1` with its headers.
///
/// Returns what it asks for, or nothing.
async fn asked(client: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
        // Byte by byte: what follows the head is not ours to read.
        head.push(client.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head);
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let target = words.next().filter(|verb| *verb == "CONNECT").and_then(|_| words.next());
    Ok(target.unwrap_or_default().to_owned())
}
