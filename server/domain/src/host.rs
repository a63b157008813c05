//! The `Host` rules against DNS rebinding (`http-api` §5.8, H1, H2).

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::origin::Origin;

/// Longest name the domain name system knows, in bytes.
const NAME: usize = 253;

/// The host part of an address, in the one form that is compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A canonical IPv4 address.
    V4(Ipv4Addr),
    /// A canonical IPv6 address, brackets removed.
    V6(Ipv6Addr),
    /// Any other well-formed host: a name in lower case without a trailing dot.
    /// Addresses in other notations (`127.1`, `0x7f000001`, `[0:0:0:0:0:0:0:1]`) are read as names
    /// too, and so match nothing.
    Name(String),
}

impl Host {
    /// Reads a host without a port.
    /// `None` for text that can be no host: empty, white space, user part, path, zone, non-ASCII,
    /// empty labels.
    #[must_use]
    pub fn parse(raw: &str) -> Option<Self> {
        if let Some(inner) = raw.strip_prefix('[') {
            let text = inner.strip_suffix(']')?.to_ascii_lowercase();
            let address: Ipv6Addr = text.parse().ok()?;
            let canonical = address.to_string() == text;
            return Some(if canonical {
                Self::V6(address)
            } else {
                Self::Name(format!("[{text}]"))
            });
        }
        let name = raw.strip_suffix('.').unwrap_or(raw).to_ascii_lowercase();
        let letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
        let label = |label: &str| !label.is_empty() && label.bytes().all(letter);
        if name.len() > NAME || !name.split('.').all(label) {
            return None;
        }
        // The standard parser takes four decimal numbers without leading zeros and nothing else.
        Some(name.parse().map_or(Self::Name(name), Self::V4))
    }
}

impl fmt::Display for Host {
    /// As it stands in an address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(address) => write!(f, "{address}"),
            Self::V6(address) => write!(f, "[{address}]"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// Host and port that a request names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// The host.
    pub host: Host,
    /// The port, when one was written.
    pub port: Option<u16>,
}

impl Authority {
    /// Reads `host` or `host:port`.
    ///
    /// # Errors
    /// [`BadHost::Malformed`] for every edge form of H2.
    pub fn parse(raw: &str) -> Result<Self, BadHost> {
        let (host, port) = match raw.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            Some(_) | None => (raw, None),
        };
        let port = port.map(|port| parse_port(port).ok_or(BadHost::Malformed)).transpose()?;
        Ok(Self { host: Host::parse(host).ok_or(BadHost::Malformed)?, port })
    }

    /// Whether two spellings mean one authority; a default port may be left out.
    fn means(&self, other: &Self) -> bool {
        let default = |port: Option<u16>| port.is_none_or(|port| port == 80 || port == 443);
        self.host == other.host
            && (self.port == other.port || default(self.port) && default(other.port))
    }
}

/// A port in decimal digits without leading zeros.
pub(crate) fn parse_port(raw: &str) -> Option<u16> {
    let plain = raw.bytes().all(|b| b.is_ascii_digit()) && !raw.starts_with('0');
    raw.parse().ok().filter(|_| plain)
}

/// Why a request names no host; answered 400.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadHost {
    /// No `Host` header.
    #[error("the request has no Host header; send one")]
    Missing,
    /// More than one.
    #[error("the request has more than one Host header; send exactly one")]
    Repeated,
    /// Not `name`, `name:port`, `address:port` or `[address]:port`.
    #[error("the Host header is not a host with an optional port")]
    Malformed,
    /// The request target names another authority than the header.
    #[error("the request target and the Host header name different hosts")]
    Contradicted,
}

/// Version of the protocol a request came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.0, where `Host` is optional. No browser sends it.
    Http10,
    /// HTTP/1.1: exactly one `Host`.
    Http11,
    /// HTTP/2 and later, where the target's authority takes its place.
    Http2,
}

/// The authority that a request names, in its `Host` values and its target.
/// `Ok(None)`: it names none, and none is required.
///
/// # Errors
/// What makes the request malformed.
pub fn authority<'h>(
    protocol: Protocol,
    headers: impl IntoIterator<Item = &'h [u8]>,
    target: Option<&str>,
) -> Result<Option<Authority>, BadHost> {
    let mut headers = headers.into_iter();
    let header = match (headers.next(), headers.next()) {
        (_, Some(_)) => return Err(BadHost::Repeated),
        (Some(raw), None) => {
            let raw = std::str::from_utf8(raw).map_err(|_| BadHost::Malformed)?;
            Some(Authority::parse(raw)?)
        }
        (None, None) => None,
    };
    let target = target.map(Authority::parse).transpose()?;
    match (header, target) {
        (Some(header), Some(target)) if !header.means(&target) => Err(BadHost::Contradicted),
        (Some(header), _) => Ok(Some(header)),
        (None, target) => match protocol {
            Protocol::Http10 => Ok(target),
            Protocol::Http11 => Err(BadHost::Missing),
            Protocol::Http2 => target.map(Some).ok_or(BadHost::Missing),
        },
    }
}

