//! Reads one program out of an archive that anybody may have made.
//!
//! One regular member is read, into memory; nothing is unpacked to the disk. All other members are
//! only counted. Any that no release has refuses the archive as a whole (H120, H124).

use crate::read::{ReadError, harmless, own_name, size_of};
use flate2::read::MultiGzDecoder;
use std::cell::Cell;
use std::io::{self, Cursor, Read};
use std::rc::Rc;
use tar::{Archive, EntryType};
use zip::ZipArchive;
use zip::read::Config;
use zip::result::ZipError;
use zip::unstable::read::ZipIterable;

const MIB: u64 = 1024 * 1024;
/// Most members of any kind.
const MEMBERS: usize = 10_000;
/// Most bytes of all members together.
const TOTAL: u64 = 1024 * MIB;
/// Most bytes that may come out of one byte of the archive.
const RATIO: u64 = 20;
/// The ratio counts from here on.
/// A tar file has blocks of zeros around small members.
const RATIO_FROM: u64 = MIB;
/// Most bytes of the program.
const PROGRAM: u64 = 256 * MIB;
/// Most directories in the path of a member.
const DEPTH: usize = 32;
/// What a gzip file begins with.
const GZIP: &[u8] = &[0x1f, 0x8b];
/// What a zip file begins with.
const ZIP: &[u8] = b"PK\x03\x04";

/// Why no program was read out of an archive.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It is cut short, or not what it begins like.
    #[error("it is not a complete archive")]
    Damaged(#[source] io::Error),
    /// The program is not in it.
    #[error("it holds no file {0} at its top")]
    Missing(String),
    /// A member is not what belongs into such an archive.
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
}

/// Whether some bytes begin as an archive that [`read_program`] reads.
#[must_use]
pub fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(GZIP) || bytes.starts_with(ZIP)
}

/// Reads the regular member `name` at the top of a `.tar.gz` or `.zip`.
///
/// # Errors
/// The archive is refused as a whole, or the program is not in it.
pub fn read_program(archive: &[u8], name: &str) -> Result<Vec<u8>, ProgramError> {
    let found = match archive.starts_with(ZIP) {
        true => in_zip(archive, name)?,
        false => in_tar(archive, name)?,
    };
    found.ok_or_else(|| ProgramError::Missing(name.to_owned()))
}

/// Most bytes that an archive of this size may unpack to.
fn allowed(archive: &[u8]) -> u64 {
    (archive.len() as u64).saturating_mul(RATIO).clamp(RATIO_FROM, TOTAL)
}

fn in_tar(archive: &[u8], wanted: &str) -> Result<Option<Vec<u8>>, ProgramError> {
    let exceeded = Rc::new(Cell::new(false));
    let stream = Bounded {
        inner: MultiGzDecoder::new(archive),
        left: allowed(archive),
        exceeded: Rc::clone(&exceeded),
    };
    let done = members(stream, wanted);
    match exceeded.get() {
        // The library sees only that reading failed.
        true => Err(ProgramError::TooMuch("unpacked bytes")),
        false => done,
    }
}

fn members(stream: impl Read, wanted: &str) -> Result<Option<Vec<u8>>, ProgramError> {
    let mut archive = Archive::new(stream);
    let entries = archive.entries().map_err(ProgramError::Damaged)?.raw(true);
    let mut found = None;
    for (count, entry) in entries.enumerate() {
        let mut entry = entry.map_err(ProgramError::Damaged)?;
        if count >= MEMBERS {
            return Err(ProgramError::TooMuch("members"));
        }
        let name = own_name(entry.header())?;
        match entry.header().entry_type() {
            // What they describe is accepted only if they change neither name nor size.
            EntryType::XHeader | EntryType::XGlobalHeader => {
                harmless(&mut entry, &name)?;
                continue;
            }
            EntryType::GNULongName | EntryType::GNULongLink => {
                return Err(member(&name, "gives the next one another name"));
            }
            EntryType::GNUSparse => return Err(member(&name, "is a file with holes")),
            _ => {}
        }
        if !is_program(&name, wanted)? {
            continue;
        }
        if entry.header().entry_type() != EntryType::Regular {
            return Err(member(&name, "is not a regular file"));
        }
        if found.is_some() {
            return Err(member(&name, "is there twice"));
        }
        if size_of(&entry)? > PROGRAM {
            return Err(ProgramError::TooMuch("bytes of one file"));
        }
        let mut content = Vec::new();
        entry.read_to_end(&mut content).map_err(ProgramError::Damaged)?;
        if content.len() as u64 != size_of(&entry)? {
            return Err(ProgramError::Damaged(io::ErrorKind::UnexpectedEof.into()));
        }
        found = Some(content);
    }
    // The digest of gzip comes last.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(ProgramError::Damaged)?;
    Ok(found)
}

