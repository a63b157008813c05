//! Use-cases: what bridges use of processor, memory and disk.
//! Samples are taken by the supervisor; asking reads copies in memory.

use crate::AppError;
use crate::projects::catalog::Catalog;
use crate::registry::copies::Copies;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use svc_config::Config;
use svc_domain::usage::{self, Usage};
use svc_shared::Timestamp;
use svc_shared::ids::{InstanceId, ProjectName};
use svc_shared::internal::metrics::{self, InstanceMetrics, ProjectMetrics, Sample};
use svc_store::LastUse;
use tokio::time::Instant;

/// Points of a curve: four minutes at the default pace.
const POINTS: usize = 60;
/// A sample speaks for so many times the distance between two.
const FRESH_FOR: u32 = 3;

/// The last samples of the live bridges.
#[derive(Debug, Default)]
pub(crate) struct Samples(Mutex<HashMap<InstanceId, Curve>>);

#[derive(Debug)]
struct Curve {
    project: ProjectName,
    generation: u32,
    taken: Instant,
    last: Usage,
    points: VecDeque<Point>,
    /// The most memory of this generation.
    peak: Point,
}

#[derive(Debug, Clone, Copy)]
struct Point {
    time: Timestamp,
    cpu_percent: f64,
    rss_bytes: u64,
}

/// One measured bridge.
pub(crate) struct Measured {
    pub id: InstanceId,
    pub generation: u32,
    pub project: ProjectName,
    pub usage: Usage,
}

impl Samples {
    fn lock(&self) -> MutexGuard<'_, HashMap<InstanceId, Curve>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, measured: Vec<Measured>, time: Timestamp) {
        let mut curves = self.lock();
        for Measured { id, generation, project, usage } in measured {
            let taken = Instant::now();
            let Usage { cpu_percent, rss_bytes, .. } = usage;
            let point = Point { time, cpu_percent, rss_bytes };
            let curve = curves.entry(id).or_insert_with(|| Curve {
                project,
                generation,
                taken,
                last: usage,
                points: VecDeque::new(),
                peak: point,
            });
            if curve.generation != generation {
                curve.generation = generation;
                curve.points.clear();
                curve.peak = point;
            }
            if point.rss_bytes > curve.peak.rss_bytes {
                curve.peak = point;
            }
            (curve.taken, curve.last) = (taken, usage);
            if curve.points.len() >= POINTS {
                curve.points.pop_front();
            }
            curve.points.push_back(point);
        }
    }

    /// What a generation used when it was last measured.
    pub(crate) fn last_use(&self, id: &InstanceId, generation: u32) -> Option<LastUse> {
        let curves = self.lock();
        let curve = curves.get(id).filter(|curve| curve.generation == generation)?;
        Some(LastUse {
            at: curve.points.back()?.time,
            cpu_percent: curve.last.cpu_percent,
            rss_bytes: curve.last.rss_bytes,
            processes: curve.last.procs,
            peak_rss_bytes: curve.peak.rss_bytes,
            peak_at: curve.peak.time,
        })
    }

    /// Forgets everything but these.
    pub(crate) fn keep(&self, is_kept: impl Fn(&InstanceId) -> bool) {
        self.lock().retain(|id, _| is_kept(id));
    }
}

/// What the live bridges use.
pub struct Metrics {
    pub(crate) config: Arc<Config>,
    pub(crate) copies: Arc<Copies>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) samples: Arc<Samples>,
}

impl Metrics {
    /// Nothing was measured yet.
    pub(crate) fn new(
        config: &Arc<Config>,
        copies: &Arc<Copies>,
        catalog: &Arc<Catalog>,
        samples: &Arc<Samples>,
    ) -> Self {
        Self {
            config: Arc::clone(config),
            copies: Arc::clone(copies),
            catalog: Arc::clone(catalog),
            samples: Arc::clone(samples),
        }
    }

    /// Every live bridge that was measured lately, by id.
    /// With the points of its curve if asked.
    #[must_use]
    pub fn of_instances(&self, with_history: bool) -> BTreeMap<String, InstanceMetrics> {
        let shown = |cpu_percent| self.shown_percent(cpu_percent);
        let of = |curve: &Curve| InstanceMetrics {
            now: self.use_shown(&curve.last),
            history: with_history.then(|| {
                let sample = |point: &Point| Sample {
                    time: point.time,
                    cpu_percent: shown(point.cpu_percent),
                    rss_bytes: point.rss_bytes,
                };
                curve.points.iter().map(sample).collect()
            }),
        };
        self.fresh(|id, curve| (id.to_string(), of(curve))).into_iter().collect()
    }

    /// All bridges of a project together.
    ///
    /// # Errors
    /// No such project.
    pub fn of_project(&self, name: &str) -> Result<ProjectMetrics, AppError> {
        let project = self.catalog.named(name)?;
        Ok(self.of(&project.name).unwrap_or(ProjectMetrics::Idle { running: false }))
    }

    pub(crate) fn of(&self, project: &ProjectName) -> Option<ProjectMetrics> {
        let of_project: Vec<Usage> = self
            .fresh(|_, curve| (curve.project == *project).then_some(curve.last))
            .into_iter()
            .flatten()
            .collect();
        let bridges = u32::try_from(of_project.len()).unwrap_or(u32::MAX);
        (bridges > 0).then(|| ProjectMetrics::Running {
            total: self.use_shown(&usage::sum(&of_project)),
            bridges,
        })
    }

    /// Use of the live bridges by project, in percent of one core.
    /// A figure whose unit depends on a setting would be none.
    pub(crate) fn use_by_project(&self) -> BTreeMap<String, Usage> {
        let mut all: BTreeMap<String, Usage> = BTreeMap::new();
        for (project, last) in self.fresh(|_, curve| (curve.project.to_string(), curve.last)) {
            let sum = all.entry(project).or_default();
            *sum = usage::sum([&*sum, &last]);
        }
        all
    }

    /// What the stream says of the samples.
    pub(crate) fn frame(&self) -> BTreeMap<String, metrics::Metrics> {
        let one = |id: &InstanceId, curve: &Curve| (id.to_string(), self.use_shown(&curve.last));
        self.fresh(one).into_iter().collect()
    }

    /// Those of live bridges that are not too old to be believed.
    fn fresh<T>(&self, of: impl Fn(&InstanceId, &Curve) -> T) -> Vec<T> {
        let limit = self.config.metrics.poll.saturating_mul(FRESH_FOR);
        let live = self.copies.live_generations();
        let curves = self.samples.lock();
        curves
            .iter()
            .filter(|(id, curve)| {
                curve.taken.elapsed() <= limit && live.get(*id) == Some(&curve.generation)
            })
            .map(|(id, curve)| of(id, curve))
            .collect()
    }

    fn use_shown(&self, usage: &Usage) -> metrics::Metrics {
        metrics::Metrics {
            running: true,
            procs: usage.procs,
            cpu_percent: self.shown_percent(usage.cpu_percent),
            cpu_normalized: self.config.metrics.normalize_cpu,
            rss_bytes: usage.rss_bytes,
            disk_read_bps: usage.disk.map(|moved| moved.read),
            disk_write_bps: usage.disk.map(|moved| moved.written),
        }
    }

    /// One decimal, of one core or of all.
    fn shown_percent(&self, percent: f64) -> f64 {
        let cores = match self.config.metrics.normalize_cpu {
            true => f64::from(cores()),
            false => 1.0,
        };
        (percent / cores * 10.0).round() / 10.0
    }
}

/// Cores that this process may use.
pub(crate) fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX))
}
