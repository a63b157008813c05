//! `wasm-bindgen`: makes the JavaScript glue of a module.
//!
//! Trunk looks it up on `PATH`. It understands the options that trunk passes for our pages and refuses all others.
//!
//! Before that it splits what `#[wasm_split]` marks off the module. The other modules and the script
//! that loads them are left in `NAME-modules`, beside the glue: trunk does not know of them, its hook
//! brings them into the page.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
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
    let (mut input, mut out_dir, mut out_name) = (None, None, None);
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
            ("--out-name", name) => out_name = Some(name.to_owned()),
            ("--no-typescript", _) => {
                bindgen.typescript(false);
            }
            (option, value) if option.starts_with('-') => {
                bail!("`{option}` with `{value}` is not understood; see tools/wasm-bindgen")
            }
            _ => input = Some(PathBuf::from(&arg)),
        }
    }
    let input = input.context("the module to read is not named")?;
    let out_dir = out_dir.context("`--out-dir=FOLDER` is missing")?;
    let out_name = out_name.context("`--out-name=NAME` is missing")?;
    let main = split(&input, &out_dir, &out_name)?;
    // The other modules use what the linker exports, by the names it has there.
    bindgen.keep_lld_exports(true).demangle(false);
    bindgen.input_path(main).out_name(&out_name).generate(&out_dir)
}

/// Splits the module at `input`, and answers where what is left for the start is.
fn split(input: &Path, out_dir: &Path, name: &str) -> Result<PathBuf> {
    let folder = out_dir.join(format!("{name}-modules"));
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let main = out_dir.join(format!("{name}-main.wasm"));
    let bytes = fs::read(input).with_context(|| format!("cannot read {}", input.display()))?;
    let (glue, link) = (format!("./{name}.js"), format!("./{name}-modules.js"));
    let mut options = wasm_split_cli_support::Options::new(&bytes);
    options.output_dir = &folder;
    options.main_out_path = &main;
    options.main_module = &glue;
    options.link_name = &link;
    if let Err(error) = wasm_split_cli_support::transform(options) {
        bail!("cannot split {}: {error:#}", input.display());
    }
    Ok(main)
}
