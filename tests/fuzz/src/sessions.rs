//! What sessions, their keepers, clients and programs send.

use crate::files::write;
use serde_json::Value;
use svc_agent::conversation::{index::Index, pages::Pages};
use svc_keeper::message::{FromKeeper, ToKeeper};

/// Which lines are messages; private to the package of the server of agents.
#[path = "../../../server/mcp/src/judge.rs"]
mod judge;

/// Lines of the Model Context Protocol, with and without batches.
pub(crate) fn mcp_lines(data: &[u8]) {
    use judge::{Judged, Message, judge, judge_line};
    for line in data.split(|byte| *byte == b'\n') {
        for takes_batches in [false, true] {
            let all = match judge_line(line, takes_batches) {
                Judged::Batch(all) => {
                    assert!(takes_batches && all.len() <= judge::LARGEST_BATCH);
                    all.into_iter().map(judge).collect()
                }
                one => vec![one],
            };
            for one in all {
                match one {
                    // Whoever asked hears of it under a valid id, or under none.
                    Judged::Refused(answer) => assert!(answer["error"]["code"].is_i64()),
                    Judged::One(Message::Request { id, .. }) => {
                        assert!(id.is_string() || id.is_i64() || id.is_u64(), "{id}");
                    }
                    Judged::One(Message::Notification(message)) => {
                        assert!(message["method"].is_string());
                    }
                    Judged::Nothing => {}
                    Judged::Batch(_) => panic!("a message is a batch"),
                }
            }
        }
    }
}

/// Messages between the service and the keeper of a terminal, each way.
pub(crate) fn keeper(data: &[u8]) {
    if let Ok(message) = serde_json::from_slice::<ToKeeper>(data) {
        again(&message);
        let is_hello = matches!(message, ToKeeper::Hello { .. });
        assert!(!is_hello || format!("{message:?}").contains("Token(..)"), "a token is shown");
    }
    if let Ok(message) = serde_json::from_slice::<FromKeeper>(data) {
        again(&message);
    }
}

/// What a page says over its sockets.
pub(crate) fn page_frames(data: &[u8]) {
    if let Ok(frame) = serde_json::from_slice::<svc_shared::stream::ClientFrame>(data) {
        again(&frame);
    }
    if let Ok(frame) = serde_json::from_slice::<svc_shared::terminal::ClientFrame>(data) {
        again(&frame);
    }
}

/// What was read can be written, and is then the same.
fn again<T: serde::Serialize + serde::de::DeserializeOwned>(message: &T) {
    let written = serde_json::to_value(message).unwrap_or_else(|error| panic!("{error}"));
    let read: T = serde_json::from_value(written.clone()).unwrap_or_else(|error| panic!("{error}"));
    let rewritten: Value = serde_json::to_value(read).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(written, rewritten);
}

/// A conversation file, read in steps and page by page.
pub(crate) fn transcript(data: &[u8]) {
    let path = write("conversation.jsonl", data);
    let file = Index::open(&path).unwrap_or_else(|error| panic!("{error}"));
    let mut index = Index::default();
    while index.update(&file, 64).unwrap_or_else(|error| panic!("{error}")).is_more {}
    let pages = Pages { file: &file, index: &index };
    let (mut from, mut turns) = (0, 0);
    loop {
        let span = pages.forwards(from, 7, None).unwrap_or_else(|error| panic!("{error}"));
        turns += span.turns.len() as u64;
        match span.next {
            Some(next) => {
                assert!(next > from, "a page leads back");
                from = next;
            }
            None => break,
        }
    }
    assert_eq!(turns, index.turns);
    let _ = pages.backwards(u64::MAX, 7, Some("a"));
}
