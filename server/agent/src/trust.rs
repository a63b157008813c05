//! Which directories the agent trusts, and granting trust.

pub use crate::config_file::TrustError;
use crate::config_file::{Edit, Moment, change, read, set_flags};
use crate::home::AgentHome;
use crate::json_part::{Wanted, part};
use crate::stamp::Stamp;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use svc_process::locks::{FileLocks, LockError};

/// How long a change waits for others, of this process or another one.
///
/// Each change waits for two disk syncs: fifty grants at once took 3.6 s on a busy machine, and 5 s
/// refused the last ones on a busier one. The page waits 20 s for an answer.
const LOCK_WAIT: Duration = Duration::from_secs(15);

/// The agent config file, parsed again only after it changed.
#[derive(Debug)]
pub struct AgentConfig {
    home: AgentHome,
    locks: FileLocks,
    known: Mutex<Option<(Option<Stamp>, Reading)>>,
}

/// The content of the file, or what is wrong with it.
type Reading = Result<Arc<Known>, String>;

/// What is read of the file; the rest is mostly history.
const WANTED: Wanted = Wanted::Members(&[
    ("mcpServers", Wanted::Names),
    (
        "projects",
        Wanted::Each(&Wanted::Members(&[
            ("hasTrustDialogAccepted", Wanted::Whole),
            ("enabledMcpjsonServers", Wanted::Whole),
            ("disabledMcpjsonServers", Wanted::Whole),
            ("mcpServers", Wanted::Names),
        ])),
    ),
]);

/// The part of the file that is used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Known {
    trusted: HashSet<String>,
    approvals: HashMap<String, Approvals>,
    user_servers: Vec<String>,
}

/// The user's decisions about a project's servers, and the servers that were added.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Approvals {
    pub enabled: Vec<String>,
    pub disabled: Vec<String>,
    pub own: Vec<String>,
}

impl Known {
    pub(crate) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let document = part(text, WANTED)?;
        let user_servers = keys(document.get("mcpServers"));
        let mut known = Self { user_servers, ..Self::default() };
        // A value of another type trusts nothing.
        for (path, entry) in
            document.get("projects").and_then(Value::as_object).into_iter().flatten()
        {
            if entry.get("hasTrustDialogAccepted") == Some(&Value::Bool(true)) {
                known.trusted.insert(path.clone());
            }
            let approvals = Approvals {
                enabled: words(entry.get("enabledMcpjsonServers")),
                disabled: words(entry.get("disabledMcpjsonServers")),
                own: keys(entry.get("mcpServers")),
            };
            if approvals != Approvals::default() {
                known.approvals.insert(path.clone(), approvals);
            }
        }
        Ok(known)
    }

    /// Whether the agent may work in a directory, by the strictest known rule.
    /// A git repository needs its own grant. A directory below one needs that of the repository or
    /// its own. Elsewhere any directory above counts. Both paths are real paths.
    #[must_use]
    pub fn is_trusted(&self, path: &Path, git_root: Option<&Path>) -> bool {
        let granted = |path: &Path| path.to_str().is_some_and(|path| self.trusted.contains(path));
        match git_root {
            Some(root) => granted(path) || granted(root),
            None => path.ancestors().any(granted),
        }
    }

    pub(crate) fn approvals(&self, path: &Path) -> Approvals {
        let found = path.to_str().and_then(|path| self.approvals.get(path));
        found.cloned().unwrap_or_default()
    }

    pub(crate) fn user_servers(&self) -> &[String] {
        &self.user_servers
    }
}

