//! Files as they will lie somewhere, in archives that depend on nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::Result;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType, Header};

/// Files by their path without a slash at the beginning.
#[derive(Debug, Default, Clone)]
pub(crate) struct Tree {
    files: BTreeMap<String, (u32, Vec<u8>)>,
    /// Directories without files, with their mode.
    empty: BTreeMap<String, u32>,
}

impl Tree {
    /// Adds a file, or replaces it.
    pub(crate) fn file(&mut self, path: &str, mode: u32, content: impl Into<Vec<u8>>) {
        self.files.insert(path.to_owned(), (mode, content.into()));
    }

    /// Adds a directory of its own.
    pub(crate) fn directory(&mut self, path: &str, mode: u32) {
        self.empty.insert(path.to_owned(), mode);
    }

    /// Every directory, from the top down, with its mode.
    fn directories(&self) -> BTreeMap<String, u32> {
        let mut all = BTreeMap::new();
        for path in self.files.keys().chain(self.empty.keys()) {
            for (at, _) in path.match_indices('/') {
                all.insert(path.get(..at).unwrap_or_default().to_owned(), 0o755);
            }
        }
        all.extend(self.empty.clone());
        all
    }

    /// Sizes of all files together, in KiB.
    pub(crate) fn kib(&self) -> usize {
        self.files.values().map(|(_, content)| content.len().div_ceil(1024)).sum()
    }

    /// As a tar file whose members all have one time and belong to root.
    pub(crate) fn tar(&self, epoch: u64) -> Result<Vec<u8>> {
        let mut builder = Builder::new(Vec::new());
        let header = |kind, mode, size| {
            let mut header = Header::new_gnu();
            header.set_entry_type(kind);
            header.set_mode(mode);
            header.set_size(size);
            header.set_mtime(epoch);
            header.set_uid(0);
            header.set_gid(0);
            header
        };
        for (path, mode) in self.directories() {
            let mut header = header(EntryType::Directory, mode, 0);
            builder.append_data(&mut header, format!("{path}/"), std::io::empty())?;
        }
        for (path, (mode, content)) in &self.files {
            let mut header = header(EntryType::Regular, *mode, content.len() as u64);
            builder.append_data(&mut header, path, content.as_slice())?;
        }
        Ok(builder.into_inner()?)
    }

    /// The same, packed.
    pub(crate) fn tar_gz(&self, epoch: u64) -> Result<Vec<u8>> {
        gzip(&self.tar(epoch)?)
    }

    /// Lays the files below a folder, for tools that want them there.
    pub(crate) fn lay(&self, folder: &Path, epoch: u64) -> Result<()> {
        for (path, mode) in self.directories() {
            let path = folder.join(path);
            fs::create_dir_all(&path)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        }
        for (path, (mode, content)) in &self.files {
            let path = folder.join(path);
            fs::write(&path, content)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(*mode))?;
            fs::File::open(&path)?.set_modified(UNIX_EPOCH + Duration::from_secs(epoch))?;
        }
        Ok(())
    }
}

/// Packs bytes without a name and a time.
pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(bytes)?;
    Ok(gzip.finish()?)
}

/// The SHA-256 of bytes in hexadecimal digits.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Seconds since the epoch as RFC 3339.
pub(crate) fn time(epoch: u64) -> String {
    let (days, seconds) = (epoch / 86_400, epoch % 86_400);
    // Days since the first of March of the year 0, in eras of 400 years.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h141_the_same_files_are_the_same_bytes_in_whatever_order_they_come() {
        let mut one = Tree::default();
        one.file("usr/bin/svc", 0o755, "program");
        one.file("LICENSE", 0o644, "text");
        one.directory("tmp", 0o1777);
        let mut other = Tree::default();
        other.directory("tmp", 0o1777);
        other.file("LICENSE", 0o644, "text");
        other.file("usr/bin/svc", 0o755, "program");
        assert_eq!(one.tar_gz(7).unwrap(), other.tar_gz(7).unwrap());
        assert_ne!(one.tar_gz(7).unwrap(), one.tar_gz(8).unwrap());
        let directories: Vec<_> = one.directories().into_iter().collect();
        let wanted = [("tmp", 0o1777), ("usr", 0o755), ("usr/bin", 0o755)];
        assert_eq!(directories, wanted.map(|(path, mode)| (path.to_owned(), mode)));
    }

    #[test]
    fn a_time_is_told_as_people_read_it() {
        for (epoch, told) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_795_000_000, "2026-11-18T11:06:40Z"),
        ] {
            assert_eq!(time(epoch), told);
        }
    }
}
