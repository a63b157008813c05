//! `svc doctor --probe` through proxies that are sound and proxies that are not.

use crate::harness::{Ran, Start, World, within};
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

const HASH: &str = "$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q\
    $dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk";

/// What a proxy does to what passes it.
#[derive(Debug, Clone, Default)]
struct Proxy {
    /// Lines that a request gets, in place of its own of that name.
    sets: Vec<(&'static str, &'static str)>,
    /// Headers that a request loses.
    drops: Vec<&'static str>,
    /// Headers that an answer loses.
    hides: Vec<&'static str>,
    /// A prefix that is taken off the path.
    strips: &'static str,
    /// The first answer of a path is given to everybody who asks for it.
    caches: bool,
}

impl Proxy {
    /// Serves until the test ends.
    async fn begin(self, port: u16) -> SocketAddr {
        self.listen(port, None).await
    }

    /// The same over TLS, with a certificate for these days and this name.
    async fn secure(self, port: u16, name: &str, days_left: i64) -> SocketAddr {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let now = time::OffsetDateTime::now_utc();
        params.not_before = now - time::Duration::days(400);
        params.not_after = now + time::Duration::days(days_left);
        let key = KeyPair::generate().unwrap();
        let cert = params.self_signed(&key).unwrap().der().clone();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder().with_no_client_auth();
        let config = config.with_single_cert(vec![cert], key).unwrap();
        self.listen(port, Some(TlsAcceptor::from(Arc::new(config)))).await
    }

    async fn listen(self, port: u16, tls: Option<TlsAcceptor>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let kept = Arc::new(tokio::sync::Mutex::new(Vec::<(String, Vec<u8>)>::new()));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (proxy, kept, tls) = (self.clone(), Arc::clone(&kept), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => proxy.pass(client, port, &kept).await,
                        Some(tls) => proxy.pass(tls.accept(client).await.ok()?, port, &kept).await,
                    }
                });
            }
        });
        address
    }

    async fn pass<S: AsyncRead + AsyncWrite + Unpin>(
        self,
        mut client: S,
        port: u16,
        kept: &tokio::sync::Mutex<Vec<(String, Vec<u8>)>>,
    ) -> Option<()> {
        let head = head(&mut client).await?;
        let mut lines = head.lines();
        let first = lines.next()?.replacen(&format!(" {}/", self.strips), " /", 1);
        if self.caches
            && let Some((_, answer)) = kept.lock().await.iter().find(|(key, _)| *key == first)
        {
            client.write_all(answer).await.ok()?;
            return client.shutdown().await.ok();
        }
        let is_gone = |line: &str| {
            let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
            let is_set = self.sets.iter().any(|(set, _)| *set == name);
            line.is_empty() || is_set || self.drops.contains(&name.as_str())
        };
        let mut onward = format!("{first}\r\n");
        for line in lines.filter(|line| !is_gone(line)) {
            onward.push_str(&format!("{line}\r\n"));
        }
        for (name, value) in self.sets.iter().filter(|(_, value)| !value.is_empty()) {
            onward.push_str(&format!("{name}: {value}\r\n"));
        }
        onward.push_str("\r\n");
        let mut service = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
        service.write_all(onward.as_bytes()).await.ok()?;
        let mut answer = head_of(&mut service, &self.hides).await?;
        let mut body = vec![0; length(&answer)];
        service.read_exact(&mut body).await.ok()?;
        answer.extend(body);
        if self.caches {
            kept.lock().await.push((first, answer.clone()));
        }
        client.write_all(&answer).await.ok()?;
        client.shutdown().await.ok()
    }
}

/// Everything up to the empty line.
async fn head<S: AsyncRead + Unpin>(stream: &mut S) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(head).ok()
}

async fn head_of(service: &mut TcpStream, hides: &[&str]) -> Option<Vec<u8>> {
    let head = head(service).await?;
    let is_hidden = |line: &str| {
        let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
        hides.contains(&name.as_str())
    };
    let mut kept = String::new();
    for line in head.lines().filter(|line| !line.is_empty() && !is_hidden(line)) {
        kept.push_str(&format!("{line}\r\n"));
    }
    kept.push_str("\r\n");
    Some(kept.into_bytes())
}

