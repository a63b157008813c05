//! Posts of events to the targets of `webhooks.urls`.

use super::message::Message;
use super::outbox::Outbox;
use super::rule::Terms;
use super::target::Target;
use crate::hosted::rows::HostedRows;
use crate::tasks::Tasks;
use crate::{AppError, Class};
use futures_util::future::join_all;
use std::collections::BTreeSet;
use std::sync::Arc;
use svc_config::{Config, Secret};
use svc_ports::Clock;
use svc_shared::Timestamp;
use svc_shared::error::ErrorCode;
use svc_shared::events::Event;
use svc_shared::internal::webhooks::{TestedWebhook, WebhookReport};
use svc_store::Owed;
use tokio::sync::watch;

/// The configured targets, and what they are told.
pub struct Webhooks {
    /// Whether and which events are posted is read at each use: both change meanwhile.
    config: Arc<Config>,
    targets: Vec<Arc<Target>>,
    key: Option<Secret>,
    /// There while posts are kept until they are taken.
    outbox: Option<Arc<Outbox>>,
    rows: Arc<HostedRows>,
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
    pub(super) fn new(
        config: &Arc<Config>,
        port: u16,
        (clock, tasks): (&Arc<dyn Clock>, &Tasks),
        rows: &Arc<HostedRows>,
    ) -> Self {
        let settings = &config.webhooks;
        let terms = Terms::of(config, port);
        // An entry that is no target was named when the configuration was read.
        let targets = settings.urls.iter().enumerate().filter_map(|(index, url)| {
            Target::new(index + 1, url.expose(), terms.clone()).map(Arc::new)
        });
        let targets: Vec<Arc<Target>> = targets.collect();
        let outbox = settings.outbox.then(|| {
            let key = settings.secret.clone();
            Arc::new(Outbox::new(&rows.store, clock, &targets, key))
        });
        Self {
            config: Arc::clone(config),
            targets,
            key: settings.secret.clone(),
            outbox,
            rows: Arc::clone(rows),
            clock: Arc::clone(clock),
            tasks: tasks.clone(),
        }
    }

