//! The Model Context Protocol server on standard input and output.
//!
//! The protocol is that of the official SDK, `rmcp`. What stands in front of it is small: lines
//! that are no whole valid message are answered here (`judge.rs`), because the SDK drops some and
//! ends the connection for others. The tools call the use-cases that commands and requests call.

mod calls;
mod connection;
mod judge;
mod line;
mod options;
mod resources;
mod service;
mod summary;
mod tools;
mod transport;

pub use crate::options::{OpenApp, Options, Purpose};

use crate::connection::Connection;
use crate::service::Sessions;
use crate::transport::SdkTransport;
use rmcp::service::serve_directly_with_ct;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How long calls under way may take after the end of the input.
/// H137: the process has ended two seconds after the end of its client.
const GRACE: Duration = Duration::from_millis(1500);

/// Whole messages that wait for the SDK.
/// When it is full, reading waits.
const WAITING: usize = 16;

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
