//! The connection to the daemon: found, started when none listens, and found again.

use crate::agent::Agent;
use crate::tasks::{Tasks, blocking};
use crate::{AppError, Class};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use svc_agent::environment::Variables;
use svc_config::Config;
use svc_hosted::client::{CallError, Client, ConnectError};
use svc_hosted::start::{self, LONGEST_SOCKET_PATH, Start, StartError};
use svc_hosted::token;
use svc_shared::api::health::HostedHealth;
use svc_shared::error::ErrorCode;
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::time::Instant;

/// Pauses between tries to connect: from this, doubling to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// How often a daemon that was just started is asked whether it listens.
const POLL: Duration = Duration::from_millis(100);
/// The program's name while nobody configured another.
pub(crate) const PROGRAM: &str = "svc-hosted";

/// The one connection of this process to the daemon.
pub(crate) struct Link {
    pub config: Arc<Config>,
    pub agent: Arc<Agent>,
    pub tasks: Tasks,
    /// The connection; tells of a new one.
    current: watch::Sender<Option<Arc<Client>>>,
    health: Mutex<HostedHealth>,
    /// One at a time connects.
    connecting: AsyncMutex<()>,
}

impl Link {
    pub fn new(config: Arc<Config>, agent: Arc<Agent>, tasks: Tasks) -> Self {
        let health = HostedHealth {
            enabled: config.hosted.enabled,
            running: false,
            version: None,
            error: None,
        };
        Self {
            config,
            agent,
            tasks,
            current: watch::Sender::new(None),
            health: Mutex::new(health),
            connecting: AsyncMutex::default(),
        }
    }

    /// Whether the channel is switched on.
    pub fn is_enabled(&self) -> bool {
        self.config.hosted.enabled
    }

