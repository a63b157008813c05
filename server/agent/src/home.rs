//! The paths of the agent's files: agent home and agent config file.

use crate::environment::Variables;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use svc_domain::slug::slug;

/// Paths of the agent's own files, as a child with a given environment sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentHome {
    dir: PathBuf,
    config_file: PathBuf,
    user_home: Option<PathBuf>,
}

/// Why the agent's files cannot be located.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HomeError {
    /// Neither variable is set.
    #[error(
        "the agent's files cannot be found because neither HOME nor CLAUDE_CONFIG_DIR is set; \
         set one of them for the service or in claude.env"
    )]
    Unset,
    /// The path is relative, so it would depend on the child's directory.
    #[error(
        "the agent's files cannot be found because {variable} is not an absolute path; \
         give it an absolute path in the service's environment or in claude.env"
    )]
    Relative {
        /// The variable with the relative path.
        variable: &'static str,
    },
}

impl AgentHome {
    /// Finds the paths from the environment of a child.
    /// They are below `CLAUDE_CONFIG_DIR` when it is set, else in `~/.claude` with `~/.claude.json`
    /// beside it (agent 2.1.197).
    ///
    /// # Errors
    /// See [`HomeError`].
    pub fn of_child(env: &Variables) -> Result<Self, HomeError> {
        let value = |name: &str| {
            let value = env.get(OsStr::new(name)).map(PathBuf::from);
            value.filter(|path| !path.as_os_str().is_empty())
        };
        let absolute = |path: PathBuf, variable| {
            path.is_absolute().then_some(path).ok_or(HomeError::Relative { variable })
        };
        let user_home = value("HOME").filter(|home| home.is_absolute());
        if let Some(dir) = value("CLAUDE_CONFIG_DIR") {
            let dir = absolute(dir, "CLAUDE_CONFIG_DIR")?;
            return Ok(Self { config_file: dir.join(".claude.json"), dir, user_home });
        }
        let home = absolute(value("HOME").ok_or(HomeError::Unset)?, "HOME")?;
        Ok(Self { dir: home.join(".claude"), config_file: home.join(".claude.json"), user_home })
    }

    /// The agent home.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The agent config file; it may be missing.
    #[must_use]
    pub fn config_file(&self) -> &Path {
        &self.config_file
    }

    /// Home directory of the user, when known.
    #[must_use]
    pub fn user_home(&self) -> Option<&Path> {
        self.user_home.as_deref()
    }

    /// Credentials of a login made with the CLI.
    #[must_use]
    pub fn credentials_file(&self) -> PathBuf {
        self.dir.join(".credentials.json")
    }

    /// The registry of live sessions.
    #[must_use]
    pub fn sessions_dir(&self) -> PathBuf {
        self.dir.join("sessions")
    }

    /// Background jobs, one directory each.
    #[must_use]
    pub fn jobs_dir(&self) -> PathBuf {
        self.dir.join("jobs")
    }

    /// Which processes work on background jobs.
    #[must_use]
    pub fn roster_file(&self) -> PathBuf {
        self.dir.join("daemon").join("roster.json")
    }

    /// Log of the agent's background service.
    #[must_use]
    pub fn daemon_log(&self) -> PathBuf {
        self.dir.join("daemon.log")
    }

    /// Transcript of a session in a directory (real path).
    #[must_use]
    pub fn transcript_file(&self, cwd: &str, session_id: &str) -> PathBuf {
        self.project_dir(cwd).join(format!("{session_id}.jsonl"))
    }

    /// The directory with a directory of each project.
    #[must_use]
    pub fn projects_dir(&self) -> PathBuf {
        self.dir.join("projects")
    }

    /// Pointer, transcripts and memory of one project; `project` is its real path.
    #[must_use]
    pub fn project_dir(&self, project: &str) -> PathBuf {
        self.projects_dir().join(slug(project))
    }

    /// The bridge pointer of one project; `project` is its real path.
    #[must_use]
    pub fn pointer_file(&self, project: &str) -> PathBuf {
        self.project_dir(project).join("bridge-pointer.json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(vars: &[(&str, &str)]) -> Result<AgentHome, HomeError> {
        let env = vars.iter().map(|(k, v)| (k.into(), v.into())).collect();
        AgentHome::of_child(&env)
    }

    #[test]
    fn the_config_file_lies_beside_the_default_home_and_inside_a_chosen_one() {
        let plain = home(&[("HOME", "/home/u")]).unwrap();
        assert_eq!(plain.dir(), Path::new("/home/u/.claude"));
        assert_eq!(plain.config_file(), Path::new("/home/u/.claude.json"));
        let chosen = home(&[("HOME", "/home/u"), ("CLAUDE_CONFIG_DIR", "/srv/agent")]).unwrap();
        assert_eq!(chosen.dir(), Path::new("/srv/agent"));
        assert_eq!(chosen.config_file(), Path::new("/srv/agent/.claude.json"));
        let blank = home(&[("HOME", "/home/u"), ("CLAUDE_CONFIG_DIR", "")]).unwrap();
        assert_eq!(blank, plain);
    }

    #[test]
    fn places_that_depend_on_the_working_directory_are_refused() {
        assert_eq!(home(&[]), Err(HomeError::Unset));
        let variable = "CLAUDE_CONFIG_DIR";
        assert_eq!(
            home(&[("HOME", "/h"), (variable, "agent")]),
            Err(HomeError::Relative { variable })
        );
        let variable = "HOME";
        assert_eq!(home(&[(variable, "h")]), Err(HomeError::Relative { variable }));
    }

    #[test]
    fn a_pointer_is_found_by_the_slug_of_the_project_path() {
        let home = home(&[("HOME", "/home/u")]).unwrap();
        assert_eq!(
            home.pointer_file("/srv/p/my_app"),
            Path::new("/home/u/.claude/projects/-srv-p-my-app/bridge-pointer.json")
        );
    }
}