/// The names this server answers to, besides addresses and `localhost`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowedHosts {
    names: Vec<String>,
    /// With the leading dot.
    suffixes: Vec<String>,
}

impl AllowedHosts {
    /// Collects the accepted host names.
    /// They are the configured bind host, the hosts of the listed origins, and `auth.allowed_hosts`
    /// (`name` or `*.suffix`). Entries that can never match are left out.
    #[must_use]
    pub fn new<'o>(
        bind_host: &str,
        origins: impl IntoIterator<Item = &'o Origin>,
        extra: &[impl AsRef<str>],
    ) -> Self {
        let mut allowed = Self::default();
        allowed.add(Host::parse(bind_host));
        for origin in origins {
            allowed.add(Some(origin.host().clone()));
        }
        for entry in extra.iter().map(|entry| entry.as_ref().trim()) {
            match entry.strip_prefix("*.") {
                Some(suffix) => allowed.suffixes.extend(match Host::parse(suffix) {
                    Some(Host::Name(name)) => Some(format!(".{name}")),
                    Some(Host::V4(_) | Host::V6(_)) | None => None,
                }),
                None => allowed.add(Host::parse(entry)),
            }
        }
        allowed
    }

    fn add(&mut self, host: Option<Host>) {
        // Addresses are allowed anyway.
        if let Some(Host::Name(name)) = host {
            self.names.push(name);
        }
    }

    /// Whether a request for this authority may be answered.
    /// A request without an authority was not sent by a browser.
    #[must_use]
    pub fn allows(&self, authority: Option<&Authority>) -> bool {
        match authority.map(|authority| &authority.host) {
            None | Some(Host::V4(_) | Host::V6(_)) => true,
            Some(Host::Name(name)) => {
                name == "localhost"
                    || name.ends_with(".localhost")
                    || self.names.contains(name)
                    || self
                        .suffixes
                        .iter()
                        .any(|suffix| name.len() > suffix.len() && name.ends_with(suffix.as_str()))
            }
        }
    }
}

/// What proves that a request with a foreign `Host` comes from no rebound page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// No proof: no credential, a cookie, or authentication is off.
    /// A cookie proves nothing here. A rebound page would not have ours, but others may.
    None,
    /// A valid Bearer, metrics token or trusted proxy: a page cannot send it by itself.
    Credential,
}

/// What is asked for, as far as the `Host` rule cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// `/healthz`: probes use service names.
    Health,
    /// Everything else.
    Other,
}

/// What the `Host` rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum HostVerdict {
    /// Go on.
    Serve,
    /// Answer only the minimal health body, whatever else the request carries.
    MinimalHealth,
    /// 421 `host_not_allowed`.
    Misdirected,
}

