//! Each fault that `svc doctor --probe` has to find, alone in a sound set-up.

use crate::harness::{Proxy, Ran, World, within};
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

const HASH: &str = "$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q\
    $dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk";

/// Name, verdict and hint of a check.
pub(crate) type Found = (String, String, String);

/// A configuration with a password, and `more` below `auth`.
pub(crate) fn closed(more: Value) -> Value {
    let mut auth = json!({ "enabled": true, "password_required": true, "password_hash": HASH });
    for (key, value) in more.as_object().cloned().unwrap_or_default() {
        auth[key] = value;
    }
    json!({ "auth": auth })
}

/// What the command says of this address, or of the one that it finds itself.
pub(crate) async fn probe(world: &World, url: Option<&str>) -> Vec<Found> {
    let args = ["doctor", "--json", "--probe"];
    let ran: Ran = within("the probe", world.cli(&[&args[..], url.as_slice()].concat())).await;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let report = ran.json();
    let checks = report["checks"].as_array().unwrap().iter();
    checks.map(|one| (text(&one["name"]), text(&one["status"]), text(&one["hint"]))).collect()
}

/// The names of the checks that found something.
pub(crate) fn wrong(found: &[Found]) -> Vec<&str> {
    let wrong = found.iter().filter(|(_, status, _)| status != "ok");
    wrong.map(|(name, ..)| name.as_str()).collect()
}

#[track_caller]
pub(crate) fn finds(found: &[Found], name: &str, hint: &str) {
    let one = found.iter().find(|(own, ..)| own == name);
    let (_, status, said) = one.unwrap_or_else(|| panic!("no {name} in {found:?}"));
    assert_ne!(status, "ok", "{name} of {found:?}");
    assert!(said.contains(hint), "{name}: `{said}` names no `{hint}`");
}

/// A proxy with TLS that does what `docs/proxies` ask of one.
fn sound() -> Proxy {
    Proxy { sets: vec![("x-forwarded-proto", "https"), ("remote-user", "")], ..Proxy::default() }
}

/// The settings of a service behind a proxy at this address.
fn settings(origin: &str, changes: &Value) -> Value {
    let mut auth = json!({
        "allowed_origins": [origin],
        "reverse_proxy": { "trusted_ips": ["127.0.0.1"] },
    });
    for (key, value) in changes.as_object().cloned().unwrap_or_default() {
        auth[key] = value;
    }
    closed(auth)
}

/// Probes a service that is sound but for `changes` below `auth`, through `proxy`.
async fn through(proxy: Proxy, changes: Value) -> Vec<Found> {
    let world = World::new();
    let origin = format!("https://{}", proxy.secure(world.port(), "127.0.0.1", 90).await);
    world.configure(settings(&origin, &changes));
    let server = world.serve().await;
    let found = probe(&world, Some(&format!("{origin}/"))).await;
    server.stop().await;
    found
}

/// The address of this machine in a network, if it is in one.
fn own_address() -> Option<IpAddr> {
    // No packet is sent: the system only says which address it would use.
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    let own = socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr()).ok()?.ip();
    (!own.is_loopback()).then_some(own)
}

/// A service with a certificate of its own; the files, and how they are made anew.
struct OwnTls {
    world: World,
    cert: PathBuf,
    key: PathBuf,
}

impl OwnTls {
    fn new() -> Self {
        let world = World::with(closed(json!({})));
        let (cert, key) = (world.root.join("own.crt"), world.root.join("own.key"));
        world.configure(json!({ "tls": { "cert_file": cert, "key_file": key } }));
        let own = Self { world, cert, key };
        own.make(90);
        own
    }

    fn make(&self, days_left: i64) {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let now = time::OffsetDateTime::now_utc();
        params.not_before = now - time::Duration::days(90);
        params.not_after = now + time::Duration::days(days_left);
        let pair = KeyPair::generate().unwrap();
        fs::write(&self.cert, params.self_signed(&pair).unwrap().pem()).unwrap();
        fs::write(&self.key, pair.serialize_pem()).unwrap();
        self.set_mode(0o600);
    }

    fn set_mode(&self, mode: u32) {
        fs::set_permissions(&self.key, fs::Permissions::from_mode(mode)).unwrap();
    }

    async fn probed(&self) -> Vec<Found> {
        probe(&self.world, Some(&format!("https://127.0.0.1:{}/", self.world.port()))).await
    }
}

