//! Skills: which files one may have, and how large they are.

use super::names::{is_skill, skill_file};
use super::{BadConfig, bad};
use crate::log_escape::quoted;
use std::collections::BTreeMap;

/// The file that says what a skill is for.
pub const MAIN: &str = "SKILL.md";
/// What is typed before files that may be run are written.
pub const REVIEWED: &str = "I HAVE REVIEWED THESE SCRIPTS";
/// Largest [`MAIN`], bytes.
pub const MOST_MAIN: usize = 64 * 1024;
/// Largest other file, bytes.
pub const MOST_FILE: usize = 256 * 1024;
/// Largest skill, bytes.
pub const MOST_ALL: usize = 2 * 1024 * 1024;
/// Most files of a skill.
pub const MOST_FILES: usize = 500;
/// Most directories within each other.
pub const MOST_DEPTH: usize = 8;

/// Largest file of this name, bytes.
#[must_use]
pub fn most_bytes(relative: &str) -> usize {
    if relative == MAIN { MOST_MAIN } else { MOST_FILE }
}

/// Refuses what cannot be the name of a skill.
///
/// # Errors
/// It is no plain name.
pub fn check_name(name: &str) -> Result<(), BadConfig> {
    if is_skill(name) {
        return Ok(());
    }
    Err(bad(format!(
        "{} cannot be the name of a skill; use letters, digits, `_` and `-`, at most 64",
        quoted(name)
    )))
}

/// Checks names and sizes of files that are about to be written.
///
/// # Errors
/// A name leads elsewhere, two stand in each other's way, or there is too much.
pub fn check_files(files: &BTreeMap<String, String>) -> Result<(), BadConfig> {
    if files.is_empty() {
        return Err(bad("`files` is empty; give at least one file with its text"));
    }
    if files.len() > MOST_FILES {
        return Err(bad(format!("a skill has at most {MOST_FILES} files")));
    }
    for (relative, text) in files {
        let parts = skill_file(relative)?;
        if text.contains('\0') {
            return Err(bad(format!("{} holds a NUL character; remove it", quoted(relative))));
        }
        for depth in 1..parts.len() {
            let directory = parts.get(..depth).unwrap_or_default().join("/");
            if files.contains_key(&directory) {
                return Err(bad(format!(
                    "{} is a file and a directory; choose one",
                    quoted(&directory)
                )));
            }
        }
    }
    Ok(())
}

/// The first file that is too large, with what it may have.
#[must_use]
pub fn too_large(files: &BTreeMap<String, String>) -> Option<(&str, usize)> {
    let most = |relative: &str| most_bytes(relative);
    let found = files.iter().find(|(relative, text)| text.len() > most(relative));
    found.map(|(relative, _)| (relative.as_str(), most(relative)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(all: &[(&str, usize)]) -> BTreeMap<String, String> {
        all.iter().map(|(name, bytes)| ((*name).to_owned(), "x".repeat(*bytes))).collect()
    }

    #[test]
    fn files_have_plain_names_and_bounds() {
        check_files(&files(&[(MAIN, 1), ("scripts/run.sh", 1), ("a/b/c", 1)])).unwrap();
        for odd in [&[][..], &[("../x", 1)], &[("a", 1), ("a/b", 1)], &[(".x", 1)], &[("/x", 1)]] {
            assert!(check_files(&files(odd)).is_err(), "{odd:?}");
        }
        let nul = BTreeMap::from([(MAIN.to_owned(), "a\0".to_owned())]);
        assert!(check_files(&nul).is_err());
        let many: BTreeMap<String, String> =
            (0..=MOST_FILES).map(|n| (format!("f{n}"), String::new())).collect();
        assert!(check_files(&many).is_err());
        assert_eq!(too_large(&files(&[(MAIN, MOST_MAIN), ("a", MOST_FILE)])), None);
        assert_eq!(too_large(&files(&[(MAIN, MOST_MAIN + 1)])), Some((MAIN, MOST_MAIN)));
        assert_eq!(too_large(&files(&[("a", MOST_FILE + 1)])), Some(("a", MOST_FILE)));
    }

    #[test]
    fn h37_the_name_of_a_skill_is_plain() {
        assert!(check_name("My_skill-2").is_ok());
        for odd in ["", "../x", "a/b", "-x", ".x", "a b"] {
            assert!(check_name(odd).is_err(), "{odd}");
        }
    }
}
