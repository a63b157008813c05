//! The service over TLS: certificates made, given, replaced, refused (H13).

use crate::harness::{Client, Clock, Server, Start, World, within};
use futures_util::{SinkExt as _, StreamExt as _};
use rcgen::{CertificateParams, KeyPair};
use reqwest::Method;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ProtocolVersion, RootCertStore, version};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{WebSocketStream, client_async};

const PASSWORD: &str = "correct horse";
const HASH: &str = "$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q\
    $dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk";

fn closed(tls: Value) -> Value {
    let auth = json!({ "enabled": true, "password_required": true, "password_hash": HASH });
    json!({ "auth": auth, "tls": tls })
}

/// The address that the service says it has.
fn address(world: &World) -> String {
    let lock: Value =
        serde_json::from_slice(&fs::read(world.state.join("run.lock")).unwrap()).unwrap();
    lock["address"].as_str().unwrap().to_owned()
}

/// A pair for these names in the tree of the world.
fn pair(world: &World, stem: &str, names: &[&str], days_left: i64) -> (PathBuf, PathBuf) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    let now = time::OffsetDateTime::now_utc();
    params.not_before = now - time::Duration::days(400);
    params.not_after = now + time::Duration::days(days_left);
    let key = KeyPair::generate().unwrap();
    let (cert_file, key_file) =
        (world.root.join(format!("{stem}.crt")), world.root.join(format!("{stem}.key")));
    fs::write(&cert_file, params.self_signed(&key).unwrap().pem()).unwrap();
    fs::write(&key_file, key.serialize_pem()).unwrap();
    fs::set_permissions(&key_file, fs::Permissions::from_mode(0o600)).unwrap();
    (cert_file, key_file)
}

/// A client that trusts this certificate and nothing else.
fn trusting(cert: &Path) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(cert).unwrap()).unwrap();
    Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
}

async fn dial(
    world: &World,
    name: &'static str,
    config: &Arc<ClientConfig>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(("127.0.0.1", world.port())).await?;
    let name = ServerName::try_from(name).unwrap();
    within("a handshake", TlsConnector::from(Arc::clone(config)).connect(name, stream)).await
}

/// The certificate that a new connection gets.
async fn shown(world: &World, name: &'static str, config: &Arc<ClientConfig>) -> Option<Vec<u8>> {
    let stream = dial(world, name, config).await.ok()?;
    Some(stream.get_ref().1.peer_certificates()?.first()?.to_vec())
}

#[tokio::test]
async fn h13_a_certificate_is_made_and_the_printed_address_works() {
    let tls = json!({ "provision": "self-signed", "hostnames": ["127.0.0.1", "box.example"] });
    let world = World::with(closed(tls));
    let server = world.serve().await;
    let base = format!("https://127.0.0.1:{}", world.port());
    assert_eq!(address(&world), format!("{base}/"));
    assert!(server.says("projects in").await.contains(&format!("{base}/")), "the banner");
    let (cert, key) =
        (world.state.join("tls/self-signed.crt"), world.state.join("tls/self-signed.key"));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&key), mode(key.parent().unwrap())), (0o600, 0o700));

    let client = Client::trusting(&base, &fs::read(&cert).unwrap());
    client.get("/healthz").await.expect(200);
    let signed_in = client.request(Method::POST, "/login").header("Origin", &base);
    let signed_in = client.send(signed_in.json(&json!({ "password": PASSWORD }))).await.expect(200);
    let cookie = signed_in.header("set-cookie").unwrap().to_owned();
    assert!(cookie.contains("; Secure"), "{cookie}");
    assert_eq!(signed_in.header("strict-transport-security"), Some("max-age=31536000"));
    let access = client.request(Method::GET, "/api/access").header("Cookie", &cookie);
    let access = client.send(access).await.expect(200).json();
    assert_eq!((&access["tls"], &access["https"]), (&json!("self-signed"), &json!(true)));

    // The same certificate the next time, and the doctor agrees.
    let before = fs::read(&cert).unwrap();
    server.stop().await;
    let server = world.serve().await;
    assert_eq!(fs::read(&cert).unwrap(), before);
    let doctor = world.cli(&["doctor", "--json"]).await.json();
    let found = |name: &str| {
        let checks = doctor["checks"].as_array().unwrap().iter();
        checks.clone().find(|check| check["name"] == name).unwrap()["status"].clone()
    };
    assert_eq!(found("tls"), "ok");
    assert_eq!(found("server"), "ok");
    server.stop().await;
}

