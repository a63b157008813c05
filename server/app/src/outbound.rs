//! Events that leave the machine: webhooks (`http-api` §6.1) and notifications.
//!
//! Each target has a queue and a worker of its own, so that one that hangs delays no other and no
//! change of a session. Delivery is best effort: one attempt, and nothing outlives the process.

mod kept;
mod message;
mod notifications;
mod push;
mod queue;
mod rule;
mod sender;
mod target;

pub use notifications::Notifications;
pub use push::{Push, Subscriber};
pub(crate) use sender::trusting_this_machine;

use crate::AppError;
use crate::read_model::ReadModel;
use crate::tasks::Tasks;
use message::Message;
use notifications::Sources;
use rule::Rule;
use std::collections::BTreeMap;
use std::sync::Arc;
use svc_config::{Config, Secret};
use svc_ports::Clock;
use svc_shared::error::ErrorCode;
use svc_shared::events::Event;
use target::Target;

/// How a test delivery to one target ended.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TestDelivery {
    /// Place in `webhooks.urls`, from 1.
    pub entry: usize,
    /// Scheme, host and port; the rest of a URL may be secret.
    pub target: String,
    /// Id of the delivery, as the target was told it.
    pub delivery: String,
    /// What the target answered.
    pub status: Option<u16>,
    /// Why it was not delivered.
    pub error: Option<String>,
}

impl TestDelivery {
    /// Whether the target accepted it.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

/// Webhooks and notifications, told of every event that the read model is told of.
pub(crate) fn fed_by(
    read_model: &ReadModel,
    config: &Config,
    port: u16,
    (clock, tasks): (&Arc<dyn Clock>, &Tasks),
    sources: Sources<'_>,
    push: &Arc<Push>,
) -> (Arc<Webhooks>, Arc<Notifications>) {
    let webhooks = Arc::new(Webhooks::new(config, port, Arc::clone(clock), tasks.clone()));
    let notifications = Arc::new(Notifications::new(config, port, clock, tasks, sources, push));
    let (posted, shown) = (Arc::clone(&webhooks), Arc::clone(&notifications));
    read_model.tell(move |event| {
        posted.offer(event);
        shown.offer(event);
    });
    (webhooks, notifications)
}

/// The configured targets, and what they are told.
pub struct Webhooks {
    is_enabled: bool,
    targets: Vec<Arc<Target>>,
    events: BTreeMap<String, bool>,
    key: Option<Secret>,
    clock: Arc<dyn Clock>,
    tasks: Tasks,
}

impl std::fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhooks").field("targets", &self.targets.len()).finish_non_exhaustive()
    }
}

impl Webhooks {
    /// Reads the settings. `port` is the one that this service listens on.
    fn new(config: &Config, port: u16, clock: Arc<dyn Clock>, tasks: Tasks) -> Self {
        let settings = &config.webhooks;
        let rule = Rule::of(config, port);
        // An entry that is no target was named when the configuration was read.
        let targets = settings.urls.iter().enumerate().filter_map(|(index, url)| {
            Target::new(index + 1, url.expose(), rule, settings.timeout).map(Arc::new)
        });
        Self {
            is_enabled: settings.enabled,
            targets: targets.collect(),
            events: settings.events.clone(),
            key: settings.secret.clone(),
            clock,
            tasks,
        }
    }

    /// Starts a worker for each target.
    pub(crate) fn start(&self) {
        if !self.is_enabled {
            return;
        }
        tracing::info!("events are posted to {} targets (`webhooks.urls`)", self.targets.len());
        for target in &self.targets {
            let (target, shutdown) = (Arc::clone(target), self.tasks.shutdown().clone());
            self.tasks.spawn(async move { target.run(&shutdown).await });
        }
    }

    /// Puts an event into the queue of each target. Never waits.
    pub(crate) fn offer(&self, event: &Event) {
        let is_wanted = self.events.get(event.name().as_str()).copied().unwrap_or_default();
        if !self.is_enabled || !is_wanted || self.targets.is_empty() {
            return;
        }
        match Message::of(event, self.clock.now(), self.key.as_ref()) {
            Ok(message) => {
                let message = Arc::new(message);
                self.targets.iter().for_each(|target| target.offer(&message));
            }
            Err(error) => {
                tracing::warn!(error = %error, "the event `{}` was not posted", event.name());
            }
        }
    }

    /// Sends a test event to every target, or to one.
    ///
    /// `which` is a place in `webhooks.urls`, from 1, or the URL as it stands there. Works also
    /// while `webhooks.enabled` is off, so that targets can be tried first.
    ///
    /// # Errors
    /// There is no such target.
    pub async fn test(&self, which: Option<&str>) -> Result<Vec<TestDelivery>, AppError> {
        let chosen = self.targets.iter().filter(|target| match which {
            None => true,
            Some(which) => target.is_named(which),
        });
        let chosen: Vec<&Arc<Target>> = chosen.collect();
        if chosen.is_empty() {
            let text = match which {
                None => "`webhooks.urls` has no target; add an http or https URL to it",
                Some(_) => {
                    "`webhooks.urls` has no such target; name its place in the list, from 1, or \
                     the URL as it stands there"
                }
            };
            return Err(AppError::new(ErrorCode::InvalidValue, crate::Class::Invalid, text));
        }
        let message = Message::test(self.clock.now(), self.key.as_ref())?;
        let sent = chosen.into_iter().map(|target| target.test(&message));
        Ok(futures_util::future::join_all(sent).await)
    }

    /// Whether events are posted at all.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    /// Whether posts are signed.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        self.key.is_some()
    }
}
