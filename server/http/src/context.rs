//! What handlers share.

use crate::idempotency::Idempotency;
use crate::internal::rate::LinkRate;
use crate::single_flight::SingleFlight;
use crate::ws::Sockets;
use bytes::Bytes;
use std::sync::{Arc, OnceLock};
use svc_app::App;
use svc_domain::root_path::RootPath;

/// What handlers share.
pub(crate) struct Context {
    pub(crate) app: App,
    pub(crate) root: RootPath,
    pub(crate) sockets: Sockets,
    pub(crate) idempotency: Arc<Idempotency>,
    pub(crate) flights: SingleFlight,
    pub(crate) links: LinkRate,
    /// The API description, made on first use.
    pub(crate) description: OnceLock<Bytes>,
}
