//! `wasm-bindgen`: makes the JavaScript glue of a module.
//!
//! Trunk looks it up on `PATH`. It understands the options that trunk passes for our pages and refuses all others.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    match run(std::env::args_os().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wasm-bindgen: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: impl Iterator<Item = OsString>) -> Result<()> {
    let mut bindgen = Bindgen::new();
    let (mut input, mut out_dir) = (None, None);
    for arg in args {
        let text = arg.to_str().unwrap_or_default();
        match text.split_once('=').unwrap_or((text, "")) {
            ("--version", _) => {
                println!("wasm-bindgen {}", env!("CARGO_PKG_VERSION"));
                return Ok(());
            }
            ("--target", "web") => {
                bindgen.web(true)?;
            }
            ("--out-dir", folder) => out_dir = Some(PathBuf::from(folder)),
            ("--out-name", name) => {
                bindgen.out_name(name);
            }
            ("--no-typescript", _) => {
                bindgen.typescript(false);
            }
            (option, value) if option.starts_with('-') => {
                bail!("`{option}` with `{value}` is not understood; see tools/wasm-bindgen")
            }
            _ => input = Some(PathBuf::from(&arg)),
        }
    }
    bindgen.input_path(input.context("the module to read is not named")?);
    bindgen.generate(out_dir.context("`--out-dir=FOLDER` is missing")?)
}
