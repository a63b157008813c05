//! Use-case: is everything ready?
//! Every check says what it found, and what to do about it.
//!
//! Looking is done here and in [`places`]; verdicts are pure functions over what was seen, one file
//! per subject. `svc doctor` and `GET /api/doctor` run the same.

mod agent;
mod checkout;
mod configuration;
mod disk;
mod exposure;
mod held;
mod keepers;
pub(crate) mod last;
mod places;
pub(crate) mod programs;
mod registry;
mod repair;
mod same_session;
mod strays;
mod systemd;
mod tls;
mod verdict;

use crate::VERSION;
use crate::agent::Agent;
use crate::bridges::keeper_list::KeeperList;
use crate::bridges::strays::Strays;
use crate::ops::Accounts;
use crate::projects::catalog::Catalog;
use crate::registry::Registry;
use crate::sessions::SessionScan;
use last::LastAnswer;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use svc_agent::login::Login;
use svc_config::{Config, ConfigErrors, Loaded, Origin, ScopeUse};
use svc_domain::admission::Trust;
use svc_ports::process::Manager;
use svc_ports::{Clock, ProcessHost};
use svc_shared::Timestamp;
use svc_shared::internal::{Check, Doctor};
use svc_shared::status::CheckStatus;
use svc_store::OpenError;

pub use configuration::not_found;
pub use repair::{Repairs, close_config, close_state_dir};
pub use verdict::{failed, passed, warned};

/// Longest look through the database.
const DATABASE_LIMIT: Duration = Duration::from_secs(10);

/// Where the records are, as far as the caller got with them.
#[derive(Debug)]
pub enum Records {
    /// Open: the store of the registry.
    Open,
    /// Nothing was started here yet.
    Absent,
    /// Refused or unreadable.
    Refused(OpenError),
}

/// Examines the installation.
pub struct Examiner {
    pub(crate) config: Arc<Config>,
    pub(crate) origin: Origin,
    pub(crate) agent: Arc<Agent>,
    pub(crate) host: Arc<dyn ProcessHost>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) strays: Arc<Strays>,
    pub(crate) keepers: Arc<KeeperList>,
    pub(crate) sessions: Arc<SessionScan>,
    pub(crate) last: Arc<LastAnswer>,
    pub(crate) accounts: Arc<Accounts>,
    /// Where the program was when it began.
    pub(crate) program: Option<PathBuf>,
}

impl Examiner {
    /// Readiness as the running service sees it.
    /// An answer of the last five seconds is given again. The configuration is read anew, as the
    /// next start would.
    pub async fn report(&self) -> Arc<Doctor> {
        if let Some(answer) = self.last.fresh() {
            return answer;
        }
        let origin = self.origin.clone();
        let path = origin.path().map(Path::to_owned);
        let read = tokio::task::spawn_blocking(move || origin.read_again()).await.ok().flatten();
        let mut checks = match &read {
            Some(read) => configuration::checks(read.as_ref()),
            None => vec![passed("config", "given by the demo, no file")],
        };
        checks.extend(self.examine(&Records::Open).await);
        let answer = Arc::new(report(checks, path.as_deref(), self.clock.now()));
        self.last.keep(&answer);
        answer
    }

    /// Readiness for a command, which has read the configuration already.
    pub async fn checks(
        &self,
        read: Result<&Loaded, &ConfigErrors>,
        records: &Records,
    ) -> Vec<Check> {
        let mut checks = configuration::checks(read);
        checks.extend(self.examine(records).await);
        checks
    }

