//! Brings the modules of the views that are loaded later into the page.
//!
//! `tools/wasm-bindgen` leaves them beside the glue, where trunk does not look for them. They get
//! the hash of the page's own module, because they fit only that.

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context as _, Result, bail};

use crate::workspace::{Workspace, at_once};

/// How every module of the page is made small.
///
/// `web/index.html` says the same to trunk.
const WASM_OPT: [&str; 3] =
    ["-Os", "--one-caller-inline-max-function-size=0", "--skip-pass=local-cse"];

/// Whether trunk builds a release, and makes the page's own module small.
pub(crate) fn is_release() -> bool {
    env::var_os("TRUNK_PROFILE").is_none_or(|profile| profile != "debug")
}

/// Where trunk lets the glue be written.
fn glue_folder(workspace: &Workspace) -> PathBuf {
    let kind = if is_release() { "release" } else { "debug" };
    workspace.target.join("wasm-bindgen").join(kind)
}

/// Adds the modules of each page in `staging` that loads any.
pub(crate) fn place(workspace: &Workspace, staging: &Path) -> Result<()> {
    let unreadable = || format!("cannot read the folder of the page {}", staging.display());
    let names: Vec<String> = fs::read_dir(staging)
        .with_context(unreadable)?
        .filter_map(Result::ok)
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    for name in names.iter().filter_map(|name| name.strip_suffix("_bg.wasm")) {
        let Some((page, hash)) = name.rsplit_once('-') else { continue };
        let folder = glue_folder(workspace).join(format!("{page}-modules"));
        place_for(workspace, staging, &folder, page, hash)?;
    }
    Ok(())
}

fn place_for(
    workspace: &Workspace,
    staging: &Path,
    folder: &Path,
    page: &str,
    hash: &str,
) -> Result<()> {
    let glue = staging.join(format!("{page}-{hash}.js"));
    let loader = format!("{page}-modules.js");
    // The loader becomes a part of the glue, which then imports itself: one request less.
    let itself = [(loader.clone(), format!("{page}-{hash}.js"))];
    let Some(glue_text) = replaced(&read(&glue)?, &itself) else {
        return Ok(()); // a page without views that are loaded later
    };
    let mut renamed = Vec::new();
    let mut modules = Vec::new();
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let Some(stem) = name.strip_suffix(".wasm") else { continue };
        let stem = stem.strip_prefix("split_").unwrap_or(stem);
        let hashed = format!("{page}-{}-{hash}.wasm", stem.replace('_', "-"));
        modules.push((folder.join(&name), staging.join(&hashed)));
        renamed.push((name, hashed));
    }
    let loader_text = read(&folder.join(&loader))?;
    let import = format!("import {{ initSync }} from \"./{page}.js\";\n");
    let Some(loader_text) =
        loader_text.strip_prefix(&import).and_then(|text| replaced(text, &renamed))
    else {
        bail!("{loader} does not begin with the glue or misses a module; see tools/wasm-bindgen");
    };
    at_once(&modules, |(from, to)| place_module(workspace, from, to))?;
    let text = format!("{glue_text}\n{loader_text}");
    fs::write(&glue, text).with_context(|| format!("cannot write {}", glue.display()))
}

/// The text with every name replaced; `None` when one is missing.
///
/// Only the addresses of files change. The glue also has the name in the list of what the module
/// imports, and inside the module it stays as it was.
fn replaced(text: &str, names: &[(String, String)]) -> Option<String> {
    names.iter().try_fold(text.to_owned(), |text, (from, to)| {
        let mut found = false;
        let mut result = text;
        for (before, quote) in [("from ", '"'), ("from ", '\''), ("new URL(", '"')] {
            let from = format!("{before}{quote}./{from}{quote}");
            found |= result.contains(&from);
            result = result.replace(&from, &format!("{before}{quote}./{to}{quote}"));
        }
        found.then_some(result)
    })
}

fn place_module(workspace: &Workspace, from: &Path, to: &Path) -> Result<()> {
    if !is_release() {
        fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
        return Ok(());
    }
    let mut tool = workspace.command("wasm-opt");
    let done = tool.args(WASM_OPT).arg(from).arg("-o").arg(to).output();
    let done = done.context("cannot start wasm-opt")?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        bail!("wasm-opt refuses {}: {}", from.display(), said.trim());
    }
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_files_are_renamed_and_a_missing_one_is_told() {
        let names = [("a.js".to_owned(), "a-1.js".to_owned())];
        let text = "import * as a from './a.js'; new URL(\"./a.js\"); { \"./a.js\": a }\n";
        assert_eq!(
            replaced(text, &names).unwrap(),
            "import * as a from './a-1.js'; new URL(\"./a-1.js\"); { \"./a.js\": a }\n"
        );
        assert_eq!(replaced("{ \"./a.js\": a }", &names), None);
    }

    #[test]
    fn both_pages_ask_trunk_for_the_same_size() {
        let [level, params @ ..] = WASM_OPT;
        let level = format!("data-wasm-opt=\"{}\"", level.trim_start_matches("-O"));
        let params = format!("data-wasm-opt-params=\"{}\"", params.join(" "));
        for page in ["web/index.html", "web/gallery/index.html"] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page);
            let text = fs::read_to_string(path).unwrap();
            assert!(text.contains(&level) && text.contains(&params), "{page}");
        }
    }
}