    /// How the daemon stands; `None` while the channel is off.
    pub fn health(&self) -> Option<HostedHealth> {
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner).clone();
        health.running = self.connected().is_some();
        if !health.running && health.error.is_none() && health.version.is_some() {
            health.error = Some("the connection to the daemon was lost".to_owned());
        }
        self.is_enabled().then_some(health)
    }

    /// The connection, if there is one now.
    pub fn connected(&self) -> Option<Arc<Client>> {
        self.current.borrow().clone().filter(|client| !client.closed().is_cancelled())
    }

    /// Tells of connections as they come.
    pub fn changes(&self) -> watch::Receiver<Option<Arc<Client>>> {
        self.current.subscribe()
    }

    /// The connection, made if there is none.
    ///
    /// # Errors
    /// The channel is off, or the daemon cannot be reached or started.
    pub async fn client(&self) -> Result<Arc<Client>, AppError> {
        if !self.is_enabled() {
            return Err(AppError::new(
                ErrorCode::HostedUnavailable,
                Class::Unavailable,
                "Direct Sessions are switched off; set `hosted.enabled` to true and restart svc",
            ));
        }
        if let Some(client) = self.connected() {
            return Ok(client);
        }
        let _turn = self.connecting.lock().await;
        if let Some(client) = self.connected() {
            return Ok(client);
        }
        let found = self.find().await;
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        match found {
            Ok(client) => {
                health.version = Some(client.capabilities().version.clone());
                health.error = None;
                drop(health);
                self.current.send_replace(Some(Arc::clone(&client)));
                Ok(client)
            }
            Err(why) => {
                health.error = Some(why.clone());
                Err(unavailable(&why))
            }
        }
    }

    /// Keeps the connection of a service.
    pub async fn keep(self: Arc<Self>) {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.client().await {
                Ok(client) => {
                    pause = FIRST_PAUSE;
                    tokio::select! {
                        () = client.closed().cancelled() => {}
                        () = self.tasks.shutdown().cancelled() => return,
                    }
                }
                Err(error) => {
                    tracing::warn!("the hosted-session daemon is not connected: {error}");
                }
            }
            // Spread, so that several do not come back at the same moment.
            let spread = getrandom::u32().unwrap_or(0) % 41;
            let wait = pause * (80 + spread) / 100;
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.tasks.shutdown().cancelled() => return,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn find(&self) -> Result<Arc<Client>, String> {
        let socket = self.config.hosted_socket();
        if socket.as_os_str().len() > LONGEST_SOCKET_PATH {
            return Err(format!(
                "the path of the daemon's socket is {} bytes long and may have \
                 {LONGEST_SOCKET_PATH}; set `hosted.socket_path`, or shorten `state_dir`",
                socket.as_os_str().len()
            ));
        }
        let token = self.token(&socket).await?;
        let limit = self.config.hosted.request_timeout;
        let refused = match self.connect(&socket, &token, limit).await {
            Ok(client) => return Ok(client),
            Err(error) => error,
        };
        match refused {
            ConnectError::Unreachable(_) => {}
            // A second daemon would take the sessions of the first from everybody.
            ConnectError::Rejected => {
                return Err(format!(
                    "{refused}: the file `hosted/token` in the state directory was replaced while \
                     the daemon ran; put the old one back, or end the daemon when no session runs"
                ));
            }
            other => return Err(other.to_string()),
        }
        let until = Instant::now() + self.config.hosted.spawn_timeout;
        self.start(&socket, &token).await?;
        loop {
            match self.connect(&socket, &token, limit).await {
                Ok(client) => return Ok(client),
                Err(ConnectError::Unreachable(_)) if Instant::now() < until => {
                    tokio::time::sleep(POLL).await;
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    async fn connect(
        &self,
        socket: &std::path::Path,
        token: &str,
        limit: Duration,
    ) -> Result<Arc<Client>, ConnectError> {
        let (client, reader) = Client::connect(socket, token.to_owned(), limit).await?;
        let shutdown = self.tasks.shutdown().clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = reader => {}
                () = shutdown.cancelled() => {}
            }
        });
        Ok(Arc::new(client))
    }

    async fn token(&self, socket: &std::path::Path) -> Result<String, String> {
        let dir = self.config.state_dir.join("hosted");
        let beside = socket.parent().map(PathBuf::from);
        let read = blocking(move || {
            for dir in beside.iter().chain([&dir]) {
                svc_process::files::private_directory(dir).map_err(|error| error.to_string())?;
            }
            token::read_or_create(&dir.join("token")).map_err(|error| error.to_string())
        })
        .await;
        read.map_err(|error| error.to_string())?
            .map_err(|error| format!("the token of the daemon cannot be read or written: {error}"))
    }

    async fn start(&self, socket: &std::path::Path, token: &str) -> Result<(), String> {
        let env = self.agent.environment();
        let hosted = &self.config.hosted;
        let program = program_of(&self.config, &env).map_err(|error| error.to_string())?;
        tracing::info!("starting the hosted-session daemon {}", program.display());
        start::start(&Start {
            program: &program,
            socket,
            token,
            keep_children: hosted.keep_children,
            env: &env,
            limit: hosted.spawn_timeout,
        })
        .await
        .map_err(|error| error.to_string())
    }
}

/// The program that is started as the daemon.
///
/// # Errors
/// There is none.
pub(crate) fn program_of(config: &Config, env: &Variables) -> Result<PathBuf, StartError> {
    let path = env.get(OsStr::new("PATH")).cloned().unwrap_or_default();
    start::find(&config.hosted.binary, PROGRAM, &path, &crate::ops::deps::directory(config))
}

fn unavailable(why: &str) -> AppError {
    AppError::new(
        ErrorCode::HostedUnavailable,
        Class::Unavailable,
        format!("the hosted-session daemon is not connected: {why}"),
    )
}

/// A failed call as the answer to a request.
pub(super) fn failed(error: CallError) -> AppError {
    match error {
        CallError::Unreachable => unavailable("it did not answer; try again in a moment"),
        CallError::Refused(error) => AppError::new(
            ErrorCode::HostedFailed,
            Class::Upstream,
            svc_domain::redact::redact_text(&format!(
                "the hosted-session daemon refused: {}",
                error.message
            )),
        ),
    }
}
