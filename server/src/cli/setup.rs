//! The first run: a page that writes the configuration (`command-line` §9).
//!
//! `svc run` shows it when there is no configuration, and then continues as the service.

use crate::cli::call::Call;
use crate::cli::config::{ShownWarnings, loaded};
use crate::cli::exit_code::Exit;
use crate::cli::failure::{End, Failure};
use crate::logging;
use crate::serve::{bind, notify};
use crate::signals::Signals;
use sd_notify::NotifyState;
use std::path::Path;
use std::sync::Arc;
use svc_app::setup::{Fixed, Reached, Setup, foresee, is_loopback_host};
use svc_config::{Candidate, Environment, Found, Loaded};
use tokio::net::TcpListener;
use tokio::task::block_in_place;

const HOST: &str = "SVC_SETUP_HOST";
const PORT: &str = "SVC_SETUP_PORT";
/// What tells that a container is around us.
const CONTAINER_FILES: [&str; 2] = ["/.dockerenv", "/run/.containerenv"];

/// A first run that can be served.
pub(crate) struct FirstRun {
    target: Found,
    fixed: Fixed,
    /// The configuration to be, as far as the environment decides it.
    foreseen: Loaded,
    wanted: Reached,
}

/// How a first run ended.
pub(crate) enum Outcome {
    /// By a signal, before anything was written.
    Asked,
    /// With a configuration, and with its socket where that is bound already.
    Configured(Box<Loaded>, Option<TcpListener>),
}

impl FirstRun {
    /// Reads the settings of page and new configuration from the environment.
    /// Also starts the log.
    pub(crate) fn prepare(call: &Call, searched: &[Candidate]) -> Result<Self, End> {
        let Some(first) = searched.first() else {
            let words = "no place for a configuration is known; name a file with -c";
            return Err(Failure::new(Exit::Refused, "config_missing", words).into());
        };
        let target =
            Found { path: first.path.clone(), step: first.step, searched: searched.to_vec() };
        let wanted = wanted(&call.environment)?;
        let (fixed, foreseen) = foresee(&target, &call.environment)?;
        logging::start(foreseen.config.log_format.into(), foreseen.config.log_level);
        crate::safety::report_panics();
        Ok(Self { target, fixed, foreseen, wanted })
    }

    /// Serves the page until somebody has filled it in, or a signal asks for an end.
    pub(crate) async fn serve(self, call: &Call, signals: &mut Signals) -> Result<Outcome, End> {
        let Self { target, fixed, foreseen, wanted } = self;
        let config = &foreseen.config;
        let is_elsewhere = (config.host.as_str(), config.port) != (&wanted.host, wanted.port);
        if (fixed.host.is_some() || fixed.port.is_some()) && is_elsewhere {
            // Decided by the environment: nothing on the page could put it right.
            bind(&config.host, config.port).await.map_err(refused)?;
        }
        let listener = bind(&wanted.host, wanted.port).await.map_err(refused)?;
        let port = listener.local_addr().map_err(End::of_machine)?.port();
        let reached = Reached { host: wanted.host, port };
        let (environment, file) = (call.environment.clone(), target.path.clone());
        let setup = block_in_place(|| Setup::new(target, environment, reached.clone(), fixed));
        let setup = Arc::new(setup.map_err(End::of_machine)?);
        // The second handle keeps the socket, and whoever knocks meanwhile, for the service.
        let listener = listener.into_std().map_err(End::of_machine)?;
        let kept = listener.try_clone().map_err(End::of_machine)?;
        let listener = TcpListener::from_std(listener).map_err(End::of_machine)?;
        tell(call, &setup, &file);
        notify(&[NotifyState::Ready]);
        tokio::select! {
            served = svc_http::serve_setup(listener, Arc::clone(&setup)) => {
                served.map_err(End::of_machine)?;
            }
            _ = signals.asked() => return Ok(Outcome::Asked),
        }
        let loaded = block_in_place(|| loaded(call, ShownWarnings::All))?;
        let config = &loaded.config;
        let listener = match (config.host.as_str(), config.port) == (&reached.host, reached.port) {
            true => Some(TcpListener::from_std(kept).map_err(End::of_machine)?),
            false => setup.take_bound(),
        };
        Ok(Outcome::Configured(Box::new(loaded), listener))
    }
}

fn refused(error: crate::serve::StartError) -> End {
    match End::from(error) {
        End::Failure(failure) => Failure { exit: Exit::Refused, ..failure }.into(),
        other @ (End::Unread | End::Signal(_)) => other,
    }
}

/// Where the page is wanted.
fn wanted(environment: &Environment) -> Result<Reached, End> {
    let text = |name: &str| match environment.value(name).map(|value| value.to_str()) {
        None => Ok(None),
        Some(Some(text)) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
        Some(None) => Err(Failure::new(
            Exit::Refused,
            "config",
            format!("{name} is not UTF-8; correct or unset it"),
        )),
    };
    let port = match text(PORT)? {
        None => 7621,
        Some(typed) => typed.parse().ok().filter(|port| *port > 0).ok_or_else(|| {
            let words = format!("{PORT} must be a number from 1 to 65535; correct or unset it");
            Failure::new(Exit::Refused, "config", words)
        })?,
    };
    Ok(Reached { host: text(HOST)?.unwrap_or("127.0.0.1").to_owned(), port })
}

/// Says where the page is. The token stands here once and nowhere else.
fn tell(call: &Call, setup: &Setup, file: &Path) {
    let Reached { host, port } = setup.reached();
    let is_unspecified =
        |host: &str| host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_unspecified());
    let shown = match host.as_str() {
        host if is_unspecified(host) => "<this-host>".to_owned(),
        host if host.contains(':') => format!("[{host}]"),
        host => host.to_owned(),
    };
    let query = setup.token().map(|token| format!("?token={token}")).unwrap_or_default();
    call.output.note(&format!(
        "no configuration yet; to write {}, open http://{shown}:{port}/{query}",
        file.display()
    ));
    call.output.note("`svc demo` needs none; Ctrl-C ends this without writing anything");
    let is_contained = CONTAINER_FILES.iter().any(|file| Path::new(file).exists())
        || call.environment.value("container").is_some();
    if is_contained && is_loopback_host(host) {
        call.output.note(&format!(
            "this looks like a container, whose loopback address is not reached from outside; \
             {HOST}=0.0.0.0 makes the page reachable, behind a one-time token"
        ));
    }
}