/// How cookies are marked is the key's decision; HSTS follows the connection alone.
#[tokio::test]
async fn h13_each_mode_of_cookies_marks_them_as_it_says() {
    for (is_secure, mode, is_marked) in [
        (false, "auto", false),
        (false, "always", true),
        (true, "never", false),
        (true, "always", true),
    ] {
        let mut settings =
            closed(json!({ "provision": "self-signed", "hostnames": ["127.0.0.1"] }));
        settings["auth"]["cookie_secure"] = json!(mode);
        if !is_secure {
            settings.as_object_mut().unwrap().remove("tls");
        }
        let world = World::with(settings);
        let server = world.serve().await;
        let base = address(&world).trim_end_matches('/').to_owned();
        assert_eq!(base.starts_with("https://"), is_secure, "{base}");
        let client = match fs::read(world.state.join("tls/self-signed.crt")) {
            Ok(certificate) => Client::trusting(&base, &certificate),
            Err(_) => Client::new(&base),
        };
        let ask = |path: &str| client.request(Method::POST, path).header("Origin", &base);
        let login = ask("/login").json(&json!({ "password": PASSWORD }));
        let signed_in = client.send(login).await.expect(200);
        let cookie = signed_in.header("set-cookie").unwrap().to_owned();
        let value = cookie.split(';').next().unwrap();
        let logout = ask("/logout").header("Cookie", value).header("Accept", "application/json");
        let taken_back = client.send(logout).await.expect(200);
        for cookie in [&cookie, taken_back.header("set-cookie").unwrap()] {
            assert_eq!(cookie.contains("; Secure"), is_marked, "{mode} {is_secure}: {cookie}");
            assert!(cookie.contains("; HttpOnly; SameSite=Lax"), "{cookie}");
        }
        let hsts = signed_in.header("strict-transport-security");
        assert_eq!(hsts.is_some(), is_secure, "{mode}: {hsts:?}");
        server.stop().await;
    }
}

#[tokio::test]
async fn the_printed_address_is_one_that_the_certificate_is_for() {
    let tls = json!({ "provision": "self-signed", "hostnames": ["box.example"] });
    let world = World::with(closed(tls));
    let server = world.serve().await;
    assert_eq!(address(&world), format!("https://box.example:{}/", world.port()));
    server.stop().await;
}

#[tokio::test]
async fn h13_plain_http_on_the_port_ends_and_only_current_versions_are_spoken() {
    let tls = json!({ "provision": "self-signed", "hostnames": ["127.0.0.1"] });
    let world = World::with(closed(tls));
    let server = world.serve().await;
    let mut plain = TcpStream::connect(("127.0.0.1", world.port())).await.unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = within("the end of the connection", plain.read_to_end(&mut answer)).await;
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    // Somebody who says nothing is not waited for.
    let mut silent = TcpStream::connect(("127.0.0.1", world.port())).await.unwrap();
    let _ = within("the end of the connection", silent.read_to_end(&mut answer)).await;

    let cert = CertificateDer::from_pem_file(world.state.join("tls/self-signed.crt")).unwrap();
    for (spoken, expected) in
        [(&version::TLS12, ProtocolVersion::TLSv1_2), (&version::TLS13, ProtocolVersion::TLSv1_3)]
    {
        let mut roots = RootCertStore::empty();
        roots.add(cert.clone()).unwrap();
        let config = ClientConfig::builder_with_protocol_versions(&[spoken])
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = dial(&world, "127.0.0.1", &Arc::new(config)).await.unwrap();
        assert_eq!(stream.get_ref().1.protocol_version(), Some(expected));
    }
    server.stop().await;
}

