//! The HTTP service: accept loop, guards, routes, sockets and the page.
//!
//! Parses requests, calls one use-case each, and maps what comes back. What is allowed is decided
//! in the domain and in the use-cases; the codes of refusals become statuses in `error` only.

mod accept;
mod body;
mod call;
mod context;
mod credential;
mod digest;
mod docs;
mod error;
mod exposition;
mod idempotency;
mod internal;
mod layers;
mod log_limit;
mod openapi;
mod plain;
mod public;
mod reply;
mod request_context;
mod routes;
mod routing;
mod service;
mod setup;
mod sign_in;
mod single_flight;
mod spa;
mod target;
mod ws;

pub use accept::ServeOptions;
pub use layers::body::BodyKind;
pub use openapi::{Facts, description};
pub use routes::table;
pub use routing::{Guard, Route, RouteKind};
pub use service::HttpService;
pub use setup::serve_setup;
pub use spa::has_page;

use std::io;
use std::sync::Arc;
use svc_app::App;
use tokio::net::TcpListener;
use tokio_rustls::rustls::ServerConfig;

/// Serves `app` on a listener that is bound already, until the service shuts down.
///
/// With `tls` every connection is encrypted, and plain HTTP is answered by its end.
/// Requests under way then have [`ServeOptions::grace`] to end; sockets are told to come back.
///
/// # Errors
/// Only when the listener has no address; trouble with single connections ends those.
pub async fn serve(
    listener: TcpListener,
    app: App,
    options: ServeOptions,
    tls: Option<Arc<ServerConfig>>,
) -> io::Result<()> {
    let port = listener.local_addr()?.port();
    let closing = accept::Closing {
        leaving: app.service_restart().leaving().clone(),
        over: app.shutdown().clone(),
    };
    accept::run(listener, HttpService::new(app, port, &options), closing, options, tls).await
}
