//! One run per question, however many ask at once (H83).

use crate::error::Refusal;
use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use poem::http::StatusCode;
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use svc_shared::error::ErrorCode;

/// An answer that takes longer is not worth waiting for.
const PATIENCE: Duration = Duration::from_secs(15);

type Answer = Result<Bytes, Refusal>;
type Running = BoxFuture<'static, Answer>;

/// Work under way by name, held weakly: the last caller that leaves drops it.
#[derive(Default)]
pub(crate) struct SingleFlight {
    running: Mutex<HashMap<String, WeakShared<Running>>>,
}

impl SingleFlight {
    /// Joins the run of this question, or starts it.
    pub(crate) async fn run<F>(&self, question: String, work: impl FnOnce() -> F) -> Answer
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        let answer = self.join(question, work);
        tokio::time::timeout(PATIENCE, answer).await.unwrap_or_else(|_| {
            Err(Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                ErrorCode::Busy,
                "the answer took longer than 15 seconds; try again in a moment",
            ))
        })
    }

    fn join<F>(&self, question: String, work: impl FnOnce() -> F) -> Shared<Running>
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = running.get(&question).and_then(WeakShared::upgrade) {
            return shared;
        }
        running.retain(|_, other| other.upgrade().is_some());
        let shared = work().boxed().shared();
        if let Some(weak) = shared.downgrade() {
            running.insert(question, weak);
        }
        shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    async fn ask(flights: &SingleFlight, question: &str, runs: &Arc<AtomicU32>) -> Answer {
        let runs = Arc::clone(runs);
        flights
            .run(question.into(), || async move {
                runs.fetch_add(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                Ok(Bytes::from_static(b"x"))
            })
            .await
    }

    #[tokio::test]
    async fn h83_many_askers_share_one_run_and_the_next_one_starts_anew() {
        let (flights, runs) = (SingleFlight::default(), Arc::default());
        let asks = (0..200).map(|_| ask(&flights, "all", &runs));
        let answers = futures_util::future::join_all(asks).await;
        assert!(answers.iter().all(Result::is_ok));
        assert_eq!(runs.load(Ordering::SeqCst), 1);
        ask(&flights, "all", &runs).await.unwrap();
        let (_, _) = tokio::join!(ask(&flights, "a", &runs), ask(&flights, "b", &runs));
        assert_eq!(runs.load(Ordering::SeqCst), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_hangs_is_given_up_and_does_not_block_the_next() {
        let flights = SingleFlight::default();
        let hanging = flights.run("all".into(), std::future::pending).await;
        assert_eq!(hanging.unwrap_err().status(), 503);
        assert!(ask(&flights, "all", &Arc::default()).await.is_ok());
    }
}
