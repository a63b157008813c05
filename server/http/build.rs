//! Makes sure that the folder of the page exists and that a new page is noticed.
//!
//! `rust-embed` refuses to compile without the folder, and cargo does not know that the macro
//! reads it. Only a missing folder is created: the server is built and tested without a page.

use std::{env, fs, io, path::Path};

fn main() -> io::Result<()> {
    let package = env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?;
    fs::create_dir_all(Path::new(&package).join("../../dist"))?;
    println!("cargo::rerun-if-changed=../../dist");
    Ok(())
}
