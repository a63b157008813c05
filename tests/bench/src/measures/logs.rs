//! From a line in an agent's log to the frame of a reader.
//!
//! Measured with one reader, with two hundred, beside a reader that does not read, and under
//! floods.

use crate::machine::memory;
use crate::plan::{Found, Plan, millis};
use crate::report::{Figure, Of, histogram};
use crate::socket::{Crowd, Socket, Stream};
use crate::world::{DEADLINE, Service, World, launch, name};
use anyhow::{Context as _, Result, ensure};
use hdrhistogram::Histogram;
use serde_json::json;
use std::fs::{self, File};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const MEBI: usize = 1 << 20;
const PREFIX: &str = "2026-03-01T10:20:30.123Z [DEBUG] ";

/// A world with one bridge whose log is written by us.
struct Bench {
    world: World,
    service: Service,
    log: File,
    path: String,
    lines: usize,
}

pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let mut found = Found::of(plan);
    let mut bench = Bench::new(plan, Some(4000))?;
    one(plan, &mut found, &mut bench)?;
    many(plan, &mut found, &mut bench)?;
    stalled(plan, &mut found, &mut bench)?;
    for megabytes in plan.pick([50, 1000], [2, 4]) {
        flood(&mut found, &mut bench, megabytes, "")?;
    }
    bench.end()?;
    let mut bench = Bench::new(plan, None)?;
    flood(&mut found, &mut bench, plan.pick(50, 2), ", rotated at 10 MiB")?;
    bench.end()?;
    Ok(found.all())
}

impl Bench {
    /// With the log rotated at so many MiB; by default as the product does.
    fn new(plan: &Plan, rotated_at: Option<u32>) -> Result<Self> {
        let mut world = World::new(&plan.programs, 1)?;
        if let Some(size) = rotated_at {
            world.configure(json!({ "logs": { "bridge_log_max_size_mb": size } }))?;
        }
        let service = world.serve()?;
        let record = launch(&mut service.connect()?, &name(0))?;
        let id = crate::http::word(&record, "instance_id").to_owned();
        let files = fs::read_dir(world.state.join("logs"))?.filter_map(Result::ok);
        let is_log = |path: &std::path::PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let stem = name.strip_suffix(".log").unwrap_or_default().to_owned();
            stem.ends_with(|last: char| last.is_ascii_digit())
        };
        let file = files.map(|entry| entry.path()).find(is_log).context("a debug file")?;
        let log = File::options().append(true).open(file)?;
        // Not from the end alone: where that is, is looked up after the socket is open.
        let path = format!("/ws/bridge-log/{id}?format=json&tail=4096");
        Ok(Self { world, service, log, path, lines: 0 })
    }

    /// Writes one line that names its number; when it began to be written.
    fn write(&mut self) -> Result<(String, Instant)> {
        self.lines += 1;
        let mark = format!("bench-line-{}-end", self.lines);
        let line = format!("{PREFIX}{mark}\n");
        let began = Instant::now();
        self.log.write_all(line.as_bytes())?;
        Ok((mark, began))
    }

    fn end(self) -> Result<()> {
        self.service.stop()?;
        self.world.end()
    }
}

fn note(histogram: &mut Histogram<u64>, time: Duration) {
    histogram.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
}

/// Lines one by one to one reader.
fn latencies(bench: &mut Bench, stream: &mut Stream, lines: u64) -> Result<Histogram<u64>> {
    let mut times = histogram();
    for number in 0..lines {
        let (mark, began) = bench.write()?;
        let at = stream.until_text(|text| text.contains(&mark))?;
        note(&mut times, at.saturating_duration_since(began));
        // At every phase of whatever beats inside.
        std::thread::sleep(Duration::from_micros(1500 + (number * 7919) % 9000));
    }
    Ok(times)
}

fn one(plan: &Plan, found: &mut Found, bench: &mut Bench) -> Result<()> {
    let mut stream = Stream::of(Socket::open(bench.service.port, &bench.path)?);
    let times = latencies(bench, &mut stream, plan.pick(500, 5))?;
    let figure = Figure::latencies("log line to frame, one reader", times);
    found.add(figure.at_most(Of::Median, 5.0).at_most(Of::P99, 25.0));
    Ok(())
}

fn many(plan: &Plan, found: &mut Found, bench: &mut Bench) -> Result<()> {
    let readers = plan.pick(200, 20);
    let before = memory(bench.service.pid())?.resident;
    let mut crowd = Crowd::open(bench.service.port, &bench.path, readers)?;
    let mut times = histogram();
    for _ in 0..plan.pick(100, 3) {
        let (mark, began) = bench.write()?;
        let mut left = readers;
        let all = crowd.read(Instant::now() + DEADLINE, |_, at, text| {
            if text.contains(&mark) {
                left -= 1;
                note(&mut times, at.saturating_duration_since(began));
            }
            left == 0
        })?;
        ensure!(all, "{left} of {readers} readers were not told of a line");
        std::thread::sleep(Duration::from_millis(5));
    }
    let cost = (memory(bench.service.pid())?.resident - before) / readers as f64 * 1024.0;
    let figure = Figure::latencies(format!("log line to frame, {readers} readers"), times);
    let note = format!("each frame of each reader; a reader costs {cost:.0} KiB resident");
    found.add(figure.at_most(Of::Median, 5.0).at_most(Of::P99, 25.0).note(note));
    Ok(())
}

