//! The agent CLI behind a cache.
//!
//! At most one probe of each kind runs at a time, with a time limit. Readers never wait for a probe.

use crate::binary::{self, BinaryError, BinaryIdentity};
use crate::environment::Variables;
use crate::home::{AgentHome, HomeError};
use crate::login::{self, Login};
use crate::run::{Output, Run, RunError, run};
use crate::session_list::{self, CliSession};
use crate::trust::{AgentConfig, TrustError};
use crate::version::AgentVersion;
use std::error::Error;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use svc_process::locks::FileLocks;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

const VERSION_TIMEOUT: Duration = Duration::from_secs(10);
const LOGIN_TIMEOUT: Duration = Duration::from_secs(5);
const SESSIONS_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a login answer counts as fresh.
/// A failed version probe is not repeated for as long.
const FRESH: Duration = Duration::from_secs(30);

/// How often readers may cause a check of the program file.
const LOOK: Duration = Duration::from_secs(2);

/// How long the path of the program is used before it is looked up again.
const RESOLVED: Duration = Duration::from_secs(1);

/// Least time between two session list calls (300 MB resident each, agent 2.1.197).
const SESSIONS_PAUSE: Duration = Duration::from_secs(5);

const SMALL_CAP: usize = 1024 * 1024;
const SESSIONS_CAP: usize = 8 * 1024 * 1024;

/// How the agent CLI is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSetup {
    /// `claude.binary`.
    pub binary: String,
    /// The environment of children, without launch id.
    pub env: Variables,
    /// Working directory of probes; absolute, not a project.
    pub cwd: PathBuf,
    /// Directory of lock files, shared by all processes of this service.
    pub locks: PathBuf,
}

/// The version of the agent CLI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Version {
    /// Not known yet.
    Unasked,
    /// The program and its version.
    Known {
        /// Absolute path.
        program: PathBuf,
        /// Its version.
        version: AgentVersion,
    },
    /// There is no usable agent CLI.
    Failed {
        /// What is wrong, as a sentence.
        reason: String,
    },
}

/// The agent's own list of sessions, from its last usable answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sessions {
    /// Live sessions; empty before the first answer.
    pub list: Arc<Vec<CliSession>>,
    /// Items that could not be used.
    pub skipped: usize,
    /// Why `list` may be out of date; `None` after a usable answer.
    pub stale: Option<String>,
    /// Whether there was a usable answer yet.
    pub is_known: bool,
}

/// Why the CLI gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The program was not found.
    #[error(transparent)]
    Binary(#[from] BinaryError),
    /// The program could not be run to its end.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The program printed something else than a version.
    #[error(
        "{program} is not the agent CLI or is broken, because `--version` printed no version; \
         check claude.binary"
    )]
    NoVersion {
        /// The program.
        program: PathBuf,
    },
    /// The session list was no JSON, was too long, or the program failed.
    #[error("the agent CLI gave no usable session list: {0}")]
    NoSessions(String),
    /// The same program failed less than 30 s ago.
    #[error("{0}")]
    Remembered(String),
    /// The service ended during the probe.
    #[error("the agent CLI was not asked because the service is ending")]
    Ending,
}

/// The agent CLI. Cheap to clone. A probe under way ends within its own limit.
#[derive(Debug, Clone)]
pub struct AgentCli {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    setup: Mutex<Arc<AgentSetup>>,
    config: Mutex<Result<Arc<AgentConfig>, HomeError>>,
    enabled: AtomicBool,
    program: Mutex<Option<(Instant, Result<PathBuf, BinaryError>)>>,
    version: Probe<Version>,
    /// The program file to which `version` belongs.
    version_of: Mutex<Option<BinaryIdentity>>,
    login: Probe<Login>,
    sessions: Probe<Sessions>,
    /// When the last usable list came.
    listed_at: Mutex<Option<Instant>>,
    tasks: Mutex<JoinSet<()>>,
}

/// The last answer of one kind, and a lock for the next probe.
#[derive(Debug)]
struct Probe<T> {
    answer: watch::Sender<T>,
    /// Held during a probe.
    gate: tokio::sync::Mutex<()>,
    asked: Mutex<Option<Instant>>,
    looked: Mutex<Option<Instant>>,
}

