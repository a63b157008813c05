//! The other loopback address at our port.
//!
//! A browser that is given `localhost` tries `::1` before 127.0.0.1. A program of another account
//! that listens there would be given the cookie and the password. So the other address is kept
//! from others, and a listener that is there already is told of, at the start and by doctor.

use rustix::io::fcntl_dupfd_cloexec;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream};

/// A listener on loopback answers at once or not at all.
const PATIENCE: Duration = Duration::from_secs(1);

/// The other loopback address as we found it.
#[derive(Debug)]
pub(crate) enum Twin {
    /// It is ours as long as this lives: nobody else can listen there.
    ///
    /// Bound and not listening: who connects is refused at once.
    Kept(OwnedFd),
    /// Another program listens there.
    Taken(SocketAddr),
    /// There is none: this machine has one family, or we have both addresses ourselves.
    None,
}

impl Twin {
    /// Takes the other address of a bound one, if it can be had.
    ///
    /// `inherited` is what the program before this one kept: a restart leaves no gap.
    pub(crate) async fn keep(bound: SocketAddr, inherited: Option<TcpListener>) -> Self {
        let Some(other) = other(bound.ip(), bound.port()) else { return Self::None };
        if let Some(inherited) = inherited.filter(|it| it.local_addr().is_ok_and(|at| at == other))
        {
            return Self::Kept(inherited.into());
        }
        let socket = match other {
            SocketAddr::V4(_) => TcpSocket::new_v4(),
            SocketAddr::V6(_) => TcpSocket::new_v6(),
        };
        // No reuse of addresses: nobody else may share it.
        let bound = socket.and_then(|socket| {
            socket.bind(other)?;
            Ok(fcntl_dupfd_cloexec(&socket, 0)?)
        });
        match bound {
            Ok(socket) => Self::Kept(socket),
            Err(_) => match is_listened_at(other).await {
                true => Self::Taken(other),
                false => Self::None,
            },
        }
    }

    /// The socket that keeps it, to be handed on.
    pub(crate) fn socket(&self) -> Option<&OwnedFd> {
        match self {
            Self::Kept(socket) => Some(socket),
            Self::Taken(_) | Self::None => None,
        }
    }
}

/// Another program that listens where a browser would look for a service at `host`.
///
/// `bound` is the address that the service of this state directory has, while it runs.
pub(crate) async fn stranger(host: &str, port: u16, bound: Option<IpAddr>) -> Option<SocketAddr> {
    let candidates = match bound.or_else(|| host.parse().ok()) {
        Some(address) => other(address, port).into_iter().collect(),
        // Nobody has the name yet, so every loopback address matters.
        None if host == "localhost" => {
            let both = [IpAddr::V6(Ipv6Addr::LOCALHOST), IpAddr::V4(Ipv4Addr::LOCALHOST)];
            both.map(|address| SocketAddr::new(address, port)).to_vec()
        }
        None => Vec::new(),
    };
    for candidate in candidates {
        if is_listened_at(candidate).await {
            return Some(candidate);
        }
    }
    None
}

/// What to say about it.
pub(crate) fn words(other: SocketAddr) -> String {
    format!(
        "another program listens at {other}, which browsers may try first for `localhost`: they \
         would give it the password"
    )
}

/// What to do about it.
pub(crate) const REMEDY: &str =
    "end that program or set another `port`, and use the address that the service prints";

fn other(bound: IpAddr, port: u16) -> Option<SocketAddr> {
    let other = match bound {
        // A wildcard of IPv4 has no address of IPv6. One of IPv6 has both, or the start fails.
        IpAddr::V4(address) if address.is_loopback() || address.is_unspecified() => {
            IpAddr::V6(Ipv6Addr::LOCALHOST)
        }
        IpAddr::V6(address) if address.is_loopback() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V4(_) | IpAddr::V6(_) => return None,
    };
    Some(SocketAddr::new(other, port))
}

async fn is_listened_at(address: SocketAddr) -> bool {
    matches!(tokio::time::timeout(PATIENCE, TcpStream::connect(address)).await, Ok(Ok(_)))
}
