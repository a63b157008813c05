//! The fuzzer's program: runs the target of `targets` named by `SVC_FUZZ_TARGET`.
//!
//! `cargo xtask fuzz` builds it with coverage and runs it. It is not part of the workspace, because
//! its compiler flags would apply to every package.
#![no_main]

mod files;
mod headers;
mod logs;
mod sessions;
mod targets;
mod texts;

/// What `json_edit` reads a text with, under its name in the agent's package.
#[path = "../../../server/agent/src/json_part.rs"]
#[expect(dead_code, reason = "only a part of it is used here")]
mod json_part;

/// Limits of the service, under the module name that its connection reader uses.
mod layers {
    pub(crate) mod limits {
        pub(crate) const TARGET: usize = 8 * 1024;
        pub(crate) const HEADER_BLOCK: usize = 32 * 1024;
    }
}

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static CHOSEN: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let wanted = std::env::var("SVC_FUZZ_TARGET").unwrap_or_default();
    let found = targets::ALL.iter().find(|(name, _)| *name == wanted);
    found.map(|(_, run)| *run).unwrap_or_else(|| {
        let names: Vec<&str> = targets::ALL.iter().map(|(name, _)| *name).collect();
        panic!("SVC_FUZZ_TARGET names none of {}", names.join(", "))
    })
});

fuzz_target!(|data: &[u8]| (*CHOSEN)(data));
