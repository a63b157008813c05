//! A client that sends exactly what a test says and hides nothing of the reply.

use serde_json::Value;
use std::net::SocketAddr;

/// One request.
#[derive(Debug, Clone)]
pub struct Sent {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The test writes the header that says where the body ends.
    pub is_unframed: bool,
}

impl Sent {
    pub fn new(method: &str, path: &str) -> Self {
        Self {
            method: method.into(),
            path: path.into(),
            headers: Vec::new(),
            body: Vec::new(),
            is_unframed: false,
        }
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        self.body("application/json", body.to_string().as_bytes())
    }

    #[must_use]
    pub fn body(mut self, content_type: &str, body: &[u8]) -> Self {
        self.body = body.to_vec();
        self.header("content-type", content_type)
    }

    /// These bytes after the head, with nothing said about their length.
    #[must_use]
    pub fn unframed(mut self, body: &[u8]) -> Self {
        self.body = body.to_vec();
        self.is_unframed = true;
        self
    }

    /// The bytes of the request, with a valid `Host` unless the test gave one.
    pub fn to_bytes(&self, address: SocketAddr) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        if !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head += &format!("Host: {address}\r\n");
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        if !self.body.is_empty() && !self.is_unframed {
            head += &format!("Content-Length: {}\r\n", self.body.len());
        }
        head += "Connection: close\r\n\r\n";
        [head.as_bytes(), &self.body].concat()
    }
}

/// One reply.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    #[track_caller]
    pub fn parse(raw: &[u8], is_head: bool) -> Self {
        let end = raw.windows(4).position(|window| window == b"\r\n\r\n");
        let Some(end) = end else {
            panic!("no reply: {:?}", String::from_utf8_lossy(raw));
        };
        let head = String::from_utf8(raw[..end].to_vec()).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .map(|line| line.split_once(':').unwrap())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let mut reply = Self { status, headers, body: raw[end + 4..].to_vec() };
        if reply.header("transfer-encoding") == Some("chunked") && !is_head {
            reply.body = dechunk(&reply.body);
        }
        reply
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The refusal's code.
    #[track_caller]
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap().to_owned()
    }
}

fn dechunk(mut raw: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = raw.windows(2).position(|window| window == b"\r\n").unwrap();
        let size = usize::from_str_radix(std::str::from_utf8(&raw[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            return body;
        }
        body.extend_from_slice(&raw[end + 2..end + 2 + size]);
        raw = &raw[end + 4 + size..];
    }
}
