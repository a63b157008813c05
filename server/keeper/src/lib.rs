//! The keeper: one process that holds the terminal of one interactive session.
//!
//! The keeper outlives the service. It owns the pseudo-terminal, draws the agent's output on a grid
//! of cells, and serves the grid over a private socket. This package has both ends: the process
//! itself and the client that the service uses. What a session may do next is decided elsewhere.

pub mod client;
pub mod held;
pub mod message;
pub mod screen;
pub mod sidecar;

mod emulator;
mod frame;
mod run;

pub use run::run;
