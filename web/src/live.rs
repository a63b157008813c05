//! The connection to the service.
//!
//! It reads the first state, follows one socket, and comes back after a loss.

use crate::clock::Clock;
use crate::model::basics::Basics;
use crate::model::outcome::{Level, Notice};
use crate::model::problem::Problem;
use crate::model::stream::{self, BANNER_AFTER_MS, CaughtUp, Follower, SILENCE_MS, Step};
use crate::model::usage::Kept;
use crate::model::{self, link, outcome, pace, wire};
use crate::reactive::{effect, memo};
use crate::say::Say;
use crate::socket::{Heard, Socket};
use crate::store::Store;
use crate::text::page as words;
use crate::{api, browser, focus, notify};
use leptos::leptos_dom::helpers::TimeoutHandle;
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::sync::Arc;
use std::time::Duration;
use svc_shared::api::instances::Instance;
use svc_shared::internal::StateAt;
use svc_shared::paths;
use svc_shared::status::BridgeStatus;
use svc_shared::stream::{EventFrame, Op, close};

/// Frames wait at most this long for a pointer that is down.
const HOLD: Duration = Duration::from_secs(1);
/// Unreadable frames after which the page asks to be reloaded.
const BAD_FRAMES: u32 = 2;

/// State of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Not connected yet.
    Connecting,
    /// Connected.
    Live,
    /// Lost.
    ///
    /// All times are in milliseconds.
    Lost {
        /// Since when.
        since: i64,
        /// Last sign of life.
        as_of: i64,
        /// `None` while a try is on its way.
        next_try: Option<i64>,
    },
}

/// Why the page should be loaded anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outdated {
    /// The service has another page now.
    NewVersion,
    /// The service speaks another protocol.
    OtherProtocol,
}

/// The connection as the views see it, and its controls.
#[derive(Clone, Copy)]
pub struct Live {
    /// What the page needed to start; `None` until then.
    pub basics: RwSignal<Option<Arc<Basics>>>,
    /// Why it could not start.
    pub no_start: RwSignal<Option<Problem>>,
    /// This address is refused by the service.
    pub wrong_address: RwSignal<bool>,
    /// Nobody is signed in any more.
    pub signed_out: RwSignal<bool>,
    /// State of the connection.
    pub link: RwSignal<Link>,
    /// Lost for long enough to say so and to stop offering actions.
    pub is_offline: Memo<bool>,
    /// Counts connections to a start of the service that was not known before.
    pub starts: RwSignal<u32>,
    /// Counts connections to the start of the service that was known already.
    pub returns: RwSignal<u32>,
    /// The page should be loaded anew.
    pub outdated: RwSignal<Option<Outdated>>,
    /// How many parts of the page show measurements.
    measured: RwSignal<u32>,
    is_hidden: RwSignal<bool>,
    store: Store,
    say: Say,
    clock: Clock,
    inner: StoredValue<Inner, LocalStorage>,
}

#[derive(Default)]
struct Inner {
    follower: Follower,
    socket: Option<Socket>,
    attempt: u32,
    bad_frames: u32,
    heard_at: f64,
    retry: Option<TimeoutHandle>,
    /// Frames that have come and are not shown yet.
    waiting: Vec<String>,
    /// They wait while the pointer is down.
    is_held: bool,
    /// A timer will show them.
    is_due: bool,
    /// When the screen changed last.
    shown_at: f64,
    /// Whether measurements come, and the past ones were read.
    has_past: bool,
}

impl Live {
    /// Makes the connection; [`Live::start`] opens it.
    pub fn new(store: Store, say: Say, clock: Clock) -> Self {
        let link = RwSignal::new(Link::Connecting);
        Self {
            basics: RwSignal::new(None),
            no_start: RwSignal::new(None),
            wrong_address: RwSignal::new(false),
            signed_out: RwSignal::new(false),
            link,
            is_offline: memo(move || match link.get() {
                Link::Connecting | Link::Live => false,
                Link::Lost { since, .. } => clock.seconds() - since >= BANNER_AFTER_MS,
            }),
            starts: RwSignal::new(0),
            returns: RwSignal::new(0),
            outdated: RwSignal::new(None),
            measured: RwSignal::new(0),
            is_hidden: RwSignal::new(browser::is_hidden()),
            store,
            say,
            clock,
            inner: StoredValue::new_local(Inner::default()),
        }
    }

    /// Reads what the page needs, then follows.
    pub fn start(self) {
        self.watch();
        self.read_start();
    }

