//! A thousand starts and stops: do time, memory and disk use grow?

use crate::http::word;
use crate::machine::memory;
use crate::plan::{Found, Plan, millis};
use crate::report::{Figure, Of};
use crate::world::{World, launch, name};
use anyhow::Result;
use std::fs;
use std::time::Instant;

pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let mut found = Found::of(plan);
    let (cycles, part) = plan.pick((1000, 100), (6, 2));
    let world = World::new(&plan.programs, 1)?;
    let service = world.serve()?;
    let mut connection = service.connect()?;
    let mut cycle = || -> Result<f64> {
        world.forget(&name(0))?;
        world.empty_remote()?;
        let began = Instant::now();
        let record = launch(&mut connection, &name(0))?;
        let path = format!("/api/v1/instances/{}", word(&record, "instance_id"));
        connection.send("DELETE", &path, None)?.expect(200)?;
        Ok(millis(began.elapsed()))
    };
    for _ in 0..part / 2 {
        cycle()?; // what happens once has happened
    }
    let (disk, own) = (on_disk(&world), memory(service.pid())?.own);
    let times = (0..cycles).map(|_| cycle()).collect::<Result<Vec<f64>>>()?;
    let (grown, more) = (on_disk(&world) - disk, memory(service.pid())?.own - own);
    let files = fs::read_dir(world.state.join("logs"))?.count();
    service.stop()?;
    let swept = on_disk(&world) - disk;
    world.end()?;

    let first = times.get(..part).unwrap_or_default().to_vec();
    let last = times.get(cycles - part..).unwrap_or_default().to_vec();
    let first =
        Figure::new(format!("a start and a stop, the first {part} of {cycles}"), "ms", first);
    let bound = first.quantile(0.5) * 1.1;
    found.add(first);
    let last = Figure::new(format!("a start and a stop, the last {part} of {cycles}"), "ms", last);
    found.add(last.at_most(Of::Median, bound).note("a tenth more than the first is allowed"));
    let bytes = |bytes: f64| vec![bytes / 1024.0 / cycles as f64];
    let note = format!(
        "write-ahead log included; {:.1} after the service ended",
        swept / 1024.0 / cycles as f64
    );
    found.add(Figure::new("database, growth per cycle", "KiB", bytes(grown)).note(note));
    let figure =
        Figure::new("memory, growth per cycle", "KiB", vec![more * 1024.0 / cycles as f64]);
    found.add(figure.note(format!("{files} log files are kept for 30 days")));
    Ok(found.all())
}

/// Bytes of the database's files.
fn on_disk(world: &World) -> f64 {
    let size =
        |end: &str| fs::metadata(world.state.join(format!("svc.db{end}"))).map_or(0, |m| m.len());
    (size("") + size("-wal")) as f64
}
