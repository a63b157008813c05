//! A scanner of TLS looks at the service as it would at any other (H13).

use crate::harness::{World, installed};
use rcgen::{
    BasicConstraints, CertificateParams, CrlDistributionPoint, DnType, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use svc_skip::skip;

const HASH: &str = "$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q\
    $dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk";

/// What is looked at: versions, suites, order, certificate, headers, known attacks.
const LOOKS: [&str; 7] = ["-p", "-s", "-f", "-P", "-S", "-h", "-U"];

/// A certificate as an authority gives it; its file, its key, and the authority.
fn issued(world: &World) -> [PathBuf; 3] {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.distinguished_name.push(DnType::CommonName, "an authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority_cert = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::new(authority, authority_key);

    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, "localhost");
    params.not_before = time::OffsetDateTime::now_utc() - time::Duration::days(1);
    params.not_after = time::OffsetDateTime::now_utc() + time::Duration::days(89);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    // Nobody fetches it: a certificate without such an address is a finding of its own.
    let list = CrlDistributionPoint { uris: vec!["http://localhost/revoked.crl".to_owned()] };
    params.crl_distribution_points = vec![list];
    let key = KeyPair::generate().unwrap();
    let cert = params.signed_by(&key, &issuer).unwrap().pem();
    let files = ["cert.pem", "key.pem", "authority.pem"].map(|name| world.root.join(name));
    for (file, text) in files.iter().zip([cert, key.serialize_pem(), authority_cert]) {
        fs::write(file, text).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    }
    files
}

#[tokio::test]
async fn h13_a_scanner_finds_nothing_that_is_worse_than_low() {
    // Debian calls it so, others by its file.
    let Some(program) = installed("testssl").or_else(|| installed("testssl.sh")) else {
        skip!("testssl.sh is not installed")
    };
    let world = World::new();
    let [cert, key, authority] = issued(&world);
    world.configure(json!({
        "auth": { "enabled": true, "password_required": true, "password_hash": HASH },
        "tls": { "cert_file": cert, "key_file": key },
    }));
    let server = world.serve().await;
    let found = world.root.join("found.json");
    let mut command = tokio::process::Command::new(program);
    command.env_clear().envs(world.environment()).current_dir(&world.root);
    command.args(["--quiet", "--color", "0", "--warnings", "off", "--nodns", "none"]);
    command.args(["--ip", "127.0.0.1", "--add-ca"]).arg(&authority).args(LOOKS);
    command.arg("--jsonfile").arg(&found).arg(format!("https://localhost:{}/", world.port()));
    command.stdin(Stdio::null()).kill_on_drop(true);
    let running = tokio::time::timeout(Duration::from_secs(600), command.output());
    let done = running.await.expect("it keeps to its time").expect("the program runs");
    let said = String::from_utf8_lossy(&done.stdout);

    let found = fs::read(&found).unwrap_or_else(|error| panic!("{error}: {said}"));
    let found: Vec<Value> = serde_json::from_slice(&found).unwrap();
    let of = |id: &str| {
        let one = found.iter().find(|one| one["id"] == id);
        let one = one.unwrap_or_else(|| panic!("nothing is said of {id}: {said}"));
        (one["severity"].as_str().unwrap(), one["finding"].as_str().unwrap())
    };
    // It looked at everything, and at the service itself.
    assert_eq!(of("TLS1_1"), ("INFO", "not offered"));
    assert!(of("TLS1_3").1.starts_with("offered"), "{said}");
    assert_eq!(of("cert_chain_of_trust").0, "OK", "{said}");
    assert!(of("HSTS_time").1.contains("365 days"), "{said}");
    for id in ["cipher_order", "heartbleed", "ROBOT", "secure_client_renego", "RC4"] {
        assert_eq!(of(id).0, "OK", "{id}: {said}");
    }
    let may_be = ["OK", "INFO", "LOW", "WARN"]; // the last: what it could not look at
    let worse: Vec<&Value> = found
        .iter()
        .filter(|one| !may_be.contains(&one["severity"].as_str().unwrap_or_default()))
        .collect();
    assert!(worse.is_empty(), "{worse:#?}\n{said}");
    server.stop().await;
}
