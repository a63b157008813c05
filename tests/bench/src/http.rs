//! A connection that asks one thing after the other and reads whole answers.

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

const HEADERS: usize = 64;

pub struct Connection {
    stream: TcpStream,
    port: u16,
    /// Sent with every request, each line ended.
    pub headers: String,
    buffer: Vec<u8>,
}

/// A whole answer.
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

/// What the head of an answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub status: u16,
    /// Bytes of the head.
    pub length: usize,
    /// Bytes of the body; unknown when it comes in chunks.
    pub body: Option<usize>,
}

/// The head at the beginning of `bytes`, if it is whole.
pub fn head(bytes: &[u8]) -> Result<Option<Head>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(length) = response.parse(bytes)? else { return Ok(None) };
    let status = response.code.context("an answer without a status")?;
    let named = |name: &str| response.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name));
    let body = match named("content-length") {
        Some(header) => Some(std::str::from_utf8(header.value)?.trim().parse()?),
        None if status == 304 || status == 204 => Some(0),
        None if named("transfer-encoding").is_some_and(|h| h.value == b"chunked") => None,
        None => bail!("an answer of unknown length"),
    };
    Ok(Some(Head { status, length, body }))
}

impl Connection {
    pub fn open(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Self { stream, port, headers: String::new(), buffer: Vec::new() })
    }

    pub fn get(&mut self, path: &str) -> Result<Reply> {
        self.send("GET", path, None)
    }

    pub fn post(&mut self, path: &str, body: &Value) -> Result<Reply> {
        self.send("POST", path, Some(body))
    }

    pub fn send(&mut self, method: &str, path: &str, body: Option<&Value>) -> Result<Reply> {
        let request = request(method, path, self.port, &self.headers, body);
        self.stream.write_all(&request)?;
        let what = || format!("no answer to {method} {path}");
        let mut chunk = [0; 64 * 1024];
        let head = loop {
            if let Some(head) = head(&self.buffer)? {
                break head;
            }
            let read = self.stream.read(&mut chunk).with_context(what)?;
            ensure!(read > 0, "{}", what());
            self.buffer.extend_from_slice(chunk.get(..read).unwrap_or_default());
        };
        let mut rest = self.buffer.split_off(head.length);
        let text = String::from_utf8_lossy(&self.buffer).into_owned();
        let (body, used) = loop {
            let whole = match head.body {
                Some(length) => rest.get(..length).map(|body| (body.to_vec(), length)),
                None => chunks(&rest)?,
            };
            if let Some(whole) = whole {
                break whole;
            }
            let read = self.stream.read(&mut chunk).with_context(what)?;
            ensure!(read > 0, "{}", what());
            rest.extend_from_slice(chunk.get(..read).unwrap_or_default());
        };
        self.buffer = rest.split_off(used);
        Ok(Reply { status: head.status, head: text, body })
    }
}

/// A body in chunks and the bytes it took, if it is whole.
fn chunks(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let size = httparse::parse_chunk_size(rest).map_err(|_| anyhow::anyhow!("a bad chunk"))?;
        let httparse::Status::Complete((head, size)) = size else { return Ok(None) };
        let (start, size) = (at + head, usize::try_from(size)?);
        // Behind each chunk, the last one too, stands an empty line: nothing here sends trailers.
        let Some(chunk) = bytes.get(start..start + size + 2) else { return Ok(None) };
        body.extend_from_slice(chunk.get(..size).unwrap_or_default());
        at = start + size + 2;
        if size == 0 {
            return Ok(Some((body, at)));
        }
    }
}

/// The bytes of a request.
pub fn request(
    method: &str,
    path: &str,
    port: u16,
    headers: &str,
    body: Option<&Value>,
) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{headers}");
    let body = body.map(Value::to_string);
    if let Some(body) = &body {
        let _ =
            write!(text, "Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    }
    text.push_str("\r\n");
    text.push_str(body.as_deref().unwrap_or_default());
    text.into_bytes()
}

/// A member that is a text; empty when it is not there.
pub fn word<'v>(record: &'v Value, name: &str) -> &'v str {
    record.get(name).and_then(Value::as_str).unwrap_or_default()
}

impl Reply {
    /// The same, when it has this status.
    pub fn expect(self, status: u16) -> Result<Self> {
        let words = || String::from_utf8_lossy(&self.body).chars().take(400).collect::<String>();
        ensure!(self.status == status, "{} instead of {status}: {}", self.status, words());
        Ok(self)
    }

    pub fn json(&self) -> Result<Value> {
        Ok(serde_json::from_slice(&self.body)?)
    }

    /// The first value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_when_they_are_whole() {
        let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nx: y\r\n\r\nhello";
        assert_eq!(head(&bytes[..20]).unwrap(), None);
        let length = bytes.len() - 5;
        assert_eq!(head(bytes).unwrap(), Some(Head { status: 200, length, body: Some(5) }));
        assert!(head(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert_eq!(chunks(b"3\r\nabc\r\n0\r\n").unwrap(), None);
        let whole = chunks(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nnext").unwrap();
        assert_eq!(whole, Some((b"abcde".to_vec(), 20)));
        assert!(head(b"nonsense\r\n\r\n").is_err());
    }
}
