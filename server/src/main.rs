//! The program `svc`: hidden launcher first, then process safety, then commands.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: the launcher becomes an agent, and nothing of the service may be in it.
    if std::env::args_os().nth(1).is_some_and(|argument| argument == "__launch__") {
        return svc_process::launcher::run();
    }
    svc_process::signal_state::settle();
    svc_process::own_program::remember();
    let first = std::env::args_os().nth(1);
    if first.as_ref().is_some_and(|argument| argument == svc_domain::approval_hook::COMMAND) {
        return svc_server::permission_hook::run();
    }
    if first.is_some_and(|argument| argument == svc_domain::recap::COMMAND) {
        return svc_server::recap_hook::run();
    }
    if std::env::args_os().nth(1).is_some_and(|argument| argument == "__keeper__") {
        svc_process::process_umask::harden();
        svc_server::safety::no_core_dumps();
        return svc_keeper::run(&svc_process::launcher::LauncherProgram::default());
    }
    let umask = svc_process::process_umask::harden();
    svc_server::safety::no_core_dumps();
    svc_server::cli::main(umask)
}
