//! Facts of this machine that explain how a service behaves on it.
//!
//! Names of the machine, its users and its addresses are left out.

use serde_json::{Value, json};
use std::path::Path;

/// System, kernel, processor, memory and space. Blocks.
pub(super) fn facts(state_dir: &Path) -> Value {
    let kernel = rustix::system::uname();
    let text = |raw: &std::ffi::CStr| raw.to_string_lossy().into_owned();
    let space = state_dir.ancestors().find(|place| place.exists());
    let space = space.and_then(|place| rustix::fs::statvfs(place).ok());
    let is_container =
        ["/.dockerenv", "/run/.containerenv"].iter().any(|mark| Path::new(mark).exists());
    let of_space = |blocks: u64, size: u64| blocks.saturating_mul(size);
    json!({
        "system": distribution(),
        "kernel": text(kernel.release()),
        "machine": text(kernel.machine()),
        "processors": std::thread::available_parallelism().map_or(0, |many| many.get()),
        "memory_total_kib": memory("MemTotal"),
        "memory_available_kib": memory("MemAvailable"),
        "swap_total_kib": memory("SwapTotal"),
        "state_dir_free_bytes": space.as_ref().map(|it| of_space(it.f_bavail, it.f_frsize)),
        "state_dir_total_bytes": space.as_ref().map(|it| of_space(it.f_blocks, it.f_frsize)),
        "uptime_seconds": first_word("/proc/uptime").and_then(|word| word.parse::<f64>().ok()),
        "load": first_word("/proc/loadavg"),
        "runs_as_root": rustix::process::geteuid().is_root(),
        "has_systemd": Path::new("/run/systemd/system").exists(),
        "is_container": is_container,
        "open_files_limit": rustix::process::getrlimit(rustix::process::Resource::Nofile).current,
        "language": std::env::var("LANG").ok(),
    })
}

fn distribution() -> Option<String> {
    let text = std::fs::read_to_string("/etc/os-release").ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

fn memory(name: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

fn first_word(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    text.split_whitespace().next().map(str::to_owned)
}
