//! Bridges: starting, ending and finding them, and what a start needs.

pub(crate) mod circumstances;
pub(crate) mod ends;
pub(crate) mod family;
mod forget;
pub(crate) mod launch;
pub(crate) mod lookup;
pub(crate) mod options;
mod preflight;
pub(crate) mod readiness;
mod rename;
mod resume;
mod spawn;
pub(crate) mod stop;
pub(crate) mod strays;
pub(crate) mod terminator;
pub(crate) mod transition;
pub(crate) mod unmanaged;
mod wrong_end;