    /// Everything but the configuration file, in the order of the documentation.
    async fn examine(&self, records: &Records) -> Vec<Check> {
        let config = &self.config;
        let agent = async {
            let version = self.agent.cli().version_now().await;
            agent::program(version.as_ref(), &config.claude.min_version)
        };
        let login = async { agent::login(&self.login_for_doctor().await) };
        let (of, trusted, projects) =
            (Arc::clone(config), Arc::clone(&self.agent), self.catalog.all());
        let places = tokio::task::spawn_blocking(move || {
            let [root, state, git, disk] = [
                places::projects_root(&of.projects_root, &projects),
                places::state_dir(&of),
                places::git(&trusted.environment()),
                disk::disk(&of.state_dir),
            ];
            let untrusted: Vec<&str> = projects
                .iter()
                .filter(|at| trusted.trust(&at.path, at.git_root.as_deref()) != Trust::Granted)
                .map(|project| project.name.as_str())
                .collect();
            [root, state, git, agent::trust(&untrusted, projects.len()), disk]
        });
        let database = async {
            let seen = match records {
                Records::Open => {
                    let look = tokio::time::timeout(DATABASE_LIMIT, self.registry.store.health());
                    Ok(Some(look.await.ok()))
                }
                Records::Absent => Ok(None),
                Records::Refused(error) => Err(error),
            };
            registry::database(self.registry.store.path(), seen)
        };
        let strays = async {
            let found = match records {
                Records::Open => self.strays.list().await.ok(),
                // Nothing was ever started here.
                Records::Absent => Some(Vec::new()),
                Records::Refused(_) => None,
            };
            strays::strays(found.as_deref())
        };
        let same_session = async {
            let scan = Arc::clone(&self.sessions);
            let found = tokio::task::spawn_blocking(move || scan.shared()).await.ok().flatten();
            same_session::duplicate_sessions(found.as_deref())
        };
        let scopes = async {
            let wanted = config.claude.scope;
            let manager = match wanted {
                ScopeUse::Off => Manager::Absent,
                ScopeUse::Auto | ScopeUse::Require => self.host.manager().await,
            };
            // A command runs in another unit than the service, or in none.
            let unit = match (&manager, self.registry.has_readers()) {
                (Manager::Answers(_), _) | (_, false) => None,
                (Manager::Absent | Manager::Silent(_), true) => self.host.own_unit().await,
            };
            systemd::systemd(wanted, &manager, unit.as_ref())
        };
        let keepers = async {
            let found = match records {
                Records::Open => self.keepers.list().await.ok(),
                Records::Absent => Some(Vec::new()),
                Records::Refused(_) => None,
            };
            keepers::keepers(found.as_deref())
        };
        let held = async {
            let found = match records {
                Records::Open => self.registry.live().await.ok(),
                Records::Absent => Some(Vec::new()),
                Records::Refused(_) => None,
            };
            held::held(found.map(|_| self.registry.copies.bridges()).as_deref())
        };
        let (agent, login, places, database, strays, keepers, held, same_session, scopes, beside) = tokio::join!(
            agent,
            login,
            places,
            database,
            strays,
            keepers,
            held,
            same_session,
            scopes,
            self.programs_beside()
        );
        let mut checks = vec![agent, login];
        let exposure = exposure::auth(config, &self.accounts.in_control(config).await);
        let (of, now) = (Arc::clone(config), self.clock.now());
        let certificate = tokio::task::spawn_blocking(move || tls::tls(&of, now)).await;
        let certificate = certificate.ok().flatten();
        let mut space = None;
        match places {
            Ok([root, state, git, trust, disk]) => {
                checks.extend([root, state, git, exposure, trust]);
                space = Some(disk);
            }
            Err(_) => checks.push(exposure),
        }
        checks.extend(beside);
        checks.extend(certificate);
        checks.extend(space);
        checks.extend([database, strays, keepers, held, same_session, scopes]);
        let env = self.agent.environment();
        checks.extend(checkout::version(self.program.as_deref(), &env).await);
        // A command is another process, perhaps of another program than the service.
        if self.registry.has_readers() {
            let program = self.program.clone();
            let look = move || programs::own_program(program.as_deref());
            checks.extend(tokio::task::spawn_blocking(look).await.ok());
        }
        checks
    }

    /// Checks of what runs beside the agent, where it is in use.
    async fn programs_beside(&self) -> Vec<Check> {
        let env = self.agent.environment();
        let (node, hosted) = tokio::join!(
            programs::node_toolchain(&self.config, &env),
            programs::hosted(&self.config, &env, VERSION)
        );
        let terminal = passed("extra:pty", "built in");
        let told = &self.config.notifications;
        let is_told = told.enabled && !told.urls.is_empty();
        let notifier = is_told.then(|| passed("extra:notify", "built in"));
        let config = Arc::clone(&self.config);
        let look = move || programs::shadow(&config, &env);
        let shadow = tokio::task::spawn_blocking(look).await.unwrap_or_default();
        node.into_iter().chain([terminal]).chain(notifier).chain(hosted).chain(shadow).collect()
    }

    /// The very answer that the health report shows, where there is one.
    async fn login_for_doctor(&self) -> Login {
        let cli = self.agent.cli();
        match cli.login() {
            Login::Unasked => cli.login_now().await,
            known @ (Login::Answered { .. } | Login::Failed { .. }) => known,
        }
    }
}

/// The checks as one document.
#[must_use]
pub fn report(checks: Vec<Check>, config_path: Option<&Path>, at: Timestamp) -> Doctor {
    Doctor {
        ok: !checks.iter().any(|check| check.status.is(&CheckStatus::Fail)),
        at,
        version: VERSION.to_owned(),
        config_path: config_path.map(|path| path.to_string_lossy().into_owned()),
        checks,
    }
}

/// What is to be said of the certificate that the configuration names.
/// Nothing without `tls`. May block for two small files.
pub(crate) fn certificate(config: &Config, now: Timestamp) -> Option<Check> {
    tls::tls(config, now)
}

/// What the configuration and its certificate say by themselves.
/// May block for two small files.
pub async fn posture(config: &Config, now: Timestamp) -> Vec<Check> {
    let others = Accounts::default().in_control(config).await;
    std::iter::once(exposure::auth(config, &others)).chain(tls::tls(config, now)).collect()
}

/// The configuration cannot be used, and with it nothing else can be examined.
#[must_use]
pub fn of_unusable(errors: &ConfigErrors) -> Vec<Check> {
    configuration::checks(Err(errors))
}