/// What a reader that reads nothing costs, and whether another notices.
fn stalled(plan: &Plan, found: &mut Found, bench: &mut Bench) -> Result<()> {
    let megabytes = plan.pick(32, 1);
    let port = bench.service.port;
    let mut stream = Stream::of(Socket::open(port, &bench.path)?);
    pour(bench, &mut stream, megabytes)?;
    let before = memory(bench.service.pid())?.own;
    let silent = Socket::open(port, &bench.path)?;
    pour(bench, &mut stream, megabytes)?;
    let cost = memory(bench.service.pid())?.own - before;
    let times = latencies(bench, &mut stream, plan.pick(200, 5))?;
    drop(silent);
    let figure = Figure::new("a log reader that does not read, memory", "MiB", vec![cost]);
    found.add(figure.at_most(Of::Worst, 4.0).note(format!("after {megabytes} MB of lines")));
    let figure = Figure::latencies("log line to frame beside a reader that does not read", times);
    found.add(figure.at_most(Of::Median, 5.0).at_most(Of::P99, 25.0));
    Ok(())
}

/// Writes megabytes of lines at the reader's pace; returns when all are read.
fn pour(bench: &mut Bench, stream: &mut Stream, megabytes: usize) -> Result<()> {
    let block = block();
    for _ in 0..megabytes {
        bench.log.write_all(&block)?;
        let (mark, _) = bench.write()?;
        stream.until_text(|text| text.contains(&mark))?;
    }
    Ok(())
}

/// A megabyte of lines as an agent writes them.
fn block() -> Vec<u8> {
    let line = format!("{PREFIX}[bridge:work] polled {}\n", "lorem ipsum dolor ".repeat(7));
    line.repeat(MEBI / line.len()).into_bytes()
}

fn flood(found: &mut Found, bench: &mut Bench, megabytes: usize, how: &str) -> Result<()> {
    let port = bench.service.port;
    let mut crowd = Crowd::open(port, &bench.path, 1)?;
    let block = block();
    let over = AtomicBool::new(false);
    let (took, health) = std::thread::scope(|scope| -> Result<(Duration, Histogram<u64>)> {
        let prober = scope.spawn(|| probe(port, &over));
        let reading = flood_and_read(bench, &mut crowd, &block, megabytes);
        over.store(true, Ordering::Relaxed);
        let health = prober.join().map_err(|_| anyhow::anyhow!("the prober panicked"))??;
        Ok((reading?, health))
    })?;
    let what = format!("burst of {megabytes} MB{how}");
    let rate = (megabytes * block.len()) as f64 / 1e6 / took.as_secs_f64();
    let figure = Figure::new(format!("{what}, through redaction to a reader"), "MB/s", vec![rate]);
    found.add(figure.at_least(Of::Worst, 100.0).note(format!("{:.0} ms in all", millis(took))));
    let longest = health.max() as f64 / 1e6;
    let figure = Figure::latencies(format!("{what}, /healthz meanwhile"), health);
    found.add(figure.at_most(Of::Worst, 30.0).note(format!("longest {longest:.1} ms")));
    Ok(())
}

/// Writes as fast as the disk takes it, and reads until the end of it has come.
fn flood_and_read(
    bench: &mut Bench,
    crowd: &mut Crowd,
    block: &[u8],
    megabytes: usize,
) -> Result<Duration> {
    let began = Instant::now();
    let mut log = bench.log.try_clone()?;
    std::thread::scope(|scope| -> Result<()> {
        let writer = scope.spawn(move || -> std::io::Result<()> {
            (0..megabytes).try_for_each(|_| log.write_all(block))
        });
        while !writer.is_finished() {
            crowd.read(Instant::now() + Duration::from_millis(2), |_, _, _| false)?;
        }
        Ok(writer.join().map_err(|_| anyhow::anyhow!("the writer panicked"))??)
    })?;
    let mut marks = Vec::new();
    loop {
        // What is written while a log is cut may be lost: then a later one is seen.
        marks.push(bench.write()?.0);
        let told = Instant::now() + Duration::from_millis(500);
        if crowd.read(told, |_, _, text| marks.iter().any(|mark| text.contains(mark)))? {
            return Ok(began.elapsed());
        }
        ensure!(began.elapsed() < 2 * DEADLINE, "the end of a burst does not come");
        ensure!(crowd.len() == 1, "the reader of a burst was sent away");
    }
}

/// Asks for the health every millisecond.
fn probe(port: u16, over: &AtomicBool) -> Result<Histogram<u64>> {
    let mut connection = crate::http::Connection::open(port)?;
    let mut times = histogram();
    while !over.load(Ordering::Relaxed) {
        let began = Instant::now();
        connection.get("/healthz")?.expect(200)?;
        note(&mut times, began.elapsed());
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(times)
}
