//! `Idempotency-Key`: a repeated launch gets the first answer (`http-api` §2.6).
//!
//! Kept in memory; a restart forgets the keys. The work runs on a task of its own, so that a
//! repeat finds it although the first connection is gone.

use crate::error::Refusal;
use bytes::Bytes;
use poem::Response;
use poem::http::{HeaderMap, StatusCode};
use serde::Serialize;
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use svc_app::acting_as_now;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long a result is remembered.
const REMEMBERED: Duration = Duration::from_secs(600);
/// Most keys remembered.
/// Beyond it new ones are refused until one is ten minutes old.
///
/// A forgotten key would make a repeat start a second bridge.
const KEYS: usize = 4096;

/// Results by key.
#[derive(Debug, Default)]
pub(crate) struct Idempotency {
    entries: Mutex<HashMap<(String, String), Entry>>,
}

#[derive(Debug)]
struct Entry {
    body: String,
    since: Instant,
    result: watch::Receiver<Option<Kept>>,
}

/// What is asked for, without the key.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    route: String,
    body: String,
}

#[derive(Debug, Clone)]
struct Kept {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Subject {
    pub(crate) fn new<T: Serialize>(route: &str, body: &T) -> Self {
        let body = serde_json::to_vec(body).unwrap_or_default();
        Self { route: route.to_owned(), body: crate::digest::short_hash(&body) }
    }
}

enum Claim {
    First(watch::Sender<Option<Kept>>),
    Repeat(watch::Receiver<Option<Kept>>),
}

impl Idempotency {
    /// Runs `work`, or waits for the result of the same key and body.
    ///
    /// Without a key the work simply runs. Failures of the service itself (5xx) are not kept:
    /// nothing was started then that a repeat could double.
    pub(crate) async fn run<F>(
        self: &Arc<Self>,
        key: Option<String>,
        subject: Subject,
        work: F,
    ) -> Result<Response, Refusal>
    where
        F: Future<Output = Result<Response, Refusal>> + Send + 'static,
    {
        let Some(key) = key else {
            return work.await;
        };
        let name = (key, subject.route);
        let mut result = match self.claim(&name, subject.body)? {
            Claim::Repeat(result) => result,
            Claim::First(sender) => {
                let result = sender.subscribe();
                let this = Arc::clone(self);
                tokio::spawn(acting_as_now(async move {
                    let kept = Kept::of(work.await).await;
                    if kept.status.is_server_error() {
                        this.forget(&name);
                    }
                    // Nobody waits any more: the result is kept for a repeat.
                    let _ = sender.send(Some(kept));
                }));
                result
            }
        };
        let kept = result.wait_for(Option::is_some).await.ok().and_then(|kept| kept.clone());
        kept.map(Kept::into_response).ok_or_else(|| Refusal::internal("a launch ended in a panic"))
    }

    fn claim(&self, name: &(String, String), body: String) -> Result<Claim, Refusal> {
        let now = Instant::now();
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|_, entry| {
            let is_abandoned =
                entry.result.has_changed().is_err() && entry.result.borrow().is_none();
            now.duration_since(entry.since) < REMEMBERED && !is_abandoned
        });
        match entries.get(name) {
            Some(entry) if entry.body == body => return Ok(Claim::Repeat(entry.result.clone())),
            Some(_) => {
                return Err(Refusal::invalid(
                    "this `Idempotency-Key` was used with another body; use a fresh key",
                ));
            }
            None => {}
        }
        if entries.len() >= KEYS {
            return Err(too_many());
        }
        let (sender, result) = watch::channel(None);
        entries.insert(name.clone(), Entry { body, since: now, result });
        Ok(Claim::First(sender))
    }

    fn forget(&self, name: &(String, String)) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

fn too_many() -> Refusal {
    Refusal::new(
        StatusCode::SERVICE_UNAVAILABLE,
        svc_shared::error::ErrorCode::Busy,
        "too many launches with an `Idempotency-Key` in ten minutes; try again later, or leave \
         the key out",
    )
    .with(poem::http::header::RETRY_AFTER, "60")
}

impl Kept {
    async fn of(outcome: Result<Response, Refusal>) -> Self {
        let response = outcome.unwrap_or_else(Refusal::into_json);
        let (parts, body) = response.into_parts();
        let body = body.into_bytes().await.unwrap_or_default();
        Self { status: parts.status, headers: parts.headers, body }
    }

