//! Backup archives: a tar file in gzip that begins with a manifest.
//!
//! Owns the format, how an archive is written, and everything that makes reading one safe. What
//! belongs into an archive, and what happens to a restored tree, is decided by the caller. All
//! functions block.

mod draft;
mod limits;
mod manifest;
mod name;
mod read;
mod stop;
mod write;

pub use limits::Limits;
pub use manifest::{FORMAT, FileEntry, MANIFEST, Manifest, SCHEMA_VERSION};
pub use name::{Area, BadName, MemberPath};
pub use read::{Contents, ReadError, Sink, read};
pub use stop::Stop;
pub use write::{Added, Facts, Finished, Source, Writer};
