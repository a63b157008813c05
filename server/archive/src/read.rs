//! Reads an archive that anybody may have made.
//!
//! Every member is judged before anything of it is handed on. One that no archive of ours has
//! refuses the archive as a whole; links, devices and pipes are left out (H40, H120). Extensions
//! of the format are read here and not by the tar library: it would read them into memory whatever
//! their size, and two programs could see two names.

mod seen;
mod stream;

use crate::limits::Limits;
use crate::manifest::{FORMAT, FileEntry, Manifest, SCHEMA_VERSION};
use crate::name::{Area, BadName, MemberPath, Named, parse};
use crate::stop::Stop;
use crate::write::Facts;
use seen::{Kind, Seen, Unfit};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use stream::Unpacked;
use tar::{Archive, Entry, EntryType, Header, PaxExtensions};

/// Largest record about the next member (a long name, times), bytes.
const LARGEST_RECORD: u64 = 64 * 1024;
/// Most left-out members that are named.
const NAMED: usize = 20;

/// Receives what an archive holds.
pub trait Sink {
    /// A directory, after those above it that have members of their own.
    ///
    /// # Errors
    /// It cannot be kept.
    fn directory(&mut self, path: &MemberPath) -> io::Result<()>;

    /// A file. Reading to the end of `content` compares its digest with the manifest.
    ///
    /// # Errors
    /// It cannot be kept, or `content` gave an error.
    fn file(&mut self, path: &MemberPath, facts: Facts, content: &mut dyn Read) -> io::Result<()>;
}

/// What a whole archive held.
#[derive(Debug)]
pub struct Contents {
    /// Its manifest.
    pub manifest: Manifest,
    /// Files below `state/`.
    pub state_files: usize,
    /// The file below `config/`.
    pub config: Option<MemberPath>,
    /// Names of members that were left out because they are no files or directories.
    pub left_out: Vec<String>,
}

