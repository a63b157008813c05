//! Finds the configuration file (`configuration` §1).

use crate::environment::Environment;
use crate::report::{ConfigErrors, Location};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Name of the file in every directory that is searched.
const FILE_NAME: &str = "svc.yml";

/// Why a file is on the search list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Named on the command line.
    Argument,
    /// Named by `SVC_CONFIG`.
    Variable,
    /// The working directory.
    WorkingDirectory,
    /// Named by `SVC_HOME`.
    Home,
    /// The user's own configuration directory.
    User,
    /// The configuration directory of the machine.
    System,
}

/// A file that the search examines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Absolute path.
    pub path: PathBuf,
    /// Why it is on the list.
    pub step: Step,
}

/// The file that the search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Absolute path, links not resolved.
    pub path: PathBuf,
    /// Why it was on the list.
    pub step: Step,
    /// The whole search list, in order.
    pub searched: Vec<Candidate>,
}

/// Why no file can be read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FindError {
    /// No candidate exists. The first of them is where a new file would be written.
    #[error("no configuration found; searched {}", list(.searched))]
    NotFound {
        /// The whole search list, in order; never empty.
        searched: Vec<Candidate>,
    },
    /// A candidate exists and cannot be used; the search stops there.
    #[error(transparent)]
    Unusable(#[from] ConfigErrors),
}

fn list(searched: &[Candidate]) -> String {
    let paths: Vec<_> =
        searched.iter().map(|candidate| candidate.path.display().to_string()).collect();
    paths.join(", ")
}

/// The search list, first to last.
#[must_use]
pub fn candidates(
    explicit: Option<&Path>,
    environment: &Environment,
    working_directory: &Path,
) -> Vec<Candidate> {
    let absolute = |path: &Path| -> PathBuf {
        let joined = working_directory.join(environment.expand_home(path));
        joined.components().collect()
    };
    if let Some(path) = explicit {
        return vec![Candidate { path: absolute(path), step: Step::Argument }];
    }
    if let Some(path) = environment.path("SVC_CONFIG") {
        return vec![Candidate { path: absolute(path), step: Step::Variable }];
    }
    let home = environment.path("SVC_HOME");
    [
        (Some(working_directory.to_path_buf()), Step::WorkingDirectory),
        (home.map(absolute), Step::Home),
        (user_directory(environment), Step::User),
        (system_directory(environment), Step::System),
    ]
    .into_iter()
    .filter_map(|(directory, step)| {
        Some(Candidate { path: absolute(&directory?.join(FILE_NAME)), step })
    })
    .collect()
}

fn user_directory(environment: &Environment) -> Option<PathBuf> {
    if cfg!(windows) {
        return Some(environment.path("APPDATA")?.join("svc"));
    }
    if cfg!(target_os = "macos") {
        return Some(environment.home()?.join("Library/Application Support/svc"));
    }
    match environment.path("XDG_CONFIG_HOME").filter(|path| path.is_absolute()) {
        Some(config) => Some(config.join("svc")),
        None => Some(environment.home()?.join(".config/svc")),
    }
}

fn system_directory(environment: &Environment) -> Option<PathBuf> {
    if cfg!(windows) {
        return Some(environment.path("PROGRAMDATA")?.join("svc"));
    }
    Some(PathBuf::from("/etc/svc"))
}

/// Finds the configuration file: the first candidate that is a regular file.
///
/// Blocking: examines a few files. Creates nothing.
///
/// # Errors
/// [`FindError::NotFound`] when no candidate exists; [`FindError::Unusable`] when one exists
/// that may not be examined. The setup page must not offer to replace a file that only has a wrong
/// mode.
pub fn find(
    explicit: Option<&Path>,
    environment: &Environment,
    working_directory: &Path,
) -> Result<Found, FindError> {
    let searched = candidates(explicit, environment, working_directory);
    for candidate in &searched {
        if is_there(candidate)? {
            let Candidate { path, step } = candidate.clone();
            return Ok(Found { path, step, searched });
        }
    }
    Err(FindError::NotFound { searched })
}

