//! The service over real sockets: guards, framing, routes, sockets, page.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a helper that cannot go on fails its test"
)]

#[path = "door/app.rs"]
mod app;
#[path = "door/client.rs"]
mod client;
#[path = "door/coverage.rs"]
mod coverage;
#[path = "door/document.rs"]
mod document;
#[path = "door/guards.rs"]
mod guards;
#[path = "door/harness.rs"]
mod harness;
#[path = "door/matrix.rs"]
mod matrix;
#[path = "door/page.rs"]
mod page;
#[path = "door/protection.rs"]
mod protection;
#[path = "door/proxy.rs"]
mod proxy;
#[path = "door/public.rs"]
mod public;
#[path = "door/reading.rs"]
mod reading;
#[path = "door/scopes.rs"]
mod scopes;
#[path = "door/setup.rs"]
mod setup;
#[path = "door/sign_in.rs"]
mod sign_in;
#[path = "door/sockets.rs"]
mod sockets;
#[path = "door/wire.rs"]
mod wire;
