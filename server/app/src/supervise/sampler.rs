//! Samples the live bridges, more slowly while no page is open (H106).
//!
//! Nothing is sampled while no bridge is live, or with `metrics.enabled` off. Each sample is
//! compared with the ceilings.

use crate::AppError;
use crate::bridges::family::Families;
use crate::bridges::spawn::Starter;
use crate::bridges::stop::StopBridge;
use crate::ops::Metrics;
use crate::ops::metrics::{Measured, cores};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use svc_config::CeilingAction;
use svc_domain::bridge::Bridge;
use svc_domain::ceiling::{Action, Ceilings, Load, Wanted, Watch, is_ours};
use svc_domain::identity::ProcessIdentity;
use svc_domain::observe::Fact;
use svc_domain::usage::{self, Tree};
use svc_process::meter::{Meter, Root};
use svc_shared::api::instances::ResumeRequest;
use svc_shared::ids::InstanceId;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::warn;

/// Looks between two counts of open files.
/// They cost more than everything else of a look.
const LOOKS_PER_COUNT: u32 = 15;

/// The distance between two looks while nobody listens (`http-api` §4.1).
/// A sample of then is still fresh when the next one is taken: who asks once, and who scrapes,
/// finds figures.
fn unwatched(poll: Duration) -> Duration {
    poll * 5 / 2
}

/// The look before, of the same process.
struct Before {
    identity: ProcessIdentity,
    at: Instant,
    tree: Tree,
    /// Something was measured already: the next window is a whole one.
    is_measured: bool,
}

/// Measures the live bridges and holds them against their ceilings.
#[derive(Clone)]
pub(crate) struct Sampler {
    pub metrics: Arc<Metrics>,
    pub families: Arc<Families>,
    pub stop: Arc<StopBridge>,
    pub starter: Arc<Starter>,
}

impl Sampler {
    /// Runs until the service ends.
    ///
    /// `replaced` tells when values of the configuration were replaced.
    pub async fn run(&self, replaced: watch::Receiver<()>) {
        run(self, replaced).await;
    }
}