impl<T> Probe<T> {
    fn new(first: T) -> Self {
        Self {
            answer: watch::Sender::new(first),
            gate: tokio::sync::Mutex::new(()),
            asked: Mutex::new(None),
            looked: Mutex::new(None),
        }
    }

    /// Whether the last probe began at least this long ago.
    fn is_due(&self, after: Duration) -> bool {
        lock(&self.asked).is_none_or(|at| at.elapsed() >= after)
    }

    fn asked_now(&self) {
        *lock(&self.asked) = Some(Instant::now());
    }

    /// Returns true for one caller per `every`.
    fn may_look(&self, every: Duration) -> bool {
        let mut looked = lock(&self.looked);
        let due = looked.is_none_or(|at| at.elapsed() >= every);
        if due {
            *looked = Some(Instant::now());
        }
        due
    }

    fn forget(&self) {
        *lock(&self.asked) = None;
        *lock(&self.looked) = None;
    }
}

impl<T: PartialEq> Probe<T> {
    /// Wakes subscribers only if the value differs.
    fn publish(&self, answer: T) {
        self.answer.send_if_modified(|current| {
            let changed = *current != answer;
            *current = answer;
            changed
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AgentCli {
    /// Starts no probe yet.
    #[must_use]
    pub fn new(setup: AgentSetup) -> Self {
        Self {
            inner: Arc::new(Inner {
                config: Mutex::new(config_of(&setup)),
                enabled: AtomicBool::new(false),
                program: Mutex::new(None),
                setup: Mutex::new(Arc::new(setup)),
                version: Probe::new(Version::Unasked),
                version_of: Mutex::new(None),
                login: Probe::new(Login::Unasked),
                sessions: Probe::new(Sessions::default()),
                listed_at: Mutex::new(None),
                tasks: Mutex::new(JoinSet::new()),
            }),
        }
    }

    /// Takes over a changed configuration. The next probe runs the new program.
    pub fn set_up(&self, setup: AgentSetup) {
        let setup = Arc::new(setup);
        let before = std::mem::replace(&mut *lock(&self.inner.setup), Arc::clone(&setup));
        if before != setup {
            *lock(&self.inner.config) = config_of(&setup);
            self.inner.enabled.store(false, Ordering::Relaxed);
            *lock(&self.inner.program) = None;
            *lock(&self.inner.version_of) = None;
            self.inner.version.forget();
            self.inner.login.forget();
            self.inner.sessions.forget();
            *lock(&self.inner.listed_at) = None;
        }
    }

    /// How the CLI is run at the moment.
    #[must_use]
    pub fn setup(&self) -> Arc<AgentSetup> {
        Arc::clone(&lock(&self.inner.setup))
    }

    /// The agent's own files, as its children see them.
    ///
    /// # Errors
    /// See [`HomeError`].
    pub fn home(&self) -> Result<AgentHome, HomeError> {
        AgentHome::of_child(&self.setup().env)
    }

    /// The agent config file.
    pub(crate) fn config(&self) -> Result<Arc<AgentConfig>, TrustError> {
        lock(&self.inner.config).clone().map_err(TrustError::Home)
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.inner.enabled.load(Ordering::Relaxed)
    }

    pub(crate) fn set_enabled(&self) {
        self.inner.enabled.store(true, Ordering::Relaxed);
    }

    /// The absolute path of the program that would run now.
    /// It is looked up at most once per second. Blocks for the lookup.
    ///
    /// # Errors
    /// See [`BinaryError`].
    pub fn program(&self) -> Result<PathBuf, BinaryError> {
        let known = lock(&self.inner.program).clone();
        if let Some((at, program)) = known
            && at.elapsed() < RESOLVED
        {
            return program;
        }
        let program = resolve(&self.setup());
        *lock(&self.inner.program) = Some((Instant::now(), program.clone()));
        program
    }

    async fn program_now(&self) -> Result<PathBuf, ProbeError> {
        let cli = self.clone();
        let resolved = tokio::task::spawn_blocking(move || {
            *lock(&cli.inner.program) = None;
            cli.program()
        });
        Ok(resolved.await.map_err(|_| ProbeError::Ending)??)
    }

    /// The last known version. Checks in the background for a new program; never waits.
    #[must_use]
    pub fn version(&self) -> Version {
        if self.inner.version.may_look(LOOK) {
            self.in_background(|cli| async move {
                let _ = cli.version_now().await; // the failure is the published answer
            });
        }
        self.inner.version.answer.borrow().clone()
    }

    /// A channel that reports every change of [`AgentCli::version`].
    #[must_use]
    pub fn version_changes(&self) -> watch::Receiver<Version> {
        self.inner.version.answer.subscribe()
    }

    /// The version of the program that would be executed now; at most 10 s.
    /// Runs it only when the file changed since the last probe, or when that failed over 30 s ago.
    ///
    /// # Errors
    /// See [`ProbeError`].
    pub async fn version_now(&self) -> Result<(PathBuf, AgentVersion), ProbeError> {
        let probe = &self.inner.version;
        let _asking = probe.gate.lock().await;
        let asked = self.ask_version().await;
        probe.publish(match &asked {
            Ok((program, version)) => {
                Version::Known { program: program.clone(), version: version.clone() }
            }
            Err(error) => Version::Failed { reason: chain(error) },
        });
        asked
    }

    async fn ask_version(&self) -> Result<(PathBuf, AgentVersion), ProbeError> {
        let probe = &self.inner.version;
        let setup = self.setup();
        let program = self.program_now().await?;
        let examined = program.clone();
        let identity = tokio::task::spawn_blocking(move || BinaryIdentity::of(&examined).ok())
            .await
            .map_err(|_| ProbeError::Ending)?;
        let is_same = identity.is_some() && *lock(&self.inner.version_of) == identity;
        if is_same && let Version::Known { version, .. } = &*probe.answer.borrow() {
            return Ok((program, version.clone()));
        }
        let recently = !probe.is_due(FRESH);
        if is_same
            && recently
            && let Version::Failed { reason } = &*probe.answer.borrow()
        {
            return Err(ProbeError::Remembered(reason.clone()));
        }
        *lock(&self.inner.version_of) = identity;
        probe.asked_now();
        let output = ask(&setup, &program, &["--version"], VERSION_TIMEOUT, SMALL_CAP).await?;
        AgentVersion::from_output(&String::from_utf8_lossy(&output.stdout))
            .map(|version| (program.clone(), version))
            .map_err(|_| ProbeError::NoVersion { program })
    }

    /// The last known login state. Renews it in the background after 30 s.
    #[must_use]
    pub fn login(&self) -> Login {
        if self.inner.login.is_due(FRESH) && self.inner.login.may_look(LOOK) {
            self.in_background(|cli| async move {
                cli.login_now().await;
            });
        }
        self.inner.login.answer.borrow().clone()
    }

    /// A channel that reports every change of [`AgentCli::login`].
    #[must_use]
    pub fn login_changes(&self) -> watch::Receiver<Login> {
        self.inner.login.answer.subscribe()
    }

    /// Probes the login state, or waits for a running probe, each for at most 5 s.
    pub async fn login_now(&self) -> Login {
        let probe = &self.inner.login;
        let called = Instant::now();
        let _asking = probe.gate.lock().await;
        // Another call has probed while this call waited.
        if lock(&probe.asked).is_some_and(|at| at >= called) {
            return probe.answer.borrow().clone();
        }
        probe.asked_now();
        let setup = self.setup();
        let login = match self.ask_login(&setup).await {
            Ok(login) => login,
            Err(error) => Login::Failed { reason: chain(&error) },
        };
        probe.publish(login.clone());
        login
    }

    async fn ask_login(&self, setup: &AgentSetup) -> Result<Login, ProbeError> {
        let program = self.program_now().await?;
        let args = ["auth", "status", "--json"];
        let output = ask(setup, &program, &args, LOGIN_TIMEOUT, SMALL_CAP).await?;
        let login = login::parse(&output.stdout);
        let Ok(home) = AgentHome::of_child(&setup.env) else {
            return Ok(login);
        };
        tokio::task::spawn_blocking(move || login::with_expiry(login, &home))
            .await
            .map_err(|_| ProbeError::Ending)
    }

    /// The agent's own session list, from its last usable answer. Starts no probe.
    #[must_use]
    pub fn sessions(&self) -> Sessions {
        self.inner.sessions.answer.borrow().clone()
    }

    /// The same list, unless it is stale or too old.
    /// Ages below two of the shortest pauses between probes always count as fresh.
    #[must_use]
    pub fn sessions_within(&self, age: Duration) -> Option<Sessions> {
        let at = (*lock(&self.inner.listed_at))?;
        let limit = age.max(SESSIONS_PAUSE * 2);
        Some(self.sessions()).filter(|last| last.stale.is_none() && at.elapsed() <= limit)
    }

    /// How long until the agent may be asked for its sessions again.
    #[must_use]
    pub fn sessions_pause(&self) -> Duration {
        let asked = *lock(&self.inner.sessions.asked);
        asked.map_or(Duration::ZERO, |at| SESSIONS_PAUSE.saturating_sub(at.elapsed()))
    }

    /// A channel that reports every change of [`AgentCli::sessions`].
    #[must_use]
    pub fn sessions_changes(&self) -> watch::Receiver<Sessions> {
        self.inner.sessions.answer.subscribe()
    }

    /// Probes the session list, or waits for a running probe.
    /// An answer less than 5 s old is returned again. A failure keeps the previous list and marks
    /// it stale.
    ///
    /// # Errors
    /// See [`ProbeError`]; the stale list is in [`AgentCli::sessions`].
    pub async fn sessions_now(&self) -> Result<Sessions, ProbeError> {
        let probe = &self.inner.sessions;
        let _asking = probe.gate.lock().await;
        let last = probe.answer.borrow().clone();
        if !probe.is_due(SESSIONS_PAUSE) {
            return match &last.stale {
                None => Ok(last),
                Some(reason) => Err(ProbeError::NoSessions(reason.clone())),
            };
        }
        probe.asked_now();
        let setup = self.setup();
        let asked = self.ask_sessions(&setup).await;
        if asked.is_ok() {
            *lock(&self.inner.listed_at) = Some(Instant::now());
        }
        probe.publish(match &asked {
            Ok(sessions) => sessions.clone(),
            Err(error) => Sessions { stale: Some(chain(error)), ..last },
        });
        asked
    }

    async fn ask_sessions(&self, setup: &AgentSetup) -> Result<Sessions, ProbeError> {
        let program = self.program_now().await?;
        let args = ["agents", "--json"];
        let output = ask(setup, &program, &args, SESSIONS_TIMEOUT, SESSIONS_CAP).await?;
        let unusable = |what: String| Err(ProbeError::NoSessions(what));
        if output.stdout_cut {
            return unusable("it was longer than 8 MiB".to_owned());
        }
        if output.code != Some(0) {
            let code = output.code.map_or("a signal".to_owned(), |code| format!("code {code}"));
            return unusable(format!("the command ended with {code}"));
        }
        let listed = match session_list::parse(&output.stdout) {
            Ok(listed) => listed,
            Err(error) => return unusable(error.to_string()),
        };
        if listed.is_odd || listed.skipped > 0 {
            tracing::warn!(
                skipped = listed.skipped,
                odd = listed.is_odd,
                "the agent CLI listed sessions in an unknown shape; those are left out"
            );
        }
        Ok(Sessions {
            list: Arc::new(listed.sessions),
            skipped: listed.skipped,
            stale: None,
            is_known: true,
        })
    }

    fn in_background<F>(&self, work: impl FnOnce(Self) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return; // outside the runtime there is only the last answer
        };
        let future = work(self.clone());
        let mut tasks = lock(&self.inner.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(future, &runtime);
    }
}

fn config_of(setup: &AgentSetup) -> Result<Arc<AgentConfig>, HomeError> {
    let home = AgentHome::of_child(&setup.env)?;
    Ok(Arc::new(AgentConfig::new(home, FileLocks::new(setup.locks.clone()))))
}

fn resolve(setup: &AgentSetup) -> Result<PathBuf, BinaryError> {
    let value = |name: &str| setup.env.get(OsStr::new(name));
    let path = value("PATH").map_or(OsStr::new(""), |path| path.as_os_str());
    binary::resolve(&setup.binary, value("HOME").map(Path::new), path)
}

async fn ask(
    setup: &AgentSetup,
    program: &Path,
    args: &[&str],
    timeout: Duration,
    stdout_cap: usize,
) -> Result<Output, RunError> {
    run(Run { program, args, env: &setup.env, cwd: &setup.cwd, timeout, stdout_cap }).await
}

/// An error with its causes, in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let inner = error.to_string();
        if !text.ends_with(&inner) {
            text = format!("{text}: {inner}");
        }
        cause = error.source();
    }
    text
}
