//! What follows from what was seen: the key or the line of the proxy to change.

use super::{NOBODY, Observed};
use crate::ask::{Answer, Target};
use svc_app::certificates::source;
use svc_app::doctor::{failed, passed, warned};
use svc_config::{Config, CookieSecure, TlsProvision};
use svc_domain::posture::is_loopback_host;
use svc_shared::Timestamp;
use svc_shared::internal::Check;
use svc_shared::internal::probe::ProbeSeen;
use svc_tls::{Facts, RENEW_BEFORE};

/// Headers that every reply of ours carries (`http-api` §5.9).
const HEADERS: [&str; 7] = [
    "content-security-policy",
    "x-frame-options",
    "x-content-type-options",
    "referrer-policy",
    "cross-origin-opener-policy",
    "cross-origin-resource-policy",
    "permissions-policy",
];

/// Every check, in the order in which a request passes.
pub(super) fn all(
    config: &Config,
    target: &Target,
    observed: &Observed,
    now: Timestamp,
) -> Vec<Check> {
    let mut checks = Vec::new();
    let (answer, seen) = match &observed.plain {
        Ok(plain) => plain,
        Err(words) => {
            let remedy = "start the service and its proxy, or correct the address";
            return vec![failed("probe-reach", words.clone(), remedy)];
        }
    };
    checks.extend(certificate(config, target, now));
    let Some(seen) = seen else {
        checks.push(not_ours(config, target, answer));
        return checks;
    };
    checks.push(passed(
        "probe-reach",
        format!("{} leads to svc, which sees {}", target.origin(), seen.peer),
    ));
    checks.push(cache(observed, seen));
    checks.push(root(config, target, seen));
    checks.push(host(target, seen));
    checks.push(https(config, target, seen));
    checks.push(cookie(config, target, answer, seen));
    checks.push(origin(target, observed, seen));
    checks.push(socket(observed));
    checks.push(headers(answer, seen));
    checks.push(permission(config, target, observed));
    checks.push(metrics(config, target, observed));
    checks.extend(user_header(config, seen));
    checks.extend(trust(config, target, seen));
    checks
}

/// Whether only this machine reaches the service.
///
/// A service that listens to a network has a loopback address as well.
fn stays_here(config: &Config, target: &Target) -> bool {
    target.is_local() && is_loopback_host(&config.host)
}

/// The answer came from somebody who could not read the pass.
fn not_ours(config: &Config, target: &Target, answer: &Answer) -> Check {
    match (answer.status, answer.code().as_deref()) {
        (421, _) => failed(
            "probe-host",
            format!("svc refuses the Host that arrives for {}", target.authority),
            "pass the name on (nginx: proxy_set_header Host $http_host;), and list it in \
             auth.allowed_hosts or its address in auth.allowed_origins",
        ),
        (404, Some("not_found")) => failed(
            "probe-root",
            format!(
                "svc does not know the path below `{}`, or another installation of svc answers",
                target.path
            ),
            if config.root_path.is_empty() {
                "set root_path to the path of the public address, or let the proxy take it off"
            } else {
                "root_path and the path of the public address must be the same"
            },
        ),
        // Whoever is not known is not told either that nothing is there.
        (401 | 403, Some(_)) if config.root_path != target.path => failed(
            "probe-root",
            format!(
                "the address has the path `{}`, root_path is `{}`, and svc does not know what \
                 arrives",
                target.path, config.root_path
            ),
            "set root_path to the path of the public address: links and cookies are made with it",
        ),
        (401 | 403, Some(_)) => failed(
            "probe-reach",
            "svc did not accept the pass of this installation: the clocks differ, the proxy drops \
             X-Svc-Probe, or another installation answers",
            "probe the address of this installation, and pass unknown headers on",
        ),
        (status, _) => failed(
            "probe-reach",
            format!("{} answers {status}, and that was not svc", target.origin()),
            "the address leads elsewhere, or a proxy asks for a sign-in of its own; let it pass \
             /api/probe and /ws/probe",
        ),
    }
}

fn cache(observed: &Observed, seen: &ProbeSeen) -> Check {
    let is_own = |(sent, seen): &(String, Option<ProbeSeen>)| {
        seen.as_ref().is_none_or(|seen| seen.nonce == *sent)
    };
    let is_fresh = seen.nonce == observed.nonce && observed.again.iter().all(is_own);
    match is_fresh {
        true => passed("probe-cache", "answers of the API come from svc each time"),
        false => failed(
            "probe-cache",
            "a proxy keeps answers of the API and gives them to others",
            "switch caching off for this address (nginx: proxy_cache off; proxy_no_cache 1;)",
        ),
    }
}

