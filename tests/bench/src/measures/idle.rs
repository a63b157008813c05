//! What an idle service uses: processor time, and frames on the wire.

use super::requests::ended;
use crate::machine::processor_seconds;
use crate::plan::{Found, Plan};
use crate::report::{Figure, Of, shown};
use crate::socket::Crowd;
use crate::world::{Service, World};
use anyhow::Result;
use std::time::{Duration, Instant};

/// Pieces of the time without a page, and of that with one.
const SLICES: u32 = 6;

struct Quiet {
    what: String,
    budget: Option<f64>,
    world: World,
    service: Service,
    page: Option<Crowd>,
    /// Processor time used in each slice, in percent of a core.
    used: Vec<f64>,
    frames: usize,
}

/// Measures all services at the same time.
/// They are idle, so they do not disturb each other, and the machine is the same for all.
pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let mut all = Vec::new();
    for (bridges, budget) in [(0, None), (20, None), (plan.pick(100, 3), Some(0.1))] {
        let world = World::new(&plan.programs, bridges.max(1))?;
        let service = world.serve()?;
        world.run_bridges(&service, bridges)?;
        all.push(quiet(format!("{bridges} bridges"), budget, world, service)?);
    }
    let rows = plan.pick(10_000, 500);
    let world = ended(plan, rows)?;
    let service = world.serve()?;
    all.push(quiet(format!("{rows} ended rows"), Some(0.5), world, service)?);

    // What follows a start has passed by then: the agent was asked for its version.
    std::thread::sleep(Duration::from_secs(plan.pick(5, 1)));
    let mut found = Found::of(plan);
    let slice = Duration::from_secs(plan.pick(10, 1));
    watch(plan, &mut all, slice, |_| ())?;
    for quiet in &mut all {
        let figure = quiet.figure("", slice);
        found.add(figure);
    }
    for quiet in &mut all {
        quiet.page = Some(Crowd::open(quiet.service.port, "/ws/events", 1)?);
    }
    read(&mut all, Duration::from_secs(plan.pick(5, 1)), |_| ())?;
    watch(plan, &mut all, slice, |quiet| quiet.frames += 1)?;
    for mut quiet in all {
        quiet.budget = None;
        let slices = quiet.used.len() as u64;
        let figure = quiet.figure(", a page open", slice);
        let seconds = slice.as_secs() * slices;
        found.add(figure.note(format!("{} frames in {seconds} s", quiet.frames)));
        quiet.service.stop()?;
        quiet.world.end()?;
    }
    Ok(found.all())
}

/// Notes the processor time that each uses, slice by slice.
fn watch(
    plan: &Plan,
    all: &mut [Quiet],
    slice: Duration,
    on: impl Fn(&mut Quiet) + Copy,
) -> Result<()> {
    all.iter_mut().for_each(|quiet| quiet.used.clear());
    for _ in 0..plan.pick(SLICES, 1) {
        let before = seconds(all)?;
        let began = Instant::now();
        read(all, slice, on)?;
        let passed = began.elapsed().as_secs_f64();
        let after = seconds(all)?;
        for ((quiet, before), after) in all.iter_mut().zip(before).zip(after) {
            quiet.used.push((after - before) / passed * 100.0);
        }
    }
    Ok(())
}

impl Quiet {
    fn figure(&self, how: &str, slice: Duration) -> Figure {
        let mean = self.used.iter().sum::<f64>() / self.used.len() as f64;
        let most = self.used.iter().copied().fold(0.0, f64::max);
        let note = format!(
            "mean of {} s; busiest {} s {} %",
            slice.as_secs() * self.used.len() as u64,
            slice.as_secs(),
            shown(most)
        );
        let name = format!("idle processor, {}{how}", self.what);
        let figure = Figure::new(name, "%", vec![mean]).note(note);
        match self.budget {
            Some(bound) => figure.at_most(Of::Worst, bound),
            None => figure,
        }
    }
}

fn quiet(what: String, budget: Option<f64>, world: World, service: Service) -> Result<Quiet> {
    Ok(Quiet { what, budget, world, service, page: None, used: Vec::new(), frames: 0 })
}

fn seconds(all: &[Quiet]) -> Result<Vec<f64>> {
    all.iter().map(|quiet| processor_seconds(quiet.service.pid())).collect()
}

/// Reads all open pages in turn for so long.
fn read(all: &mut [Quiet], time: Duration, on: impl Fn(&mut Quiet)) -> Result<()> {
    let until = Instant::now() + time;
    while Instant::now() < until {
        if all.iter().all(|quiet| quiet.page.is_none()) {
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
        }
        for quiet in all.iter_mut() {
            let mut frames = 0;
            let turn = Instant::now() + Duration::from_millis(200);
            if let Some(page) = &mut quiet.page {
                page.read(turn.min(until), |_, _, _| {
                    frames += 1;
                    false
                })?;
            }
            (0..frames).for_each(|_| on(quiet));
        }
    }
    Ok(())
}
