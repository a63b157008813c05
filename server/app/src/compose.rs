//! Puts the use-cases together from their parts, and hands them to the doors.

use crate::auth::refs::SessionRefs;
use crate::auth::{Auth, Tokens};
use crate::bridges::ends::EndRecorder;
use crate::bridges::family::Families;
use crate::bridges::lookup::Lookup;
use crate::bridges::readiness::Readiness;
use crate::bridges::strays::Strays;
use crate::bridges::terminator::Terminator;
use crate::bridges::transition::Transitions;
use crate::bridges::unmanaged::Finder;
use crate::jobs::ask::AgentRuns;
use crate::jobs::{JobScan, Jobs};
use crate::locks::Locks;
use crate::logs::Logs;
use crate::logs::retention::Retention;
use crate::ops::audit::{Audit, AuditLog};
use crate::ops::doctor::Examiner;
use crate::ops::legacy::LegacyImport;
use crate::ops::metrics::Samples;
use crate::ops::temporaries::Temporaries;
use crate::ops::{History, Metrics, Preferences, Status};
use crate::projects::catalog::Catalog;
use crate::projects::trusting::{ProjectService, Trust};
use crate::read_model::ReadModel;
use crate::read_model::facts::FactReader;
use crate::read_model::publish::{Publisher, Turns};
use crate::read_model::records::Records;
use crate::read_model::view::View;
use crate::registry::Registry;
use crate::registry::copies::Copies;
use crate::sessions::pointers::Pointers;
use crate::sessions::{SessionScan, Sessions};
use crate::tasks::Tasks;
use crate::{Agent, Parts, Role, logs, supervise};
use std::path::PathBuf;
use std::sync::Arc;
use svc_agent::log_set::LogSet;
use svc_agent::log_tail::LogTails;
use svc_config::Config;
use svc_domain::redact::Colour;
use svc_ports::{Clock, ProcessHost};
use svc_store::Store;
use svc_watch::Watcher;
use tokio_util::sync::CancellationToken;

/// The service as its doors see it: a use-case for each thing that can be asked. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<UseCases>);

struct UseCases {
    config: Arc<Config>,
    role: Role,
    store: Store,
    host: Arc<dyn ProcessHost>,
    clock: Arc<dyn Clock>,
    agent: Arc<Agent>,
    watcher: Watcher,
    catalog: Arc<Catalog>,
    umask: u32,
    tasks: Tasks,
    locks: Arc<Locks>,
    copies: Arc<Copies>,
    registry: Arc<Registry>,
    auth: Arc<Auth>,
    tokens: Tokens,
    read_model: Arc<ReadModel>,
    records: Arc<Records>,
    readiness: Arc<Readiness>,
    status: Arc<Status>,
    lookup: Arc<Lookup>,
    finder: Arc<Finder>,
    trust: Arc<Trust>,
    projects: Arc<ProjectService>,
    jobs: Arc<Jobs>,
    sessions: Arc<Sessions>,
    pointers: Arc<Pointers>,
    logs: Arc<Logs>,
    retention: Arc<Retention>,
    strays: Arc<Strays>,
    doctor: Arc<Examiner>,
    history: History,
    preferences: Preferences,
    metrics: Arc<Metrics>,
    legacy: LegacyImport,
    temporaries: Temporaries,
    families: Arc<Families>,
    transitions: Arc<Transitions>,
    terminator: Terminator,
    ends: EndRecorder,
    watchers: supervise::Watchers,
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("role", &self.0.role).finish_non_exhaustive()
    }
}

