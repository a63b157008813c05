//! The credential that a request was admitted with.

use std::net::IpAddr;
use std::sync::Arc;
use svc_app::auth::{Auth, Identity};

/// A valid credential, kept beside the request that it admitted.
///
/// It may be revoked while the request is served.
#[derive(Clone)]
pub(crate) struct ActiveCredential {
    auth: Arc<Auth>,
    identity: Identity,
}

impl ActiveCredential {
    /// Records that the credential was used.
    pub(crate) fn used(auth: &Arc<Auth>, identity: Identity, source: IpAddr) -> Self {
        auth.used(&identity, source);
        Self { auth: Arc::clone(auth), identity }
    }

    /// Waits until the credential is revoked or expires. Cancel-safe.
    pub(crate) async fn ended(&self) {
        self.auth.ended(&self.identity).await;
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }
}
