//! Which addresses events may be posted to (H48).
//!
//! The addresses are told apart by the rule of clones (H45).

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use svc_config::Config;
use svc_domain::clones::address::{Reachable, classify};

/// The rule of one installation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    /// Nothing is posted to private networks and this machine, for this reason.
    pub no_private: Option<Refused>,
    /// The port that this service listens on.
    pub own_port: u16,
    /// The address that this service listens on.
    pub own_address: Option<IpAddr>,
}

/// Why nothing is posted to an address. Never names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    /// A private network or this machine.
    #[error(
        "its host is in a private network or on this machine, which \
         `webhooks.block_private_targets` forbids"
    )]
    Private,
    /// The same, at the address that a browser gave.
    #[error(
        "its host is in a private network or on this machine, where no browser has notifications taken"
    )]
    PrivatePush,
    /// This service itself.
    #[error("it is the address of this service itself")]
    OwnListener,
}

/// What holds for a request.
///
/// It is asked for each, because the configuration may change meanwhile.
#[derive(Clone)]
pub(super) struct Terms(Arc<dyn Fn() -> (Rule, Duration) + Send + Sync>);

impl Terms {
    /// The rule of the addresses, and the longest time of a request.
    pub fn new(now: impl Fn() -> (Rule, Duration) + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Those of webhooks and of notifications.
    ///
    /// `port` is the one that this service listens on.
    pub fn of(config: &Arc<Config>, port: u16) -> Self {
        let config = Arc::clone(config);
        Self::new(move || (Rule::of(&config, port), config.webhooks.timeout))
    }

    /// Those of addresses that browsers give.
    pub fn of_browsers(config: &Arc<Config>, port: u16) -> Self {
        let config = Arc::clone(config);
        Self::new(move || (Rule::of_browsers(&config, port), config.webhooks.timeout))
    }

    /// Which addresses are allowed now.
    pub fn rule(&self) -> Rule {
        (self.0)().0
    }

    /// The longest time that a request may take now.
    pub fn timeout(&self) -> Duration {
        (self.0)().1
    }
}

impl Rule {
    /// The rule of webhooks and of notifications.
    ///
    /// `port` is the one that this service listens on.
    pub fn of(config: &Config, port: u16) -> Self {
        Self {
            no_private: config.webhooks.block_private_targets.then_some(Refused::Private),
            own_port: port,
            own_address: config.host.parse().ok(),
        }
    }

    /// The rule of addresses that browsers give: whoever is signed in chooses them.
    pub fn of_browsers(config: &Config, port: u16) -> Self {
        Self { no_private: Some(Refused::PrivatePush), ..Self::of(config, port) }
    }

    /// Judges an address that is about to be dialled.
    pub fn judge(&self, address: IpAddr, port: u16) -> Result<(), Refused> {
        let canonical = address.to_canonical();
        let is_here = canonical.is_loopback()
            || canonical.is_unspecified()
            || self.own_address == Some(canonical);
        if let Some(refused) = self.no_private
            && classify(address) != Reachable::Public
        {
            Err(refused)
        } else if is_here && port == self.own_port {
            Err(Refused::OwnListener)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use url::Url;

    /// Judges the host of a URL, as text that stands for an address.
    #[track_caller]
    fn of(url: &str, block_private: bool) -> Result<(), Refused> {
        let no_private = block_private.then_some(Refused::Private);
        let rule = Rule { no_private, own_port: 8787, own_address: None };
        let url = Url::parse(url).unwrap();
        let address = match url.host().unwrap() {
            url::Host::Ipv4(v4) => IpAddr::V4(v4),
            url::Host::Ipv6(v6) => IpAddr::V6(v6),
            url::Host::Domain(name) => panic!("{name} has to be resolved"),
        };
        rule.judge(address, url.port_or_known_default().unwrap())
    }

    #[test]
    fn h45_h48_addresses_in_every_notation_are_judged_by_what_is_dialled() {
        for host in [
            "0.0.0.0",
            "0",
            "127.1",
            "2130706433",
            "0x7f000001",
            "017700000001",
            "①②⑦.0.0.1",
            "[::]",
            "[::1]",
            "[::ffff:169.254.169.254]",
            "[::ffff:10.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:1::]",
            "169.254.169.254",
            "100.64.0.1",
            "10.1.2.3",
            "192.168.0.1",
        ] {
            assert_eq!(of(&format!("http://{host}/x"), true), Err(Refused::Private), "{host}");
            assert_eq!(of(&format!("http://{host}/x"), false), Ok(()), "{host}");
        }
        assert_eq!(of("https://1.1.1.1/x", true), Ok(()));
    }

    #[test]
    fn the_own_listener_is_never_posted_to() {
        for url in ["http://127.0.0.1:8787/", "http://[::1]:8787/x", "http://[::ffff:7f00:1]:8787"]
        {
            assert_eq!(of(url, false), Err(Refused::OwnListener), "{url}");
        }
        assert_eq!(of("http://127.0.0.1:8788/", false), Ok(()));
        assert_eq!(of("http://10.0.0.1:8787/", false), Ok(()));
    }
}
