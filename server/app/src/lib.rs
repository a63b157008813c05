//! Use-cases, supervisor and read model.

pub mod error;
pub mod read_model;

pub use error::{AppError, Class};
