//! Evaluates what a request presents, in the order of `http-api` §5.1.

use crate::auth::known::is_same;
use crate::auth::proxy::Signed;
use crate::auth::ticket::{Purpose, Ticket};
use crate::auth::{Auth, ELEVATION, sha256_hex};
use std::net::IpAddr;
use svc_config::CookieSecure;
use svc_domain::credentials::{self, Bearer, bearer};
use svc_domain::origin::Credential;
use svc_domain::peer;
use svc_domain::scope::{Reach, Scope};
use svc_domain::throttle::Key;
use svc_shared::Timestamp;

/// What a request presents.
pub struct Claim<'r> {
    /// Address of the connection; forwarding headers never change it.
    pub peer: IpAddr,
    /// The method as it came.
    pub method: &'r str,
    /// The path as it came, without query.
    pub path: &'r str,
    /// All values of a header.
    pub header: &'r dyn Fn(&str) -> Vec<&'r [u8]>,
}

/// Who sends a request.
#[derive(Debug, Clone)]
pub struct Caller {
    /// What was proved, for the guard.
    pub credential: Credential,
    /// Who it is, if anybody.
    pub identity: Option<Identity>,
    /// Whose attempts at a password it shares.
    pub throttle_key: Key,
    /// The connection is encrypted, as far as can be known.
    pub is_https: bool,
    /// It presents the metrics token, also where nobody is asked.
    pub is_scraper: bool,
}

/// Somebody who was let in.
#[derive(Debug, Clone)]
pub struct Identity {
    /// By which way.
    pub channel: Channel,
    /// What they may do.
    pub reach: Reach,
    pub(super) validity: Validity,
}

/// The way somebody came in by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Channel {
    /// Nobody is asked.
    Off,
    /// A browser session.
    Cookie,
    /// A named token.
    Token(String),
    /// The token of `auth.api_token_hash`.
    UnnamedToken,
    /// A user that a trusted proxy names.
    Proxy(String),
}

impl Channel {
    /// The word for the page.
    #[must_use]
    pub fn method(&self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Cookie => "cookie",
            Self::Token(_) | Self::UnnamedToken => "token",
            Self::Proxy(_) => "proxy",
        }
    }
}

impl std::fmt::Display for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Cookie => f.write_str("cookie"),
            Self::Token(label) => write!(f, "token:{label}"),
            Self::UnnamedToken => f.write_str("token"),
            Self::Proxy(user) => write!(f, "proxy:{user}"),
        }
    }
}

/// What must stay true for a credential to hold.
#[derive(Debug, Clone)]
pub(super) enum Validity {
    /// Nothing: it changes with the configuration, and that needs a restart.
    Fixed,
    Session {
        hash: String,
        epoch: u64,
        expires: Timestamp,
    },
    Token {
        hash: String,
        expires: Option<Timestamp>,
    },
}

impl Auth {
    /// Who sends a request. Changes nothing; call [`Auth::refresh`] before.
    #[must_use]
    pub fn identify(&self, claim: &Claim<'_>) -> Caller {
        let signed = Signed {
            method: claim.method,
            path: claim.path,
            now_seconds: self.now().as_millis().div_euclid(1000),
        };
        let named = self.proxy.named(claim.peer, signed, |name| (claim.header)(name));
        let throttle_key = match &named {
            Some(named) if named.is_signed => Key::ProxyUser(named.user.clone()),
            _ if self.proxy.is_enabled() && self.proxy.trusts(claim.peer) => {
                Key::SharedProxy(claim.peer)
            }
            _ => Key::peer(claim.peer),
        };
        let mut caller = Caller {
            credential: Credential::AuthOff,
            identity: None,
            throttle_key,
            is_https: self.is_https(claim),
            is_scraper: false,
        };
        if !self.enabled {
            if let Bearer::Token(token) = bearer((claim.header)("authorization")) {
                caller.is_scraper = is_configured(self.metrics_token.as_ref(), token);
            }
            let channel = Channel::Off;
            caller.identity =
                Some(Identity { channel, reach: Reach::Full, validity: Validity::Fixed });
            return caller;
        }
        let (credential, identity) = match named {
            Some(named) => (Credential::Proxy, Some(fixed(Channel::Proxy(named.user)))),
            None => match bearer((claim.header)("authorization")) {
                Bearer::Token(token) => self.by_token(token),
                Bearer::Broken => (Credential::WrongBearer, None),
                Bearer::Absent => match self.by_cookie(claim) {
                    Some(identity) => (Credential::Cookie, Some(identity)),
                    None => (Credential::None, None),
                },
            },
        };
        let is_scraper = credential == Credential::Metrics;
        Caller { credential, identity, is_scraper, ..caller }
    }

    fn by_token(&self, token: &str) -> (Credential, Option<Identity>) {
        let hash = sha256_hex(token.as_bytes());
        // All are compared, whichever fits.
        let is_unnamed = is_configured(self.unnamed_token.as_ref(), token);
        let is_metrics = is_configured(self.metrics_token.as_ref(), token);
        let known = self.known.load();
        let named = known.token(&hash);
        if is_unnamed {
            return (Credential::Bearer, Some(fixed(Channel::UnnamedToken)));
        }
        if let Some(row) = named
            && row.expires_at.is_none_or(|expires| expires > self.now())
        {
            let identity = Identity {
                channel: Channel::Token(row.label.clone()),
                reach: reach(row.scopes.as_deref()),
                validity: Validity::Token { hash, expires: row.expires_at },
            };
            return (Credential::Bearer, Some(identity));
        }
        (if is_metrics { Credential::Metrics } else { Credential::WrongBearer }, None)
    }

