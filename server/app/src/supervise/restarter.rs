//! Starts ended bridges again when their restart is due.
//!
//! The records say what is due and when; one timer waits for the earliest. Whoever starts the
//! service after it was killed finds the same records.

use crate::agent::Agent;
use crate::bridges::restart_rules::rules;
use crate::bridges::spawn::Starter;
use crate::bridges::transition::{Changed, Transitions, chance};
use crate::nudge::SAFETY_TICK;
use crate::tasks::Tasks;
use crate::{AppError, Class};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use svc_agent::login::Login;
use svc_agent::version::AgentVersion;
use svc_config::Config;
use svc_domain::bridge::Bridge;
use svc_domain::decide::Command;
use svc_domain::observe::Fact;
use svc_domain::restart::{AT_ONCE, Due, due, is_starting, postponed};
use svc_shared::error::ErrorCode;
use svc_shared::ids::InstanceId;
use svc_store::Cap;
use svc_watch::{Pace, Watcher};
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::{info, warn};

/// Pause after a result could not be written.
const AFTER_FAILURE: Duration = Duration::from_secs(2);

/// What a row says while its restart waits for the login.
const LOGGED_OUT: &str = "the agent is not logged in; this bridge is restarted after the login \
                          (`claude auth login`)";

/// Starts ended bridges again when their restart is due.
pub(crate) struct Restarter {
    pub config: Arc<Config>,
    pub agent: Arc<Agent>,
    pub starter: Arc<Starter>,
    pub watcher: Watcher,
    pub tasks: Tasks,
    pub progress: Arc<Progress>,
}

/// What is under way in this process.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Rows that are being started.
    /// Also rows whose result could not be written, until when.
    busy: Mutex<HashMap<InstanceId, Option<Instant>>>,
    /// The agent said that it is logged out.
    paused: Mutex<bool>,
    /// Something ended.
    wake: Notify,
    /// How many may start at the same time; 0 is the usual number.
    at_once: AtomicUsize,
}

impl Progress {
    /// Lets so many bridges start at the same time.
    pub fn allow(&self, at_once: usize) {
        self.at_once.store(at_once, Ordering::Relaxed);
        self.wake.notify_one();
    }

