//! Live terminals: from an agent's output to a viewer's frame; costs of keepers.

use crate::http::word;
use crate::machine::{memory, processor_seconds, proportional};
use crate::plan::{Found, Plan, millis};
use crate::report::{Figure, Of, histogram};
use crate::socket::{Crowd, Socket, Stream};
use crate::tidy;
use crate::world::{DEADLINE, Service, World, name};
use anyhow::{Context as _, Result, ensure};
use hdrhistogram::Histogram;
use serde_json::json;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// Viewers beside the one that is measured; one of them never reads.
const OTHERS: usize = 5;

/// A session whose screen shows what we write to its pipe.
struct Session {
    id: String,
    pipe: File,
    /// Marks written so far.
    marks: usize,
}

pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let mut found = Found::of(plan);
    let sessions = plan.pick(20, 2);
    let mut world = World::new(&plan.programs, sessions)?;
    world.configure(json!({ "claude": { "pty_screen_enabled": true } }))?;
    let service = world.serve()?;
    let mut all = Vec::new();
    let mut started = histogram();
    for number in 0..sessions {
        all.push(start(&world, &service, number, &mut started)?);
    }
    let figure = Figure::latencies("start of an interactive session, request to running", started);
    let note = "keeper, launcher and agent begun; the agent registers at once";
    found.add(figure.at_most(Of::Median, 100.0).note(note));
    resident(plan, &mut found, &world, &service)?;

    let (calm, rest) = all.split_first_mut().context("a session")?;
    let busy = rest.first_mut().context("a second session")?;
    let address = |session: &Session| format!("/ws/pty-screen/{}?format=diff", session.id);
    let path = address(calm);
    let mut stream = Stream::of(Socket::open(service.port, &path)?);
    let stalled = Socket::open(service.port, &path)?;
    let mut others = Vec::new();
    for _ in 1..OTHERS {
        others.push(Stream::of(Socket::open(service.port, &path)?));
    }
    let times = latencies(calm, &mut stream, plan.pick(400, 5))?;
    let name = format!("terminal output to frame, {OTHERS} other viewers, one stalled");
    let figure = Figure::latencies(name, times);
    found.add(figure.at_most(Of::Median, 15.0).at_most(Of::P99, 40.0));
    drop((stalled, others));

    flood(plan, &mut found, &world, &service, calm, busy)?;
    drop(all);
    service.stop()?;
    world.end()?;
    Ok(found.all())
}

fn start(
    world: &World,
    service: &Service,
    number: usize,
    times: &mut Histogram<u64>,
) -> Result<Session> {
    let project = name(number);
    let path = world.root.join(format!("feed-{number}"));
    ensure!(Command::new("mkfifo").arg(&path).status()?.success(), "no pipe at {}", path.display());
    let tui = json!({ "bare": true, "no_queries": true, "feed": path });
    world.set_knobs(&project, &json!({ "tui": tui, "ready_ms": 0 }))?;
    let body = json!({ "project": project, "mode": "pty" });
    let mut connection = service.connect()?;
    let began = Instant::now();
    let record = connection.post("/api/v1/instances", &body)?.expect(201)?.json()?;
    ensure!(word(&record, "status") == "running", "{project} does not run: {record}");
    ensure!(word(&record, "resume_mode") == "pty", "{project} has no terminal: {record}");
    let took = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    times.saturating_record(took);
    // The simulator reads the pipe to its end, which does not come while it is open here.
    let pipe = File::options().write(true).open(&path)?;
    Ok(Session { id: word(&record, "instance_id").to_owned(), pipe, marks: 0 })
}

/// Processes of the keepers of a world.
fn keepers(world: &World) -> Vec<u32> {
    let is_keeper = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == b"__keeper__")
    };
    let service_files = PathBuf::from(&world.state);
    let below = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&*service_files.to_string_lossy())
    };
    let mut pids: Vec<u32> =
        tidy::alive(&world.root).iter().map(|pid| pid.unsigned_abs()).collect();
    pids.extend(every_process().filter(below));
    pids.sort_unstable();
    pids.dedup();
    pids.into_iter().filter(is_keeper).collect()
}

