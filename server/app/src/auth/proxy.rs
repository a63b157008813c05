//! Trust in a reverse proxy.
//! By its address, and by what it signs (`http-api` §5.1, H24).

use hmac::{Hmac, Mac};
use ipnet::IpNet;
use sha2::Sha256;
use std::net::IpAddr;
use svc_config::Config;
use svc_domain::credentials::single;

/// Whom a proxy may speak for, and how that is recognised.
#[derive(Debug)]
pub(super) struct ProxyRule {
    enabled: bool,
    trusted: Vec<IpNet>,
    user_header: String,
    signature_header: String,
    secret: Option<svc_config::Secret>,
    window_seconds: i64,
    require_hmac: bool,
}

/// What a proxy says about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) user: String,
    /// It is signed. Anybody who reaches us by the proxy can forge a bare header.
    pub(super) is_signed: bool,
}

/// The parts of a request that a proxy signs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signed<'r> {
    pub(super) method: &'r str,
    /// As it came, without query.
    pub(super) path: &'r str,
    pub(super) now_seconds: i64,
}

impl ProxyRule {
    pub(super) fn new(config: &Config) -> Self {
        let proxy = &config.auth.reverse_proxy;
        let network = |raw: &String| {
            raw.parse::<IpNet>().ok().or_else(|| raw.parse::<IpAddr>().ok().map(IpNet::from))
        };
        Self {
            enabled: proxy.enabled,
            trusted: proxy.trusted_ips.iter().filter_map(network).collect(),
            user_header: proxy.user_header.clone(),
            signature_header: proxy.shared_secret_header.clone(),
            secret: proxy.shared_secret.clone(),
            window_seconds: i64::try_from(proxy.hmac_window.as_secs()).unwrap_or(i64::MAX),
            require_hmac: proxy.require_hmac,
        }
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Whether the address is one of a proxy, whatever it says.
    pub(super) fn trusts(&self, peer: IpAddr) -> bool {
        let peer = peer.to_canonical();
        self.trusted.iter().any(|network| network.contains(&peer))
    }

    /// Whom the proxy names, if it is one and proves it.
    pub(super) fn named<'r>(
        &self,
        peer: IpAddr,
        signed: Signed<'_>,
        header: impl Fn(&str) -> Vec<&'r [u8]>,
    ) -> Option<Named> {
        if !self.enabled || !self.trusts(peer) {
            return None;
        }
        let user = single(header(&self.user_header))?.to_owned();
        let signature = header(&self.signature_header);
        let is_signed = self.is_signed(&user, signed, signature);
        (is_signed || !self.require_hmac).then_some(Named { user, is_signed })
    }

    fn is_signed(&self, user: &str, signed: Signed<'_>, values: Vec<&[u8]>) -> bool {
        let (Some(secret), Some(value)) = (&self.secret, single(values)) else { return false };
        let Some((time, mac)) = read(value) else { return false };
        // What is signed joins its fields with colons. Time and method have none, and a path may
        // have some because it is last. A user with one could be another user on another path.
        if user.contains(':') {
            return false;
        }
        if signed.now_seconds.abs_diff(time) > self.window_seconds.unsigned_abs() {
            return false;
        }
        let decoded = decoded(signed.path).filter(|path| is_no_wire_path(path));
        // Proxies sign the path as it travels or as they read it; both are looked at always.
        let paths = [signed.path, decoded.as_deref().unwrap_or(signed.path)];
        paths.iter().fold(false, |is_true, path| {
            let Ok(mut hmac) = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()) else {
                return is_true;
            };
            hmac.update(format!("{user}:{time}:{}:{path}", signed.method).as_bytes());
            hmac.verify_slice(&mac).is_ok() | is_true
        })
    }
}

