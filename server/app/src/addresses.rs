//! The addresses of a name, for connections that go only where they may (H46, H48).
//!
//! Whoever connects judges every answer and dials one of these answers. A service with fail points
//! can be given other answers and other machines behind addresses, for tests.

use crate::failpoint;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Longest time for a name (`command-line.md` §11).
const RESOLVE: Duration = Duration::from_secs(10);
/// Most addresses that are tried.
const MOST: usize = 16;

/// Who resolves; names the settings of a test.
#[derive(Debug, Clone, Copy)]
pub(crate) enum For {
    /// A clone.
    Clone,
    /// A webhook.
    Webhook,
}

impl For {
    fn dns(self) -> &'static str {
        match self {
            Self::Clone => "clone.dns",
            Self::Webhook => "webhook.dns",
        }
    }

    fn dial(self) -> &'static str {
        match self {
            Self::Clone => "clone.dial",
            Self::Webhook => "webhook.dial",
        }
    }

    /// The addresses of a name. Never empty.
    ///
    /// # Errors
    /// It has none, or the name service does not answer in time.
    pub async fn resolve(self, name: &str, port: u16) -> io::Result<Vec<IpAddr>> {
        let found: Vec<IpAddr> = match self.answers_of_test(name) {
            Some(answers) => answers,
            None => {
                let asked = tokio::net::lookup_host((name, port));
                let found = tokio::time::timeout(RESOLVE, asked)
                    .await
                    .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
                found.map(|address| address.ip()).take(MOST).collect()
            }
        };
        if found.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(found) }
    }

    /// What a test says instead of the resolver: `host:answers|later answers/other:…`.
    fn answers_of_test(self, name: &str) -> Option<Vec<IpAddr>> {
        let all = failpoint::setting(self.dns())?;
        let answers = all
            .split('/')
            .find_map(|entry| entry.strip_prefix(name)?.strip_prefix(':'))?
            .to_owned();
        let turn = failpoint::count(&format!("{} {name}", self.dns()));
        let rounds: Vec<&str> = answers.split('|').collect();
        let round = rounds.get(turn).or(rounds.last())?;
        Some(round.split(',').filter_map(|address| address.parse().ok()).collect())
    }

    /// Where a test has the service behind an address: `1.1.1.1:443>127.0.0.1:5000,…`.
    pub fn dialled(self, address: SocketAddr) -> SocketAddr {
        let Some(all) = failpoint::setting(self.dial()) else { return address };
        let mut pairs = all.split(',').filter_map(|pair| pair.split_once('>'));
        let found = pairs.find(|(from, _)| from.parse() == Ok(address));
        found.and_then(|(_, to)| to.parse().ok()).unwrap_or(address)
    }
}
