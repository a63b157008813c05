//! Writes an archive.
//!
//! The manifest is the first member and holds digests of all the others. So the others are
//! compressed first, into a file without a name, and hashed on the way. The archive is the
//! compressed manifest followed by those bytes: a gzip file may have several parts.

use crate::draft::Draft;
use crate::limits::Limits;
use crate::manifest::{FileEntry, MANIFEST, Manifest};
use crate::name::{Area, MemberPath};
use crate::parts::Parts;
use crate::read::{Contents, ReadError, Sink, read};
use crate::room::{BETWEEN, HasRoom, Room};
use crate::stop::Stop;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::io::{self, Read, Seek as _, Write};
use std::path::Path;
use tar::{Builder, EntryType, Header};

/// Bytes at the end of a tar file that say that it ends.
const END_OF_TAR: usize = 1024;

/// What is known of a member beside its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Permission bits.
    pub mode: u32,
    /// When it was last changed, seconds since the Unix epoch.
    pub mtime: u64,
}

/// A file to add.
pub struct Source<'a> {
    /// Its content, at least `size` bytes unless it is shortened meanwhile.
    pub content: &'a mut dyn Read,
    /// Bytes that are taken.
    pub size: u64,
    /// The rest.
    pub facts: Facts,
}

/// How a file was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// With its content.
    Whole,
    /// It was shortened while it was read. Zeros take the place of what is missing.
    Shortened,
}

/// A new archive.
pub struct Writer {
    body: Builder<Parts>,
    draft: Draft,
    files: Vec<FileEntry>,
    stop: Stop,
    room: Room,
}

/// A complete archive that has no name yet.
#[derive(Debug)]
pub struct Finished {
    draft: Draft,
    /// Size, bytes.
    pub bytes: u64,
    /// Files in it, the manifest not counted.
    pub files: usize,
}

impl Writer {
    /// Begins an archive in the directory of its later name.
    ///
    /// `has_room` is asked every few MiB: others write to the same file system meanwhile.
    ///
    /// # Errors
    /// Files cannot be created there.
    pub fn begin(directory: &Path, stop: Stop, has_room: HasRoom) -> io::Result<Self> {
        let body = tempfile::tempfile_in(directory)?;
        let draft = Draft::new(directory)?;
        let body = Builder::new(Parts::begin(body)?);
        Ok(Self { body, draft, files: Vec::new(), stop, room: Room::new(has_room) })
    }

    /// Adds the directory of an area.
    ///
    /// # Errors
    /// The archive cannot be written.
    pub fn area(&mut self, area: Area, facts: Facts) -> io::Result<()> {
        let name = match area {
            Area::State => "state/",
            Area::Config => "config/",
        };
        self.directory_named(name, facts)
    }

    /// Adds a directory.
    ///
    /// # Errors
    /// The archive cannot be written.
    pub fn directory(&mut self, path: &MemberPath, facts: Facts) -> io::Result<()> {
        self.directory_named(&format!("{path}/"), facts)
    }

    fn directory_named(&mut self, name: &str, facts: Facts) -> io::Result<()> {
        self.stop.check()?;
        let mut header = header(EntryType::Directory, 0, facts);
        self.body.append_data(&mut header, name, io::empty())
    }

    /// Adds a file as it is while it is read.
    ///
    /// # Errors
    /// The file cannot be read, or the archive cannot be written: `StorageFull` when there is no
    /// room for more.
    pub fn file(&mut self, path: &MemberPath, source: Source<'_>) -> io::Result<Added> {
        let Source { content, size, facts } = source;
        let mut header = header(EntryType::Regular, size, facts);
        let mut exactly = Exactly {
            content,
            left: size,
            digest: Sha256::new(),
            added: Added::Whole,
            stop: &self.stop,
            room: &mut self.room,
        };
        self.body.append_data(&mut header, path.as_str(), &mut exactly)?;
        let added = exactly.added;
        self.files.push(FileEntry {
            path: path.as_str().to_owned(),
            size,
            sha256: hex::encode(exactly.digest.finalize()),
            mode: facts.mode,
            mtime: facts.mtime,
        });
        Ok(added)
    }

