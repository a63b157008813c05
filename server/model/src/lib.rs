//! The lifecycle of bridges with several writers, as a model whose states are searched through.
//!
//! The model runs the real rules of `svc-domain` ([`record`]); what it models is the order of the
//! steps around them in `server/app`: lock, write the intent, act, record ([`program`]). A server
//! with its reconciler and watchers, two commands and the launched processes take their steps in
//! every order, and each of ours may die between any two of them ([`model`]).
//!
//! What is in it and what is not is told in `docs/architecture.md`. It is never in the product.
#![expect(
    clippy::indexing_slicing,
    clippy::expect_used,
    reason = "places are fixed numbers: a panic is how a fault of the model shows"
)]

pub mod model;
pub mod mutation;
pub mod plan;
mod program;
pub mod record;
pub mod search;
pub mod world;

pub use model::{Action, Bounds, Lifecycle};
pub use mutation::Mutation;
pub use search::{Outcome, search};
pub use world::{Budget, Start, World};