/// Decides by the `Host` rule.
pub fn decide(
    allowed: &AllowedHosts,
    authority: Option<&Authority>,
    proof: Proof,
    asked: Asked,
) -> HostVerdict {
    match (allowed.allows(authority), proof, asked) {
        (true, _, _) | (false, Proof::Credential, _) => HostVerdict::Serve,
        (false, Proof::None, Asked::Health) => HostVerdict::MinimalHealth,
        (false, Proof::None, Asked::Other) => HostVerdict::Misdirected,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn listed() -> AllowedHosts {
        let origin = Origin::parse("https://svc.example.org:8443").unwrap();
        AllowedHosts::new("bridges.lan", [&origin], &["Probe.internal.", "*.tail.example", "*", ""])
    }

    /// 200, 421 or 400 for one `Host` header over HTTP/1.1.
    fn status(host: &str) -> u16 {
        match authority(Protocol::Http11, [host.as_bytes()], None) {
            Err(_) => 400,
            Ok(authority) => {
                match decide(&listed(), authority.as_ref(), Proof::None, Asked::Other) {
                    HostVerdict::Serve => 200,
                    HostVerdict::MinimalHealth => 0,
                    HostVerdict::Misdirected => 421,
                }
            }
        }
    }

    #[test]
    fn h1_addresses_localhost_and_listed_names_are_served() {
        for host in [
            "127.0.0.1:9999",
            "127.0.0.1",
            "[::1]",
            "[::1]:7621",
            "[2001:DB8::1]:7621",
            "192.168.1.5",
            "LOCALHOST",
            "localhost.",
            "svc.localhost",
            "a.b.localhost:1",
            "bridges.lan:7621",
            "BRIDGES.lan.",
            "svc.example.org",
            "svc.example.org:1",
            "probe.internal",
            "a.tail.example",
            "a.b.tail.example:80",
        ] {
            assert_eq!(status(host), 200, "{host}");
        }
    }

    #[test]
    fn h1_other_names_are_misdirected() {
        for host in [
            "evil.example:7621",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "evillocalhost",
            "tail.example",
            "eviltail.example",
            "x.svc.example.org",
            // No canonical address: a resolver may be asked for these.
            "127.1",
            "0x7f.0.0.1",
            "0177.0.0.1",
            "2130706433",
            "127.0.0.1.1",
            "[0:0:0:0:0:0:0:1]",
        ] {
            assert_eq!(status(host), 421, "{host}");
        }
    }

    #[test]
    fn h2_malformed_hosts_are_bad_requests() {
        for host in [
            "",
            " ",
            ".",
            ":7621",
            "localhost:",
            "localhost:80a",
            "localhost:+80",
            "localhost:080",
            "localhost:65536",
            "localhost:80:80",
            "localhost@evil",
            "user:pw@localhost",
            "evil.example#localhost",
            "evil.example/localhost",
            "evil.example?localhost",
            "localhost\\evil",
            "localhost evil",
            " localhost",
            "localhost\t",
            "localhost,evil.example",
            "a..b",
            ".localhost",
            "localhost..",
            "*.tail.example",
            "loc%61lhost",
            "ｌocalhost",
            "::1",
            "[::1",
            "::1]",
            "[::1]x",
            "[::1]:",
            "[::1%eth0]",
            "[fe80::1%25eth0]:80",
            "[127.0.0.1]",
            "[]",
            "http://localhost",
        ] {
            assert_eq!(status(host), 400, "{host:?}");
        }
        assert_eq!(status(&format!("{}.localhost", "a".repeat(300))), 400);
        assert_eq!(authority(Protocol::Http11, [&b"\xff"[..]], None), Err(BadHost::Malformed));
    }

    #[test]
    fn h2_a_host_is_named_once_and_without_contradiction() {
        let two = [&b"localhost"[..], &b"localhost"[..]];
        assert_eq!(authority(Protocol::Http11, two, None), Err(BadHost::Repeated));
        assert_eq!(authority(Protocol::Http11, [], None), Err(BadHost::Missing));
        assert_eq!(authority(Protocol::Http11, [], Some("localhost")), Err(BadHost::Missing));
        assert_eq!(authority(Protocol::Http2, [], None), Err(BadHost::Missing));
        assert_eq!(authority(Protocol::Http10, [], None), Ok(None));

        let target = |host: &str, target: &str| {
            authority(Protocol::Http11, [host.as_bytes()], Some(target)).map(|_| ())
        };
        assert_eq!(target("localhost", "evil.example"), Err(BadHost::Contradicted));
        assert_eq!(target("localhost:7621", "localhost:7622"), Err(BadHost::Contradicted));
        assert_eq!(target("localhost", "a@localhost"), Err(BadHost::Malformed));
        assert_eq!(target("LOCALHOST:80", "localhost"), Ok(()));
        let two_forms = authority(Protocol::Http2, [], Some("[::1]:7621"));
        assert_eq!(two_forms, Authority::parse("[::1]:7621").map(Some));
    }

    #[test]
    fn a_foreign_host_is_excused_by_a_credential_and_reads_minimal_health() {
        let evil = Authority::parse("evil.example").unwrap();
        let verdict = |proof, asked| decide(&listed(), Some(&evil), proof, asked);
        assert_eq!(verdict(Proof::None, Asked::Other), HostVerdict::Misdirected);
        assert_eq!(verdict(Proof::None, Asked::Health), HostVerdict::MinimalHealth);
        assert_eq!(verdict(Proof::Credential, Asked::Other), HostVerdict::Serve);
        assert_eq!(verdict(Proof::Credential, Asked::Health), HostVerdict::Serve);
    }

    #[test]
    fn a_wildcard_bind_address_allows_no_name() {
        for bind in ["0.0.0.0", "::", "[::]", ""] {
            let allowed = AllowedHosts::new(bind, [], &[] as &[&str]);
            assert!(!allowed.allows(Some(&Authority::parse("evil.example").unwrap())), "{bind}");
            assert!(allowed.allows(Some(&Authority::parse("10.0.0.1").unwrap())), "{bind}");
        }
    }

    proptest! {
        #[test]
        fn no_header_panics_and_no_odd_one_is_served(
            raw in prop::collection::vec(any::<u8>(), 0..40),
            spiced in "[a-z0-9.:@/#%\\[\\] \\-]{0,24}",
        ) {
            for bytes in [raw.as_slice(), spiced.as_bytes()] {
                let Ok(Some(found)) = authority(Protocol::Http11, [bytes], None) else { continue };
                let odd = bytes.iter().any(|b| {
                    !(b.is_ascii_alphanumeric() || b".-_:[]".contains(b))
                });
                prop_assert!(!odd, "{found:?}");
            }
        }

        #[test]
        fn any_address_is_served_with_any_port(
            v4: [u8; 4], v6: [u16; 8], port in 1_u16..,
        ) {
            let v4 = Ipv4Addr::from(v4);
            let v6 = Ipv6Addr::from(v6);
            prop_assert_eq!(status(&format!("{v4}:{port}")), 200);
            prop_assert_eq!(status(&format!("[{v6}]:{port}")), 200);
        }
    }
}
