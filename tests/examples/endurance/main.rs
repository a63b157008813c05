//! The whole program for long and under faults: `cargo xtask soak` and `cargo xtask chaos`.
//!
//! An example, so that it stands on the same private machine as the black-box tests without
//! making the programs of this package heavier.

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
mod chaos;
mod deeds;
mod faults;
mod plan;
mod soak;
mod vitals;
mod wish;

use blackbox::harness;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use wish::Wish;

#[tokio::main]
async fn main() -> ExitCode {
    let wish = match Wish::parse(std::env::args().skip(1)) {
        Ok(wish) => wish,
        Err(words) => {
            eprintln!("{words}");
            return ExitCode::from(2);
        }
    };
    let run = async {
        match &wish {
            Wish::Soak(wish) => soak::run(wish).await,
            Wish::Chaos(wish) => chaos::run(wish).await,
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
    eprintln!("again: cargo xtask {wish}");
    ExitCode::FAILURE
}