    /// Starts a worker for each target.
    ///
    /// `replaced` tells when values of the configuration were replaced. Returns the steps that an
    /// earlier service recorded and did not come to post.
    pub(crate) async fn start(self: &Arc<Self>, replaced: watch::Receiver<()>) -> Vec<Owed> {
        let store = &self.rows.store;
        let owed = store.owed_events().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "events that were not posted cannot be read");
            Vec::new()
        });
        if self.is_enabled() {
            tracing::info!("events are posted to {} targets (`webhooks.urls`)", self.targets.len());
        }
        let Some(outbox) = self.outbox.as_ref().filter(|_| !self.targets.is_empty()) else {
            if self.outbox.is_none()
                && let Err(error) = store.end_outbox(!owed.is_empty()).await
            {
                tracing::warn!(%error, "events that are not posted any more stay recorded");
            }
            for target in &self.targets {
                let (target, shutdown) = (Arc::clone(target), self.tasks.shutdown().clone());
                self.tasks.spawn(async move { target.run(&shutdown).await });
            }
            return Vec::new();
        };
        outbox.begin().await;
        let is_on = self.is_enabled();
        outbox.switch(is_on);
        let this = Arc::clone(self);
        self.tasks.spawn(async move { this.follow(replaced).await });
        let shutdown = self.tasks.shutdown();
        let (this, over) = (Arc::clone(outbox), shutdown.clone());
        self.tasks.spawn(async move { this.record(&over).await });
        let mut served = BTreeSet::new();
        for target in &self.targets {
            if !served.insert(target.key()) {
                tracing::warn!("{target} is in `webhooks.urls` twice and is posted to once");
                continue;
            }
            let (this, target) = (Arc::clone(outbox), Arc::clone(target));
            let (writes, over) = (self.rows.changes(), shutdown.clone());
            self.tasks.spawn(async move { this.deliver(&target, writes, &over).await });
        }
        // What is owed stays recorded while nothing is posted.
        if is_on { owed } else { Vec::new() }
    }

    /// Has the outbox rest while `webhooks.enabled` is off, until the service ends.
    async fn follow(&self, mut replaced: watch::Receiver<()>) {
        let Some(outbox) = &self.outbox else { return };
        loop {
            tokio::select! {
                () = self.tasks.shutdown().cancelled() => return,
                changed = replaced.changed() => if changed.is_err() { return },
            }
            outbox.switch(self.is_enabled());
        }
    }

    /// Takes an event in for each target. Never waits.
    pub(crate) fn offer(&self, event: &Event) {
        self.offer_at(event, self.clock.now());
    }

    /// The same of an event that happened at another time.
    pub(crate) fn offer_at(&self, event: &Event, at: Timestamp) {
        if !self.is_enabled() || self.targets.is_empty() {
            return;
        }
        let events = &self.config.webhooks.events;
        let is_wanted = events.get(event.name().as_str()).copied().unwrap_or_default();
        let message = is_wanted.then(|| Message::of(event, at, self.key.as_ref())).transpose();
        let message = message.unwrap_or_else(|error| {
            tracing::warn!(error = %error, "the event `{}` was not posted", event.name());
            None
        });
        match (&self.outbox, message) {
            (Some(outbox), message) => outbox.offer(event, message, at),
            (None, Some(message)) => {
                let message = Arc::new(message);
                self.targets.iter().for_each(|target| target.offer(&message));
            }
            (None, None) => {}
        }
    }

    /// Takes a step off the record that nothing can be told of any more.
    pub(crate) fn forgive(&self, owed: Owed) {
        if let Some(outbox) = &self.outbox {
            outbox.forgive(owed);
        }
    }

    /// The targets that a person means: one by its place or its URL, or all.
    fn chosen(&self, which: Option<&str>) -> Result<Vec<&Arc<Target>>, AppError> {
        let chosen = self.targets.iter().filter(|target| match which {
            None => true,
            Some(which) => target.is_named(which),
        });
        let chosen: Vec<&Arc<Target>> = chosen.collect();
        if !chosen.is_empty() {
            return Ok(chosen);
        }
        Err(invalid(match which {
            None => "`webhooks.urls` has no target; add an http or https URL to it",
            Some(_) => {
                "`webhooks.urls` has no such target; name its place in the list, from 1, or the \
                 URL as it stands there"
            }
        }))
    }

    /// Sends a test event to every target, or to one.
    ///
    /// `which` is a place in `webhooks.urls`, from 1, or the URL as it stands there. Works also
    /// while `webhooks.enabled` is off, so that targets can be tried first.
    ///
    /// # Errors
    /// There is no such target.
    pub async fn test(&self, which: Option<&str>) -> Result<Vec<TestedWebhook>, AppError> {
        let chosen = self.chosen(which)?;
        let message = Message::test(self.clock.now(), self.key.as_ref())?;
        let sent = chosen.into_iter().map(|target| target.test(&message));
        Ok(join_all(sent).await)
    }

    /// What became of the last posts. A command reads what the service has recorded.
    ///
    /// # Errors
    /// The outbox cannot be read.
    pub async fn report(&self) -> Result<WebhookReport, AppError> {
        let mut targets = Vec::with_capacity(self.targets.len());
        for target in &self.targets {
            let mut report = target.report();
            if let Some(outbox) = &self.outbox {
                outbox.fill(target, &mut report).await?;
            }
            targets.push(report);
        }
        let events = self.config.webhooks.events.iter().filter(|(_, is_on)| **is_on);
        Ok(WebhookReport {
            enabled: self.is_enabled(),
            signed: self.key.is_some(),
            outbox: self.outbox.is_some(),
            events: events.map(|(name, _)| name.clone()).collect(),
            targets,
        })
    }

    /// Has posts tried again, of every target or of one.
    ///
    /// Those that were given up, or all after a delivery. Tells how many.
    ///
    /// # Errors
    /// There is no outbox, no such target, or no such delivery; or nothing could be written.
    pub async fn replay(&self, which: Option<&str>, since: Option<&str>) -> Result<u64, AppError> {
        let Some(outbox) = &self.outbox else {
            return Err(invalid(
                "nothing is kept to be posted again, because `webhooks.outbox` is off; switch it \
                 on and restart the service",
            ));
        };
        if !self.is_enabled() {
            return Err(invalid(
                "nothing is posted again, because `webhooks.enabled` is off; switch it on first",
            ));
        }
        outbox.replay(&self.chosen(which)?, since).await
    }

    /// Whether events are posted at all.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.config.webhooks.enabled
    }

    /// Whether posts are signed.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        self.key.is_some()
    }
}

pub(super) fn invalid(words: &str) -> AppError {
    AppError::new(ErrorCode::InvalidValue, Class::Invalid, words)
}
