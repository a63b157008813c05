//! What happens to a request before and after its handler, one subject each.
//!
//! Their order is in [`crate::service`].

pub(crate) mod access;
pub(crate) mod body;
pub(crate) mod compress;
pub(crate) mod guard;
pub(crate) mod headers;
pub(crate) mod host;
pub(crate) mod limits;
pub(crate) mod request_id;
