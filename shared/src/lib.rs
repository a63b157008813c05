//! Wire types, ids and route paths: what server, page and tests agree on.
//!
//! Everything here compiles for wasm32 and natively. JSON on the wire is written and read by
//! serde alone; the feature `openapi` adds schemas for the generated document and nothing else.

pub mod api;
pub mod cause;
pub mod characters;
pub mod error;
pub mod events;
pub mod ids;
pub mod internal;
pub mod paths;
pub mod status;
pub mod stream;
pub mod terminal;
pub mod text;
pub mod time;
mod word;

pub use time::Timestamp;
pub use word::Word;
