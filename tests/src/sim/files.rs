//! Small file helpers: one-write appends, file replacement, a lock per shared file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Appends `bytes` in one write, so that lines of parallel processes never mix.
pub(crate) fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    OpenOptions::new().append(true).create(true).open(path)?.write_all(bytes)
}

/// Replaces a file so that a reader sees either the old or the new content.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".tmp.{}", std::process::id()));
    let temporary = path.with_file_name(name);
    fs::write(&temporary, bytes)?;
    fs::rename(&temporary, path)
}

/// Takes the exclusive lock beside `path`; it ends with the returned file.
pub(crate) fn lock_beside(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().append(true).create(true).open(lock_path(path))?;
    file.lock()?;
    Ok(file)
}

fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".lock");
    path.with_file_name(name)
}
