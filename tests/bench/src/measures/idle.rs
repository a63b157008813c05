//! What the service uses while nothing happens: processor time, and frames on the wire.

use super::requests::ended;
use super::{Found, Plan};
use crate::machine::processor_seconds;
use crate::report::{Figure, Of, shown};
use crate::socket::Crowd;
use crate::world::{Service, World};
use anyhow::Result;
use std::time::{Duration, Instant};

const SLICES: u32 = 6;

struct Quiet {
    what: String,
    budget: Option<f64>,
    world: World,
    service: Service,
    page: Crowd,
    /// Processor time used in each slice, in percent of a core.
    used: Vec<f64>,
    frames: usize,
}

/// All at the same time: they do nothing, so they do not disturb one another, and the machine is
/// the same for all.
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

    // What follows a start has passed by then: the agent was asked, the page has its snapshot.
    read(&mut all, Duration::from_secs(plan.pick(5, 1)), |_| ())?;
    let slice = Duration::from_secs(plan.pick(10, 1));
    for _ in 0..plan.pick(SLICES, 1) {
        let before = seconds(&all)?;
        let began = Instant::now();
        read(&mut all, slice, |quiet| quiet.frames += 1)?;
        let passed = began.elapsed().as_secs_f64();
        let after = seconds(&all)?;
        for ((quiet, before), after) in all.iter_mut().zip(before).zip(after) {
            quiet.used.push((after - before) / passed * 100.0);
        }
    }
    let mut found = Found::of(plan);
    for quiet in all {
        let mean = quiet.used.iter().sum::<f64>() / quiet.used.len() as f64;
        let most = quiet.used.iter().copied().fold(0.0, f64::max);
        let note = format!(
            "mean of {} s, a page open; busiest {} s {} %",
            slice.as_secs() * quiet.used.len() as u64,
            slice.as_secs(),
            shown(most)
        );
        let mut figure = Figure::new(format!("idle processor, {}", quiet.what), "%", vec![mean]);
        if let Some(bound) = quiet.budget {
            figure = figure.at_most(Of::Worst, bound);
        }
        found.add(figure.note(note));
        let name = format!("idle frames to a page, {}", quiet.what);
        found.add(Figure::new(name, "frames", vec![quiet.frames as f64]));
        quiet.service.stop()?;
        quiet.world.end()?;
    }
    Ok(found.all())
}

fn quiet(what: String, budget: Option<f64>, world: World, service: Service) -> Result<Quiet> {
    let page = Crowd::open(service.port, "/ws/events", 1)?;
    Ok(Quiet { what, budget, world, service, page, used: Vec::new(), frames: 0 })
}

fn seconds(all: &[Quiet]) -> Result<Vec<f64>> {
    all.iter().map(|quiet| processor_seconds(quiet.service.pid())).collect()
}

/// Reads all pages in turn for so long.
fn read(all: &mut [Quiet], time: Duration, mut on: impl FnMut(&mut Quiet)) -> Result<()> {
    let until = Instant::now() + time;
    while Instant::now() < until {
        for quiet in all.iter_mut() {
            let mut frames = 0;
            let turn = Instant::now() + Duration::from_millis(50);
            quiet.page.read(turn.min(until), |_, _, _| {
                frames += 1;
                false
            })?;
            (0..frames).for_each(|_| on(quiet));
        }
    }
    Ok(())
}