/// Why an archive was not read to its end.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is not gzip or tar, it is cut short, or the disk fails.
    #[error("it is not a complete backup archive")]
    Damaged(#[source] io::Error),
    /// There is no manifest at its beginning, or not one that can be used.
    #[error("{0}")]
    Manifest(String),
    /// A member has a name that no archive of ours has.
    #[error("the name of its member {name:?} {reason}")]
    Name {
        /// The name, shortened.
        name: String,
        /// What is wrong with it.
        reason: BadName,
    },
    /// A member is not what the manifest says, or not what belongs into an archive.
    #[error("its member {name:?} {reason}")]
    Member {
        /// The name, shortened.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// It would unpack to more than is allowed.
    #[error("it holds more than is allowed: {0}")]
    TooMuch(&'static str),
    /// What it holds could not be kept.
    #[error("its member {name:?} cannot be kept")]
    Sink {
        /// The name.
        name: String,
        /// Why.
        #[source]
        cause: io::Error,
    },
}

/// Reads an archive from its first byte to its last.
///
/// The sink has received members when this fails: what it made of them is to be discarded.
///
/// # Errors
/// The archive is refused as a whole.
pub fn read(
    file: File,
    limits: &Limits,
    sink: &mut dyn Sink,
    stop: &Stop,
) -> Result<Contents, ReadError> {
    let (stream, exceeded) = Unpacked::new(file, limits, stop.clone());
    let done = read_stream(stream, limits, sink);
    match exceeded.get() {
        // The library sees only that reading failed.
        Some(limit) => Err(ReadError::TooMuch(limit)),
        None => done,
    }
}

fn read_stream(
    stream: Unpacked,
    limits: &Limits,
    sink: &mut dyn Sink,
) -> Result<Contents, ReadError> {
    let mut archive = Archive::new(stream);
    let entries = archive.entries().map_err(ReadError::Damaged)?.raw(true);
    let mut state: Option<Reading> = None;
    let mut long_name = None;
    let mut count: u64 = 0;
    for entry in entries {
        let mut entry = entry.map_err(ReadError::Damaged)?;
        count += 1;
        if count > limits.members {
            return Err(ReadError::TooMuch("members"));
        }
        let own = own_name(entry.header())?;
        match entry.header().entry_type() {
            EntryType::GNULongName if long_name.is_some() => {
                return Err(member(&own, "is a second name for one member"));
            }
            EntryType::GNULongName => long_name = Some(long_name_of(&mut entry)?),
            // The name behind it is that of a link, which is left out.
            EntryType::GNULongLink => drop(record(&mut entry, &own)?),
            EntryType::XHeader | EntryType::XGlobalHeader => harmless(&mut entry, &own)?,
            kind => {
                let name = long_name.take().unwrap_or(own);
                match &mut state {
                    None => state = Some(Reading::begin(&mut entry, &name, kind, limits)?),
                    Some(reading) => reading.member(&mut entry, &name, kind, sink)?,
                }
            }
        }
    }
    if long_name.is_some() {
        return Err(ReadError::Manifest("it ends with a name without a member".to_owned()));
    }
    // The digest of gzip comes last; behind the end of tar only zeros may follow.
    archive.into_inner().only_zeros_left()?;
    match state {
        Some(reading) => reading.end(),
        None => Err(ReadError::Manifest("it has no members".to_owned())),
    }
}

/// What was read so far, from the manifest on.
struct Reading {
    manifest: Manifest,
    /// Indices of the listed files that are still to come.
    awaited: HashMap<String, usize>,
    seen: Seen,
    has_state: bool,
    state_files: usize,
    config: Option<MemberPath>,
    left_out: Vec<String>,
    bytes_left: u64,
}

impl Reading {
    fn begin(
        entry: &mut Entry<'_, Unpacked>,
        name: &[u8],
        kind: EntryType,
        limits: &Limits,
    ) -> Result<Self, ReadError> {
        let refused = |reason: &str| ReadError::Manifest(reason.to_owned());
        if judged(name)? != Named::Manifest || kind != EntryType::Regular {
            return Err(refused("its first member is not manifest.json"));
        }
        if size_of(entry)? > limits.manifest_bytes {
            return Err(ReadError::TooMuch("bytes of manifest.json"));
        }
        let mut text = Vec::new();
        entry.read_to_end(&mut text).map_err(ReadError::Damaged)?;
        let manifest: Manifest = serde_json::from_slice(&text)
            .map_err(|error| ReadError::Manifest(format!("manifest.json is unusable ({error})")))?;
        if manifest.schema_version != SCHEMA_VERSION || manifest.format > FORMAT {
            return Err(refused("a newer version made it: restore it with that version"));
        }
        if manifest.format < FORMAT {
            return Err(refused("manifest.json lists no files, so nothing can be verified"));
        }
        if u64::try_from(manifest.files.len()).unwrap_or(u64::MAX) > limits.members {
            return Err(ReadError::TooMuch("members"));
        }
        let mut awaited = HashMap::new();
        for (index, file) in manifest.files.iter().enumerate() {
            let path = MemberPath::new(file.path.as_bytes())
                .map_err(|reason| ReadError::Name { name: shown(file.path.as_bytes()), reason })?;
            if awaited.insert(path.as_str().to_owned(), index).is_some() {
                return Err(member(name, "lists a file twice"));
            }
        }
        Ok(Self {
            manifest,
            awaited,
            seen: Seen::new(limits.members),
            has_state: false,
            state_files: 0,
            config: None,
            left_out: Vec::new(),
            bytes_left: limits.total_bytes,
        })
    }

    fn member(
        &mut self,
        entry: &mut Entry<'_, Unpacked>,
        name: &[u8],
        kind: EntryType,
        sink: &mut dyn Sink,
    ) -> Result<(), ReadError> {
        let refused = |reason| Err(member(name, reason));
        let named = judged(name)?;
        match kind {
            EntryType::Directory => {
                if size_of(entry)? != 0 {
                    return refused("is a directory with content");
                }
                match named {
                    Named::Manifest => refused("is a directory"),
                    Named::Root(area) => {
                        self.has_state |= area == Area::State;
                        Ok(())
                    }
                    Named::Inside(path) => self.directory(&path, sink),
                }
            }
            EntryType::Regular => match named {
                _ if name.ends_with(b"/") => refused("is a file with the name of a directory"),
                Named::Manifest => refused("is there twice"),
                Named::Root(_) => refused("is a file, not a directory"),
                Named::Inside(path) => self.file(&path, entry, sink),
            },
            EntryType::Symlink
            | EntryType::Link
            | EntryType::Char
            | EntryType::Block
            | EntryType::Fifo => {
                if let Named::Inside(path) = &named {
                    self.enter(path, Kind::LeftOut)?;
                }
                if self.left_out.len() < NAMED {
                    self.left_out.push(shown(name));
                }
                Ok(())
            }
            EntryType::GNUSparse => refused("is a file with holes, which no backup holds"),
            _ => refused("is of a kind that no backup holds"),
        }
    }

    fn enter(&mut self, path: &MemberPath, kind: Kind) -> Result<(), ReadError> {
        self.seen.enter(path, kind).map_err(|unfit| match unfit {
            Unfit::Refused(reason) => member(path.as_str().as_bytes(), reason),
            Unfit::TooMany => ReadError::TooMuch("members"),
        })
    }

    fn directory(&mut self, path: &MemberPath, sink: &mut dyn Sink) -> Result<(), ReadError> {
        self.enter(path, Kind::Directory)?;
        if path.area() == Area::Config {
            return Err(member(path.as_str().as_bytes(), "is a directory"));
        }
        self.has_state = true;
        sink.directory(path).map_err(|cause| kept_not(path, cause))
    }

    fn file(
        &mut self,
        path: &MemberPath,
        entry: &mut Entry<'_, Unpacked>,
        sink: &mut dyn Sink,
    ) -> Result<(), ReadError> {
        let refused = |reason| member(path.as_str().as_bytes(), reason);
        self.enter(path, Kind::File)?;
        let listed = self.awaited.remove(path.as_str());
        let listed = listed.and_then(|index| self.manifest.files.get(index));
        let listed = listed.ok_or_else(|| refused("is not listed in manifest.json"))?;
        let size = size_of(entry)?;
        self.bytes_left =
            self.bytes_left.checked_sub(size).ok_or(ReadError::TooMuch("bytes of files"))?;
        if size != listed.size {
            return Err(refused("has another size than manifest.json says"));
        }
        match path.area() {
            Area::State => {
                self.has_state = true;
                self.state_files += 1;
            }
            Area::Config if self.config.is_some() => {
                return Err(refused("is a second configuration"));
            }
            Area::Config => self.config = Some(path.clone()),
        }
        let facts = Facts { mode: listed.mode & 0o777, mtime: listed.mtime };
        let mut content = Content { entry, digest: Sha256::new(), failed: false };
        let done = sink.file(path, facts, &mut content);
        if content.failed {
            let cause = done.err().unwrap_or_else(|| io::Error::other("it cannot be read"));
            return Err(ReadError::Damaged(cause));
        }
        done.map_err(|cause| kept_not(path, cause))?;
        // Whatever the sink left over belongs to the digest.
        io::copy(&mut content, &mut io::sink()).map_err(ReadError::Damaged)?;
        is_as_listed(content, listed)
            .then_some(())
            .ok_or_else(|| refused("has another content than manifest.json says (SHA-256)"))
    }

    fn end(self) -> Result<Contents, ReadError> {
        let Self { manifest, awaited, has_state, state_files, config, left_out, .. } = self;
        if let Some(missing) = awaited.into_keys().min() {
            return Err(member(missing.as_bytes(), "is listed in manifest.json and missing"));
        }
        if !has_state {
            return Err(ReadError::Manifest("it holds no state directory".to_owned()));
        }
        Ok(Contents { manifest, state_files, config, left_out })
    }
}

fn is_as_listed(content: Content<'_, '_>, listed: &FileEntry) -> bool {
    hex::encode(content.digest.finalize()) == listed.sha256.to_ascii_lowercase()
}

/// The content of a file, hashed while it is read.
struct Content<'a, 'b> {
    entry: &'a mut Entry<'b, Unpacked>,
    digest: Sha256,
    failed: bool,
}

impl Read for Content<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.entry.read(buffer).inspect_err(|_| self.failed = true)?;
        self.digest.update(buffer.get(..count).unwrap_or_default());
        Ok(count)
    }
}

