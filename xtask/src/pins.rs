//! Every version that must fit another, once.
//!
//! The tests compare the files that repeat them.

/// The oldest compiler that builds the workspace (`rust-version` in `Cargo.toml`).
pub(crate) const RUSTC_AT_LEAST: (u32, u32) = (1, 89);
/// The page is compiled for this.
pub(crate) const WASM_TARGET: &str = "wasm32-unknown-unknown";
/// The service is compiled for this too, as far as it links no C code.
///
/// Nothing of it is run.
pub(crate) const MACOS_TARGET: &str = "x86_64-apple-darwin";
/// 0.22 needs a newer compiler than ours.
pub(crate) const TRUNK: &str = "0.21.14";
/// Crate and tool must be the same version: they speak a private format.
pub(crate) const WASM_BINDGEN: &str = "0.2.130";
/// Splits the module of the page. The macro that marks where comes with Leptos.
pub(crate) const WASM_SPLIT: &str = "0.2.4";
/// npm package; its `wasm-opt` prints only the major number.
pub(crate) const BINARYEN: &str = "132.0.0";
/// The last line of releases that Node 20 runs.
pub(crate) const PUPPETEER: &str = "24.43.1";
/// Licences, sources and bans of the dependencies.
pub(crate) const CARGO_DENY: &str = "0.20.2";
/// What is inside a release, as `CycloneDX`.
pub(crate) const CARGO_SBOM: &str = "0.10.0";
/// The oldest Node that runs the tools from npm.
pub(crate) const NODE_AT_LEAST: u32 = 20;

/// The folder of the tools. Each set of versions has its own.
pub(crate) fn folder_name() -> String {
    format!("trunk-{TRUNK}+bindgen-{WASM_BINDGEN}+split-{WASM_SPLIT}+binaryen-{BINARYEN}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn text(path: &str) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    #[track_caller]
    fn has_line(path: &str, line: &str) {
        let text = text(path);
        let found = text.lines().any(|l| l.trim_end().trim_end_matches(',').trim() == line);
        assert!(found, "{path} has no line `{line}`");
    }

    #[test]
    fn trunk_refuses_another_version_of_itself() {
        has_line("Trunk.toml", &format!("trunk-version = \"={TRUNK}\""));
    }

    #[test]
    fn wasm_bindgen_is_the_same_for_trunk_the_page_and_the_tool() {
        has_line("Trunk.toml", &format!("wasm_bindgen = \"{WASM_BINDGEN}\""));
        has_line("Cargo.toml", &format!("wasm-bindgen = \"={WASM_BINDGEN}\""));
        has_line("web/Cargo.toml", "wasm-bindgen.workspace = true");
        let tool = "tools/wasm-bindgen/Cargo.toml";
        has_line(tool, &format!("version = \"{WASM_BINDGEN}\""));
        has_line(tool, &format!("wasm-bindgen-cli-support = \"={WASM_BINDGEN}\""));
        has_line(tool, &format!("wasm_split_cli_support = \"={WASM_SPLIT}\""));
    }

    #[test]
    fn the_locked_wasm_bindgen_is_the_tool() {
        for (lock, name) in [
            ("Cargo.lock", "wasm-bindgen"),
            ("tools/wasm-bindgen/Cargo.lock", "wasm-bindgen-cli-support"),
        ] {
            let text = text(lock);
            let (_, after) = text.split_once(&format!("name = \"{name}\"\n")).expect(lock);
            let version = after.lines().next().unwrap_or_default();
            assert_eq!(version, format!("version = \"{WASM_BINDGEN}\""), "{lock}");
        }
    }

    #[test]
    fn the_browser_driver_is_the_locked_one() {
        has_line("tests/browser/package.json", &format!("\"puppeteer-core\": \"{PUPPETEER}\""));
    }

    #[test]
    fn the_compiler_floor_is_that_of_the_workspace() {
        let (major, minor) = RUSTC_AT_LEAST;
        has_line("Cargo.toml", &format!("rust-version = \"{major}.{minor}\""));
    }
}