pub(crate) fn words(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

pub(crate) fn keys(value: Option<&Value>) -> Vec<String> {
    let fields = value.and_then(Value::as_object).into_iter().flatten();
    fields.map(|(key, _)| key.clone()).collect()
}

impl AgentConfig {
    /// The file of an agent home; changes are serialised by `locks` between processes.
    #[must_use]
    pub fn new(home: AgentHome, locks: FileLocks) -> Self {
        Self { home, locks, known: Mutex::new(None) }
    }

    /// The present content of the file. A missing file is empty.
    /// Blocks briefly, and after a change for reading the file.
    ///
    /// # Errors
    /// The file is unreadable or no JSON object: nothing is trusted.
    pub fn known(&self) -> Result<Arc<Known>, TrustError> {
        let path = self.home.config_file();
        let stamp = Stamp::at(path)
            .map_err(|cause| TrustError::Unreadable { path: path.to_owned(), cause })?;
        if let Some((of, reading)) = &*self.cache()
            && *of == stamp
        {
            return reading.clone().map_err(|problem| self.content(problem));
        }
        let (stamp, reading) = match read(path) {
            Ok(None) => (None, Ok(Arc::default())),
            Ok(Some(content)) => (Some(content.stamp), parsed(&content.text)),
            Err(TrustError::Content { problem, .. }) => (stamp, Err(problem)),
            Err(other) => return Err(other),
        };
        *self.cache() = Some((stamp, reading.clone()));
        reading.map_err(|problem| self.content(problem))
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, Option<(Option<Stamp>, Reading)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn content(&self, problem: String) -> TrustError {
        TrustError::Content { path: self.home.config_file().to_owned(), problem }
    }

    /// Grants trust to a directory; returns whether anything was written.
    /// Sets exactly one value and keeps everything else byte for byte. Nothing is written when it
    /// is trusted already.
    ///
    /// # Errors
    /// See [`TrustError`]; the file is as it was, or as others made it.
    pub async fn grant(
        self: Arc<Self>,
        path: &Path,
        git_root: Option<&Path>,
    ) -> Result<bool, TrustError> {
        let (path, git_root) = (path.to_owned(), git_root.map(Path::to_owned));
        let (lock, ended) = (self.lock().await?, self.busy());
        let granted = tokio::task::spawn_blocking(move || {
            let _lock = lock;
            if self.known()?.is_trusted(&path, git_root.as_deref()) {
                return Ok(false);
            }
            let key = path.to_str().ok_or_else(|| {
                self.content("the path of the project is not valid UTF-8".to_owned())
            })?;
            self.set(&[&["projects", key, "hasTrustDialogAccepted"]], &mut |_| {})
        });
        granted.await.unwrap_or(Err(ended))
    }

    /// Answers the agent's one-time questions about Remote Control in advance.
    /// A bridge has no terminal to be asked on. Returns whether anything was written.
    ///
    /// # Errors
    /// As [`AgentConfig::grant`].
    pub async fn enable_remote_control(self: Arc<Self>) -> Result<bool, TrustError> {
        let (lock, ended) = (self.lock().await?, self.busy());
        let set = tokio::task::spawn_blocking(move || {
            let _lock = lock;
            self.set(&[&["hasUsedRemoteControl"], &["remoteDialogSeen"]], &mut |_| {})
        });
        set.await.unwrap_or(Err(ended))
    }

    pub(crate) async fn lock(&self) -> Result<svc_process::locks::FileLock, TrustError> {
        let path = self.home.config_file().to_owned();
        // H85: the agent's home may lie on a mount that hangs.
        let resolved = tokio::task::spawn_blocking(move || std::fs::canonicalize(path)).await;
        let real = match resolved {
            Ok(Ok(real)) => real,
            Ok(Err(_)) | Err(_) => self.home.config_file().to_owned(),
        };
        self.locks.lock(&real, LOCK_WAIT).await.map_err(|error| match error {
            LockError::Busy { .. } => self.busy(),
            LockError::File { file, cause } => TrustError::Unwritable { path: file, cause },
        })
    }

    fn set(&self, flags: &[&[&str]], at: &mut dyn FnMut(Moment)) -> Result<bool, TrustError> {
        set_flags(self.home.config_file(), &self.homes(), flags, at)
    }

    /// Changes the file as `edit` says. The caller holds the lock.
    pub(crate) fn change(&self, edit: Edit<'_>) -> Result<bool, TrustError> {
        change(self.home.config_file(), &self.homes(), edit, &mut |_| {})
    }

    /// The text of the file; none without a file.
    pub(crate) fn text(&self) -> Result<Option<String>, TrustError> {
        Ok(read(self.home.config_file())?.map(|content| content.text))
    }

    /// Directories that a link in the place of the file may lead into.
    fn homes(&self) -> Vec<&Path> {
        self.home.user_home().into_iter().chain([self.home.dir()]).collect()
    }

    pub(crate) fn busy(&self) -> TrustError {
        TrustError::Busy { path: self.home.config_file().to_owned() }
    }
}

fn parsed(text: &str) -> Reading {
    Known::parse(text).map(Arc::new).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        format!("it is not valid JSON at line {line}, column {column}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::PathBuf;

    struct Bench {
        root: tempfile::TempDir,
        config: Arc<AgentConfig>,
    }

    impl Bench {
        fn new(text: Option<&str>) -> Self {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir(root.path().join("home")).unwrap();
            fs::create_dir(root.path().join("locks")).unwrap();
            let env = [("HOME".into(), root.path().join("home").into())].into();
            let home = AgentHome::of_child(&env).unwrap();
            let locks = FileLocks::new(root.path().join("locks"));
            let bench = Self { root, config: Arc::new(AgentConfig::new(home, locks)) };
            if let Some(text) = text {
                fs::write(bench.file(), text).unwrap();
            }
            bench
        }

        fn file(&self) -> PathBuf {
            self.root.path().join("home/.claude.json")
        }

        fn text(&self) -> String {
            fs::read_to_string(self.file()).unwrap()
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(self.root.path().join("home")).unwrap();
            let mut names: Vec<String> =
                entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }

        async fn grant(&self) -> Result<bool, TrustError> {
            Arc::clone(&self.config).grant(Path::new("/p/app"), None).await
        }
    }

    fn with_keys(keys: &[&str]) -> String {
        let entries: Vec<String> = keys
            .iter()
            .map(|key| format!(r#""{key}":{{"hasTrustDialogAccepted":true}}"#))
            .collect();
        format!(r#"{{"projects":{{{}}}}}"#, entries.join(","))
    }

    /// F23 and the table of `agent-cli` §6.3.
    #[test]
    fn which_grant_counts_depends_on_the_kind_of_directory() {
        let check = |keys: &[&str], git_root: Option<&str>, expected: bool| {
            let known = Known::parse(&with_keys(keys)).unwrap();
            let found = known.is_trusted(Path::new("/r/p/app"), git_root.map(Path::new));
            assert_eq!(found, expected, "{keys:?} {git_root:?}");
        };
        check(&["/r/p/app"], Some("/r/p/app"), true);
        check(&["/r/p"], Some("/r/p/app"), false);
        check(&["/"], Some("/r/p/app"), false);
        check(&["/r/p"], Some("/r/p"), true);
        check(&["/r/p/app"], Some("/r/p"), true);
        check(&["/r"], Some("/r/p"), false);
        check(&["/r/p/app"], None, true);
        check(&["/r"], None, true);
        check(&["/"], None, true);
        check(&["/r/p/ap", "/r/p/app/", "/R/p/app"], None, false);
        check(&[], None, false);
    }

    /// F21.
    #[tokio::test]
    async fn f21_h90_a_file_that_is_not_understood_trusts_nothing_and_is_never_rewritten() {
        let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
        for (text, trusts) in [
            (&b"{\n \"a\": 1,\n}"[..], Err("line 3, column 1")),
            (b"", Err("line 1, column 0")),
            (b"{\"projects\":{\n\xff", Err("not valid UTF-8 at line 2, column 1")),
            (deep.as_bytes(), Err("line 1")),
            (b"[]", Ok("not a JSON object")),
            (br#"{"projects":5}"#, Ok("`projects` is not an object")),
            (br#"{"projects":{"/p/app":7}}"#, Ok("`projects./p/app` is not an object")),
        ] {
            let bench = Bench::new(None);
            fs::write(bench.file(), text).unwrap();
            let words = match (bench.config.known(), trusts) {
                (Ok(known), Ok(words)) => {
                    assert!(!known.is_trusted(Path::new("/p/app"), None));
                    words
                }
                (Err(error), Err(words)) => {
                    assert!(error.to_string().contains(words), "{error}");
                    // For ten thousand projects the file is still read once.
                    assert_eq!(bench.config.known().unwrap_err().to_string(), error.to_string());
                    words
                }
                (found, _) => panic!("{found:?}"),
            };
            let error = bench.grant().await.unwrap_err();
            assert!(error.is_content() && error.to_string().contains(words), "{error}");
            assert!(error.to_string().contains(".claude.json"), "{error}");
            assert_eq!(fs::read(bench.file()).unwrap(), text);
            assert_eq!(bench.names(), [".claude.json"]);
        }
    }

    #[tokio::test]
    async fn a_grant_changes_one_value_and_keeps_one_backup() {
        let before = "{\n  \"z\": 1.0,\n  \"a\": \"\\u00fc\"\n}\n";
        let bench = Bench::new(Some(before));
        fs::set_permissions(bench.file(), fs::Permissions::from_mode(0o640)).unwrap();
        assert!(bench.grant().await.unwrap());
        let entry = "{\n      \"hasTrustDialogAccepted\": true\n    }";
        let added = format!(",\n  \"projects\": {{\n    \"/p/app\": {entry}\n  }}\n}}\n");
        assert_eq!(bench.text(), before.replace("\n}\n", &added));
        assert_eq!(fs::metadata(bench.file()).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(bench.config.known().unwrap().is_trusted(Path::new("/p/app"), None));
        assert!(!bench.grant().await.unwrap(), "granted already");

        Arc::clone(&bench.config).grant(Path::new("/p/b"), Some(Path::new("/p/b"))).await.unwrap();
        let backup = bench.root.path().join("home/.claude.json.bak");
        assert_eq!(fs::read_to_string(backup).unwrap(), before);
        assert_eq!(bench.names(), [".claude.json", ".claude.json.bak"]);
    }

    #[tokio::test]
    async fn a_missing_file_is_made_and_private() {
        let bench = Bench::new(None);
        assert!(!bench.config.known().unwrap().is_trusted(Path::new("/p/app"), None));
        assert!(bench.grant().await.unwrap());
        assert!(bench.config.known().unwrap().is_trusted(Path::new("/p/app"), None));
        assert_eq!(fs::metadata(bench.file()).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[tokio::test]
    async fn remote_control_is_enabled_without_a_needless_write() {
        let both = r#"{"hasUsedRemoteControl":true,"remoteDialogSeen":true}"#;
        let bench = Bench::new(Some(both));
        let before = fs::metadata(bench.file()).unwrap().modified().unwrap();
        assert!(!Arc::clone(&bench.config).enable_remote_control().await.unwrap());
        assert_eq!(fs::metadata(bench.file()).unwrap().modified().unwrap(), before);
        let bench = Bench::new(Some(r#"{"hasUsedRemoteControl":true}"#));
        assert!(Arc::clone(&bench.config).enable_remote_control().await.unwrap());
        assert_eq!(bench.text(), both);
    }

    /// F22, H90: the other writer's key and ours are both there afterwards.
    #[test]
    fn f22_h90_a_concurrent_writer_loses_nothing_and_neither_do_we() {
        let flag: &[&[&str]] = &[&["projects", "/p/app", "hasTrustDialogAccepted"]];
        for moment in [Moment::Prepared, Moment::Replaced] {
            let bench = Bench::new(Some(r#"{"a":1}"#));
            let mut left = 1;
            let file = bench.file();
            let mut other = |now: Moment| {
                if now == moment && left > 0 {
                    left -= 1;
                    fs::write(&file, r#"{"a":1,"theirs":2}"#).unwrap();
                }
            };
            assert!(bench.config.set(flag, &mut other).unwrap());
            let text = bench.text();
            assert!(text.contains("theirs"), "{moment:?}: {text}");
            assert!(bench.config.known().unwrap().is_trusted(Path::new("/p/app"), None));
        }
    }

    /// F22.
    #[test]
    fn f22_against_a_writer_that_never_rests_the_grant_fails_visibly() {
        let bench = Bench::new(Some("{}"));
        let file = bench.file();
        let mut round = 0;
        let mut other = |_: Moment| {
            round += 1;
            fs::write(&file, format!(r#"{{"theirs":{round}}}"#)).unwrap();
        };
        let flag: &[&[&str]] = &[&["remoteDialogSeen"]];
        let error = bench.config.set(flag, &mut other).unwrap_err();
        assert!(matches!(error, TrustError::Contested { .. }), "{error}");
        assert!(!error.is_content());
        assert!(bench.text().contains("theirs"));
    }

    /// H90: all of many writers within one machine are there afterwards.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn h90_many_grants_at_once_are_all_kept() {
        let bench = Bench::new(Some("{}"));
        let grants: Vec<_> = (0..50)
            .map(|n| {
                // Each with a lock of its own, as separate processes have.
                let locks = FileLocks::new(bench.root.path().join("locks"));
                let config = Arc::new(AgentConfig::new(bench.config.home.clone(), locks));
                tokio::spawn(
                    async move { config.grant(&PathBuf::from(format!("/p/{n}")), None).await },
                )
            })
            .collect();
        for grant in grants {
            assert!(grant.await.unwrap().unwrap());
        }
        let known = bench.config.known().unwrap();
        assert!((0..50).all(|n| known.is_trusted(&PathBuf::from(format!("/p/{n}")), None)));
    }

    /// H90: a person who trusts many folders at once loses none of them to a slow disk.
    #[tokio::test(start_paused = true)]
    async fn h90_a_grant_waits_for_a_slow_change_of_another_process() {
        let bench = Bench::new(Some("{}"));
        let other = FileLocks::new(bench.root.path().join("locks"));
        let held = other.lock(&bench.file(), Duration::ZERO).await.unwrap();
        let config = Arc::clone(&bench.config);
        let grant = tokio::spawn(async move { config.grant(Path::new("/p/app"), None).await });
        // Virtual time: nobody waits.
        tokio::time::sleep(Duration::from_secs(12)).await;
        drop(held);
        assert!(grant.await.unwrap().unwrap());
    }

    /// H90.
    #[tokio::test]
    async fn h90_a_link_is_written_through_inside_the_home_only() {
        let bench = Bench::new(None);
        let inside = bench.root.path().join("home/dotfiles.json");
        fs::write(&inside, "{}").unwrap();
        symlink(&inside, bench.file()).unwrap();
        assert!(bench.grant().await.unwrap());
        assert!(fs::symlink_metadata(bench.file()).unwrap().is_symlink());
        assert!(fs::read_to_string(&inside).unwrap().contains("/p/app"));

        let bench = Bench::new(None);
        let outside = bench.root.path().join("outside.json");
        fs::write(&outside, "{}").unwrap();
        symlink(&outside, bench.file()).unwrap();
        let error = bench.grant().await.unwrap_err();
        assert!(matches!(error, TrustError::Outside { .. }), "{error}");
        assert_eq!(fs::read_to_string(&outside).unwrap(), "{}");

        let bench = Bench::new(None);
        symlink(bench.root.path().join("home/missing"), bench.file()).unwrap();
        assert!(bench.grant().await.is_err());
        assert_eq!(bench.names(), [".claude.json"]);
    }
}
