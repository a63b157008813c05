//! The service behind a real nginx and a real Caddy, with `docs/proxies`.

use crate::harness::{Client, Edge, Reply, World, installed, within};
use futures_util::StreamExt as _;
use reqwest::Method;
use serde_json::{Value, json};
use std::fs;
use std::sync::Arc;
use svc_skip::skip;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{self, Message};

const NO_NGINX: &str = "nginx is not installed";
const NO_CADDY: &str = "Caddy is not installed";
const PASSWORD: &str = "correct horse";
const HASH: &str = "$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q\
    $dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk";
const SECRET: &str = "what the proxy and the service know";

/// The configuration that the head of each example asks for.
fn behind(edge: &Edge, root_path: &str, more: Value) -> Value {
    let mut auth = json!({
        "enabled": true,
        "password_required": true,
        "password_hash": HASH,
        "allowed_origins": [edge.origin],
        "reverse_proxy": { "trusted_ips": ["127.0.0.1"] },
    });
    for (key, value) in more.as_object().cloned().unwrap_or_default() {
        auth["reverse_proxy"][key] = value;
    }
    json!({ "root_path": root_path, "auth": auth })
}

/// Opens a socket through the proxy, with these headers beside the origin.
async fn socket(
    edge: &Edge,
    path: &str,
    headers: &[(&'static str, &str)],
) -> Result<Value, tungstenite::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&edge.certificate).unwrap()).unwrap();
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let mut request =
        format!("{}{path}", edge.origin.replacen("https", "wss", 1)).into_client_request().unwrap();
    request.headers_mut().insert("origin", edge.origin.parse().unwrap());
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    let at = edge.origin.trim_start_matches("https://").to_owned();
    let stream = TcpStream::connect(at).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    let (mut socket, _) = within("a socket", Box::pin(client_async(request, stream))).await?;
    match within("a frame", socket.next()).await.unwrap()? {
        Message::Text(text) => Ok(serde_json::from_str(&text).unwrap()),
        other => panic!("{other:?}"),
    }
}

async fn sign_in(client: &Client, origin: &str) -> Reply {
    let request = client.request(Method::POST, "/login").header("Origin", origin);
    client.send(request.json(&json!({ "password": PASSWORD }))).await.expect(200)
}

/// Everything that a person does in a day, through the proxy.
async fn a_day(world: &World, edge: &Edge, root_path: &str) {
    let project = world.project("web");
    let base = format!("{}{root_path}", edge.origin);
    let client = Client::trusting(&base, &edge.certificate);
    client.get("/api/projects").await.expect(401);
    let signed_in = sign_in(&client, &edge.origin).await;
    let cookie = signed_in.header("set-cookie").unwrap().to_owned();
    let path = if root_path.is_empty() { "/" } else { root_path };
    assert!(cookie.contains("; Secure") && cookie.contains(&format!("; Path={path}")), "{cookie}");
    assert_eq!(signed_in.header("strict-transport-security"), Some("max-age=31536000"));
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let get = |path: &str| client.request(Method::GET, path).header("Cookie", &cookie);

    let access = client.send(get("/api/access")).await.expect(200).json();
    assert_eq!(access["https"], json!(true), "{access}");
    let page = client.send(get("/").header("Accept", "text/html")).await.expect(200);
    assert!(page.text().contains(&format!("{root_path}/static/")), "{}", page.text());
    assert!(page.header("content-security-policy").is_some());

    // A body that nginx keeps in a file on its way, and one that the service refuses itself.
    let text = "x".repeat(60_000);
    let write = client.request(Method::PUT, "/api/projects/web/claude-md");
    let write = write.header("Cookie", &cookie).header("Origin", &edge.origin);
    let written = client.send(write.json(&json!({ "content": text, "base_sha256": null }))).await;
    written.expect(200);
    assert_eq!(fs::read_to_string(project.join("CLAUDE.md")).unwrap(), text);
    let large = client.request(Method::POST, "/api/instances").header("Cookie", &cookie);
    let large = large.header("Origin", &edge.origin).body("x".repeat(1_900_000));
    let large = client.send(large.header("Content-Type", "application/json")).await;
    assert_eq!(large.refused(413), "too_large");

    let foreign = client.request(Method::POST, "/api/instances").header("Cookie", &cookie);
    let foreign = foreign.header("Origin", "https://elsewhere.example");
    client.send(foreign.json(&json!({ "project": "web" }))).await.expect(403);
    let launch = client.request(Method::POST, "/api/instances").header("Cookie", &cookie);
    let launch = launch.header("Origin", &edge.origin).json(&json!({ "project": "web" }));
    let launched = client.send(launch).await.expect(201).instance();

    let events = format!("{root_path}/ws/events");
    assert!(socket(edge, &events, &[]).await.is_err(), "a stranger");
    let first = socket(edge, &events, &[("cookie", &cookie)]).await.unwrap();
    assert_eq!(first["type"], "hello", "{first}");
    let log = format!("{root_path}/ws/bridge-log/{}?format=json", launched.instance_id);
    socket(edge, &log, &[("cookie", &cookie)]).await.unwrap();

    let out = client.request(Method::POST, "/logout").header("Cookie", &cookie);
    client.send(out.header("Origin", &edge.origin)).await;
    client.send(get("/api/projects")).await.expect(401);
}

