//! Typed requests to the service.

use crate::browser;
use crate::model::problem::Problem;
use crate::model::wire;
use futures_util::future::{Either, select};
use gloo_net::http::{Method, RequestBuilder};
use serde::de::DeserializeOwned;
use std::pin::{Pin, pin};
use svc_shared::error::ErrorCode;
use svc_shared::paths::AGENT_SIGN_IN;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::JsValue;

/// Event on the window when an answer says that nobody is signed in (any more).
pub const SIGNED_OUT: &str = "svc-signed-out";

/// Milliseconds until a request counts as unanswered.
const PATIENCE_MS: i32 = 20_000;
/// A stop answers when the process is gone, which may take its whole grace period.
const STOP_PATIENCE_MS: i32 = 60_000;
/// Patience for requests that the agent itself answers, milliseconds.
///
/// It is longer than the service waits for the agent.
const AGENT_PATIENCE_MS: i32 = 90_000;
/// … which have one of these in their path.
const SLOW: [&str; 5] = [
    "/agents",
    AGENT_SIGN_IN,
    "/environments/",
    "/config-write/plugins",
    "/config-write/marketplaces",
];

/// Reads a document.
pub async fn get<T: DeserializeOwned>(path: &str) -> Result<T, Problem> {
    call(Method::GET, path).await
}

/// Asks for something without a body.
pub async fn call<T: DeserializeOwned>(method: Method, path: &str) -> Result<T, Problem> {
    understood(request(method, path, None, None).await)
}

/// Reads what was answered.
pub fn understood<T: DeserializeOwned>(answer: Answer) -> Result<T, Problem> {
    let (status, body) = answer?;
    wire::read(&body).map_err(|_| Problem::Unreadable { status })
}

/// Status and text of a success.
pub type Answer = Result<(u16, String), Problem>;

/// Sends a request.
///
/// Every request of the page goes through this function, so that it is compiled once. `key` is the
/// idempotency key: a repeat with the same key starts nothing twice.
pub fn request<'a>(
    method: Method,
    path: &'a str,
    body: Option<String>,
    key: Option<&'a str>,
) -> Pin<Box<dyn Future<Output = Answer> + 'a>> {
    Box::pin(async move {
        let patience = match method {
            _ if SLOW.iter().any(|part| path.contains(part)) => AGENT_PATIENCE_MS,
            Method::DELETE => STOP_PATIENCE_MS,
            _ => PATIENCE_MS,
        };
        // The request itself goes on: what it asked for may happen all the same.
        match select(pin!(send(method, path, body, key)), pin!(sleep(patience))).await {
            Either::Left((answer, _)) => answer,
            Either::Right(((), _)) => Err(Problem::NoAnswer),
        }
    })
}

async fn send(method: Method, path: &str, body: Option<String>, key: Option<&str>) -> Answer {
    let mut request = RequestBuilder::new(&browser::href(path)).method(method);
    if let Some(key) = key {
        request = request.header("Idempotency-Key", key);
    }
    let request = match body {
        Some(body) => request.header("Content-Type", "application/json").body(body),
        None => request.build(),
    };
    // Both a request that cannot be built and one that fails on the way leave us without answer.
    let request = request.map_err(|_| Problem::NoAnswer)?;
    let response = request.send().await.map_err(|_| Problem::NoAnswer)?;
    let status = response.status();
    let wait = response.headers().get("Retry-After").and_then(|wait| wait.parse().ok());
    let body = response.text().await.map_err(|_| Problem::NoAnswer)?;
    if response.ok() {
        return Ok((status, body));
    }
    let problem = Problem::of(status, &body, wait);
    if problem.is(ErrorCode::AuthRequired)
        && let Ok(event) = web_sys::Event::new(SIGNED_OUT)
    {
        let _ = leptos::prelude::window().dispatch_event(&event); // a fixed, legal name
    }
    Err(problem)
}

/// Sends a request that outlives the page.
///
/// It has no body, and nobody reads the answer.
pub fn leave(method: &str, path: &str) {
    let how = format!(r#"{{"method":"{method}","keepalive":true}}"#);
    if let Ok(how) = js_sys::JSON::parse(&how) {
        let how: web_sys::RequestInit = how.unchecked_into();
        drop(leptos::prelude::window().fetch_with_str_and_init(&browser::href(path), &how));
    }
}

async fn sleep(millis: i32) {
    let promise = js_sys::Promise::new(&mut |resolve, _| {
        let window = leptos::prelude::window();
        let _ = window.set_timeout_with_callback_and_timeout_and_arguments_0(&resolve, millis); // only fails without a window
    });
    let _: Result<JsValue, JsValue> = wasm_bindgen_futures::JsFuture::from(promise).await; // never rejected
}
