//! What a GET may not do, whatever it claims to be (H8).

use crate::client::Sent;
use crate::coverage::{fill, path_of};
use crate::harness::Server;
use crate::sign_in::{configuration, own, signed_in};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use svc_http::{Route, RouteKind, ServeOptions};

/// Headers by which frameworks let a request name another method than its own.
const OVERRIDES: [&str; 3] = ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"];

/// Reads every file below a directory.
/// The index beside the database is left out, because readers write to it.
fn contents(dir: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            into.insert(path.clone(), Vec::new());
            contents(&path, into);
        } else if path.extension().is_none_or(|extension| extension != "db-shm") {
            into.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
}

fn tree(server: &Server) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    contents(server.tree(), &mut found);
    found
}

/// A path of the route that names something there.
fn known(route: &Route) -> String {
    let job = route.pattern.contains("{job_id}");
    let name = if route.pattern.contains("{name}") { "api" } else { "b0000000" };
    let id = "b0000000-0000-4000-8000-000000000001";
    fill(&route.pattern, if job || name == "api" { name } else { id })
}

#[tokio::test]
async fn h8_no_get_route_of_the_table_changes_anything_whatever_method_it_claims() {
    let server = Server::with(&configuration(""), ServeOptions::default()).await;
    server.fill().await;
    let cookie = signed_in(&server).await;
    let get = |path: &str| Sent::new("GET", path).header("Cookie", &cookie);
    // What is asked for the first time may be kept: the agent's version, a compressed page.
    let routes: Vec<Route> = svc_http::table();
    let reads = || routes.iter().filter(|route| route.method == "GET");
    for route in reads() {
        server.send(get(&known(route))).await;
    }
    let records = async || format!("{:?}", server.app.instances().reconciled().await.unwrap());
    let before = (records().await, tree(&server));
    let mut asked = 0;
    for route in reads() {
        for path in [known(route), path_of(route)] {
            for (claims, query) in
                [("DELETE", "_method=DELETE"), ("POST", "_method=POST&method=PUT")]
            {
                let mut sent = get(&format!("{path}?{query}")).header("Origin", &own(&server));
                for header in OVERRIDES {
                    sent = sent.header(header, claims);
                }
                let reply = server.send(sent).await;
                assert!(reply.status < 500 || reply.status == 503, "{path}: {}", reply.text());
                asked += 1;
            }
        }
    }
    assert!(asked >= 4 * 30, "{asked} requests: the table is not the router's");
    assert_eq!(records().await, before.0);
    let after = tree(&server);
    let names = |tree: &BTreeMap<PathBuf, Vec<u8>>| tree.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&after), names(&before.1), "files came or went");
    let changed = after.iter().filter(|(path, now)| before.1.get(*path) != Some(now));
    let changed: Vec<_> = changed.map(|(path, _)| path).collect();
    assert!(changed.is_empty(), "files changed by reading: {changed:?}");
    assert_eq!(server.send(get("/api/projects")).await.status, 200, "still signed in");
}

/// The pattern without the names of placeholders.
/// Documented routes are served below both prefixes.
fn shape(route: &Route) -> String {
    fill(&route.pattern, "*").replacen("/api/v1/", "/api/", 1)
}

#[tokio::test]
async fn h8_a_request_is_the_method_of_its_first_line() {
    let server = Server::filled().await;
    let before = server.get("/api/v1/instances").await.body;
    for route in svc_http::table() {
        if route.method == "GET" || route.kind == RouteKind::Socket {
            continue;
        }
        // As a form could send it: a POST that claims to be the method of the route.
        let is_routed = |method: &str| {
            let mut all = svc_http::table().into_iter();
            all.any(|other| other.method == method && shape(&other) == shape(&route))
        };
        for method in ["GET", "POST"].into_iter().filter(|method| !is_routed(method)) {
            let mut sent = Sent::new(method, &known(&route));
            for header in OVERRIDES {
                sent = sent.header(header, route.method.as_str());
            }
            let reply = server.send(sent).await;
            let cell = format!("{method} as {} {}", route.method, route.pattern);
            assert_eq!(reply.status, 405, "{cell}: {}", reply.text());
        }
    }
    assert_eq!(server.get("/api/v1/instances").await.body, before);
}