impl App {
    /// Puts the parts together. Nothing runs yet: see [`App::supervise`].
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let Parts { config, store, host, clock, agent, role, watcher, .. } = parts;
        let is_server = role == Role::Server;
        let keys = parts.refs.as_ref().map(|refs| refs.keys().clone());
        let auth = Arc::new(Auth::new(&config, keys, store.clone(), Arc::clone(&clock)));
        let (tasks, read_model) = (Tasks::default(), ReadModel::new());
        let locks = Arc::new(Locks::new(&config.state_dir));
        let refs = Arc::new(SessionRefs(parts.refs));
        let catalog = Arc::new(Catalog(parts.projects));
        let copies = Arc::new(Copies::default());
        let records = Arc::new(Records {
            facts: FactReader::new(Arc::clone(&config), Arc::clone(&agent), Arc::clone(&host)),
            view: View { config: Arc::clone(&config), refs: Arc::clone(&refs) },
            projects: Arc::clone(&catalog),
            copies: Arc::clone(&copies),
        });
        let finder = Arc::new(Finder {
            config: Arc::clone(&config),
            agent: Arc::clone(&agent),
            host: Arc::clone(&host),
            copies: Arc::clone(&copies),
        });
        let readiness = Arc::new(Readiness {
            config: Arc::clone(&config),
            agent: Arc::clone(&agent),
            projects: Arc::clone(&catalog),
            copies: Arc::clone(&copies),
            finder: Arc::clone(&finder),
        });
        let status = Arc::new(Status {
            config: Arc::clone(&config),
            agent: Arc::clone(&agent),
            copies: Arc::clone(&copies),
            port: parts.port,
            demo: parts.demo,
        });
        let publisher = is_server.then(|| {
            Arc::new(Publisher {
                read_model: Arc::clone(&read_model),
                records: Arc::clone(&records),
                readiness: Arc::clone(&readiness),
                status: Arc::clone(&status),
                tasks: tasks.clone(),
                turns: Turns::default(),
            })
        });
        let served = (!is_server).then(|| config.state_dir.clone());
        let registry =
            Arc::new(Registry::new(store.clone(), Arc::clone(&copies), publisher, served));
        let lookup =
            Arc::new(Lookup { registry: Arc::clone(&registry), catalog: Arc::clone(&catalog) });
        let audit = Arc::new(Audit {
            log: AuditLog::of(&config.state_dir),
            role,
            clock: Arc::clone(&clock),
        });
        let tokens = Tokens {
            auth: Arc::clone(&auth),
            registry: Arc::clone(&registry),
            audit: Arc::clone(&audit),
        };
        let trust = Arc::new(Trust { agent: Arc::clone(&agent), audit });
        let projects = Arc::new(ProjectService {
            catalog: Arc::clone(&catalog),
            readiness: Arc::clone(&readiness),
            trust: Arc::clone(&trust),
            registry: Arc::clone(&registry),
            tasks: tasks.clone(),
        });
        let jobs = Arc::new(Jobs {
            scan: Arc::new(JobScan {
                config: Arc::clone(&config),
                agent: Arc::clone(&agent),
                host: Arc::clone(&host),
                catalog: Arc::clone(&catalog),
                refs: Arc::clone(&refs),
                clock: Arc::clone(&clock),
                memory: Default::default(),
            }),
            runs: AgentRuns::new(
                Arc::clone(&config),
                Arc::clone(&agent),
                Arc::clone(&host),
                parts.umask,
            ),
            locks: Arc::clone(&locks),
            trust: Arc::clone(&trust),
            readers: is_server.then(|| Arc::clone(&read_model)),
            watcher: watcher.clone(),
            tasks: tasks.clone(),
            memory: Default::default(),
        });
        let scan = Arc::new(SessionScan {
            config: Arc::clone(&config),
            agent: Arc::clone(&agent),
            host: Arc::clone(&host),
            copies: Arc::clone(&copies),
            catalog: Arc::clone(&catalog),
            refs: Arc::clone(&refs),
            finder: Arc::clone(&finder),
            memory: Default::default(),
        });
        let sessions = Arc::new(Sessions {
            scan: Arc::clone(&scan),
            registry: Arc::clone(&registry),
            read_model: Arc::clone(&read_model),
            records: Arc::clone(&records),
        });
        let retention = Arc::new(Retention::new(
            Arc::clone(&config),
            Arc::clone(&host),
            Arc::clone(&registry),
            Arc::clone(&clock),
            tasks.clone(),
        ));
        let pointers = Arc::new(Pointers {
            config: Arc::clone(&config),
            agent: Arc::clone(&agent),
            catalog: Arc::clone(&catalog),
            finder: Arc::clone(&finder),
            retention: Arc::clone(&retention),
        });
        let colour = match config.logs.strip_ansi_in_stream {
            true => Colour::Strip,
            false => Colour::Keep,
        };
        let logs = Arc::new(Logs {
            config: Arc::clone(&config),
            lookup: Arc::clone(&lookup),
            auth: Arc::clone(&auth),
            tails: LogTails::new(colour),
            watcher: watcher.clone(),
            tasks: tasks.clone(),
        });
        let families = Arc::new(Families::new(Arc::clone(&host)));
        let transitions = Arc::new(Transitions {
            registry: Arc::clone(&registry),
            clock: Arc::clone(&clock),
            refs: Arc::clone(&refs),
            read_model: Arc::clone(&read_model),
        });
        let terminator = Terminator {
            config: Arc::clone(&config),
            host: Arc::clone(&host),
            families: Arc::clone(&families),
            under_way: Arc::default(),
        };
        let ends = EndRecorder {
            config: Arc::clone(&config),
            transitions: Arc::clone(&transitions),
            families: Arc::clone(&families),
        };
        let last = Arc::default();
        let strays = Arc::new(Strays {
            config: Arc::clone(&config),
            host: Arc::clone(&host),
            registry: Arc::clone(&registry),
            catalog: Arc::clone(&catalog),
            clock: Arc::clone(&clock),
            doctor: Arc::clone(&last),
        });
        let doctor = Arc::new(Examiner {
            config: Arc::clone(&config),
            origin: parts.origin,
            agent: Arc::clone(&agent),
            host: Arc::clone(&host),
            registry: Arc::clone(&registry),
            catalog: Arc::clone(&catalog),
            clock: Arc::clone(&clock),
            strays: Arc::clone(&strays),
            sessions: scan,
            last,
        });
        let metrics = Arc::new(Metrics {
            config: Arc::clone(&config),
            copies: Arc::clone(&copies),
            catalog: Arc::clone(&catalog),
            samples: Samples::default(),
        });
        let history = History { store: store.clone(), catalog: Arc::clone(&catalog) };
        let legacy = LegacyImport {
            config: Arc::clone(&config),
            registry: Arc::clone(&registry),
            catalog: Arc::clone(&catalog),
            clock: Arc::clone(&clock),
        };
        let temporaries = Temporaries {
            config: Arc::clone(&config),
            agent: Arc::clone(&agent),
            catalog: Arc::clone(&catalog),
        };
        Self(Arc::new(UseCases {
            preferences: Preferences { store: store.clone() },
            umask: parts.umask,
            families,
            transitions,
            terminator,
            ends,
            watchers: supervise::Watchers::default(),
            config,
            role,
            store,
            host,
            clock,
            agent,
            watcher,
            catalog,
            tasks,
            locks,
            copies,
            registry,
            auth,
            tokens,
            read_model,
            records,
            readiness,
            status,
            lookup,
            finder,
            trust,
            projects,
            jobs,
            sessions,
            pointers,
            logs,
            retention,
            strays,
            doctor,
            history,
            metrics,
            legacy,
            temporaries,
        }))
    }

    /// What the page shows, and its stream.
    #[must_use]
    pub fn read_model(&self) -> &Arc<ReadModel> {
        &self.0.read_model
    }

    /// Who may come in, and who is in.
    #[must_use]
    pub fn auth(&self) -> &Arc<Auth> {
        &self.0.auth
    }

    /// The named tokens.
    #[must_use]
    pub fn tokens(&self) -> &Tokens {
        &self.0.tokens
    }

    /// What the service says about itself.
    #[must_use]
    pub fn status(&self) -> &Status {
        &self.0.status
    }

    /// Whether a launch could happen.
    #[must_use]
    pub fn readiness(&self) -> &Arc<Readiness> {
        &self.0.readiness
    }

    /// The projects, and what a person allows in them.
    #[must_use]
    pub fn projects(&self) -> &Arc<ProjectService> {
        &self.0.projects
    }

    /// Background jobs.
    #[must_use]
    pub fn jobs(&self) -> &Arc<Jobs> {
        &self.0.jobs
    }

    /// Working sessions of the agent.
    #[must_use]
    pub fn sessions(&self) -> &Arc<Sessions> {
        &self.0.sessions
    }

    /// The logs of bridges.
    #[must_use]
    pub fn logs(&self) -> &Arc<Logs> {
        &self.0.logs
    }

    /// Processes that no live bridge answers for.
    #[must_use]
    pub fn strays(&self) -> &Arc<Strays> {
        &self.0.strays
    }

    /// Examines the installation.
    #[must_use]
    pub fn doctor(&self) -> &Arc<Examiner> {
        &self.0.doctor
    }

    /// What bridges use of processor, memory and disk.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// What happened before.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.0.history
    }

    /// What somebody chose for the page.
    #[must_use]
    pub fn preferences(&self) -> &Preferences {
        &self.0.preferences
    }

    /// Takes over the records of an earlier service.
    #[must_use]
    pub fn legacy(&self) -> &LegacyImport {
        &self.0.legacy
    }

    /// The configuration.
    #[must_use]
    pub fn settings(&self) -> &Config {
        &self.0.config
    }

    /// Cancelled when the service ends.
    #[must_use]
    pub fn shutdown(&self) -> &CancellationToken {
        self.0.tasks.shutdown()
    }

    /// Ends the supervisor and waits for use-cases under way, at most ten seconds.
    pub async fn close(&self) {
        self.0.tasks.close().await;
        self.0.store.close().await;
    }

    pub(crate) fn is_server(&self) -> bool {
        self.0.role == Role::Server
    }

    pub(crate) fn store(&self) -> &Store {
        &self.0.store
    }

    pub(crate) fn host(&self) -> &dyn ProcessHost {
        &*self.0.host
    }

    pub(crate) fn host_shared(&self) -> Arc<dyn ProcessHost> {
        Arc::clone(&self.0.host)
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.0.clock
    }

    pub(crate) fn agent(&self) -> &Arc<Agent> {
        &self.0.agent
    }

    pub(crate) fn catalog(&self) -> &Catalog {
        &self.0.catalog
    }

    pub(crate) fn locks(&self) -> &Locks {
        &self.0.locks
    }

    pub(crate) fn copies(&self) -> &Copies {
        &self.0.copies
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.0.registry
    }

    pub(crate) fn records(&self) -> &Arc<Records> {
        &self.0.records
    }

    pub(crate) fn lookup(&self) -> &Lookup {
        &self.0.lookup
    }

    pub(crate) fn finder(&self) -> &Arc<Finder> {
        &self.0.finder
    }

    pub(crate) fn trust(&self) -> &Trust {
        &self.0.trust
    }

    pub(crate) fn watchers(&self) -> &supervise::Watchers {
        &self.0.watchers
    }

    pub(crate) fn tasks(&self) -> &Tasks {
        &self.0.tasks
    }

    pub(crate) fn umask(&self) -> u32 {
        self.0.umask
    }

    pub(crate) fn log_dir(&self) -> PathBuf {
        logs::directory(self.settings())
    }

    pub(crate) fn log_set(&self, stem: &str) -> Option<LogSet> {
        logs::set(self.settings(), stem)
    }

    pub(crate) fn retention(&self) -> &Arc<Retention> {
        &self.0.retention
    }

    pub(crate) fn pointers(&self) -> &Arc<Pointers> {
        &self.0.pointers
    }

    pub(crate) fn temporaries(&self) -> &Temporaries {
        &self.0.temporaries
    }

    pub(crate) fn watcher(&self) -> &Watcher {
        &self.0.watcher
    }

    /// Who was last seen with each live bridge.
    pub(crate) fn families(&self) -> &Families {
        &self.0.families
    }

    pub(crate) fn project_changes(&self) -> Option<tokio::sync::watch::Receiver<u64>> {
        self.0.catalog.changes()
    }

    pub(crate) fn transitions(&self) -> &Transitions {
        &self.0.transitions
    }

    pub(crate) fn terminator(&self) -> &Terminator {
        &self.0.terminator
    }

    pub(crate) fn ends(&self) -> &EndRecorder {
        &self.0.ends
    }
}
