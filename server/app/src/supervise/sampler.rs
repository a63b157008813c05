//! Measures the live bridges at a steady pace. Nothing is measured while nothing runs, and nothing
//! at all with `metrics.enabled` off.

use crate::App;
use crate::metrics::{Measured, cores};
use std::collections::HashMap;
use std::time::Duration;
use svc_domain::bridge::Bridge;
use svc_domain::identity::ProcessIdentity;
use svc_domain::usage::{self, Tree};
use svc_process::meter::{Meter, Root};
use svc_shared::ids::InstanceId;
use tokio::time::Instant;
use tracing::warn;

/// The look before, of the same process.
struct Before {
    identity: ProcessIdentity,
    at: Instant,
    tree: Tree,
    /// Something was measured already: the next window is a whole one.
    is_measured: bool,
}

/// Runs until the service ends.
pub(super) async fn run(app: App) {
    let settings = &app.settings().metrics;
    if !settings.enabled {
        return;
    }
    let mut meter = match Meter::open(settings.show_disk) {
        Ok(meter) => meter,
        Err(error) => {
            warn!(error = %error, "use of processor and memory cannot be measured");
            return;
        }
    };
    let mut changes = app.registry().changes();
    let mut before: HashMap<InstanceId, Before> = HashMap::new();
    let mut due = Instant::now();
    loop {
        changes.mark_unchanged();
        let live: Vec<(Bridge, Root)> =
            app.registry().live().into_iter().filter_map(with_root).collect();
        before.retain(|id, _| live.iter().any(|(bridge, _)| bridge.id == *id));
        app.samples().keep(|id| live.iter().any(|(bridge, _)| bridge.id == *id));
        if live.is_empty() {
            tokio::select! {
                () = app.shutdown().cancelled() => return,
                _ = changes.changed() => continue,
            }
        }
        let roots: Vec<Root> = live.iter().map(|(_, root)| root.clone()).collect();
        let look = tokio::task::spawn_blocking(move || {
            let at = Instant::now();
            let trees = meter.look(&roots);
            (meter, at, trees)
        });
        let Ok((returned, at, trees)) = look.await else {
            warn!("measuring ended: see the message about the panic");
            return;
        };
        meter = returned;
        let measured = compare(&mut before, live, trees, at, settings.poll);
        if !measured.is_empty() {
            let now = app.clock().now();
            app.samples().add(measured, now);
            app.read_model().sampled(now, || app.sample_frame());
        }
        // A bridge that was never measured has its first figure after a short window.
        if due <= at {
            due = at + settings.poll;
        }
        let is_one_new = before.values().any(|before| !before.is_measured);
        let next = match is_one_new {
            true => due.min(at + settings.sample_interval),
            false => due,
        };
        tokio::select! {
            () = app.shutdown().cancelled() => return,
            () = tokio::time::sleep_until(next) => {}
        }
    }
}

fn with_root(bridge: Bridge) -> Option<(Bridge, Root)> {
    let identity = bridge.process.clone()?;
    let launch = bridge.launch.as_ref().map(|launch| launch.id.clone());
    Some((bridge, Root { identity, launch }))
}

/// What was used since the look before. A window much shorter than the pace is left open, unless
/// it is the first.
fn compare(
    before: &mut HashMap<InstanceId, Before>,
    live: Vec<(Bridge, Root)>,
    trees: Vec<Option<Tree>>,
    at: Instant,
    poll: Duration,
) -> Vec<Measured> {
    let mut measured = Vec::new();
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
                let usage = usage::between(&known.tree, &tree, window, cores());
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
