//! The process host: implements the port with the parts of this crate.

use crate::exit::{self, Children, ExitWatch};
use crate::launcher::{self, LauncherProgram};
pub use crate::scopes::ManagerSocket;
use crate::scopes::Scopes;
use crate::table::{ProcTable, Stat, TableError};
use crate::{signals, tree};
use async_trait::async_trait;
use std::path::PathBuf;
use std::time::Duration;
use svc_domain::enclosure;
use svc_domain::identity::{BootId, LaunchId, Pid, ProcessIdentity, Verdict, verdict};
use svc_ports::process::{
    Carrier, Enclosed, Exited, HeldLaunch, LaunchError, LaunchSpec, Manager, ProcessFacts,
    ProcessHost, ServiceUnit, Signal, Signalled, Target,
};

/// The parts of a host. The default is this machine and this program.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// Root of the process table.
    pub proc_root: PathBuf,
    /// The program that is started as launcher.
    pub launcher: LauncherProgram,
    /// The program that is started as keeper of a terminal.
    pub keeper: LauncherProgram,
    /// How the end of processes that are not our children is noticed.
    pub exit_watch: ExitWatch,
    /// How long a launcher may take to be ready, and again to become the agent.
    pub launch_deadline: Duration,
    /// The socket of the systemd manager that this process may ask.
    pub manager: ManagerSocket,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            proc_root: PathBuf::from("/proc"),
            launcher: LauncherProgram::default(),
            keeper: LauncherProgram::keeper(),
            exit_watch: ExitWatch::default(),
            // 2 ms are usual. After ten seconds something hangs, such as a network directory.
            launch_deadline: Duration::from_secs(10),
            manager: ManagerSocket::of_this_process(),
        }
    }
}

/// Processes of this machine.
///
/// `launch` and `exited` need a tokio runtime. `processes`, `find_launch`, `launch_members` and
/// `descendants` scan the whole process table and belong into `spawn_blocking`; other reads are quick.
#[derive(Debug)]
pub struct Host {
    table: ProcTable,
    children: Children,
    launcher: LauncherProgram,
    keeper: LauncherProgram,
    exit_watch: ExitWatch,
    launch_deadline: Duration,
    own_pid: i32,
    scopes: Scopes,
}

impl Host {
    /// Opens the process table.
    ///
    /// # Errors
    /// There is no process table.
    pub fn new(options: HostOptions) -> Result<Self, TableError> {
        let table = ProcTable::at(&options.proc_root)?;
        let own_pid = rustix::process::getpid().as_raw_pid();
        Ok(Self {
            table,
            children: Children::default(),
            launcher: options.launcher,
            keeper: options.keeper,
            exit_watch: options.exit_watch,
            launch_deadline: options.launch_deadline,
            own_pid,
            scopes: Scopes::new(options.manager),
        })
    }

    /// Collects the children of the program that this one replaced, when they end.
    ///
    /// Needs a tokio runtime. Scans the whole process table once.
    pub fn take_over_children(&self) {
        self.children.take_over(&self.table);
    }

    /// The process table of this host.
    #[must_use]
    pub fn table(&self) -> &ProcTable {
        &self.table
    }

    /// Live processes of this user for which `wanted` is true, without this process.
    ///
    /// All from one snapshot.
    fn mine(&self, wanted: impl Fn(&Stat) -> bool) -> Vec<Stat> {
        let user = rustix::process::geteuid().as_raw();
        let mut found = self.table.snapshot();
        found.retain(|stat| {
            // The owner costs most to read, so it comes last. For processes of other users `wanted`
            // mostly cannot read anything and is false.
            stat.pid != self.own_pid
                && wanted(stat)
                && self.table.effective_uid(stat.pid) == Some(user)
        });
        found
    }

    fn carriers_of(&self, launch_id: &LaunchId) -> Vec<Stat> {
        self.mine(|stat| self.table.launch_id(stat.pid).as_ref() == Some(launch_id))
    }

    /// Facts about the process of a snapshot, if it still has its pid.
    fn facts(&self, stat: &Stat) -> Option<ProcessFacts> {
        let facts = self.table.facts(Pid::new(i64::from(stat.pid))?)?;
        (facts.identity.start_ticks == stat.start_ticks).then_some(facts)
    }

    fn facts_of(&self, stats: &[Stat]) -> Vec<ProcessFacts> {
        stats.iter().filter_map(|stat| self.facts(stat)).collect()
    }
}

#[async_trait]
impl ProcessHost for Host {
    fn boot_id(&self) -> &BootId {
        self.table.boot_id()
    }

    async fn launch(&self, spec: LaunchSpec) -> Result<Box<dyn HeldLaunch>, LaunchError> {
        let program = if spec.terminal.is_some() { &self.keeper } else { &self.launcher };
        let held = launcher::hold(program, &self.table, &self.children, self.launch_deadline, spec)
            .await?;
        Ok(Box::new(held))
    }

