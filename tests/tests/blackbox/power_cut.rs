//! What was answered survives a power cut (H101).
//!
//! After the cut, database files have the content of their last sync.

use crate::harness::{Client, Power, Server, Start, World, service, within};
use reqwest::Method;
use serde_json::{Value, json};

const PASSWORD: &str = "correct horse";
const HASH: &str = "$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q\
    $dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk";

async fn serve<'w>(world: &'w World, power: &Power) -> Server<'w> {
    world.serve_as(Start { env: &power.env(), ..Start::default() }).await
}

/// The power goes, and comes back.
async fn cut<'w>(world: &'w World, power: &Power, server: Server<'w>) -> Server<'w> {
    server.kill().await;
    power.cut(world);
    assert_eq!(world.integrity().await, "ok");
    serve(world, power).await
}

/// A command on the same disk; what it printed.
async fn command(world: &World, power: &Power, args: &[&str]) -> Value {
    let mut command = world.command(&service(), args);
    command.envs(power.env());
    let done = within("its end", command.output()).await.unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

async fn opens(client: &Client, token: &str) -> bool {
    let request = client.request(Method::GET, "/api/projects");
    match client.send(request.header("Authorization", format!("Bearer {token}"))).await.status {
        200 => true,
        401 => false,
        other => panic!("{other}"),
    }
}

async fn with_cookie(server: &Server<'_>, method: Method, path: &str, cookie: &str) -> u16 {
    let request = server.client.request(method, path).header("Origin", &server.base);
    server.client.send(request.header("Cookie", cookie)).await.status
}

/// Tokens issued, rotated and revoked, and a sign-out.
#[tokio::test]
async fn h101_credentials_are_after_a_power_cut_as_they_were_answered() {
    let auth = json!({ "enabled": true, "password_required": true, "password_hash": HASH });
    let world = World::with(json!({ "auth": auth }));
    let power = Power::new(&world);
    let mut server = serve(&world, &power).await;
    let issued = command(&world, &power, &["api-token", "issue", "ci", "--json"]).await;
    let first = issued["token"].as_str().unwrap().to_owned();
    server = cut(&world, &power, server).await;
    assert!(opens(&server.client, &first).await, "the token that was issued");

    let rotated = command(&world, &power, &["api-token", "rotate", "ci", "--json"]).await;
    let second = rotated["token"].as_str().unwrap().to_owned();
    server = cut(&world, &power, server).await;
    assert!(!opens(&server.client, &first).await, "the secret before the rotation");
    assert!(opens(&server.client, &second).await, "the secret of the rotation");

    command(&world, &power, &["api-token", "revoke", "ci", "--json"]).await;
    server = cut(&world, &power, server).await;
    assert!(!opens(&server.client, &second).await, "the token that was revoked");

    let request = server.client.request(Method::POST, "/login").header("Origin", &server.base);
    let reply = server.client.send(request.json(&json!({ "password": PASSWORD }))).await;
    let reply = reply.expect(200);
    let cookie = reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    server = cut(&world, &power, server).await;
    assert_eq!(with_cookie(&server, Method::GET, "/api/projects", &cookie).await, 200);
    assert_eq!(with_cookie(&server, Method::POST, "/logout", &cookie).await, 200);
    server = cut(&world, &power, server).await;
    assert_eq!(with_cookie(&server, Method::GET, "/api/projects", &cookie).await, 401);
    server.stop().await;
}

/// The record of a launch, and the intent of a stop.
#[tokio::test]
async fn h101_bridges_are_after_a_power_cut_of_the_disk_as_they_were_answered() {
    let world = World::with(json!({ "claude": { "stop_grace_seconds": 2 } }));
    world.project("app");
    world.project_with("deaf", json!({ "ignore_sigint": true }));
    let power = Power::new(&world);
    let mut server = serve(&world, &power).await;
    // The processes stay: what is lost is what the disk did not take.
    let running = server.client.run("app").await;
    server = cut(&world, &power, server).await;
    let again = server.client.launch("app").await.expect(200).instance();
    assert_eq!(again.instance_id, running.instance_id, "the record of the launch");
    assert_eq!(world.starts("app").len(), 1);

    server.client.stop("app").await.expect(200);
    server = cut(&world, &power, server).await;
    let row = world.row("app").await;
    assert_eq!((row.status.as_str(), row.intentional_stop), ("stopped", true));

    // The intent is durable before the first signal: the bridge is deaf to it and still lives.
    server.client.run("deaf").await;
    let asked = server.client.request(Method::DELETE, "/api/v1/instances/deaf");
    let asking = tokio::spawn({
        let client = server.client.clone();
        async move { client.try_send(asked).await }
    });
    within("the intent on record", async { while !world.row("deaf").await.intentional_stop {} })
        .await;
    server = cut(&world, &power, server).await;
    let _ = asking.await; // its service is gone
    let mut page = server.events().await;
    page.until_status("deaf", "stopped").await;
    let found = world.agree().await;
    assert!(found.bridges.is_empty(), "{found:?}");
    assert!(found.rows.iter().all(|row| row.intentional_stop), "{:?}", found.rows);
    drop(page);
    server.stop().await;
}
