//! The daemon that holds the agents of Direct Sessions.
//!
//! `svc-hosted` stays while the service comes and goes.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use svc_hosted::daemon::{self, Options};

const USAGE: &str = "\
svc-hosted -serve -socket PATH -token-fd 0 [-keep-children]

Holds the agents of Direct Sessions. `svc` starts it; the token is read from standard input.";

fn main() -> ExitCode {
    svc_process::signal_state::settle();
    let (mut serve, mut socket, mut keep_children) = (false, None, false);
    let mut arguments = std::env::args_os().skip(1);
    let mut out = std::io::stdout();
    while let Some(argument) = arguments.next() {
        match argument.to_str().unwrap_or_default() {
            "-serve" => serve = true,
            "-socket" => socket = arguments.next().map(PathBuf::from),
            "-token-fd" if arguments.next().is_some_and(|fd| fd == "0") => {}
            "-keep-children" => keep_children = true,
            "-version" | "--version" => {
                let _ = writeln!(out, "svc-hosted {}", env!("CARGO_PKG_VERSION"));
                return ExitCode::SUCCESS;
            }
            _ => {
                let _ = writeln!(out, "{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    match socket {
        Some(socket) if serve && socket.is_absolute() => {
            daemon::main(&Options { socket, keep_children })
        }
        _ => {
            let _ = writeln!(out, "{USAGE}");
            ExitCode::from(2)
        }
    }
}
