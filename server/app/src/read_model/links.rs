//! The remote links of live bridges, as their watchers read them.
//!
//! Kept in memory only: after a restart of the service the watchers read the logs again.

use crate::log_files;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use svc_agent::debug_watch::recent_report;
use svc_config::Config;
use svc_domain::agent_log::report::{Link, LogReport, LoggedSession, Stage};
use svc_domain::bridge::Bridge;
use svc_shared::api;
use svc_shared::ids::InstanceId;
use tokio::sync::Notify;

/// Link and attached sessions of a generation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    pub link: Link,
    pub sessions: Vec<LoggedSession>,
}

impl Shown {
    /// What a log says, with the link as it is to be shown.
    pub fn of(report: &LogReport, link: &Link) -> Self {
        let attached = report.sessions().filter(|session| session.stage == Stage::Attached);
        Self { link: link.clone(), sessions: attached.cloned().collect() }
    }
}

/// The links that are known, and the bridges whose link wants a restart.
#[derive(Debug)]
pub(crate) struct Links {
    config: Arc<Config>,
    /// Whether this process watches bridges. Another one reads the ends of their logs.
    watches: bool,
    known: Mutex<HashMap<InstanceId, (u32, Shown)>>,
    to_restart: Mutex<HashMap<InstanceId, u32>>,
    wanted: Notify,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Links {
    pub fn new(config: Arc<Config>, watches: bool) -> Self {
        Self {
            config,
            watches,
            known: Mutex::default(),
            to_restart: Mutex::default(),
            wanted: Notify::new(),
        }
    }

    /// Sets what is known of a generation; tells whether that differs.
    pub fn set(&self, id: &InstanceId, generation: u32, shown: Shown) -> bool {
        let value = (generation, shown);
        let mut known = lock(&self.known);
        if known.get(id) == Some(&value) {
            return false;
        }
        known.insert(id.clone(), value);
        true
    }

    /// Forgets a generation that is not watched any more.
    pub fn forget(&self, id: &InstanceId, generation: u32) {
        let mut known = lock(&self.known);
        if known.get(id).is_some_and(|(of, _)| *of == generation) {
            known.remove(id);
        }
    }

    /// Link and sessions of a live bridge. Blocks in a process that does not watch.
    pub fn of(&self, bridge: &Bridge) -> Option<Shown> {
        if !bridge.is_live() {
            return None;
        }
        if !self.watches {
            let report = recent_report(&log_files::set_of(&self.config, bridge)?);
            return Some(Shown::of(&report, report.link()));
        }
        let known = lock(&self.known);
        let (generation, shown) = known.get(&bridge.id)?;
        (*generation == bridge.generation).then(|| shown.clone())
    }

    /// Asks for one restart of a generation.
    pub fn want_restart(&self, id: &InstanceId, generation: u32) {
        lock(&self.to_restart).insert(id.clone(), generation);
        self.wanted.notify_one();
    }

    /// Waits for generations to restart.
    pub async fn restarts(&self) -> Vec<(InstanceId, u32)> {
        loop {
            let wanted = std::mem::take(&mut *lock(&self.to_restart));
            if !wanted.is_empty() {
                return wanted.into_iter().collect();
            }
            self.wanted.notified().await;
        }
    }
}

/// The link as the record shows it.
pub(crate) fn link_record(shown: Option<&Shown>) -> api::link::Link {
    let Some(link) = shown.map(|shown| &shown.link) else { return api::link::Link::unknown() };
    api::link::Link {
        state: link.state.into(),
        since: link.since,
        reason: link.reason.clone(),
        source: link.source.map(Into::into),
    }
}
