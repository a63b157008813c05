//! Which names an archive has used, and as what.

use crate::name::MemberPath;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// What has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
    /// A link or a device, of which nothing is made.
    LeftOut,
    /// A directory that is known only by what lies in it.
    Implied,
}

/// Names by their lower-case form.
///
/// Two that differ in case are one file on some systems.
#[derive(Debug, Default)]
pub(super) struct Seen(HashMap<String, (String, Kind)>);

impl Seen {
    /// Enters a name and the directories above it.
    ///
    /// # Errors
    /// It is there already, in another spelling, or below something that is no directory.
    pub(super) fn enter(&mut self, path: &MemberPath, kind: Kind) -> Result<(), &'static str> {
        let text = path.as_str();
        let above = text.match_indices('/').filter_map(|(at, _)| text.get(..at));
        for directory in above {
            self.one(directory, Kind::Implied)?;
        }
        self.one(text, kind)
    }

    fn one(&mut self, text: &str, kind: Kind) -> Result<(), &'static str> {
        let mut known = match self.0.entry(text.to_lowercase()) {
            Entry::Vacant(free) => {
                free.insert((text.to_owned(), kind));
                return Ok(());
            }
            Entry::Occupied(known) => known,
        };
        let (spelling, before) = known.get_mut();
        if spelling != text {
            return Err("differs from another one only in upper and lower case");
        }
        match (*before, kind) {
            (Kind::Implied | Kind::Directory, Kind::Implied) => Ok(()),
            (Kind::Implied, Kind::Directory) => {
                *before = Kind::Directory;
                Ok(())
            }
            (Kind::File | Kind::LeftOut, Kind::Implied) => Err("lies below what is no directory"),
            _ => Err("is there twice"),
        }
    }
}