fn root(config: &Config, target: &Target, seen: &ProbeSeen) -> Check {
    if config.root_path == target.path {
        return passed(
            "probe-root",
            format!("root_path is that of the address: `{}`", target.path),
        );
    }
    failed(
        "probe-root",
        format!(
            "the address has the path `{}`, root_path is `{}`, and `{}` arrives",
            target.path, config.root_path, seen.path
        ),
        "set root_path to the path of the public address: links and cookies are made with it",
    )
}

fn host(target: &Target, seen: &ProbeSeen) -> Check {
    let arrived = seen.host.as_deref().unwrap_or_default();
    match arrived.eq_ignore_ascii_case(&target.authority) {
        true => passed("probe-host", format!("the Host arrives as it is typed: {arrived}")),
        false => warned(
            "probe-host",
            format!("the proxy makes `{arrived}` of the Host `{}`", target.authority),
            "pass the name on (nginx: proxy_set_header Host $http_host;)",
        ),
    }
}

fn https(config: &Config, target: &Target, seen: &ProbeSeen) -> Check {
    const NAME: &str = "probe-https";
    if seen.https == target.is_https {
        let words = if seen.https { "encrypted" } else { "not encrypted" };
        let remedy = "set tls.provision or tls.cert_file, or put a proxy with TLS in front";
        return match (seen.https || stays_here(config, target), target.is_local()) {
            (true, _) => passed(NAME, format!("svc knows that the connection is {words}")),
            (false, true) => warned(
                NAME,
                format!("svc listens on {} and does not encrypt", config.host),
                &format!("{remedy} and host: 127.0.0.1"),
            ),
            (false, false) => failed(
                NAME,
                format!("{} is not encrypted: everybody on the way reads along", target.origin()),
                remedy,
            ),
        };
    }
    if seen.https {
        return failed(
            NAME,
            "svc is told that the connection is encrypted, and it is not",
            "set X-Forwarded-Proto to what the client used (nginx: proxy_set_header \
             X-Forwarded-Proto $scheme;)",
        );
    }
    let (words, remedy) = match seen.forwarded_proto.as_slice() {
        [] => (
            "the proxy does not say that the connection is encrypted: no X-Forwarded-Proto arrives"
                .to_owned(),
            "nginx: proxy_set_header X-Forwarded-Proto $scheme; and list the address of the proxy \
             in auth.reverse_proxy.trusted_ips"
                .to_owned(),
        ),
        [one] if !seen.is_trusted => (
            format!("`{one}` arrives as X-Forwarded-Proto from {}, who is not trusted", seen.peer),
            format!("list {} in auth.reverse_proxy.trusted_ips", seen.peer),
        ),
        many => (
            format!("X-Forwarded-Proto arrives as `{}`", many.join("`, `")),
            "the proxy must set it once, to https".to_owned(),
        ),
    };
    let level = if config.auth.enabled { failed } else { warned };
    level(NAME, words, &remedy)
}

fn cookie(config: &Config, target: &Target, answer: &Answer, seen: &ProbeSeen) -> Check {
    const NAME: &str = "probe-cookie";
    let Some(cookie) = answer.header("set-cookie") else {
        return failed(
            NAME,
            "no cookie arrives, so nobody can sign in",
            "let the proxy pass Set-Cookie on",
        );
    };
    let has = |wanted: &str| cookie.split(';').any(|part| part.trim().eq_ignore_ascii_case(wanted));
    let path = if config.root_path.is_empty() { "/" } else { &config.root_path };
    let missing: Vec<String> =
        ["HttpOnly".to_owned(), "SameSite=Lax".to_owned(), format!("Path={path}")]
            .into_iter()
            .filter(|wanted| !has(wanted))
            .collect();
    if !missing.is_empty() {
        return failed(
            NAME,
            format!("the cookie arrives without {}", missing.join(", ")),
            "the proxy rewrites cookies: remove proxy_cookie_path and proxy_cookie_flags",
        );
    }
    match (has("Secure"), target.is_https) {
        (true, false) if !target.is_local() => failed(
            NAME,
            "the cookie is for encrypted connections only, and this one is not: nobody can sign in",
            "use an https address, or set auth.cookie_secure: auto",
        ),
        (false, true) if config.auth.cookie_secure == CookieSecure::Never => {
            failed(NAME, "the cookie may travel unencrypted", "set auth.cookie_secure: auto")
        }
        (false, true) => failed(
            NAME,
            "the cookie may travel unencrypted, because svc does not know of the encryption",
            "see probe-https; or set auth.cookie_secure: always",
        ),
        (false, false) if !stays_here(config, target) && config.auth.enabled => {
            let level = if target.is_local() { warned } else { failed };
            let words = "the cookie travels unencrypted, whatever auth.cookie_secure says";
            let remedy =
                "use an https address: set tls.provision, or put a proxy with TLS in front";
            match config.auth.cookie_secure {
                CookieSecure::Never => {
                    level(NAME, words, &format!("{remedy}; then set auth.cookie_secure: auto"))
                }
                CookieSecure::Auto | CookieSecure::Always => level(NAME, words, remedy),
            }
        }
        _ => {
            let known = if seen.https { ", Secure" } else { "" };
            passed(NAME, format!("HttpOnly, SameSite=Lax, Path={path}{known}"))
        }
    }
}

