//! A bridge's life in milliseconds: start, stop, and the news of its end.

use crate::http::word;
use crate::machine;
use crate::plan::{Found, Plan, millis};
use crate::report::{Figure, Of, histogram};
use crate::socket::Stream;
use crate::world::{DEADLINE, Service, World, launch, launch_together, name, stop};
use anyhow::{Context as _, Result, ensure};
use hdrhistogram::Histogram;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Bridges that are started at the same moment.
const AT_ONCE: usize = 20;
/// The last thing an agent says before it counts as registered.
const REGISTERED: &str = "Starting poll loop";

pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let mut found = Found::of(plan);
    let world = World::new(&plan.programs, AT_ONCE)?;
    let service = world.serve()?;
    let mut stream = Stream::open(service.port)?;
    let alone = Agent::like(&world, &service)?;
    singles(plan, &mut found, &world, &service, &mut stream, &alone)?;
    at_once(plan, &mut found, &world, &service, &mut stream, &alone)?;
    ends(plan, &mut found, &world, &service, &mut stream)?;
    service.stop()?;
    world.end()?;
    Ok(found.all())
}

fn singles(
    plan: &Plan,
    found: &mut Found,
    world: &World,
    service: &Service,
    stream: &mut Stream,
    alone: &Agent,
) -> Result<()> {
    let runs = plan.pick(100, 3);
    let syncs = machine::syncs(&world.root, runs)?;
    let sync = Figure::new("a page of a file made durable", "ms", syncs);
    found.add(sync.note("a start commits four times, a stop twice"));
    let mut connection = service.connect()?;
    let mut used = 0.0;
    let (mut answered, mut shown, mut own, mut stops) = (vec![], vec![], vec![], histogram());
    let mut stopped = histogram();
    for run in 0..runs {
        // In turn, so that both see the same machine.
        world.forget(&name(1))?;
        own.push(millis(alone.registers(&world.projects.join(name(1)), run)?));
        world.forget(&name(0))?;
        let before = machine::processor_seconds(service.pid())?;
        let began = Instant::now();
        let record = launch(&mut connection, &name(0))?;
        used += machine::processor_seconds(service.pid())? - before;
        answered.push(millis(began.elapsed()));
        let at = stream.until_status(&[&record], "running")?;
        shown.push(millis(at.saturating_duration_since(began)));
        let began = Instant::now();
        let reply = stop(&mut connection, &record)?;
        note(&mut stops, began.elapsed());
        ensure!(word(&reply, "status") == "stopped", "a stop ended otherwise: {reply}");
        let at = stream.until_status(&[&record], "stopped")?;
        note(&mut stopped, at.saturating_duration_since(began));
    }
    let own = Figure::new("agent alone, start to registered", "ms", own);
    let usual = own.quantile(0.5);
    let over = shown.iter().map(|time| time - usual).collect();
    found.add(own);
    found.add(Figure::new("spawn to running, on the stream", "ms", shown));
    found.add(Figure::new("spawn to running, the answer", "ms", answered));
    let over = Figure::new("spawn to running, over the agent's own time", "ms", over);
    let cost = used / runs as f64 * 1e3;
    let note = format!("less the median of the agent alone; {cost:.1} ms of processor each");
    found.add(over.at_most(Of::Median, 8.0).note(note));
    let figure = Figure::latencies("cooperative stop, the answer", stops);
    found.add(figure.at_most(Of::Median, 10.0).at_most(Of::P99, 25.0));
    found.add(Figure::latencies("cooperative stop, on the stream", stopped));
    Ok(())
}

fn note(histogram: &mut Histogram<u64>, time: Duration) {
    histogram.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
}

fn at_once(
    plan: &Plan,
    found: &mut Found,
    world: &World,
    service: &Service,
    stream: &mut Stream,
    alone: &Agent,
) -> Result<()> {
    let (mut all, mut own) = (Vec::new(), Vec::new());
    for round in 0..plan.pick(8, 1) {
        let forget = || (0..AT_ONCE).try_for_each(|number| world.forget(&name(number)));
        forget()?;
        own.push(millis(alone.register_together(AT_ONCE, round)?));
        forget()?;
        let (began, records) = launch_together(service, AT_ONCE)?;
        let bridges: Vec<&Value> = records.iter().collect();
        let last = stream.until_status(&bridges, "running")?;
        all.push(millis(last.saturating_duration_since(began)));
        let mut connection = service.connect()?;
        records.iter().try_for_each(|record| stop(&mut connection, record).map(drop))?;
        stream.until_status(&bridges, "stopped")?;
    }
    let own = Figure::new(format!("{AT_ONCE} agents alone, all registered"), "ms", own);
    let usual = own.quantile(0.5);
    let over = all.iter().map(|time| time - usual).collect();
    found.add(own);
    found.add(Figure::new(format!("{AT_ONCE} spawns at once, all running"), "ms", all));
    let name = format!("{AT_ONCE} spawns at once, over the agents' own time");
    found.add(Figure::new(name, "ms", over).at_most(Of::Median, 150.0));
    Ok(())
}