fn every_process() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// What service and keepers hold in memory while nothing is shown.
fn resident(plan: &Plan, found: &mut Found, world: &World, service: &Service) -> Result<()> {
    std::thread::sleep(Duration::from_millis(plan.pick(3000, 200)));
    let keepers = keepers(world);
    let count = plan.pick(20, 2);
    ensure!(keepers.len() == count, "{} keepers instead of {count}", keepers.len());
    let each: Result<Vec<f64>> = keepers.iter().map(|pid| Ok(memory(*pid)?.resident)).collect();
    let each = each?;
    let own: Result<Vec<f64>> = keepers.iter().map(|pid| Ok(memory(*pid)?.own)).collect();
    let own = own?.iter().sum::<f64>() / count as f64;
    let shares: Result<Vec<f64>> =
        keepers.iter().chain([&service.pid()]).map(|pid| proportional(*pid)).collect();
    let sum = shares?.iter().sum::<f64>();
    let note = format!("{own:.1} of it heap and stacks, the rest pages of the program");
    found.add(
        Figure::new("resident, one idle keeper", "MiB", each)
            .at_most(Of::Median, 10.0)
            .at_most(Of::Worst, 15.0)
            .note(note),
    );
    let name = format!("resident, service and keepers of {count} sessions");
    found.add(
        Figure::new(name, "MiB", vec![sum])
            .at_most(Of::Worst, 150.0)
            .note("pages that they share are counted once"),
    );
    Ok(())
}

impl Session {
    /// Draws a line that names its number; when it began to be written.
    fn write(&mut self) -> Result<(String, Instant)> {
        self.marks += 1;
        let mark = format!("bench-mark-{}-end", self.marks);
        let began = Instant::now();
        self.pipe.write_all(format!("{mark}\r\n").as_bytes())?;
        Ok((mark, began))
    }
}

/// Lines one by one to one viewer.
fn latencies(session: &mut Session, stream: &mut Stream, lines: u64) -> Result<Histogram<u64>> {
    let mut times = histogram();
    for number in 0..lines {
        let (mark, began) = session.write()?;
        let at = stream.until_text(|text| text.contains(&mark))?;
        let took = at.saturating_duration_since(began);
        times.saturating_record(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        // Slower than screens are published, and at every phase of that.
        std::thread::sleep(Duration::from_millis(35 + (number * 7) % 40));
    }
    Ok(times)
}

/// One session prints without end; another one is measured beside it.
fn flood(
    plan: &Plan,
    found: &mut Found,
    world: &World,
    service: &Service,
    calm: &mut Session,
    busy: &mut Session,
) -> Result<()> {
    let path = |session: &Session| format!("/ws/pty-screen/{}?format=diff", session.id);
    let mut viewer = Crowd::open(service.port, &path(busy), 1)?;
    let mut stream = Stream::of(Socket::open(service.port, &path(calm))?);
    let mut pids = keepers(world);
    pids.push(service.pid());
    let used =
        |pids: &[u32]| -> Result<f64> { pids.iter().map(|pid| processor_seconds(*pid)).sum() };
    let block = block();
    let mut pipe = busy.pipe.try_clone()?;
    let over = std::sync::atomic::AtomicBool::new(false);
    let is_over = || over.load(std::sync::atomic::Ordering::Relaxed);
    let (before, began) = (used(&pids)?, Instant::now());
    let (written, frames, times) = std::thread::scope(|scope| -> Result<_> {
        let writer = scope.spawn(|| -> std::io::Result<usize> {
            let mut written = 0;
            while !is_over() {
                pipe.write_all(&block)?;
                written += block.len();
            }
            Ok(written)
        });
        let reader = scope.spawn(|| -> Result<usize> {
            let mut frames = 0;
            while !is_over() {
                viewer.read(Instant::now() + Duration::from_millis(20), |_, _, _| {
                    frames += 1;
                    false
                })?;
            }
            Ok(frames)
        });
        let times = latencies(calm, &mut stream, plan.pick(150, 3));
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        let gone = |_| anyhow::anyhow!("a thread of the flood panicked");
        let written = writer.join().map_err(gone)??;
        let frames = reader.join().map_err(gone)??;
        Ok((written, frames, times?))
    })?;
    let took = began.elapsed();
    let share = (used(&pids)? - before) / took.as_secs_f64() * 100.0;
    let rate = written as f64 / 1e6 / took.as_secs_f64();
    let note = format!("{rate:.1} MB/s of output, {frames} frames, {:.0} ms", millis(took));
    let name = "flood of terminal output, processor of keepers and service";
    found.add(Figure::new(name, "%", vec![share]).at_most(Of::Worst, 30.0).note(note));
    let figure = Figure::latencies("terminal output to frame beside the flood of another", times);
    found.add(figure.at_most(Of::P99, 50.0));

    // What was printed last is what is seen last.
    let (mark, _) = busy.write()?;
    let seen = viewer.read(Instant::now() + DEADLINE, |_, _, text| text.contains(&mark))?;
    ensure!(seen, "the end of the flood is not shown");
    Ok(())
}

/// Coloured lines as a build prints them, 64 KiB.
fn block() -> Vec<u8> {
    let mut text = String::new();
    for number in 0.. {
        if text.len() > 65_000 {
            break;
        }
        let filler = "lorem ipsum dolor ".repeat(3);
        text += &format!("\x1b[38;5;{}mflood {number:08}\x1b[39m {filler}\r\n", number % 256);
    }
    text.into_bytes()
}
