//! The bridge pointer: which remote environment a directory's last bridge served.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde::Deserialize;
use serde_json::json;

use super::debug_log::{DebugLog, Level};
use super::double::Double;
use super::process;
use super::values::PointerKind;

/// Age of the last write after which the agent drops a pointer (agent 2.1.197).
const LIFETIME: Duration = Duration::from_secs(4 * 60 * 60);

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pointer {
    pub(crate) session_id: String,
    pub(crate) environment_id: String,
    source: String,
    pid: Option<u32>,
    proc_start: Option<String>,
}

/// What a start learns from the pointer of its directory.
#[derive(Debug)]
pub(crate) enum Found {
    /// No pointer that counts; an invalid or stale one was deleted.
    Nothing,
    /// Another live process wrote it: register anew and leave the pointer alone.
    InUse { pid: u32 },
    /// Offer its environment for reuse.
    Prior { pointer: Pointer, age: Duration },
}

/// Who a written pointer names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) session: &'a str,
    pub(crate) environment: &'a str,
    /// The live stranger of variant `foreign_pid`.
    pub(crate) stranger: Option<u32>,
}

/// Reads the pointer by the agent's rules.
pub(crate) fn read(double: &Double, log: &DebugLog) -> Found {
    let path = path(double);
    let (Ok(text), Ok(written)) =
        (fs::read(&path), fs::metadata(&path).and_then(|meta| meta.modified()))
    else {
        return Found::Nothing;
    };
    let known = |pointer: &Pointer| match pointer.source.as_str() {
        "standalone" | "repl" => true,
        "next" => double.profile.is_future(),
        _ => false,
    };
    let pointer: Pointer = match serde_json::from_slice(&text) {
        Ok(pointer) if known(&pointer) => pointer,
        Ok(_) | Err(_) => {
            log.debug(&format!("[bridge:pointer] invalid schema, clearing: {}", path.display()));
            clear(double, log);
            return Found::Nothing;
        }
    };
    let age = SystemTime::now().duration_since(written).unwrap_or_default();
    if age > LIFETIME {
        log.debug(&format!("[bridge:pointer] stale (>4h mtime), clearing: {}", path.display()));
        clear(double, log);
        return Found::Nothing;
    }
    let live = pointer.pid.filter(|pid| {
        *pid != std::process::id() && process::is_same(*pid, pointer.proc_start.as_deref())
    });
    match live {
        Some(pid) => Found::InUse { pid },
        None if pointer.source == "repl" => Found::Nothing,
        None => Found::Prior { pointer, age },
    }
}

/// Writes the pointer in the variant of knob `pointer`; false if there is none now.
pub(crate) fn write(double: &Double, log: &DebugLog, target: Target<'_>) -> bool {
    if double.knobs.pointer == PointerKind::None {
        return false;
    }
    let path = path(double);
    match try_write(double, target) {
        Ok(()) => {
            log.debug(&format!("[bridge:pointer] wrote {}", path.display()));
            true
        }
        Err(e) => {
            log.line(Level::Warn, &format!("[bridge:pointer] write failed: {e}"));
            false
        }
    }
}

fn try_write(double: &Double, target: Target<'_>) -> io::Result<()> {
    let path = path(double);
    fs::create_dir_all(double.home.project_dir(&double.cwd))?;
    let source = if double.profile.is_future() { "next" } else { "standalone" };
    let own = std::process::id();
    let (pid, start) = match (double.knobs.pointer, target.stranger) {
        (PointerKind::ForeignPid, Some(pid)) => (pid, process::start_ticks(pid)),
        _ => (own, process::start_ticks(own)),
    };
    let mut object = json!({
        "sessionId": target.session,
        "environmentId": target.environment,
        "source": source,
        "pid": pid,
        "procStart": start.map(|ticks| ticks.to_string()),
    });
    if let Some(fields) = object.as_object_mut() {
        if start.is_none() {
            fields.remove("procStart");
        }
        if double.knobs.pointer == PointerKind::NoPid {
            fields.remove("pid");
            fields.remove("procStart");
        }
        if double.profile.is_future() {
            fields.insert("lease".into(), json!({ "epoch": 3 }));
        }
    }
    let text = object.to_string();
    // A pointer of mode 000 from before cannot be opened again, not even by its owner.
    if let Ok(meta) = fs::metadata(&path)
        && meta.permissions().mode() & 0o777 == 0
    {
        fs::remove_file(&path)?;
    }
    match double.knobs.pointer {
        PointerKind::None => {}
        PointerKind::Ok | PointerKind::ForeignPid | PointerKind::NoPid => fs::write(&path, text)?,
        PointerKind::Garbage => fs::write(&path, b"\xff\xfe{not json")?,
        PointerKind::Truncated => fs::write(&path, text.get(..text.len() / 2).unwrap_or_default())?,
        PointerKind::Mode000 => {
            fs::write(&path, text)?;
            fs::set_permissions(&path, Permissions::from_mode(0o000))?;
        }
        PointerKind::Huge => {
            let mut file = File::create(&path)?;
            file.write_all(b"{\"sessionId\":\"")?;
            // 100 MiB without using the disk: the rest is a hole.
            file.set_len(100 << 20)?;
        }
        PointerKind::OldBoot => {
            fs::write(&path, text)?;
            let before_boot = boot_time().unwrap_or(SystemTime::UNIX_EPOCH);
            File::options().write(true).open(&path)?.set_modified(
                before_boot.checked_sub(Duration::from_secs(3600)).unwrap_or(before_boot),
            )?;
        }
    }
    Ok(())
}

/// Start of this boot, from `/proc/stat`.
fn boot_time() -> Option<SystemTime> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let seconds = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds.trim().parse().ok()?))
}

/// Deletes the pointer.
pub(crate) fn clear(double: &Double, log: &DebugLog) {
    let path = path(double);
    match fs::remove_file(&path) {
        Ok(()) => log.debug(&format!("[bridge:pointer] cleared {}", path.display())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => log.line(Level::Warn, &format!("[bridge:pointer] clear failed: {e}")),
    }
}

fn path(double: &Double) -> PathBuf {
    double.home.project_dir(&double.cwd).join("bridge-pointer.json")
}