    fn read_start(self) {
        spawn_local(async move {
            let (basics, state) = futures_util::future::join(
                api::get::<Basics>(paths::BOOTSTRAP),
                api::get::<StateAt>(paths::STATE),
            )
            .await;
            match basics.and_then(|basics| Ok((basics, state?))) {
                Ok((basics, state)) => {
                    self.no_start.set(None);
                    self.inner.update_value(|inner| inner.follower.start(&state, &basics.version));
                    self.check_address(&basics);
                    self.basics.set(Some(Arc::new(basics)));
                    self.store.replace(state.state);
                    self.connect();
                }
                Err(problem) => {
                    self.wrong_address.set(problem.is_wrong_address());
                    // Only reads are repeated without being asked.
                    let wait = (!problem.is_wrong_address()).then(|| self.next_delay(false));
                    self.no_start.set(Some(problem));
                    if let Some(wait) = wait {
                        self.later(wait, Self::read_start);
                    }
                }
            }
        });
    }

    fn check_address(self, basics: &Basics) {
        let allowed = link::is_allowed_origin(&browser::origin(), &basics.allowed_origins);
        self.wrong_address.set(!allowed);
    }

    /// Tries at once, whatever is being waited for.
    pub fn retry_now(self) {
        match self.link.get_untracked() {
            Link::Live => {}
            Link::Lost { .. } => self.connect(),
            Link::Connecting if self.no_start.get_untracked().is_some() => self.read_start(),
            Link::Connecting => {}
        }
    }

    /// Reads the whole state again, because what is shown may not be true.
    pub fn look_again(self) {
        self.inner.update_value(|inner| {
            inner.follower.start_over();
        });
        if self.basics.with_untracked(Option::is_some) {
            self.connect();
        }
    }

    fn connect(self) {
        let path = self
            .inner
            .try_update_value(|inner| {
                inner.retry.take().inspect(TimeoutHandle::clear);
                inner.socket = None;
                // What waits came from another socket; the new one sends it again.
                inner.waiting.clear();
                inner.follower.opened();
                inner.heard_at = browser::steady_now();
                format!("{}{}", paths::WS_EVENTS, inner.follower.query())
            })
            .unwrap_or_default();
        self.link.update(|link| {
            if let Link::Lost { next_try, .. } = link {
                *next_try = None;
            }
        });
        let socket = Socket::open(&path, move |heard| match heard {
            Heard::Open => {}
            Heard::Text(text) => self.arrived(text),
            Heard::Closed(code) => {
                if code == close::SIGNED_OUT {
                    self.signed_out.set(true);
                }
                // What was said before the end is shown before it: a greeting shown after it would
                // make the page look connected.
                self.release();
                if self.inner.with_value(|inner| inner.socket.is_some()) {
                    self.lost(code == close::RESTART);
                }
            }
        });
        match socket {
            Some(socket) => self.inner.update_value(|inner| inner.socket = Some(socket)),
            None => self.lost(false),
        }
    }

    /// Takes a frame.
    ///
    /// Frames that come close together are shown together. None is shown while the pointer is down:
    /// a row that moves between press and release would lose the click.
    fn arrived(self, text: String) {
        let now = browser::steady_now();
        let wait = self.inner.try_update_value(|inner| {
            inner.heard_at = now;
            inner.waiting.push(text);
            let is_due = std::mem::replace(&mut inner.is_due, true);
            (!is_due).then(|| pace::wait_ms(now - inner.shown_at))
        });
        if let Some(wait) = wait.flatten() {
            set_timeout(move || self.show(), Duration::from_secs_f64(wait / 1000.0));
        }
    }

    fn hold(self) {
        self.inner.update_value(|inner| inner.is_held = true);
        set_timeout(move || self.release(), HOLD);
    }

    fn release(self) {
        self.inner.update_value(|inner| inner.is_held = false);
        self.show();
    }

    /// Shows what waits.
    fn show(self) {
        let waiting = self.inner.try_update_value(|inner| {
            inner.is_due = inner.is_held && !inner.waiting.is_empty();
            if inner.is_held {
                return Vec::new(); // `release` comes back
            }
            inner.shown_at = browser::steady_now();
            std::mem::take(&mut inner.waiting)
        });
        let mut ops = Vec::new();
        for text in waiting.unwrap_or_default() {
            match self.understood(&text) {
                Step::Apply(more) => ops.extend(more),
                step => {
                    self.change(std::mem::take(&mut ops));
                    if !self.take(step) {
                        return; // what follows came by a socket that is given up
                    }
                }
            }
        }
        self.change(ops);
    }

    fn understood(self, text: &str) -> Step {
        let step = self.inner.try_update_value(|inner| {
            match wire::read::<EventFrame>(text) {
                Ok(frame) => inner.follower.take(frame),
                Err(_) => {
                    // Half a state is worse than an old one.
                    inner.bad_frames += 1;
                    inner.attempt = inner.attempt.max(inner.bad_frames);
                    inner.follower.start_over()
                }
            }
        });
        step.unwrap_or(Step::Nothing)
    }

