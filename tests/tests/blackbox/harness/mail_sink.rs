//! A mail server that keeps what it is handed.

use super::canary::{self, Audience};
use super::within;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufStream};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// A message, and what was said around it.
#[derive(Debug, Clone, Default)]
pub struct Handed {
    /// The commands, one a line.
    pub said: Vec<String>,
    /// Headers and body.
    pub content: String,
}

/// It listens on this machine while the test lasts.
pub struct MailSink {
    pub port: u16,
    got: Arc<Mutex<Vec<Handed>>>,
    count: watch::Receiver<usize>,
}

impl MailSink {
    /// Takes everything; with TLS from the first byte where there is an acceptor.
    pub async fn start(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let got: Arc<Mutex<Vec<Handed>>> = Arc::default();
        let (counts, count) = watch::channel(0);
        let into = Arc::clone(&got);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (into, counts, tls) = (Arc::clone(&into), counts.clone(), tls.clone());
                tokio::spawn(async move {
                    let handed = match tls {
                        None => serve(stream).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => serve(stream).await,
                            Err(_) => None,
                        },
                    };
                    let Some(handed) = handed else { return };
                    canary::check("a mail", Audience::Reader, &handed.content);
                    into.lock().expect("nobody panics with it").push(handed);
                    counts.send_modify(|count| *count += 1);
                });
            }
        });
        Self { port, got, count }
    }

    /// Waits until so many messages came.
    pub async fn until(&self, many: usize) -> Vec<Handed> {
        let mut count = self.count.clone();
        let waited = count.wait_for(|count| *count >= many);
        drop(within(&format!("{many} mails"), waited).await.expect("it listens"));
        self.got.lock().expect("nobody panics with it").clone()
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin) -> Option<Handed> {
    let mut stream = BufStream::new(stream);
    let mut handed = Handed::default();
    answer(&mut stream, "220 sink").await?;
    loop {
        let line = line(&mut stream).await?;
        let word = line.split(' ').next().unwrap_or_default().to_uppercase();
        handed.said.push(line);
        match word.as_str() {
            "EHLO" => answer(&mut stream, "250-sink\r\n250 AUTH PLAIN LOGIN").await?,
            "AUTH" => answer(&mut stream, "235 2.7.0 fine").await?,
            "DATA" => {
                answer(&mut stream, "354 go on").await?;
                loop {
                    let line = self::line(&mut stream).await?;
                    if line == "." {
                        break;
                    }
                    handed.content.push_str(&line);
                    handed.content.push('\n');
                }
                answer(&mut stream, "250 2.0.0 taken").await?;
                return Some(handed);
            }
            _ => answer(&mut stream, "250 2.0.0 fine").await?,
        }
    }
}

async fn line<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut BufStream<S>) -> Option<String> {
    let mut line = String::new();
    let read = stream.read_line(&mut line).await.ok()?;
    (read > 0).then(|| line.trim_end().to_owned())
}

async fn answer<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut BufStream<S>,
    text: &str,
) -> Option<()> {
    stream.write_all(format!("{text}\r\n").as_bytes()).await.ok()?;
    stream.flush().await.ok()
}