fn is_there(candidate: &Candidate) -> Result<bool, ConfigErrors> {
    let unusable = |reason: String| {
        Err(ConfigErrors::one(Location::File(candidate.path.clone()), None, reason))
    };
    // The operator named this file: another kind of file with this name is a mistake.
    let is_named = matches!(candidate.step, Step::Argument | Step::Variable);
    match std::fs::metadata(&candidate.path) {
        Ok(metadata) if metadata.is_file() => Ok(true),
        Ok(metadata) if is_named && metadata.is_dir() => {
            unusable("is a directory; name the file in it".to_owned())
        }
        Ok(_) if is_named => unusable("is not a regular file; name a YAML file".to_owned()),
        Ok(_) => Ok(false),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            if std::fs::symlink_metadata(&candidate.path).is_ok() {
                return unusable("is a link to a file that does not exist; repair it".to_owned());
            }
            Ok(false)
        }
        Err(error) => unusable(format!(
            "cannot be examined ({error}); make it readable for this user, or name another file"
        )),
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    struct SearchTree {
        dir: TempDir,
    }

    impl SearchTree {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            for name in ["cwd", "home", "svc-home", "xdg/svc"] {
                fs::create_dir_all(dir.path().join(name)).unwrap();
            }
            Self { dir }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.dir.path().join(name)
        }

        fn write(&self, name: &str) -> PathBuf {
            fs::write(self.path(name), "").unwrap();
            self.path(name)
        }

        fn environment(&self, extra: &[(&str, &str)]) -> Environment {
            [("HOME", "home"), ("SVC_HOME", "svc-home"), ("XDG_CONFIG_HOME", "xdg")]
                .into_iter()
                .chain(extra.iter().copied())
                .map(|(name, value)| (name, self.path(value)))
                .collect()
        }

        fn find(
            &self,
            explicit: Option<&str>,
            environment: &Environment,
        ) -> Result<Found, FindError> {
            find(explicit.map(Path::new), environment, &self.path("cwd"))
        }
    }

    #[test]
    fn the_first_existing_file_wins() {
        let tree = SearchTree::new();
        let environment = tree.environment(&[]);
        let mut expected = Vec::new();
        for (name, step) in [
            ("xdg/svc/svc.yml", Step::User),
            ("svc-home/svc.yml", Step::Home),
            ("cwd/svc.yml", Step::WorkingDirectory),
        ] {
            expected.push((tree.write(name), step));
            let found = tree.find(None, &environment).unwrap();
            assert_eq!(Some(&(found.path, found.step)), expected.last());
        }
    }

    #[test]
    fn a_named_file_is_the_only_candidate() {
        let tree = SearchTree::new();
        tree.write("cwd/svc.yml");
        let other = tree.write("other.yml");
        let named = tree.environment(&[("SVC_CONFIG", "missing.yml")]);
        let FindError::NotFound { searched } = tree.find(None, &named).unwrap_err() else {
            panic!("a missing named file must not fall through");
        };
        assert_eq!(searched, [Candidate { path: tree.path("missing.yml"), step: Step::Variable }]);
        assert_eq!(tree.find(Some("../other.yml"), &named).unwrap().path, {
            let mut path = tree.path("cwd");
            path.push("../other.yml");
            path
        });
        let blank: Environment = [("SVC_CONFIG", " ")].into_iter().collect();
        assert_eq!(tree.find(None, &blank).unwrap().step, Step::WorkingDirectory);
        assert!(other.exists());
    }

    #[test]
    fn a_tilde_means_home() {
        let tree = SearchTree::new();
        let file = tree.write("home/mine.yml");
        assert_eq!(tree.find(Some("~/mine.yml"), &tree.environment(&[])).unwrap().path, file);
        let by_variable: Environment =
            [("HOME", tree.path("home")), ("SVC_CONFIG", "~/mine.yml".into())]
                .into_iter()
                .collect();
        assert_eq!(tree.find(None, &by_variable).unwrap().path, file);
    }

    #[test]
    fn nothing_found_lists_every_place_that_was_searched() {
        let tree = SearchTree::new();
        let error = tree.find(None, &Environment::empty()).unwrap_err();
        let FindError::NotFound { searched } = &error else { panic!("{error}") };
        let steps: Vec<_> = searched.iter().map(|candidate| candidate.step).collect();
        assert_eq!(steps, [Step::WorkingDirectory, Step::System]);
        assert!(error.to_string().contains("cwd/svc.yml"), "{error}");
    }

    #[test]
    fn what_exists_and_cannot_be_read_is_never_not_found() {
        let tree = SearchTree::new();
        let refused = |explicit: Option<&str>, reason: &str| {
            let error = tree.find(explicit, &tree.environment(&[])).unwrap_err();
            assert!(matches!(error, FindError::Unusable(_)), "{error:?}");
            assert!(error.to_string().contains(reason), "{error}");
        };
        refused(Some("."), "directory");
        std::os::unix::fs::symlink("nowhere", tree.path("cwd/svc.yml")).unwrap();
        refused(None, "link");
        std::os::unix::fs::symlink("loop.yml", tree.path("cwd/loop.yml")).unwrap();
        refused(Some("loop.yml"), "cannot be examined");
    }

    #[test]
    fn a_directory_on_the_search_path_is_passed_over() {
        let tree = SearchTree::new();
        fs::create_dir(tree.path("cwd/svc.yml")).unwrap();
        let file = tree.write("svc-home/svc.yml");
        assert_eq!(tree.find(None, &tree.environment(&[])).unwrap().path, file);
    }
}
