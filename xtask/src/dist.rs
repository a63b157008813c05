//! Builds the page into `dist/` with trunk when its inputs changed.
//!
//! The gallery of its components is built first, in a folder of its own; the hook of the page's
//! build takes it along, so that `dist/` is still replaced in one step.

use std::hash::{DefaultHasher, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, Result, bail};

use crate::bootstrap::{self, Page};
use crate::pins;
use crate::precompress;
use crate::progress::{Progress, Step};
use crate::workspace::{self, Workspace};

/// Everything in the checkout that can change a byte of the page.
const INPUTS: [&str; 10] = [
    "web",
    "shared",
    "Trunk.toml",
    "Cargo.toml",
    "Cargo.lock",
    ".cargo/config.toml",
    "tools/wasm-bindgen/Cargo.lock",
    "tools/wasm-bindgen/src",
    "xtask/src/modules.rs",
    "xtask/src/precompress.rs",
];
/// Where cargo takes the flags of the compiler for the page from.
pub(crate) const WASM_FLAGS: &str = "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS";
/// Makes Leptos box views and attributes where they are written.
///
/// Its renderer is then compiled once instead of once per view. Without this the module is a fifth
/// larger.
pub(crate) const ERASED: &str = "--cfg erase_components";
/// Leaves in the module what is needed to split it.
const SPLITTABLE: &str = "-Clink-args=--emit-relocs";
/// The page's module may not grow beyond this when compressed by brotli, in bytes.
///
/// What a person waits for decides (`cargo xtask times`); this only makes growth a decision.
const MODULE_LIMIT: u64 = 760 * 1000;
/// Largest sum of what the first load of the page fetches, compressed.
const LOAD_LIMIT: u64 = 840 * 1000;
/// Largest HTML document of the page, before compression.
const HTML_LIMIT: u64 = 20 * 1024;
/// From this size on the build warns about the module.
const MODULE_WARNING: u64 = 700 * 1000;

/// Which build of the page is wanted.
///
/// A better one that is there already does as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// What is shipped, with the gallery of its components: what is tested.
    WithGallery,
    /// What is shipped.
    Shipped,
    /// For a person who waits: built in half the time, and larger.
    Quick,
}

impl Build {
    /// The first line of the stamp.
    fn name(self) -> &'static str {
        match self {
            Self::WithGallery => "with gallery",
            Self::Shipped => "without gallery",
            Self::Quick => "quick",
        }
    }

    /// The builds that do.
    fn accepted(self) -> &'static [Self] {
        match self {
            Self::WithGallery => &[Self::WithGallery],
            Self::Shipped => &[Self::WithGallery, Self::Shipped],
            Self::Quick => &[Self::WithGallery, Self::Shipped, Self::Quick],
        }
    }

    /// What trunk is asked for. Only a release is made small by `wasm-opt`.
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::WithGallery | Self::Shipped => &["--release", "--cargo-profile", "wasm-release"],
            Self::Quick => &["--cargo-profile", "wasm-quick"],
        }
    }
}

/// Installs missing tools, and builds page and gallery when their inputs changed.
pub(crate) fn run(progress: &Progress, workspace: &Workspace) -> Result<()> {
    build_page(progress, workspace, Build::WithGallery)
}

