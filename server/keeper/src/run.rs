//! The keeper itself.
//!
//! It starts the agent on a terminal, draws what the agent writes, and serves clients.
//!
//! One thread and one poll loop. The order of a start is that of `svc_process::launcher`: the keeper
//! starts the launcher on the terminal, tells the service who it is, and passes on `go`.

mod agent;
mod allowance;
mod client;
mod keeper;
mod machine;
mod publish;
mod report;
mod setup;
mod socket;
mod watch;

use report::cannot;
use setup::Setup;
use std::fs::File;
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::process::ExitCode;
use svc_process::launcher::{KeeperOrder, LauncherProgram};

/// The service has ended or nothing was to be kept.
const EXIT_NOT_STARTED: u8 = 1;

/// Runs the hidden command `__keeper__`.
///
/// Call it before threads, runtimes or open files.
///
/// Standard input and output are pipes to the service. Returns when the agent has ended and its last
/// screen was served, or when nothing was started.
#[must_use]
pub fn run(launcher: &LauncherProgram) -> ExitCode {
    svc_process::process_umask::harden();
    let Ok(reply) = rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3) else {
        return ExitCode::from(EXIT_NOT_STARTED);
    };
    let mut reply = File::from(reply);
    let started = match start(launcher, &mut reply) {
        Ok(started) => started,
        Err(reason) => {
            let one_line = reason.replace(['\n', '\r'], " ");
            let _ = writeln!(reply, "{one_line}"); // the service has ended: nobody to tell
            return ExitCode::from(EXIT_NOT_STARTED);
        }
    };
    drop(reply); // tells the service that the agent runs
    started.run();
    ExitCode::SUCCESS
}

/// Everything up to the exec of the agent. The reason as a line for the service.
fn start(launcher: &LauncherProgram, reply: &mut File) -> Result<keeper::Keeper, String> {
    let mut input = io::stdin().lock();
    let order = KeeperOrder::read(&mut input).map_err(cannot("read the order"))?;
    svc_process::launcher::close_inherited().map_err(cannot("close inherited descriptors"))?;
    rustix::process::setsid().map_err(cannot("start a session of its own"))?;
    let mut setup = Setup::begin(&order)?;
    let agent = match agent::Held::start(launcher, &order, &setup.terminal) {
        Ok(agent) => agent,
        Err(reason) => {
            setup.remove();
            return Err(reason);
        }
    };
    let held = setup.agent(&agent.identity).and_then(|()| {
        let (pid, ticks) = (agent.identity.pid, agent.identity.start_ticks);
        writeln!(reply, "ready {pid} {ticks}").map_err(cannot("answer"))
    });
    let mut line = Vec::new();
    let permitted = held.and_then(|()| {
        let read = (&mut input).take(3).read_until(b'\n', &mut line);
        read.map_err(cannot("wait for permission"))
    });
    if let Err(reason) = permitted.map(|_| ()) {
        setup.remove();
        return Err(reason);
    }
    if line != b"go\n" {
        // The service has ended or does not want it. The launcher ends with its input.
        setup.remove();
        return Err("refused nobody gave permission".to_owned());
    }
    let agent = match agent.go() {
        Ok(agent) => agent,
        Err(reason) => {
            setup.remove();
            return Err(reason);
        }
    };
    drop(input);
    setup.started(agent)
}
