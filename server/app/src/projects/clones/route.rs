//! Which addresses a clone may dial (H45, H46).
//!
//! A name is resolved once, every answer is judged, and only these answers are dialled.

use crate::addresses::For;
use crate::{AppError, Class};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use svc_config::Config;
use svc_domain::clones::address::{Blocked, judge};
use svc_domain::clones::source::{Host, Source};
use svc_shared::error::ErrorCode;
use tokio::net::TcpStream;

/// Longest time for one address to answer.
const CONNECT: Duration = Duration::from_secs(10);

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
            match tokio::time::timeout(CONNECT, TcpStream::connect(For::Clone.dialled(*address)))
                .await
            {
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
    For::Clone.resolve(name, port).await.map_err(|error| {
        AppError::invalid(
            "the host of `url` has no address; check its spelling and the name service of this \
             machine",
        )
        .because(error)
    })
}
