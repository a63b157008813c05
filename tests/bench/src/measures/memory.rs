//! Resident memory: idle, with bridges, after load, with history and readers.

use super::requests::{asset, drive, ended};
use crate::machine::{Memory, memory};
use crate::plan::{Found, Plan};
use crate::report::{Figure, Of};
use crate::socket::Crowd;
use crate::world::{Service, World};
use anyhow::Result;
use std::time::{Duration, Instant};

/// What a reader of the page keeps open.
const READERS: usize = 10;

pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let mut found = Found::of(plan);
    let world = World::new(&plan.programs, 20)?;
    let asset = asset(&world)?;
    let service = world.serve()?;
    let mut paths = vec!["/healthz", "/api/v1/projects", "/api/v1/instances", "/api/state"];
    paths.extend(asset.iter().flat_map(|asset| ["/", asset.as_str()]));
    service.settle("")?;
    let idle = settled(plan, &service)?;
    add(&mut found, "resident, idle", idle, Some(20.0));
    all(plan, &service, &paths)?;
    add(&mut found, "resident, idle, after load", settled(plan, &service)?, Some(40.0));
    service.stop()?;
    world.end()?;

    let bridges = plan.pick(100, 5);
    let world = World::new(&plan.programs, bridges)?;
    let service = world.serve()?;
    world.run_bridges(&service, bridges)?;
    let name = format!("resident, {bridges} bridges");
    add(&mut found, &name, settled(plan, &service)?, Some(40.0));
    all(plan, &service, &paths)?;
    add(&mut found, &format!("{name}, after load"), settled(plan, &service)?, Some(40.0));
    service.stop()?;
    world.end()?;

    let rows = plan.pick(10_000, 500);
    let world = ended(plan, rows)?;
    let service = world.serve()?;
    let name = format!("resident, {rows} ended rows");
    add(&mut found, &name, settled(plan, &service)?, None);
    all(plan, &service, &["/api/v1/instances", "/api/state"])?;
    let mut crowd = Crowd::open(service.port, "/ws/events", READERS)?;
    let mut whole = 0;
    crowd.read(Instant::now() + Duration::from_secs(30), |_, _, text| {
        whole += usize::from(text.starts_with(r#"{"type":"snapshot""#));
        whole == READERS
    })?;
    let name = format!("{name}, {READERS} pages open");
    add(&mut found, &name, settled(plan, &service)?, None);
    drop(crowd);
    let name = format!("resident, {rows} ended rows, after load");
    add(&mut found, &name, settled(plan, &service)?, Some(40.0));
    service.stop()?;
    world.end()?;
    Ok(found.all())
}

fn all(plan: &Plan, service: &Service, paths: &[&str]) -> Result<()> {
    for path in paths {
        drive(plan, service.place(), path, "")?;
    }
    Ok(())
}

/// After a moment in which nothing is asked.
fn settled(plan: &Plan, service: &Service) -> Result<Memory> {
    std::thread::sleep(Duration::from_millis(plan.pick(3000, 200)));
    memory(service.pid())
}

fn add(found: &mut Found, name: &str, memory: Memory, budget: Option<f64>) {
    let mut figure = Figure::new(name, "MiB", vec![memory.resident]);
    if let Some(bound) = budget {
        figure = figure.at_most(Of::Worst, bound);
    }
    found.add(figure.note(format!(
        "{:.1} of it heap and stacks, the rest pages of the program; peak {:.1}",
        memory.own, memory.peak
    )));
}
