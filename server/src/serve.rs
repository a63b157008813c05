//! A running service: from the lock on its state directory to the last request.

use crate::compose::{self, ComposeError, Composed, Surroundings};
use crate::signals::Signals;
use crate::successor::{Handover, Successor};
use crate::tls;
use crate::twin::Twin;
use sd_notify::NotifyState;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use svc_app::upgrade::Order;
use svc_app::{App, AppError, ConfigEditor};
use svc_config::Config;
use svc_http::ServeOptions;
use svc_process::run_lock::{RunLock, RunLockError, RunRecord};
use svc_process::table::ProcTable;
use svc_tls::{Certificates, TlsError};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio_util::sync::CancellationToken;

/// Why the service does not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// The state directory cannot be made private.
    #[error("the state directory cannot be used")]
    StateDirectory(#[source] svc_process::files::FileError),
    /// Another server has it.
    #[error(transparent)]
    Lock(RunLockError),
    /// A part of the service is missing.
    #[error(transparent)]
    Compose(#[from] ComposeError),
    /// The address cannot be had.
    #[error("cannot listen on {address}: {words}")]
    Bind {
        /// Host and port as configured.
        address: String,
        /// Why, and what to do.
        words: String,
    },
    /// The certificate cannot be used.
    #[error("tls cannot be served")]
    Tls(#[from] TlsError),
    /// The registry cannot be read.
    #[error(transparent)]
    App(#[from] AppError),
    /// A defect, or the machine.
    #[error("the service cannot be started")]
    Io(#[from] io::Error),
}

impl StartError {
    /// The word for programs.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::StateDirectory(_) => "state_dir",
            Self::Lock(_) => "already_served",
            Self::Compose(error) => error.code,
            Self::Bind { .. } => "bind",
            Self::Tls(_) => "tls",
            Self::App(error) => error.code.as_str(),
            Self::Io(_) => "internal",
        }
    }
}

/// What there is to listen with before a service starts.
#[derive(Default)]
pub(crate) struct Sockets {
    /// It listens already.
    pub(crate) listener: Option<TcpListener>,
    /// It has the other loopback address, if a program before this one kept it.
    pub(crate) twin: Option<std::net::TcpListener>,
    /// Another process serves them when this one ends.
    pub(crate) is_lent: bool,
}

/// A service that serves.
pub(crate) struct Running {
    composed: Composed,
    url: String,
    serving: JoinHandle<io::Result<()>>,
    /// The same socket once more: it stays open for a successor while connections end.
    kept: std::net::TcpListener,
    successor: Option<Successor>,
    /// The other loopback address, which nobody else may have meanwhile.
    twin: Twin,
    /// Held until everything else has ended.
    lock: RunLock,
    /// Another process serves the socket when this one ends.
    is_lent: bool,
}

impl Running {
    /// Starts the service on an existing listener or on the configured address.
    pub(crate) async fn start(
        around: &Surroundings,
        sockets: Sockets,
        successor: Option<Successor>,
    ) -> Result<Self, StartError> {
        let Sockets { listener, twin: kept_twin, is_lent } = sockets;
        let mut lock = lock(around).await?;
        crate::logging::keep_in(&around.config.state_dir);
        // The port is settled only when it is bound, and that is done last: nobody may be told of
        // a service that then does not come up.
        let config = &around.config;
        let wanted = match &listener {
            Some(listener) => listener.local_addr()?.port(),
            None => config.port,
        };
        let composed = compose::server(around, wanted).await?;
        let certificates = tls::open(config).await?;
        let listener = match listener {
            Some(listener) => listener,
            None => bind(&config.host, config.port).await?,
        };
        let kept = listener.into_std()?;
        let listener = TcpListener::from_std(kept.try_clone()?)?;
        let address = listener.local_addr()?;
        let twin = Twin::keep(address, kept_twin).await;
        if let Twin::Taken(other) = &twin {
            tracing::warn!("{}; {}", crate::twin::words(*other), crate::twin::REMEDY);
        }
        let url = url(config, address, certificates.as_deref());
        let app = composed.app.clone();
        app.legacy().run().await?;
        app.supervise().await?;
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let options = ServeOptions::default().within(limit.unwrap_or(u64::MAX));
        let secure = certificates.as_ref().map(|certificates| certificates.config());
        if !around.demo {
            tokio::spawn(warn_of_other_accounts(app.clone()));
        }
        if let Some(certificates) = certificates {
            tokio::spawn(tls::keep(certificates, app.shutdown().clone()));
        }
        let serving = tokio::spawn(svc_http::serve(listener, app, options, secure));
        if let Err(error) = lock.set_address(url.clone()) {
            tracing::warn!("the address is not in the lock file: {error}");
        }
        if let Some(successor) = successor.clone() {
            let around = around.clone();
            composed.app.service_restart().enable(Box::new(move |order| {
                let (successor, around) = (successor.clone(), around.clone());
                Box::pin(async move { successor.check(&around, order.as_ref()).await })
            }));
        }
        notify(&[NotifyState::Ready]);
        Ok(Self { composed, url, serving, kept, successor, twin, lock, is_lent })
    }

    /// Address of the page.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn app(&self) -> &App {
        &self.composed.app
    }

    /// Version of the agent that would run now.
    pub(crate) async fn agent_version(&self) -> Option<String> {
        self.composed.agent_version().await
    }

    /// Serves until a signal, a restart, or until serving ends by itself.
    pub(crate) async fn until_asked(&mut self, signals: &mut Signals) {
        let restart = self.leaving();
        let reloads = reload_on(signals.hangups(), self.app().config_editor().clone());
        tokio::select! {
            biased; // serving ends at a restart too, and is no fault then
            () = feed_watchdog() => {}
            () = reloads => {}
            asked = signals.asked() => tracing::info!("ending, as asked by {asked:?}"),
            // Its manager goes on to see the same process, and hears of readiness once more.
            () = restart.cancelled() => return notify(&[NotifyState::Watchdog]),
            ended = &mut self.serving => {
                // Only a listener without an address ends it, or a defect.
                tracing::error!("serving ended by itself: {ended:?}");
            }
        }
        notify(&[NotifyState::Stopping]);
    }

    /// Cancelled when a restart begins.
    pub(crate) fn leaving(&self) -> CancellationToken {
        self.composed.app.service_restart().leaving().clone()
    }

    /// The other version that it ends for, if it ends for one.
    pub(crate) fn order(&self) -> Option<Order> {
        self.composed.app.service_restart().order().cloned()
    }

    /// Whether it ends to be replaced by another one.
    pub(crate) fn is_restarting(&self) -> bool {
        self.composed.app.service_restart().has_begun()
    }

    /// Ends requests and use-cases under way, each within ten seconds. Bridges stay.
    ///
    /// At a restart the socket stays open: who connects waits for the successor.
    pub(crate) async fn end(self) -> Option<Handover> {
        let is_restarting = self.is_restarting();
        let Self { composed, serving, kept, successor, twin, lock, is_lent, url: _ } = self;
        let next = successor.filter(|_| is_restarting).map(|successor| (successor, kept, twin));
        match (&next, is_lent) {
            (Some(_), _) => {}
            // Who comes now is served by the other process, so nobody needs to be sent away.
            (None, true) => composed.app.service_restart().leaving().cancel(),
            (None, false) => composed.app.shutdown().cancel(),
        }
        if !serving.is_finished() {
            // Its own deadline is inside.
            let _ = serving.await;
        }
        composed.app.close().await;
        next.map(|(successor, kept, twin)| successor.hand_over(kept, twin, lock))
    }
}

/// Says who else of this machine controls the service (H146).
/// Beside the start, because the list may come over a network.
async fn warn_of_other_accounts(app: App) {
    if let Some(words) = app.access().warning().await {
        tracing::warn!("{words}");
    }
}

/// Reads the configuration again whenever a signal asks for it.
async fn reload_on(hangups: Arc<Notify>, editor: Arc<ConfigEditor>) {
    loop {
        hangups.notified().await;
        Box::pin(editor.reload_by_signal()).await;
    }
}

async fn lock(around: &Surroundings) -> Result<RunLock, StartError> {
    let state_dir = around.config.state_dir.clone();
    spawn_blocking(move || {
        svc_process::files::private_directory(&state_dir).map_err(StartError::StateDirectory)?;
        let table = ProcTable::open().map_err(io::Error::other)?;
        let record = RunRecord::of_this_process(&table, compose::now().as_millis())?;
        RunLock::take(&state_dir, record).map_err(StartError::Lock)
    })
    .await
    .map_err(io::Error::other)?
}

/// Connections that wait to be taken.
///
/// A crowd that comes at once fills a shorter queue, and whoever finds it full tries again after a
/// second (H76).
const WAITING: i32 = 4096;

/// Takes an address, or says what is in the way.
pub(crate) async fn bind(host: &str, port: u16) -> Result<TcpListener, StartError> {
    let listener = TcpListener::bind((host, port)).await.map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::AddrInUse => {
                "another program listens there; stop that one, or set another `port`"
            }
            io::ErrorKind::AddrNotAvailable => {
                "this machine does not have that address; correct `host`"
            }
            io::ErrorKind::PermissionDenied => {
                "this user may not use that port; set `port` to one above 1023"
            }
            _ => "correct `host` and `port`",
        };
        StartError::Bind { address: format!("{host}:{port}"), words: format!("{remedy} ({error})") }
    })?;
    // The same call again sets the length alone. Without it the queue is only shorter.
    let _ = rustix::net::listen(&listener, WAITING);
    Ok(listener)
}

