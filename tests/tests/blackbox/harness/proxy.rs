//! A proxy of the tests, sound or with one fault.

use rcgen::{CertificateParams, KeyPair};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// What a proxy does to what passes it.
#[derive(Debug, Clone, Default)]
pub struct Proxy {
    /// Lines that a request gets, in place of its own of that name.
    pub sets: Vec<(&'static str, &'static str)>,
    /// Headers that a request loses.
    pub drops: Vec<&'static str>,
    /// Headers that an answer loses.
    pub hides: Vec<&'static str>,
    /// A prefix that is taken off the path.
    pub strips: &'static str,
    /// The first answer of a path is given to everybody who asks for it.
    pub caches: bool,
    /// Even one that sets a cookie.
    pub keeps_cookies: bool,
}

impl Proxy {
    /// Serves until the test ends.
    pub async fn begin(self, port: u16) -> SocketAddr {
        self.listen(port, None).await
    }

    /// The same over TLS, with a certificate for these days and this name.
    pub async fn secure(self, port: u16, name: &str, days_left: i64) -> SocketAddr {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let now = time::OffsetDateTime::now_utc();
        params.not_before = now - time::Duration::days(400);
        params.not_after = now + time::Duration::days(days_left);
        let key = KeyPair::generate().unwrap();
        let cert = params.self_signed(&key).unwrap().der().clone();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder().with_no_client_auth();
        let config = config.with_single_cert(vec![cert], key).unwrap();
        self.listen(port, Some(TlsAcceptor::from(Arc::new(config)))).await
    }

    async fn listen(self, port: u16, tls: Option<TlsAcceptor>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let kept = Arc::new(tokio::sync::Mutex::new(Vec::<(String, Vec<u8>)>::new()));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (proxy, kept, tls) = (self.clone(), Arc::clone(&kept), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => proxy.pass(client, port, &kept).await,
                        Some(tls) => proxy.pass(tls.accept(client).await.ok()?, port, &kept).await,
                    }
                });
            }
        });
        address
    }

    async fn pass<S: AsyncRead + AsyncWrite + Unpin>(
        self,
        mut client: S,
        port: u16,
        kept: &tokio::sync::Mutex<Vec<(String, Vec<u8>)>>,
    ) -> Option<()> {
        let head = head(&mut client).await?;
        let mut lines = head.lines();
        let first = lines.next()?.replacen(&format!(" {}/", self.strips), " /", 1);
        if self.caches
            && let Some((_, answer)) = kept.lock().await.iter().find(|(key, _)| *key == first)
        {
            client.write_all(answer).await.ok()?;
            return client.shutdown().await.ok();
        }
        let is_gone = |line: &str| {
            let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
            let is_set = self.sets.iter().any(|(set, _)| *set == name);
            line.is_empty() || is_set || self.drops.contains(&name.as_str())
        };
        let mut onward = format!("{first}\r\n");
        for line in lines.filter(|line| !is_gone(line)) {
            onward.push_str(&format!("{line}\r\n"));
        }
        for (name, value) in self.sets.iter().filter(|(_, value)| !value.is_empty()) {
            onward.push_str(&format!("{name}: {value}\r\n"));
        }
        onward.push_str("\r\n");
        let mut service = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
        service.write_all(onward.as_bytes()).await.ok()?;
        let mut answer = head_of(&mut service, &self.hides).await?;
        let mut body = vec![0; length(&answer)];
        service.read_exact(&mut body).await.ok()?;
        answer.extend(body);
        let sets_cookie = String::from_utf8_lossy(&answer).contains("\nset-cookie:");
        if self.caches && (self.keeps_cookies || !sets_cookie) {
            kept.lock().await.push((first, answer.clone()));
        }
        client.write_all(&answer).await.ok()?;
        client.shutdown().await.ok()
    }
}

/// Everything up to the empty line.
async fn head<S: AsyncRead + Unpin>(stream: &mut S) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(head).ok()
}

async fn head_of(service: &mut TcpStream, hides: &[&str]) -> Option<Vec<u8>> {
    let head = head(service).await?;
    let is_hidden = |line: &str| {
        let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
        hides.contains(&name.as_str())
    };
    let mut kept = String::new();
    for line in head.lines().filter(|line| !line.is_empty() && !is_hidden(line)) {
        kept.push_str(&format!("{line}\r\n"));
    }
    kept.push_str("\r\n");
    Some(kept.into_bytes())
}

fn length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let line = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}
