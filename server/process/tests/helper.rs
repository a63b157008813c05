//! The programs that the process tests start.
//!
//! `__launch__` is the launcher, as in the service. `host <order>` is a service that holds a launch
//! until it is killed. `lock` and `run-lock` hold a lock until they are killed. `facts` writes what a
//! program can see of its start. `starve` is a service without a free descriptor. `umask` prints the
//! umask before and after hardening. `mute` is a launcher that never answers.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::error::Error;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use svc_domain::identity::Pid;
use svc_ports::process::{LaunchSpec, ProcessHost, Signal, Target};
use svc_process::launcher::LauncherProgram;
use svc_process::locks::FileLocks;
use svc_process::run_lock::{RunLock, RunRecord};
use svc_process::{Host, HostOptions, launcher, process_umask};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["__launch__"] => return launcher::run(),
        ["host", directory] => host(Path::new(directory)),
        ["lock", directory, path] => lock(Path::new(directory), Path::new(path)),
        ["run-lock", directory] => run_lock(Path::new(directory)),
        ["facts", file] => facts(Path::new(file)),
        ["starve", directory, victim] => starve(Path::new(directory), victim),
        ["umask"] => umask(),
        ["mute"] => wait_for_end(),
        _ => Err("unknown command".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

type Done = Result<(), Box<dyn Error>>;

fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Waits until it is killed, or until its parent is gone.
fn wait_for_end() -> Done {
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn options() -> HostOptions {
    HostOptions { launcher: LauncherProgram::default(), ..HostOptions::default() }
}

fn block_on<T>(future: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(future))
}

fn spec(directory: &Path) -> Result<LaunchSpec, Box<dyn Error>> {
    Ok(LaunchSpec {
        launch_id: "0123456789abcdef0123456789abcdef".parse()?,
        program: PathBuf::from("/bin/sh"),
        args: vec!["-c".into(), ": > started".into()],
        cwd: directory.canonicalize()?,
        env: Vec::new(),
        umask: 0o022,
        output: directory.join("out"),
        identity_file: directory.join("a.launch.json"),
        terminal: None,
    })
}

/// Stops a process and launches one without a free descriptor.
///
/// Then, with free descriptors, it does the same launch again.
fn starve(directory: &Path, victim: &str) -> Done {
    let host = Host::new(options())?;
    let victim = Pid::new(victim.parse()?).and_then(|pid| host.inspect(pid));
    let victim = victim.ok_or("the victim does not live")?.identity;
    let usual = getrlimit(Resource::Nofile);
    block_on(async {
        let first = host.launch(spec(directory)?).await?; // so that the runtime has opened all it needs
        drop(first);
        let none = Rlimit { current: Some(0), ..usual };
        setrlimit(Resource::Nofile, none)?;
        let verdict = host.probe(&victim);
        let sent = host.signal(&victim, Signal::Kill, Target::Group);
        let launched = host.launch(spec(directory)?).await.map(|_| ());
        let mut exited = host.exited(&victim);
        let ended = tokio::select! {
            biased;
            report = &mut exited => Some(report),
            () = tokio::task::yield_now() => None,
        };
        setrlimit(Resource::Nofile, usual)?;
        say(&format!("{verdict:?} {sent:?} {launched:?} {ended:?}"))?;
        host.launch(spec(directory)?).await?.go().await?;
        Ok(())
    })?
}

/// Holds a launch that would create the file `started`.
fn host(directory: &Path) -> Done {
    let host = Host::new(options())?;
    let spec = spec(directory)?;
    block_on(async {
        let held = host.launch(spec).await?;
        let identity = held.identity();
        say(&format!("{} {}", identity.pid, identity.start_ticks))?;
        tokio::task::spawn_blocking(|| wait_for_end().map_err(|error| error.to_string())).await??;
        Err("a service that holds a launch was expected to be killed".into())
    })?
}

fn lock(directory: &Path, path: &Path) -> Done {
    let locks = FileLocks::new(directory.to_owned());
    let _held = block_on(locks.lock(path, Duration::ZERO))??;
    say("held")?;
    wait_for_end()
}

fn run_lock(directory: &Path) -> Done {
    let host = Host::new(options())?;
    let record = RunRecord::of_this_process(host.table(), 7)?;
    match RunLock::take(directory, record) {
        Ok(mut taken) => {
            taken.set_address("127.0.0.1:8787".to_owned())?;
            say("held")?;
            wait_for_end()
        }
        Err(error) => {
            say("refused")?;
            Err(error.into())
        }
    }
}

/// Prints descriptors, session, group, limits, signals, umask and variable names.
fn facts(file: &Path) -> Done {
    let mut text = String::new();
    let mut numbers: Vec<String> = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let entry = entry?;
        let target = std::fs::read_link(entry.path())?;
        // The listing itself is open while it is read.
        if !target.starts_with("/proc") {
            numbers.push(format!("{}={}", entry.file_name().to_string_lossy(), target.display()));
        }
    }
    numbers.sort();
    text.push_str(&format!("fds {}\n", numbers.join(" ")));
    text.push_str(&format!("pid {}\n", std::process::id()));
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    text.push_str(&format!("stat {stat}"));
    for line in std::fs::read_to_string("/proc/self/status")?.lines() {
        if ["SigBlk", "SigIgn", "Umask"].iter().any(|name| line.starts_with(name)) {
            text.push_str(&format!("{line}\n"));
        }
    }
    for line in std::fs::read_to_string("/proc/self/limits")?.lines() {
        if line.starts_with("Max core file size") {
            text.push_str(&format!("{line}\n"));
        }
    }
    text.push_str(&format!("cwd {}\n", std::env::current_dir()?.display()));
    for (name, value) in std::env::vars_os() {
        text.push_str(&format!("env {name:?}={value:?}\n"));
    }
    let temporary = file.with_extension("part");
    std::fs::write(&temporary, text)?;
    std::fs::rename(temporary, file)?;
    Ok(())
}

fn umask() -> Done {
    let inherited = process_umask::harden();
    let again = process_umask::harden();
    let status = std::fs::read_to_string("/proc/self/status")?;
    let now = status.lines().find_map(|line| line.strip_prefix("Umask:")).unwrap_or_default();
    say(&format!("{inherited:o} {again:o} {}", now.trim()))?;
    Ok(())
}
