//! Puts the use-cases together.
//! The only place that knows which parts each of them shares.

mod use_cases;

pub(crate) use use_cases::UseCases;

use crate::agent_config::{AgentConfigEditor, backups::Backups};
use crate::agent_sign_in::AgentSignIn;
use crate::asked::Asked;
use crate::auth::{Auth, Devices, Tokens, refs::SessionRefs};
use crate::bridges::Bridges;
use crate::bridges::admissions::Admissions;
use crate::bridges::adopt::Adopter;
use crate::bridges::attached::Attached;
use crate::bridges::change::ChangeRow;
use crate::bridges::conversations::Conversations;
use crate::bridges::ends::EndRecorder;
use crate::bridges::family::Families;
use crate::bridges::forget::Forget;
use crate::bridges::heal::HealBridge;
use crate::bridges::keeper_list::KeeperList;
use crate::bridges::keepers::Keepers;
use crate::bridges::launch::Launcher;
use crate::bridges::lookup::Lookup;
use crate::bridges::readiness::Readiness;
use crate::bridges::requests::Requests;
use crate::bridges::restarting::Restarting;
use crate::bridges::restore::Restore;
use crate::bridges::spawn::Starter;
use crate::bridges::stop::StopBridge;
use crate::bridges::strays::Strays;
use crate::bridges::terminator::Terminator;
use crate::bridges::transition::Transitions;
use crate::bridges::unmanaged::Finder;
use crate::bridges::wrong_end::WrongEnds;
use crate::environments::Environments;
use crate::hosted::{Approvals, HostedParts, HostedRows, HostedSessions, HostedView, Link};
use crate::jobs::{JobScan, Jobs, ask::AgentRuns};
use crate::launch_plans::LaunchPlans;
use crate::locks::Locks;
use crate::logs::{Logs, colours, retention::Retention};
use crate::ops::audit::Audit;
use crate::ops::deps::Deps;
use crate::ops::doctor::Examiner;
use crate::ops::restart::Restart as ServiceRestart;
use crate::ops::{
    AccessReport, Accounts, ConfigEditor, History, Metrics, Preferences, Reports, Status, Support,
};
use crate::ops::{legacy::LegacyImport, temporaries::Temporaries};
use crate::outbound::{self, Push};
use crate::projects::catalog::Catalog;
use crate::projects::changes::ChangesReader;
use crate::projects::clones::{Clones, ClonesParts};
use crate::projects::trusting::{ProjectService, Trust};
use crate::projects::worktrees::Worktrees;
use crate::read_model::ReadModel;
use crate::read_model::facts::FactReader;
use crate::read_model::publish::{Publisher, Turns};
use crate::read_model::{links::Links, look::Instances, project_row::ProjectRows};
use crate::read_model::{records::Records, signs::Signs, view::View};
use crate::registry::{Registry, copies::Copies};
use crate::sessions::{SessionScan, Sessions, pointers::Pointers, seen::SeenSessions};
use crate::stranded::StrandedSessions;
use crate::supervise::change_watch::{Housekeeping, SessionWatch, Surroundings, WriteWatch};
use crate::supervise::restarter::{Progress, Restarter};
use crate::supervise::{Supervision, watchers::Watchers};
use crate::supervise::{healer::Healer, reconcile::Reconciler, sampler::Sampler};
use crate::tasks::Tasks;
use crate::terminal::Terminals;
use crate::transcripts::Transcripts;
use crate::{Parts, Role};
use std::sync::Arc;
use svc_agent::log_tail::LogTails;