fn origin(target: &Target, observed: &Observed, seen: &ProbeSeen) -> Check {
    const NAME: &str = "probe-origin";
    let own = target.origin();
    if seen.origins != [own.clone()] {
        return failed(
            NAME,
            format!("the Origin `{own}` arrives as `{}`", seen.origins.join("`, `")),
            "let the proxy pass the header Origin on unchanged",
        );
    }
    let is_refused = |answer: &Option<Answer>| {
        answer.as_ref().map(|answer| answer.code().as_deref() == Some("origin_check_failed"))
    };
    match (is_refused(&observed.own_write), is_refused(&observed.foreign_write)) {
        (Some(true), _) => failed(
            NAME,
            format!("svc refuses writes of its own page at {own}"),
            &format!("list {own} in auth.allowed_origins"),
        ),
        (_, Some(false)) => failed(
            NAME,
            "a write of a foreign page is not refused",
            "the proxy must not answer OPTIONS and POST itself, nor change the header Origin",
        ),
        (Some(false), Some(true)) => {
            passed(NAME, format!("only pages of {own} and of auth.allowed_origins may write"))
        }
        (None, _) | (_, None) => {
            warned(NAME, "a write was not answered", "look at the log of the proxy")
        }
    }
}

fn socket(observed: &Observed) -> Check {
    const NAME: &str = "probe-socket";
    if observed.foreign_socket.as_ref().is_some_and(|answer| answer.status == 101) {
        return failed(
            NAME,
            "a foreign page can open a socket",
            "let the proxy pass the header Origin on unchanged",
        );
    }
    let Some(seen) = &observed.socket else {
        return failed(
            NAME,
            "a request for a socket is not answered by svc",
            "let the proxy pass /ws/ on (nginx: proxy_http_version 1.1;)",
        );
    };
    match seen.upgrade.as_deref() {
        Some(word) if word.eq_ignore_ascii_case("websocket") => {
            passed(NAME, "sockets are passed on")
        }
        _ => failed(
            NAME,
            "the proxy drops the header Upgrade, so pages do not stay up to date",
            "nginx: proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; \
             proxy_set_header Connection $connection_upgrade;",
        ),
    }
}

fn headers(answer: &Answer, seen: &ProbeSeen) -> Check {
    let mut missing: Vec<&str> =
        HEADERS.into_iter().filter(|name| !answer.headers.contains_key(*name)).collect();
    if seen.https && !answer.headers.contains_key("strict-transport-security") {
        missing.push("strict-transport-security");
    }
    match missing.is_empty() {
        true => passed("probe-headers", "the headers that protect the page arrive"),
        false => failed(
            "probe-headers",
            format!("the proxy takes away {}", missing.join(", ")),
            "remove proxy_hide_header and more_clear_headers for them",
        ),
    }
}

fn permission(config: &Config, target: &Target, observed: &Observed) -> Check {
    const NAME: &str = "probe-permission";
    let status = observed.stranger.as_ref().map(|answer| answer.status);
    match status {
        Some(401 | 403) => passed(NAME, "a stranger is refused"),
        Some(300..=399) => passed(NAME, "a stranger is led elsewhere, to the sign-in of a proxy"),
        Some(200) if stays_here(config, target) => {
            passed(NAME, "nobody is asked, and only this machine is reached")
        }
        Some(200) if config.auth.enabled => failed(
            NAME,
            "a stranger reads the list of projects although auth.enabled is on",
            "the proxy signs everybody in: let it ask who they are, and set the user header only \
             then",
        ),
        Some(200) => failed(
            NAME,
            format!("everybody who reaches {} controls svc", target.origin()),
            "set auth.enabled with a password; see also host and auth.allow_unauthenticated_network",
        ),
        Some(status) => {
            warned(NAME, format!("a stranger is answered {status}"), "look at the log of the proxy")
        }
        None => warned(NAME, "a stranger is not answered", "look at the log of the proxy"),
    }
}

