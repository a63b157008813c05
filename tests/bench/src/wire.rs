//! A connection to the service, plain or encrypted.

use anyhow::{Context as _, Result};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The name in the certificate.
pub const NAME: &str = "localhost";

pub enum Wire {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Wire {
    /// Connects, and greets where it is encrypted.
    pub fn open(port: u16, tls: Option<&Arc<ClientConfig>>) -> Result<Self> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let Some(config) = tls else { return Ok(Self::Plain(stream)) };
        let mut greeting = ClientConnection::new(Arc::clone(config), ServerName::try_from(NAME)?)?;
        while greeting.is_handshaking() {
            greeting.complete_io(&mut stream)?;
        }
        Ok(Self::Tls(Box::new(StreamOwned::new(greeting, stream))))
    }

    pub fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => &stream.sock,
        }
    }

    /// Whether the greeting took up an earlier one.
    pub fn is_resumed(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.conn.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }
}

impl Read for Wire {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(into),
            Self::Tls(stream) => stream.read(into),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

/// Clients that trust this certificate and nothing else.
pub fn trusting(certificate: &Path) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_file(certificate)
        .map_err(|error| anyhow::anyhow!("{}: {error}", certificate.display()))?;
    roots.add(certificate).context("the certificate of the service")?;
    Ok(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
}