/// What the probe finds wrong through the proxy.
async fn wrong(world: &World, url: &str) -> Vec<String> {
    let report = within("the probe", world.cli(&["doctor", "--json", "--probe", url])).await.json();
    let checks = report["checks"].as_array().unwrap().iter();
    let wrong = checks.filter(|check| check["status"] != "ok");
    wrong.map(ToString::to_string).collect()
}

#[tokio::test]
async fn h13_a_day_below_a_path_of_nginx_over_tls() {
    let Some(nginx) = installed("nginx") else { skip!("{NO_NGINX}") };
    let world = World::new();
    let mut edge = Edge::new(&world);
    world.configure(behind(&edge, "/svc", json!({})));
    let server = world.serve().await;
    edge.nginx(&world, &nginx, "nginx.conf").await;
    a_day(&world, &edge, "/svc").await;
    let found = wrong(&world, &format!("{}/svc/", edge.origin)).await;
    assert!(found.is_empty(), "{found:#?}");
    server.stop().await;
}

#[tokio::test]
async fn h13_a_day_behind_caddy_over_tls() {
    let Some(caddy) = installed("caddy") else { skip!("{NO_CADDY}") };
    let world = World::new();
    let mut edge = Edge::new(&world);
    world.configure(behind(&edge, "", json!({})));
    let server = world.serve().await;
    edge.caddy(&world, &caddy).await;
    a_day(&world, &edge, "").await;
    let found = wrong(&world, &format!("{}/", edge.origin)).await;
    assert!(found.is_empty(), "{found:#?}");
    server.stop().await;
}

/// One line of `docs/proxies/nginx.conf` is missing or wrong.
#[tokio::test]
async fn the_probe_names_the_line_of_nginx_that_is_wrong() {
    let Some(nginx) = installed("nginx") else { skip!("{NO_NGINX}") };
    let world = World::new();
    let mut edge = Edge::new(&world);
    // Whoever comes from the proxy with a name is believed, as long as only the proxy gives names.
    world.configure(behind(&edge, "/svc", json!({ "enabled": true, "require_hmac": false })));
    let server = world.serve().await;
    edge.nginx(&world, &nginx, "nginx.conf").await;
    let url = format!("{}/svc/", edge.origin);
    let found = wrong(&world, &url).await;
    assert!(found.is_empty(), "{found:#?}");
    let no_user = "proxy_set_header Remote-User \"\";";
    let kept = "proxy_cache kept; proxy_cache_valid any 1m; proxy_buffering on; \
        proxy_ignore_headers Cache-Control Expires;";
    let faults = [
        (("proxy_set_header Upgrade $http_upgrade;", ""), "probe-socket", "Upgrade $http_upgrade"),
        (("Host $http_host;", "Host backend;"), "probe-host", "Host $http_host"),
        (("Host $http_host;", "Host $proxy_host;"), "probe-host", "Host $http_host"),
        ((no_user, ""), "probe-user-header", "Remote-User $remote_user"),
        (("proxy_set_header X-Forwarded-Proto $scheme;", ""), "probe-https", "Proto $scheme"),
        (
            ("proxy_buffering off;\n        proxy_cache off;", kept),
            "probe-cache",
            "proxy_cache off",
        ),
        (
            ("proxy_cache off;", "proxy_hide_header Content-Security-Policy;"),
            "probe-headers",
            "proxy_hide_header",
        ),
        (
            ("proxy_cache off;", "proxy_cookie_path / /;\nproxy_cookie_flags ~ nohttponly;"),
            "probe-cookie",
            "proxy_cookie_flags",
        ),
    ];
    for (edit, name, hint) in faults {
        edge.faulty_nginx(&world, &nginx, "nginx.conf", edit).await;
        let found = wrong(&world, &url).await;
        let one = found.iter().find(|check| check.contains(&format!("\"name\":\"{name}\"")));
        assert!(one.is_some_and(|one| one.contains(hint)), "{edit:?}: {found:#?}");
    }
    edge.faulty_nginx(&world, &nginx, "nginx.conf", ("location /svc/", "location /tools/")).await;
    let found = wrong(&world, &format!("{}/tools/", edge.origin)).await;
    assert!(found.iter().any(|check| check.contains("probe-root")), "{found:#?}");
    server.stop().await;
}

