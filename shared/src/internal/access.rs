//! Who may come in and who can reach the service.
//!
//! Bodies of `/api/tokens`, `/api/devices` and `/api/access`.

use crate::status::{CheckStatus, words};
use crate::{Timestamp, Word};
use serde::{Deserialize, Serialize};

/// A named token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedToken {
    /// Its name.
    pub label: String,
    /// When it was issued.
    pub created: Timestamp,
    /// When it was last used, to the minute.
    pub last_used: Option<Timestamp>,
    /// What it may do: `read`, `operate`, `approve`; null is everything.
    pub scopes: Option<Vec<String>>,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
}

/// A new secret: shown once, never kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuedToken {
    /// Its name.
    pub label: String,
    /// When it was issued.
    pub created: Timestamp,
    /// When it was last used; null after it was issued.
    pub last_used: Option<Timestamp>,
    /// What it may do; null is everything.
    pub scopes: Option<Vec<String>>,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// The secret.
    pub token: String,
}

/// What a new token is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueTokenRequest {
    /// Its name.
    pub label: String,
    /// What it may do; null and absence are everything.
    #[serde(default)]
    pub scopes: Option<Vec<String>>,
    /// When it ends by itself, RFC 3339; null and absence are never.
    #[serde(default)]
    pub expires_at: Option<String>,
}

/// Names the token that gets a new secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RotateTokenRequest {
    /// Its name.
    pub label: String,
}

/// Answer of a revocation of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokedToken {
    /// Which.
    pub label: String,
    /// Always true: it opens nothing any more.
    pub revoked: bool,
}

/// An address that a device was used from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenFrom {
    /// The address, or the network of an IPv6 address.
    pub address: String,
    /// When the device was used from there first.
    pub since: Timestamp,
}

/// A browser that is signed in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// The first 16 digits of the stored hash.
    pub id: String,
    /// When it signed in.
    pub created: Timestamp,
    /// When it was last seen, to the minute.
    pub last_seen: Timestamp,
    /// When it is signed out by its age.
    pub expires_at: Timestamp,
    /// Address that it signed in from.
    pub peer: String,
    /// What a trusted proxy said about where it came from.
    pub forwarded_for: Option<String>,
    /// The browser, as it calls itself.
    pub user_agent: String,
    /// Browser and system in words; null when they are not recognised.
    pub name: Option<String>,
    /// It is a phone or a tablet.
    pub mobile: bool,
    /// It is the one that asks.
    pub current: bool,
    /// Every address that it was used from, oldest first.
    pub addresses: Vec<SeenFrom>,
}

/// Answer of a revocation of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokedDevice {
    /// Which.
    pub id: String,
    /// Always true: it is signed out.
    pub revoked: bool,
}

/// Answer of a sign-out of every other device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedOutOthers {
    /// How many were signed out.
    pub revoked: u64,
}

words! {
    /// How connections are encrypted.
    TlsKind {
        /// Not at all.
        Off = "off",
        /// With a certificate that the service made.
        SelfSigned = "self-signed",
        /// With the files of the operator.
        Files = "files",
    }
}

words! {
    /// How a trusted proxy proves itself.
    ProxyProof {
        /// By a signature of each request.
        Hmac = "hmac",
        /// By its address alone.
        HeaderOnly = "header-only",
    }
}

/// Where the service listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listen {
    /// As configured.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Only this machine reaches it.
    pub loopback: bool,
}

/// What somebody must prove.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessAuth {
    /// Somebody must prove who they are.
    pub enabled: bool,
    /// By a password.
    pub password: bool,
    /// By the token of the configuration.
    pub api_token: bool,
    /// How many named tokens there are.
    pub tokens: usize,
    /// How many browsers are signed in.
    pub devices: usize,
    /// By a proxy; null when none is trusted to name users.
    pub proxy: Option<Word<ProxyProof>>,
}

/// One fact about who can reach the service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// How serious it is.
    pub level: Word<CheckStatus>,
    /// The word for programs.
    pub code: String,
    /// The fact in one sentence.
    pub title: String,
    /// What it means.
    pub detail: String,
    /// The key that changes it.
    pub key: Option<String>,
}

/// Who can reach the service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// When this was found.
    pub at: Timestamp,
    /// Where it listens.
    pub listen: Listen,
    /// How connections are encrypted by the service itself.
    pub tls: Word<TlsKind>,
    /// This request was encrypted, as far as can be known.
    pub https: bool,
    /// What somebody must prove.
    pub auth: AccessAuth,
    /// Origins whose pages may change something.
    pub allowed_origins: Vec<String>,
    /// Further names under which the service answers.
    pub allowed_hosts: Vec<String>,
    /// What follows from it, the serious facts first.
    pub findings: Vec<Finding>,
}
