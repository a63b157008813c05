//! Gives the module another name whenever the way it is packed changes.
//!
//! trunk names the module after its bytes *before* wasm-bindgen and wasm-opt, and the server
//! lets browsers keep a hashed name for ever. A new tool version or optimisation level would
//! put other bytes under the same name. `WEB_BUILD` ends up inside the module (as an attribute
//! of `<html>`), so a change of these files changes its bytes and thereby its name.

use std::hash::{DefaultHasher, Hasher as _};
use std::{env, fs, io, path::Path};

/// Relative to this package: what decides how the modules are packed.
const INPUTS: [&str; 6] = [
    "../Trunk.toml",
    "index.html",
    "gallery/index.html",
    "../tools/wasm-bindgen/Cargo.lock",
    "../tools/wasm-bindgen/src/main.rs",
    "../xtask/src/modules.rs",
];

fn main() -> io::Result<()> {
    let package = env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?;
    // Keys of `DefaultHasher::new` are fixed: the same inputs give the same name in every clone.
    let mut hasher = DefaultHasher::new();
    for input in INPUTS {
        println!("cargo::rerun-if-changed={input}");
        hasher.write(&fs::read(Path::new(&package).join(input))?);
    }
    println!("cargo::rustc-env=WEB_BUILD={:016x}", hasher.finish());
    Ok(())
}
