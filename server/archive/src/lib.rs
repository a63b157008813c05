//! Backup archives: a tar file in gzip that begins with a manifest.
//! And the one program that is read out of a release archive.
//!
//! Owns the format, how an archive is written, and everything that makes reading one safe. What
//! belongs into an archive, and what happens to a restored tree, is decided by the caller. All
//! functions block.

mod bundle;
mod draft;
mod limits;
mod manifest;
mod name;
mod parts;
mod program;
mod read;
mod room;
mod stop;
mod write;

pub use bundle::pack;
pub use limits::Limits;
pub use manifest::{FORMAT, FileEntry, MANIFEST, Manifest, SCHEMA_VERSION};
pub use name::{Area, BadName, MemberPath};
pub use program::{ProgramError, is_archive, read_program};
pub use read::{Contents, ReadError, Sink, read};
pub use room::HasRoom;
pub use stop::Stop;
pub use write::{Added, Facts, Finished, Source, Writer};
