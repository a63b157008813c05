//! Cold start: from the start of the process to its first healthy answer.
//!
//! A second figure is the time until every bridge that lived through the restart is attached again.

use crate::plan::{Found, Plan, millis};
use crate::report::{Figure, Of};
use crate::world::{DEADLINE, World};
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};

pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let mut found = Found::of(plan);
    let runs = plan.pick(30, 2);
    let world = World::new(&plan.programs, 1)?;
    // The first start makes the database.
    world.serve()?.stop()?;
    let mut times = Vec::new();
    for _ in 0..runs {
        let service = world.serve()?;
        times.push(millis(service.healthy_after));
        service.stop()?;
    }
    world.end()?;
    let name = "cold start, no bridge, to the first healthy answer";
    found.add(Figure::new(name, "ms", times).at_most(Of::Median, 50.0));

    let bridges = plan.pick(100, 5);
    let world = World::new(&plan.programs, bridges)?;
    let service = world.serve()?;
    world.run_bridges(&service, bridges)?;
    service.kill()?;
    let (mut healthy, mut attached) = (Vec::new(), Vec::new());
    for _ in 0..plan.pick(20, 2) {
        let began = Instant::now();
        let service = world.serve()?;
        healthy.push(millis(service.healthy_after));
        let mut connection = service.connect()?;
        loop {
            let rows = connection.get("/api/v1/instances?status=running")?.expect(200)?.json()?;
            let running = rows.as_array().map_or(0, Vec::len);
            if running == bridges {
                break;
            }
            ensure!(began.elapsed() < DEADLINE, "{running} of {bridges} bridges were found again");
            std::thread::sleep(Duration::from_millis(1));
        }
        attached.push(millis(began.elapsed()));
        service.kill()?;
    }
    world.end()?;
    let name = format!("cold start, {bridges} live bridges, to the first healthy answer");
    found.add(Figure::new(name, "ms", healthy).at_most(Of::Median, 150.0));
    let name = format!("cold start, {bridges} live bridges, to all reattached");
    let note = "the first pass over the processes ends before the port is open";
    found.add(Figure::new(name, "ms", attached).at_most(Of::Median, 150.0).note(note));
    Ok(found.all())
}
