//! Packs a few texts into a small archive that is handed to somebody else.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io;
use tar::{Builder, EntryType, Header};

/// Packs texts as private files below one directory, each by its name there.
///
/// # Errors
/// A name does not fit into an archive.
pub fn pack<'a>(
    top: &str,
    members: impl Iterator<Item = (&'a str, &'a [u8])>,
    mtime: u64,
) -> io::Result<Vec<u8>> {
    let mut builder = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for (name, content) in members {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_size(u64::try_from(content.len()).map_err(io::Error::other)?);
        header.set_mode(0o600);
        header.set_mtime(mtime);
        builder.append_data(&mut header, format!("{top}/{name}"), content)?;
    }
    builder.into_inner()?.finish()
}
