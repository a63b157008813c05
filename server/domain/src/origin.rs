//! The Origin guard: may a page send this request? (`http-api` §5.4, §4.1)
//!
//! A pure table for H3, H4 and H7. Who the caller is has been decided before.

use std::fmt;

use crate::host::{Host, parse_port};

/// Scheme of an origin a browser can have here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Scheme {
    Http,
    Https,
}

impl Scheme {
    fn word(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// An http or https origin in its one normal form; equal origins are one origin.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    scheme: Scheme,
    host: Host,
    port: u16,
}

/// Why a text is no origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not an http or https origin; write scheme, host and optional port, such as https://svc.example.org"
)]
pub struct BadOrigin;

impl Origin {
    /// Reads an `Origin` header: scheme, host, optional port and nothing else.
    ///
    /// # Errors
    /// For `null`, lists, user parts, paths (a lone slash too), trailing dots and non-ASCII hosts.
    pub fn parse(raw: &str) -> Result<Self, BadOrigin> {
        let (scheme, rest) = raw.split_once("://").ok_or(BadOrigin)?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return Err(BadOrigin),
        };
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, parse_port(port).ok_or(BadOrigin)?)
            }
            Some(_) | None => (rest, scheme.default_port()),
        };
        if host.ends_with('.') {
            return Err(BadOrigin);
        }
        let host = Host::parse(host).ok_or(BadOrigin)?;
        Ok(Self { scheme, host, port })
    }

    /// Reads an entry of `auth.allowed_origins`.
    /// People write it with blanks around it or with one slash at the end.
    ///
    /// # Errors
    /// When it is no origin and so can never match.
    pub fn parse_entry(raw: &str) -> Result<Self, BadOrigin> {
        let raw = raw.trim();
        Self::parse(raw.strip_suffix('/').unwrap_or(raw))
    }

    /// The same at another port.
    #[must_use]
    pub fn with_port(&self, port: u16) -> Self {
        Self { port, ..self.clone() }
    }

    /// The host part.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme.word())?;
        write!(f, "{}", self.host)?;
        if self.port == self.scheme.default_port() { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

/// The origins that may write.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowedOrigins(Vec<Origin>);

impl AllowedOrigins {
    /// The origins of a server bound to `bind_host` at `port`, and the configured ones.
    /// `port` is the real port, when an arbitrary one was configured.
    ///
    /// A loopback bind allows its three names at that port; every other bind allows nothing by
    /// itself. Entries that are no origin are left out; the configuration warns about them.
    #[must_use]
    pub fn new(bind_host: &str, port: u16, extra: &[impl AsRef<str>]) -> Self {
        let mut allowed = Vec::new();
        if is_loopback(bind_host) {
            for scheme in [Scheme::Http, Scheme::Https] {
                for host in ["127.0.0.1", "localhost", "[::1]"] {
                    allowed.extend(Host::parse(host).map(|host| Origin { scheme, host, port }));
                }
            }
        }
        allowed.extend(extra.iter().filter_map(|entry| Origin::parse_entry(entry.as_ref()).ok()));
        Self(allowed)
    }

    /// The origins, for the `Host` rule.
    pub fn iter(&self) -> impl Iterator<Item = &Origin> {
        self.0.iter()
    }

    /// What the `Origin` values of a request amount to.
    pub fn judge<'h>(&self, values: impl IntoIterator<Item = &'h [u8]>) -> Presented {
        let mut values = values.into_iter();
        let Some(first) = values.next() else {
            return Presented::Absent;
        };
        let origin = std::str::from_utf8(first).ok().and_then(|raw| Origin::parse(raw).ok());
        match (origin, values.next()) {
            (Some(origin), None) if self.0.contains(&origin) => Presented::Listed,
            _ => Presented::Foreign,
        }
    }
}

/// Whether a configured `host` is one of the three that only this machine reaches.
#[must_use]
pub fn is_loopback(bind_host: &str) -> bool {
    let host = bind_host.trim().to_ascii_lowercase();
    matches!(host.as_str(), "127.0.0.1" | "::1" | "[::1]" | "localhost")
}

/// What a request says about the page it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presented {
    /// No `Origin`.
    Absent,
    /// An allowed one.
    Listed,
    /// Another one, `null`, a malformed one, or several.
    Foreign,
}

/// The `Sec-Fetch-Site` of a request; browsers send it, pages cannot set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchSite {
    /// Not sent.
    Absent,
    /// The page of this server.
    SameOrigin,
    /// The person, by address bar or bookmark.
    User,
    /// Another origin (`same-site`, `cross-site`).
    Elsewhere,
    /// Unknown to us, or several values that do not say `Elsewhere`.
    Unclear,
}

