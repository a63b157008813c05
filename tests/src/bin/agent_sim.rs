//! The simulator's executable: everything it does lives in `svc_tests::sim`.

use std::process::ExitCode;

fn main() -> ExitCode {
    svc_tests::sim::run(std::env::args_os().skip(1).collect())
}
