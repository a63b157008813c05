//! What arrived of a request that went through a proxy: body of `/api/probe`.

use serde::{Deserialize, Serialize};

/// A request as the service saw it, for who can prove to be its operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeSeen {
    /// The number of this very request: another one is an answer from a cache.
    pub nonce: String,
    /// Address of the connection.
    pub peer: String,
    /// It is one of `auth.reverse_proxy.trusted_ips`.
    pub is_trusted: bool,
    /// The path as it came.
    pub path: String,
    /// The `Host`.
    pub host: Option<String>,
    /// Every `Origin`.
    pub origins: Vec<String>,
    /// Every `X-Forwarded-Proto`.
    pub forwarded_proto: Vec<String>,
    /// The change of protocol that was asked for.
    pub upgrade: Option<String>,
    /// Every value of the header that names the user.
    pub users: Vec<String>,
    /// It was encrypted, as far as the service can know.
    pub https: bool,
}