/// `t=<unix seconds>,v1=<64 lower-case hex digits>` and nothing else.
fn read(value: &str) -> Option<(i64, Vec<u8>)> {
    let (time, mac) = value.strip_prefix("t=")?.split_once(",v1=")?;
    let is_number = (1..=12).contains(&time.len()) && time.bytes().all(|b| b.is_ascii_digit());
    let is_hex = mac.len() == 64 && mac.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if !is_number || !is_hex || (time.len() > 1 && time.starts_with('0')) {
        return None;
    }
    Some((time.parse().ok()?, hex::decode(mac).ok()?))
}

/// Whether a decoded path cannot be one that travels.
///
/// Otherwise its signature would be good for two paths: signed for `/a%20b`, sent as `/a%2520b`.
/// A path on the wire has printable ASCII only, and no blank.
fn is_no_wire_path(decoded: &str) -> bool {
    !decoded.contains('%') && decoded.bytes().any(|byte| !byte.is_ascii_graphic())
}

fn decoded(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
        bytes.push(digit(rest.next()?)? * 16 + digit(rest.next()?)?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000;
    const PEER: &str = "10.0.0.9";

    fn rule(require_hmac: bool) -> ProxyRule {
        ProxyRule {
            enabled: true,
            trusted: vec!["10.0.0.9/32".parse().unwrap(), "fd00::/8".parse().unwrap()],
            user_header: "Remote-User".into(),
            signature_header: "X-Proxy-Auth".into(),
            secret: Some(svc_config::Secret::new("0123456789abcdef".into())),
            window_seconds: 60,
            require_hmac,
        }
    }

    fn sign(user: &str, time: i64, method: &str, path: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(b"0123456789abcdef").unwrap();
        mac.update(format!("{user}:{time}:{method}:{path}").as_bytes());
        format!("t={time},v1={}", hex::encode(mac.finalize().into_bytes()))
    }

    fn named(rule: &ProxyRule, peer: &str, path: &str, headers: &[(&str, &str)]) -> Option<Named> {
        let signed = Signed { method: "GET", path, now_seconds: NOW };
        rule.named(peer.parse().unwrap(), signed, |name| {
            let same = headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
            same.map(|(_, value)| value.as_bytes()).collect()
        })
    }

    fn is_named(path: &str, headers: &[(&str, &str)]) -> bool {
        named(&rule(true), PEER, path, headers).is_some()
    }

    #[test]
    fn h24_a_signature_is_valid_for_its_user_method_path_and_window() {
        let good = sign("alice", NOW, "GET", "/api/a%20b");
        let user = ("Remote-User", "alice");
        assert!(is_named("/api/a%20b", &[user, ("x-proxy-auth", &good)]));
        let decoded = sign("alice", NOW, "GET", "/api/a b");
        assert!(is_named("/api/a%20b", &[user, ("X-Proxy-Auth", &decoded)]));
        for skew in [60, -60] {
            let near = sign("alice", NOW + skew, "GET", "/x");
            assert!(is_named("/x", &[user, ("X-Proxy-Auth", &near)]), "{skew}");
        }
        let twice = [user, ("X-Proxy-Auth", good.as_str()), ("X-Proxy-Auth", good.as_str())];
        assert!(!is_named("/api/a%20b", &twice));
        for (what, value) in [
            ("user", sign("bob", NOW, "GET", "/api/a%20b")),
            ("method", sign("alice", NOW, "POST", "/api/a%20b")),
            ("path", sign("alice", NOW, "GET", "/api/b")),
            ("late", sign("alice", NOW - 61, "GET", "/api/a%20b")),
            ("early", sign("alice", NOW + 61, "GET", "/api/a%20b")),
            ("comma", format!("{good},")),
            ("case", good.to_uppercase().replace("T=", "t=").replace("V1", "v1")),
            ("order", good.split(',').rev().collect::<Vec<_>>().join(",")),
            ("empty", String::new()),
            ("none", "t=1,v1=".into()),
        ] {
            assert!(!is_named("/api/a%20b", &[user, ("X-Proxy-Auth", &value)]), "{what}");
        }
    }

    /// What is signed is one text, so it must have only one meaning.
    #[test]
    fn h24_a_signature_is_never_good_for_another_user_or_path() {
        // Read from its other end, `alice:NOW:GET:/x:NOW:GET:/y` means another user and path.
        let later = NOW + 5;
        for (signed_path, path, user) in [
            (format!("/x:{later}:GET:/y"), "/y", format!("alice:{NOW}:GET:/x")),
            (format!("/:{later}:GET:/y"), "/y", format!("alice:{NOW}:GET:/")),
            (
                format!("/x:{NOW}:GET:/y:{later}:GET:/z"),
                "/z",
                format!("alice:{NOW}:GET:/x:{NOW}:GET:/y"),
            ),
        ] {
            let mac = sign("alice", NOW, "GET", &signed_path);
            let forged = mac.replace(&format!("t={NOW}"), &format!("t={later}"));
            let headers = [("Remote-User", user.as_str()), ("X-Proxy-Auth", &forged)];
            assert!(!is_named(path, &headers), "{user} {path}");
        }
        // Even a true signature for a user with the delimiter could be another one's.
        for user in ["a:b", ":", "alice:", ":alice"] {
            let mac = sign(user, NOW, "GET", "/x");
            assert!(!is_named("/x", &[("Remote-User", user), ("X-Proxy-Auth", &mac)]), "{user}");
        }
        // The decoded form is a second meaning of a path, where it can be read as another path.
        for (signed_path, path) in [
            ("/api/a%20b", "/api/a%2520b"),
            ("/api/a/b", "/api/a%2Fb"),
            ("/api/a/b", "/api/a%2fb"),
            ("/api/a%2Fb", "/api/a%252Fb"),
            ("/api/a", "/api/%61"),
            ("/api/projects", "/%61pi/projects"),
            ("/api/a?x=1", "/api/a%3Fx=1"),
            ("/api/a#b", "/api/a%23b"),
            ("/api/..", "/api/%2e%2e"),
        ] {
            let mac = sign("alice", NOW, "GET", signed_path);
            assert!(!is_named(path, &[("Remote-User", "alice"), ("X-Proxy-Auth", &mac)]), "{path}");
        }
        // What no path on the wire looks like stays accepted (`http-api` §5.1).
        for (signed_path, path) in [
            ("/api/a b", "/api/a%20b"),
            ("/api/\u{fc}bung", "/api/%C3%BCbung"),
            ("/api/a b:c", "/api/a%20b:c"),
            ("/api/a%20b", "/api/a%20b"),
        ] {
            let mac = sign("alice", NOW, "GET", signed_path);
            assert!(is_named(path, &[("Remote-User", "alice"), ("X-Proxy-Auth", &mac)]), "{path}");
        }
    }

    #[test]
    fn h24_a_user_from_elsewhere_or_not_plain_is_nobody() {
        let good = sign("alice", NOW, "GET", "/x");
        let both = [("Remote-User", "alice"), ("X-Proxy-Auth", good.as_str())];
        for stranger in ["10.0.0.8", "127.0.0.1", "::1"] {
            assert_eq!(named(&rule(true), stranger, "/x", &both), None, "{stranger}");
            assert_eq!(named(&rule(false), stranger, "/x", &both), None, "{stranger}");
        }
        assert!(named(&rule(true), "::ffff:10.0.0.9", "/x", &both).is_some());
        for headers in [
            &[("Remote_User", "alice")][..],
            &[("Remote-User", "")],
            &[("Remote-User", "a\tb")],
            &[("Remote-User", "alice"), ("Remote-User", "alice")],
        ] {
            assert_eq!(named(&rule(false), PEER, "/x", headers), None, "{headers:?}");
        }
        let bare = named(&rule(false), PEER, "/x", &[("Remote-User", "alice")]).unwrap();
        assert!(!bare.is_signed);
        assert!(named(&rule(false), PEER, "/x", &both).unwrap().is_signed);
        assert!(!is_named("/x", &[("Remote-User", "alice")]));
    }
}