    fn change(self, ops: Vec<Op>) {
        if ops.is_empty() {
            return;
        }
        self.progressed();
        for bridge in self.store.apply(ops) {
            self.settled(&bridge);
        }
        focus::keep();
    }

    /// True while the socket is good.
    fn take(self, step: Step) -> bool {
        match step {
            Step::Nothing => {}
            Step::Connected { time, new_boot, other_version, caught_up } => {
                self.connected(time, new_boot || other_version, caught_up)
            }
            Step::Apply(ops) => self.change(ops),
            Step::Replace(state, caught_up) => {
                self.progressed();
                self.store.replace(*state);
                self.settle_messages();
                self.tell(caught_up);
                focus::keep();
            }
            Step::Notice { level, text } => {
                let level = match level.as_str() {
                    "error" => Level::Danger,
                    "info" => Level::Info,
                    _ => Level::Warning,
                };
                self.say.notice(Notice::new(level, text, ""));
            }
            Step::Happened(name, data) => {
                let wanted = self
                    .basics
                    .with_untracked(|basics| basics.as_ref().map(|basics| basics.notifications));
                if let Some(told) =
                    wanted.and_then(|wanted| model::notify::of(&name, &data, wanted))
                {
                    notify::show(told);
                }
            }
            Step::Sample(at, all) => {
                self.store.measured(at, all);
                self.read_past();
            }
            Step::StartOver => {
                let confused = self.inner.with_value(|inner| inner.bad_frames >= BAD_FRAMES);
                if confused {
                    self.outdate(Outdated::OtherProtocol);
                }
                self.lost(false);
                return false;
            }
            Step::OtherProtocol => {
                self.outdate(Outdated::OtherProtocol);
                self.lost(false);
                return false;
            }
        }
        true
    }

    /// Asks for measurements while the calling part of the page exists.
    pub fn measures(self) {
        self.measured.update(|n| *n += 1);
        on_cleanup(move || self.measured.update(|n| *n -= 1));
    }

    fn wants_samples(self) -> bool {
        self.measured.get() > 0 && !self.is_hidden.get()
    }

    /// Measurements come only while somebody can see them.
    fn ask_samples(self) {
        let on = untrack(|| self.wants_samples());
        self.inner.update_value(|inner| {
            inner.has_past = false;
            if let Some(socket) = &inner.socket {
                socket.send(&stream::samples(on));
            }
        });
    }

    /// Reads the measurements that were taken while nobody looked.
    ///
    /// It waits for the first measurement: a service without measurements is not asked, and the
    /// start of the page is not delayed.
    fn read_past(self) {
        let known = self.inner.try_update_value(|i| std::mem::replace(&mut i.has_past, true));
        if known == Some(false) {
            spawn_local(async move {
                if let Ok(kept) = api::get::<Kept>("/api/metrics?history=true").await {
                    self.store.measured_before(kept);
                }
            });
        }
    }

    fn connected(self, time: i64, changed_server: bool, caught_up: Option<CaughtUp>) {
        self.clock.correct(time);
        self.signed_out.set(false);
        self.link.set(Link::Live);
        self.tell(caught_up);
        self.ask_samples();
        let count = if changed_server { self.starts } else { self.returns };
        count.update(|count| *count = count.wrapping_add(1));
        if changed_server {
            self.read_basics();
        }
    }

    /// Reads what another server process offers; another page asks to be loaded.
    pub fn read_basics(self) {
        spawn_local(async move {
            let Ok(next) = api::get::<Basics>(paths::BOOTSTRAP).await else {
                return; // the next connection looks again
            };
            self.inner.update_value(|inner| inner.follower.set_version(&next.version));
            self.check_address(&next);
            let same = self.basics.with_untracked(|now| {
                now.as_ref()
                    .is_some_and(|now| now.version == next.version && now.build == next.build)
            });
            if same {
                self.basics.set(Some(Arc::new(next)));
            } else {
                self.outdate(Outdated::NewVersion);
            }
        });
    }

    fn outdate(self, why: Outdated) {
        // Nobody looks and nothing is being typed: no need to ask.
        if why == Outdated::NewVersion
            && browser::is_hidden()
            && browser::element("dialog[open], .rename").is_none()
            && !browser::has_typed()
            && !browser::asks_before_leaving()
        {
            let _ = window().location().reload(); // still here if it fails: the prompt follows
        }
        self.outdated.set(Some(why));
    }

    fn tell(self, caught_up: Option<CaughtUp>) {
        let text = match caught_up {
            None | Some(CaughtUp::Replayed(0)) => return,
            Some(CaughtUp::Replayed(n)) => words::link::caught_up(n),
            Some(CaughtUp::Restarted) => words::link::RESTARTED.to_owned(),
            Some(CaughtUp::Gap) => words::link::GAP.to_owned(),
        };
        self.say.done(text);
    }