fn in_zip(archive: &[u8], wanted: &str) -> Result<Option<Vec<u8>>, ProgramError> {
    // Counted before a table of the members is made.
    let count =
        ZipIterable::try_new(Cursor::new(archive), Config::default()).map_err(damaged)?.len();
    if count > MEMBERS {
        return Err(ProgramError::TooMuch("members"));
    }
    let mut zip = ZipArchive::new(Cursor::new(archive)).map_err(damaged)?;
    // Another reader could see other members: twice the name, or another one beside the content.
    zip.validate_header_consistency().map_err(damaged)?;
    let names: Vec<Vec<u8>> = zip.file_names_raw().map(<[u8]>::to_vec).collect();
    let mut index = None;
    for (at, name) in names.iter().enumerate() {
        // A directory has a slash at its end, which is no part of its name.
        let plain = name.strip_suffix(b"/").unwrap_or(name);
        if is_program(plain, wanted)? && index.replace(at).is_some() {
            return Err(member(name, "is there twice"));
        }
    }
    let Some(index) = index else { return Ok(None) };
    let limit = allowed(archive).min(PROGRAM);
    let mut file = zip.by_index(index).map_err(damaged)?;
    let kind = file.unix_mode().map_or(0, |mode| mode & 0o170_000);
    if !file.is_file() || file.encrypted() || !matches!(kind, 0 | 0o100_000) {
        return Err(member(wanted.as_bytes(), "is not a regular file"));
    }
    if file.size() > limit {
        return Err(ProgramError::TooMuch("bytes of one file"));
    }
    let mut content = Vec::new();
    // Its size in the table may be a lie.
    let read = (&mut file).take(limit.saturating_add(1)).read_to_end(&mut content);
    if content.len() as u64 > limit {
        return Err(ProgramError::TooMuch("bytes of one file"));
    }
    read.map_err(ProgramError::Damaged)?;
    if content.len() as u64 != file.size() {
        return Err(ProgramError::Damaged(io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(Some(content))
}

/// Whether a member is the wanted one; a name that leads elsewhere is refused.
fn is_program(name: &[u8], wanted: &str) -> Result<bool, ProgramError> {
    let leads_out = name.starts_with(b"/")
        || name.iter().any(|byte| matches!(byte, b'\\' | 0))
        || name.split(|byte| *byte == b'/').any(|part| part == b"..");
    if leads_out {
        return Err(member(name, "has a name that leads out of the archive"));
    }
    let parts = || name.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
    if parts().count() > DEPTH {
        return Err(ProgramError::TooMuch("directories in one path"));
    }
    Ok(parts().eq([wanted.as_bytes()]))
}

fn member(name: &[u8], reason: &'static str) -> ProgramError {
    ProgramError::Member { name: String::from_utf8_lossy(name).chars().take(80).collect(), reason }
}

fn damaged(error: ZipError) -> ProgramError {
    ProgramError::Damaged(io::Error::other(error.to_string()))
}

impl From<ReadError> for ProgramError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Member { name, reason } => Self::Member { name, reason },
            ReadError::TooMuch(limit) => Self::TooMuch(limit),
            ReadError::Damaged(cause) => Self::Damaged(cause),
            other => Self::Damaged(io::Error::other(other.to_string())),
        }
    }
}

/// A stream that ends with an error after so many bytes.
struct Bounded<R> {
    inner: R,
    left: u64,
    exceeded: Rc<Cell<bool>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        match self.left.checked_sub(count as u64) {
            Some(left) => self.left = left,
            None => {
                self.exceeded.set(true);
                return Err(io::Error::other("a limit was passed"));
            }
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