fn metrics(config: &Config, target: &Target, observed: &Observed) -> Check {
    match observed.metrics.as_ref().map(|answer| answer.status) {
        Some(200) if !stays_here(config, target) => failed(
            "probe-metrics",
            "everybody reads the figures at /metrics",
            "set auth.enabled and observability.metrics_token_hash, or \
             observability.prometheus_enabled: false",
        ),
        _ => passed("probe-metrics", "the figures are not open to strangers elsewhere"),
    }
}

fn user_header(config: &Config, seen: &ProbeSeen) -> Option<Check> {
    const NAME: &str = "probe-user-header";
    let proxy = &config.auth.reverse_proxy;
    if !proxy.enabled {
        return None;
    }
    let arrives = seen.users.iter().any(|user| user.contains(NOBODY));
    let header = &proxy.user_header;
    Some(match (arrives, proxy.require_hmac) {
        (true, false) => failed(
            NAME,
            format!("a client's own {header} arrives and is believed: anybody can be anybody"),
            &format!(
                "let the proxy set it always (nginx: proxy_set_header {header} $remote_user;), or \
                 set auth.reverse_proxy.require_hmac: true"
            ),
        ),
        (true, true) => warned(
            NAME,
            format!("a client's own {header} arrives; only the signature protects"),
            &format!("let the proxy set it always (nginx: proxy_set_header {header} …;)"),
        ),
        (false, _) => passed(NAME, format!("a client's own {header} does not arrive")),
    })
}

fn trust(config: &Config, target: &Target, seen: &ProbeSeen) -> Option<Check> {
    const NAME: &str = "probe-trust";
    let proxy = &config.auth.reverse_proxy;
    if proxy.trusted_ips.is_empty() {
        return None;
    }
    let is_wide = |raw: &&String| {
        raw.split_once('/').is_some_and(|(address, prefix)| {
            let full = if address.contains(':') { "128" } else { "32" };
            prefix != full
        })
    };
    if !seen.is_trusted {
        // Without a proxy on the way nobody has to be trusted.
        let is_direct = config.tls.is_some() || target.port == config.port;
        return (!is_direct || proxy.enabled).then(|| {
            failed(
                NAME,
                format!("the proxy connects from {}, who is not trusted", seen.peer),
                &format!("list {} in auth.reverse_proxy.trusted_ips", seen.peer),
            )
        });
    }
    Some(match proxy.trusted_ips.iter().find(is_wide) {
        Some(wide) => failed(
            NAME,
            format!("the proxy connects from {}, and all of {wide} is trusted", seen.peer),
            &format!("list only {} in auth.reverse_proxy.trusted_ips", seen.peer),
        ),
        None => passed(NAME, format!("the proxy connects from {}", seen.peer)),
    })
}

fn certificate(config: &Config, target: &Target, now: Timestamp) -> Option<Check> {
    const NAME: &str = "probe-certificate";
    let shown = target.seen.certificate()?;
    let Some(facts) = Facts::of(&shown) else {
        return Some(failed(NAME, "the certificate cannot be read", "replace it"));
    };
    let own = source(config).and_then(|source| source.look().ok());
    let is_own = own.is_some_and(|pair| pair.certificate() == shown.as_slice());
    let key = match (&config.tls, is_own) {
        (Some(tls), true) if tls.provision == TlsProvision::SelfSigned => "tls.hostnames",
        (Some(_), true) => "tls.cert_file",
        (_, false) | (None, _) => "the certificate of the proxy",
    };
    let (left, day) = (facts.left(now.as_millis().div_euclid(1000)), 24 * 3600);
    let names = facts.names.join(", ");
    Some(if left <= 0 {
        failed(NAME, format!("it expired {} days ago", -left / day), &format!("renew {key}"))
    } else if !facts.covers(&target.host) {
        failed(
            NAME,
            format!("it is for {names} and not for {}", target.host),
            &format!("change {key} to name {}", target.host),
        )
    } else if left <= RENEW_BEFORE && key != "tls.hostnames" {
        warned(NAME, format!("it expires in {} days", left / day), &format!("renew {key}"))
    } else {
        passed(NAME, format!("for {names}, {} days left", left / day))
    })
}
