//! What is read from the client, waits for an answer, and is written.
//!
//! Requests are remembered by id until their answer is written. That bounds how many there are,
//! refuses a second request with the same id, drops the answer to a cancelled one, and puts the
//! answers to a batch into one line.

use crate::judge::{INVALID_PARAMS, INVALID_REQUEST, Judged, Message, PARSE_ERROR};
use crate::judge::{judge, judge_line, refusal};
use crate::line::{LONGEST, Line, next_line};
use rmcp::model::ClientJsonRpcMessage;
use serde_json::Value;
use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use svc_domain::log_escape::escape_json;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// Requests without an answer; further lines are read when one of them has its own.
/// Each may hold an answer that a client does not read.
const MOST_REQUESTS: usize = 256;

/// The one version of the protocol with batches.
const WITH_BATCHES: &str = "2025-03-26";

/// A client.
pub(crate) struct Connection<W> {
    output: tokio::sync::Mutex<W>,
    state: Mutex<State>,
    /// How many requests have no answer yet.
    open: watch::Sender<usize>,
    /// The client no longer reads.
    gone: CancellationToken,
}

#[derive(Default)]
struct State {
    takes_batches: bool,
    /// The batch of each request without an answer, by the id as JSON.
    open: HashMap<String, Option<u64>>,
    batches: HashMap<u64, Batch>,
    last_batch: u64,
    /// Answers that are being written; their ids are free already.
    in_writing: usize,
}

impl State {
    /// Requests whose answer is not written yet.
    fn waiting(&self) -> usize {
        self.open.len().saturating_add(self.in_writing)
    }
}

#[derive(Default)]
struct Batch {
    /// Requests without an answer, and one while it is still read.
    missing: usize,
    answers: Vec<Value>,
}

impl State {
    /// Takes one answer of a batch, if there is one; all of them with the last.
    fn collect(&mut self, batch: u64, answer: Option<Value>) -> Option<Value> {
        let of = self.batches.get_mut(&batch)?;
        of.answers.extend(answer);
        of.missing = of.missing.saturating_sub(1);
        if of.missing > 0 {
            return None;
        }
        let answers = self.batches.remove(&batch)?.answers;
        (!answers.is_empty()).then_some(Value::Array(answers))
    }
}

impl<W: AsyncWrite + Unpin + Send> Connection<W> {
    pub(crate) fn new(output: W) -> Self {
        Self {
            output: tokio::sync::Mutex::new(output),
            state: Mutex::default(),
            open: watch::Sender::new(0),
            gone: CancellationToken::new(),
        }
    }

    /// Ends when the client no longer reads.
    pub(crate) async fn gone(&self) {
        self.gone.cancelled().await;
    }

    /// Ends when every request has its answer.
    pub(crate) async fn settled(&self) {
        self.until(|open| open == 0).await;
    }

