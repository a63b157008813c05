//! Load and company: memory, processor time, and processes that only exist.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::failure::Failure;
use super::signals;
use super::values::ChildMode;

/// First argument of a process that only exists.
pub(crate) const BYSTANDER: &str = "__bystander";
/// Mode of a process in its own session that ends with its starter.
const COMPANION: &str = "companion";
/// Period of the processor load: long enough to sleep in, short enough to be even.
const CPU_PERIOD: Duration = Duration::from_millis(20);

/// Starts one process of knob `children`. It holds a pipe to its starter.
pub(crate) fn start_child(mode: ChildMode, life_ms: u64) -> io::Result<Child> {
    start(mode.argument(), life_ms)
}

/// Starts the processes of knob `children`, in groups.
/// One by one, thousands take minutes where others work, too.
pub(crate) fn start_children(count: u32, mode: ChildMode, life_ms: u64) -> Vec<Child> {
    const AT_ONCE: usize = 32;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let mut children = Vec::new();
    for first in (0..count).step_by(AT_ONCE) {
        let group = AT_ONCE.min(count - first);
        let begun: Vec<_> =
            (0..group).map_while(|_| spawn(mode.argument(), life_ms).ok()).collect();
        let is_whole = begun.len() == group;
        children.extend(begun.into_iter().filter_map(|child| settled(child).ok()));
        if !is_whole {
            break;
        }
    }
    children
}

/// Starts a process that belongs to somebody else as far as anyone can see.
pub(crate) fn start_companion() -> io::Result<Child> {
    start(COMPANION, u64::MAX)
}

/// Starts a child as knob `child_mode` says, and waits until it is as that says.
fn start(mode: &str, life_ms: u64) -> io::Result<Child> {
    settled(spawn(mode, life_ms)?)
}

/// Waits until a child is as its mode says.
/// Whoever sees the starter ready may rely on the child's session and signals.
fn settled(mut child: Child) -> io::Result<Child> {
    if let Some(mut settled) = child.stdout.take() {
        let _ = settled.read(&mut [0; 1])?;
    }
    Ok(child)
}

fn spawn(mode: &str, life_ms: u64) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    if matches!(ChildMode::from_argument(mode), Some(ChildMode::Unmarked | ChildMode::Forsaken)) {
        command.env_remove("SVC_LAUNCH_ID");
    }
    if mode == ChildMode::Escaped.argument() {
        // Without these this program does nothing.
        let kept = ["AGENT_SIM", "CLAUDE_CONFIG_DIR", "HOME"];
        let kept = kept.map(|name| (name, std::env::var_os(name).unwrap_or_default()));
        command.env_clear().envs(kept);
    }
    command
        .arg0("sim-bystander")
        .args([BYSTANDER, mode, &life_ms.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
}

/// Tells the starter that this process is as it was asked to be.
fn tell_settled() {
    let _ = io::stdout().write_all(b"\n"); // a starter that has ended needs no answer
    let _ = io::stdout().flush();
}

/// The life of a process started by this module.
pub(crate) fn bystand(mode: &str, life_ms: Option<&String>) -> Result<u8, Failure> {
    let life_ms: u64 = life_ms.and_then(|ms| ms.parse().ok()).unwrap_or(0);
    match ChildMode::from_argument(mode) {
        Some(ChildMode::SameGroup) => {
            tell_settled();
            wait_for_starter();
        }
        Some(ChildMode::NewSession) => {
            leave_session()?;
            tell_settled();
            std::thread::sleep(Duration::from_millis(life_ms));
        }
        Some(ChildMode::IgnoreSignals) => {
            signals::ignore(&[SIGINT, SIGTERM, SIGHUP]);
            tell_settled();
            std::thread::sleep(Duration::from_millis(life_ms));
        }
        Some(ChildMode::Unmarked) => {
            signals::ignore(&[SIGINT, SIGTERM, SIGHUP]);
            leave_session()?;
            tell_settled();
            std::thread::sleep(Duration::from_millis(life_ms));
        }
        Some(ChildMode::Forsaken) => {
            // The child that stays is one of this process, which ends now.
            let stays = start(ChildMode::IgnoreSignals.argument(), life_ms);
            stays.map_err(|e| Failure::refused(format!("cannot start a process: {e}")))?;
            tell_settled();
        }
        Some(ChildMode::Escaped) => {
            leave_session()?;
            let stays = start(ChildMode::Unmarked.argument(), life_ms);
            stays.map_err(|e| Failure::refused(format!("cannot start a process: {e}")))?;
            tell_settled();
        }
        None if mode == COMPANION => {
            leave_session()?;
            tell_settled();
            wait_for_starter();
        }
        None => return Err(Failure::refused(format!("unknown bystander {mode:?}"))),
    }
    Ok(0)
}

fn leave_session() -> Result<(), Failure> {
    rustix::process::setsid()
        .map(drop)
        .map_err(|e| Failure::refused(format!("cannot start a session: {e}")))
}

/// Returns when the starter's end of the pipe is gone, however the starter ended.
fn wait_for_starter() {
    let _ = io::stdin().lock().read_to_end(&mut Vec::new());
}

/// Memory of knob `memory_mb`, every page touched; held as long as the value lives.
pub(crate) fn hold_memory(mb: u64) -> Vec<u8> {
    let bytes = usize::try_from(mb.saturating_mul(1 << 20)).unwrap_or(usize::MAX);
    let mut held = Vec::new();
    if held.try_reserve_exact(bytes).is_ok() {
        held.resize(bytes, 1);
    }
    held
}

/// Burns `percent` of one processor for the life of the process.
pub(crate) fn burn(percent: u8) {
    if percent == 0 {
        return;
    }
    let busy = CPU_PERIOD.mul_f64(f64::from(percent.min(100)) / 100.0);
    std::thread::spawn(move || {
        loop {
            let begun = Instant::now();
            while begun.elapsed() < busy {
                std::hint::spin_loop();
            }
            std::thread::sleep(CPU_PERIOD.saturating_sub(begun.elapsed()));
        }
    });
}
