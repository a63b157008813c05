//! `svc demo`: the service on a private tree, with the simulator as agent.

mod tree;

use crate::cli::call::{Call, block_on};
use crate::cli::exit_code::Exit;
use crate::cli::failure::{End, Failure};
use crate::compose::Surroundings;
use crate::logging::{self, Shape};
use crate::serve::{Running, Sockets};
use crate::signals::Signals;
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Duration;
use svc_app::App;
use svc_config::LogLevel;
use svc_shared::api::instances::{Instance, ResumeRequest, SpawnRequest};
use svc_shared::api::jobs::DispatchRequest;
use tokio::net::TcpListener;
use tokio::task::{JoinSet, spawn_blocking};
use tree::{DemoOptions, JOBS, STARTED, Tree};

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Port to serve on; without it a free one.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
    /// Build the demo in this new, empty or earlier demo's directory, and keep it.
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Scenario of the simulated agent (JSON).
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,
    /// Seed of everything random in the simulated agent.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Open the page in a browser.
    #[arg(long)]
    pub(crate) open: bool,
}

/// The program that plays the agent; built with the tests.
const SIMULATOR: &str = "svc-agent-sim";

/// Serves the samples until it is asked to end.
pub(crate) fn run(call: &Call, demo: &Demo) -> Result<Exit, End> {
    if call.config.is_some() {
        return Err(refused(
            "`svc demo` takes no configuration; leave out -c, or use `svc run`".to_owned(),
        ));
    }
    let simulator = simulator()?;
    let scenario = demo.scenario.as_deref().map(scenario).transpose()?;
    logging::start(Shape::Text, LogLevel::Info);
    crate::safety::report_panics();
    block_on(async {
        // First of all, so that an early Ctrl-C still removes the tree.
        let mut signals = Signals::of_server().map_err(End::of_machine)?;
        let tree = match &demo.keep {
            Some(directory) => Tree::kept(directory)?,
            None => Tree::temporary()?,
        };
        let done = Stage { call, demo, tree: &tree, simulator, scenario }.play(&mut signals).await;
        let removed = spawn_blocking(move || tree.remove()).await.map_err(End::of_machine)?;
        done?;
        removed?;
        Ok(Exit::Done)
    })
}

fn refused(words: String) -> End {
    Failure::new(Exit::Refused, "demo", words).into()
}

/// The simulator lies beside this program.
fn simulator() -> Result<PathBuf, End> {
    let own = std::env::current_exe().map_err(|error| Failure::chain("demo", &error))?;
    let program = own.with_file_name(SIMULATOR);
    if program.is_file() {
        return Ok(program);
    }
    let release = if cfg!(debug_assertions) { "" } else { " --release" };
    let words = format!(
        "the agent simulator is missing: {} does not exist; build it with \
         `cargo build{release} -p svc-tests --bin {SIMULATOR}`",
        program.display()
    );
    Err(Failure::new(Exit::Failed, "simulator_missing", words).into())
}

/// The absolute path, because the simulator is started in other directories.
fn scenario(path: &Path) -> Result<PathBuf, End> {
    path.canonicalize()
        .map_err(|error| refused(format!("--scenario {} cannot be used: {error}", path.display())))
}

struct Stage<'a> {
    call: &'a Call,
    demo: &'a Demo,
    tree: &'a Tree,
    simulator: PathBuf,
    scenario: Option<PathBuf>,
}