    fn at_once(&self) -> usize {
        match self.at_once.load(Ordering::Relaxed) {
            0 => AT_ONCE,
            more => more,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is to be done now, and when to look again.
#[derive(Default)]
struct Plan {
    restarts: Vec<Bridge>,
    steady: Vec<Bridge>,
    next: Option<Duration>,
}

impl Restarter {
    /// Runs until the service ends.
    pub async fn run(self: &Arc<Self>) {
        let mut changes = self.transitions().registry.copies.changes();
        let mut login = self.agent.cli().login_changes();
        let home = self.agent.home().ok();
        let mut credentials =
            home.map(|home| self.watcher.file(&home.credentials_file(), Pace::every(SAFETY_TICK)));
        loop {
            changes.mark_unchanged();
            let plan = self.plan();
            for bridge in &plan.steady {
                self.note(bridge, Fact::Steady).await;
            }
            let is_paused = *lock(&self.progress.paused);
            for bridge in plan.restarts {
                match is_paused {
                    true if bridge.notice.as_deref() == Some(LOGGED_OUT) => {}
                    true => self.note(&bridge, Fact::Notice(Some(LOGGED_OUT.to_owned()))).await,
                    false => self.begin(bridge),
                }
            }
            let timer = async {
                match plan.next {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.tasks.shutdown().cancelled() => return,
                _ = changes.changed() => {}
                () = timer => {}
                () = self.progress.wake.notified() => {}
                Ok(()) = login.changed(), if is_paused => {
                    *lock(&self.progress.paused) = is_logged_out(&self.agent.cli().login());
                }
                () = changed(credentials.as_mut()), if is_paused => {
                    let login = self.agent.cli().login_now().await;
                    *lock(&self.progress.paused) = is_logged_out(&login);
                }
            }
        }
    }

    fn transitions(&self) -> &Transitions {
        &self.starter.launcher.transitions
    }

    /// What is due now.
    /// The number of simultaneous starts is taken from the records, so that it also holds for
    /// starts that an earlier service began.
    fn plan(&self) -> Plan {
        let now = self.transitions().clock.now();
        let copies = &self.transitions().registry.copies;
        let is_paused = *lock(&self.progress.paused);
        let mut busy = lock(&self.progress.busy);
        busy.retain(|_, until| until.is_none_or(|until| until > Instant::now()));
        let starting =
            copies.count_live(|bridge| is_starting(bridge) && !busy.contains_key(&bridge.id));
        let own = busy.values().filter(|until| until.is_none()).count();
        let mut free = self.progress.at_once().saturating_sub(starting + own);
        let mut plan = Plan::default();
        let mut wait = |wait: Duration| {
            plan.next = Some(plan.next.map_or(wait, |next| next.min(wait)));
        };
        for until in busy.values().flatten() {
            wait(until.saturating_duration_since(Instant::now()));
        }
        let mut ready: Vec<Bridge> = Vec::new();
        copies.each(|bridge| {
            if bridge.restarts.is_idle() || busy.contains_key(&bridge.id) {
                return;
            }
            match due(bridge, &rules(&self.config, &bridge.project), now) {
                None => {}
                Some((Duration::ZERO, Due::Restart)) => ready.push(bridge.clone()),
                Some((Duration::ZERO, Due::Steady)) => plan.steady.push(bridge.clone()),
                Some((later, _)) => wait(later),
            }
        });
        // Who has waited longest comes first; the others come when a start has ended.
        ready.sort_by_key(|bridge| bridge.restarts.next_at);
        if is_paused {
            free = ready.len();
        }
        ready.truncate(free);
        for bridge in ready.iter().filter(|_| !is_paused) {
            busy.insert(bridge.id.clone(), None);
        }
        plan.restarts = ready;
        plan
    }

    /// Records a fact; a failure is tried again soon.
    async fn note(&self, bridge: &Bridge, fact: Fact) {
        if let Err(error) = self.transitions().observe(&bridge.id, bridge.generation, fact).await {
            warn!(bridge.id = %bridge.id, error = %error, "a record was not written");
            self.rest(&bridge.id);
        }
    }

    fn rest(&self, id: &InstanceId) {
        lock(&self.progress.busy).insert(id.clone(), Some(Instant::now() + AFTER_FAILURE));
    }

    fn begin(self: &Arc<Self>, bridge: Bridge) {
        let this = Arc::clone(self);
        self.tasks.spawn(async move {
            match this.restart(&bridge).await {
                Ok(()) => drop(lock(&this.progress.busy).remove(&bridge.id)),
                Err(error) => {
                    warn!(bridge.id = %bridge.id, error = %error, "a restart was not recorded");
                    this.rest(&bridge.id);
                }
            }
            this.progress.wake.notify_one();
        });
    }

    /// Starts the bridge, or records why and when not.
    async fn restart(&self, bridge: &Bridge) -> Result<(), AppError> {
        let login = self.agent.cli().login_now().await;
        if is_logged_out(&login) {
            *lock(&self.progress.paused) = true;
            return Ok(());
        }
        if let Some(why) = self.too_old().await {
            return self.call_off(bridge, why).await;
        }
        match self.starter.restart(&bridge.id).await {
            Ok(result) if result.outcome.created => {
                self.transitions().registry.copies.count_restart(&bridge.project);
                info!(
                    bridge.id = %bridge.id,
                    project.name = %bridge.project,
                    "bridge {} is restarted by itself, attempt {}",
                    bridge.id.short(),
                    bridge.restarts.attempt.saturating_add(1)
                );
                Ok(())
            }
            Ok(result) => {
                let why = result.outcome.reason.unwrap_or_else(|| "nothing was started".to_owned());
                self.call_off(bridge, why).await
            }
            Err(error) if may_change(&error) => self.postpone(bridge, &error).await,
            Err(error) => self.call_off(bridge, error.message).await,
        }
    }

    /// Why the agent may not be started by itself, if it is too old.
    async fn too_old(&self) -> Option<String> {
        let least = &self.config.claude.min_version;
        let floor: AgentVersion = least.trim_start_matches('v').parse().ok()?;
        let (_, version) = self.agent.cli().version_now().await.ok()?;
        (version < floor)
            .then(|| format!("the agent is {version}, below {least}; update it (`claude update`)"))
    }

    async fn postpone(&self, bridge: &Bridge, error: &AppError) -> Result<(), AppError> {
        info!(bridge.id = %bridge.id, error = %error, "a restart is tried again later");
        let now = self.transitions().clock.now();
        let rules = rules(&self.config, &bridge.project);
        let later = postponed(&bridge.restarts, &rules, chance()?, now);
        self.command(bridge, Command::Postpone(later)).await
    }

    async fn call_off(&self, bridge: &Bridge, why: String) -> Result<(), AppError> {
        warn!(bridge.id = %bridge.id, "bridge {} is not restarted: {why}", bridge.id.short());
        self.command(bridge, Command::CallOff { why: Some(format!("not restarted: {why}")) }).await
    }

    /// A row that is not due any more has been decided about by somebody else.
    async fn command(&self, bridge: &Bridge, command: Command) -> Result<(), AppError> {
        match self.transitions().command(&bridge.id, command, Cap::default()).await? {
            Changed::Now(_)
            | Changed::Late
            | Changed::Corrupt
            | Changed::Refused(_)
            | Changed::Occupied
            | Changed::CapReached => Ok(()),
        }
    }
}

fn is_logged_out(login: &Login) -> bool {
    matches!(login, Login::Answered { logged_in: false, .. })
}

/// Whether the same start may succeed later without anybody's help.
fn may_change(error: &AppError) -> bool {
    match error.class {
        Class::Unavailable | Class::Storage | Class::Internal | Class::Upstream => true,
        Class::Conflict => error.code == ErrorCode::Capacity,
        Class::Invalid | Class::NotFound | Class::Forbidden | Class::TooLarge => false,
    }
}

async fn changed(subscription: Option<&mut svc_watch::Subscription>) {
    match subscription {
        Some(subscription) => drop(subscription.changed().await),
        None => std::future::pending().await,
    }
}