impl FetchSite {
    /// Reads all values of the header.
    pub fn read<'h>(values: impl IntoIterator<Item = &'h [u8]>) -> Self {
        values.into_iter().map(Self::one).fold(Self::Absent, |sum, value| match (sum, value) {
            (Self::Absent, value) => value,
            (Self::Elsewhere, _) | (_, Self::Elsewhere) => Self::Elsewhere,
            _ => Self::Unclear,
        })
    }

    fn one(value: &[u8]) -> Self {
        match value.trim_ascii().to_ascii_lowercase().as_slice() {
            b"same-origin" => Self::SameOrigin,
            b"none" => Self::User,
            b"same-site" | b"cross-site" => Self::Elsewhere,
            _ => Self::Unclear,
        }
    }
}

/// What authenticated the request (`http-api` §5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    /// Authentication is off.
    AuthOff,
    /// Nothing, and no Bearer was presented.
    None,
    /// Nothing: the presented Bearer does not verify.
    WrongBearer,
    /// A session cookie, which a browser adds by itself.
    Cookie,
    /// A trusted proxy, with or without a signature.
    /// The browser behind it has a cookie of the proxy's own.
    Proxy,
    /// A Bearer token.
    Bearer,
    /// The scrape token, which opens `/metrics` and nothing else.
    Metrics,
}

/// How a request enters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// A method that changes nothing.
    Read,
    /// A method that may change something.
    Write,
    /// `POST /login`, which takes no credential.
    Login,
    /// The handshake of a WebSocket.
    Socket,
}

impl Entry {
    /// The entry of an ordinary request. Unknown methods count as writes.
    #[must_use]
    pub fn of_method(method: &str) -> Self {
        match method {
            "GET" | "HEAD" | "OPTIONS" => Self::Read,
            _ => Self::Write,
        }
    }
}

/// What the guard says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum OriginVerdict {
    /// Go on.
    Pass,
    /// 403 `origin_check_failed`.
    Refused,
    /// 401 `auth_required`.
    Unauthenticated,
}

