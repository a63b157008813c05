//! The `Host` rule on a request (`http-api` §5.8); the domain decides.

use crate::error::Refusal;
use crate::log_limit::LogLimit;
use poem::Request;
use poem::http::{Version, header};
use svc_domain::host::{self, AllowedHosts, Asked, HostVerdict, Proof, Protocol};
use svc_domain::log_escape;

/// The rule, and which refusals were logged lately.
#[derive(Debug)]
pub(crate) struct HostRule {
    allowed: AllowedHosts,
    logged: LogLimit<String>,
}

impl HostRule {
    pub(crate) fn new(allowed: AllowedHosts) -> Self {
        Self { allowed, logged: LogLimit::default() }
    }

    /// Whether the request was meant for this server.
    ///
    /// # Errors
    /// 400 for a malformed host.
    pub(crate) fn judge(
        &self,
        request: &Request,
        proof: Proof,
        asked: Asked,
    ) -> Result<HostVerdict, Refusal> {
        let protocol = match request.version() {
            Version::HTTP_09 | Version::HTTP_10 => Protocol::Http10,
            Version::HTTP_2 => Protocol::Http2,
            _ => Protocol::Http11,
        };
        let values = request.headers().get_all(header::HOST).iter().map(|value| value.as_bytes());
        let target = request.uri().authority().map(poem::http::uri::Authority::as_str);
        let authority = host::authority(protocol, values, target)
            .map_err(|error| Refusal::malformed(error.to_string()).closing())?;
        let verdict = host::decide(&self.allowed, authority.as_ref(), proof, asked);
        if verdict == HostVerdict::Misdirected {
            self.log(request.header(header::HOST).unwrap_or_default());
        }
        Ok(verdict)
    }

    fn log(&self, host: &str) {
        if !self.logged.allows(host.to_owned()) {
            return;
        }
        let host = log_escape::escape(host);
        tracing::warn!(
            host = %host,
            "refused a request for the host `{host}`; to serve that name, list it in \
             `auth.allowed_hosts`"
        );
    }
}
