//! `cargo xtask doctor`: each prerequisite with found and wanted version.
//!
//! The command installs and changes nothing.

use std::process::ExitCode;

use anyhow::Result;

use crate::bootstrap::{self, output};
use crate::browser;
use crate::pins;
use crate::progress::Progress;
use crate::workspace::Workspace;

struct Line {
    what: &'static str,
    wanted: String,
    found: Option<String>,
    fits: bool,
}

/// Prints a line for each prerequisite. Succeeds when all are met.
pub(crate) fn run(progress: &Progress, workspace: &Workspace) -> Result<ExitCode> {
    let lines = lines(workspace)?;
    for line in &lines {
        let mark = if line.fits { "ok  " } else { "miss" };
        let found = line.found.as_deref().unwrap_or("not found");
        progress.print(&format!("{mark}  {:<16} {found}  (wanted: {})\n", line.what, line.wanted));
    }
    progress.print(&format!(
        "tools: {}\nbuilds: {}\n",
        workspace.tools.display(),
        workspace.target.display()
    ));
    Ok(if lines.iter().all(|line| line.fits) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn lines(workspace: &Workspace) -> Result<Vec<Line>> {
    let (major, minor) = pins::RUSTC_AT_LEAST;
    let rustc = output(workspace, "rustc", &["--version"]);
    let node = output(workspace, "node", &["--version"]);
    let free = bootstrap::free_gb(&workspace.root);
    let wasm = bootstrap::wasm_target_folder(workspace).filter(|folder| folder.is_dir());
    let chromium = browser::chromium()?;
    let driver = browser::driver_version(workspace);
    let wasm_opt = bootstrap::wasm_opt_version(workspace);
    Ok(vec![
        Line {
            what: "rustc",
            wanted: format!("{major}.{minor} or newer"),
            fits: rustc.as_deref().and_then(bootstrap::rustc_version) >= Some((major, minor)),
            found: rustc.map(first_line),
        },
        any("C compiler", output(workspace, "cc", &["--version"]).map(first_line)),
        any("git", output(workspace, "git", &["--version"]).map(first_line)),
        any(pins::WASM_TARGET, wasm.map(|folder| folder.display().to_string())),
        exactly("trunk", pins::TRUNK, bootstrap::found(workspace, "trunk")),
        exactly("wasm-bindgen", pins::WASM_BINDGEN, bootstrap::found(workspace, "wasm-bindgen")),
        Line {
            what: "node",
            wanted: format!("{} or newer", pins::NODE_AT_LEAST),
            fits: node.as_deref().and_then(node_major) >= Some(pins::NODE_AT_LEAST),
            found: node.map(first_line),
        },
        Line {
            what: "wasm-opt",
            wanted: format!("binaryen {}", pins::BINARYEN),
            fits: wasm_opt.is_some(),
            found: wasm_opt,
        },
        exactly("cargo-deny", pins::CARGO_DENY, bootstrap::found(workspace, "cargo-deny")),
        any("Chromium", chromium.map(|program| program.display().to_string())),
        exactly("puppeteer-core", pins::PUPPETEER, driver),
        Line {
            what: "free disk",
            wanted: "8 GB for a first build".into(),
            fits: free.is_none_or(|free| free >= 1),
            found: free.map(|free| format!("{free} GB")),
        },
    ])
}

fn any(what: &'static str, found: Option<String>) -> Line {
    Line { what, wanted: "any".into(), fits: found.is_some(), found }
}

fn exactly(what: &'static str, wanted: &str, found: Option<String>) -> Line {
    Line { what, wanted: wanted.into(), fits: found.as_deref() == Some(wanted), found }
}

fn first_line(text: String) -> String {
    text.lines().next().unwrap_or_default().to_string()
}

/// `v20.20.2` → 20.
fn node_major(version: &str) -> Option<u32> {
    version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}
