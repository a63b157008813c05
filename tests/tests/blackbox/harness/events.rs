//! The stream that the page follows, folded as the page folds it.

use super::canary;
use super::{DEADLINE, within, within_limit};
use futures_util::StreamExt;
use serde_json::Value;
use std::time::Duration;
use svc_shared::api::instances::Instance;
use svc_shared::internal::State;
use svc_shared::stream::{EventFrame, Op, apply};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

pub type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

pub struct Events {
    socket: Socket,
    pub boot: String,
    pub seq: u64,
    pub state: State,
    /// Changes of instances that were told.
    pub instance_ops: u64,
    /// What happened, in order: name and data.
    pub happened: Vec<(String, Value)>,
    /// How long each wait may last.
    pub limit: Duration,
}

/// Opens a socket of the service as a page of its own origin does.
pub async fn socket(base: &str, path: &str) -> Socket {
    try_socket(base, path).await.expect("a socket")
}

/// The same where there may be nothing to open.
pub async fn try_socket(base: &str, path: &str) -> Result<Socket, tungstenite::Error> {
    let address = base.replacen("http", "ws", 1) + path;
    let mut request = address.into_client_request().expect("a handshake");
    request.headers_mut().insert("Origin", base.parse().expect("an origin"));
    Ok(within("a socket", connect_async(request)).await?.0)
}

impl Events {
    pub async fn open(base: &str) -> Self {
        let socket = socket(base, "/ws/events").await;
        let mut events = Self {
            socket,
            boot: String::new(),
            seq: 0,
            state: State::default(),
            instance_ops: 0,
            happened: Vec::new(),
            limit: DEADLINE,
        };
        let is_complete = |events: &mut Self, frame: &EventFrame| {
            matches!(frame, EventFrame::Snapshot { .. }).then_some(events.seq)
        };
        events.frames("a snapshot", is_complete).await;
        events
    }

    /// Waits until `look` finds something in the state; it looks again at every change.
    pub async fn until<T>(&mut self, what: &str, mut look: impl FnMut(&State) -> Option<T>) -> T {
        if let Some(found) = look(&self.state) {
            return found;
        }
        self.frames(what, |events, _| look(&events.state)).await
    }

    /// Waits until the instance of a project is in this status.
    pub async fn until_status(&mut self, project: &str, status: &str) -> Instance {
        self.until(&format!("{project} {status}"), |state| {
            let mut rows = state.instances.values();
            rows.find(|row| row.project == project && row.status.to_string() == status)
                .map(|row| row.as_ref().clone())
        })
        .await
    }

    /// Waits until something of this name has happened to an instance.
    pub async fn until_event(&mut self, name: &str, instance_id: &str) -> Value {
        let find = |events: &Self| {
            let mut all = events.happened.iter();
            all.find(|(happened, data)| happened == name && data["instance_id"] == instance_id)
                .map(|(_, data)| data.clone())
        };
        if let Some(data) = find(self) {
            return data;
        }
        self.frames(&format!("the event {name}"), |events, _| find(events)).await
    }

    /// Waits until something of this name has happened to whatever it is about.
    pub async fn until_happened(&mut self, name: &str) -> Value {
        let find = |events: &Self| {
            let found = events.happened.iter().find(|(happened, _)| happened == name);
            found.map(|(_, data)| data.clone())
        };
        if let Some(data) = find(self) {
            return data;
        }
        self.frames(&format!("the event {name}"), |events, _| find(events)).await
    }

    async fn frames<T>(
        &mut self,
        what: &str,
        mut look: impl FnMut(&mut Self, &EventFrame) -> Option<T>,
    ) -> T {
        within_limit(what, self.limit, async {
            loop {
                let frame = self.next().await;
                if let Some(found) = look(self, &frame) {
                    return found;
                }
            }
        })
        .await
    }

    /// What happened, with everything that comes before the service ends the stream.
    pub async fn until_the_end(mut self) -> Vec<(String, Value)> {
        within("the end of the stream", async {
            while let Some(Ok(message)) = self.socket.next().await {
                if let Message::Text(text) = message {
                    canary::check_document("a frame of the stream", &text);
                    let frame: EventFrame = serde_json::from_str(&text).expect("a frame");
                    self.fold(&frame);
                }
            }
        })
        .await;
        std::mem::take(&mut self.happened)
    }

    /// The next frame, folded in.
    pub async fn next(&mut self) -> EventFrame {
        loop {
            let message = self.socket.next().await.expect("the stream goes on");
            match message.expect("a frame") {
                Message::Text(text) => {
                    canary::check_document("a frame of the stream", &text);
                    let frame = serde_json::from_str(&text);
                    let frame: EventFrame = frame.unwrap_or_else(|e| panic!("{e}: {text}"));
                    self.fold(&frame);
                    return frame;
                }
                Message::Close(why) => panic!("the stream was closed: {why:?}"),
                Message::Ping(_) | Message::Pong(_) => {}
                Message::Binary(_) | Message::Frame(_) => panic!("only text is documented"),
            }
        }
    }

    fn fold(&mut self, frame: &EventFrame) {
        match frame {
            EventFrame::Hello { boot, .. } => self.boot.clone_from(boot),
            EventFrame::Snapshot { seq, state, .. } => {
                self.seq = *seq;
                self.state = (**state).clone();
            }
            EventFrame::Delta { seq, ops, .. } => {
                assert_eq!(*seq, self.seq + 1, "the stream has a hole");
                self.seq = *seq;
                let of_instances = ops.iter().filter(|op| match op {
                    Op::Put(put) => put.record.kind() == "instance",
                    Op::Del { k, .. } => k == "instance",
                });
                self.instance_ops += of_instances.count() as u64;
                ops.iter().cloned().for_each(|op| apply(&mut self.state, op));
            }
            EventFrame::Event { name, data, .. } => {
                self.happened.push((name.clone(), data.clone()));
            }
            EventFrame::Sample { .. }
            | EventFrame::Notice { .. }
            | EventFrame::Tick { .. }
            | EventFrame::Other => {}
        }
    }
}

/// A failed test shows what the page knew.
impl Drop for Events {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let rows = self.state.instances.values();
            let rows: Vec<_> = rows.map(|row| (&row.project, row.status.to_string())).collect();
            eprintln!("--- the page at {}: {rows:?}, happened: {:?}", self.seq, self.happened);
        }
    }
}