/// Decides by the table of `http-api` §5.4, with the stricter rows of §4.1.
pub fn decide(
    entry: Entry,
    credential: Credential,
    presented: Presented,
    site: FetchSite,
) -> OriginVerdict {
    use OriginVerdict::{Pass, Refused, Unauthenticated};
    let absent = match (entry, presented) {
        (Entry::Read, _) => return Pass,
        (Entry::Login, Presented::Listed) => return Pass,
        (_, Presented::Foreign) => return Refused,
        (Entry::Write | Entry::Socket, Presented::Listed) => {
            return match credential {
                Credential::None | Credential::WrongBearer | Credential::Metrics => Unauthenticated,
                Credential::AuthOff
                | Credential::Cookie
                | Credential::Proxy
                | Credential::Bearer => Pass,
            };
        }
        (Entry::Login | Entry::Write | Entry::Socket, Presented::Absent) => credential,
    };
    match absent {
        // Only a browser says where it comes from.
        Credential::AuthOff => match site {
            FetchSite::Elsewhere => Refused,
            FetchSite::Absent | FetchSite::SameOrigin | FetchSite::User | FetchSite::Unclear => {
                Pass
            }
        },
        Credential::None | Credential::Cookie => Refused,
        Credential::WrongBearer | Credential::Metrics if entry == Entry::Login => Refused,
        Credential::WrongBearer | Credential::Metrics => Unauthenticated,
        // Browsers always send an Origin with a handshake.
        Credential::Proxy if entry == Entry::Socket => Refused,
        Credential::Proxy => match site {
            FetchSite::Absent | FetchSite::SameOrigin | FetchSite::User => Pass,
            FetchSite::Elsewhere | FetchSite::Unclear => Refused,
        },
        Credential::Bearer => Pass,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn loopback() -> AllowedOrigins {
        AllowedOrigins::new(
            "127.0.0.1",
            7621,
            &["https://SVC.example.org:443/", "http://[2001:DB8::1]:8080", "ftp://x", "null", "x"],
        )
    }

    fn judge(raw: &str) -> Presented {
        loopback().judge([raw.as_bytes()])
    }

    #[test]
    fn h7_equal_origins_match_in_every_spelling() {
        for raw in [
            "http://127.0.0.1:7621",
            "https://127.0.0.1:7621",
            "http://localhost:7621",
            "HTTP://LOCALHOST:7621",
            "http://[::1]:7621",
            "https://svc.example.org",
            "https://svc.example.org:443",
            "HTTPS://Svc.Example.ORG",
            "http://[2001:db8::1]:8080",
        ] {
            assert_eq!(judge(raw), Presented::Listed, "{raw}");
        }
    }

    #[test]
    fn h7_nothing_that_resembles_a_listed_origin_matches() {
        for raw in [
            "",
            "null",
            "http://127.0.0.1:7621.evil.example",
            "http://127.0.0.1:7621@evil",
            "http://user@127.0.0.1:7621",
            "http://127.0.0.1:76210",
            "http://127.0.0.1:07621",
            "http://127.0.0.1",
            "http://127.0.0.1:",
            "http://127.0.0.2:7621",
            "http://127.1:7621",
            "http://svc.example.org",
            "https://svc.example.org.",
            "https://svc.example.org/",
            "https://svc.example.org/x",
            "https://svc.example.org?x",
            "https://svc.example.org#x",
            "https://svc.example.org https://evil",
            "http://127.0.0.1:7621, http://evil.example",
            " http://127.0.0.1:7621",
            "http:127.0.0.1:7621",
            "//127.0.0.1:7621",
            "ftp://127.0.0.1:7621",
            "http://ｌocalhost:7621",
            "http://[0:0:0:0:0:0:0:1]:7621",
            "http://[::1%lo]:7621",
            "http://::1:7621",
            "https://evilsvc.example.org",
        ] {
            assert_eq!(judge(raw), Presented::Foreign, "{raw:?}");
        }
        let twice = [&b"http://127.0.0.1:7621"[..], &b"http://127.0.0.1:7621"[..]];
        assert_eq!(loopback().judge(twice), Presented::Foreign);
        assert_eq!(loopback().judge([&b"\xff"[..]]), Presented::Foreign);
        assert_eq!(loopback().judge([]), Presented::Absent);
    }

    #[test]
    fn only_a_loopback_bind_allows_origins_by_itself() {
        let local = &b"http://localhost:7621"[..];
        for (bind, expected) in [
            ("127.0.0.1", Presented::Listed),
            ("localhost", Presented::Listed),
            ("LocalHost", Presented::Listed),
            ("::1", Presented::Listed),
            ("[::1]", Presented::Listed),
            ("0.0.0.0", Presented::Foreign),
            ("::", Presented::Foreign),
            ("192.168.1.5", Presented::Foreign),
            ("", Presented::Foreign),
        ] {
            let allowed = AllowedOrigins::new(bind, 7621, &[] as &[&str]);
            assert_eq!(allowed.judge([local]), expected, "{bind:?}");
        }
    }

    #[test]
    fn a_loopback_server_at_a_default_port_matches_its_own_pages() {
        let allowed = AllowedOrigins::new("localhost", 80, &[] as &[&str]);
        assert_eq!(allowed.judge([&b"http://localhost"[..]]), Presented::Listed);
        assert_eq!(allowed.judge([&b"https://localhost:80"[..]]), Presented::Listed);
        assert_eq!(allowed.judge([&b"https://localhost"[..]]), Presented::Foreign);
    }

    #[test]
    fn an_origin_is_written_in_normal_form() {
        for (raw, normal) in [
            (" HTTPS://Svc.Example.org:443/ ", "https://svc.example.org"),
            ("http://[2001:DB8::1]:8080", "http://[2001:db8::1]:8080"),
            ("http://10.0.0.1:80", "http://10.0.0.1"),
        ] {
            assert_eq!(Origin::parse_entry(raw).unwrap().to_string(), normal);
        }
        assert_eq!(Origin::parse_entry("https://a.b//"), Err(BadOrigin));
    }

    const SITES: [FetchSite; 5] = [
        FetchSite::Absent,
        FetchSite::SameOrigin,
        FetchSite::User,
        FetchSite::Elsewhere,
        FetchSite::Unclear,
    ];

    /// Checks one row of the table.
    /// It has the answers for an absent (without `Sec-Fetch-Site`), a listed and a foreign origin.
    #[track_caller]
    fn row(entry: Entry, credential: Credential, expected: [u16; 3]) {
        let columns = [Presented::Absent, Presented::Listed, Presented::Foreign];
        for (presented, expected) in columns.into_iter().zip(expected) {
            let status = status(entry, credential, presented, FetchSite::Absent);
            assert_eq!(status, expected, "{entry:?} {credential:?} {presented:?}");
        }
    }

    fn status(e: Entry, c: Credential, p: Presented, s: FetchSite) -> u16 {
        match decide(e, c, p, s) {
            OriginVerdict::Pass => 200,
            OriginVerdict::Refused => 403,
            OriginVerdict::Unauthenticated => 401,
        }
    }

    #[test]
    fn h4_every_cell_for_writes() {
        row(Entry::Write, Credential::AuthOff, [200, 200, 403]);
        row(Entry::Write, Credential::None, [403, 401, 403]);
        row(Entry::Write, Credential::WrongBearer, [401, 401, 403]);
        row(Entry::Write, Credential::Cookie, [403, 200, 403]);
        row(Entry::Write, Credential::Proxy, [200, 200, 403]);
        row(Entry::Write, Credential::Bearer, [200, 200, 403]);
    }

    #[test]
    fn h4_the_login_takes_no_credential_but_a_listed_origin() {
        for credential in [Credential::None, Credential::WrongBearer, Credential::Cookie] {
            row(Entry::Login, credential, [403, 200, 403]);
        }
    }

    #[test]
    fn h3_every_cell_for_sockets() {
        row(Entry::Socket, Credential::AuthOff, [200, 200, 403]);
        row(Entry::Socket, Credential::None, [403, 401, 403]);
        row(Entry::Socket, Credential::WrongBearer, [401, 401, 403]);
        row(Entry::Socket, Credential::Cookie, [403, 200, 403]);
        row(Entry::Socket, Credential::Proxy, [403, 200, 403]);
        row(Entry::Socket, Credential::Bearer, [200, 200, 403]);
    }

    #[test]
    fn reading_needs_no_origin() {
        for credential in [Credential::AuthOff, Credential::None, Credential::Cookie] {
            row(Entry::Read, credential, [200, 200, 200]);
        }
    }

    #[test]
    fn what_a_browser_says_about_the_site_counts_only_without_an_origin() {
        let by_site = |entry, credential, presented| {
            SITES.map(|site| status(entry, credential, presented, site))
        };
        let absent = Presented::Absent;
        assert_eq!(by_site(Entry::Write, Credential::AuthOff, absent), [200, 200, 200, 403, 200]);
        assert_eq!(by_site(Entry::Socket, Credential::AuthOff, absent), [200, 200, 200, 403, 200]);
        assert_eq!(by_site(Entry::Write, Credential::Proxy, absent), [200, 200, 200, 403, 403]);
        assert_eq!(by_site(Entry::Socket, Credential::Proxy, absent), [403; 5]);
        assert_eq!(by_site(Entry::Write, Credential::Bearer, absent), [200; 5]);
        assert_eq!(by_site(Entry::Write, Credential::Cookie, absent), [403; 5]);
        for credential in [Credential::AuthOff, Credential::Proxy, Credential::Cookie] {
            assert_eq!(by_site(Entry::Write, credential, Presented::Listed), [200; 5]);
            assert_eq!(by_site(Entry::Write, credential, Presented::Foreign), [403; 5]);
        }
    }

    #[test]
    fn the_site_header_is_read_with_suspicion() {
        let read = |values: &[&str]| FetchSite::read(values.iter().map(|v| v.as_bytes()));
        assert_eq!(read(&[]), FetchSite::Absent);
        assert_eq!(read(&["same-origin"]), FetchSite::SameOrigin);
        assert_eq!(read(&[" NONE "]), FetchSite::User);
        assert_eq!(read(&["same-site"]), FetchSite::Elsewhere);
        assert_eq!(read(&["cross-site"]), FetchSite::Elsewhere);
        assert_eq!(read(&["same-origin", "cross-site"]), FetchSite::Elsewhere);
        assert_eq!(read(&["same-origin", "same-origin"]), FetchSite::Unclear);
        assert_eq!(read(&["", "none"]), FetchSite::Unclear);
    }

    #[test]
    fn methods_that_may_change_something_are_guarded() {
        for method in ["POST", "PUT", "PATCH", "DELETE", "TRACE", "get", "PROPFIND"] {
            assert_eq!(Entry::of_method(method), Entry::Write, "{method}");
        }
        for method in ["GET", "HEAD", "OPTIONS"] {
            assert_eq!(Entry::of_method(method), Entry::Read, "{method}");
        }
    }

    proptest! {
        #[test]
        fn no_origin_panics_and_only_exact_ones_are_listed(
            raw in "(?i)(https?://)?[a-z0-9.:@/#\\[\\], ]{0,24}", bytes: Vec<u8>,
        ) {
            let _ = loopback().judge([bytes.as_slice()]);
            if judge(&raw) == Presented::Listed {
                let normal = Origin::parse(&raw).unwrap();
                prop_assert!(loopback().iter().any(|origin| *origin == normal));
                prop_assert!(raw.to_ascii_lowercase().starts_with(&normal.to_string()));
            }
        }

        #[test]
        fn the_normal_form_reads_back_as_itself(raw in "https?://[a-z0-9.\\-]{1,20}(:[1-9][0-9]{0,3})?") {
            if let Ok(origin) = Origin::parse(&raw) {
                prop_assert_eq!(Origin::parse(&origin.to_string()), Ok(origin));
            }
        }
    }
}
