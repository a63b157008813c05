//! The lifecycle of bridges with several writers, modelled for a complete search.
//!
//! The model runs the real rules of `svc-domain` ([`record`]). It models the order of the steps
//! around them in `server/app`: lock, write the intent, act, record ([`program`]). A server with
//! its reconciler and watchers, two commands and the launched processes take their steps in every
//! order, and each of our processes may die between any two of them ([`model`]).
//!
//! `docs/architecture.md` says what is in the model and what is not. It is never part of the
//! product.
#![expect(
    clippy::indexing_slicing,
    clippy::expect_used,
    reason = "places are fixed numbers: a panic is how a fault of the model shows"
)]

pub mod model;
pub mod mutation;
pub mod plan;
mod program;
pub mod questions;
pub mod record;
pub mod search;
pub mod world;

pub use model::{Action, Bounds, Lifecycle};
pub use mutation::Mutation;
pub use search::{Outcome, search};
pub use world::{Budget, Start, World};
