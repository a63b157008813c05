//! Measures what sampling costs.
//!
//! Run `cargo run --release -p svc-process --example meter_cost [TREES]`. It starts TREES trees (20) of
//! five processes each, measures them as the service does every four seconds, and prints the processor
//! time of one round and its share of a core.

#![expect(clippy::print_stdout, reason = "figures are what it is for")]

use std::error::Error;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use svc_domain::identity::Pid;
use svc_process::meter::{Meter, Root};
use svc_process::table::ProcTable;

/// Rounds that are averaged.
const ROUNDS: u32 = 300;
/// The default of `metrics.poll_seconds`.
const POLL: Duration = Duration::from_secs(4);
/// A shell with four children, which end when the pipe closes.
const TREE: &str = "for n in 1 2 3 4; do cat <&3 & done; wait";

fn main() -> Result<(), Box<dyn Error>> {
    let count = std::env::args().nth(1).map_or(Ok(20), |given| given.parse::<usize>())?;
    let table = ProcTable::open()?;
    let mut trees = Vec::new();
    for _ in 0..count {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec 3<&0; {TREE}")]);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        trees.push(command.spawn()?);
    }
    let root = |child: &Child| {
        let pid = Pid::new(i64::from(child.id())).ok_or("the pid of the init process")?;
        let facts = table.facts(pid).ok_or("a tree ended at once")?;
        Ok::<Root, Box<dyn Error>>(Root { identity: facts.identity, launch: None })
    };
    let roots: Vec<Root> = trees.iter().map(root).collect::<Result<_, _>>()?;
    // The shells need a moment to start their children.
    std::thread::sleep(Duration::from_secs(1));

    for with_disk in [true, false] {
        let mut meter = Meter::open(with_disk)?;
        let processes: usize = meter.measure(&roots).iter().flatten().map(|tree| tree.len()).sum();
        let before = own_time();
        for _ in 0..ROUNDS {
            meter.measure(&roots);
        }
        let each = own_time().saturating_sub(before) / ROUNDS;
        println!(
            "{count} trees, {processes} processes, disk {}: {each:?} of processor time per round, \
             {:.4} % of a core at one round every {} s",
            if with_disk { "on" } else { "off" },
            each.as_secs_f64() / POLL.as_secs_f64() * 100.0,
            POLL.as_secs(),
        );
    }
    for mut tree in trees {
        drop(tree.stdin.take());
        tree.wait()?;
    }
    Ok(())
}

fn own_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let whole = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0));
    whole + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}
