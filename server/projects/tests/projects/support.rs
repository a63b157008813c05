//! A private tree: `projects`, and directories beside it that are no projects.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use svc_projects::{Project, Projects, Rules, SkipReason, scan};

pub struct Bench {
    _dir: tempfile::TempDir,
    pub base: PathBuf,
    pub root: PathBuf,
}

impl Bench {
    pub fn new(directories: &[&str]) -> Self {
        Self::inside(tempfile::tempdir().unwrap(), directories)
    }

    /// A tree in memory if the system can: for more entries than a disk handles well.
    pub fn large() -> Self {
        let memory = tempfile::tempdir_in("/dev/shm");
        Self::inside(memory.unwrap_or_else(|_| tempfile::tempdir().unwrap()), &[])
    }

    fn inside(dir: tempfile::TempDir, directories: &[&str]) -> Self {
        let base = dir.path().canonicalize().unwrap();
        let bench = Self { root: base.join("projects"), base, _dir: dir };
        for place in ["projects", "home/state", "home/code", "config", "elsewhere"] {
            fs::create_dir_all(bench.base.join(place)).unwrap();
        }
        for directory in directories {
            bench.make(directory);
        }
        bench
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    pub fn make(&self, directory: &str) {
        fs::create_dir_all(self.at(directory)).unwrap();
    }

    pub fn link(&self, name: &str, target: impl AsRef<Path>) {
        symlink(target, self.at(name)).unwrap();
    }

    pub fn rules(&self) -> Rules {
        let refused = ["home", "home/state", "config"].map(|place| self.base.join(place)).to_vec();
        Rules { root: self.root.clone(), refused, private: Vec::new() }
    }

    pub fn scan(&self) -> Projects {
        scan(&self.rules())
    }
}

pub fn names(projects: &Projects) -> Vec<&str> {
    projects.iter().map(|project| project.name.as_str()).collect()
}

pub fn get<'a>(projects: &'a Projects, name: &str) -> Option<&'a Project> {
    projects.get(&name.parse().unwrap())
}

pub fn alias_of<'a>(projects: &'a Projects, name: &str) -> Option<&'a str> {
    get(projects, name).unwrap().alias_of.as_ref().map(AsRef::as_ref)
}

pub fn why<'a>(projects: &'a Projects, name: &str) -> Option<&'a SkipReason> {
    projects.skipped.iter().find(|skipped| skipped.name == name).map(|skipped| &skipped.why)
}
