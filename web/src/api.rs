//! Typed requests to the service.

use crate::browser;
use crate::model::problem::Problem;
use futures_util::future::{Either, select};
use gloo_net::http::{Method, Request, RequestBuilder, Response};
use serde::{Serialize, de::DeserializeOwned};
use std::pin::pin;
use wasm_bindgen::prelude::JsValue;

/// Milliseconds until a request counts as unanswered.
const PATIENCE_MS: i32 = 20_000;
/// A stop answers when the process is gone, which may take its whole grace period.
const STOP_PATIENCE_MS: i32 = 60_000;

/// A change.
pub struct Change<'a, B> {
    /// HTTP method.
    pub method: Method,
    /// App-local path with query.
    pub path: &'a str,
    /// JSON body.
    pub body: Option<&'a B>,
    /// Marks a repeat as one.
    pub key: Option<&'a str>,
}

/// Reads a document.
pub async fn get<T: DeserializeOwned>(path: &str) -> Result<T, Problem> {
    let request = Request::get(&browser::href(path));
    read(within(PATIENCE_MS, send(request.build())).await?).await
}

/// Asks for a change without a body.
pub async fn call<T: DeserializeOwned>(method: Method, path: &str) -> Result<T, Problem> {
    change::<(), T>(Change { method, path, body: None, key: None }).await
}

/// Asks for a change.
pub async fn change<B: Serialize, T: DeserializeOwned>(
    change: Change<'_, B>,
) -> Result<T, Problem> {
    let patience = if change.method == Method::DELETE { STOP_PATIENCE_MS } else { PATIENCE_MS };
    let mut request = RequestBuilder::new(&browser::href(change.path)).method(change.method);
    if let Some(key) = change.key {
        request = request.header("Idempotency-Key", key);
    }
    let request = match change.body {
        Some(body) => request.json(body),
        None => request.build(),
    };
    read(within(patience, send(request)).await?).await
}

async fn send(request: Result<Request, gloo_net::Error>) -> Result<Response, Problem> {
    // Both a request that cannot be built and one that fails on the way leave us without answer.
    let request = request.map_err(|_| Problem::NoAnswer)?;
    request.send().await.map_err(|_| Problem::NoAnswer)
}

/// Waits for an answer, but not for ever. The request itself goes on: what it asked for may
/// happen all the same.
async fn within<T>(
    millis: i32,
    answer: impl Future<Output = Result<T, Problem>>,
) -> Result<T, Problem> {
    match select(pin!(answer), pin!(sleep(millis))).await {
        Either::Left((answer, _)) => answer,
        Either::Right(((), _)) => Err(Problem::NoAnswer),
    }
}

async fn sleep(millis: i32) {
    let promise = js_sys::Promise::new(&mut |resolve, _| {
        let window = leptos::prelude::window();
        let _ = window.set_timeout_with_callback_and_timeout_and_arguments_0(&resolve, millis); // only fails without a window
    });
    let _: Result<JsValue, JsValue> = wasm_bindgen_futures::JsFuture::from(promise).await; // never rejected
}

async fn read<T: DeserializeOwned>(response: Response) -> Result<T, Problem> {
    let status = response.status();
    let body = response.text().await.map_err(|_| Problem::NoAnswer)?;
    if response.ok() {
        serde_json::from_str(&body).map_err(|_| Problem::Unreadable { status })
    } else {
        Err(Problem::of(status, &body))
    }
}
