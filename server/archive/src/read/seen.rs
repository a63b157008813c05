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

/// Why a name cannot be entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfit {
    /// It cannot be beside the others.
    Refused(&'static str),
    /// There are as many names as are taken.
    TooMany,
}

/// What is known of one name.
#[derive(Debug)]
struct Known {
    number: usize,
    spelling: String,
    kind: Kind,
}

/// Names by the number of their directory and their last part in lower case.
///
/// Two that differ in case are one file on some systems. Whole names would take far more memory:
/// each directory above a member would be kept in them again.
#[derive(Debug)]
pub(super) struct Seen {
    known: HashMap<(usize, String), Known>,
    most: u64,
}

impl Seen {
    /// Takes at most this many names, implied directories included.
    pub(super) fn new(most: u64) -> Self {
        Self { known: HashMap::new(), most }
    }

    /// Enters a name and the directories above it.
    ///
    /// # Errors
    /// It is there already, in another spelling, or below something that is no directory. Or there
    /// are too many names.
    pub(super) fn enter(&mut self, path: &MemberPath, kind: Kind) -> Result<(), Unfit> {
        let mut directory = 0; // that of the areas
        let mut parts = path.as_str().split('/').peekable();
        while let Some(part) = parts.next() {
            let kind = if parts.peek().is_some() { Kind::Implied } else { kind };
            let next = self.known.len() + 1;
            match self.known.entry((directory, part.to_lowercase())) {
                Entry::Vacant(free) => {
                    if u64::try_from(next).unwrap_or(u64::MAX) > self.most {
                        return Err(Unfit::TooMany);
                    }
                    free.insert(Known { number: next, spelling: part.to_owned(), kind });
                    directory = next;
                }
                Entry::Occupied(mut known) => {
                    let known = known.get_mut();
                    known.again(part, kind).map_err(Unfit::Refused)?;
                    directory = known.number;
                }
            }
        }
        Ok(())
    }
}

impl Known {
    /// Judges a name that is used once more.
    fn again(&mut self, spelling: &str, kind: Kind) -> Result<(), &'static str> {
        if self.spelling != spelling {
            return Err("differs from another one only in upper and lower case");
        }
        match (self.kind, kind) {
            (Kind::Implied | Kind::Directory, Kind::Implied) => Ok(()),
            (Kind::Implied, Kind::Directory) => {
                self.kind = Kind::Directory;
                Ok(())
            }
            (Kind::File | Kind::LeftOut, Kind::Implied) => Err("lies below what is no directory"),
            _ => Err("is there twice"),
        }
    }
}
