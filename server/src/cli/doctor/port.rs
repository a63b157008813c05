//! Checks for commands only: `port`, and `server` when something answers there.
//!
//! The service itself holds its port and would only find itself.

use crate::ask::{Ask, Target};
use crate::compose::Surroundings;
use crate::twin;
use hyper::Method;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use svc_app::certificates::source;
use svc_app::doctor::{failed, passed, warned};
use svc_config::Config;
use svc_process::run_lock::RunLock;
use svc_process::table::ProcTable;
use svc_shared::internal::Check;
use tokio::net::{TcpSocket, lookup_host};

/// For everything that a listener may let us wait for.
const PATIENCE: Duration = Duration::from_secs(5);

/// `port`, and also `server` when a program that speaks HTTP uses the port.
pub(super) async fn checks(around: &Surroundings) -> Vec<Check> {
    let config = &around.config;
    let (host, port) = (config.host.as_str(), config.port);
    let mut checks = own_port(around, host, port).await;
    let bound = address_of_service(around).await;
    if let Some(other) = twin::stranger(host, port, bound).await {
        checks.push(warned("port", twin::words(other), twin::REMEDY));
    }
    checks
}

async fn own_port(around: &Surroundings, host: &str, port: u16) -> Vec<Check> {
    let config = &around.config;
    match bindable(host, port).await {
        Ok(()) => vec![passed("port", format!("{port} free"))],
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let mut checks = vec![in_use(around, port).await];
            let answered = tokio::time::timeout(PATIENCE, health(config));
            checks.extend(server(answered.await.ok().flatten()));
            checks
        }
        Err(error) => vec![warned(
            "port",
            format!("{host}:{port} cannot be bound: {error}"),
            "correct host and port; ports below 1024 are for root",
        )],
    }
}

/// Tries the address without listening on it, so that nobody can connect meanwhile.
async fn bindable(host: &str, port: u16) -> io::Result<()> {
    let mut last = Ok(());
    for address in lookup_host((host, port)).await? {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4(),
            SocketAddr::V6(_) => TcpSocket::new_v6(),
        }?;
        // As the service binds: a connection that just ended is no obstacle.
        socket.set_reuseaddr(true)?;
        match socket.bind(address) {
            Ok(()) => return Ok(()),
            Err(error) => last = Err(error),
        }
    }
    last
}

/// The address that the running service of this state directory has.
async fn address_of_service(around: &Surroundings) -> Option<IpAddr> {
    let state_dir = around.config.state_dir.clone();
    let read = tokio::task::spawn_blocking(move || {
        let record = RunLock::read(&state_dir).ok().flatten()?;
        record.is_alive(&ProcTable::open().ok()?)?.then_some(record.address)?
    });
    let url = read.await.ok().flatten()?;
    let host = url.split_once("://")?.1.split('/').next()?;
    host.parse::<SocketAddr>().ok().map(|address| address.ip())
}

async fn in_use(around: &Surroundings, port: u16) -> Check {
    let state_dir = around.config.state_dir.clone();
    let ours = tokio::task::spawn_blocking(move || {
        let record = RunLock::read(&state_dir).ok().flatten()?;
        record.is_alive(&ProcTable::open().ok()?)?.then_some(record.pid)
    });
    match ours.await.ok().flatten() {
        // As it is meant to be.
        Some(pid) => passed("port", format!("{port} in use by this service (process {pid})")),
        None => warned(
            "port",
            format!("{port} in use, by another program"),
            "stop that program, or set another `port`",
        ),
    }
}

/// What `/healthz` answered: status and the words of a refusal.
struct Health {
    status: u16,
    detail: String,
    /// The certificate that was shown is not the one of the configuration.
    is_other_certificate: bool,
}

/// `None` when nobody answers in HTTP.
async fn health(config: &Config) -> Option<Health> {
    // A wildcard is bound but not called.
    let called = match config.host.as_str() {
        "0.0.0.0" => "127.0.0.1",
        "::" => "::1",
        other => other,
    };
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let (port, root) = (config.port, &config.root_path);
    let url = match called.contains(':') {
        true => format!("{scheme}://[{called}]:{port}{root}/"),
        false => format!("{scheme}://{called}:{port}{root}/"),
    };
    let target = Target::parse(&url).ok()?;
    let ask = Ask { method: Method::GET, path: "/healthz", headers: Vec::new() };
    let answer = target.ask(&ask).await.ok()?;
    let detail = serde_json::from_slice::<serde_json::Value>(&answer.body)
        .ok()
        .and_then(|body| Some(body.get("detail")?.as_str()?.to_owned()))
        .unwrap_or_default();
    let own = source(config).and_then(|source| source.look().ok());
    let shown = target.seen.certificate();
    let is_other_certificate = match (own, shown) {
        (Some(own), Some(shown)) => own.certificate() != shown.as_slice(),
        _ => false,
    };
    Some(Health { status: answer.status, detail, is_other_certificate })
}

fn server(answer: Option<Health>) -> Option<Check> {
    let Health { status, detail, is_other_certificate } = answer?;
    Some(match status {
        200 if is_other_certificate => warned(
            "server",
            "the certificate that is shown is not the one of the configuration",
            "restart the service, or end the program that has its port",
        ),
        200 => passed("server", "/healthz answers 200"),
        other => {
            let detail: String = detail.chars().take(200).collect();
            let colon = if detail.is_empty() { "" } else { ": " };
            failed(
                "server",
                format!("/healthz answers {other}{colon}{detail}"),
                "another program has the port, or a proxy is in between; see `port` and `host`",
            )
        }
    })
}
