//! Compares records with the processes that exist. A restart and a normal minute run this code.

use crate::bridges::ends::Noticed;
use crate::{App, AppError};
use std::collections::HashMap;
use std::time::Duration;
use svc_domain::bridge::{Bridge, Stage};
use svc_domain::identity::{GoneBecause, ProcessIdentity, Verdict};
use svc_domain::observe::Fact;
use svc_ports::process::{ExitReport, ProcessFacts};
use svc_shared::status::QuarantineCode;
use tracing::{error, info, warn};

/// Looks at an unreadable process table in a row before the row is held.
const PATIENCE: u32 = 3;

/// Pause after a pass that could not read the registry.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// The argument by which a launcher that waits for its order is known.
const LAUNCHER: &str = "__launch__";

/// Runs a pass after every wake-up. Wake-ups coalesce.
pub(super) async fn run(app: App) {
    loop {
        tokio::select! {
            () = app.shutdown().cancelled() => return,
            () = app.registry().wake.notified() => {}
        }
        if let Err(error) = pass(&app, Pass::Later).await {
            error!(error = %error, "records and processes could not be compared; tried again soon");
            // The wake-up is used up: what it told of would stay unseen.
            app.registry().wake.notify_one();
            tokio::select! {
                () = app.shutdown().cancelled() => return,
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
pub(super) async fn first_pass(app: &App) -> Result<(), AppError> {
    pass(app, Pass::First).await?;
    correct_wrong_ends(app).await
}

async fn pass(app: &App, pass: Pass) -> Result<(), AppError> {
    app.registry().refresh().await?;
    let live = app.copies().live();
    app.watchers().keep(&live);
    hold_conflicts(app, &live).await?;
    let mut rebooted = 0_u32;
    for bridge in &live {
        if app.terminator().under_way.contains(&bridge.id) {
            continue;
        }
        match look(app, bridge, pass).await {
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

/// What a command does before it changes anything while no service runs: ends that nobody has
/// recorded. What lives is left to the next service.
pub(super) async fn record_ends(app: &App) -> Result<(), AppError> {
    for bridge in &app.registry().live().await? {
        let gone_by = bridge.process.as_ref().map(|identity| app.host().probe(identity));
        match gone_by {
            None => unfinished_launch(app, bridge).await?,
            Some(Verdict::Gone(GoneBecause::OtherBoot)) => {
                app.ends().record(bridge, Noticed::HostRestarted).await?;
            }
            Some(Verdict::Gone(GoneBecause::NoProcess | GoneBecause::Reused)) => {
                gone(app, bridge, Pass::First).await?;
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

async fn look(app: &App, bridge: &Bridge, pass: Pass) -> Result<Looked, AppError> {
    let Some(identity) = &bridge.process else {
        unfinished_launch(app, bridge).await?;
        return Ok(Looked::Done);
    };
    match app.host().probe(identity) {
        Verdict::Same => {
            app.watchers().saw_known(&bridge.id);
            alive(app, bridge, identity).await?;
        }
        Verdict::Gone(GoneBecause::OtherBoot) => {
            app.ends().record(bridge, Noticed::HostRestarted).await?;
            return Ok(Looked::Rebooted);
        }
        Verdict::Gone(GoneBecause::NoProcess | GoneBecause::Reused) => {
            app.watchers().saw_known(&bridge.id);
            gone(app, bridge, pass).await?;
        }
        Verdict::Unknown => {
            if app.watchers().saw_unknown(&bridge.id) >= PATIENCE {
                let fact = Fact::Doubt(QuarantineCode::IdentityUnknown);
                app.transitions().observe(&bridge.id, bridge.generation, fact).await?;
            }
        }
    }
    Ok(Looked::Done)
}

async fn alive(app: &App, bridge: &Bridge, identity: &ProcessIdentity) -> Result<(), AppError> {
    if let Some(QuarantineCode::IdentityUnknown | QuarantineCode::Unkillable) = bridge.quarantine {
        let still_unkillable = bridge.quarantine == Some(QuarantineCode::Unkillable);
        if !still_unkillable {
            app.transitions().observe(&bridge.id, bridge.generation, Fact::Certain).await?;
        }
    }
    let Some(live) = bridge.live() else { return Ok(()) };
    if app.watchers().watches(&bridge.id, bridge.generation) && !live.stop_requested {
        return Ok(());
    }
    if live.stop_requested && bridge.quarantine.is_none() {
        return finish_stop(app, bridge).await;
    }
    match live.stage {
        Stage::Launching { .. } => {
            // With the lock in hand nobody is launching: whoever began has died.
            let Some(_lock) = app.locks().try_project(&bridge.cwd).await else { return Ok(()) };
            if !is_agent(app, identity) {
                wake_after(app, identity.clone());
                return Ok(());
            }
            app.transitions().observe(&bridge.id, bridge.generation, Fact::TakenOver).await?;
        }
        Stage::Registering { .. } if !app.copies().owns(bridge) => {
            app.transitions().observe(&bridge.id, bridge.generation, Fact::TakenOver).await?;
        }
        Stage::Registering { .. } | Stage::Ready => {}
    }
    app.watch_bridge(&bridge.id, bridge.generation);
    Ok(())
}

/// Whether the process has become the agent. A launcher that was never told to go ends by itself,
/// and one that is just ending shows no arguments: nothing is decided until it is gone.
fn is_agent(app: &App, identity: &ProcessIdentity) -> bool {
    app.host().inspect(identity.pid).is_some_and(|facts| {
        &facts.identity == identity && !facts.argv.is_empty() && !is_launcher(&facts)
    })
}

fn is_launcher(facts: &ProcessFacts) -> bool {
    facts.argv.get(1).is_some_and(|argument| argument == LAUNCHER)
}

fn wake_after(app: &App, identity: ProcessIdentity) {
    let (app, exited) = (app.clone(), app.host().exited(&identity));
    app.clone().tasks().spawn(async move {
        tokio::select! {
            _ = exited => app.registry().wake.notify_one(),
            () = app.shutdown().cancelled() => {}
        }
    });
}

/// A stop whose intent is recorded and whose process lives: whoever began it has died.
async fn finish_stop(app: &App, bridge: &Bridge) -> Result<(), AppError> {
    let Some(lock) = app.locks().try_project(&bridge.cwd).await else {
        app.watch_bridge(&bridge.id, bridge.generation);
        return Ok(());
    };
    let (app, bridge) = (app.clone(), bridge.clone());
    app.clone().tasks().spawn(async move {
        if let Err(error) = app.finish_stop(&bridge).await {
            warn!(bridge.id = %bridge.id, error = %error, "an interrupted stop was not finished");
        }
        drop(lock);
    });
    Ok(())
}

/// The process of a live record is gone, and no watcher of this process saw it go.
async fn gone(app: &App, bridge: &Bridge, pass: Pass) -> Result<(), AppError> {
    if pass == Pass::Later && app.watchers().watches(&bridge.id, bridge.generation) {
        return Ok(());
    }
    // Another process may be stopping it right now; then it records the end.
    let Some(_lock) = app.locks().try_project(&bridge.cwd).await else { return Ok(()) };
    let Some(current) = app.registry().live_generation(bridge).await? else { return Ok(()) };
    let noticed = match (current.live().map(|live| live.stage), pass) {
        (Some(Stage::Launching { .. }), _) => Noticed::LaunchInterrupted,
        (_, Pass::First) => Noticed::FoundGone,
        (_, Pass::Later) => Noticed::Exited(ExitReport::default()),
    };
    app.ends().record(&current, noticed).await?;
    Ok(())
}

/// A record that was written before its launch and has no identity.
async fn unfinished_launch(app: &App, bridge: &Bridge) -> Result<(), AppError> {
    // Somebody holds the lock: it is being launched right now.
    let Some(_lock) = app.locks().try_project(&bridge.cwd).await else { return Ok(()) };
    let current = app.registry().live_generation(bridge).await?;
    let Some(current) = current.filter(|bridge| bridge.process.is_none()) else { return Ok(()) };
    let found = match &current.launch {
        Some(launch) => {
            let (host, id) = (app.host_shared(), launch.id.clone());
            tokio::task::spawn_blocking(move || host.find_launch(&id))
                .await
                .map_err(AppError::internal)?
        }
        None => None,
    };
    if let Some(facts) = found {
        if is_launcher(&facts) {
            wake_after(app, facts.identity);
            return Ok(());
        }
        let fact = Fact::Held(facts.identity);
        app.transitions().observe(&current.id, current.generation, fact).await?;
        app.transitions().observe(&current.id, current.generation, Fact::TakenOver).await?;
        app.watch_bridge(&current.id, current.generation);
        return Ok(());
    }
    if let Some(launcher) = waiting_launcher(app, &current) {
        wake_after(app, launcher);
        return Ok(());
    }
    app.ends().record(&current, Noticed::LaunchInterrupted).await?;
    Ok(())
}

/// The launcher of this record, if its identity file names one and that very process still waits.
/// A file that names anything else is not believed.
fn waiting_launcher(app: &App, bridge: &Bridge) -> Option<ProcessIdentity> {
    let set = app.log_set(&bridge.launch.as_ref()?.log_stem)?;
    let facts = app.host().inspect(set.launched_pid()?)?;
    is_launcher(&facts).then_some(facts.identity)
}

/// Two rows that name one process: the one whose launch the process carries is right.
async fn hold_conflicts(app: &App, live: &[Bridge]) -> Result<(), AppError> {
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
                app.transitions().observe(&bridge.id, bridge.generation, Fact::Certain).await?;
            }
            continue;
        }
        for bridge in bridges {
            let Some(launch) = &bridge.launch else { continue };
            let (host, id) = (app.host_shared(), launch.id.clone());
            let carrier = tokio::task::spawn_blocking(move || host.find_launch(&id))
                .await
                .map_err(AppError::internal)?;
            if carrier.is_none_or(|facts| &facts.identity != identity) {
                let fact = Fact::Doubt(QuarantineCode::IdentityConflict);
                app.transitions().observe(&bridge.id, bridge.generation, fact).await?;
            }
        }
    }
    Ok(())
}

/// Rows that were believed ended although their very process lives.
async fn correct_wrong_ends(app: &App) -> Result<(), AppError> {
    for bridge in app.copies().bridges() {
        let Some(identity) = bridge.process.as_ref().filter(|_| !bridge.is_live()) else {
            continue;
        };
        if app.host().probe(identity) == Verdict::Same {
            error!(
                bridge.id = %bridge.id,
                "bridge {} was recorded as ended, but its process lives; corrected",
                bridge.id.short()
            );
            app.transitions().observe(&bridge.id, bridge.generation, Fact::FoundAlive).await?;
            match app.registry().live_generation(&bridge).await? {
                // The stop that its record tells of has not been carried out.
                Some(current) if current.intentional_stop() => finish_stop(app, &current).await?,
                Some(_) | None => app.watch_bridge(&bridge.id, bridge.generation),
            }
        }
    }
    Ok(())
}