fn judged(name: &[u8]) -> Result<Named, ReadError> {
    parse(name).map_err(|reason| ReadError::Name { name: shown(name), reason })
}

fn member(name: &[u8], reason: &'static str) -> ReadError {
    ReadError::Member { name: shown(name), reason }
}

fn kept_not(path: &MemberPath, cause: io::Error) -> ReadError {
    ReadError::Sink { name: path.as_str().to_owned(), cause }
}

/// The beginning of a name, for messages.
fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).chars().take(80).collect()
}

pub(crate) fn size_of<R: Read>(entry: &Entry<'_, R>) -> Result<u64, ReadError> {
    entry.header().entry_size().map_err(ReadError::Damaged)
}

/// The name in the header of a member.
///
/// Readers stop at the first byte 0; something behind it is meant for another reader.
pub(crate) fn own_name(header: &Header) -> Result<Vec<u8>, ReadError> {
    let field = header.as_old().name.as_slice();
    let mut behind = field.iter().skip_while(|byte| **byte != 0);
    let name = header.path_bytes().into_owned();
    if behind.any(|byte| *byte != 0) {
        return Err(ReadError::Name { name: shown(&name), reason: BadName::Control });
    }
    Ok(name)
}

/// Reads a record about the next member.
fn record<R: Read>(entry: &mut Entry<'_, R>, name: &[u8]) -> Result<Vec<u8>, ReadError> {
    if size_of(entry)? > LARGEST_RECORD {
        return Err(member(name, "describes the next one in too many bytes"));
    }
    let mut record = Vec::new();
    entry.read_to_end(&mut record).map_err(ReadError::Damaged)?;
    Ok(record)
}

/// The name of the next member, which ends with one byte 0.
fn long_name_of(entry: &mut Entry<'_, Unpacked>) -> Result<Vec<u8>, ReadError> {
    let mut name = record(entry, b"././@LongLink")?;
    if name.last() == Some(&0) {
        name.pop();
    }
    Ok(name)
}

/// Accepts pax records that change neither name nor content, such as exact times.
pub(crate) fn harmless<R: Read>(entry: &mut Entry<'_, R>, name: &[u8]) -> Result<(), ReadError> {
    let record = record(entry, name)?;
    for extension in PaxExtensions::new(&record) {
        let key = extension.map_err(ReadError::Damaged)?.key_bytes();
        if matches!(key, b"path" | b"linkpath" | b"size") || key.starts_with(b"GNU.sparse") {
            return Err(member(name, "gives the next one another name or size"));
        }
    }
    Ok(())
}
