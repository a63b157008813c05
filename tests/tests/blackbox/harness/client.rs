//! A JSON client that checks every documented answer.
//!
//! It compares each one with the service's own description.

use super::canary::{self, Audience};
use super::{contract, within};
use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use svc_shared::api::instances::Instance;

#[derive(Clone)]
pub struct Client {
    base: String,
    http: reqwest::Client,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        let parsed = serde_json::from_slice(&self.body);
        parsed.unwrap_or_else(|e| panic!("{} is not JSON: {e}: {}", self.status, self.text()))
    }

    /// The instance of an answer that is one.
    #[track_caller]
    pub fn instance(&self) -> Instance {
        let parsed = serde_json::from_slice(&self.body);
        parsed.unwrap_or_else(|e| panic!("{}: {e}: {}", self.status, self.text()))
    }

    /// The same, when it has this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    /// Machine-readable reason of a refusal with this status.
    #[track_caller]
    pub fn refused(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.text());
        self.json()["code"].as_str().expect("a code").to_owned()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

impl Client {
    pub fn new(base: &str) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        Self { base: base.to_owned(), http }
    }

    /// The same over TLS, for a service with this certificate (PEM).
    pub fn trusting(base: &str, certificate: &[u8]) -> Self {
        let certificate = reqwest::Certificate::from_pem(certificate).expect("a certificate");
        let http = reqwest::Client::builder().no_proxy().add_root_certificate(certificate);
        Self { base: base.to_owned(), http: http.build().expect("a client") }
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base))
    }

    /// Sends, and reads the whole answer.
    pub async fn send(&self, request: RequestBuilder) -> Reply {
        self.try_send(request).await.expect("an answer")
    }

    /// The same for a service that may die meanwhile.
    pub async fn try_send(&self, request: RequestBuilder) -> Result<Reply, reqwest::Error> {
        let request = request.build()?;
        let (method, path) = (request.method().clone(), request.url().path().to_owned());
        let answer = async {
            let response = self.http.execute(request).await?;
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            let body = response.bytes().await?.to_vec();
            Ok(Reply { status, headers, body })
        };
        let reply = within(&format!("an answer to {method} {path}"), answer).await?;
        let what = format!("{} of {method} {path}", reply.status);
        canary::check(&what, Audience::Reader, &format!("{:?}", reply.headers));
        match path.rsplit('/').next() {
            Some("connect") => canary::check(&what, Audience::Linked, &reply.text()),
            // Both quote the agent.
            Some("log" | "report") => canary::check(&what, Audience::Operator, &reply.text()),
            _ => canary::check_document(&what, &reply.text()),
        }
        contract::check(self, &method, &path, &reply).await;
        Ok(reply)
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send(self.request(Method::GET, path)).await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        self.send(self.request(Method::DELETE, path)).await
    }

    /// A write without a body.
    pub async fn post(&self, path: &str) -> Reply {
        self.send(self.request(Method::POST, path)).await
    }

    pub async fn post_json(&self, path: &str, body: &Value) -> Reply {
        self.send(self.request(Method::POST, path).json(body)).await
    }

    /// Launches in a project with nothing else said.
    pub async fn launch(&self, project: &str) -> Reply {
        self.launch_with(json!({ "project": project })).await
    }

    pub async fn launch_with(&self, body: Value) -> Reply {
        self.post_json("/api/v1/instances", &body).await
    }

    /// A launch that must end up running.
    pub async fn run(&self, project: &str) -> Instance {
        let instance = self.launch(project).await.expect(201).instance();
        assert_eq!(instance.status.to_string(), "running", "{instance:?}");
        instance
    }

    pub async fn stop(&self, reference: &str) -> Reply {
        self.delete(&format!("/api/v1/instances/{reference}")).await
    }

    pub async fn resume(&self, reference: &str) -> Reply {
        self.post(&format!("/api/v1/instances/{reference}/resume")).await
    }

    pub async fn instance(&self, reference: &str) -> Reply {
        self.get(&format!("/api/v1/instances/{reference}")).await
    }

    pub async fn instances(&self) -> Vec<Instance> {
        let reply = self.get("/api/v1/instances").await.expect(200);
        serde_json::from_slice(&reply.body).expect("instances")
    }
}
