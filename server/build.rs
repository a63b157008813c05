//! Compiles the settings of the system's allocator, if that is glibc's.

use std::env::var;

fn main() {
    println!("cargo:rerun-if-changed=src/allocator.c");
    let is = |name: &str, value: &str| var(name).is_ok_and(|found| found == value);
    if !is("CARGO_CFG_TARGET_OS", "linux") || !is("CARGO_CFG_TARGET_ENV", "gnu") {
        return;
    }
    // An object, not a library: from a library the linker takes only the symbols that are used.
    let mut build = cc::Build::new();
    for object in build.file("src/allocator.c").cargo_metadata(false).compile_intermediates() {
        println!("cargo:rustc-link-arg-bins={}", object.display());
    }
}
