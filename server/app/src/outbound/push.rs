//! Notifications of devices while the page is closed (Web Push).
//!
//! A device is bound to the credential that switched it on, and goes with it. The address of its
//! push service and its keys are secrets: only the host is ever shown.

mod carrier;
mod endpoint;
mod key;
mod lane;
mod message;

pub(super) use message::{Call, Question, Word};

use super::message::delivery_id;
use super::queue::Queue;
use super::rule::{Refused, Terms};
use super::sender::Sender;
use crate::addresses::For;
use crate::auth::devices::browser_name;
use crate::auth::holder::Holder;
use crate::auth::{Auth, Identity};
use crate::ops::reserve;
use crate::tasks::Tasks;
use crate::{AppError, Class};
use carrier::Carrier;
use endpoint::Checked;
use lane::{Errand, Lane};
use message::{Allowed, Message};
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use svc_config::Config;
use svc_ports::Clock;
use svc_shared::error::ErrorCode;
use svc_shared::internal::push::{PushDevice, PushEvent, SubscribePush, TestedPush};
use svc_store::{Chosen, Kept, PushRow, Store, StoreError};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use url::{Host, Url};

/// Most devices.
const MOST_DEVICES: i64 = 50;
/// Digits of the name of a device.
const ID: usize = 16;

/// Something to be done for every device.
enum Order {
    Tell(Arc<Call>),
    Close(Arc<Call>),
}

/// Who switches notifications on.
#[derive(Debug, Clone, Copy)]
pub struct Subscriber<'a> {
    /// Who it is.
    pub identity: Option<&'a Identity>,
    /// The browser, as it calls itself.
    pub user_agent: Option<&'a str>,
    /// The address of the page, as the browser says it.
    pub origin: Option<&'a str>,
}

/// The devices, and what they are told.
pub struct Push {
    config: Arc<Config>,
    auth: Arc<Auth>,
    carrier: Arc<Carrier>,
    terms: Terms,
    lanes: Mutex<HashMap<String, Arc<Lane>>>,
    orders: Queue<Order>,
    is_server: bool,
    tasks: Tasks,
}

impl std::fmt::Debug for Push {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Push").finish_non_exhaustive()
    }
}

impl Push {
    /// Reads the settings. `port` is the one that this service listens on.
    pub(crate) fn new(
        config: &Arc<Config>,
        port: u16,
        (auth, store): (&Arc<Auth>, &Store),
        (clock, tasks): (&Arc<dyn Clock>, &Tasks),
        is_server: bool,
    ) -> Self {
        Self {
            config: Arc::clone(config),
            auth: Arc::clone(auth),
            carrier: Arc::new(Carrier {
                store: store.clone(),
                clock: Arc::clone(clock),
                state_dir: config.state_dir.clone(),
                key: OnceCell::new(),
            }),
            terms: Terms::of_browsers(config, port),
            lanes: Mutex::default(),
            orders: Queue::default(),
            is_server,
            tasks: tasks.clone(),
        }
    }

