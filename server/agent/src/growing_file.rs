//! Reads a file that another process writes, through truncation and replacement.

use crate::regular_file::open_own;
use rustix::fs::{Mode, fchmod};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// A file, and how far it was read.
#[derive(Debug)]
pub(crate) struct GrowingFile {
    path: PathBuf,
    open: Option<Open>,
    offset: u64,
    /// Length at the last read.
    len: u64,
}

#[derive(Debug)]
struct Open {
    file: File,
    identity: (u64, u64),
}

/// The result of one read.
#[derive(Debug)]
pub(crate) enum ReadResult {
    /// This many bytes, now in the buffer.
    Bytes(usize),
    /// The file was truncated or replaced: the next read begins at its start.
    Restarted,
    /// Nothing new.
    UpToDate,
    /// There is no file at the path.
    Missing,
    /// The file cannot be read.
    Unusable(io::Error),
}

impl GrowingFile {
    /// Opens nothing yet. The first read begins at `offset`.
    pub(crate) fn new(path: PathBuf, offset: u64) -> Self {
        Self { path, open: None, offset, len: 0 }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The offset up to which the file was read.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes that were left to read after the last read.
    pub(crate) fn behind(&self) -> u64 {
        self.len.saturating_sub(self.offset)
    }

    /// Device and inode of the file that is being read, if one is open.
    pub(crate) fn identity(&self) -> Option<(u64, u64)> {
        self.open.as_ref().map(|open| open.identity)
    }

    /// Continues at another offset of the same file.
    /// For a reader that has truncated the file, or that skips a part of it.
    pub(crate) fn go_to(&mut self, offset: u64) {
        self.offset = offset;
    }

    /// Reads the next bytes. Blocks.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> ReadResult {
        match self.try_read(buffer) {
            Ok(result) => result,
            Err(error) if error.kind() == io::ErrorKind::NotFound => ReadResult::Missing,
            Err(error) => ReadResult::Unusable(error),
        }
    }

    fn try_read(&mut self, buffer: &mut [u8]) -> io::Result<ReadResult> {
        let open = match &self.open {
            Some(open) => open,
            None => self.open.insert(Open::new(&self.path)?),
        };
        self.len = open.file.metadata()?.len();
        if self.len < self.offset {
            self.offset = 0;
            return Ok(ReadResult::Restarted);
        }
        let read = open.file.read_at(buffer, self.offset)?;
        if read > 0 {
            self.offset += read as u64;
            return Ok(ReadResult::Bytes(read));
        }
        // The old file was read to its end, so switching to its successor loses nothing.
        if identity(&fs::symlink_metadata(&self.path)?) == open.identity {
            return Ok(ReadResult::UpToDate);
        }
        self.open = Some(Open::new(&self.path)?);
        self.offset = 0;
        Ok(ReadResult::Restarted)
    }
}

impl Open {
    fn new(path: &Path) -> io::Result<Self> {
        let file = open_own(path)?;
        let facts = file.metadata()?;
        if facts.permissions().mode() & 0o077 != 0 {
            // F61: when the agent creates its debug file again, it is readable for everybody.
            let _ = fchmod(&file, Mode::from_raw_mode(0o600)); // the owner is another user: we may not
        }
        Ok(Self { identity: identity(&facts), file })
    }
}

fn identity(facts: &fs::Metadata) -> (u64, u64) {
    (facts.dev(), facts.ino())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn all(file: &mut GrowingFile) -> (String, Vec<&'static str>) {
        let (mut text, mut events) = (Vec::new(), Vec::new());
        let mut buffer = [0; 7];
        loop {
            let end = match file.read(&mut buffer) {
                ReadResult::Bytes(read) => {
                    text.extend_from_slice(&buffer[..read]);
                    continue;
                }
                ReadResult::Restarted => {
                    events.push("restarted");
                    continue;
                }
                ReadResult::UpToDate => "up to date",
                ReadResult::Missing => "missing",
                ReadResult::Unusable(_) => "unusable",
            };
            events.push(end);
            return (String::from_utf8(text).unwrap(), events);
        }
    }

    /// F36, F61.
    #[test]
    fn reading_goes_on_through_truncation_deletion_and_replacement() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a.log");
        let mut file = GrowingFile::new(path.clone(), 0);
        assert_eq!(all(&mut file), (String::new(), vec!["missing"]));
        let mut writer = File::create(&path).unwrap();
        writer.write_all(b"one two three\n").unwrap();
        assert_eq!(all(&mut file), ("one two three\n".into(), vec!["up to date"]));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

        fs::write(&path, "short\n").unwrap();
        assert_eq!(all(&mut file), ("short\n".into(), vec!["restarted", "up to date"]));

        // The rest of a renamed file is read before its successor.
        let mut writer = File::options().append(true).open(&path).unwrap();
        writer.write_all(b"rest\n").unwrap();
        fs::rename(&path, root.path().join("a.log.1")).unwrap();
        assert_eq!(all(&mut file), ("rest\n".into(), vec!["missing"]));
        fs::write(&path, "new\n").unwrap();
        assert_eq!(all(&mut file), ("new\n".into(), vec!["restarted", "up to date"]));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    /// H127.
    #[test]
    fn pipes_directories_and_links_are_not_read() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a.log");
        let looks = || all(&mut GrowingFile::new(path.clone(), 0)).1;
        fs::create_dir(&path).unwrap();
        assert_eq!(looks(), ["unusable"]);
        fs::remove_dir(&path).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert_eq!(looks(), ["unusable"]);
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert_eq!(looks(), ["unusable"]);
    }
}
