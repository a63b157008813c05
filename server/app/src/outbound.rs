//! Events that leave the machine: webhooks (`http-api` §6.1) and notifications.
//!
//! Each target has a queue and a worker of its own, so that one that hangs delays no other and no
//! change of a session. Delivery is best effort, one attempt, and nothing outlives the process,
//! unless the outbox of webhooks is on.

mod kept;
mod message;
mod notifications;
mod outbox;
mod push;
mod queue;
mod rule;
mod sender;
mod target;
mod webhooks;

pub use notifications::Notifications;
pub use push::{Push, Subscriber};
pub(crate) use sender::trusting_this_machine;
pub use webhooks::Webhooks;

use crate::read_model::ReadModel;
use crate::tasks::Tasks;
use notifications::Sources;
use std::sync::Arc;
use svc_config::Config;
use svc_ports::Clock;

/// Webhooks and notifications, told of every event that the read model is told of.
pub(crate) fn fed_by(
    read_model: &ReadModel,
    config: &Arc<Config>,
    port: u16,
    (clock, tasks): (&Arc<dyn Clock>, &Tasks),
    sources: Sources<'_>,
    push: &Arc<Push>,
) -> (Arc<Webhooks>, Arc<Notifications>) {
    let webhooks = Arc::new(Webhooks::new(config, port, (clock, tasks), sources.0));
    let notifications = Arc::new(Notifications::new(config, port, clock, tasks, sources, push));
    let (posted, shown) = (Arc::clone(&webhooks), Arc::clone(&notifications));
    read_model.tell(move |event| {
        posted.offer(event);
        shown.offer(event);
    });
    (webhooks, notifications)
}