    async fn until(&self, holds: impl Fn(usize) -> bool) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = self.open.subscribe().wait_for(|open| holds(*open)).await;
    }

    /// Reads to the end of the input, and hands on what is a whole valid message.
    pub(crate) async fn read(
        &self,
        input: impl AsyncRead + Unpin,
        whole: &mpsc::Sender<ClientJsonRpcMessage>,
    ) {
        let mut input = BufReader::new(input);
        loop {
            self.until(|open| open < MOST_REQUESTS).await;
            let line = match next_line(&mut input, LONGEST).await {
                Ok(Some(line)) => line,
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!("standard input cannot be read: {error}");
                    return;
                }
            };
            let judged = match line {
                Line::Whole(bytes) => judge_line(&bytes, self.state().takes_batches),
                Line::TooLong => {
                    let why = "parse error: a line has at most 8 MiB";
                    Judged::Refused(refusal(PARSE_ERROR, why, &Value::Null))
                }
            };
            match judged {
                Judged::Nothing => {}
                Judged::Refused(answer) => self.write(&answer).await,
                Judged::One(message) => {
                    if let Some(answer) = self.take(message, None, whole).await {
                        self.write(&answer).await;
                    }
                }
                Judged::Batch(documents) => self.take_batch(documents, whole).await,
            }
        }
    }

    async fn take_batch(&self, documents: Vec<Value>, whole: &mpsc::Sender<ClientJsonRpcMessage>) {
        let batch = {
            let mut state = self.state();
            state.last_batch += 1;
            let batch = state.last_batch;
            state.batches.insert(batch, Batch { missing: 1, answers: Vec::new() });
            batch
        };
        for document in documents {
            let refused = match judge(document) {
                Judged::Refused(answer) => Some(answer),
                Judged::One(message) => self.take(message, Some(batch), whole).await,
                Judged::Nothing | Judged::Batch(_) => None,
            };
            let mut state = self.state();
            if let Some(of) = state.batches.get_mut(&batch) {
                of.answers.extend(refused);
            }
        }
        let complete = self.state().collect(batch, None);
        if let Some(complete) = complete {
            self.write(&complete).await;
        }
    }

    /// Hands one message on, or says why not.
    async fn take(
        &self,
        message: Message,
        batch: Option<u64>,
        whole: &mpsc::Sender<ClientJsonRpcMessage>,
    ) -> Option<Value> {
        match message {
            Message::Notification(message) => {
                if message.get("method").is_some_and(|method| method == "notifications/cancelled") {
                    self.cancelled(message.pointer("/params/requestId")).await;
                }
                if let Ok(message) = serde_json::from_value(message) {
                    self.hand_on(message, whole).await;
                }
                None
            }
            Message::Request { id, message } => {
                let is_initialize = message.get("method").is_some_and(|one| one == "initialize");
                if is_initialize && batch.is_some() {
                    let why = "invalid request: `initialize` stands alone";
                    return Some(refusal(INVALID_REQUEST, why, &id));
                }
                let version = message.pointer("/params/protocolVersion").and_then(Value::as_str);
                let takes_batches = is_initialize.then_some(version == Some(WITH_BATCHES));
                let Ok(message) = serde_json::from_value(message) else {
                    let why = "the parameters do not fit the method";
                    return Some(refusal(INVALID_PARAMS, why, &id));
                };
                if !self.remember(&id, batch, takes_batches) {
                    let why = "invalid request: a request with this id has no answer yet";
                    return Some(refusal(INVALID_REQUEST, why, &id));
                }
                self.hand_on(message, whole).await;
                None
            }
        }
    }

    async fn hand_on(
        &self,
        message: ClientJsonRpcMessage,
        whole: &mpsc::Sender<ClientJsonRpcMessage>,
    ) {
        if whole.send(message).await.is_err() {
            // The SDK has ended; without it nothing is answered.
            self.gone.cancel();
        }
    }

    /// Whether the id was free.
    fn remember(&self, id: &Value, batch: Option<u64>, takes_batches: Option<bool>) -> bool {
        let mut state = self.state();
        let key = id.to_string();
        if state.open.contains_key(&key) {
            return false;
        }
        state.open.insert(key, batch);
        if let Some(of) = batch.and_then(|batch| state.batches.get_mut(&batch)) {
            of.missing += 1;
        }
        state.takes_batches = takes_batches.unwrap_or(state.takes_batches);
        self.open.send_replace(state.waiting());
        true
    }

    /// Nobody waits for this answer any more.
    async fn cancelled(&self, id: Option<&Value>) {
        let Some(id) = id else { return };
        let complete = {
            let mut state = self.state();
            let Some(batch) = state.open.remove(&id.to_string()) else { return };
            self.open.send_replace(state.waiting());
            batch.and_then(|batch| state.collect(batch, None))
        };
        if let Some(complete) = complete {
            self.write(&complete).await;
        }
    }

    /// Writes an answer of the SDK, if somebody waits for it.
    pub(crate) async fn answer(&self, answer: Value) {
        let key = answer.get("id").map(ToString::to_string).unwrap_or_default();
        let ready = {
            let mut state = self.state();
            // Free before it is written: who has read the answer may use the id again.
            let batch = match state.open.remove(&key) {
                None => return,
                Some(batch) => batch,
            };
            state.in_writing = state.in_writing.saturating_add(1);
            match batch {
                None => Some(answer),
                Some(batch) => state.collect(batch, Some(answer)),
            }
        };
        if let Some(ready) = ready {
            self.write(&ready).await;
        }
        // After it is written: who waits for the last answer ends the process.
        let mut state = self.state();
        state.in_writing = state.in_writing.saturating_sub(1);
        self.open.send_replace(state.waiting());
    }

    async fn write(&self, document: &Value) {
        let text = document.to_string();
        let line = format!("{}\n", escape_json(&text));
        let mut output = self.output.lock().await;
        let written: io::Result<()> = async {
            output.write_all(line.as_bytes()).await?;
            output.flush().await
        }
        .await;
        if written.is_err() {
            // A reader that went away is no reason to complain.
            self.gone.cancel();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is complete before anything that could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