async fn run(this: &Sampler, mut replaced: watch::Receiver<()>) {
    // Read anew at each look: the distances may be changed meanwhile.
    let settings = || &this.metrics.config.metrics;
    let mut kept: Option<(bool, Meter)> = None;
    let mut changes = this.metrics.copies.changes();
    let mut before: HashMap<InstanceId, Before> = HashMap::new();
    let mut watches: HashMap<InstanceId, (u32, Watch)> = HashMap::new();
    let mut open_files: HashMap<InstanceId, u64> = HashMap::new();
    let mut looks = 0_u32;
    let mut due = Instant::now();
    loop {
        changes.mark_unchanged();
        replaced.mark_unchanged();
        if !settings().enabled {
            before.clear();
            watches.clear();
            open_files.clear();
            this.metrics.samples.keep(|_| false);
            tokio::select! {
                () = this.starter.requests.tasks.shutdown().cancelled() => return,
                changed = replaced.changed() => if changed.is_err() { return },
            }
            continue;
        }
        let live: Vec<(Bridge, Root)> =
            this.metrics.copies.live().into_iter().filter_map(with_root).collect();
        before.retain(|id, _| live.iter().any(|(bridge, _)| bridge.id == *id));
        let is_live = |id: &InstanceId| live.iter().any(|(bridge, _)| bridge.id == *id);
        this.metrics.samples.keep(is_live);
        this.families.keep(is_live);
        watches.retain(|id, _| is_live(id));
        open_files.retain(|id, _| is_live(id));
        if live.is_empty() {
            tokio::select! {
                () = this.starter.requests.tasks.shutdown().cancelled() => return,
                _ = changes.changed() => continue,
            }
        }
        let with_disk = settings().show_disk;
        let mut meter = match kept.take() {
            Some((same, meter)) if same == with_disk => meter,
            Some(_) | None => match Meter::open(with_disk) {
                Ok(meter) => meter,
                Err(error) => {
                    warn!(%error, "use of processor and memory cannot be measured");
                    return;
                }
            },
        };
        let roots: Vec<Root> = live.iter().map(|(_, root)| root.clone()).collect();
        let is_counting =
            this.metrics.config.ceilings.open_files > 0 && looks.is_multiple_of(LOOKS_PER_COUNT);
        looks = looks.wrapping_add(1);
        let look = tokio::task::spawn_blocking(move || {
            let at = Instant::now();
            let trees = meter.measure(&roots);
            let files = if is_counting { meter.open_files(&roots) } else { Vec::new() };
            (meter, at, trees, files)
        });
        let Ok((returned, at, trees, files)) = look.await else {
            warn!("measuring ended: see the message about the panic");
            return;
        };
        kept = Some((with_disk, returned));
        for ((bridge, _), count) in live.iter().zip(files) {
            if let Some(count) = count {
                open_files.insert(bridge.id.clone(), count);
            }
        }
        for ((bridge, _), tree) in live.iter().zip(&trees) {
            let Some(tree) = tree else { continue };
            this.families.saw(bridge, tree);
            let load = load_of(tree, open_files.get(&bridge.id).copied());
            judge(this, bridge, load, &mut watches);
        }
        let measured = compare(&mut before, live, trees, at, settings().poll);
        if !measured.is_empty() {
            let now = this.starter.launcher.transitions.clock.now();
            this.metrics.samples.add(measured, now);
            this.starter.launcher.read_model.sampled(now, || this.metrics.frame());
        }
        // A bridge that was never measured has its first figure after a short window.
        let is_watched = this.starter.launcher.read_model.are_samples_wanted();
        if due <= at {
            due = at + if is_watched { settings().poll } else { unwatched(settings().poll) };
        }
        let is_one_new = before.values().any(|before| !before.is_measured);
        let next = match is_one_new {
            true => due.min(at + settings().sample_interval),
            false => due,
        };
        tokio::select! {
            () = this.starter.requests.tasks.shutdown().cancelled() => return,
            () = tokio::time::sleep_until(next) => {}
            _ = replaced.changed() => {}
            // Whoever comes does not wait out the long distance.
            () = this.starter.launcher.read_model.samples_wanted(), if !is_watched => {
                due = due.min(at + settings().poll);
            }
        }
    }
}

fn load_of(tree: &Tree, open_files: Option<u64>) -> Load {
    let alive = || tree.values().filter(|counters| counters.is_alive);
    Load {
        processes: u64::try_from(alive().count()).unwrap_or(u64::MAX),
        memory_bytes: alive().fold(0, |sum, one| sum.saturating_add(one.resident_bytes)),
        open_files,
    }
}

/// Holds one look against the ceilings, and has done what follows from it.
fn judge(
    this: &Sampler,
    bridge: &Bridge,
    load: Load,
    watches: &mut HashMap<InstanceId, (u32, Watch)>,
) {
    if bridge.intentional_stop() || bridge.quarantine.is_some() {
        return;
    }
    let (generation, watch) = watches
        .entry(bridge.id.clone())
        .or_insert_with(|| (bridge.generation, Watch::of_notice(bridge.notice.as_deref())));
    if *generation != bridge.generation {
        (*generation, *watch) = (bridge.generation, Watch::default());
    }
    let age = bridge
        .started_at
        .map(|at| this.starter.launcher.transitions.clock.now().since(at))
        .unwrap_or_default();
    let (ceilings, wanted) = configured(this);
    match watch.look(load, ceilings, wanted, age) {
        Action::None => {}
        action => {
            let (this, bridge) = (this.clone(), bridge.clone());
            let tasks = this.starter.requests.tasks.clone();
            tasks.spawn(async move {
                if let Err(error) = act(&this, &bridge, action).await {
                    warn!(bridge.id = %bridge.id, error = %error, "a ceiling had no effect");
                }
            });
        }
    }
}