#[tokio::test]
async fn nothing_is_found_where_nothing_was_seeded() {
    let found = through(sound(), json!({})).await;
    assert!(wrong(&found).is_empty(), "{found:?}");
    assert!(found.len() > 13, "{found:?}");
    let own = OwnTls::new();
    let server = own.world.serve().await;
    let found = own.probed().await;
    assert!(wrong(&found).is_empty(), "{found:?}");
    server.stop().await;
}

#[tokio::test]
async fn fault_01_a_network_without_a_password() {
    let Some(own) = own_address() else {
        svc_skip::skip!("this machine has no address but loopback");
    };
    let world = World::with(json!({
        "host": "0.0.0.0", "auth": { "allow_unauthenticated_network": true },
    }));
    let server = world.serve().await;
    let elsewhere = format!("http://{own}:{}/", world.port());
    // The address that the service names itself is a loopback address.
    for url in [Some(elsewhere.as_str()), None] {
        let found = probe(&world, url).await;
        finds(&found, "auth", "auth.enabled");
        finds(&found, "probe-permission", "auth.enabled");
        finds(&found, "probe-https", "tls.provision");
    }
    server.stop().await;
}

#[tokio::test]
async fn fault_02_the_public_origin_is_not_allowed() {
    let found = through(sound(), json!({ "allowed_origins": [] })).await;
    assert_eq!(wrong(&found), ["probe-origin"], "{found:?}");
    finds(&found, "probe-origin", "auth.allowed_origins");
}

#[tokio::test]
async fn fault_03_a_proxy_makes_a_refused_name_of_the_host() {
    let mut proxy = sound();
    proxy.sets.push(("host", "backend"));
    let found = through(proxy, json!({})).await;
    assert_eq!(wrong(&found), ["probe-host"], "{found:?}");
    finds(&found, "probe-host", "auth.allowed_hosts");
    finds(&found, "probe-host", "proxy_set_header Host");
}

#[tokio::test]
async fn fault_04_a_proxy_drops_upgrade() {
    for drops in [vec!["upgrade", "connection"], vec!["upgrade"]] {
        let found = through(Proxy { drops, ..sound() }, json!({})).await;
        assert_eq!(wrong(&found), ["probe-socket"], "{found:?}");
        finds(&found, "probe-socket", "proxy_set_header Upgrade");
    }
}

#[tokio::test]
async fn fault_05_a_proxy_passes_on_a_users_name_of_the_client() {
    let by_name = json!({ "enabled": true, "require_hmac": false, "trusted_ips": ["127.0.0.1"] });
    let passes = Proxy { sets: vec![("x-forwarded-proto", "https")], ..Proxy::default() };
    let found = through(passes, json!({ "reverse_proxy": by_name })).await;
    assert_eq!(wrong(&found), ["probe-user-header"], "{found:?}");
    finds(&found, "probe-user-header", "auth.reverse_proxy.require_hmac");
    finds(&found, "probe-user-header", "proxy_set_header Remote-User");
    let found = through(sound(), json!({ "reverse_proxy": by_name })).await;
    assert!(wrong(&found).is_empty(), "{found:?}");
}

#[tokio::test]
async fn fault_06_more_is_trusted_than_the_proxy() {
    for wide in ["127.0.0.0/8", "0.0.0.0/0"] {
        let proxy = json!({ "trusted_ips": [wide] });
        let found = through(sound(), json!({ "reverse_proxy": proxy })).await;
        assert_eq!(wrong(&found), ["probe-trust"], "{wide}: {found:?}");
        finds(&found, "probe-trust", "127.0.0.1 in auth.reverse_proxy.trusted_ips");
    }
}

#[tokio::test]
async fn fault_07_a_cookie_without_secure_on_a_network() {
    let Some(own) = own_address() else {
        svc_skip::skip!("this machine has no address but loopback");
    };
    let world = World::new();
    let origin = format!("http://{own}:{}", world.port());
    let local = format!("http://127.0.0.1:{}", world.port());
    let origins = [&origin, &local];
    world.configure(closed(json!({ "cookie_secure": "never", "allowed_origins": origins })));
    world.configure(json!({ "host": "0.0.0.0" }));
    let server = world.serve().await;
    for url in [format!("{origin}/"), format!("{local}/")] {
        let found = probe(&world, Some(&url)).await;
        assert_eq!(wrong(&found), ["auth", "probe-https", "probe-cookie"], "{url}: {found:?}");
        finds(&found, "probe-cookie", "tls.provision");
        finds(&found, "probe-cookie", "auth.cookie_secure");
    }
    server.stop().await;
}