/// Installs missing tools, and builds the page when its inputs changed.
pub(crate) fn build_page(progress: &Progress, workspace: &Workspace, wanted: Build) -> Result<()> {
    bootstrap::run(progress, workspace, Page::Wanted)?;
    fs::create_dir_all(workspace.target.join("xtask"))
        .context("cannot create cargo's output folder")?;
    // trunk builds in `dist/.stage`: two at a time would mix their files.
    let _turn = bootstrap::exclusive(progress, &workspace.target.join("xtask/dist.lock"))?;
    let dist = workspace.root.join("dist");
    let stamp = workspace.target.join("xtask/dist.stamp");
    let inputs = inputs(workspace)?;
    if let (Ok(built), Some(state)) = (fs::read_to_string(&stamp), listing(&dist))
        && wanted.accepted().iter().any(|kind| built == stamp_of(*kind, &inputs, &state))
    {
        progress.say(format_args!("page is up to date in dist/"));
        return Ok(());
    }
    let mut page = trunk(workspace, wanted);
    if wanted == Build::WithGallery {
        let folder = workspace.target.join("xtask/gallery");
        let mut first = trunk(workspace, wanted);
        first.arg("--html-output").arg("gallery.html");
        first.arg("--dist").arg(&folder).arg("web/gallery/index.html");
        build(progress, workspace, "trunk-build-gallery", &mut first)?;
        page.env(precompress::JOINS, &folder);
    }
    build(progress, workspace, "trunk-build", &mut page)?;
    let state = listing(&dist).context("trunk succeeded but left no dist/index.html")?;
    fs::write(&stamp, stamp_of(wanted, &inputs, &state))
        .with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(())
}

/// What says which page is in `dist/`.
fn stamp_of(build: Build, inputs: &str, state: &str) -> String {
    format!("{}\n{inputs}\n{state}", build.name())
}

fn build(
    progress: &Progress,
    workspace: &Workspace,
    name: &str,
    trunk: &mut Command,
) -> Result<()> {
    let log = workspace.log(name)?;
    let expect = "about 90 s the first time, then 20 s";
    let step = Step { name, expect, crates: 230, log: &log };
    if !progress.step(&step, trunk)? {
        bail!("the page does not build, see {}", log.display());
    }
    Ok(())
}

fn trunk(workspace: &Workspace, wanted: Build) -> Command {
    let mut trunk = workspace.command("trunk");
    trunk.arg("build").args(wanted.options());
    trunk.env("NO_COLOR", "true").env("CARGO_TERM_COLOR", "never");
    let home = workspace::set("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::home_dir().map(|home| home.join(".cargo")));
    let mut flags = format!("{ERASED} {SPLITTABLE}");
    if let Some(home) = home {
        // Panic messages of dependencies name their files: no home folder is shipped.
        let sources = home.join("registry/src");
        flags.push_str(&format!(" --remap-path-prefix={}=crates", sources.display()));
    }
    trunk.env(WASM_FLAGS, flags);
    trunk
}

/// One line that changes with any input, tool versions included.
fn inputs(workspace: &Workspace) -> Result<String> {
    let mut hasher = DefaultHasher::new();
    for input in INPUTS {
        hash(&workspace.root.join(input), &mut hasher)?;
    }
    let compiler = bootstrap::output(workspace, "rustc", &["--version"]).unwrap_or_default();
    hasher.write(compiler.as_bytes());
    hasher.write(pins::folder_name().as_bytes());
    hasher.write(bootstrap::wasm_opt_version(workspace).unwrap_or_default().as_bytes());
    Ok(format!("{:016x}", hasher.finish()))
}

fn hash(path: &Path, hasher: &mut DefaultHasher) -> Result<()> {
    let unreadable = || format!("cannot read {}", path.display());
    hasher.write(path.as_os_str().as_encoded_bytes());
    if path.is_dir() {
        let mut entries = fs::read_dir(path)
            .with_context(unreadable)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<Vec<_>, _>>()
            .with_context(unreadable)?;
        entries.sort();
        entries.iter().try_for_each(|entry| hash(entry, hasher))
    } else {
        hasher.write(&fs::read(path).with_context(unreadable)?);
        Ok(())
    }
}

/// Names and sizes of the built page; `None` when there is no page.
fn listing(dist: &Path) -> Option<String> {
    if !dist.join("index.html").is_file() {
        return None;
    }
    let mut lines: Vec<String> = fs::read_dir(dist)
        .ok()?
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let size = entry.metadata().ok().filter(fs::Metadata::is_file)?.len();
            Some(format!("{} {size}", entry.file_name().to_string_lossy()))
        })
        .collect();
    lines.sort();
    Some(lines.join("\n"))
}

