//! Which remote environments are left over, because their bridge is gone.
//!
//! Whatever is not certain protects an environment. Removing one that somebody uses ends a session
//! in the middle of its work; leaving one costs nothing.

use std::path::{Component, Path, PathBuf};

/// An environment as the account's service lists it.
#[derive(Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its id. A credential: never shown.
    pub id: String,
    /// Its kind, as the service calls it.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Where its bridge ran.
    pub directory: Option<String>,
    /// The machine of its bridge, where the service tells.
    pub machine: Option<String>,
    /// It is in use no more.
    pub is_archived: bool,
}

/// What is alive on this machine.
#[derive(Debug, Clone, Default)]
pub struct Alive {
    /// Real paths in which agents run, and those of live records.
    pub directories: Vec<PathBuf>,
    /// Ids of environments that live bridges have.
    pub environments: Vec<String>,
}

/// This machine, for the question which environments are its own.
#[derive(Debug, Clone)]
pub struct Here {
    /// Real path of the projects' directory.
    pub root: PathBuf,
    /// Name of the machine.
    pub machine: String,
}

/// The kind of environments that bridges register.
const BRIDGE: &str = "bridge";

impl Listed {
    /// The directory of its bridge, if it is one of this machine's projects.
    ///
    /// The text is compared, not a place on the disk: the directory may be gone.
    #[must_use]
    pub fn project_directory(&self, here: &Here) -> Option<PathBuf> {
        let is_bridge = self.kind == BRIDGE && !self.is_archived;
        let is_ours = self.machine.as_ref().is_none_or(|name| *name == here.machine);
        let path = Path::new(self.directory.as_deref()?);
        let is_plain = path.is_absolute()
            && path
                .components()
                .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        let is_inside = path.starts_with(&here.root) && path != here.root;
        (is_bridge && is_ours && is_plain && is_inside).then(|| path.to_owned())
    }
}

/// Whether nothing that lives belongs to an environment.
#[must_use]
pub fn is_left_over(id: &str, directory: &Path, alive: &Alive) -> bool {
    let is_used = |live: &PathBuf| live.starts_with(directory);
    !alive.environments.iter().any(|live| live == id) && !alive.directories.iter().any(is_used)
}

/// Whether an id can stand in the path of a request.
#[must_use]
pub fn is_plain_id(id: &str) -> bool {
    (1..=200).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn here() -> Here {
        Here { root: "/srv/projects".into(), machine: "box".into() }
    }

    fn listed(directory: &str) -> Listed {
        Listed {
            id: "env_1".into(),
            kind: "bridge".into(),
            name: "api".into(),
            directory: Some(directory.into()),
            machine: Some("box".into()),
            is_archived: false,
        }
    }

    #[test]
    fn only_bridges_of_projects_of_this_machine_are_candidates() {
        let is = |one: &Listed| one.project_directory(&here()).is_some();
        assert!(is(&listed("/srv/projects/api")));
        assert!(is(&Listed { machine: None, ..listed("/srv/projects/api") }));
        for one in [
            listed("/srv/projects"),
            listed("/srv/projects-old/api"),
            listed("/srv/projects/../other"),
            listed("srv/projects/api"),
            listed("/home/me/api"),
            listed(""),
            Listed { directory: None, ..listed("") },
            Listed { kind: "anthropic_cloud".into(), ..listed("/srv/projects/api") },
            Listed { kind: String::new(), ..listed("/srv/projects/api") },
            Listed { machine: Some("laptop".into()), ..listed("/srv/projects/api") },
            Listed { is_archived: true, ..listed("/srv/projects/api") },
        ] {
            assert!(!is(&one), "{:?} {}", one.directory, one.kind);
        }
    }

    #[test]
    fn whatever_lives_in_the_directory_protects_it() {
        let api = Path::new("/srv/projects/api");
        let alive = |directories: &[&str], environments: &[&str]| Alive {
            directories: directories.iter().map(PathBuf::from).collect(),
            environments: environments.iter().map(|id| (*id).to_owned()).collect(),
        };
        assert!(is_left_over("env_1", api, &alive(&["/srv/projects/web"], &["env_2"])));
        assert!(!is_left_over("env_1", api, &alive(&["/srv/projects/api"], &[])));
        assert!(!is_left_over(
            "env_1",
            api,
            &alive(&["/srv/projects/api/.claude/worktrees/x"], &[])
        ));
        assert!(!is_left_over("env_1", api, &alive(&[], &["env_1"])));
        assert!(is_left_over("env_1", api, &alive(&["/srv/projects/api-2"], &[])));
    }

    #[test]
    fn an_id_with_a_way_out_is_none() {
        assert!(is_plain_id("env_01ABC-x"));
        for bad in ["", "a/b", "..", "a?b", "a%2e", "ü", "a b"] {
            assert!(!is_plain_id(bad), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_candidate_is_always_below_the_root(directory in "(/|srv|projects|api|\\.\\.|\\.|[a-z]){0,12}") {
            if let Some(found) = listed(&directory).project_directory(&here()) {
                prop_assert!(found.starts_with("/srv/projects") && found != Path::new("/srv/projects"));
                prop_assert!(!found.components().any(|part| part == Component::ParentDir));
            }
        }
    }
}
