//! Compiles what tells the system's allocator how to keep memory, where that is glibc's.

use std::env::var;

fn main() {
    println!("cargo:rerun-if-changed=src/allocator.c");
    let is = |name: &str, value: &str| var(name).is_ok_and(|found| found == value);
    if !is("CARGO_CFG_TARGET_OS", "linux") || !is("CARGO_CFG_TARGET_ENV", "gnu") {
        return;
    }
    // An object rather than a library: of a library the linker takes only what is asked for.
    let mut build = cc::Build::new();
    for object in build.file("src/allocator.c").cargo_metadata(false).compile_intermediates() {
        println!("cargo:rustc-link-arg-bins={}", object.display());
    }
}