    fn into_response(self) -> Response {
        let mut response = Response::builder().status(self.status).body(self.body);
        response.headers_mut().extend(self.headers);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply;
    use std::sync::atomic::{AtomicU32, Ordering};

    struct Launches {
        kept: Arc<Idempotency>,
        started: Arc<AtomicU32>,
    }

    impl Launches {
        fn new() -> Self {
            Self { kept: Arc::default(), started: Arc::default() }
        }

        async fn launch(&self, key: Option<&str>, body: &str, status: StatusCode) -> (u16, String) {
            let started = Arc::clone(&self.started);
            let work = async move {
                let n = started.fetch_add(1, Ordering::SeqCst) + 1;
                tokio::task::yield_now().await;
                Ok(reply::json(status, &n))
            };
            let subject = Subject::new("spawn", &body);
            let outcome = self.kept.run(key.map(str::to_owned), subject, work).await;
            let response = outcome.unwrap_or_else(Refusal::into_json);
            let status = response.status().as_u16();
            (status, response.into_body().into_string().await.unwrap())
        }
    }

    #[tokio::test]
    async fn a_repeat_gets_the_first_result_and_starts_nothing() {
        let launches = Launches::new();
        let first = launches.launch(Some("k"), "a", StatusCode::CREATED).await;
        let again = launches.launch(Some("k"), "a", StatusCode::CREATED).await;
        assert_eq!((first.clone(), first.0), (again, 201));
        assert_eq!(launches.launch(Some("k"), "b", StatusCode::CREATED).await.0, 422);
        assert_eq!(launches.started.load(Ordering::SeqCst), 1);
        launches.launch(Some("other"), "a", StatusCode::CREATED).await;
        launches.launch(None, "a", StatusCode::CREATED).await;
        assert_eq!(launches.started.load(Ordering::SeqCst), 3);
    }

    #[tokio::test]
    async fn simultaneous_repeats_share_one_launch() {
        let launches = Launches::new();
        let (one, two) = tokio::join!(
            launches.launch(Some("k"), "a", StatusCode::CREATED),
            launches.launch(Some("k"), "a", StatusCode::CREATED),
        );
        assert_eq!(one, two);
        assert_eq!(launches.started.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_failure_of_the_service_may_be_tried_again() {
        let launches = Launches::new();
        launches.launch(Some("k"), "a", StatusCode::SERVICE_UNAVAILABLE).await;
        assert_eq!(launches.launch(Some("k"), "a", StatusCode::CREATED).await.0, 201);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_forgotten_after_ten_minutes() {
        let launches = Launches::new();
        launches.launch(Some("k"), "a", StatusCode::CREATED).await;
        tokio::time::advance(REMEMBERED).await;
        assert_eq!(launches.launch(Some("k"), "b", StatusCode::CREATED).await.0, 201);
    }

    /// Otherwise a crowd of keys would make the repeat of one launch a second launch.
    #[tokio::test(start_paused = true)]
    async fn no_crowd_of_other_keys_makes_a_key_forgotten_before_its_time() {
        let launches = Launches::new();
        let first = launches.launch(Some("k"), "a", StatusCode::CREATED).await;
        let mut last = 201;
        for n in 0..20_000 {
            last = launches.launch(Some(&format!("other-{n}")), "a", StatusCode::CREATED).await.0;
        }
        assert_eq!(last, 503, "there is an end to what is remembered");
        assert_eq!(launches.launch(Some("k"), "a", StatusCode::CREATED).await, first);
        assert_eq!(launches.launch(Some("k"), "b", StatusCode::CREATED).await.0, 422);
        // Who brings no key is not held up, and neither is anybody after ten minutes.
        assert_eq!(launches.launch(None, "a", StatusCode::CREATED).await.0, 201);
        tokio::time::advance(REMEMBERED).await;
        assert_eq!(launches.launch(Some("new"), "a", StatusCode::CREATED).await.0, 201);
    }
}
