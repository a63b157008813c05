//! Compares records with the processes that exist.
//! A restart and a normal minute run this code.

use crate::bridges::ends::EndRecorder;
use crate::bridges::ends::Noticed;
use crate::bridges::stop::StopBridge;
use crate::locks::Locks;
use crate::supervise::watchers::Watchers;
use crate::tasks::Tasks;
use crate::{AppError, log_files};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use svc_domain::bridge::{Bridge, Stage};
use svc_domain::identity::{GoneBecause, ProcessIdentity, Verdict};
use svc_domain::observe::Fact;
use svc_ports::ProcessHost;
use svc_ports::process::{ExitReport, ProcessFacts};
use svc_shared::status::QuarantineCode;
use tracing::{error, info, warn};

/// Looks at an unreadable process table in a row before the row is held.
const PATIENCE: u32 = 3;

/// Pause after a pass that could not read the registry.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// The argument by which a launcher that waits for its order is known.
const LAUNCHER: &str = "__launch__";

/// Compares rows with processes, and has done what follows.
pub(crate) struct Reconciler {
    pub host: Arc<dyn ProcessHost>,
    pub locks: Arc<Locks>,
    pub ends: Arc<EndRecorder>,
    pub stop: Arc<StopBridge>,
    pub watchers: Arc<Watchers>,
    pub tasks: Tasks,
}

impl Reconciler {
    /// Runs a pass after every wake-up. Wake-ups coalesce.
    pub async fn run(&self) {
        run(self).await;
    }

    /// The pass at the start of the service.
    ///
    /// # Errors
    /// The registry cannot be read.
    pub async fn first_pass(&self) -> Result<(), AppError> {
        first_pass(self).await
    }

    /// Records the ends of processes that ended while nobody watched.
    /// For commands that change something while no service runs. Otherwise they would take a dead
    /// bridge for a live one.
    ///
    /// # Errors
    /// The registry cannot be read or written.
    pub async fn record_ends(&self) -> Result<(), AppError> {
        record_ends(self).await
    }
}

