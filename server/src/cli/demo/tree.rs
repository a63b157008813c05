//! The private tree of a demo: sample projects, agent home, state directory.
//!
//! Nothing outside the tree is read or written, whatever the environment says. Programs started
//! here get an environment of their own.

use crate::cli::exit_code::Exit;
use crate::cli::failure::Failure;
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// Tells a tree of ours from a directory that somebody else fills.
const MARK: &str = ".svc-demo";

/// Where the simulator and git look for programs when nobody says.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A sample project.
struct Sample {
    name: &'static str,
    about: &'static str,
    is_repository: bool,
    is_trusted: bool,
    /// Knobs of the simulated agent in this project.
    knobs: fn() -> Value,
}

/// One of each kind that behaves differently.
const SAMPLES: [Sample; 6] = [
    Sample {
        name: "web-shop",
        about: "A git repository whose bridge simply works; its jobs come to wait for an answer.",
        is_repository: true,
        is_trusted: true,
        knobs: || {
            json!({
                "chatter_ms": 3000,
                "job_script": [
                    [0, { "state": "working", "detail": "reading the checkout" }],
                    [3000, {
                        "state": "blocked", "needs": "permission to run: npm test",
                        "detail": "the discount is rounded once now",
                    }],
                ],
            })
        },
    },
    Sample {
        name: "notes",
        about: "A directory without git; worktrees are refused here. Its jobs end with a result.",
        is_repository: false,
        is_trusted: true,
        knobs: || {
            json!({
                "ready_ms": 800,
                "job_script": [
                    [0, { "state": "working", "detail": "reading the notes" }],
                    [5000, {
                        "state": "done", "detail": "finished",
                        "result": "Three notes are about the summer, one is about taxes.",
                    }],
                ],
            })
        },
    },
    Sample {
        name: "game-engine",
        about: "A git repository with commits: start it with the spawn mode `worktree`.",
        is_repository: true,
        is_trusted: true,
        knobs: || json!({ "ready_ms": 1500 }),
    },
    Sample {
        name: "vendor-import",
        about: "Not trusted: a start has to be acknowledged.",
        is_repository: true,
        is_trusted: false,
        knobs: || json!({}),
    },
    Sample {
        name: "crash-lab",
        about: "Its bridge crashes ten seconds after it is ready.",
        is_repository: true,
        is_trusted: true,
        knobs: || {
            json!({
                "exit_after_ready_ms": 10_000,
                "exit_code": 3,
                "stderr_text": "Error: the crash of this sample project, as planned\n",
            })
        },
    },
    Sample {
        name: "slow-start",
        about: "Its bridge takes twelve seconds to be ready.",
        is_repository: false,
        is_trusted: true,
        knobs: || json!({ "ready_ms": 12_000 }),
    },
];

/// What of the tree is started at once, and whether it needs git.
pub(crate) const STARTED: [(&str, &str); 2] =
    [("web-shop", "same-dir"), ("game-engine", "worktree")];

/// The jobs that are started, and what they are asked to do.
pub(crate) const JOBS: [(&str, &str); 2] = [
    ("web-shop", "Find out why the discount is rounded twice"),
    ("notes", "What are my notes about?"),
];

/// The tree. Dropped, a temporary one is removed.
#[derive(Debug)]
pub(crate) struct Tree {
    /// Links resolved: trust and agent files go by real paths.
    root: PathBuf,
    temporary: Option<TempDir>,
}

/// What the demo is asked for beyond the tree.
#[derive(Debug)]
pub(crate) struct DemoOptions<'a> {
    pub(crate) port: u16,
    pub(crate) simulator: &'a Path,
    /// Absolute.
    pub(crate) scenario: Option<&'a Path>,
    pub(crate) seed: Option<u64>,
}

