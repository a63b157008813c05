//! The machine of one round: its service, and how each fault is made and undone.

use crate::harness::{
    Clock, Process, Server, SmallDisk, Start, Witness, World, gone, hunt_launcher, limit,
    open_descriptors, within,
};
use crate::plan::{Family, Fault, PROJECTS, is_session};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// More than a launcher lives, less than a step lasts.
const HUNT: Duration = Duration::from_millis(400);
/// The kernel keeps 16,384 events for a reader; every pass makes two.
const FLOOD: usize = 9_000;

/// What is on at this moment, and what to give back.
pub struct Stage<'w> {
    pub world: &'w World,
    pub server: Option<Server<'w>>,
    witness: Process,
    disk: Option<SmallDisk>,
    ballast: Option<PathBuf>,
    is_read_only: bool,
    is_limited: bool,
    clock: Option<Clock>,
    frozen: Vec<Process>,
    /// Keeps a user namespace in which there are hardly any watches.
    namespace: Option<Child>,
    late: usize,
    /// A command or a launcher was killed. The next start deletes what it left.
    pub needs_start: bool,
    /// Projects whose agents did not end by themselves or by a stop.
    pub harmed: BTreeSet<usize>,
    pub counts: BTreeMap<&'static str, u64>,
    /// What could not be tried here, and why.
    pub missing: BTreeSet<&'static str>,
    /// Records that were taken away.
    pub lost: Vec<String>,
}

impl<'w> Stage<'w> {
    /// Prepares what the faults of this kind need, without a service.
    pub fn new(world: &'w World, family: Family, witness: &Witness) -> Self {
        let mut stage = Self {
            world,
            server: None,
            witness: witness.process.clone(),
            disk: None,
            ballast: None,
            is_read_only: false,
            is_limited: false,
            clock: None,
            frozen: Vec::new(),
            namespace: None,
            late: 0,
            needs_start: false,
            harmed: BTreeSet::new(),
            counts: BTreeMap::new(),
            missing: BTreeSet::new(),
            lost: Vec::new(),
        };
        if matches!(family, Family::Disk | Family::Mixed) {
            stage.disk = SmallDisk::at(&world.state, 100);
            if stage.disk.is_none() {
                stage.missing.insert("a full disk: this user may not mount a small file system");
            }
        }
        if matches!(family, Family::Clock | Family::Mixed) {
            stage.clock = Some(Clock::new(world));
        }
        if family == Family::Watch {
            stage.without_watches();
        }
        stage
    }

