//! The daemon that owns the processes of Direct Sessions, and the client of it.
//!
//! A Direct Session is an agent on pipes. Whoever holds the pipes must outlive the service, so a
//! process of its own does: `svc-hosted`. This package is both ends of its protocol: [`daemon`]
//! holds the processes, [`client`] talks to it, [`start`] starts it. What is done with a session is
//! decided by the service.

pub mod client;
pub mod daemon;
pub mod lines;
pub mod protocol;
pub mod start;
pub mod token;