#[tokio::test]
async fn h13_a_new_certificate_is_used_at_once_and_open_sockets_stay() {
    let world = World::new();
    let (cert, key) = pair(&world, "first", &["box.example"], 60);
    let (used_cert, used_key) = (world.root.join("used.crt"), world.root.join("used.key"));
    let install = |cert: &Path, key: &Path| {
        // As tools for renewal do: a new file takes the name.
        for (from, to) in [(key, &used_key), (cert, &used_cert)] {
            let beside = to.with_extension("new");
            fs::copy(from, &beside).unwrap();
            fs::rename(&beside, to).unwrap();
        }
    };
    install(&cert, &key);
    world.configure(json!({ "tls": { "cert_file": used_cert, "key_file": used_key } }));
    let server = world.serve().await;
    let config = trusting(&cert);
    let first = shown(&world, "box.example", &config).await.unwrap();

    let mut socket = opened(&world, "box.example", &config).await;

    let (next_cert, next_key) = pair(&world, "second", &["box.example"], 90);
    install(&next_cert, &next_key);
    server.says("new connections get the new certificate").await;
    let second = shown(&world, "box.example", &trusting(&next_cert)).await.unwrap();
    assert_ne!(first, second);
    // A client that was there before may resume its session; a new one is shown the new one.
    let unaware = trusting(&cert);
    assert_eq!(shown(&world, "box.example", &unaware).await, None, "the old one is not shown");
    still_answers(&mut socket).await;

    // What does not load leaves the one in use, with one line.
    fs::write(&used_cert, "-----BEGIN NOTHING-----").unwrap();
    server.says("the certificate in use stays").await;
    assert_eq!(shown(&world, "box.example", &trusting(&next_cert)).await, Some(second));
    server.stop().await;
}

/// A socket that was opened over TLS, past its first frame.
async fn opened(
    world: &World,
    name: &'static str,
    config: &Arc<ClientConfig>,
) -> WebSocketStream<TlsStream<TcpStream>> {
    let stream = dial(world, name, config).await.unwrap();
    let at = format!("localhost:{}", world.port());
    let mut request = format!("wss://{at}/ws/events").into_client_request().unwrap();
    request.headers_mut().insert("origin", format!("https://{at}").parse().unwrap());
    let opened = Box::pin(client_async(request, stream));
    let (mut socket, _) = within("a socket", opened).await.unwrap();
    assert!(within("a snapshot", socket.next()).await.unwrap().unwrap().is_text());
    socket
}

/// Asks over an open socket, and waits for the answer.
async fn still_answers(socket: &mut WebSocketStream<TlsStream<TcpStream>>) {
    socket.send(Message::Ping("still there".into())).await.unwrap();
    within("the answer on the old socket", async {
        loop {
            match socket.next().await.unwrap().unwrap() {
                Message::Pong(_) => return,
                Message::Close(frame) => panic!("{frame:?}"),
                _ => {}
            }
        }
    })
    .await;
}

