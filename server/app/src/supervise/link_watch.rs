//! The remote link of one live generation: shown, told of, and healed.

use crate::read_model::links::Shown;
use crate::supervise::watchers::Watchers;
use std::sync::Arc;
use std::time::Duration;
use svc_domain::agent_log::report::{Link, LogReport};
use svc_domain::bridge::Bridge;
use svc_domain::effect::History;
use svc_domain::heal::{Done, Heal, judge, overdue_at};
use svc_domain::log_escape::quoted;
use svc_shared::Timestamp;
use svc_shared::events::EventName;
use svc_shared::ids::InstanceId;
use svc_shared::status::LinkState;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{info, warn};

/// Follows the link of one generation. Forgets it when it is dropped.
pub(super) struct LinkWatch {
    watchers: Arc<Watchers>,
    id: InstanceId,
    generation: u32,
    label: String,
    report: watch::Receiver<LogReport>,
    done: Done,
    /// Since when it is watched: an earlier loss was told of before.
    began: Timestamp,
    state: LinkState,
    heard_at: Option<Timestamp>,
    /// It was last seen lost.
    is_lost: bool,
    /// When silence ends the trust in the link.
    /// On the monotonic clock, which stands still while the host sleeps.
    silence: Option<Instant>,
    is_silent: bool,
    /// When a restart becomes due.
    restart: Option<Instant>,
    /// When a loss that goes on becomes worth a notification.
    overdue: Option<Instant>,
}

impl LinkWatch {
    pub fn new(
        watchers: &Arc<Watchers>,
        bridge: &Bridge,
        report: watch::Receiver<LogReport>,
    ) -> Self {
        Self {
            watchers: Arc::clone(watchers),
            id: bridge.id.clone(),
            generation: bridge.generation,
            label: bridge.label().to_owned(),
            report,
            done: Done::default(),
            began: watchers.transitions().clock.now(),
            state: LinkState::Unknown,
            heard_at: None,
            is_lost: false,
            silence: None,
            is_silent: false,
            restart: None,
            overdue: None,
        }
    }

    /// Waits until the link is to be judged again. Cancel-safe: nothing is taken.
    pub async fn due(&mut self) {
        let (silence, restart, overdue) = (self.silence, self.restart, self.overdue);
        tokio::select! {
            changed = self.report.changed() => if changed.is_err() {
                std::future::pending::<()>().await;
            },
            () = until(silence) => {
                self.silence = None;
                self.is_silent = true;
            }
            () = until(restart) => self.restart = None,
            () = until(overdue) => self.overdue = None,
        }
    }

    /// Shows the link as it is now, and does what is to be done about it.
    pub async fn judge(&mut self, this: &Arc<Watchers>) {
        let report = self.report.borrow_and_update().clone();
        let now = this.transitions().clock.now();
        let mut link = report.link().clone();
        if self.heard_at != link.heard_at || self.state != link.state {
            self.heard_at = link.heard_at;
            self.state = link.state;
            let end = link.silence_ends_trust_at();
            self.is_silent = end.is_some_and(|end| end <= now);
            self.silence = end.filter(|end| *end > now).map(|end| Instant::now() + end.since(now));
        }
        if self.is_silent && link.silence_ends_trust_at().is_some() {
            link = link.silenced(now);
        }
        self.remember(this, &link).await;
        self.tell_if_overdue(this, &link, now);
        let shown = Shown::of(&report, &link);
        self.show(this, shown).await;
        loop {
            let mode = this.config.claude.heal;
            match judge(mode, &link, report.activity().as_ref(), self.done, now) {
                Heal::Nothing => {
                    self.restart = None;
                    break;
                }
                Heal::Later(at) => {
                    let wait = at.since(now).max(Duration::from_secs(1));
                    self.restart = Some(Instant::now() + wait);
                    break;
                }
                Heal::Notify => {
                    self.done.notified = link.since;
                    if link.loss_seen_at().is_some_and(|seen| seen >= self.began) {
                        self.tell(this, link.reason.as_deref());
                    }
                }
                Heal::Restart => {
                    self.done.restarted = true;
                    info!(bridge.id = %self.id, "the link of bridge {} stays lost: it is restarted", self.id.short());
                    this.links.want_restart(&self.id, self.generation);
                }
            }
        }
    }

    /// Keeps a loss and its end in the history, each once.
    async fn remember(&mut self, this: &Arc<Watchers>, link: &Link) {
        let (kind, detail) = match (self.is_lost, link.state) {
            (false, LinkState::Down) => (History::LinkLost, link.reason.clone()),
            (true, LinkState::Up) => (History::LinkRestored, None),
            (true, LinkState::Down | LinkState::Unknown)
            | (false, LinkState::Up | LinkState::Unknown) => return,
        };
        self.is_lost = kind == History::LinkLost;
        // An earlier process of the service has kept what was there before this one.
        if self.is_lost && link.loss_seen_at().is_none_or(|seen| seen < self.began) {
            return;
        }
        if let Some(bridge) = this.registry().copies.bridge(&self.id) {
            this.transitions().remember(&bridge, kind, detail).await;
        }
    }

    async fn show(&self, this: &Arc<Watchers>, shown: Shown) {
        if !this.links.set(&self.id, self.generation, shown) {
            return;
        }
        let registry = this.registry();
        if let Some(bridge) = registry.copies.bridge(&self.id) {
            registry.copies.recheck_projects([bridge.project.clone()]);
            registry.publish().await;
        }
    }

    /// Tells once of a loss that the agent did not mend by itself within a while.
    fn tell_if_overdue(&mut self, this: &Arc<Watchers>, link: &Link, now: Timestamp) {
        let is_new = link.loss_seen_at().is_some_and(|seen| seen >= self.began);
        let due = is_new.then(|| overdue_at(this.config.claude.heal, link, self.done)).flatten();
        self.overdue = None;
        match due {
            None => {}
            Some(due) if due > now => {
                self.overdue = Some(Instant::now() + due.since(now).max(Duration::from_secs(1)));
            }
            Some(_) => {
                self.done.overdue = link.since;
                if let Some(bridge) = this.registry().copies.bridge(&self.id) {
                    this.transitions().tell(&bridge, EventName::ReconnectFailed);
                }
            }
        }
    }

    fn tell(&self, this: &Arc<Watchers>, reason: Option<&str>) {
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let text = format!(
            "The bridge {} has lost its remote link{reason}. It still runs and tries again by \
             itself.",
            quoted(&self.label)
        );
        warn!(bridge.id = %self.id, "{text}");
        this.launcher.read_model.notice("warn", "link_lost", &text);
    }
}

impl Drop for LinkWatch {
    fn drop(&mut self) {
        self.watchers.links.forget(&self.id, self.generation);
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