    fn by_cookie(&self, claim: &Claim<'_>) -> Option<Identity> {
        let cookies = (claim.header)("cookie");
        let raw = credentials::cookie(cookies, &self.names.session)?;
        let ticket = self.keys.as_ref()?.open(Purpose::Session, raw)?;
        let max_age = i64::try_from(self.max_age.as_millis()).unwrap_or(i64::MAX);
        if !self.is_valid(&ticket, max_age) {
            return None;
        }
        let hash = sha256_hex(&ticket.id);
        let known = self.known.load();
        let row = known.sign_in(&hash)?;
        // A shorter age of the configuration holds for sessions from before it, too.
        let expires = Timestamp::from_millis(ticket.issued).plus(self.max_age).min(row.expires_at);
        let identity = Identity {
            channel: Channel::Cookie,
            reach: Reach::Full,
            validity: Validity::Session { hash, epoch: ticket.epoch, expires },
        };
        (expires > self.now()).then_some(identity)
    }

    fn is_valid(&self, ticket: &Ticket, max_age_millis: i64) -> bool {
        ticket.is_current(self.now().as_millis(), max_age_millis)
            && self.known.load().epoch == Some(ticket.epoch)
            && self.fingerprint() == Some(ticket.fingerprint)
    }

    pub(super) fn fingerprint(&self) -> Option<[u8; 8]> {
        let hash = self.password_hash.as_ref().map(svc_config::Secret::expose);
        self.keys.as_ref().map(|keys| keys.fingerprint(hash))
    }

    /// Whether somebody has proved the password again lately.
    #[must_use]
    pub fn is_elevated(&self, identity: &Identity, claim: &Claim<'_>) -> bool {
        let cookies = (claim.header)("cookie");
        let max_age = i64::try_from(ELEVATION.as_millis()).unwrap_or(i64::MAX);
        credentials::cookie(cookies, &self.names.elevation)
            .and_then(|raw| self.keys.as_ref()?.open(Purpose::Elevation, raw))
            .is_some_and(|ticket| self.is_valid(&ticket, max_age) && ticket.id == binding(identity))
    }

    /// Whether the connection is encrypted as far as can be known.
    /// The rule of `cookie_secure: auto`, whatever that key says.
    #[must_use]
    pub fn is_https(&self, claim: &Claim<'_>) -> bool {
        let says_so = || {
            credentials::single((claim.header)("x-forwarded-proto"))
                .is_some_and(|proto| proto.eq_ignore_ascii_case("https"))
        };
        self.has_tls || (self.proxy.trusts(claim.peer) && says_so())
    }

    /// Where a trusted proxy says the request came from; for display only.
    #[must_use]
    pub fn forwarded_for(&self, claim: &Claim<'_>) -> Option<String> {
        let said = self.proxy.trusts(claim.peer).then(|| (claim.header)("x-forwarded-for"))?;
        credentials::single(said).map(|text| text.chars().take(256).collect())
    }

    /// Where a request comes from, for telling addresses apart; never for a decision.
    /// Behind a trusted proxy that is the last address that it names: those before it are the
    /// client's own words.
    #[must_use]
    pub fn source(&self, claim: &Claim<'_>) -> IpAddr {
        let said = self.forwarded_for(claim);
        let last = said.as_deref().and_then(|said| said.rsplit(',').next());
        let named = last.and_then(|text| text.trim().parse().ok());
        peer::network(named.unwrap_or(claim.peer))
    }

    /// `Set-Cookie` values that take both cookies back.
    #[must_use]
    pub fn removals(&self, is_https: bool) -> [String; 2] {
        [&self.names.session, &self.names.elevation]
            .map(|name| self.set_cookie(name, "", 0, is_https))
    }

    pub(super) fn set_cookie(&self, name: &str, value: &str, age: u64, is_https: bool) -> String {
        let root = if self.root_path.is_empty() { "/" } else { &self.root_path };
        let secure = match self.cookie_secure {
            CookieSecure::Auto => is_https,
            CookieSecure::Always => true,
            CookieSecure::Never => false,
        };
        let secure = if secure { "; Secure" } else { "" };
        format!("{name}={value}; Path={root}; Max-Age={age}; HttpOnly; SameSite=Lax{secure}")
    }
}

/// Whether a token is the one whose hash was configured.
fn is_configured(hash: Option<&svc_config::Secret>, token: &str) -> bool {
    hash.is_some_and(|hash| is_same(hash.expose(), &sha256_hex(token.as_bytes())))
}

fn fixed(channel: Channel) -> Identity {
    Identity { channel, reach: Reach::Full, validity: Validity::Fixed }
}

fn reach(scopes: Option<&str>) -> Reach {
    match scopes {
        None => Reach::Full,
        // A word of a newer version allows nothing here.
        Some(words) => {
            Reach::Only(words.split(' ').filter_map(|word| word.parse::<Scope>().ok()).collect())
        }
    }
}

/// What an elevation of somebody is bound to.
/// Their session, or the way they came in by.
pub(super) fn binding(identity: &Identity) -> [u8; 16] {
    let what = match &identity.validity {
        Validity::Session { hash, .. } => format!("session:{hash}"),
        Validity::Token { .. } | Validity::Fixed => identity.channel.to_string(),
    };
    let mut short = [0; 16];
    let digest = <sha2::Sha256 as sha2::Digest>::digest(what.as_bytes());
    for (to, from) in short.iter_mut().zip(digest) {
        *to = from;
    }
    short
}