    fn probe(&self, identity: &ProcessIdentity) -> Verdict {
        let observed = self.table.observe(identity.pid);
        verdict(identity, self.table.boot_id(), &observed)
    }

    fn inspect(&self, pid: Pid) -> Option<ProcessFacts> {
        self.table.facts(pid)
    }

    fn launch_of(&self, identity: &ProcessIdentity) -> Option<LaunchId> {
        let launch = self.table.launch_id(identity.pid.get())?;
        // Read first, proven afterwards: so the pid was not reused in between.
        (self.probe(identity) == Verdict::Same).then_some(launch)
    }

    fn is_own_child(&self, identity: &ProcessIdentity) -> bool {
        self.children.is_uncollected(identity)
    }

    fn find_launch(&self, launch_id: &LaunchId) -> Option<ProcessFacts> {
        let mut carriers = self.carriers_of(launch_id);
        // A keeper is in the control group of its launch, but only the agent got the id.
        let carries = |stat: &Stat| self.table.carried_launch(stat.pid).as_ref() == Some(launch_id);
        if carriers.iter().any(carries) {
            carriers.retain(carries);
        }
        self.facts(tree::first_of_launch(&carriers)?)
    }

    fn launch_members(&self, launch_id: &LaunchId) -> Vec<ProcessFacts> {
        self.facts_of(&self.carriers_of(launch_id))
    }

    fn remains(&self, first: Option<&ProcessIdentity>, launch_id: &LaunchId) -> Vec<ProcessFacts> {
        let first = first
            .filter(|identity| identity.boot_id == *self.table.boot_id())
            .map(|identity| (identity.pid.get(), identity.start_ticks));
        // Processes of all users: a process between two of ours may belong to another user.
        let snapshot = self.table.snapshot();
        let mut found = tree::remains(&snapshot, first, launch_id, |pid| self.table.launch_id(pid));
        let user = rustix::process::geteuid().as_raw();
        found.retain(|stat| {
            // A process that changed its user still counts if it is in our own control group.
            stat.pid != self.own_pid
                && (self.table.effective_uid(stat.pid) == Some(user)
                    || self.table.enclosing_launch(stat.pid).as_ref() == Some(launch_id))
        });
        self.facts_of(&found)
    }

    fn carriers(&self) -> Vec<Carrier> {
        let mut found = Vec::new();
        for stat in self.mine(|_| true) {
            let Some(launch) = self.table.launch_id(stat.pid) else { continue };
            let Some(facts) = self.facts(&stat) else { continue };
            let resident_bytes = self.table.resident_bytes(stat.pid);
            found.push(Carrier {
                launch,
                facts,
                resident_bytes,
                age: self.table.age(stat.start_ticks),
            });
        }
        found
    }

    fn processes(&self) -> Vec<ProcessFacts> {
        self.facts_of(&self.mine(|_| true))
    }

    fn signal(&self, identity: &ProcessIdentity, signal: Signal, target: Target) -> Signalled {
        let uncollected = self.children.is_uncollected(identity);
        signals::send(&self.table, identity, signal, target, uncollected)
    }

    fn exited(&self, identity: &ProcessIdentity) -> Exited {
        match self.children.report(identity) {
            Some(report) => Box::pin(exit::of_child(report)),
            None => Box::pin(exit::of_other(self.table.clone(), identity.clone(), self.exit_watch)),
        }
    }

    fn descendants(&self, identity: &ProcessIdentity) -> Vec<ProcessFacts> {
        let snapshot = self.table.snapshot();
        let root = identity.pid.get();
        if !matches!(self.probe(identity), Verdict::Same) {
            return Vec::new();
        }
        let mut found = tree::descendants(&snapshot, root, |pid| self.table.launch_id(pid));
        found.retain(|stat| stat.pid != self.own_pid);
        self.facts_of(&found)
    }

    async fn enclose(
        &self,
        identities: &[&ProcessIdentity],
        launch_id: &LaunchId,
        about: &str,
    ) -> Enclosed {
        let pids: Vec<i32> = identities.iter().map(|identity| identity.pid.get()).collect();
        match self.scopes.enclose(&pids, launch_id, about).await {
            Enclosed::Yes => {}
            enclosed @ (Enclosed::NoManager | Enclosed::Failed(_)) => return enclosed,
        }
        for identity in identities {
            let groups = self.table.control_groups(identity.pid.get()).unwrap_or_default();
            if enclosure::launch_of(&groups).as_ref() != Some(launch_id) {
                return Enclosed::Failed("it is not in the scope that systemd made".to_owned());
            }
            if let Some(kills) = self.scopes.memory_kills(launch_id, &groups) {
                self.children.count_memory_kills(identity, kills);
            }
        }
        Enclosed::Yes
    }

    async fn kill_enclosed(&self, launch_id: &LaunchId) {
        self.scopes.kill(launch_id).await;
    }

    async fn manager(&self) -> Manager {
        self.scopes.manager().await
    }

    async fn own_unit(&self) -> Option<ServiceUnit> {
        crate::scopes::own_unit().await
    }
}
