//! Small libraries that replace system calls of one program.

use super::World;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Compiles C source into a library for `LD_PRELOAD`.
pub(super) fn compile(world: &World, name: &str, source: &str) -> PathBuf {
    let file = world.root.join(format!("{name}.c"));
    let library = world.root.join(format!("{name}.so"));
    fs::write(&file, source).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&file).arg("-ldl");
    let done = compiler.output().expect("a C compiler, which the build needs too");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    library
}