/// Runs a pass after every wake-up. Wake-ups coalesce.
async fn run(this: &Reconciler) {
    loop {
        tokio::select! {
            () = this.tasks.shutdown().cancelled() => return,
            () = this.ends.transitions.registry.wake.notified() => {}
        }
        if let Err(error) = pass(this, Pass::Later).await {
            let words = "records and processes could not be compared; tried again soon";
            if error.may_pass() {
                warn!(error = %error, "{words}");
            } else {
                error!(error = %error, "{words}");
            }
            // The wake-up is used up: what it told of would stay unseen.
            this.ends.transitions.registry.wake.notify_one();
            tokio::select! {
                () = this.tasks.shutdown().cancelled() => return,
                () = tokio::time::sleep(AFTER_FAILURE) => {}
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Nothing was watched before.
    First,
    Later,
}

/// The pass at the start of the service.
async fn first_pass(this: &Reconciler) -> Result<(), AppError> {
    pass(this, Pass::First).await?;
    correct_wrong_ends(this).await
}

async fn pass(this: &Reconciler, pass: Pass) -> Result<(), AppError> {
    this.ends.transitions.registry.refresh().await?;
    let live = this.ends.transitions.registry.copies.live();
    this.watchers.keep(&live);
    hold_conflicts(this, &live).await?;
    let mut rebooted = 0_u32;
    for bridge in &live {
        if this.watchers.terminator.under_way.contains(&bridge.id) {
            continue;
        }
        match look(this, bridge, pass).await {
            Ok(Looked::Done) => {}
            Ok(Looked::Rebooted) => rebooted += 1,
            Err(error) => {
                warn!(bridge.id = %bridge.id, error = %error, "a record was not compared");
            }
        }
    }
    if rebooted > 0 {
        info!("the machine was restarted: {rebooted} bridges ended with it and can be resumed");
    }
    Ok(())
}

/// What a command does before it changes anything while no service runs.
/// Ends that nobody has recorded. What lives is left to the next service.
async fn record_ends(this: &Reconciler) -> Result<(), AppError> {
    for bridge in &this.ends.transitions.registry.live().await? {
        let gone_by = bridge.process.as_ref().map(|identity| this.host.probe(identity));
        match gone_by {
            None => unfinished_launch(this, bridge).await?,
            Some(Verdict::Gone(GoneBecause::OtherBoot)) => {
                this.ends.record(bridge, Noticed::HostRestarted).await?;
            }
            Some(Verdict::Gone(GoneBecause::NoProcess | GoneBecause::Reused)) => {
                gone(this, bridge, Pass::First).await?;
            }
            Some(Verdict::Same | Verdict::Unknown) => {}
        }
    }
    Ok(())
}

enum Looked {
    Done,
    Rebooted,
}

async fn look(this: &Reconciler, bridge: &Bridge, pass: Pass) -> Result<Looked, AppError> {
    let Some(identity) = &bridge.process else {
        unfinished_launch(this, bridge).await?;
        return Ok(Looked::Done);
    };
    match this.host.probe(identity) {
        Verdict::Same => {
            this.watchers.saw_known(&bridge.id);
            alive(this, bridge, identity).await?;
        }
        Verdict::Gone(GoneBecause::OtherBoot) => {
            this.ends.record(bridge, Noticed::HostRestarted).await?;
            return Ok(Looked::Rebooted);
        }
        Verdict::Gone(GoneBecause::NoProcess | GoneBecause::Reused) => {
            this.watchers.saw_known(&bridge.id);
            gone(this, bridge, pass).await?;
        }
        Verdict::Unknown => {
            if this.watchers.saw_unknown(&bridge.id) >= PATIENCE {
                let fact = Fact::Doubt(QuarantineCode::IdentityUnknown);
                this.ends.transitions.observe(&bridge.id, bridge.generation, fact).await?;
            }
        }
    }
    Ok(Looked::Done)
}

async fn alive(
    this: &Reconciler,
    bridge: &Bridge,
    identity: &ProcessIdentity,
) -> Result<(), AppError> {
    // What a stop could not prove, the table of processes alone does not prove either: the hold
    // would come and go for ever.
    if bridge.quarantine == Some(QuarantineCode::IdentityUnknown)
        && this.watchers.terminator.is_proven(bridge, identity).await
    {
        this.ends.transitions.observe(&bridge.id, bridge.generation, Fact::Certain).await?;
    }
    let Some(live) = bridge.live() else { return Ok(()) };
    if this.watchers.watches(&bridge.id, bridge.generation) && !live.stop_requested {
        return Ok(());
    }
    if live.stop_requested && bridge.doubt().is_none() {
        return finish_stop(this, bridge).await;
    }
    match live.stage {
        Stage::Launching { .. } => {
            // With the lock in hand nobody is launching: whoever began has died.
            let Some(_lock) = this.locks.try_project(&bridge.cwd).await else { return Ok(()) };
            if !is_agent(this, identity) {
                wake_after(this, identity.clone());
                return Ok(());
            }
            this.ends.transitions.observe(&bridge.id, bridge.generation, Fact::TakenOver).await?;
        }
        Stage::Registering { .. } if !this.ends.transitions.registry.copies.owns(bridge) => {
            this.ends.transitions.observe(&bridge.id, bridge.generation, Fact::TakenOver).await?;
        }
        Stage::Registering { .. } | Stage::Ready => {}
    }
    this.watchers.watch(&bridge.id, bridge.generation);
    Ok(())
}

/// Whether the process has become the agent.
/// A launcher that was never told to go ends by itself, and one that is just ending shows no
/// arguments: nothing is decided until it is gone.
fn is_agent(this: &Reconciler, identity: &ProcessIdentity) -> bool {
    this.host.inspect(identity.pid).is_some_and(|facts| {
        &facts.identity == identity && !facts.argv.is_empty() && !is_launcher(&facts)
    })
}

fn is_launcher(facts: &ProcessFacts) -> bool {
    facts.argv.get(1).is_some_and(|argument| argument == LAUNCHER)
}

fn wake_after(this: &Reconciler, identity: ProcessIdentity) {
    let exited = this.host.exited(&identity);
    let (wake, tasks) = (Arc::clone(&this.ends.transitions.registry.wake), this.tasks.clone());
    this.tasks.spawn(async move {
        tokio::select! {
            _ = exited => wake.notify_one(),
            () = tasks.shutdown().cancelled() => {}
        }
    });
}

/// A stop whose intent is recorded and whose process lives.
/// Whoever began it has died.
async fn finish_stop(this: &Reconciler, bridge: &Bridge) -> Result<(), AppError> {
    let Some(lock) = this.locks.try_project(&bridge.cwd).await else {
        this.watchers.watch(&bridge.id, bridge.generation);
        return Ok(());
    };
    let (stop, bridge) = (Arc::clone(&this.stop), bridge.clone());
    this.tasks.spawn(async move {
        if let Err(error) = stop.finish(&bridge).await {
            warn!(bridge.id = %bridge.id, error = %error, "an interrupted stop was not finished");
        }
        drop(lock);
    });
    Ok(())
}

/// The process of a live record is gone, and no watcher of this process saw it go.
async fn gone(this: &Reconciler, bridge: &Bridge, pass: Pass) -> Result<(), AppError> {
    if pass == Pass::Later && this.watchers.watches(&bridge.id, bridge.generation) {
        return Ok(());
    }
    // Another process may be stopping it right now; then it records the end.
    let Some(_lock) = this.locks.try_project(&bridge.cwd).await else { return Ok(()) };
    let Some(current) = this.ends.transitions.registry.live_generation(bridge).await? else {
        return Ok(());
    };
    let noticed = match (current.live().map(|live| live.stage), pass) {
        (Some(Stage::Launching { .. }), _) => Noticed::LaunchInterrupted,
        (_, Pass::First) => Noticed::FoundGone,
        (_, Pass::Later) => Noticed::Exited(ExitReport::default()),
    };
    this.ends.record(&current, noticed).await?;
    Ok(())
}

/// A record that was written before its launch and has no identity.
async fn unfinished_launch(this: &Reconciler, bridge: &Bridge) -> Result<(), AppError> {
    // Somebody holds the lock: it is being launched right now.
    let Some(_lock) = this.locks.try_project(&bridge.cwd).await else { return Ok(()) };
    let current = this.ends.transitions.registry.live_generation(bridge).await?;
    let Some(current) = current.filter(|bridge| bridge.process.is_none()) else { return Ok(()) };
    let found = match &current.launch {
        Some(launch) => {
            let (host, id) = (Arc::clone(&this.host), launch.id.clone());
            tokio::task::spawn_blocking(move || host.find_launch(&id))
                .await
                .map_err(AppError::internal)?
        }
        None => None,
    };
    if let Some(facts) = found {
        if is_launcher(&facts) {
            wake_after(this, facts.identity);
            return Ok(());
        }
        let fact = Fact::Held { agent: facts.identity, keeper: current.keeper.clone() };
        this.ends.transitions.observe(&current.id, current.generation, fact).await?;
        this.ends.transitions.observe(&current.id, current.generation, Fact::TakenOver).await?;
        this.watchers.watch(&current.id, current.generation);
        return Ok(());
    }
    if let Some(launcher) = waiting_launcher(this, &current) {
        wake_after(this, launcher);
        return Ok(());
    }
    this.ends.record(&current, Noticed::LaunchInterrupted).await?;
    Ok(())
}

/// The launcher of this record, if that very process still waits.
/// Its identity file must name it; a file that names anything else is ignored.
fn waiting_launcher(this: &Reconciler, bridge: &Bridge) -> Option<ProcessIdentity> {
    let set = log_files::set_of(&this.ends.config, bridge)?;
    let facts = this.host.inspect(set.launched_pid()?)?;
    is_launcher(&facts).then_some(facts.identity)
}

/// Two rows that name one process.
/// The one whose launch the process carries is right.
async fn hold_conflicts(this: &Reconciler, live: &[Bridge]) -> Result<(), AppError> {
    let mut claims: HashMap<&ProcessIdentity, Vec<&Bridge>> = HashMap::new();
    for bridge in live {
        if let Some(process) = &bridge.process {
            claims.entry(process).or_default().push(bridge);
        }
    }
    for (identity, bridges) in claims {
        if bridges.len() < 2 {
            if let [bridge] = bridges.as_slice()
                && bridge.quarantine == Some(QuarantineCode::IdentityConflict)
            {
                this.ends.transitions.observe(&bridge.id, bridge.generation, Fact::Certain).await?;
            }
            continue;
        }
        for bridge in bridges {
            let Some(launch) = &bridge.launch else { continue };
            let (host, id) = (Arc::clone(&this.host), launch.id.clone());
            let carrier = tokio::task::spawn_blocking(move || host.find_launch(&id))
                .await
                .map_err(AppError::internal)?;
            if carrier.is_none_or(|facts| &facts.identity != identity) {
                let fact = Fact::Doubt(QuarantineCode::IdentityConflict);
                this.ends.transitions.observe(&bridge.id, bridge.generation, fact).await?;
            }
        }
    }
    Ok(())
}

/// Rows that were believed ended although their very process lives.
async fn correct_wrong_ends(this: &Reconciler) -> Result<(), AppError> {
    for bridge in this.ends.transitions.registry.copies.bridges() {
        let Some(identity) = bridge.process.as_ref().filter(|_| !bridge.is_live()) else {
            continue;
        };
        if this.host.probe(identity) == Verdict::Same {
            error!(
                bridge.id = %bridge.id,
                "bridge {} was recorded as ended, but its process lives; corrected",
                bridge.id.short()
            );
            this.ends.transitions.observe(&bridge.id, bridge.generation, Fact::FoundAlive).await?;
            match this.ends.transitions.registry.live_generation(&bridge).await? {
                // The stop that its record tells of has not been carried out.
                Some(current) if current.intentional_stop() => finish_stop(this, &current).await?,
                Some(_) | None => this.watchers.watch(&bridge.id, bridge.generation),
            }
        }
    }
    Ok(())
}
