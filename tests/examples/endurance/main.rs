//! Tests the whole program for hours and under faults: `soak` and `chaos`.
//!
//! An example, so that it can use the private machine of the black-box tests without making the
//! programs of this package heavier.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test program: what it cannot do fails the run that asked"
)]

// A test program too; what only the tests use is no waste.
#[expect(dead_code, unused_imports, reason = "the tests use the rest")]
#[path = "../../tests/blackbox"]
mod blackbox {
    pub mod harness;
}
mod arguments;
mod chaos;
mod deeds;
mod faults;
mod plan;
mod soak;
mod vitals;

use arguments::Arguments;
use blackbox::harness;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(words) => {
            eprintln!("{words}");
            return ExitCode::from(2);
        }
    };
    let run = async {
        match &arguments {
            Arguments::Soak(arguments) => soak::run(arguments).await,
            Arguments::Chaos(arguments) => chaos::run(arguments).await,
        }
    };
    // Whatever is started here ends with its world, so a world must end in order.
    let mut term = signal(SignalKind::terminate()).expect("signals can be awaited");
    tokio::select! {
        done = AssertUnwindSafe(run).catch_unwind() => if done.is_ok() {
            return ExitCode::SUCCESS;
        },
        _ = tokio::signal::ctrl_c() => eprintln!("interrupted"),
        _ = term.recv() => eprintln!("interrupted"),
    }
    eprintln!("again: cargo xtask {arguments}");
    ExitCode::FAILURE
}
