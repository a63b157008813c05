//! A crowd that sends a login body one byte at a time keeps nobody out (H76).

use crate::harness::{Client, Server, World, limit};
use reqwest::Method;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use svc_skip::skip;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpSocket;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const PASSWORD: &str = "correct horse";
const HASH: &str = "$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q\
    $dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk";
/// More than the service takes at once.
const CROWD: usize = 2_060;
/// How often each thing is asked for while the crowd stands.
const ROUNDS: usize = 10;
const DESCRIPTORS: u64 = 8_192;
/// Between two bytes of one body.
const PACE: Duration = Duration::from_secs(2);

async fn sign_in(server: &Server<'_>, client: &Client) -> String {
    let request = client.request(Method::POST, "/login").header("Origin", &server.base);
    let reply = client.send(request.json(&json!({ "password": PASSWORD }))).await.expect(200);
    reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

/// One of the crowd: when it is thrown out it comes again.
async fn drip(from: Ipv4Addr, to: SocketAddr, came: Arc<Semaphore>) {
    let head = format!(
        "POST /login HTTP/1.1\r\nHost: {to}\r\nOrigin: http://{to}\r\n\
         Content-Type: application/json\r\nContent-Length: 9000\r\n\r\n"
    );
    let mut pace = tokio::time::interval(PACE);
    let mut is_first = true;
    loop {
        pace.tick().await;
        let Ok(socket) = TcpSocket::new_v4() else { continue };
        if socket.bind(SocketAddr::from((from, 0))).is_err() {
            continue;
        }
        let Ok(mut stream) = socket.connect(to).await else { continue };
        if stream.write_all(head.as_bytes()).await.is_ok() && std::mem::take(&mut is_first) {
            came.add_permits(1);
        }
        while stream.write_all(b" ").await.is_ok() {
            pace.tick().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h76_a_crowd_of_dripping_logins_keeps_nobody_out() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    if maximum.is_some_and(|most| most < DESCRIPTORS) {
        skip!("this user may not open {DESCRIPTORS} files");
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(DESCRIPTORS), maximum }).unwrap();
    for addresses in [1_u8, 16] {
        let world = World::with(json!({ "auth": {
            "enabled": true, "password_required": true, "password_hash": HASH,
        } }));
        let server = world.serve().await;
        assert!(limit(server.pid, "nofile", &format!("{DESCRIPTORS}:{DESCRIPTORS}")));
        let cookie = sign_in(&server, &server.client).await;
        let address: SocketAddr = server.base.trim_start_matches("http://").parse().unwrap();
        let (mut crowd, came) = (JoinSet::new(), Arc::new(Semaphore::new(0)));
        for n in 0..CROWD {
            let last = u8::try_from(n % usize::from(addresses)).unwrap() + 2;
            crowd.spawn(drip(Ipv4Addr::new(127, 0, 0, last), address, Arc::clone(&came)));
        }
        // However long that takes on a busy machine.
        let all = came.acquire_many(u32::try_from(CROWD).unwrap()).await;
        drop(all.expect("it is never closed"));
        let mut all = [const { Vec::new() }; 4];
        for _ in 0..ROUNDS {
            // A connection of its own each time, as of a browser that comes new.
            let client = Client::new(&server.base);
            let state = client.request(Method::GET, "/api/state").header("Cookie", &cookie);
            let times = [
                timed(async { client.get("/healthz").await.expect(200) }).await,
                timed(async { client.send(state).await.expect(200) }).await,
                timed(async { sign_in(&server, &client).await }).await,
                timed(async { world.cli(&["status"]).await.ok() }).await,
            ];
            for (all, time) in all.iter_mut().zip(times) {
                all.push(time);
            }
        }
        for (what, mut times) in ["healthz", "state", "login", "status"].into_iter().zip(all) {
            times.sort_unstable();
            let (half, longest) = (times[ROUNDS / 2], times[ROUNDS - 1]);
            eprintln!("{addresses} addresses, {what}: p50 {half:?}, longest {longest:?}");
        }
        crowd.shutdown().await;
    }
}

async fn timed<T>(work: impl Future<Output = T>) -> Duration {
    let before = Instant::now();
    let _ = work.await;
    before.elapsed()
}
