//! The live log of a bridge, as the page follows it.

use super::canary::{self, Audience};
use super::events::{Socket, socket};
use super::within;
use futures_util::StreamExt;
use svc_shared::stream::{LogFrame, MarkKind};
use tokio_tungstenite::tungstenite::Message;

pub struct LogSocket {
    socket: Socket,
    pub lines: Vec<String>,
    pub marks: Vec<(MarkKind, u32)>,
}

impl LogSocket {
    pub async fn open(base: &str, reference: &str) -> Self {
        let path = format!("/ws/bridge-log/{reference}?format=json");
        Self { socket: socket(base, &path).await, lines: Vec::new(), marks: Vec::new() }
    }

    /// Waits for a line that holds `part`.
    pub async fn until(&mut self, part: &str) -> String {
        self.frames(&format!("{part:?} in the log"), |log| {
            log.lines.iter().find(|line| line.contains(part)).cloned()
        })
        .await
    }

    /// Waits for a mark; the generation it names.
    pub async fn until_mark(&mut self, kind: MarkKind) -> u32 {
        self.frames(&format!("the mark {kind:?}"), |log| {
            log.marks.iter().find(|(found, _)| *found == kind).map(|(_, generation)| *generation)
        })
        .await
    }

    async fn frames<T>(&mut self, what: &str, look: impl Fn(&Self) -> Option<T>) -> T {
        within(what, async {
            loop {
                if let Some(found) = look(self) {
                    return found;
                }
                match self.socket.next().await.expect("the log goes on").expect("a frame") {
                    Message::Text(text) => {
                        canary::check("a frame of the log", Audience::Operator, &text);
                        match serde_json::from_str(&text).expect("a frame") {
                            LogFrame::Line { text, .. } => self.lines.push(text.to_string()),
                            LogFrame::Output { .. } => {}
                            LogFrame::Mark { kind, generation, .. } => {
                                self.marks.push((kind, generation));
                            }
                        }
                    }
                    Message::Close(why) => panic!("the log was closed: {why:?}"),
                    Message::Ping(_) | Message::Pong(_) => {}
                    Message::Binary(_) | Message::Frame(_) => panic!("only text is documented"),
                }
            }
        })
        .await
    }
}