    /// Completes the archive with its manifest, whose list of files is filled in here.
    ///
    /// # Errors
    /// The archive cannot be written: `StorageFull` when there is no room for more.
    pub fn finish(self, mut manifest: Manifest) -> io::Result<Finished> {
        let Self { body, draft, files, stop, mut room } = self;
        let mut body = body.into_inner()?.finish()?;
        manifest.files = files;
        let head = manifest_member(&manifest)?;
        let mut packed = GzEncoder::new(draft.file(), Compression::default());
        packed.write_all(&head)?;
        packed.finish()?;
        body.rewind()?;
        loop {
            stop.check()?;
            let copied = io::copy(&mut (&body).take(BETWEEN), &mut draft.file())?;
            if copied == 0 {
                break;
            }
            room.take(copied)?;
        }
        let bytes = draft.file().metadata()?.len();
        Ok(Finished { draft, bytes, files: manifest.files.len() })
    }
}

impl Finished {
    /// Reads the whole archive as a restore would, and compares every digest.
    ///
    /// # Errors
    /// A restore would refuse it.
    pub fn verify(&self, limits: &Limits, stop: &Stop) -> Result<Contents, ReadError> {
        let mut file = self.draft.file().try_clone().map_err(ReadError::Damaged)?;
        file.rewind().map_err(ReadError::Damaged)?;
        read(file, limits, &mut Nowhere, stop)
    }

    /// Gives the archive its name, durably and with mode 0600.
    ///
    /// # Errors
    /// `AlreadyExists` when something has the name and is not to be replaced; it can be tried
    /// again with another name in the same directory.
    pub fn publish(&mut self, path: &Path, replace: bool) -> io::Result<()> {
        self.draft.publish(path, replace)
    }
}

/// Takes everything and keeps nothing.
struct Nowhere;

impl Sink for Nowhere {
    fn directory(&mut self, _: &MemberPath) -> io::Result<()> {
        Ok(())
    }

    fn file(&mut self, _: &MemberPath, _: Facts, content: &mut dyn Read) -> io::Result<()> {
        io::copy(content, &mut io::sink()).map(drop)
    }
}

/// Owner and group are nobody's business on another machine.
fn header(kind: EntryType, size: u64, facts: Facts) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(facts.mode & 0o777);
    header.set_mtime(facts.mtime);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// The manifest as a member, without the end of a tar file after it.
fn manifest_member(manifest: &Manifest) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(manifest)?;
    text.push(b'\n');
    let size = u64::try_from(text.len()).unwrap_or(u64::MAX);
    let mut header = header(EntryType::Regular, size, Facts { mode: 0o600, mtime: 0 });
    let mut builder = Builder::new(Vec::new());
    builder.append_data(&mut header, MANIFEST, text.as_slice())?;
    let mut member = builder.into_inner()?;
    member.truncate(member.len().saturating_sub(END_OF_TAR));
    Ok(member)
}

/// Gives exactly as many bytes as the header says, and hashes them.
struct Exactly<'a> {
    content: &'a mut dyn Read,
    left: u64,
    digest: Sha256,
    added: Added,
    stop: &'a Stop,
    room: &'a mut Room,
}

impl Read for Exactly<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stop.check()?;
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let Some(wanted) = buffer.get_mut(..most) else { return Ok(0) };
        if wanted.is_empty() {
            return Ok(0);
        }
        let mut count = match self.added {
            Added::Whole => self.content.read(wanted)?,
            Added::Shortened => 0,
        };
        if count == 0 {
            self.added = Added::Shortened;
            wanted.fill(0);
            count = wanted.len();
        }
        self.digest.update(wanted.get(..count).unwrap_or_default());
        let bytes = u64::try_from(count).unwrap_or(u64::MAX);
        self.left = self.left.saturating_sub(bytes);
        self.room.take(bytes)?;
        Ok(count)
    }
}
