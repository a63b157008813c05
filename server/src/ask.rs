//! One request over a connection of its own, plain or encrypted.

use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{HeaderMap, Method, Request, StatusCode, Uri, header};
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use std::time::Duration;
use svc_tls::{Seen, recording_client};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

/// For one request; twelve of them stay below half a minute.
const PATIENCE: Duration = Duration::from_secs(4);
/// An answer that is looked into has a few kilobytes.
const ANSWER_CAP: usize = 64 * 1024;

/// A service as clients reach it.
pub(crate) struct Target {
    pub(crate) is_https: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Host and port as they are written.
    pub(crate) authority: String,
    /// The path of the address, without a slash at its end.
    pub(crate) path: String,
    client: Arc<ClientConfig>,
    pub(crate) seen: Seen,
}

/// What a request says.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    /// Below the path of the address.
    pub(crate) path: &'static str,
    pub(crate) headers: Vec<(String, String)>,
}

/// What was answered.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// The word of a refusal of ours.
    pub(crate) fn code(&self) -> Option<String> {
        let body: serde_json::Value = serde_json::from_slice(&self.body).ok()?;
        Some(body.get("code")?.as_str()?.to_owned())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

impl Target {
    /// Reads an address such as `https://svc.example.org/tools/svc/`.
    ///
    /// # Errors
    /// It is none; the words say why.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let bad = |why: &str| format!("`{url}` {why}; give one such as https://svc.example.org/");
        let uri: Uri = url.parse().map_err(|_| bad("is no address"))?;
        let is_https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(bad("begins with neither https:// nor http://")),
        };
        let authority = uri.authority().ok_or_else(|| bad("names no host"))?;
        if authority.as_str().contains('@') {
            return Err(bad("carries a user name"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = authority.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        let (client, seen) = recording_client().map_err(|error| error.to_string())?;
        Ok(Self {
            is_https,
            host,
            port,
            authority: authority.as_str().to_owned(),
            path: uri.path().trim_end_matches('/').to_owned(),
            client,
            seen,
        })
    }

    /// The origin that a browser sends for this address.
    pub(crate) fn origin(&self) -> String {
        let scheme = if self.is_https { "https" } else { "http" };
        format!("{scheme}://{}", self.authority.to_ascii_lowercase())
    }

    /// Whether only this machine is meant.
    pub(crate) fn is_local(&self) -> bool {
        let address = self.host.parse::<std::net::IpAddr>();
        self.host == "localhost"
            || self.host.ends_with(".localhost")
            || address.is_ok_and(|address| address.is_loopback())
    }

    /// Sends one request and reads the answer.
    ///
    /// # Errors
    /// Nothing was answered in time; the words say how far it came.
    pub(crate) async fn ask(&self, ask: &Ask) -> Result<Answer, String> {
        match tokio::time::timeout(PATIENCE, self.exchange(ask)).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("{} did not answer within {PATIENCE:?}", self.authority)),
        }
    }

    async fn exchange(&self, ask: &Ask) -> Result<Answer, String> {
        let stream = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .map_err(|error| format!("{}:{} cannot be reached: {error}", self.host, self.port))?;
        if !self.is_https {
            return self.over(stream, ask).await;
        }
        let name = ServerName::try_from(self.host.clone())
            .map_err(|_| format!("`{}` is no name for a certificate", self.host))?;
        let stream = TlsConnector::from(Arc::clone(&self.client))
            .connect(name, stream)
            .await
            .map_err(|error| format!("{} speaks no TLS: {error}", self.authority))?;
        self.over(stream, ask).await
    }

    async fn over<S>(&self, stream: S, ask: &Ask) -> Result<Answer, String>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let broken = |error: hyper::Error| format!("{}: {error}", self.authority);
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let mut request = Request::builder()
            .method(ask.method.clone())
            .uri(format!("{}{}", self.path, ask.path))
            .header(header::HOST, &self.authority);
        if !ask.headers.iter().any(|(name, _)| name == "connection") {
            request = request.header(header::CONNECTION, "close");
        }
        for (name, value) in &ask.headers {
            request = request.header(name, value);
        }
        let request = request
            .body(Empty::<Bytes>::new())
            .map_err(|error| format!("the request cannot be sent: {error}"))?;
        let exchange = async {
            let response = sender.send_request(request).await.map_err(broken)?;
            let (parts, body) = response.into_parts();
            // After a change of protocol no body comes.
            let body = match parts.status {
                StatusCode::SWITCHING_PROTOCOLS => Bytes::new(),
                _ => Limited::new(body, ANSWER_CAP)
                    .collect()
                    .await
                    .map(http_body_util::Collected::to_bytes)
                    .unwrap_or_default(),
            };
            Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body })
        };
        // The connection is driven until the exchange is over; its own end tells nothing more.
        let connection = connection.with_upgrades();
        let (exchange, connection) = (std::pin::pin!(exchange), std::pin::pin!(connection));
        match futures_util::future::select(exchange, connection).await {
            futures_util::future::Either::Left((answer, _)) => answer,
            futures_util::future::Either::Right((_, exchange)) => exchange.await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_a_browser_reads_it() {
        let target = Target::parse("https://Svc.example.org:8443/tools/svc/").unwrap();
        assert_eq!(target.origin(), "https://svc.example.org:8443");
        assert_eq!((target.port, target.path.as_str()), (8443, "/tools/svc"));
        assert!(!target.is_local());
        assert!(Target::parse("http://[::1]:7621/").unwrap().is_local());
        assert_eq!(Target::parse("https://a").unwrap().port, 443);
        for bad in ["", "svc.example.org", "ftp://x/", "https://me:pw@x/", "https://"] {
            assert!(Target::parse(bad).is_err(), "{bad}");
        }
    }
}