    /// Whether devices can be notified at all.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.config.push.enabled
    }

    fn lanes(&self) -> MutexGuard<'_, HashMap<String, Arc<Lane>>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows a notification on every device that wants it. Never waits.
    pub(super) fn tell(&self, call: Arc<Call>) {
        self.orders.offer(Order::Tell(call));
    }

    /// Takes the notification of questions back. Never waits.
    pub(super) fn close(&self, call: Arc<Call>) {
        self.orders.offer(Order::Close(call));
    }

    /// Carries orders out until `over`, and forgets devices whose credential ended.
    pub(super) async fn run(&self, over: &CancellationToken) {
        let mut credentials = self.auth.changes();
        loop {
            tokio::select! {
                biased; // what came before the end is tried
                next = self.orders.next(over) => match next {
                    Some((order, _)) => self.carry_out(&order).await,
                    None => break,
                },
                Ok(()) = credentials.changed() => {
                    // Without the database nothing is sent either.
                    drop(self.live().await);
                }
            }
        }
        // Each worker tries what it has for a moment.
        self.lanes().values().for_each(|lane| lane.finish());
    }

    async fn carry_out(&self, order: &Order) {
        let rows = match self.live().await {
            Ok(rows) => rows,
            Err(error) => {
                tracing::warn!(error = %error, "devices were not notified");
                return;
            }
        };
        let settings = &self.config.push;
        let allowed = Allowed { content: settings.include_content, actions: settings.allow_action };
        for row in rows {
            let wanted = events(&row);
            let (message, call, is_close) = match order {
                Order::Tell(call) => (call.shown(&wanted, allowed), call, false),
                Order::Close(call) if wanted.contains(&PushEvent::PermissionNeeded) => {
                    (call.closed(), call, true)
                }
                Order::Close(call) => (None, call, true),
            };
            if let Some(message) = message {
                let lane = self.lane(&row);
                lane.offer(errand(row, message, call, is_close)).await;
            }
        }
    }

    /// The devices whose credential still opens something. The others are forgotten.
    async fn live(&self) -> Result<Vec<PushRow>, AppError> {
        let mut rows = self.carrier.store.push_subscriptions().await.map_err(unreadable)?;
        if self.is_server {
            // A command may know no key, and judges nobody.
            self.auth.refresh().await?;
            let (live, dead): (Vec<_>, Vec<_>) =
                rows.into_iter().partition(|row| self.auth.still_opens(&holder(row)));
            for row in &dead {
                self.carrier.forget(row, "its sign-in ended").await;
            }
            rows = live;
        }
        let mut lanes = self.lanes();
        lanes.retain(|id, lane| {
            let is_there = rows.iter().any(|row| row.id == *id);
            if !is_there {
                lane.end();
            }
            is_there
        });
        drop(lanes);
        Ok(rows)
    }

    fn lane(&self, row: &PushRow) -> Arc<Lane> {
        let mut lanes = self.lanes();
        if let Some(lane) = lanes.get(&row.id) {
            return Arc::clone(lane);
        }
        // An address that is none fails at each attempt, with its reason.
        let url = Url::parse(&row.endpoint).ok();
        let sender = url.map(|url| Sender::new(url, self.terms.clone()));
        let lane = Arc::new(Lane::new(sender, CancellationToken::new()));
        lanes.insert(row.id.clone(), Arc::clone(&lane));
        if self.is_server {
            let (lane, carrier) = (Arc::clone(&lane), Arc::clone(&self.carrier));
            self.tasks.spawn(async move { lane.run(&carrier).await });
        }
        lane
    }

    /// The public key that browsers subscribe with.
    ///
    /// # Errors
    /// Its file cannot be made or used.
    pub async fn public_key(&self) -> Result<String, AppError> {
        Ok(self.carrier.key().await?.public().to_owned())
    }

    /// Switches notifications of a device on; tells whether it is a new one.
    /// The same address of a push service is the same device.
    ///
    /// # Errors
    /// What the browser gave is unusable, or there are too many devices.
    pub async fn subscribe(
        self: &Arc<Self>,
        wanted: &SubscribePush,
        by: Subscriber<'_>,
    ) -> Result<(PushDevice, bool), AppError> {
        let Checked { url, label, events } = endpoint::checked(wanted)?;
        let chosen = Chosen { label: label.is_some(), events: wanted.events.is_some() };
        self.judge(&url).await?;
        let now = self.carrier.clock.now();
        let words: Vec<&str> = events.iter().map(|event| event.as_str()).collect();
        let holder = self.auth.holder(by.identity);
        let named = || by.user_agent.and_then(browser_name);
        let mut row = PushRow {
            id: new_id()?,
            endpoint: wanted.endpoint.clone(),
            p256dh: wanted.keys.p256dh.clone(),
            auth: wanted.keys.auth.clone(),
            label: label.or_else(named).unwrap_or_else(|| "A browser".to_owned()),
            events: words.join(" "),
            contact: by.origin.filter(|origin| origin.starts_with("https://")).map(str::to_owned),
            channel: holder.channel.clone(),
            credential: holder.credential.clone(),
            mark: holder.mark.clone(),
            created_at: now,
            last_delivery_at: None,
            last_error: None,
        };
        // Those that ended take no place.
        self.live().await?;
        let (this, new) = (Arc::clone(self), row.clone());
        let kept = self.tasks.complete(async move {
            let store = &this.carrier.store;
            store.keep_push_subscription(&new, chosen, MOST_DEVICES).await.map_err(unwritten)
        });
        match kept.await? {
            Kept::New => {
                tracing::info!("the device `{}` is notified from now on", row.label);
                Ok((self.device(&row, Some(&holder)), true))
            }
            Kept::Replaced(id) => {
                row.id = id;
                let rows = self.live().await?;
                let row = rows.into_iter().find(|known| known.id == row.id).unwrap_or(row);
                Ok((self.device(&row, Some(&holder)), false))
            }
            Kept::Full => Err(AppError::new(
                ErrorCode::Capacity,
                Class::Conflict,
                format!(
                    "{MOST_DEVICES} devices are notified already, and there may be no more; \
                     remove one with `svc push remove` or on the page Notifications"
                ),
            )),
        }
    }

    /// Refuses an address of a push service that may not be dialled.
    async fn judge(&self, url: &Url) -> Result<(), AppError> {
        let port = url.port_or_known_default().unwrap_or_default();
        let found: Vec<IpAddr> = match url.host() {
            Some(Host::Ipv4(address)) => vec![address.into()],
            Some(Host::Ipv6(address)) => vec![address.into()],
            // A name without an address now may have one later; it is judged again when it is
            // dialled.
            Some(Host::Domain(name)) => For::Webhook.resolve(name, port).await.unwrap_or_default(),
            None => Vec::new(),
        };
        let refused: Result<(), Refused> =
            found.into_iter().try_for_each(|address| self.terms.rule().judge(address, port));
        refused.map_err(|why| {
            AppError::invalid(format!(
                "`endpoint` was refused: {why}; pass on what the browser gave"
            ))
        })
    }

    /// The devices; those of who asks first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn list(&self, asking: Option<&Identity>) -> Result<Vec<PushDevice>, AppError> {
        let holder = asking.map(|identity| self.auth.holder(Some(identity)));
        let rows = self.live().await?;
        let mut devices: Vec<PushDevice> =
            rows.iter().map(|row| self.device(row, holder.as_ref())).collect();
        devices.sort_by_key(|device| !device.current);
        Ok(devices)
    }

    fn device(&self, row: &PushRow, asking: Option<&Holder>) -> PushDevice {
        let lane = self.lanes().get(&row.id).map(Arc::clone);
        PushDevice {
            id: row.id.clone(),
            label: row.label.clone(),
            host: endpoint::shown(&row.endpoint),
            events: events(row).iter().map(|event| event.as_str().to_owned()).collect(),
            created: row.created_at,
            last_delivery_at: row.last_delivery_at,
            last_error: row.last_error.clone(),
            current: asking
                .is_some_and(|one| one.credential.is_some() && one.credential == row.credential),
            deliveries: lane.map(|lane| lane.deliveries()).unwrap_or_default(),
        }
    }

    /// Switches notifications of a device off.
    ///
    /// # Errors
    /// There is no such device, or nothing could be written.
    pub async fn remove(self: &Arc<Self>, id: &str) -> Result<(), AppError> {
        let (this, id) = (Arc::clone(self), id.to_owned());
        self.tasks
            .complete(async move {
                reserve::make_room(&this.config.state_dir).await;
                let removed = this.carrier.store.remove_push_subscription(&id).await;
                if !removed.map_err(unwritten)? {
                    return Err(unknown());
                }
                if let Some(lane) = this.lanes().remove(&id) {
                    lane.end();
                }
                tracing::info!("a device is not notified any more, as asked");
                Ok(())
            })
            .await
    }

    /// Sends a test to one device, past its queue.
    ///
    /// # Errors
    /// There is no such device.
    pub async fn test(&self, id: &str) -> Result<TestedPush, AppError> {
        let rows = self.live().await?;
        let row = rows.into_iter().find(|row| row.id == id).ok_or_else(unknown)?;
        let at = self.carrier.clock.now();
        let call = Call { delivery: delivery_id(at)?, at, word: Word::Test };
        let allowed = Allowed { content: false, actions: false };
        let message = call.shown(&BTreeSet::new(), allowed).ok_or_else(unknown)?;
        let lane = self.lane(&row);
        let id = row.id.clone();
        let outcome = lane.test(&self.carrier, &errand(row, message, &call, false)).await;
        Ok(TestedPush { id, outcome })
    }
}

fn errand(row: PushRow, message: Message, call: &Call, is_close: bool) -> Errand {
    Errand { row, message, delivery: call.delivery.clone(), at: call.at, is_close }
}

fn events(row: &PushRow) -> BTreeSet<PushEvent> {
    // A word of another release is nothing here.
    row.events.split(' ').filter_map(|word| word.parse().ok()).collect()
}

fn holder(row: &PushRow) -> Holder {
    Holder {
        channel: row.channel.clone(),
        credential: row.credential.clone(),
        mark: row.mark.clone(),
    }
}

fn new_id() -> Result<String, AppError> {
    let mut random = [0; ID / 2];
    getrandom::fill(&mut random).map_err(|error| AppError::internal(error.to_string()))?;
    Ok(hex::encode(random))
}

fn unknown() -> AppError {
    let words = "no device has this id; `svc push list` lists them";
    AppError::new(ErrorCode::NotFound, Class::NotFound, words)
}

fn unreadable(error: StoreError) -> AppError {
    AppError::busy("the devices that are notified cannot be read right now; try again")
        .because(error)
}

fn unwritten(error: StoreError) -> AppError {
    AppError::busy(
        "nothing was changed, because the database cannot be written right now; try again",
    )
    .because(error)
}
