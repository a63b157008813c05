//! The Model Context Protocol server on standard input and output.
//!
//! The protocol is that of the official SDK, `rmcp`. What stands in front of it is small: lines
//! that are no whole valid message are answered here (`judge.rs`), because the SDK drops some and
//! ends the connection for others. The tools call the use-cases that commands and requests call.

mod calls;
mod connection;
mod judge;
mod line;
mod resources;
mod service;
mod summary;
mod tools;
mod transport;

use crate::connection::Connection;
use crate::service::Sessions;
use crate::transport::SdkTransport;
use async_trait::async_trait;
use rmcp::service::serve_directly_with_ct;
use std::sync::Arc;
use std::time::Duration;
use svc_app::App;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How long calls under way may take after the end of the input.
/// H137: the process has ended two seconds after the end of its client.
const GRACE: Duration = Duration::from_millis(1500);

/// Whole messages that wait for the SDK.
/// When it is full, reading waits.
const WAITING: usize = 16;

/// What the use-cases are opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Only to look: nothing is written.
    Look,
    /// To change something.
    Act,
    /// To end something, which has to work on a full disk too (H91).
    End,
}

/// Opens the use-cases for one call, as a command does.
///
/// Each call sees projects and records as they are at that moment, whether a service runs or not.
#[async_trait]
pub trait OpenApp: Send + Sync + 'static {
    /// The use-cases, to be closed by the caller.
    ///
    /// # Errors
    /// They cannot be opened; the text is for the caller.
    async fn open(&self, purpose: Purpose) -> Result<App, String>;
}

/// What is served.
pub struct Options {
    /// Opens the use-cases.
    pub open: Box<dyn OpenApp>,
    /// Version of the program.
    pub version: &'static str,
    /// Offers the tools that write.
    pub allow_writes: bool,
}

/// Serves until the input ends or the output is closed.
pub async fn serve<R, W>(options: Options, input: R, output: W)
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let connection = Arc::new(Connection::new(output));
    let (whole, messages) = mpsc::channel(WAITING);
    let transport = SdkTransport::new(Arc::clone(&connection), messages);
    let end = CancellationToken::new();
    let running = serve_directly_with_ct(Sessions::new(options), transport, None, end.clone());
    tokio::select! {
        () = connection.read(input, &whole) => {
            // Who pipes requests in and closes still gets the answers that come soon.
            let _ = tokio::time::timeout(GRACE, connection.settled()).await;
        }
        () = connection.gone() => {}
    }
    end.cancel();
    drop(running);
}
