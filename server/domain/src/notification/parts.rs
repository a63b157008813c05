//! An entry of `notifications.urls` taken apart.

use super::address::Unusable;
use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use url::Url;

/// What stands between the slashes, decoded.
pub(super) struct Parts {
    pub user: Option<String>,
    pub password: Option<String>,
    pub host: String,
    pub port: Option<u16>,
    pub segments: Vec<String>,
    pub query: Vec<(String, String)>,
}

impl Parts {
    /// Reads an entry whose scheme is known already.
    pub fn of(raw: &str) -> Result<Self, Unusable> {
        let url = Url::parse(raw).map_err(|_| Unusable("is no URL; check its host and port"))?;
        let host = url.host_str().filter(|host| !host.is_empty());
        let host = host.ok_or(Unusable("names no host"))?.to_owned();
        let user = Some(decoded(url.username())).filter(|user| !user.is_empty());
        let path = url.path_segments().into_iter().flatten();
        let segments = path.map(decoded).filter(|segment| !segment.is_empty()).collect();
        let query = url.query_pairs();
        Ok(Self {
            user,
            password: url.password().map(decoded),
            host,
            port: url.port(),
            segments,
            query: query.map(|(name, value)| (name.into_owned(), value.into_owned())).collect(),
        })
    }

    /// A member of the query; `None` where it is not there or empty.
    pub fn member(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(member, _)| member == name);
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// The root of the web server.
    pub fn base(&self, is_secure: bool) -> Result<Url, Unusable> {
        let scheme = if is_secure { "https" } else { "http" };
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        let text = format!("{scheme}://{}{port}/", self.host);
        Url::parse(&text).map_err(|_| Unusable("names no host that can be reached"))
    }
}

/// Undoes percent encoding; what is no UTF-8 then stays as it was.
pub(super) fn decoded(raw: &str) -> String {
    percent_decode_str(raw).decode_utf8().map_or_else(|_| raw.to_owned(), Cow::into_owned)
}
