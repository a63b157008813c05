//! The pass of `svc doctor --probe`: proves access to the secret of this service.
//!
//! It opens one route, which says what arrived of a request, for a minute. It is no credential.

use crate::auth::ticket::{Keys, Purpose, Ticket};
use crate::auth::{Auth, Claim};
use svc_domain::credentials;
use svc_shared::Timestamp;

/// The header that carries the pass.
pub const PROBE_HEADER: &str = "x-svc-probe";
/// How long a pass is good, milliseconds.
const GOOD_FOR: i64 = 60_000;

/// A new pass, and the number of the request that it is for.
///
/// # Errors
/// The system has no randomness.
pub fn probe_pass(secret: &[u8], now: Timestamp) -> Result<(String, String), std::io::Error> {
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(std::io::Error::other)?;
    let ticket = Ticket { issued: now.as_millis(), epoch: 0, id, fingerprint: [0; 8] };
    let pass = Keys::from_secret(secret)
        .seal(Purpose::Probe, &ticket)
        .ok_or_else(|| std::io::Error::other("the pass cannot be signed"))?;
    Ok((pass, hex::encode(id)))
}

impl Auth {
    /// The number of a request that carries a valid pass.
    #[must_use]
    pub fn probe(&self, claim: &Claim<'_>) -> Option<String> {
        let raw = credentials::single((claim.header)(PROBE_HEADER))?;
        let ticket = self.keys.as_ref()?.open(Purpose::Probe, raw)?;
        let is_current = ticket.is_current(self.now().as_millis(), GOOD_FOR);
        is_current.then(|| hex::encode(ticket.id))
    }

    /// Whether the connection comes from a proxy of `auth.reverse_proxy.trusted_ips`.
    #[must_use]
    pub fn trusts_peer(&self, claim: &Claim<'_>) -> bool {
        self.proxy.trusts(claim.peer)
    }

    /// A cookie like that of a session, which means nothing and ends at once.
    #[must_use]
    pub fn sample_cookie(&self, is_https: bool) -> String {
        self.set_cookie("svc_probe", "", 0, is_https)
    }
}