impl UseCases {
    /// Builds everything from the parts of this process. Nothing runs yet.
    pub fn new(parts: Parts) -> Self {
        let Parts { config, store, host, clock, agent, role, watcher, port, .. } = parts;
        let is_server = role == Role::Server;
        let keys = parts.refs.as_ref().map(|refs| refs.keys().clone());
        let auth = Arc::new(Auth::new(&config, keys, store.clone(), Arc::clone(&clock)));
        let (tasks, read_model) = (Tasks::default(), ReadModel::new());
        let locks = Arc::new(Locks::new(&config.state_dir));
        let refs = Arc::new(SessionRefs(parts.refs));
        let catalog = Arc::new(Catalog(parts.projects));
        let copies = Arc::new(Copies::default());
        let links = Arc::new(Links::new(Arc::clone(&config), is_server));
        let signs = Arc::new(Signs::new(is_server));
        let (seen, asked): (Arc<SeenSessions>, Arc<_>) = Default::default();
        let records = Arc::new(Records {
            facts: FactReader::new(&config, &agent, &host, &links, &signs),
            view: View::new(&config, &refs, &signs, &asked),
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
        let service_restart = Arc::new(ServiceRestart::new(&tasks));
        let link = Arc::new(Link::new(Arc::clone(&config), Arc::clone(&agent), tasks.clone()));
        let status = Arc::new(Status {
            hosted: Arc::clone(&link),
            config: Arc::clone(&config),
            agent: Arc::clone(&agent),
            copies: Arc::clone(&copies),
            restart: Arc::clone(&service_restart),
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
            Arc::new(Registry::new(store.clone(), Arc::clone(&copies), publisher, served.clone()));
        let view = HostedView::new(&config, &refs, &catalog, &agent, &signs);
        let readers = is_server.then(|| Arc::clone(&read_model));
        let hosted_rows = Arc::new(HostedRows::new(&store, &clock, &link, view, readers, served));
        let sources = (&hosted_rows, &asked, &copies);
        let push = Arc::new(Push::new(&config, port, (&auth, &store), (&clock, &tasks), is_server));
        let (webhooks, notifications) =
            outbound::fed_by(&read_model, &config, port, (&clock, &tasks), sources, &push);
        let lookup = Arc::new(Lookup {
            registry: Arc::clone(&registry),
            catalog: Arc::clone(&catalog),
            hosted: Arc::clone(&hosted_rows),
        });
        let audit = Arc::new(Audit::new(&config.state_dir, role, &clock));
        let runs = Arc::new(AgentRuns::new(&config, &agent, &host, parts.umask));
        let agent_config = AgentConfigEditor::new(&config, &catalog, &agent, &audit, &runs, &tasks);
        let agent_config = Arc::new(agent_config);
        let agent_sign_in = AgentSignIn::new(&config, &agent, &audit, &read_model, &clock, &tasks);
        let environments = Environments::new(&finder, &registry, &records, &audit, &tasks);
        let deps = Deps::new(&config, &agent, &audit);
        let reads = (&config, &registry, &catalog, &agent, &refs, &watcher);
        let around = (&read_model, &agent_config, &clock, &tasks);
        let questions = Arc::new(Asked::new(asked, reads, around));
        let config_editor = ConfigEditor::new(&config, &parts.origin, &agent, &audit, &tasks);
        let tokens = Arc::new(Tokens {
            auth: Arc::clone(&auth),
            registry: Arc::clone(&registry),
            audit: Arc::clone(&audit),
            tasks: tasks.clone(),
        });
        let devices =
            Arc::new(Devices { auth: Arc::clone(&auth), registry: Arc::clone(&registry) });
        let accounts = Arc::<Accounts>::default();
        let access = AccessReport {
            config: Arc::clone(&config),
            auth: Arc::clone(&auth),
            devices: Arc::clone(&devices),
            tokens: Arc::clone(&tokens),
            accounts: Arc::clone(&accounts),
            port,
        };
        let keepers = Arc::new(Keepers::new(&config, &host, is_server));
        let terminals = Terminals::new(
            Arc::clone(&config),
            Arc::clone(&lookup),
            Arc::clone(&keepers),
            Arc::clone(&audit),
            tasks.clone(),
        );
        let trust = Arc::new(Trust { agent: Arc::clone(&agent), audit });
        let hosted_parts = Arc::new(HostedParts::new(
            hosted_rows,
            link,
            &host,
            &locks,
            &readiness,
            &trust,
            &tasks,
        ));
        let hosted = Arc::new(HostedSessions { parts: Arc::clone(&hosted_parts) });
        let projects = Arc::new(ProjectService {
            catalog: Arc::clone(&catalog),
            readiness: Arc::clone(&readiness),
            trust: Arc::clone(&trust),
            registry: Arc::clone(&registry),
            backups: Backups::new(&config.state_dir),
            writing: Default::default(),
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
                signs: Arc::clone(&signs),
            }),
            runs: Arc::clone(&runs),
            locks: Arc::clone(&locks),
            trust: Arc::clone(&trust),
            readers: is_server.then(|| Arc::clone(&read_model)),
            watcher: watcher.clone(),
            store: store.clone(),
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
            seen: Arc::clone(&seen),
            signs: Arc::clone(&signs),
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
        let logs = Arc::new(Logs {
            config: Arc::clone(&config),
            lookup: Arc::clone(&lookup),
            auth: Arc::clone(&auth),
            tails: LogTails::new(colours(&config)),
            watcher: watcher.clone(),
            tasks: tasks.clone(),
        });
        let families = Arc::new(Families::new(Arc::clone(&config), Arc::clone(&host)));
        let transitions = Arc::new(Transitions {
            config: Arc::clone(&config),
            registry: Arc::clone(&registry),
            clock: Arc::clone(&clock),
            refs: Arc::clone(&refs),
            read_model: Arc::clone(&read_model),
            samples: Arc::default(),
        });
        let conversations = Arc::new(Conversations {
            agent: Arc::clone(&agent),
            catalog: Arc::clone(&catalog),
            refs: Arc::clone(&refs),
            transitions: Arc::clone(&transitions),
        });
        let terminator = Arc::new(Terminator {
            config: Arc::clone(&config),
            host: Arc::clone(&host),
            families: Arc::clone(&families),
            keepers: Arc::clone(&keepers),
            under_way: Arc::default(),
        });
        let ends = Arc::new(EndRecorder {
            config: Arc::clone(&config),
            transitions: Arc::clone(&transitions),
            families: Arc::clone(&families),
            attached: Arc::new(Attached {
                config: Arc::clone(&config),
                agent: Arc::clone(&agent),
                seen,
            }),
            keepers: Arc::clone(&keepers),
        });
        let launcher = Arc::new(Launcher {
            config: Arc::clone(&config),
            families: Arc::clone(&families),
            agent: Arc::clone(&agent),
            host: Arc::clone(&host),
            transitions: Arc::clone(&transitions),
            read_model: Arc::clone(&read_model),
            agent_config: Arc::clone(&agent_config),
            tasks: tasks.clone(),
            umask: parts.umask,
        });
        let watchers = Arc::new(Watchers {
            config: Arc::clone(&config),
            agent: Arc::clone(&agent),
            watcher: watcher.clone(),
            locks: Arc::clone(&locks),
            launcher: Arc::clone(&launcher),
            terminator: Arc::clone(&terminator),
            ends: Arc::clone(&ends),
            keepers: Arc::clone(&keepers),
            conversations: Arc::clone(&conversations),
            retention: Arc::clone(&retention),
            links: Arc::clone(&links),
            tasks: tasks.clone(),
            watched: Default::default(),
        });
        let requests = Arc::new(Requests {
            lookup: Arc::clone(&lookup),
            locks: Arc::clone(&locks),
            records: Arc::clone(&records),
            tasks: tasks.clone(),
        });
        let stop = Arc::new(StopBridge {
            requests: Arc::clone(&requests),
            transitions: Arc::clone(&transitions),
            terminator,
            ends: Arc::clone(&ends),
            conversations: Arc::clone(&conversations),
        });
        let wrong_ends = Arc::new(WrongEnds {
            host: Arc::clone(&host),
            transitions: Arc::clone(&transitions),
            stop: Arc::clone(&stop),
            watchers: Arc::clone(&watchers),
        });
        let adopter = Arc::new(Adopter {
            requests: Arc::clone(&requests),
            finder: Arc::clone(&finder),
            transitions: Arc::clone(&transitions),
            watchers: Arc::clone(&watchers),
            sessions: Arc::clone(&sessions),
        });
        let starter = Arc::new(Starter {
            requests: Arc::clone(&requests),
            admissions: Admissions {
                readiness: Arc::clone(&readiness),
                trust,
                adopter: Arc::clone(&adopter),
                wrong_ends,
            },
            launcher,
            watchers: Arc::clone(&watchers),
            conversations,
            hosted: Arc::clone(&hosted),
        });
        let forget = Arc::new(Forget { requests: Arc::clone(&requests), finder });
        let restarting = Arc::new(Restarting {
            requests: Arc::clone(&requests),
            transitions: Arc::clone(&transitions),
        });
        let heal = Arc::new(HealBridge {
            requests: Arc::clone(&requests),
            links: Arc::clone(&links),
            stop: Arc::clone(&stop),
            starter: Arc::clone(&starter),
        });
        let restarts = Arc::new(Progress::default());
        let restore = Arc::new(Restore {
            config: Arc::clone(&config),
            transitions: Arc::clone(&transitions),
            records: Arc::clone(&records),
            read_model: Arc::clone(&read_model),
            restarts: Arc::clone(&restarts),
            tasks: tasks.clone(),
            job: Default::default(),
        });
        let restarter = Arc::new(Restarter {
            config: Arc::clone(&config),
            agent: Arc::clone(&agent),
            starter: Arc::clone(&starter),
            watcher: watcher.clone(),
            tasks: tasks.clone(),
            progress: restarts,
        });
        let changes = Arc::new(ChangesReader::new(
            Arc::clone(&lookup),
            Arc::clone(&catalog),
            watcher.clone(),
        ));
        let worktrees = Arc::new(Worktrees {
            catalog: Arc::clone(&catalog),
            registry: Arc::clone(&registry),
            host: Arc::clone(&host),
            locks: Arc::clone(&locks),
            tasks: tasks.clone(),
        });
        let change = Arc::new(ChangeRow { requests, restarting: Arc::clone(&restarting) });
        let instances = Arc::new(Instances {
            lookup,
            records,
            agent: Arc::clone(&agent),
            host: Arc::clone(&host),
            clock: Arc::clone(&clock),
        });
        let last = Arc::default();
        let strays = Arc::new(Strays {
            config: Arc::clone(&config),
            host: Arc::clone(&host),
            registry: Arc::clone(&registry),
            catalog: Arc::clone(&catalog),
            clock: Arc::clone(&clock),
            doctor: Arc::clone(&last),
        });
        let keeper_list =
            Arc::new(KeeperList::new(&config, &host, &registry, &refs, &last, &tasks));
        let doctor = Arc::new(Examiner {
            config: Arc::clone(&config),
            origin: parts.origin.clone(),
            agent: Arc::clone(&agent),
            host: Arc::clone(&host),
            registry: Arc::clone(&registry),
            catalog: Arc::clone(&catalog),
            clock: Arc::clone(&clock),
            strays: Arc::clone(&strays),
            keepers: Arc::clone(&keeper_list),
            sessions: scan,
            accounts,
            last,
            program: svc_process::own_program::path().ok(),
        });
        let metrics = Arc::new(Metrics::new(&config, &copies, &catalog, &transitions.samples));
        let transcripts = Arc::new(Transcripts {
            config: Arc::clone(&config),
            agent: Arc::clone(&agent),
            catalog: Arc::clone(&catalog),
            refs: Arc::clone(&refs),
            copies: Arc::clone(&copies),
            read_model: Arc::clone(&read_model),
            store: store.clone(),
            clock: Arc::clone(&clock),
            watcher: watcher.clone(),
            tasks: tasks.clone(),
            files: Default::default(),
            sums: Default::default(),
            signs,
        });
        let launch_plans = Arc::new(LaunchPlans::new(&transcripts, &registry, &jobs, &starter));
        let reports = Reports::new(&config, &instances, &logs, &keepers, &jobs);
        let history = Arc::new(History::new(&config, &store, &catalog, &transcripts));
        let support = Support::new(&doctor, &history, &reports);
        let legacy = LegacyImport::new(&config, &registry, &catalog, &clock);
        let temporaries = Arc::new(Temporaries::new(&config, &agent, &catalog, &parts.origin));
        let clones = Arc::new(Clones::new(ClonesParts {
            config: Arc::clone(&config),
            rules: parts.project_rules,
            catalog: Arc::clone(&catalog),
            readiness: Arc::clone(&readiness),
            registry: Arc::clone(&registry),
            read_model: Arc::clone(&read_model),
            clock: Arc::clone(&clock),
            tasks: tasks.clone(),
            watcher: watcher.clone(),
            agent: Arc::clone(&agent),
            host: Arc::clone(&host),
            umask: parts.umask,
        }));
        let project_rows = ProjectRows::new(&catalog, &readiness, &metrics, &read_model);
        let stranded = Arc::new(StrandedSessions {
            state_dir: config.state_dir.clone(),
            registry: Arc::clone(&registry),
            refs: Arc::clone(&refs),
            agent: Arc::clone(&agent),
            jobs: Arc::clone(&jobs),
            locks: Arc::clone(&locks),
            clock: Arc::clone(&clock),
            tasks: tasks.clone(),
        });
        let supervision = Arc::new(Supervision {
            healer: Healer { links, stop: Arc::clone(&stop), starter: Arc::clone(&starter) },
            stranded: Arc::clone(&stranded),
            clones: Arc::clone(&clones),
            webhooks: Arc::clone(&webhooks),
            notifications: Arc::clone(&notifications),
            asked: Arc::clone(&questions),
            applied: config_editor.changes(),
            hosted: Arc::clone(&hosted_parts),
            launch_plans: Arc::clone(&launch_plans),
            reconciler: Arc::new(Reconciler {
                host,
                locks,
                ends,
                stop: Arc::clone(&stop),
                watchers: Arc::clone(&watchers),
                tasks: tasks.clone(),
            }),
            restarter,
            restore: Arc::clone(&restore),
            writes: WriteWatch {
                state_dir: config.state_dir.clone(),
                registry: Arc::clone(&registry),
                auth: Arc::clone(&auth),
                jobs: Arc::clone(&jobs),
                read_model: Arc::clone(&read_model),
                watchers,
                restart: Arc::clone(&service_restart),
                config: Arc::clone(&config_editor),
                tasks: tasks.clone(),
            },
            surroundings: Surroundings {
                catalog,
                agent,
                registry: Arc::clone(&registry),
                read_model: Arc::clone(&read_model),
                watcher: watcher.clone(),
                tasks: tasks.clone(),
            },
            sessions: SessionWatch {
                sessions: Arc::clone(&sessions),
                adopter: Arc::clone(&adopter),
                pointers,
                temporaries: Arc::clone(&temporaries),
                watcher,
                tasks: tasks.clone(),
            },
            sampler: Sampler {
                metrics: Arc::clone(&metrics),
                families,
                stop: Arc::clone(&stop),
                starter: Arc::clone(&starter),
            },
            housekeeping: Housekeeping {
                registry: Arc::clone(&registry),
                retention,
                temporaries,
                tasks: tasks.clone(),
            },
            jobs: Arc::clone(&jobs),
            transcripts: Arc::clone(&transcripts),
        });
        Self {
            preferences: Preferences { store },
            hosted: Arc::clone(&hosted),
            bridges: Bridges { starter, stop, adopter, forget, change, restarting, heal, hosted },
            approvals: Approvals { parts: hosted_parts, asked: questions },
            config,
            role,
            registry,
            tasks,
            auth,
            tokens,
            devices,
            access,
            config_editor,
            deps,
            agent_config,
            agent_sign_in: Arc::new(agent_sign_in),
            environments: Arc::new(environments),
            service_restart,
            read_model,
            instances,
            readiness,
            status,
            projects,
            project_rows,
            changes,
            worktrees,
            clones,
            jobs,
            sessions,
            logs,
            terminals,
            transcripts,
            restore,
            strays,
            stranded,
            keeper_list,
            doctor,
            reports,
            support,
            history,
            metrics,
            launch_plans,
            legacy,
            webhooks,
            notifications,
            push,
            supervision,
        }
    }
}
