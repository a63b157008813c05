//! Restarting the service in place.
//! It is checked, announced, and left to the program to do.
//!
//! Connections end first, each after a last answer. Then the program replaces itself, with its
//! listening socket (`http-api` §3.1, H114). What a command does about it is in `of_command`.

mod of_command;
mod request;

use crate::tasks::Tasks;
use crate::{AppError, Class, nudge};
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use svc_domain::redact::redact_text;
use svc_shared::error::ErrorCode;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

pub use of_command::{NotRestarted, Restarted, restart};
pub(crate) use of_command::{ask, running};
pub use request::Order;
pub(crate) use request::Request;

/// Says whether the service would start again, or an ordered program instead.
pub type RestartCheck = Box<dyn Fn(Option<Order>) -> CheckResult + Send + Sync>;

/// What a [`RestartCheck`] comes to.
pub type CheckResult = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// Restarts the running service.
pub struct Restart {
    /// None in a process that cannot be replaced.
    check: OnceLock<RestartCheck>,
    /// Two checks at once would bind a changed port twice.
    turn: Mutex<()>,
    /// The other version that the restart is for.
    order: OnceLock<Order>,
    leaving: CancellationToken,
    tasks: Tasks,
}

/// The answer of a service to a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RestartAnswer {
    /// It restarts.
    Restarting,
    /// It goes on as it is, for this reason.
    Refused(String),
}

impl Restart {
    pub(crate) fn new(tasks: &Tasks) -> Self {
        Self {
            check: OnceLock::new(),
            turn: Mutex::new(()),
            order: OnceLock::new(),
            leaving: tasks.shutdown().child_token(),
            tasks: tasks.clone(),
        }
    }

    /// Makes restarts possible. The check is asked before each of them.
    pub fn enable(&self, check: RestartCheck) {
        if self.check.set(check).is_err() {
            debug!("restarts were possible already");
        }
    }

    /// Whether this process can be replaced.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        self.check.get().is_some()
    }

    /// Whether a restart was asked for and has begun.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.leaving.is_cancelled() && !self.tasks.shutdown().is_cancelled()
    }

    /// Cancelled when connections should end: at a restart and when the service ends.
    #[must_use]
    pub fn leaving(&self) -> &CancellationToken {
        &self.leaving
    }

    /// The other version that a restart is for, if it is for one.
    #[must_use]
    pub fn order(&self) -> Option<&Order> {
        self.order.get()
    }

    /// Begins a restart, if the service would start again.
    ///
    /// # Errors
    /// This process cannot be replaced, or what is on the disk now would not start.
    pub async fn begin(self: &Arc<Self>) -> Result<(), AppError> {
        self.begin_as(Request::Restart).await
    }

    async fn begin_as(self: &Arc<Self>, request: Request) -> Result<(), AppError> {
        let order = match request {
            Request::Restart => None,
            Request::Upgrade(order) => Some(order),
        };
        let this = Arc::clone(self);
        let work = async move {
            let _turn = this.turn.lock().await;
            if this.has_begun() {
                return match order {
                    None => Ok(()),
                    Some(_) => Err(AppError::busy("a restart is under way; try again after it")),
                };
            }
            let Some(check) = this.check.get() else {
                return Err(AppError::new(
                    ErrorCode::CapabilityDisabled,
                    Class::Unavailable,
                    "this service cannot restart itself; end it and start it again",
                ));
            };
            check(order.clone()).await.map_err(|reason| {
                let text = format!(
                    "the service goes on as it is, because it would not start again: {}",
                    redact_text(&reason)
                );
                AppError::new(ErrorCode::InvalidValue, Class::Conflict, text)
            })?;
            if let Some(order) = order {
                info!("trying {} as {}", order.staged.display(), order.target.display());
                let _ = this.order.set(order); // set once: a restart begins once
            }
            info!("restarting, as asked; bridges and sessions keep running");
            this.leaving.cancel();
            Ok(())
        };
        self.tasks.complete(work).await
    }

    /// Does what a command asked for, and answers it.
    pub(crate) fn serve(self: &Arc<Self>, request: Request, command: PathBuf) {
        let this = Arc::clone(self);
        self.tasks.spawn(async move {
            let answer = match this.begin_as(request).await {
                Ok(()) => RestartAnswer::Restarting,
                Err(error) => RestartAnswer::Refused(error.message),
            };
            nudge::answer(command, &answer, "a restart").await;
        });
    }
}
