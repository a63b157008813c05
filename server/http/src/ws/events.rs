//! The state stream (`http-api` §4.2).

use super::{Out, Source};
use crate::call::Call;
use crate::error::Refusal;
use poem::Response;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use svc_app::read_model::{Feed, ReadModel, Subscription};
use svc_shared::Timestamp;
use svc_shared::stream::{ClientFrame, EventFrame, close};
use tokio::time::Instant;

/// A tick is sent when nothing else was for this long: pages cannot see pings.
const TICK: Duration = Duration::from_secs(15);

pub(crate) async fn open(call: Call) -> Result<Response, Refusal> {
    let model = Arc::clone(call.context.app.read_model());
    let events =
        Events { subscription: model.subscribe(position(&call)), model, sent: Instant::now() };
    call.context.sockets.open(&call.request, events)
}

/// The position of the client; `None`, and so a snapshot, if it cannot be read.
fn position(call: &Call) -> Option<(String, u64)> {
    let boot = call.query.one("boot").ok().flatten()?.to_owned();
    let since = call.query.number("since", 0..=u64::MAX).ok().flatten()?;
    Some((boot, since))
}

struct Events {
    model: Arc<ReadModel>,
    subscription: Subscription,
    sent: Instant,
}

impl Source for Events {
    async fn next(&mut self) -> Out {
        let feed = tokio::time::timeout_at(self.sent + TICK, self.subscription.next()).await;
        self.sent = Instant::now();
        match feed {
            Ok(Feed::Frame(frame)) => Out::Frame(frame),
            Ok(Feed::TooSlow) => Out::Close(close::SLOW, "slow_consumer".into()),
            Err(_) => Out::Frame(self.tick()),
        }
    }

    fn receive(&mut self, text: &str) {
        match serde_json::from_str(text) {
            Ok(ClientFrame::Snapshot) => self.subscription.request_snapshot(),
            Ok(ClientFrame::Samples { on }) => self.subscription.want_samples(on),
            // What is not understood is ignored.
            Err(_) => {}
        }
    }
}

impl Events {
    fn tick(&self) -> bytes::Bytes {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let millis = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        let tick =
            EventFrame::Tick { seq: self.model.head(), time: Timestamp::from_millis(millis) };
        serde_json::to_vec(&tick).unwrap_or_default().into()
    }
}