    /// Starts everything from now on with six inotify watches in two instances.
    fn without_watches(&mut self) {
        let script = "echo 6 > /proc/sys/user/max_inotify_watches && \
             echo 2 > /proc/sys/user/max_inotify_instances && echo ready && exec sleep 100000";
        let mut keeper = Command::new("unshare");
        keeper.args(["--user", "--map-root-user", "sh", "-c", script]);
        keeper.env_clear().envs(self.world.environment()).current_dir(&self.world.root);
        let keeper = keeper.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut keeper) = keeper.spawn() else {
            self.missing.insert("no watches: there is no program `unshare`");
            return;
        };
        let mut said = [0; 6];
        let mut voice = keeper.stdout.take().expect("a pipe");
        if std::io::Read::read_exact(&mut voice, &mut said).is_err() {
            let _ = keeper.wait(); // it has ended
            self.missing.insert("no watches: this user may make no user namespace");
            return;
        }
        let target = keeper.id().to_string();
        self.world.enter(&["nsenter", "--target", &target, "--user", "--preserve-credentials"]);
        self.namespace = Some(keeper);
    }

    /// More environment of every program.
    pub fn env(&self) -> Vec<(&'static str, String)> {
        let clock = self.clock.iter().flat_map(Clock::env);
        clock.map(|(name, value)| (name, value.to_owned())).collect()
    }

    pub fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Whether something is on that a start of the service may fail of.
    fn is_ill(&self) -> bool {
        self.ballast.is_some() || self.is_read_only
    }

    /// Starts a service if there is none. With read-only state it may refuse.
    pub async fn serve(&mut self) {
        if self.server.is_some() {
            return;
        }
        let env = self.env();
        let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, &**value)).collect();
        let start = Start { env: &env, ..Start::default() };
        if !self.is_ill() {
            self.server = Some(self.world.serve_as(start).await);
            return;
        }
        match self.world.try_serve(&start).await {
            Ok(server) => self.server = Some(server),
            Err(words) => {
                assert!(!words.contains("panicked"), "{words}");
                self.count("starts refused");
            }
        }
    }

    /// The service dies at once.
    pub async fn kill_service(&mut self) {
        if let Some(server) = self.server.take() {
            let log = server.log();
            assert!(!log.contains("panicked"), "{log}");
            server.kill().await;
            self.is_limited = false;
            self.count("services killed");
        }
    }

    fn service(&self, signal: Signal) {
        if let Some(pid) = self.server.as_ref().and_then(|server| Pid::from_raw(server.pid)) {
            let _ = kill_process(pid, signal); // it ended meanwhile: then there is nobody to tell
        }
    }

    fn bridge_of(&self, project: usize) -> Option<Process> {
        self.world.bridges_of(PROJECTS[project].0).into_iter().next()
    }

    /// Makes it go wrong.
    pub async fn inflict(&mut self, fault: Fault) {
        match fault {
            Fault::None => {}
            Fault::KillCommands => self.needs_start = true,
            Fault::KillService { stays_down } => {
                self.kill_service().await;
                if !stays_down {
                    self.serve().await;
                }
            }
            Fault::KillAgent(project) => self.kill_agent(project).await,
            Fault::KillLauncher => {
                if let Some(launcher) = self.launcher().await {
                    launcher.signal(Signal::KILL);
                    self.needs_start = true;
                    self.count("launchers killed");
                }
            }
            Fault::KillEverything => self.kill_everything().await,
            Fault::StealPid(project) => self.steal_pid(project).await,
            Fault::FreezeService(pause) => {
                self.service(Signal::STOP);
                self.count("services frozen");
                // How long it stands still is the fault, not a wait for something.
                tokio::time::sleep(Duration::from_millis(pause)).await;
                self.service(Signal::CONT);
            }
            Fault::FreezeAgent(project, pause) => {
                if let Some(bridge) = self.bridge_of(project) {
                    self.freeze_for(&bridge, pause).await;
                    self.count("agents frozen");
                }
            }
            Fault::FreezeLauncher(pause) => {
                if let Some(launcher) = self.launcher().await {
                    self.freeze_for(&launcher, pause).await;
                    self.count("launchers frozen");
                }
            }
            Fault::FreezeForGood(project) => {
                if let Some(bridge) = self.bridge_of(project) {
                    bridge.signal(Signal::STOP);
                    self.frozen.push(bridge);
                    self.count("agents frozen");
                }
            }
            Fault::FillDisk => self.fill_disk(),
            Fault::MakeReadOnly => self.make_read_only(),
            Fault::SetClock(seconds) => {
                if let Some(clock) = &self.clock {
                    clock.set(seconds);
                    self.count("clocks set");
                }
            }
            Fault::OverflowWatches => self.overflow_watches().await,
            Fault::FewDescriptors(more) => self.few_descriptors(more),
            Fault::SecondService => self.second_service().await,
            Fault::SecondOfFrozen(pause) => {
                self.service(Signal::STOP);
                self.second_service().await;
                tokio::time::sleep(Duration::from_millis(pause)).await;
                self.service(Signal::CONT);
            }
            Fault::SeveralServices => self.several_services().await,
            Fault::KillKeeper => self.kill_keeper().await,
            Fault::FreezeKeeper(pause) => {
                if let Some(keeper) = self.world.keepers().into_iter().next() {
                    self.freeze_for(&keeper, pause).await;
                    self.count("keepers frozen");
                }
            }
            Fault::OrphanKeeper => self.orphan_keeper().await,
            Fault::Heal => self.heal(),
        }
    }

    /// Any keeper; its agent loses its terminal.
    async fn kill_keeper(&mut self) {
        if let Some(keeper) = self.world.keepers().into_iter().next() {
            // Which project it belongs to is not in its command line.
            self.harmed.extend(sessions());
            keeper.signal(Signal::KILL);
            gone(&keeper).await;
            self.count("keepers killed");
        }
    }

    /// Takes a running session's record away; its keeper is listed and ended.
    async fn orphan_keeper(&mut self) {
        if self.is_ill() {
            return;
        }
        let rows = self.world.rows().await.into_iter();
        let Some(row) = rows
            .filter(|row| row.resume_mode == "pty")
            .find(|row| row.status == "running" && row.pid.is_some())
        else {
            return;
        };
        self.kill_service().await;
        let id = &row.instance_id;
        let delete =
            format!("DELETE FROM bridges WHERE instance_id = '{id}' AND status = 'running'");
        // A command may hold the registry, or have ended the record: then nothing is lost.
        if self.world.sql(&delete).await.is_ok_and(|rows| rows > 0) {
            self.lost.push(id.clone());
            let agent = row.pid.and_then(|pid| i32::try_from(pid).ok());
            let listed = self.world.cli(&["keepers", "--json"]).await.ok();
            let listed: serde_json::Value =
                serde_json::from_str(&listed.stdout).expect("a list of keepers");
            let all = listed.as_array().expect("a list");
            for keeper in all.iter().filter(|keeper| keeper["instance_id"] == id.as_str()) {
                let pid = keeper["keeper_pid"].to_string();
                // It counts as an orphan only when its project has no record at all.
                let forced = (keeper["orphan"] == false).then_some("--force");
                let args = ["keepers", "--kill", &pid].into_iter().chain(forced);
                self.world.cli(&args.collect::<Vec<_>>()).await.ok();
                self.count("orphans ended");
            }
            let session = self.world.sessions().into_iter().find(|one| Some(one.pid) == agent);
            if let Some(session) = session {
                gone(&session).await;
            }
        }
        self.serve().await;
    }

    /// A launcher of this world, caught in its few milliseconds.
    async fn launcher(&self) -> Option<Process> {
        let (root, end) = (self.world.root.clone(), Instant::now() + HUNT);
        let hunt = tokio::task::spawn_blocking(move || hunt_launcher(&root, end));
        hunt.await.expect("the hunt goes on")
    }

    async fn freeze_for(&self, process: &Process, pause: u64) {
        process.signal(Signal::STOP);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        process.signal(Signal::CONT);
    }

    async fn kill_agent(&mut self, project: usize) {
        if let Some(bridge) = self.bridge_of(project) {
            self.harmed.insert(project);
            bridge.signal(Signal::KILL);
            gone(&bridge).await;
            self.count("agents killed");
        }
    }

    async fn kill_everything(&mut self) {
        self.kill_service().await;
        self.harmed.extend(0..PROJECTS.len());
        let keeper = self.namespace.as_ref().map(|keeper| keeper.id().cast_signed());
        for process in self.world.processes() {
            let is_bystander = [process.pid, process.parent].contains(&self.witness.pid);
            if !is_bystander && Some(process.pid) != keeper {
                process.signal(Signal::KILL);
            }
        }
        self.count("power cuts");
        self.serve().await;
    }

    /// Gives the pid of a dead agent to the bystander, in a record that calls it alive.
    async fn steal_pid(&mut self, project: usize) {
        if self.is_ill() {
            return;
        }
        self.kill_service().await;
        self.kill_agent(project).await;
        let (witness, name) = (self.witness.pid, PROJECTS[project].0);
        let update = format!(
            "UPDATE bridges SET bridge_pid = {witness} WHERE project = '{name}' \
             AND bridge_pid IS NOT NULL AND status IN ('starting', 'running')"
        );
        // A command may hold the registry, or have ended the record: then nothing is stolen.
        if self.world.sql(&update).await.is_ok_and(|rows| rows > 0) {
            self.count("numbers reused");
        }
        self.serve().await;
    }

    fn fill_disk(&mut self) {
        if let (Some(disk), false) = (&self.disk, self.is_ill()) {
            self.ballast = Some(disk.fill());
            self.count("disks filled");
        }
    }

    /// Mounts a read-only view over the directory. Open files stay open.
    fn make_read_only(&mut self) {
        if self.is_ill() {
            return;
        }
        let mount = |args: &[&str]| {
            let mut mount = Command::new("mount");
            mount.args(args).output().is_ok_and(|done| done.status.success())
        };
        // Made read-only where nobody opens anything, and laid over the directory as it is.
        let (dir, view) = (self.world.state.display(), self.world.root.join("view"));
        let (dir, view) = (dir.to_string(), view.display().to_string());
        fs::create_dir_all(&view).expect("a directory for the view");
        if !mount(&["--bind", &dir, &view]) {
            self.missing.insert("a read-only state: this user may not mount");
            return;
        }
        let is_done = mount(&["-o", "remount,bind,ro", &view]) && mount(&["--bind", &view, &dir]);
        assert!(is_done && unmount(&view), "{dir} cannot be made read-only");
        self.is_read_only = true;
        self.count("states made read-only");
    }

    async fn overflow_watches(&mut self) {
        let Some(server) = &self.server else { return };
        self.late += 1;
        let late = format!("late-{}", self.late);
        self.service(Signal::STOP);
        flood(&self.world.projects);
        self.world.project(&late);
        self.service(Signal::CONT);
        let mut page = server.events().await;
        let seen = page.until("a project behind lost events", |state| {
            state.projects.contains_key(late.as_str()).then_some(())
        });
        seen.await;
        self.count("events overflowed");
    }

    fn few_descriptors(&mut self, more: u64) {
        let Some(server) = &self.server else { return };
        let floor = open_descriptors(server.pid) as u64 + more;
        if limit(server.pid, "nofile", &format!("{floor}:20000")) {
            self.is_limited = true;
            self.count("descriptors limited");
        } else {
            self.missing.insert("few descriptors: the limit of another process cannot be set");
        }
    }

    async fn second_service(&mut self) {
        let Some(first) = self.server.as_ref().map(|server| server.pid) else { return };
        let second = self.world.try_serve(&Start::default()).await;
        let words = second.err().expect("a second service is refused");
        // It cannot be told who holds the lock where the state cannot be read as it should be.
        let is_named = words.contains(&first.to_string());
        assert!(is_named || self.is_ill(), "it names the first: {words}");
        self.count("second services refused");
    }

    async fn several_services(&mut self) {
        self.kill_service().await;
        if self.is_ill() {
            return self.serve().await;
        }
        let env = self.env();
        let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, &**value)).collect();
        let start = Start { env: &env, ..Start::default() };
        let starts = (0..3).map(|_| self.world.try_serve(&start));
        let started = futures_util::future::join_all(starts).await;
        let mut winners: Vec<Server<'_>> = started.into_iter().filter_map(Result::ok).collect();
        assert!(winners.len() <= 1, "{} services run on one state", winners.len());
        self.server = winners.pop();
        self.count("services started at once");
        // Nobody won where somebody else took the port.
        self.serve().await;
    }

    /// Gives back space, rights, limits, and whoever was stopped.
    pub fn heal(&mut self) {
        for process in std::mem::take(&mut self.frozen) {
            process.signal(Signal::CONT);
        }
        self.service(Signal::CONT);
        if std::mem::take(&mut self.is_read_only) {
            assert!(unmount(&self.world.state.display().to_string()), "the view stays");
        }
        if let Some(ballast) = self.ballast.take() {
            fs::remove_file(ballast).expect("it was written here");
        }
        if let (Some(server), true) = (&self.server, std::mem::take(&mut self.is_limited)) {
            assert!(limit(server.pid, "nofile", "20000:20000"), "the limit cannot be lifted");
        }
    }

    /// Every program of ours that is still alive, apart from the service.
    pub async fn until_nobody_is_left(&self) {
        let own = self.server.as_ref().map(|server| server.pid);
        let strays = || -> Vec<Process> {
            let mut all = self.world.processes();
            all.retain(|process| Some(process.pid) != own && is_ours(process));
            all
        };
        within("an end of all that was started", async {
            while !strays().is_empty() {
                // An end changes no file that could be watched.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        })
        .await;
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        if std::mem::take(&mut self.is_read_only) {
            unmount(&self.world.state.display().to_string());
        }
        if let Some(mut keeper) = self.namespace.take() {
            let _ = keeper.kill(); // it has ended already: fine
            let _ = keeper.wait();
        }
    }
}

/// The projects with Interactive Sessions.
fn sessions() -> impl Iterator<Item = usize> {
    (0..PROJECTS.len()).filter(|project| is_session(PROJECTS[*project].0))
}

/// Lazily: what is open in it stays open.
fn unmount(dir: &str) -> bool {
    let done = Command::new("umount").arg("-l").arg(dir).output();
    done.is_ok_and(|done| done.status.success())
}

fn is_ours(process: &Process) -> bool {
    let program = process.argv.first().map(Path::new).and_then(Path::file_name);
    let launcher = process.argv.iter().any(|word| word == "__launch__");
    launcher || program.is_some_and(|name| name == "svc" || name == "svc-agent-sim")
}

/// Makes and removes directories until the kernel has thrown events away.
fn flood(dir: &Path) {
    for number in 0..FLOOD {
        let path = dir.join(format!("flood-{number}"));
        if fs::create_dir(&path).is_ok() {
            let _ = fs::remove_dir(path); // the next look at the list shows what is left
        }
    }
}
