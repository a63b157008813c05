//! The launcher itself: prepares, waits for permission, becomes the agent.

use super::identity_file;
use super::order::{Order, RawText};
use crate::process_umask::permission_bits;
use crate::table::ProcTable;
use rustix::fs::{FileType, Mode, OFlags, fcntl_setfl, fstat, open};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, Rlimit, fchdir, getcwd, setrlimit, setsid, umask};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use std::ffi::CString;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use svc_domain::identity::LaunchId;

/// Nothing was started: the parent has ended without permission.
const EXIT_NO_PERMISSION: u8 = 0;
/// Nothing was started; the reason was reported.
const EXIT_REFUSED: u8 = 1;
/// The agent program could not be executed. Shells use the same number.
const EXIT_NOT_EXECUTED: u8 = 127;

/// Runs the hidden command. Call it first, before threads, runtimes or open files.
///
/// Returns only if no agent was started. The reason goes to standard output, which is a pipe to the
/// service.
#[must_use]
pub fn run() -> ExitCode {
    // Close-on-exec: the end of this pipe tells the service that the agent runs.
    let Ok(reply) = fcntl_dupfd_cloexec(io::stdout(), 3) else {
        return ExitCode::from(EXIT_REFUSED);
    };
    let mut reply = File::from(reply);
    let mut input = io::stdin().lock();
    let prepared = match prepare(&mut input) {
        Ok(prepared) => prepared,
        Err(reason) => {
            let one_line = reason.replace(['\n', '\r'], " ");
            let _ = writeln!(reply, "refused {one_line}"); // the service has ended: nobody to tell
            return ExitCode::from(EXIT_REFUSED);
        }
    };
    if reply.write_all(b"ready\n").is_err() || !is_permitted(&mut input) {
        return ExitCode::from(EXIT_NO_PERMISSION);
    }
    let error = prepared.execute();
    let _ = writeln!(reply, "errno {error}"); // the service has ended: nobody to tell
    ExitCode::from(EXIT_NOT_EXECUTED)
}

/// Waits for the line `go`. Anything else, such as end of input, is a refusal.
fn is_permitted(input: &mut impl BufRead) -> bool {
    let mut line = Vec::new();
    let read = input.take(3).read_until(b'\n', &mut line);
    read.is_ok() && line == b"go\n"
}

/// A prepared launch. Only the exec is left to do.
struct Prepared {
    program: CString,
    args: Vec<CString>,
    env: Vec<CString>,
    umask: Mode,
    /// What becomes standard input.
    input: OwnedFd,
}

fn prepare(input: &mut impl BufRead) -> Result<Prepared, String> {
    let order = Order::read(input).map_err(cannot("read the order"))?;
    let launch_id: LaunchId = order.launch_id.parse().map_err(cannot("use the launch id"))?;
    let program = c_string(&order.program)?;
    let args = std::iter::once(Ok(program.clone()))
        .chain(order.args.iter().map(c_string))
        .collect::<Result<_, _>>()?;
    let env = order.env.iter().map(variable).collect::<Result<_, _>>()?;
    let output = path(&order.output)?;
    let cwd = path(&order.cwd)?;
    let identity_path = path(&order.identity_file)?;

    // H33: we open everything close-on-exec. This closes what the service itself inherited.
    close_inherited().map_err(cannot("close inherited descriptors"))?;
    setsid().map_err(cannot("start a session of its own"))?;
    // A core file of an agent would hold its credentials.
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Core, none).map_err(cannot("forbid core files"))?;
    let (input, log) = if order.terminal {
        terminal().map_err(cannot("use the terminal"))?
    } else {
        let no_input = open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(cannot("open /dev/null"))?;
        let log = open_output(&output)
            .map_err(|e| format!("cannot open the output file {}: {e}", output.display()))?;
        (no_input, log)
    };
    enter(&cwd)
        .map_err(|e| format!("cannot enter the project directory {}: {e}", cwd.display()))?;
    dup2_stdout(&log).map_err(cannot("redirect standard output"))?;
    dup2_stderr(&log).map_err(cannot("redirect standard error"))?;

    let table = ProcTable::open().map_err(cannot("find out who it is"))?;
    let identity = table.own_identity().map_err(cannot("find out who it is"))?;
    identity_file::write(&identity_path, &launch_id, &identity).map_err(|e| chain(&e))?;
    Ok(Prepared { program, args, env, umask: permission_bits(order.umask), input })
}

impl Prepared {
    /// Becomes the agent. Returns the error number if that failed.
    fn execute(self) -> i32 {
        if let Err(error) = dup2_stdin(&self.input) {
            return error.raw_os_error();
        }
        if let Err(error) = nix::sys::signal::SigSet::empty().thread_set_mask() {
            return error as i32;
        }
        default_dispositions();
        umask(self.umask);
        // Not with std, which calls execvp: that runs a file of unknown format as a shell script, and
        // a program for another architecture would fail with a syntax error.
        match nix::unistd::execve(&self.program, &self.args, &self.env) {
            Ok(never) => match never {},
            Err(error) => error as i32,
        }
    }
}