/// The address of the page: under TLS one that the certificate is for.
fn url(config: &Config, address: SocketAddr, certificates: Option<&Certificates>) -> String {
    let root = &config.root_path;
    let Some(facts) = certificates.map(Certificates::facts) else {
        return format!("http://{}{root}/", shown(&config.host, address));
    };
    let own = shown(&config.host, address);
    let bare = own.rsplit_once(':').map_or(own.as_str(), |(host, _)| host);
    // Behind a star nobody knows which name is ours.
    let named = facts.names.iter().find(|name| !name.starts_with("*."));
    match named {
        Some(name) if !facts.covers(bare) => {
            format!("https://{}{root}/", shown(name, address))
        }
        Some(_) | None => format!("https://{own}{root}/"),
    }
}

/// The address to type: the configured host, and brackets around an IPv6 address.
///
/// Not `localhost`: that is two addresses, and only one of them is ours.
fn shown(host: &str, address: SocketAddr) -> String {
    if host == "localhost" {
        address.to_string()
    } else if host.contains(':') {
        format!("[{host}]:{}", address.port())
    } else {
        format!("{host}:{}", address.port())
    }
}

/// Tells the service manager for ever that this loop still turns (H113).
///
/// It belongs beside what the main loop waits for, and into no task of its own: a task would go on
/// when the loop hangs.
pub(crate) async fn feed_watchdog() {
    let Some(limit) = sd_notify::watchdog_enabled() else { return std::future::pending().await };
    // A manager that sets no time would be told all the time.
    let mut tick = tokio::time::interval((limit / 2).max(Duration::from_millis(10)));
    loop {
        tick.tick().await;
        notify(&[NotifyState::Watchdog]);
    }
}

/// Tells the service manager, where there is one.
pub(crate) fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!("the service manager was not told: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_as_it_is_typed_into_a_browser() {
        let four: SocketAddr = "127.0.0.1:7621".parse().unwrap();
        let six: SocketAddr = "[::1]:7621".parse().unwrap();
        assert_eq!(shown("svc.localhost", four), "svc.localhost:7621");
        // Somebody else may have the other address of that name.
        assert_eq!(shown("localhost", four), "127.0.0.1:7621");
        assert_eq!(shown("localhost", six), "[::1]:7621");
        assert_eq!(shown("::1", six), "[::1]:7621");
    }

    #[tokio::test]
    async fn a_taken_port_is_explained() {
        let taken = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = bind("127.0.0.1", port).await.unwrap_err().to_string();
        assert!(error.contains(&format!("127.0.0.1:{port}")), "{error}");
        assert!(error.contains("another `port`"), "{error}");
        let error = bind("203.0.113.7", port).await.unwrap_err().to_string();
        assert!(error.contains("correct `host`"), "{error}");
    }
}