fn length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let line = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

fn closed(more: Value) -> Value {
    let mut auth = json!({ "enabled": true, "password_required": true, "password_hash": HASH });
    for (key, value) in more.as_object().cloned().unwrap_or_default() {
        auth[key] = value;
    }
    json!({ "auth": auth })
}

/// The verdicts by name, and the hint of each.
fn verdicts(ran: &Ran) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let report = ran.json();
    let checks = report["checks"].as_array().unwrap().iter();
    checks.map(|one| (text(&one["name"]), text(&one["status"]), text(&one["hint"]))).collect()
}

async fn probe(world: &World, url: &str) -> Vec<(String, String, String)> {
    let ran = within("the probe", world.cli(&["doctor", "--json", "--probe", url])).await;
    verdicts(&ran)
}

#[track_caller]
fn finds(found: &[(String, String, String)], name: &str, hint: &str) {
    let one = found.iter().find(|(own, ..)| own == name);
    let (_, status, said) = one.unwrap_or_else(|| panic!("no {name} in {found:?}"));
    assert_ne!(status, "ok", "{name} of {found:?}");
    assert!(said.contains(hint), "{name}: `{said}` names no `{hint}`");
}

#[tokio::test]
async fn the_probe_finds_nothing_where_all_is_well() {
    for settings in [json!({}), closed(json!({}))] {
        let world = World::with(settings);
        let server = world.serve().await;
        for url in [server.base.clone(), format!("{}/", server.base)] {
            let found = probe(&world, &url).await;
            assert!(found.iter().all(|(_, status, _)| status == "ok"), "{found:?}");
            assert!(found.len() > 10, "{found:?}");
        }
        // Without an address it asks the one that the service has.
        let ran = world.cli(&["doctor", "--probe"]).await;
        assert_eq!(ran.code, Some(0), "{}", ran.stdout);
        server.stop().await;
    }
}

#[tokio::test]
async fn the_probe_finds_nothing_through_a_sound_proxy() {
    let proxy = Proxy::default();
    let world = World::new();
    let address = proxy.begin(world.port()).await;
    let origin = format!("http://{address}");
    world.configure(closed(json!({
        "allowed_origins": [origin],
        "reverse_proxy": { "trusted_ips": ["127.0.0.1"] },
    })));
    let server = world.serve().await;
    let found = probe(&world, &origin).await;
    assert!(found.iter().all(|(_, status, _)| status == "ok"), "{found:?}");
    server.stop().await;
}

#[tokio::test]
async fn the_probe_names_what_a_proxy_does_wrong() {
    let world = World::with(closed(json!({ "reverse_proxy": { "trusted_ips": ["127.0.0.0/8"] } })));
    let server = world.serve().await;
    let rows: [(Proxy, &str, &str); 8] = [
        (Proxy::default(), "probe-origin", "auth.allowed_origins"),
        (Proxy::default(), "probe-trust", "127.0.0.1 in auth.reverse_proxy.trusted_ips"),
        (
            Proxy { sets: vec![("host", "backend")], ..Proxy::default() },
            "probe-host",
            "auth.allowed_hosts",
        ),
        (
            Proxy { sets: vec![("host", "127.0.0.1:1")], ..Proxy::default() },
            "probe-host",
            "proxy_set_header Host",
        ),
        (
            Proxy { drops: vec!["upgrade", "connection"], ..Proxy::default() },
            "probe-socket",
            "proxy_set_header Upgrade",
        ),
        (Proxy { caches: true, ..Proxy::default() }, "probe-cache", "proxy_cache off"),
        (
            Proxy { hides: vec!["content-security-policy"], ..Proxy::default() },
            "probe-headers",
            "proxy_hide_header",
        ),
        (Proxy { drops: vec!["origin"], ..Proxy::default() }, "probe-origin", "Origin"),
    ];
    for (proxy, name, hint) in rows {
        let shown = format!("{proxy:?}");
        let address = proxy.begin(world.port()).await;
        let found = probe(&world, &format!("http://{address}")).await;
        let one = found.iter().find(|(own, ..)| own == name);
        assert!(one.is_some_and(|(_, status, _)| status != "ok"), "{shown}: {found:?}");
        finds(&found, name, hint);
    }
    let address = Proxy { strips: "/tools/svc", ..Proxy::default() }.begin(world.port()).await;
    let found = probe(&world, &format!("http://{address}/tools/svc/")).await;
    finds(&found, "probe-root", "root_path");
    server.stop().await;
}