fn c_string(text: &RawText) -> Result<CString, String> {
    let bytes = text.to_os_string().map_err(|e| e.to_string())?.into_vec();
    CString::new(bytes).map_err(|_| "an argument or path contains a NUL character".to_owned())
}

fn variable((name, value): &(RawText, RawText)) -> Result<CString, String> {
    let mut entry = name.to_os_string().map_err(|e| e.to_string())?;
    if entry.is_empty() || entry.as_bytes().contains(&b'=') {
        return Err(format!("{entry:?} is not the name of a variable"));
    }
    entry.push("=");
    entry.push(value.to_os_string().map_err(|e| e.to_string())?);
    CString::new(entry.into_vec())
        .map_err(|_| "an environment variable contains a NUL character".to_owned())
}

fn path(text: &RawText) -> Result<PathBuf, String> {
    text.to_os_string().map(PathBuf::from).map_err(|error| error.to_string())
}

fn cannot<E: Display>(what: &'static str) -> impl FnOnce(E) -> String {
    move |error| format!("cannot {what}: {error}")
}

/// An error with its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

/// The terminal at standard error, twice.
///
/// It is made the controlling terminal of this session.
fn terminal() -> io::Result<(OwnedFd, OwnedFd)> {
    let terminal = fcntl_dupfd_cloexec(io::stderr(), 3)?;
    rustix::process::ioctl_tiocsctty(&terminal)?;
    Ok((fcntl_dupfd_cloexec(&terminal, 3)?, terminal))
}

/// Opens an existing log. Refuses a link, pipe or device in its place.
fn open_output(path: &Path) -> io::Result<OwnedFd> {
    let wanted = OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Without NONBLOCK a pipe in its place would block this process for ever.
    let file = open(path, wanted | OFlags::NONBLOCK | OFlags::NOCTTY, Mode::empty())?;
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(io::Error::other("it is not a regular file"));
    }
    fcntl_setfl(&file, OFlags::APPEND)?;
    Ok(file)
}

/// Enters a directory by its real path, and checks that the path is still real.
fn enter(real_path: &Path) -> io::Result<()> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    fchdir(open(real_path, flags, Mode::empty())?)?;
    let entered = getcwd(Vec::new())?;
    if entered.as_bytes() != real_path.as_os_str().as_bytes() {
        return Err(io::Error::other("its path leads through a link now; try again"));
    }
    Ok(())
}

/// Closes descriptors above standard error that the agent would inherit.
///
/// Descriptors of this process are close-on-exec and stay open. The others were inherited, and no
/// value in this program owns them.
///
/// # Errors
/// They cannot be listed, or one cannot be closed.
pub fn close_inherited() -> io::Result<()> {
    for number in inherited()? {
        match nix::unistd::close(number) {
            Ok(()) | Err(nix::errno::Errno::EBADF) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn inherited() -> io::Result<Vec<i32>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fdinfo")? {
        let entry = entry?;
        let Some(number) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        if number <= 2 {
            continue;
        }
        // `flags:` is octal and has the close-on-exec bit (proc_pid_fdinfo(5)).
        let info = std::fs::read_to_string(entry.path())?;
        let flags = info
            .lines()
            .find_map(|line| line.strip_prefix("flags:"))
            .and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok())
            .ok_or(io::ErrorKind::InvalidData)?;
        if flags & OFlags::CLOEXEC.bits() == 0 {
            found.push(number);
        }
    }
    Ok(found)
}

#[cfg(not(target_os = "linux"))]
fn inherited() -> io::Result<Vec<i32>> {
    // This system cannot list descriptors with their flags: inherited ones stay open.
    Ok(Vec::new())
}

/// Lets the agent start with default signal handling (H36).
///
/// Ignored signals stay ignored across exec, handled signals become default. So each ignored signal
/// gets a handler just before the exec. Rust programs ignore SIGPIPE, background commands of a shell
/// ignore SIGINT. SIGILL, SIGFPE and SIGSEGV cannot be handled this way and stay as they are.
fn default_dispositions() {
    for signal in ignored_signals() {
        if !signal_hook::consts::FORBIDDEN.contains(&signal) {
            let unused = std::sync::Arc::default();
            // Fails for 32 and 33, which the C library reserves: it ignores them in programs that it
            // spawns, and sets them when a program starts threads.
            let _ = signal_hook::flag::register(signal, unused);
        }
    }
}

#[cfg(target_os = "linux")]
fn ignored_signals() -> Vec<i32> {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else {
        return vec![signal_hook::consts::SIGPIPE];
    };
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or_default();
    (1..=64).filter(|signal| mask >> (signal - 1) & 1 == 1).collect()
}

#[cfg(not(target_os = "linux"))]
fn ignored_signals() -> Vec<i32> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM};
    vec![SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM]
}