    /// Settles what messages wait for.
    ///
    /// Another state may have come instead of the change.
    fn settle_messages(self) {
        for follows in self.say.followed() {
            match self.store.instance(&follows.id).map(|bridge| bridge.get_untracked()) {
                Some(bridge) if follows.is_settled_by(&bridge) => self.settled(&bridge),
                Some(_) => {}
                None => self.say.unfollow(&follows.id),
            }
        }
    }

    fn settled(self, bridge: &Arc<Instance>) {
        let id = bridge.instance_id.as_str();
        let followed = self.say.take_following(bridge);
        let bad =
            bridge.status.is(&BridgeStatus::Crashed) || bridge.status.is(&BridgeStatus::Error);
        if bad {
            self.store.unseen.update(|unseen| {
                unseen.insert(id.to_owned());
            });
            self.say.notice(outcome::failed(bridge));
        } else if followed && !bridge.intentional_stop {
            // A stop on purpose is told by what stopped it.
            self.say.notice(outcome::started(bridge));
        }
    }

    fn progressed(self) {
        self.inner.update_value(|inner| inner.attempt = 0);
    }

    fn next_delay(self, restarting: bool) -> f64 {
        let attempt = self.inner.try_update_value(|inner| {
            let attempt = inner.attempt;
            inner.attempt = attempt.saturating_add(1);
            attempt
        });
        stream::delay_ms(attempt.unwrap_or(0), restarting, js_sys::Math::random())
    }

    fn later(self, wait_ms: f64, run: fn(Self)) {
        let wait = Duration::from_secs_f64(wait_ms / 1000.0);
        let handle = set_timeout_with_handle(move || run(self), wait).ok();
        self.inner.update_value(|inner| inner.retry = handle);
    }

    fn lost(self, restarting: bool) {
        self.inner.update_value(|inner| inner.socket = None);
        let wait = self.next_delay(restarting);
        #[expect(clippy::cast_possible_truncation, reason = "at most 18 000 ms")]
        let wait_ms = wait as i64;
        self.clock.tick();
        let now = self.clock.now();
        let silent = browser::steady_now() - self.inner.with_value(|inner| inner.heard_at);
        #[expect(clippy::cast_possible_truncation, reason = "far below 2^53 ms")]
        let heard = now - silent as i64;
        self.link.update(|link| {
            let (since, as_of) = match *link {
                Link::Lost { since, as_of, .. } => (since, as_of),
                Link::Live | Link::Connecting => (now, heard),
            };
            *link = Link::Lost { since, as_of, next_try: Some(now + wait_ms) };
        });
        self.later(wait, Self::connect);
        if self.inner.with_value(|inner| inner.attempt == 2) {
            // A refused socket says nothing; a request says whether somebody is signed in.
            spawn_local(async { drop(api::get::<Basics>(paths::BOOTSTRAP).await) });
        }
    }

    /// Notices what the browser knows about the network, and silence.
    fn watch(self) {
        let wake = move || {
            self.clock.tick();
            self.look_for_silence();
            self.retry_now();
            if self.signed_out.get_untracked() {
                // Perhaps somebody has signed in in another tab meanwhile.
                spawn_local(async move {
                    if api::get::<Basics>(paths::BOOTSTRAP).await.is_ok() {
                        self.signed_out.set(false);
                    }
                });
            }
        };
        for event in ["online", "focus", "pageshow"] {
            browser::on_window(event, move |_| wake());
        }
        let wants = memo(move || self.wants_samples());
        effect(move || {
            wants.get();
            self.ask_samples();
        });
        browser::on_document("visibilitychange", move |_: web_sys::Event| {
            self.is_hidden.set(browser::is_hidden());
            if !browser::is_hidden() {
                wake();
            }
        });
        let gone = move |_: web_sys::Event| {
            if self.link.get_untracked() == Link::Live {
                self.lost(false);
            }
        };
        // A page in the back-forward cache must not hold a socket; `pageshow` brings it back.
        for event in ["offline", "pagehide"] {
            browser::on_window(event, gone);
        }
        browser::on_window(api::SIGNED_OUT, move |_| self.signed_out.set(true));
        browser::on_document("pointerdown", move |_| self.hold());
        for event in ["pointerup", "pointercancel"] {
            // The click follows at once.
            browser::on_document(event, move |_| {
                set_timeout(move || self.release(), Duration::ZERO)
            });
        }
        set_interval(move || self.look_for_silence(), Duration::from_secs(5));
    }

    fn look_for_silence(self) {
        let silent = browser::steady_now() - self.inner.with_value(|inner| inner.heard_at);
        if self.link.get_untracked() == Link::Live && silent > SILENCE_MS {
            self.lost(false);
        }
    }
}
