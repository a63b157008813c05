//! Which addresses a clone may dial (H45, H46).
//!
//! A name is resolved once, every answer is judged, and only these answers are dialled.

use crate::failpoint;
use crate::{AppError, Class};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use svc_config::Config;
use svc_domain::clones::address::{Blocked, judge};
use svc_domain::clones::source::{Host, Source};
use svc_shared::error::ErrorCode;
use tokio::net::TcpStream;

/// Longest time for a name (`command-line.md` §11).
const RESOLVE: Duration = Duration::from_secs(10);
/// Longest time for one address to answer.
const CONNECT: Duration = Duration::from_secs(10);
/// Most addresses that are tried.
const MOST: usize = 16;

/// The checked addresses of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route(Vec<SocketAddr>);

impl Route {
    /// Resolves the host of a source and judges every answer.
    ///
    /// # Errors
    /// It has no address, or one of them may not be dialled.
    pub async fn find(config: &Config, source: &Source) -> Result<Self, AppError> {
        if source.is_this_machine() {
            return Err(refused(Blocked::Never));
        }
        let addresses = match &source.host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => resolved(name, source.port).await?,
        };
        let clone = &config.clone;
        let is_allowed = |address: IpAddr| {
            let in_range = |range: &String| {
                range.parse::<ipnet::IpNet>().is_ok_and(|range| range.contains(&address))
            };
            clone.allow_private_hosts || clone.allowed_private_cidrs.iter().any(in_range)
        };
        // One bad answer spoils all: which of them is dialled would be chance.
        for address in &addresses {
            judge(*address, &is_allowed).map_err(refused)?;
        }
        let port = source.port;
        Ok(Self(addresses.into_iter().map(|address| SocketAddr::new(address, port)).collect()))
    }

    /// Connects to the first address that answers.
    pub async fn connect(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in &self.0 {
            match tokio::time::timeout(CONNECT, TcpStream::connect(dialled(*address))).await {
                Ok(Ok(stream)) => return Ok((stream, *address)),
                Ok(Err(error)) => failed = error,
                Err(_) => failed = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(failed)
    }
}

fn refused(why: Blocked) -> AppError {
    let message = format!("this repository is not cloned: {why}");
    AppError::new(ErrorCode::CloneBlocked, Class::Forbidden, message)
}

async fn resolved(name: &str, port: u16) -> Result<Vec<IpAddr>, AppError> {
    let unknown = || {
        AppError::invalid(
            "the host of `url` has no address; check its spelling and the name service of this \
             machine",
        )
    };
    let found: Vec<IpAddr> = match answers_of_test(name) {
        Some(answers) => answers,
        None => {
            let asked = tokio::net::lookup_host((name, port));
            let found = tokio::time::timeout(RESOLVE, asked).await.map_err(|_| unknown())?;
            let found = found.map_err(|error| unknown().because(error))?;
            found.map(|address| address.ip()).take(MOST).collect()
        }
    };
    if found.is_empty() { Err(unknown()) } else { Ok(found) }
}

/// What a test says instead of the resolver: `host:answers|later answers/other:…`.
fn answers_of_test(name: &str) -> Option<Vec<IpAddr>> {
    let all = failpoint::setting("clone.dns")?;
    let answers =
        all.split('/').find_map(|entry| entry.strip_prefix(name)?.strip_prefix(':'))?.to_owned();
    let turn = failpoint::count(&format!("clone.dns {name}"));
    let rounds: Vec<&str> = answers.split('|').collect();
    let round = rounds.get(turn).or(rounds.last())?;
    Some(round.split(',').filter_map(|address| address.parse().ok()).collect())
}

/// Where a test has the service behind an address: `1.1.1.1:443>127.0.0.1:5000,…`.
fn dialled(address: SocketAddr) -> SocketAddr {
    let Some(all) = failpoint::setting("clone.dial") else { return address };
    let mut pairs = all.split(',').filter_map(|pair| pair.split_once('>'));
    let found = pairs.find(|(from, _)| from.parse() == Ok(address));
    found.and_then(|(_, to)| to.parse().ok()).unwrap_or(address)
}