#[tokio::test]
async fn the_probe_finds_a_user_header_that_anybody_may_send() {
    let world = World::with(closed(json!({ "reverse_proxy": {
        "enabled": true, "require_hmac": false, "trusted_ips": ["127.0.0.1"],
    } })));
    let server = world.serve().await;
    let address = Proxy::default().begin(world.port()).await;
    let found = probe(&world, &format!("http://{address}")).await;
    finds(&found, "probe-user-header", "auth.reverse_proxy.require_hmac");
    // A proxy that names the user itself lets nobody else do that.
    let names = Proxy { sets: vec![("remote-user", "")], ..Proxy::default() };
    let address = names.begin(world.port()).await;
    let found = probe(&world, &format!("http://{address}")).await;
    let header = found.iter().find(|(name, ..)| name == "probe-user-header").unwrap();
    assert_eq!(header.1, "ok", "{found:?}");
    server.stop().await;
}

#[tokio::test]
async fn the_probe_finds_an_address_where_nobody_or_somebody_else_answers() {
    let world = World::new();
    let ran = world.cli(&["doctor", "--probe", "http://127.0.0.1:9/"]).await;
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    let server = world.serve().await;
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let found = probe(&world, &format!("http://{free}/")).await;
    finds(&found, "probe-reach", "correct the address");
    let other = World::new();
    let secret = [("SVC_SESSION_SECRET", "the secret of another installation of svc")];
    let stranger = other.serve_as(Start { env: &secret, ..Start::default() }).await;
    let found = probe(&world, &stranger.base).await;
    finds(&found, "probe-root", "root_path");
    let ran = world.cli(&["doctor", "--probe", "nowhere"]).await;
    assert!(
        ran.stdout.contains("is no address") || ran.stdout.contains("begins with neither"),
        "{}",
        ran.stdout
    );
    stranger.stop().await;
    server.stop().await;
}

#[tokio::test]
async fn the_probe_finds_what_is_wrong_with_encryption_at_a_proxy() {
    let world = World::with(closed(json!({ "reverse_proxy": { "trusted_ips": ["127.0.0.1"] } })));
    let server = world.serve().await;
    let says = Proxy { sets: vec![("x-forwarded-proto", "https")], ..Proxy::default() };
    for (proxy, name, days, check, hint) in [
        (Proxy::default(), "127.0.0.1", 90, "probe-https", "X-Forwarded-Proto $scheme"),
        (Proxy::default(), "127.0.0.1", 90, "probe-cookie", "auth.cookie_secure"),
        (says.clone(), "127.0.0.1", -1, "probe-certificate", "the certificate of the proxy"),
        (says.clone(), "127.0.0.1", 20, "probe-certificate", "the certificate of the proxy"),
        (says.clone(), "box.example", 90, "probe-certificate", "the certificate of the proxy"),
    ] {
        let address = proxy.secure(world.port(), name, days).await;
        finds(&probe(&world, &format!("https://{address}/")).await, check, hint);
    }
    let address = says.clone().secure(world.port(), "127.0.0.1", 90).await;
    let found = probe(&world, &format!("https://{address}/")).await;
    let bad: Vec<_> = found.iter().filter(|(_, status, _)| status != "ok").collect();
    assert_eq!(bad.len(), 1, "{found:?}");
    finds(&found, "probe-origin", "auth.allowed_origins");
    server.stop().await;
}

