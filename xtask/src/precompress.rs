//! Compresses the files of the page at build time, to `.br` and `.gz` beside each.
//!
//! Before that the modules that are loaded later are added.
//! Runs as trunk's hook inside its staging folder, so the page and its compressed forms appear
//! together. Documents are left out: the server changes them per request.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context as _, Result};

use crate::modules;
use crate::progress::Progress;
use crate::workspace::{Workspace, at_once};

/// Files worth compressing. Pictures and fonts are compressed already.
const EXTENSIONS: [&str; 5] = ["wasm", "js", "css", "svg", "json"];
const BROTLI_QUALITY: i32 = 11;
/// For a page that is not a release: somebody waits for it.
const QUICK_QUALITY: i32 = 5;
const BROTLI_WINDOW: i32 = 22;

/// Names the folder of the gallery, whose files are added to the page.
pub(crate) const JOINS: &str = "XTASK_PAGE_JOINS";

/// Compresses trunk's staging folder, or `dist/` when called by hand.
pub(crate) fn run(progress: &Progress, workspace: &Workspace) -> Result<()> {
    let folder = env::var_os("TRUNK_STAGING_DIR").map_or_else(|| "dist".into(), PathBuf::from);
    modules::place(workspace, &folder)?;
    if let Some(other) = env::var_os(JOINS) {
        join(Path::new(&other), &folder)?;
    }
    let files = candidates(&folder)?;
    // The module takes as long as all others together.
    at_once(&files, |file| compress(file))?;
    progress.say(format_args!("compressed {} files of the page", files.len()));
    Ok(())
}

/// Copies the files of another page.
///
/// Names carry hashes: the same name has the same bytes.
fn join(other: &Path, folder: &Path) -> Result<()> {
    let unreadable = || format!("cannot read the folder of the page {}", other.display());
    for entry in fs::read_dir(other).with_context(unreadable)? {
        let file = entry.with_context(unreadable)?;
        fs::copy(file.path(), folder.join(file.file_name()))
            .with_context(|| format!("cannot copy {}", file.path().display()))?;
    }
    Ok(())
}

fn candidates(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        let entries = fs::read_dir(&next)
            .with_context(|| format!("cannot read the folder of the page {}", next.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| EXTENSIONS.iter().any(|known| e == *known))
                && !beside(&path, "gz").exists()
            {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn compress(file: &Path) -> Result<()> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    for (suffix, compressed) in [("br", brotli(&bytes)), ("gz", gzip(&bytes))] {
        let compressed =
            compressed.with_context(|| format!("cannot compress {}", file.display()))?;
        if compressed.len() < bytes.len() {
            let target = beside(file, suffix);
            fs::write(&target, compressed)
                .with_context(|| format!("cannot write {}", target.display()))?;
        }
    }
    Ok(())
}

/// `a/b.js`, `br` → `a/b.js.br`.
pub(crate) fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}

fn brotli(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let params = brotli::enc::BrotliEncoderParams {
        quality: if modules::is_release() { BROTLI_QUALITY } else { QUICK_QUALITY },
        lgwin: BROTLI_WINDOW,
        size_hint: bytes.len(),
        ..Default::default()
    };
    let mut out = Vec::new();
    brotli::BrotliCompress(&mut &*bytes, &mut out, &params)?;
    Ok(out)
}

fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn compressed_files_hold_the_same_bytes_and_small_ones_are_left_alone() {
        let folder = env::temp_dir().join(format!("xtask-precompress-{}", std::process::id()));
        fs::create_dir_all(folder.join("sub")).unwrap();
        let text = "let a = 1;\n".repeat(200);
        fs::write(folder.join("sub/app.js"), &text).unwrap();
        fs::write(folder.join("tiny.css"), "a").unwrap();
        fs::write(folder.join("index.html"), &text).unwrap();

        for file in candidates(&folder).unwrap() {
            compress(&file).unwrap();
        }

        let mut plain = Vec::new();
        let packed = fs::read(folder.join("sub/app.js.br")).unwrap();
        brotli::BrotliDecompress(&mut &*packed, &mut plain).unwrap();
        assert_eq!(plain, text.as_bytes());
        let packed = fs::read(folder.join("sub/app.js.gz")).unwrap();
        let mut plain = String::new();
        flate2::read::GzDecoder::new(&*packed).read_to_string(&mut plain).unwrap();
        assert_eq!(plain, text);
        assert!(!folder.join("tiny.css.br").exists());
        assert!(!folder.join("index.html.br").exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}