/// From the moment the kernel knows of an end to the frame that tells of the crash.
fn ends(
    plan: &Plan,
    found: &mut Found,
    world: &World,
    service: &Service,
    stream: &mut Stream,
) -> Result<()> {
    let runs = plan.pick(60, 3);
    let mut connection = service.connect()?;
    let mut moment = 7_u64;
    let mut next = || {
        // A linear congruence: moments that are spread, and the same in every run.
        moment =
            moment.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (moment >> 33) % 120
    };
    for (how, is_killed) in [("kill -9", true), ("exit 1", false)] {
        let mut times = histogram();
        for run in 0..runs {
            let project = name(usize::from(is_killed) * 10 + run % 10);
            let pause = next();
            if !is_killed {
                world.set_knobs(&project, &json!({ "exit_after_ready_ms": 250 + pause }))?;
            }
            world.forget(&project)?;
            let body = json!({ "project": project });
            let record = connection.post("/api/v1/instances", &body)?.expect(201)?.json()?;
            let opened =
                pid_of(&record).and_then(|pid| Ok((pid, pidfd_open(pid, PidfdFlags::empty())?)));
            let Ok((pid, descriptor)) = opened else {
                // It ended before it could be looked at: a slow moment, and no sample.
                stream.until_status(&[&record], "crashed")?;
                continue;
            };
            if is_killed {
                std::thread::sleep(Duration::from_millis(pause));
                kill_process(pid, Signal::KILL)?;
            }
            poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], None)?;
            let ended = Instant::now();
            let at = stream.until_status(&[&record], "crashed")?;
            note(&mut times, at.saturating_duration_since(ended));
        }
        let figure = Figure::latencies(format!("{how} to crashed on the stream"), times);
        found.add(figure.at_most(Of::Median, 10.0).at_most(Of::P99, 30.0));
    }
    Ok(())
}

fn pid_of(record: &Value) -> Result<Pid> {
    let pid = record.get("bridge_pid").and_then(Value::as_i64).context("a process")?;
    Pid::from_raw(i32::try_from(pid)?).context("a process id")
}

/// The agent as the service starts it, without the service.
struct Agent {
    program: PathBuf,
    args: Vec<String>,
    /// Which of them names the debug file.
    file: usize,
    environment: Vec<(String, String)>,
    projects: PathBuf,
    logs: PathBuf,
}

impl Agent {
    /// Looks at one that the service started.
    fn like(world: &World, service: &Service) -> Result<Self> {
        let record = launch(&mut service.connect()?, &name(0))?;
        let pid = pid_of(&record)?.as_raw_nonzero();
        let strings = |file: &str| -> Result<Vec<String>> {
            let text = fs::read(format!("/proc/{pid}/{file}"))?;
            let text = String::from_utf8_lossy(&text).into_owned();
            Ok(text.split_terminator('\0').map(str::to_owned).collect())
        };
        let (args, environment) = (strings("cmdline")?, strings("environ")?);
        stop(&mut service.connect()?, &record)?;
        let split = |line: &String| Some(line.split_once('=')?).map(|(n, v)| (n.into(), v.into()));
        let file = args.iter().position(|arg| arg.contains("/state/logs/"));
        Ok(Self {
            program: world.programs.simulator.clone(),
            file: file.context("the agent has no debug file")?,
            args,
            environment: environment.iter().filter_map(split).collect(),
            projects: world.projects.clone(),
            logs: world.root.join("tmp"),
        })
    }

    fn start(&self, dir: &Path, log: &Path) -> Result<Child> {
        let mut args = self.args.clone();
        if let Some(arg) = args.get_mut(self.file) {
            let prefix = arg.split_once('/').map_or("", |(prefix, _)| prefix).to_owned();
            *arg = format!("{prefix}{}", log.display());
        }
        let mut command = Command::new(&self.program);
        command.args(args.iter().skip(1)).current_dir(dir).env_clear();
        command.envs(self.environment.iter().map(|(n, v)| (n, v)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(command.spawn()?)
    }

    /// One start: how long until it is registered.
    fn registers(&self, dir: &Path, run: usize) -> Result<Duration> {
        let log = self.logs.join(format!("alone-{run}.log"));
        let began = Instant::now();
        let child = self.start(dir, &log)?;
        let registered = wait_for(&log, began);
        let took = began.elapsed();
        finish(child)?;
        registered.map(|()| took)
    }

    /// Many at the same moment: how long until the last is registered.
    fn register_together(&self, agents: usize, round: usize) -> Result<Duration> {
        let began = Instant::now();
        let mut started = Vec::new();
        for number in 0..agents {
            let log = self.logs.join(format!("together-{round}-{number}.log"));
            started.push((self.start(&self.projects.join(name(number)), &log)?, log));
        }
        let registered: Result<()> = started.iter().try_for_each(|(_, log)| wait_for(log, began));
        let took = began.elapsed();
        for (child, _) in started {
            finish(child)?;
        }
        registered.map(|()| took)
    }
}

fn wait_for(log: &Path, began: Instant) -> Result<()> {
    while !fs::read_to_string(log).unwrap_or_default().contains(REGISTERED) {
        ensure!(began.elapsed() < DEADLINE, "an agent alone does not register");
        std::thread::sleep(Duration::from_micros(200));
    }
    Ok(())
}

fn finish(mut child: Child) -> Result<()> {
    let pid = Pid::from_raw(i32::try_from(child.id())?).context("a process id")?;
    kill_process(pid, Signal::INT)?;
    child.wait()?;
    Ok(())
}