impl Stage<'_> {
    async fn play(&self, signals: &mut Signals) -> Result<(), End> {
        if let Some(note) = self.tree.build(&self.simulator)? {
            self.call.output.note(&note);
        }
        // Bound first: the configuration then names a port that nobody else can take.
        let listener = self.listen().await?;
        let around = self.surroundings(&listener)?;
        let mut running = Running::start(
            &around,
            Sockets { listener: Some(listener), ..Sockets::default() },
            None,
        )
        .await?;
        let told = self.tell(running.url());
        if told.is_ok() {
            start_samples(running.app()).await;
            start_jobs(running.app()).await;
            running.until_asked(signals).await;
        }
        // Nothing new may begin while what runs is stopped.
        running.app().shutdown().cancel();
        stop_everything(running.app()).await;
        running.end().await;
        self.tree.end_jobs(&self.simulator).await;
        told
    }

    async fn listen(&self) -> Result<TcpListener, End> {
        let port = self.demo.port.unwrap_or(0);
        TcpListener::bind(("127.0.0.1", port)).await.map_err(|error| {
            let words = format!(
                "cannot listen on 127.0.0.1:{port} ({error}); name a free port with --port, or none"
            );
            Failure::new(Exit::Failed, "bind", words).into()
        })
    }

    fn surroundings(&self, listener: &TcpListener) -> Result<Surroundings, End> {
        let options = DemoOptions {
            port: listener.local_addr().map_err(End::of_machine)?.port(),
            simulator: &self.simulator,
            scenario: self.scenario.as_deref(),
            seed: self.demo.seed,
        };
        let text = self.tree.config_text(&options);
        // For commands in another terminal; the demo itself goes by the text.
        svc_process::files::replace(&self.tree.config_file(), text.as_bytes())
            .map_err(|error| Failure::chain("demo", &error))?;
        let loaded = svc_config::load_text(&text, self.tree.root())?;
        Ok(Surroundings {
            config: loaded.config,
            origin: loaded.origin,
            config_file: None,
            variables: self.tree.variables(),
            umask: self.call.umask,
            demo: true,
        })
    }

    /// The address alone on standard output; the rest for people.
    fn tell(&self, url: &str) -> Result<(), End> {
        let output = self.call.output;
        let fate = if self.tree.is_kept() { "stops its bridges" } else { "stops and removes it" };
        output.note(&format!(
            "DEMO with sample projects and a simulated agent in {}; Ctrl-C {fate}",
            self.tree.root().display()
        ));
        output.note(&format!(
            "commands in another terminal find it by: export SVC_CONFIG={}",
            self.tree.config_file().display()
        ));
        output.line(url)?;
        if self.demo.open
            && let Err(error) = ::open::that_detached(url)
        {
            output.note(&format!("warning: no browser could be opened ({error}); visit {url}"));
        }
        Ok(())
    }
}

/// Starts the samples. In a kept tree, what ran last time continues.
/// A sample that does not start does not end the demo.
async fn start_samples(app: &App) {
    for (project, spawn_mode) in STARTED {
        let ended = app.read_model().snapshot();
        let ended = ended.instances().find(|one| one.project == project && one.resumable).cloned();
        let done = match ended {
            Some(one) => {
                let id = one.instance_id.to_string();
                app.bridges().resume(&id, ResumeRequest::default(), Duration::ZERO).await
            }
            None => app.bridges().spawn(sample(project, spawn_mode), Duration::ZERO).await,
        };
        if let Err(error) = done {
            tracing::warn!("the sample `{project}` was not started: {error}");
        }
    }
}

/// Starts the sample jobs, in a kept tree only the first time.
async fn start_jobs(app: &App) {
    if app.jobs().list().await.is_ok_and(|jobs| !jobs.is_empty()) {
        return;
    }
    for (project, prompt) in JOBS {
        let request = DispatchRequest {
            project: project.to_owned(),
            prompt: Some(prompt.to_owned()),
            ..DispatchRequest::default()
        };
        if let Err(error) = app.jobs().dispatch(request).await {
            tracing::warn!("the sample job of `{project}` was not started: {error}");
        }
    }
}

fn sample(project: &str, spawn_mode: &str) -> SpawnRequest {
    SpawnRequest {
        project: project.to_owned(),
        spawn_mode: Some(spawn_mode.to_owned()),
        ..SpawnRequest::default()
    }
}

/// Stops every bridge of the tree, each by its proven identity.
/// A start that was under way when the demo ended may appear late, so this repeats until there is
/// none.
async fn stop_everything(app: &App) {
    for _ in 0..3 {
        let live: Vec<Instance> =
            app.read_model().snapshot().instances().filter(|one| one.is_live()).cloned().collect();
        if live.is_empty() {
            return;
        }
        let mut stops = JoinSet::new();
        for instance in live {
            let app = app.clone();
            stops.spawn(async move {
                let id = instance.instance_id.to_string();
                if let Err(error) = app.bridges().stop(&id).await {
                    tracing::warn!(
                        "bridge {} was not stopped: {error}",
                        instance.instance_id.short()
                    );
                }
            });
        }
        stops.join_all().await;
    }
}