/// The certificate has ten days left when somebody looks.
#[tokio::test]
async fn h13_an_own_certificate_is_renewed_while_the_service_runs_and_open_sockets_stay() {
    const DAY: i64 = 24 * 3600;
    let tls = json!({ "provision": "self-signed", "hostnames": ["box.example"] });
    let world = World::with(json!({ "tls": tls }));
    let clock = Clock::new(&world);
    clock.set(-815 * DAY);
    let env = clock.env();
    let server = world.serve_as(Start { env: &env, ..Start::default() }).await;
    let (cert, key) =
        (world.state.join("tls/self-signed.crt"), world.state.join("tls/self-signed.key"));
    let (old_key, config) = (fs::read(&key).unwrap(), trusting(&cert));
    let first = shown(&world, "box.example", &config).await.unwrap();
    let mut socket = opened(&world, "box.example", &config).await;

    clock.set(0);
    let pid = rustix::process::Pid::from_raw(server.pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    server.says("new connections get the new certificate").await;
    let second = shown(&world, "box.example", &trusting(&cert)).await.unwrap();
    assert_ne!(first, second);
    assert_ne!(fs::read(&key).unwrap(), old_key);
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    still_answers(&mut socket).await;
    server.stop().await;
}

/// Half of them said nothing, half began a greeting that they never end.
#[tokio::test]
async fn h13_h76_a_crowd_that_ends_no_greeting_keeps_nobody_out() {
    let tls = json!({ "provision": "self-signed", "hostnames": ["127.0.0.1"] });
    let world = World::with(closed(tls));
    let server = world.serve().await;
    let certificate = fs::read(world.state.join("tls/self-signed.crt")).unwrap();
    let mut crowd = Vec::new();
    for at in 0..400 {
        let mut stream = TcpStream::connect(("127.0.0.1", world.port())).await.unwrap();
        if at % 2 == 0 {
            // The head of a record of 512 bytes, and the first of them.
            stream.write_all(&[0x16, 3, 1, 2, 0, 1]).await.unwrap();
        }
        crowd.push(stream);
    }
    for _ in 0..5 {
        let base = format!("https://127.0.0.1:{}", world.port());
        Client::trusting(&base, &certificate).get("/healthz").await.expect(200);
    }
    let mut rest = Vec::new();
    for mut stream in crowd {
        let _ = within("the end of a greeting", stream.read_to_end(&mut rest)).await;
    }
    let base = format!("https://127.0.0.1:{}", world.port());
    Client::trusting(&base, &certificate).get("/healthz").await.expect(200);
    server.stop().await;
}

#[tokio::test]
async fn h13_a_pair_that_cannot_serve_refuses_the_start_and_a_weak_one_warns() {
    let world = World::new();
    let (cert, key) = pair(&world, "one", &["127.0.0.1"], 60);
    let (other_cert, other_key) = pair(&world, "other", &["127.0.0.1"], 60);
    let rubbish = world.root.join("rubbish.pem");
    fs::write(&rubbish, "no PEM").unwrap();
    for (cert, key, words) in [
        (&cert, &other_key, "does not belong to the certificate"),
        (&other_cert, &key, "does not belong to the certificate"),
        (&rubbish, &key, "holds no certificate"),
        (&cert, &rubbish, "holds no private key"),
        (&cert, &world.root.join("missing.pem"), "tls.key_file"),
    ] {
        world.configure(json!({ "tls": { "cert_file": cert, "key_file": key } }));
        let ran = world.cli(&["run"]).await;
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
        assert!(TcpStream::connect(("127.0.0.1", world.port())).await.is_err());
    }

    let (old_cert, old_key) = pair(&world, "old", &["127.0.0.1"], -1);
    fs::set_permissions(&old_key, fs::Permissions::from_mode(0o644)).unwrap();
    world.configure(json!({ "tls": { "cert_file": old_cert, "key_file": old_key } }));
    let server: Server<'_> = world.serve().await;
    server.says("has expired").await;
    let said = server.said();
    assert!(said.iter().any(|line| line.contains("mode 0644")), "{said:?}");
    let doctor = world.cli(&["doctor", "--only", "tls"]).await;
    assert_eq!(doctor.code, Some(1));
    assert!(doctor.stdout.contains("expired"), "{}", doctor.stdout);
    // Who asks who can reach the service is told, too.
    let access = world.cli(&["access", "--json"]).await.ok().json();
    let findings = access["findings"].as_array().unwrap();
    let found = findings.iter().find(|one| one["code"] == "certificate").expect("a finding");
    assert_eq!((&found["level"], &found["key"]), (&json!("fail"), &json!("tls.cert_file")));
    assert!(found["detail"].as_str().unwrap().contains("expired"), "{found}");
    server.stop().await;
}
