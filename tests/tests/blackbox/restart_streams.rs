//! Open streams over a restart of the service: each goes on where it was (H114).

use crate::harness::{Client, Events, World, socket, within};
use crate::in_place::restart;
use crate::log_files::{append, debug_file};
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use reqwest::Method;
use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use svc_shared::stream::LogFrame;
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::Message;

/// Readers of one log.
const READERS: usize = 25;
/// Pages that follow the stream of changes.
const PAGES: usize = 25;
/// Callers that ask without a pause.
const CALLERS: usize = 12;
/// Restarts in a row.
const RESTARTS: usize = 2;

/// The numbers of the lines of a log, read to the last one over every restart.
async fn numbers(base: &str, id: &str, last: &watch::Receiver<Option<u32>>) -> (Vec<u32>, usize) {
    let (mut seen, mut cursor, mut opened) = (Vec::new(), String::new(), 0);
    let is_all = |seen: &[u32]| last.borrow().is_some_and(|last| seen.last() == Some(&last));
    loop {
        let from = match cursor.is_empty() {
            true => "tail=1048576".to_owned(),
            false => format!("cursor={cursor}"),
        };
        let mut log = socket(base, &format!("/ws/bridge-log/{id}?format=json&{from}")).await;
        opened += 1;
        loop {
            if is_all(&seen) {
                return (seen, opened);
            }
            match within("a frame of the log", log.next()).await {
                Some(Ok(Message::Text(text))) => {
                    let frame = serde_json::from_str(&text).expect("a frame");
                    if let LogFrame::Line { cursor: at, text } = frame {
                        cursor = at;
                        let number = text.split_once("number ").map(|(_, number)| number);
                        seen.extend(number.and_then(|number| number.parse::<u32>().ok()));
                    }
                }
                Some(Ok(Message::Close(why))) => {
                    assert_eq!(why.map(|why| u16::from(why.code)), Some(1012));
                    break;
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => break,
            }
        }
    }
}

/// Follows the stream of changes over every restart; the starts it has seen.
async fn starts(base: &str, is_over: &AtomicBool, pid: Option<i32>) -> Vec<String> {
    let mut boots = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let page = Events::open(base).await;
        let row = page.state.instances.values().next().expect("the bridge");
        assert_eq!((row.status.to_string().as_str(), row.bridge_pid), ("running", pid));
        boots.push(page.boot.clone());
        let happened = page.until_the_end().await;
        assert!(happened.is_empty(), "nothing happened to the bridge: {happened:?}");
    }
    boots
}

/// Asks without a pause, each time on a connection of its own.
///
/// `in_place` has callers that keep theirs. On a thread of their own: what they open is not left unused while the streams are read.
async fn callers(base: String, is_exchanged: Arc<AtomicBool>) {
    let ask = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(join_all((0..CALLERS).map(|_| async {
            let client = Client::new(&base);
            while !is_exchanged.load(Ordering::Relaxed) {
                let request = client.request(Method::GET, "/api/v1/instances");
                let reply = client.try_send(request.header("connection", "close")).await;
                reply.expect("no request fails").expect(200);
            }
        })));
    };
    tokio::task::spawn_blocking(ask).await.expect("no request fails");
}

#[tokio::test]
async fn h114_fifty_streams_go_on_over_restarts_without_a_gap_or_a_repetition() {
    let world = World::new();
    world.project("app");
    let server = world.serve().await;
    let row = server.client.run("app").await;
    let (base, id) = (server.base.clone(), row.instance_id.to_string());
    let file: PathBuf = debug_file(&world, ".log");
    let (said, last) = watch::channel(None);
    let is_over = AtomicBool::new(false);

    let readers = join_all((0..READERS).map(|_| numbers(&base, &id, &last)));
    let pages = join_all((0..PAGES).map(|_| starts(&base, &is_over, row.bridge_pid)));
    let (number, client) = (Cell::new(0), Client::new(&base));
    let is_exchanged = Arc::new(AtomicBool::new(false));
    let write = || {
        number.set(number.get() + 1);
        append(&file, &format!("2026-03-01T10:20:30.123Z [DEBUG] number {}\n", number.get()));
    };
    let restarts = async {
        for _ in 0..RESTARTS {
            restart(&world, &client).await;
        }
        is_exchanged.store(true, Ordering::Relaxed);
    };
    let calls = callers(base.clone(), Arc::clone(&is_exchanged));
    // The agent goes on writing while the service is exchanged.
    let writing = async {
        let mut ticks = tokio::time::interval(Duration::from_millis(2));
        loop {
            ticks.tick().await;
            write();
        }
    };
    let reading = async {
        tokio::select! {
            () = restarts => {}
            () = writing => {}
        }
        write();
        said.send_replace(Some(number.get()));
    };
    let run = async {
        let ((), logs, _) = tokio::join!(reading, readers, calls);
        is_over.store(true, Ordering::Relaxed);
        server.stop().await;
        logs
    };
    let (logs, pages) = tokio::join!(run, pages);
    for (seen, opened) in logs {
        assert_eq!(seen, (1..=number.get()).collect::<Vec<_>>(), "each line once, in order");
        assert_eq!(opened, RESTARTS + 1, "times a reader of the log opened a socket");
    }
    for boots in pages {
        assert_eq!(boots.len(), RESTARTS + 1, "starts that a page has seen: {boots:?}");
    }
}
