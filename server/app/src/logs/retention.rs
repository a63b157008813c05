//! Use-case: keep the log directory within its limits, file by file and as a whole.

use crate::debounce::Debounce;
use crate::log_files;
use crate::registry::Registry;
use crate::tasks::Tasks;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use svc_agent::log_set::{LogSet, LogSetKey};
use svc_agent::retention::{Group, Inventory, inventory};
use svc_agent::role::debug_file;
use svc_agent::rotation::Limits;
use svc_config::Config;
use svc_domain::retention::{Keep, SetFacts, Use, expired};
use svc_ports::{Clock, ProcessHost};
use svc_shared::Timestamp;
use svc_shared::ids::ProjectName;
use svc_store::{Content, Stored};
use tracing::{debug, info, warn};

/// From a launch to the look that it is a reason for.
const AFTER_LAUNCH: Duration = Duration::from_secs(2);

const MIB: u64 = 1024 * 1024;

/// Keeps the log directory small.
pub(crate) struct Retention {
    config: Arc<Config>,
    host: Arc<dyn ProcessHost>,
    registry: Arc<Registry>,
    clock: Arc<dyn Clock>,
    tasks: Tasks,
    /// The time of day at the start, and the monotonic clock then.
    /// A clock that is set wrongly later ages no file (H93).
    wall: Timestamp,
    at: Instant,
    turn: tokio::sync::Mutex<()>,
    /// Every project was scanned once: lost bridges have their rows back.
    is_complete: AtomicBool,
    after_launch: Debounce,
}

impl Retention {
    pub fn new(
        config: Arc<Config>,
        host: Arc<dyn ProcessHost>,
        registry: Arc<Registry>,
        clock: Arc<dyn Clock>,
        tasks: Tasks,
    ) -> Self {
        Self {
            wall: clock.now(),
            at: Instant::now(),
            turn: tokio::sync::Mutex::default(),
            is_complete: AtomicBool::new(false),
            after_launch: Debounce::default(),
            config,
            host,
            registry,
            clock,
            tasks,
        }
    }

    /// From now on every lost bridge has its row back.
    pub fn scanned_everything(&self) {
        self.is_complete.store(true, Ordering::Relaxed);
    }

    /// The earlier of what the clock says and what it must say.
    pub fn now(&self) -> Timestamp {
        self.clock.now().min(self.wall.plus(self.at.elapsed()))
    }

    /// Limits of one log. One process keeps the logs small: the service.
    pub fn limits(&self) -> Option<Limits> {
        let limits = &self.config.logs;
        self.registry.has_readers().then(|| Limits {
            max_bytes: u64::from(limits.bridge_log_max_size_mb) * MIB,
            keep: limits.keep_rotated,
        })
    }

    /// After a launch.
    /// The service waits a moment: the launch has the processor for itself, and many in a row need
    /// one look.
    pub fn prune_soon(self: &Arc<Self>) {
        if self.registry.has_readers() {
            let this = Arc::clone(self);
            let prune = move || async move { this.prune().await };
            self.after_launch.request(&self.tasks, AFTER_LAUNCH, prune);
        } else {
            let this = Arc::clone(self);
            self.tasks.spawn(async move { this.prune().await });
        }
    }

    /// Removes the log sets that are too many, too old or too large.
    /// Those of live and of held bridges stay. The service removes nothing before it has looked for
    /// lost bridges.
    pub async fn prune(self: &Arc<Self>) {
        if self.registry.has_readers() && !self.is_complete.load(Ordering::Relaxed) {
            return;
        }
        // Many launches at once need one look only.
        let Ok(_turn) = self.turn.try_lock() else { return };
        // Another process may have launched a moment ago.
        if let Err(error) = self.registry.live().await {
            debug!(error = %error, "old logs are not removed now");
            return;
        }
        let this = Arc::clone(self);
        let done =
            tokio::task::spawn_blocking(move || this.prune_beside(&this.registry.copies.rows()))
                .await;
        match done {
            Ok(Ok(0)) => {}
            Ok(Ok(removed)) => {
                info!("removed {removed} old log sets");
                if let Some(publisher) = &self.registry.publisher {
                    publisher.reread_rows().await;
                }
            }
            Ok(Err(error)) => warn!(error = %error, "old logs cannot be looked for"),
            Err(error) => warn!(error = %error, "removing old logs was interrupted"),
        }
    }