impl Tree {
    /// A tree that lives as long as the demo.
    pub(crate) fn temporary() -> Result<Self, Failure> {
        let made = tempfile::Builder::new().prefix("svc-demo-").tempdir().and_then(|directory| {
            svc_process::files::private_directory(directory.path()).map_err(io::Error::other)?;
            Ok((directory.path().canonicalize()?, directory))
        });
        let (root, directory) = made.map_err(|error| {
            failed(format!(
                "cannot make a temporary directory ({error}); set TMPDIR to one that can be \
                 written, or use --keep DIR"
            ))
        })?;
        Ok(Self { root, temporary: Some(directory) })
    }

    /// A tree at a place of the user's choice, which stays.
    pub(crate) fn kept(directory: &Path) -> Result<Self, Failure> {
        let shown = directory.display();
        let is_foreign = match fs::read_dir(directory) {
            Ok(mut entries) => entries.next().is_some() && !directory.join(MARK).is_file(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(refused(format!("--keep {shown} cannot be used: {error}"))),
        };
        if is_foreign {
            return Err(refused(format!(
                "--keep {shown} is neither empty nor the tree of an earlier demo; name a new \
                 directory"
            )));
        }
        let made = svc_process::files::private_directory(directory)
            .map_err(io::Error::other)
            .and_then(|()| directory.canonicalize());
        let root = made.map_err(|error| refused(format!("--keep {shown}: {error}")))?;
        Ok(Self { root, temporary: None })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.temporary.is_none()
    }

    fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    fn agent_home(&self) -> PathBuf {
        self.home().join(".claude")
    }

    fn projects(&self) -> PathBuf {
        self.root.join("projects")
    }

    /// Ends the agent's background service of this tree, and with it every job.
    /// It answers only for this agent home, and only as the process that its own file names.
    pub(crate) async fn end_jobs(&self, simulator: &Path) {
        let mut command = tokio::process::Command::new(simulator);
        command.args(["daemon", "stop", "--any"]).current_dir(&self.root);
        command.env_clear().envs(self.variables()).env("AGENT_SIM", "1");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Err(error) = command.status().await {
            tracing::warn!("the sample jobs were not ended: {error}");
        }
    }

    /// Fills the tree and keeps what an earlier demo left in it.
    /// Returns a note for the user, if there is one.
    pub(crate) fn build(&self, simulator: &Path) -> Result<Option<String>, Failure> {
        let filled = self.fill();
        let note = filled.map_err(|error| {
            failed(format!(
                "cannot build the sample projects in {} ({error}); check space and permissions",
                self.root.display()
            ))
        })?;
        let initialised =
            self.run(simulator, &self.root, &[OsString::from("init"), self.agent_home().into()]);
        let words = match initialised {
            Ok(output) if output.status.success() => None,
            Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(words) = words {
            return Err(failed(format!(
                "the agent simulator {} does not work: {words}; build it again with \
                 `cargo build -p svc-tests --bin svc-agent-sim`",
                simulator.display()
            )));
        }
        self.trust().map_err(|error| failed(format!("cannot write the agent home: {error}")))?;
        Ok(note)
    }

    fn fill(&self) -> io::Result<Option<String>> {
        fs::write(self.root.join(MARK), "The tree of a `svc demo`. Remove it as you like.\n")?;
        fs::create_dir_all(self.home())?;
        let mut without_git = None;
        for sample in &SAMPLES {
            let directory = self.projects().join(sample.name);
            if directory.exists() {
                continue;
            }
            fs::create_dir_all(&directory)?;
            let readme = format!("# {}\n\n{}\n", sample.name, sample.about);
            fs::write(directory.join("README.md"), readme)?;
            fs::write(directory.join("CLAUDE.md"), "Sample project of a demo.\n")?;
            fs::write(directory.join(".agent-sim.json"), format!("{:#}\n", (sample.knobs)()))?;
            if sample.is_repository
                && let Err(words) = self.make_repository(&directory)
            {
                without_git.get_or_insert(words);
            }
        }
        Ok(without_git.map(|words| {
            format!("the samples are plain directories, no git repositories: {words}")
        }))
    }

    fn make_repository(&self, directory: &Path) -> Result<(), String> {
        let steps: [&[&str]; 3] = [
            &["-c", "init.defaultBranch=main", "init", "--quiet", "--template="],
            &["add", "--all"],
            &["commit", "--quiet", "--no-gpg-sign", "--message", "Begin the sample project"],
        ];
        for step in steps {
            let arguments: Vec<OsString> = step.iter().map(OsString::from).collect();
            let output = self
                .run(Path::new("git"), directory, &arguments)
                .map_err(|error| format!("git cannot be run ({error})"))?;
            if !output.status.success() {
                // Half a repository would be worse than none.
                let _ = fs::remove_dir_all(directory.join(".git"));
                let words = String::from_utf8_lossy(&output.stderr);
                return Err(format!("git failed: {}", words.trim()));
            }
        }
        Ok(())
    }

    /// Marks the samples as trusted in the agent's own file, unless that file existed.
    fn trust(&self) -> io::Result<()> {
        let file = self.agent_home().join(".claude.json");
        if file.exists() {
            return Ok(());
        }
        let projects: Map<String, Value> = SAMPLES
            .iter()
            .filter(|sample| sample.is_trusted)
            .map(|sample| {
                let path = self.projects().join(sample.name).to_string_lossy().into_owned();
                (path, json!({ "hasTrustDialogAccepted": true }))
            })
            .collect();
        let content = json!({
            "hasCompletedOnboarding": true,
            "hasUsedRemoteControl": true,
            "remoteDialogSeen": true,
            "projects": projects,
        });
        fs::write(file, format!("{content:#}\n"))
    }

    fn run(&self, program: &Path, directory: &Path, arguments: &[OsString]) -> io::Result<Output> {
        Command::new(program)
            .args(arguments)
            .current_dir(directory)
            .env_clear()
            .envs(self.variables())
            .envs([
                ("GIT_CONFIG_NOSYSTEM", "1"),
                ("GIT_CONFIG_GLOBAL", "/dev/null"),
                ("GIT_TERMINAL_PROMPT", "0"),
                ("GIT_AUTHOR_NAME", "Demo"),
                ("GIT_AUTHOR_EMAIL", "demo@localhost"),
                ("GIT_COMMITTER_NAME", "Demo"),
                ("GIT_COMMITTER_EMAIL", "demo@localhost"),
            ])
            .stdin(Stdio::null())
            .output()
    }

    /// The whole environment of agents in the demo, instead of the real one.
    pub(crate) fn variables(&self) -> Vec<(OsString, OsString)> {
        let path = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
        vec![
            ("PATH".into(), path),
            ("HOME".into(), self.home().into()),
            ("LANG".into(), "C.UTF-8".into()),
        ]
    }

    /// Where the configuration is kept for commands.
    pub(crate) fn config_file(&self) -> PathBuf {
        self.root.join("svc.yml")
    }

    /// The configuration of the demo as JSON, which is YAML: no path needs quoting.
    pub(crate) fn config_text(&self, options: &DemoOptions<'_>) -> String {
        let mut env = Map::from_iter([
            ("AGENT_SIM".to_owned(), Value::from("1")),
            ("HOME".to_owned(), self.home().to_string_lossy().into()),
            ("CLAUDE_CONFIG_DIR".to_owned(), self.agent_home().to_string_lossy().into()),
        ]);
        if let Some(scenario) = options.scenario {
            env.insert("AGENT_SIM_SCENARIO".to_owned(), scenario.to_string_lossy().into());
        }
        if let Some(seed) = options.seed {
            env.insert("AGENT_SIM_SEED".to_owned(), seed.to_string().into());
        }
        let config = json!({
            "projects_root": self.projects().to_string_lossy(),
            "state_dir": self.root.join("state").to_string_lossy(),
            "host": "127.0.0.1",
            "port": options.port,
            "claude": {
                "binary": options.simulator.to_string_lossy(),
                "env": env,
                "node_from_nvm": false,
            },
            "auth": { "enabled": false },
        });
        format!("{config:#}\n")
    }

    /// Removes a temporary tree; says so when that fails.
    pub(crate) fn remove(self) -> Result<(), Failure> {
        let Some(directory) = self.temporary else { return Ok(()) };
        directory.close().map_err(|error| {
            failed(format!("cannot remove {} ({error}); remove it yourself", self.root.display()))
        })
    }
}

fn failed(words: String) -> Failure {
    Failure::new(Exit::Failed, "demo", words)
}

fn refused(words: String) -> Failure {
    Failure::new(Exit::Refused, "demo", words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    /// Plays the simulator: makes the agent home it is told to.
    fn simulator(directory: &Path, script: &str) -> PathBuf {
        let program = directory.join("sim");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        program
    }

    #[test]
    fn the_tree_is_private_complete_and_gone_afterwards() {
        let place = tempfile::tempdir().unwrap();
        let program = simulator(place.path(), "mkdir -p \"$2/.agent-sim\"");
        let tree = Tree::temporary().unwrap();
        tree.build(&program).unwrap();
        let root = tree.root().to_owned();
        assert_eq!(fs::metadata(&root).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::read_dir(root.join("projects")).unwrap().count(), 6);

        let trusted = fs::read_to_string(root.join("home/.claude/.claude.json")).unwrap();
        assert!(trusted.contains("projects/web-shop") && !trusted.contains("vendor-import"));
        tree.remove().unwrap();
        assert!(!root.exists());
    }

    #[test]
    fn the_configuration_is_valid_and_stays_inside_the_tree() {
        let place = tempfile::tempdir().unwrap();
        let program = simulator(place.path(), "mkdir -p \"$2/.agent-sim\"");
        let tree = Tree::temporary().unwrap();
        tree.build(&program).unwrap();
        let options = DemoOptions {
            port: 7700,
            simulator: &program,
            scenario: Some(Path::new("/s.json")),
            seed: Some(7),
        };
        let loaded = svc_config::load_text(&tree.config_text(&options), tree.root()).unwrap();
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
        let config = &loaded.config;
        assert!(config.state_dir.starts_with(tree.root()));
        assert!(config.projects_root.starts_with(tree.root()));
        assert_eq!((config.host.as_str(), config.port), ("127.0.0.1", 7700));
        let home = config.claude.env.get("CLAUDE_CONFIG_DIR").unwrap().expose();
        assert!(Path::new(home).starts_with(tree.root()));
        assert_eq!(config.claude.env.get("AGENT_SIM_SEED").unwrap().expose(), "7");
    }

    #[test]
    fn a_kept_tree_may_be_used_again_and_a_directory_of_others_may_not() {
        let place = tempfile::tempdir().unwrap();
        let program = simulator(place.path(), "mkdir -p \"$2/.agent-sim\"");
        let keep = place.path().join("keep");
        let tree = Tree::kept(&keep).unwrap();
        tree.build(&program).unwrap();
        fs::write(keep.join("projects/notes/mine.txt"), "kept").unwrap();
        tree.remove().unwrap();

        let again = Tree::kept(&keep).unwrap();
        again.build(&program).unwrap();
        assert_eq!(fs::read_to_string(keep.join("projects/notes/mine.txt")).unwrap(), "kept");
        let error = Tree::kept(place.path()).unwrap_err();
        assert_eq!(error.exit, Exit::Refused);
    }

    #[test]
    fn a_simulator_that_does_not_work_is_quoted() {
        let place = tempfile::tempdir().unwrap();
        let program = simulator(place.path(), "echo no such luck >&2; exit 70");
        let tree = Tree::temporary().unwrap();
        let error = tree.build(&program).unwrap_err();
        assert!(error.lines.concat().contains("no such luck"), "{error:?}");
    }
}
