//! The machine and its processes as the kernel shows them.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn field<'t>(text: &'t str, name: &str) -> &'t str {
    let line = text.lines().find(|line| line.split(':').next().unwrap_or_default().trim() == name);
    line.and_then(|line| line.split_once(':')).map_or("unknown", |(_, value)| value.trim())
}

/// What the figures of this run were taken on.
pub fn description(build: &str, place: &Path) -> Value {
    let cpu = text("/proc/cpuinfo");
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let file_system = Command::new("stat").args(["-f", "-c", "%T"]).arg(place).output();
    let file_system =
        file_system.map(|done| String::from_utf8_lossy(&done.stdout).trim().to_owned());
    json!({
        "processor": field(&cpu, "model name"),
        "cores": cores,
        "virtual": cpu.contains("hypervisor"),
        "memory": field(&text("/proc/meminfo"), "MemTotal"),
        "kernel": text("/proc/sys/kernel/osrelease").trim(),
        "file_system": file_system.unwrap_or_default(),
        "load_average_at_start": load(),
        "build": build,
    })
}

/// Durations of many syncs of one page of a file, in milliseconds.
pub fn syncs(place: &Path, times: usize) -> Result<Vec<f64>> {
    let path = place.join("sync");
    let mut file = fs::File::create(&path)?;
    let page = [7_u8; 4096];
    let mut took = Vec::new();
    for _ in 0..times {
        file.write_all(&page)?;
        let began = Instant::now();
        file.sync_data()?;
        took.push(began.elapsed().as_secs_f64() * 1e3);
    }
    fs::remove_file(path)?;
    Ok(took)
}

/// Load average over the last minute.
pub fn load() -> f64 {
    let text = text("/proc/loadavg");
    text.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(f64::NAN)
}

/// Memory of a process, in MiB.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// Everything resident.
    pub resident: f64,
    /// Of that what belongs to no file: heap and stacks.
    pub own: f64,
    /// The most that ever was resident.
    pub peak: f64,
}

pub fn memory(pid: u32) -> Result<Memory> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))
        .with_context(|| format!("process {pid} is gone"))?;
    let figure = |name| {
        let kib = field(&status, name).trim_end_matches(" kB").trim();
        kib.parse::<f64>().map_or(f64::NAN, |kib| kib / 1024.0)
    };
    Ok(Memory { resident: figure("VmRSS"), own: figure("RssAnon"), peak: figure("VmHWM") })
}

/// Memory of a process in MiB; pages that others hold too count by share.
pub fn proportional(pid: u32) -> Result<f64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))
        .with_context(|| format!("process {pid} is gone"))?;
    let kib = field(&rollup, "Pss").trim_end_matches(" kB").trim();
    Ok(kib.parse::<f64>()? / 1024.0)
}

/// Processor time of a process so far, in seconds, ended threads included.
pub fn processor_seconds(pid: u32) -> Result<f64> {
    // The clock of the process, to the nanosecond: an idle service uses less than a tick of `/proc` in
    // a minute.
    let pid = nix::unistd::Pid::from_raw(pid.try_into()?);
    let time = nix::time::clock_getcpuclockid(pid)?.now()?;
    Ok(time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9)
}

/// Processor time of this thread so far, in seconds.
pub fn own_seconds() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}
