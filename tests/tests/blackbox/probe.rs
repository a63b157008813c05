//! `svc doctor --probe` through proxies that are sound and proxies that are not.

use crate::backups::tree;
use crate::harness::{Proxy, Start, World};
use crate::probe_faults::{closed, finds, probe, wrong};
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use tokio::net::TcpListener;

#[tokio::test]
async fn the_probe_finds_nothing_where_all_is_well() {
    for settings in [json!({}), closed(json!({}))] {
        let world = World::with(settings);
        let server = world.serve().await;
        for url in [server.base.clone(), format!("{}/", server.base)] {
            let found = probe(&world, Some(&url)).await;
            assert!(wrong(&found).is_empty(), "{found:?}");
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
    let found = probe(&world, Some(&origin)).await;
    assert!(wrong(&found).is_empty(), "{found:?}");
    server.stop().await;
}

#[tokio::test]
async fn the_probe_finds_an_address_where_nobody_or_somebody_else_answers() {
    let world = World::new();
    let ran = world.cli(&["doctor", "--probe", "http://127.0.0.1:9/"]).await;
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    let server = world.serve().await;
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let found = probe(&world, Some(&format!("http://{free}/"))).await;
    finds(&found, "probe-reach", "correct the address");
    let other = World::new();
    let secret = [("SVC_SESSION_SECRET", "the secret of another installation of svc")];
    let stranger = other.serve_as(Start { env: &secret, ..Start::default() }).await;
    let found = probe(&world, Some(&stranger.base)).await;
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
        (says.clone(), "127.0.0.1", -1, "probe-certificate", "the certificate of the proxy"),
        (says.clone(), "127.0.0.1", 20, "probe-certificate", "the certificate of the proxy"),
        (says.clone(), "box.example", 90, "probe-certificate", "the certificate of the proxy"),
    ] {
        let address = proxy.secure(world.port(), name, days).await;
        finds(&probe(&world, Some(&format!("https://{address}/"))).await, check, hint);
    }
    let address = says.clone().secure(world.port(), "127.0.0.1", 90).await;
    let found = probe(&world, Some(&format!("https://{address}/"))).await;
    assert_eq!(wrong(&found), ["probe-origin"], "{found:?}");
    finds(&found, "probe-origin", "auth.allowed_origins");
    server.stop().await;
}

/// Faults that somebody makes who copies half of an example.
#[tokio::test]
async fn the_probe_names_what_else_a_proxy_does_wrong() {
    let world = World::with(closed(json!({ "reverse_proxy": { "trusted_ips": ["127.0.0.1"] } })));
    let server = world.serve().await;
    let other_host = Proxy { sets: vec![("host", "127.0.0.1:1")], ..Proxy::default() };
    let no_origin = Proxy { drops: vec!["origin"], ..Proxy::default() };
    let lies = Proxy { sets: vec![("x-forwarded-proto", "https")], ..Proxy::default() };
    for (proxy, name, hint) in [
        (other_host, "probe-host", "proxy_set_header Host"),
        (no_origin, "probe-origin", "Origin"),
        (lies, "probe-https", "X-Forwarded-Proto $scheme"),
    ] {
        let address = proxy.begin(world.port()).await;
        finds(&probe(&world, Some(&format!("http://{address}/"))).await, name, hint);
    }
    server.stop().await;
}

/// Who takes connections and says nothing does not hold the probe up.
#[tokio::test]
async fn the_probe_ends_where_nothing_is_answered() {
    let world = World::new();
    let server = world.serve().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let holding = tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = silent.accept().await {
            held.push(stream);
        }
    });
    let found = probe(&world, Some(&format!("http://{address}/"))).await;
    finds(&found, "probe-reach", "start the service and its proxy");
    holding.abort();
    server.stop().await;
}

/// Files of the state directory that may not change by a look at the service.
/// The reserve is made by and by after a start.
fn at_rest(world: &World) -> Vec<(PathBuf, Vec<u8>)> {
    let all = tree(&world.state).into_iter();
    let is_kept = |path: &PathBuf| {
        let name = path.to_string_lossy().into_owned();
        let is_busy = ["-wal", "-shm", ".log"].iter().any(|end| name.ends_with(end));
        !is_busy && !name.starts_with("reserve")
    };
    all.filter(|(path, _)| is_kept(path)).map(|(path, (_, bytes))| (path, bytes)).collect()
}

#[tokio::test]
async fn the_probe_changes_nothing() {
    let world = World::new();
    world.project("web");
    world.cli(&["api-token", "issue", "phone"]).await.ok();
    let server = world.serve().await;
    let config = fs::read(&world.config).unwrap();
    let known = async || {
        let mut answers = Vec::new();
        for path in ["/api/tokens", "/api/devices", "/api/history", "/api/v1/instances"] {
            answers.push(server.client.get(path).await.expect(200).text());
        }
        answers
    };
    let (files, before) = (at_rest(&world), known().await);
    let found = probe(&world, Some(&server.base)).await;
    assert!(wrong(&found).is_empty(), "{found:?}");
    assert_eq!(known().await, before);
    let paths = |files: &[(PathBuf, Vec<u8>)]| -> Vec<PathBuf> {
        files.iter().map(|(path, _)| path.clone()).collect()
    };
    let after = at_rest(&world);
    assert_eq!(paths(&after), paths(&files));
    assert!(after == files, "a file in the state directory has changed");
    assert_eq!(fs::read(&world.config).unwrap(), config);
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