#[tokio::test]
async fn h13_what_a_proxy_that_is_not_listed_says_of_the_client_is_not_believed() {
    let Some(nginx) = installed("nginx") else { skip!("{NO_NGINX}") };
    let world = World::new();
    let mut edge = Edge::new(&world);
    let elsewhere = json!({ "trusted_ips": ["192.0.2.7"] });
    world.configure(behind(&edge, "/svc", elsewhere));
    let server = world.serve().await;
    edge.nginx(&world, &nginx, "nginx.conf").await;
    let client = Client::trusting(&format!("{}/svc", edge.origin), &edge.certificate);
    let signed_in = sign_in(&client, &edge.origin).await;
    let cookie = signed_in.header("set-cookie").unwrap();
    assert!(!cookie.contains("; Secure"), "{cookie}");
    assert_eq!(signed_in.header("strict-transport-security"), None);
    let found = wrong(&world, &format!("{}/svc/", edge.origin)).await;
    assert!(found.iter().any(|check| check.contains("trusted_ips")), "{found:#?}");
    server.stop().await;
}

#[tokio::test]
async fn h24_nginx_signs_people_in_and_proves_it() {
    let Some(nginx) = installed("nginx") else { skip!("{NO_NGINX}") };
    let Some(python) = installed("python3") else { skip!("Python is not installed") };
    let world = World::new();
    world.project("web");
    let mut edge = Edge::new(&world);
    world.configure(behind(&edge, "/svc", json!({ "enabled": true, "shared_secret": SECRET })));
    let server = world.serve().await;
    fs::write(edge.path("svc.htpasswd"), "ann:{PLAIN}correct horse\n").unwrap();
    edge.signer(&world, &python, SECRET).await;
    edge.nginx(&world, &nginx, "nginx-users.conf").await;

    let client = Client::trusting(&format!("{}/svc", edge.origin), &edge.certificate);
    let ann = "Basic YW5uOmNvcnJlY3QgaG9yc2U=";
    let get = |path: &str| client.request(Method::GET, path);
    client.send(get("/api/projects").header("Authorization", ann)).await.expect(200);
    client.send(get("/api/instances?project=web").header("Authorization", ann)).await.expect(200);
    // nginx refuses these; what they claim does not get further.
    client.send(get("/healthz")).await.expect(401);
    client.send(get("/healthz").header("Authorization", "Basic YW5uOndyb25n")).await.expect(401);
    client.send(get("/api/projects").header("Remote-User", "ann")).await.expect(401);

    // A name of the client's own does not win.
    let as_bob = get("/api/access").header("Authorization", ann).header("Remote-User", "bob");
    let as_bob = as_bob.header("X-Proxy-Auth", "t=1,v1=00");
    client.send(as_bob).await.expect(200);

    let write = |origin: &str| {
        let write = client.request(Method::POST, "/api/instances").header("Authorization", ann);
        write.header("Origin", origin).json(&json!({ "project": "web" }))
    };
    client.send(write("https://elsewhere.example")).await.expect(403);
    client.send(write(&edge.origin)).await.expect(201);
    let signed = [("authorization", ann)];
    let first = socket(&edge, "/svc/ws/events", &signed).await.unwrap();
    assert_eq!(first["type"], "hello", "{first}");
    assert!(socket(&edge, "/svc/ws/events", &[]).await.is_err(), "a stranger");

    // Nothing is wrong, and what the probe may ask is closed to others.
    let found = wrong(&world, &format!("{}/svc/", edge.origin)).await;
    assert!(found.is_empty(), "{found:#?}");
    for path in ["/api/probe", "/api/probe/none", "/ws/probe"] {
        client.send(get(path)).await.expect(401);
        // Here nobody has proved this name to nginx.
        client.send(get(path).header("Authorization", "Basic YW5uOndyb25n")).await.expect(401);
        client.send(get(path).header("Remote-User", "ann")).await.expect(401);
    }

    // Somebody on the machine who goes past the proxy has a name and no proof.
    let past = Client::new(&server.base);
    let named = past.request(Method::GET, "/api/projects").header("Remote-User", "ann");
    past.send(named).await.expect(401);
    server.stop().await;
}
