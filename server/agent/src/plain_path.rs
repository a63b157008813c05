//! Directories as the agent's files name them.

use std::path::{Component, Path, PathBuf};

/// A directory that is where its text says: absolute, and without `..`.
///
/// `/projects/app/../../etc` begins like a project and is none. What the agent writes is resolved
/// (agent 2.1.197), so such a text comes from somebody else.
pub(crate) fn plain_directory(raw: &str) -> Option<PathBuf> {
    let path = Path::new(raw);
    let is_plain =
        path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    (path.is_absolute() && is_plain).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h38_only_a_path_that_leads_where_it_seems_to_is_a_directory() {
        for odd in [
            "/p/../etc",
            "/p/..",
            "/..",
            "/p/a/../../../etc",
            "../p",
            "..",
            "./p",
            ".",
            "p",
            "~",
            "~/p",
            "",
        ] {
            assert_eq!(plain_directory(odd), None, "{odd:?}");
        }
        for plain in ["/", "/p", "/p/a b", "/p/..a", "/p/a..", "/p/...", "/p/~"] {
            assert_eq!(plain_directory(plain).as_deref(), Some(Path::new(plain)));
        }
    }
}