#[tokio::test]
async fn the_probe_finds_what_is_wrong_with_the_own_certificate() {
    let world = World::new();
    let (cert, key) = (world.root.join("own.crt"), world.root.join("own.key"));
    let mut params = CertificateParams::new(vec!["box.example".to_owned()]).unwrap();
    params.not_before = time::OffsetDateTime::now_utc() - time::Duration::days(9);
    params.not_after = time::OffsetDateTime::now_utc() + time::Duration::days(90);
    let pair = KeyPair::generate().unwrap();
    fs::write(&cert, params.self_signed(&pair).unwrap().pem()).unwrap();
    fs::write(&key, pair.serialize_pem()).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    world.configure(closed(json!({ "cookie_secure": "never" })));
    world.configure(json!({ "tls": { "cert_file": cert, "key_file": key } }));
    let server = world.serve().await;
    let found = probe(&world, &format!("https://127.0.0.1:{}/", world.port())).await;
    finds(&found, "tls", "tls.key_file");
    finds(&found, "probe-certificate", "tls.cert_file");
    finds(&found, "probe-cookie", "auth.cookie_secure");
    server.stop().await;
}

#[tokio::test]
async fn the_probe_finds_a_certificate_that_has_expired_and_a_key_of_another_one() {
    let world = World::new();
    let (cert, key) = (world.root.join("own.crt"), world.root.join("own.key"));
    let make = |days_left: i64| {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let now = time::OffsetDateTime::now_utc();
        params.not_before = now - time::Duration::days(90);
        params.not_after = now + time::Duration::days(days_left);
        let pair = KeyPair::generate().unwrap();
        fs::write(&cert, params.self_signed(&pair).unwrap().pem()).unwrap();
        fs::write(&key, pair.serialize_pem()).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    };
    world.configure(closed(json!({})));
    world.configure(json!({ "tls": { "cert_file": cert, "key_file": key } }));
    make(60);
    let server = world.serve().await;
    let url = format!("https://127.0.0.1:{}/", world.port());
    let found = probe(&world, &url).await;
    assert!(found.iter().all(|(_, status, _)| status == "ok"), "{found:?}");
    // The pair of the next start, which the running service does not take.
    fs::write(&key, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    finds(&probe(&world, &url).await, "tls", "tls.key_file");
    server.stop().await;
    make(-1);
    let server = world.serve().await;
    let found = probe(&world, &url).await;
    finds(&found, "tls", "tls.cert_file");
    finds(&found, "probe-certificate", "tls.cert_file");
    server.stop().await;
}

#[tokio::test]
async fn the_probe_finds_a_service_that_is_open_to_its_network() {
    // No packet is sent: the system only says which address it would use.
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    let own = socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr());
    let Some(own) = own.ok().map(|own| own.ip()).filter(|own| !own.is_loopback()) else {
        svc_skip::skip!("this machine has no address but loopback");
    };
    let world = World::with(json!({
        "host": "0.0.0.0",
        "auth": { "allow_unauthenticated_network": true },
        "observability": { "prometheus_enabled": true },
    }));
    let server = world.serve().await;
    let url = format!("http://{own}:{}/", world.port());
    let found = probe(&world, &url).await;
    finds(&found, "auth", "auth.enabled");
    finds(&found, "probe-permission", "auth.enabled");
    finds(&found, "probe-metrics", "observability.");
    finds(&found, "probe-https", "tls.");
    finds(&found, "probe-origin", "auth.allowed_origins");
    server.stop().await;

    world.configure(closed(
        json!({ "cookie_secure": "never", "allow_unauthenticated_network": false }),
    ));
    let server = world.serve().await;
    let found = probe(&world, &url).await;
    finds(&found, "probe-cookie", "tls.provision");
    assert!(found.iter().any(|(name, status, _)| name == "probe-permission" && status == "ok"));
    server.stop().await;
}

/// A route that tells what arrives tells it to nobody else.
#[tokio::test]
async fn what_arrived_is_told_only_to_the_operator() {
    let world = World::with(closed(json!({})));
    let server = world.serve().await;
    for path in ["/api/probe", "/ws/probe"] {
        assert_eq!(server.client.get(path).await.refused(401), "auth_required");
        let request = server.client.request(reqwest::Method::GET, path);
        let forged = server.client.send(request.header("X-Svc-Probe", "AAAA.AAAA")).await;
        assert_eq!(forged.refused(401), "auth_required");
    }
    server.stop().await;
}