/// Refuses a page that has grown too large to load at once.
///
/// The gallery's module is only told: nobody waits for it.
pub(crate) fn check_size(progress: &Progress, workspace: &Workspace) -> Result<bool> {
    let weight = weigh(&workspace.root.join("dist"))?;
    let mut fits = true;
    for (what, size, warning, limit) in [
        ("module of the page, by brotli", weight.module, MODULE_WARNING, MODULE_LIMIT),
        ("first load of the page, by brotli", weight.first_load, LOAD_LIMIT, LOAD_LIMIT),
        ("the page's HTML", weight.html, HTML_LIMIT, HTML_LIMIT),
    ] {
        let verdict = if size > limit {
            "TOO LARGE"
        } else if size > warning {
            "growing near the limit"
        } else {
            "fine"
        };
        progress.say(format_args!("{what}: {size} bytes, {verdict} (limit {limit})"));
        fits &= size <= limit;
    }
    let gallery = module_size(workspace, "svc-gallery");
    let gallery = gallery.context("dist/ lacks the gallery; remove dist/ and build it again")?;
    progress.say(format_args!("module of the gallery: {gallery} bytes by brotli"));
    Ok(fits)
}

/// What a browser that has nothing yet has to fetch for Home, in bytes.
struct Weight {
    module: u64,
    first_load: u64,
    html: u64,
}

/// Only what the document names counts.
///
/// Other pages share the folder, and what the glue names comes later.
fn weigh(dist: &Path) -> Result<Weight> {
    let document = fs::read_to_string(dist.join("index.html"));
    let document = document.context("cannot read dist/index.html")?;
    let html = document.len() as u64;
    let mut weight = Weight { module: 0, first_load: html, html };
    for entry in fs::read_dir(dist).context("cannot read dist/")?.filter_map(Result::ok) {
        let path = entry.path();
        if !document.contains(&*entry.file_name().to_string_lossy()) {
            continue;
        }
        let compressed = fs::metadata(precompress::beside(&path, "br")).map(|found| found.len());
        let is_module = path.extension().is_some_and(|suffix| suffix == "wasm");
        if is_module && compressed.is_err() {
            break;
        }
        let size = compressed.unwrap_or(entry.metadata()?.len());
        weight.first_load += size;
        if is_module {
            weight.module += size;
        }
    }
    if weight.module == 0 {
        bail!("dist/ holds no compressed module; remove dist/ and build it again");
    }
    Ok(weight)
}

/// Bytes of a compressed module.
fn module_size(workspace: &Workspace, name: &str) -> Option<u64> {
    let files = fs::read_dir(workspace.root.join("dist")).ok()?.filter_map(Result::ok);
    let mut ours = files.filter(|entry| {
        let file = entry.file_name();
        let file = file.to_string_lossy();
        file.starts_with(&format!("{name}-")) && file.ends_with(".wasm.br")
    });
    Some(ours.next()?.metadata().ok()?.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_document_names_weighs_what_is_sent_of_it() {
        let dist = env::temp_dir().join(format!("xtask-weight-{}", std::process::id()));
        fs::create_dir_all(&dist).unwrap();
        fs::write(dist.join("index.html"), "a_bg.wasm a.css").unwrap();
        for (name, size) in [
            ("a-later.wasm", 5000),
            ("a_bg.wasm", 1000),
            ("a_bg.wasm.br", 300),
            ("a_bg.wasm.gz", 400),
            ("a.css", 50),
            ("a.css.br", 20),
            ("other_bg.wasm", 7000),
            ("other_bg.wasm.br", 5000),
        ] {
            fs::write(dist.join(name), vec![b' '; size]).unwrap();
        }
        let weight = weigh(&dist).unwrap();
        fs::remove_file(dist.join("a_bg.wasm.br")).unwrap();
        let unfinished = weigh(&dist);
        fs::remove_dir_all(&dist).unwrap();
        assert_eq!((weight.module, weight.first_load, weight.html), (300, 335, 15));
        assert!(unfinished.is_err(), "a module that is not compressed has no weight");
    }
}