#[tokio::test]
async fn fault_08_the_path_of_the_proxy_is_not_root_path() {
    // The proxy takes its path off, or passes another one on, or has none.
    for (strips, root_path, path) in
        [("/tools/svc", "", "/tools/svc"), ("", "/svc", "/tools"), ("", "/svc", "")]
    {
        let world = World::new();
        let proxy = Proxy { strips, ..sound() };
        let origin = format!("https://{}", proxy.secure(world.port(), "127.0.0.1", 90).await);
        world.configure(settings(&origin, &json!({})));
        world.configure(json!({ "root_path": root_path }));
        let server = world.serve().await;
        let found = probe(&world, Some(&format!("{origin}{path}/"))).await;
        assert_eq!(wrong(&found), ["probe-root"], "{root_path} at {path}: {found:?}");
        finds(&found, "probe-root", "root_path");
        server.stop().await;
    }
}

#[tokio::test]
async fn fault_09_a_proxy_keeps_answers_of_the_api() {
    for keeps_cookies in [true, false] {
        let found = through(Proxy { caches: true, keeps_cookies, ..sound() }, json!({})).await;
        assert_eq!(wrong(&found), ["probe-cache"], "{keeps_cookies}: {found:?}");
        finds(&found, "probe-cache", "proxy_cache off");
    }
}

#[tokio::test]
async fn fault_10_a_proxy_takes_a_protecting_header_away() {
    let world = World::new();
    let mut origins = Vec::new();
    for header in [
        "content-security-policy",
        "x-frame-options",
        "x-content-type-options",
        "referrer-policy",
        "cross-origin-opener-policy",
        "cross-origin-resource-policy",
        "permissions-policy",
        "strict-transport-security",
    ] {
        let proxy = Proxy { hides: vec![header], ..sound() };
        origins.push(format!("https://{}", proxy.secure(world.port(), "127.0.0.1", 90).await));
    }
    world.configure(settings("", &json!({ "allowed_origins": origins })));
    let server = world.serve().await;
    for origin in &origins {
        let found = probe(&world, Some(&format!("{origin}/"))).await;
        assert_eq!(wrong(&found), ["probe-headers"], "{found:?}");
        finds(&found, "probe-headers", "proxy_hide_header");
    }
    server.stop().await;
}

#[tokio::test]
async fn fault_11_a_proxy_does_not_say_that_it_encrypts() {
    let silent = Proxy { sets: vec![("remote-user", "")], ..Proxy::default() };
    let found = through(silent, json!({})).await;
    assert_eq!(wrong(&found), ["probe-https", "probe-cookie"], "{found:?}");
    finds(&found, "probe-https", "X-Forwarded-Proto $scheme");
}

#[tokio::test]
async fn fault_12_an_expired_certificate_another_key_or_one_that_others_read() {
    let own = OwnTls::new();
    own.make(-1);
    let server = own.world.serve().await;
    let found = own.probed().await;
    assert_eq!(wrong(&found), ["tls", "probe-certificate"], "{found:?}");
    finds(&found, "tls", "tls.cert_file");
    finds(&found, "probe-certificate", "tls.cert_file");
    server.stop().await;

    own.make(90);
    let server = own.world.serve().await;
    own.set_mode(0o644);
    let found = own.probed().await;
    assert_eq!(wrong(&found), ["tls"], "{found:?}");
    finds(&found, "tls", "tls.key_file");
    // The pair of the next start, which the running service does not take.
    fs::write(&own.key, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    own.set_mode(0o600);
    let found = own.probed().await;
    assert_eq!(wrong(&found), ["tls"], "{found:?}");
    finds(&found, "tls", "tls.key_file");
    server.stop().await;
}

#[tokio::test]
async fn fault_13_anybody_reads_the_figures() {
    let Some(own) = own_address() else {
        svc_skip::skip!("this machine has no address but loopback");
    };
    let world = World::with(json!({
        "host": "0.0.0.0",
        "auth": { "allow_unauthenticated_network": true },
        "observability": { "prometheus_enabled": true },
    }));
    let server = world.serve().await;
    let elsewhere = format!("http://{own}:{}/", world.port());
    for url in [Some(elsewhere.as_str()), None] {
        finds(&probe(&world, url).await, "probe-metrics", "observability.metrics_token_hash");
    }
    server.stop().await;
    world.configure(closed(json!({ "allow_unauthenticated_network": false })));
    let server = world.serve().await;
    for url in [Some(elsewhere.as_str()), None] {
        let found = probe(&world, url).await;
        assert!(!wrong(&found).contains(&"probe-metrics"), "{found:?}");
    }
    server.stop().await;
}
