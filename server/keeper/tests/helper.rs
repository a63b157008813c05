//! The programs that the keeper's tests start: the keeper and the launcher.

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("__launch__") => svc_process::launcher::run(),
        Some("__keeper__") => {
            svc_process::signal_state::settle();
            svc_keeper::run(&svc_process::launcher::LauncherProgram::default())
        }
        Some(_) | None => ExitCode::FAILURE,
    }
}
