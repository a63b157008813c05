//! The guard's tables over every route (H1, H3, H4).
//!
//! Who writes and opens sockets from which page, and who is served under a foreign host name.

use crate::client::{Reply, Sent};
use crate::coverage::path_of;
use crate::harness::Server;
use crate::sign_in::{UNNAMED, configuration, own, signed_in};
use serde_json::{Value, json};
use svc_http::{Guard, Route, RouteKind, ServeOptions};

const PROXY: &str =
    "  reverse_proxy: {enabled: true, trusted_ips: [127.0.0.1], require_hmac: false}\n";

/// What a request presents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Nothing,
    WrongBearer,
    Cookie,
    Proxy,
    Bearer,
}

use Shown::{Bearer, Cookie, Nothing, Proxy, WrongBearer};

const SHOWN: [Shown; 5] = [Nothing, WrongBearer, Cookie, Proxy, Bearer];

impl Shown {
    fn on(self, sent: Sent, cookie: &str) -> Sent {
        match self {
            Nothing => sent,
            WrongBearer => sent.header("Authorization", "Bearer svc_pat_wrong"),
            Cookie => sent.header("Cookie", cookie),
            Proxy => sent.header("Remote-User", "alice"),
            Bearer => sent.header("Authorization", &format!("Bearer {UNNAMED}")),
        }
    }

    fn is_valid(self) -> bool {
        matches!(self, Cookie | Proxy | Bearer)
    }
}

/// The page a request says it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Page {
    Unsaid,
    Elsewhere,
    Own,
    Foreign,
    Null,
    Two,
}

use Page::{Elsewhere, Foreign, Null, Own, Two, Unsaid};

impl Page {
    fn on(self, sent: Sent, own: &str) -> Sent {
        match self {
            Unsaid => sent,
            Elsewhere => sent.header("Sec-Fetch-Site", "cross-site"),
            Own => sent.header("Origin", own),
            Foreign => sent.header("Origin", "https://evil.example"),
            Null => sent.header("Origin", "null"),
            Two => sent.header("Origin", own).header("Origin", own),
        }
    }
}

/// The status of the guard, 401 or 403, or `None` if it let the request through.
fn refused(reply: &Reply) -> Option<u16> {
    let code = serde_json::from_slice::<Value>(&reply.body).ok()?["code"].as_str()?.to_owned();
    match (reply.status, code.as_str()) {
        (401, "auth_required") | (403, "origin_check_failed") => Some(reply.status),
        _ => None,
    }
}

fn is_write(route: &Route) -> bool {
    !matches!(route.method.as_str(), "GET" | "HEAD")
}

/// Signs everybody out: has tests of its own.
fn does_the_deed(route: &Route) -> bool {
    let signs_out = ["/logout", "/api/devices/sign-out-others"].contains(&route.pattern.as_str());
    signs_out && is_write(route)
}

/// A defect; a service inside a test has no program to be replaced by, and says so.
fn is_fault(route: &Route, reply: &Reply) -> bool {
    reply.status >= 500 && (route.pattern.as_str(), reply.status) != ("/api/restart", 503)
}

/// The table of `http-api` §5.4, with the two stricter rows of §4.1.
fn expected(route: &Route, shown: Shown, from: Page) -> Option<u16> {
    let is_socket = route.kind == RouteKind::Socket;
    let is_login = route.pattern == "/login";
    match (shown, from) {
        (_, Foreign | Null | Two) => Some(403),
        (_, Own) if is_login => None,
        (Nothing | WrongBearer, Unsaid | Elsewhere) if is_login => Some(403),
        (Nothing, Own) | (WrongBearer, _) => Some(401),
        (Nothing | Cookie, Unsaid | Elsewhere) | (Proxy, Elsewhere) => Some(403),
        (Proxy, Unsaid) if is_socket => Some(403),
        (Cookie | Proxy | Bearer, Own) | (Proxy, Unsaid) | (Bearer, Unsaid | Elsewhere) => None,
    }
}

#[tokio::test]
async fn h3_h4_every_write_and_every_socket_by_page_and_credential() {
    let server = Server::with(&configuration(PROXY), ServeOptions::default()).await;
    let cookie = signed_in(&server).await;
    let mut wrong = Vec::new();
    for route in svc_http::table() {
        if !is_write(&route) && route.kind != RouteKind::Socket {
            continue;
        }
        for shown in SHOWN {
            for from in [Unsaid, Elsewhere, Own, Foreign, Null, Two] {
                let expected = expected(&route, shown, from);
                if does_the_deed(&route) && expected.is_none() {
                    continue;
                }
                let sent = Sent::new(route.method.as_str(), &path_of(&route));
                let sent = from.on(shown.on(sent, &cookie), &own(&server));
                let reply = server.send(sent).await;
                if refused(&reply) != expected || is_fault(&route, &reply) {
                    let cell = format!("{} {} {shown:?} {from:?}", route.method, route.pattern);
                    wrong.push(format!("{cell}: {} not {expected:?}", reply.status));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn h1_every_route_under_a_foreign_host_by_credential() {
    let open = Server::start().await;
    let closed = Server::with(&configuration(PROXY), ServeOptions::default()).await;
    let cookie = signed_in(&closed).await;
    let mut wrong = Vec::new();
    let cells = SHOWN.into_iter().map(|shown| (&closed, shown)).chain([(&open, Nothing)]);
    for (server, shown) in cells {
        for route in svc_http::table() {
            if does_the_deed(&route) && shown.is_valid() {
                continue;
            }
            let sent = Sent::new(route.method.as_str(), &path_of(&route));
            let sent = sent.header("Host", "evil.example:7621").header("Origin", &own(server));
            let reply = server.send(shown.on(sent, &cookie)).await;
            let is_trusted = matches!(shown, Proxy | Bearer);
            let is_right = match (route.guard, is_trusted) {
                (Guard::Public, false) => reply.json() == json!({"status": "ok"}),
                (Guard::Public, true) => reply.json().as_object().unwrap().len() > 1,
                (_, false) => reply.status == 421 && reply.code() == "host_not_allowed",
                (_, true) => reply.status != 421,
            };
            if !is_right {
                let cell = format!("{} {} {shown:?}", route.method, route.pattern);
                wrong.push(format!("{cell}: {} {}", reply.status, reply.text()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
