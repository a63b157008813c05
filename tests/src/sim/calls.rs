//! The record of every start: one JSON line in `calls.jsonl`.
//!
//! Tests read from it argv, environment, descriptors and terminal of processes that they did not
//! start themselves.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::fs::Mode;
use rustix::process;
use rustix::termios::{isatty, tcgetwinsize};
use serde_json::{Value, json};

use super::failure::Failure;
use super::files;
use super::home::AgentHome;

/// Appends the record of this start. `record_env` names the recorded variables.
pub(crate) fn record(
    home: &AgentHome,
    args: &[String],
    cwd: &Path,
    record_env: &[String],
) -> Result<(), Failure> {
    // First: opening anything would show up among the descriptors.
    let fds = open_descriptors();
    let mut names: Vec<String> =
        env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    names.sort();
    let values: BTreeMap<&String, String> = record_env
        .iter()
        .filter_map(|name| Some((name, env::var_os(name)?.to_string_lossy().into_owned())))
        .collect();
    let own = process::getpid();
    let line = json!({
        "ts": now_ms(),
        "pid": own.as_raw_nonzero(),
        "ppid": process::getppid().map(process::Pid::as_raw_nonzero),
        // 0 where the leader lives outside this PID namespace, which only this crate's type holds.
        "pgid": nix::unistd::getpgrp().as_raw(),
        "sid": nix::unistd::getsid(None).ok().map(nix::unistd::Pid::as_raw),
        "exe": env::current_exe().ok(),
        "argv": args,
        "cwd": cwd,
        "umask": own_umask(),
        "env_names": names,
        "env": values,
        "fds": fds,
        "stdin": stdin_kind(),
        "tty": isatty(io::stdin()),
        "winsize": window_size(),
    });
    let file = home.mark().join("calls.jsonl");
    files::append(&file, format!("{line}\n").as_bytes()).map_err(|e| {
        Failure::refused(format!("cannot append to {}: {e}; check the agent home", file.display()))
    })
}

/// Milliseconds since the epoch.
pub(crate) fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}

/// Number and target of each open descriptor, without the one used to look.
fn open_descriptors() -> Value {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else {
        return Value::Null;
    };
    let listed: BTreeMap<u32, String> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let number = entry.file_name().to_str()?.parse().ok()?;
            let target = fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned();
            // The directory being listed is this process's own descriptor table.
            let own = format!("/proc/{}/fd", std::process::id());
            (target != own).then_some((number, target))
        })
        .collect();
    json!(listed)
}

fn stdin_kind() -> &'static str {
    if isatty(io::stdin()) {
        return "tty";
    }
    let Ok(meta) = fs::metadata("/dev/stdin") else {
        return "closed";
    };
    let kind = meta.file_type();
    let null = fs::metadata("/dev/null").is_ok_and(|null| {
        use std::os::unix::fs::MetadataExt;
        null.rdev() == meta.rdev() && kind.is_char_device()
    });
    match () {
        () if null => "null",
        () if kind.is_fifo() => "pipe",
        () if kind.is_socket() => "socket",
        () if kind.is_file() => "file",
        () => "other",
    }
}

fn window_size() -> Value {
    match tcgetwinsize(io::stdin()) {
        Ok(size) => json!({ "cols": size.ws_col, "rows": size.ws_row }),
        Err(_) => Value::Null,
    }
}

/// The umask can only be read by setting it; nothing else runs yet.
fn own_umask() -> String {
    let umask = process::umask(Mode::from_raw_mode(0o077));
    process::umask(umask);
    format!("{:03o}", umask.as_raw_mode())
}