    fn prune_beside(&self, rows: &[Arc<Stored>]) -> std::io::Result<usize> {
        let Some(held) = held_projects(rows) else {
            debug!("old logs stay: it is not known which of them a corrupt record is about");
            return Ok(0);
        };
        let directory = log_files::directory(&self.config);
        let Inventory { sets, strays } = inventory(&directory)?;
        let uses = uses(rows);
        let limits = &self.config.logs;
        let keep = Keep {
            max_age_days: limits.retention_max_age_days,
            max_sets: limits.retention_max_files,
            max_bytes: u64::from(limits.retention_max_total_mb) * MIB,
        };
        // Nobody can say whose the strays are; only their age ends them.
        let by_age = Keep { max_sets: 0, max_bytes: 0, ..keep };
        let now = self.now();
        let would_go = |written: &HashSet<String>| {
            let use_of = |stem: &str| match uses.get(stem) {
                _ if written.contains(stem) => Use::Live,
                Some(use_) => *use_,
                None if held.iter().any(|project| is_of(stem, project)) => Use::Live,
                None => Use::Unnamed,
            };
            let facts = |(stem, group): (&String, &Group)| SetFacts {
                stem: stem.clone(),
                newest: group.newest,
                bytes: group.bytes,
                use_: use_of(stem),
            };
            let of_sets = expired(sets.iter().map(facts).collect(), keep, now);
            let of_strays = expired(strays.iter().map(facts).collect(), by_age, now);
            [(&sets, of_sets), (&strays, of_strays)]
        };
        // The process table can only save what would go without it: mostly nobody has to ask it.
        if would_go(&HashSet::new()).iter().all(|(_, stems)| stems.is_empty()) {
            return Ok(0);
        }
        let mut removed = 0;
        for (groups, stems) in would_go(&self.written_stems()) {
            for stem in stems {
                removed += usize::from(groups.get(&stem).is_some_and(|set| self.remove_logs(set)));
            }
        }
        Ok(removed)
    }

    /// Sets that a live process writes, whatever the records say. Blocks.
    fn written_stems(&self) -> HashSet<String> {
        let processes = self.host.processes();
        let files = processes.iter().filter_map(|facts| debug_file(&facts.argv));
        let sets = files
            .filter_map(|file| LogSet::of_debug_file(&log_files::directory(&self.config), &file));
        sets.map(|set| set.stem().to_owned()).collect()
    }

    fn remove_logs(&self, group: &Group) -> bool {
        let left = group.remove(&log_files::directory(&self.config));
        if left > 0 {
            warn!("{left} old log files cannot be removed; check the permissions of the directory");
        }
        left == 0
    }
}

/// Projects of records that cannot be understood.
/// Which of the sets is theirs is not known. `None`: nor is the project of one.
fn held_projects(rows: &[Arc<Stored>]) -> Option<Vec<ProjectName>> {
    let held = rows.iter().filter_map(|stored| match &stored.content {
        Content::Bridge(_) => None,
        Content::Corrupt { project, .. } => Some(project.parse().ok()),
    });
    held.collect()
}

fn is_of(stem: &str, project: &ProjectName) -> bool {
    stem.parse::<LogSetKey>().is_ok_and(|key| key.is_of(project))
}

/// What the readable records say about stems.
fn uses(rows: &[Arc<Stored>]) -> HashMap<&str, Use> {
    let mut uses: HashMap<&str, Use> = HashMap::new();
    for bridge in rows.iter().filter_map(|row| row.bridge()) {
        let Some(launch) = &bridge.launch else { continue };
        let is_in_use = bridge.is_live() || bridge.quarantine.is_some();
        let said = uses.entry(&launch.log_stem).or_insert(Use::Ended);
        if is_in_use {
            *said = Use::Live;
        }
    }
    uses
}