fn configured(this: &Sampler) -> (Ceilings, Wanted) {
    let ceilings = &this.metrics.config.ceilings;
    let most = |value: u32| (value > 0).then_some(u64::from(value));
    let wanted = match ceilings.action {
        CeilingAction::Warn => Wanted::Warn,
        CeilingAction::Stop => Wanted::Stop,
        CeilingAction::Recycle => Wanted::Recycle,
    };
    let ceilings = Ceilings {
        processes: most(ceilings.processes),
        memory_bytes: most(ceilings.memory_mb).map(|mb| mb << 20),
        open_files: most(ceilings.open_files),
    };
    (ceilings, wanted)
}

/// The record comes first: who finds the bridge ended reads why.
async fn act(this: &Sampler, bridge: &Bridge, action: Action) -> Result<(), AppError> {
    let say = async |text: Option<String>| {
        let said = this.metrics.copies.bridge(&bridge.id).and_then(|bridge| bridge.notice);
        // Other advice is not overwritten by a warning.
        let may_replace = said.as_deref().is_none_or(is_ours);
        let is_reason = text.as_deref().is_some_and(svc_domain::ceiling::says_why_ended);
        if may_replace || is_reason {
            this.starter
                .launcher
                .transitions
                .observe(&bridge.id, bridge.generation, Fact::Notice(text))
                .await?;
        }
        Ok::<(), AppError>(())
    };
    match action {
        Action::None => {}
        Action::Calm => say(None).await?,
        Action::Warn(text) => {
            warn!(bridge.id = %bridge.id, "bridge {}: {text}", bridge.id.short());
            say(Some(text)).await?;
        }
        Action::Stop(reason) => {
            warn!(bridge.id = %bridge.id, "bridge {}: {reason}", bridge.id.short());
            say(Some(reason)).await?;
            this.stop.stop(bridge.id.as_str()).await?;
        }
        Action::Recycle(reason) => {
            warn!(bridge.id = %bridge.id, "bridge {}: {reason}", bridge.id.short());
            say(Some(reason.clone())).await?;
            this.stop.stop(bridge.id.as_str()).await?;
            let request = ResumeRequest { trust: None };
            let next =
                this.starter.resume(bridge.id.as_str(), request, Duration::ZERO).await?.instance;
            let fact = Fact::Notice(Some(reason));
            this.starter.launcher.transitions.observe(&bridge.id, next.generation, fact).await?;
        }
    }
    Ok(())
}

fn with_root(bridge: Bridge) -> Option<(Bridge, Root)> {
    let identity = bridge.process.clone()?;
    let launch = bridge.launch.as_ref().map(|launch| launch.id.clone());
    Some((bridge, Root { identity, launch }))
}

/// What was used since the look before.
/// A window much shorter than the pace is left open, unless it is the first.
fn compare(
    before: &mut HashMap<InstanceId, Before>,
    live: Vec<(Bridge, Root)>,
    trees: Vec<Option<Tree>>,
    at: Instant,
    poll: Duration,
) -> Vec<Measured> {
    let mut measured = Vec::new();
    // Reads the limits of the control group: once per look.
    let cores = cores();
    for ((bridge, Root { identity, .. }), tree) in live.into_iter().zip(trees) {
        let Some(tree) = tree else {
            before.remove(&bridge.id);
            continue;
        };
        let known = before.get(&bridge.id).filter(|before| before.identity == identity);
        let is_measured = match known {
            None => false,
            Some(known) => {
                let window = at.duration_since(known.at);
                if known.is_measured && window < poll / 2 {
                    continue;
                }
                let usage = usage::between(&known.tree, &tree, window, cores);
                measured.push(Measured {
                    id: bridge.id.clone(),
                    generation: bridge.generation,
                    project: bridge.project,
                    usage,
                });
                true
            }
        };
        before.insert(bridge.id, Before { identity, at, tree, is_measured });
    }
    measured
}
