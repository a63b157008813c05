//! A receiver of webhooks and notifications.

use super::canary::{self, Audience};
use super::within;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// What a receiver does with a post that it has read.
#[derive(Debug, Clone)]
pub enum Answer {
    /// Answers this text, a whole HTTP response.
    Says(String),
    /// Answers nothing until [`Receiver::release`] is called.
    Holds,
    /// Begins an answer and never ends it.
    Stalls,
    /// Answers without end.
    Floods,
}

impl Answer {
    /// A status without a body.
    pub fn status(line: &str) -> Self {
        Self::Says(format!("HTTP/1.1 {line}\r\nContent-Length: 0\r\n\r\n"))
    }

    /// A status with a JSON body.
    pub fn json(line: &str, body: &Value) -> Self {
        let body = body.to_string();
        let length = body.len();
        Self::Says(format!("HTTP/1.1 {line}\r\nContent-Length: {length}\r\n\r\n{body}"))
    }
}

/// A post as it came in.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub method: String,
    pub path: String,
    /// By name in lower case.
    pub headers: BTreeMap<String, String>,
    /// As text, where it is one.
    pub body: String,
    pub bytes: Vec<u8>,
}

impl Delivery {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("a JSON body")
    }

    /// The name of the event.
    pub fn event(&self) -> &str {
        self.header("x-svc-event")
    }
}

/// It listens on this machine while the test lasts.
pub struct Receiver {
    pub port: u16,
    got: Arc<Mutex<Vec<Delivery>>>,
    count: watch::Receiver<usize>,
    /// Connections whose answer was written or given up by the other side.
    done: watch::Receiver<usize>,
    release: watch::Sender<bool>,
    answer: Arc<Mutex<Answer>>,
}

impl Receiver {
    /// Answers 204 to everything.
    pub async fn start() -> Self {
        Self::that(Answer::status("204 No Content")).await
    }

    pub async fn that(answer: Answer) -> Self {
        Self::listening(answer, None).await
    }

    /// The same over TLS.
    pub async fn secure(answer: Answer, tls: TlsAcceptor) -> Self {
        Self::listening(answer, Some(tls)).await
    }

    async fn listening(answer: Answer, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let got: Arc<Mutex<Vec<Delivery>>> = Arc::default();
        let (counts, count) = watch::channel(0);
        let (ends, done) = watch::channel(0);
        let (release, released) = watch::channel(false);
        let into = Arc::clone(&got);
        let answer = Arc::new(Mutex::new(answer));
        let answers = Arc::clone(&answer);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (into, counts, ends) = (Arc::clone(&into), counts.clone(), ends.clone());
                let (answers, mut released) = (Arc::clone(&answers), released.clone());
                let tls = tls.clone();
                tokio::spawn(async move {
                    let Some(mut stream) = opened(stream, tls).await else { return };
                    let Some(post) = read(&mut *stream).await else { return };
                    canary::check("a webhook", Audience::Reader, &post.body);
                    canary::check("its headers", Audience::Reader, &format!("{:?}", post.headers));
                    into.lock().expect("nobody panics with it").push(post);
                    counts.send_modify(|count| *count += 1);
                    let answer = answers.lock().expect("nobody panics with it").clone();
                    give(&mut *stream, &answer, &mut released).await;
                    ends.send_modify(|count| *count += 1);
                });
            }
        });
        Self { port, got, count, done, release, answer }
    }

    /// The address of a path here.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    /// Answers differently from the next post on.
    pub fn answers(&self, answer: Answer) {
        *self.answer.lock().expect("nobody panics with it") = answer;
    }

    /// Lets held posts be answered.
    pub fn release(&self) {
        self.release.send_replace(true);
    }

    pub fn posts(&self) -> Vec<Delivery> {
        self.got.lock().expect("nobody panics with it").clone()
    }

    /// The names of the events so far.
    pub fn events(&self) -> Vec<String> {
        self.posts().iter().map(|post| post.event().to_owned()).collect()
    }

    /// Waits until so many posts came.
    pub async fn until(&self, many: usize) -> Vec<Delivery> {
        let mut count = self.count.clone();
        let waited = count.wait_for(|count| *count >= many);
        drop(within(&format!("{many} posts"), waited).await.expect("it listens"));
        self.posts()
    }

    /// Waits for a post of this event.
    pub async fn until_event(&self, event: &str) -> Delivery {
        let mut count = self.count.clone();
        within(&format!("a post of {event}"), async {
            loop {
                count.mark_unchanged();
                if let Some(post) = self.posts().into_iter().find(|post| post.event() == event) {
                    return post;
                }
                count.changed().await.expect("it listens");
            }
        })
        .await
    }

    /// Waits until so many connections are over.
    pub async fn until_done(&self, many: usize) {
        let mut done = self.done.clone();
        drop(within("the end of a connection", done.wait_for(|done| *done >= many)).await);
    }
}

/// A connection, with TLS or without.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

async fn opened(stream: TcpStream, tls: Option<TlsAcceptor>) -> Option<Box<dyn Stream>> {
    match tls {
        None => Some(Box::new(stream)),
        // Who does not trust the certificate goes away.
        Some(tls) => Some(Box::new(tls.accept(stream).await.ok()?)),
    }
}

async fn give(stream: &mut dyn Stream, answer: &Answer, released: &mut watch::Receiver<bool>) {
    // Who posts may go away at any time.
    match answer {
        Answer::Says(text) => drop(stream.write_all(text.as_bytes()).await),
        Answer::Holds => {
            drop(released.wait_for(|is_open| *is_open).await);
            drop(stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await);
        }
        Answer::Stalls => {
            let begun = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx";
            drop(stream.write_all(begun).await);
            let mut byte = [0];
            drop(stream.read(&mut byte).await); // until the other side gives up
        }
        Answer::Floods => {
            let head = b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n";
            let mut wrote = stream.write_all(head).await;
            while wrote.is_ok() {
                wrote = stream.write_all(&[b'x'; 16 * 1024]).await;
            }
        }
    }
}

async fn read(stream: &mut dyn Stream) -> Option<Delivery> {
    let mut raw = Vec::new();
    let end = loop {
        if let Some(at) = raw.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut raw).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(raw[..end].to_vec()).expect("a head of text");
    let mut lines = head.split("\r\n");
    let first = lines.next().expect("a request line");
    let (method, rest) = first.split_once(' ').expect("a method");
    let path = rest.split(' ').next().expect("a path");
    let headers: BTreeMap<String, String> = lines
        .map(|line| line.split_once(": ").expect("a header"))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length = headers.get("content-length").map_or("0", String::as_str);
    let length: usize = length.parse().expect("a length");
    let mut body = raw.split_off(end + 4);
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    let (bytes, body) = (body.clone(), String::from_utf8_lossy(&body).into_owned());
    Some(Delivery { method: method.to_owned(), path: path.to_owned(), headers, body, bytes })
}
