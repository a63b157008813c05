//! The preferences of the user.
//!
//! A change is shown at once and stored by the service, so every tab has it.
//!
//! A copy stays in this browser: `theme.js` reads it before the first paint, and other tabs hear
//! of a change by it. The service's document wins when the page starts.

use crate::api;
use crate::browser;
use crate::model::outcome::{Level, Notice};
use crate::model::prefs::{Change, DENSITY, Prefs, THEME, ZONE};
use crate::model::problem::Problem;
use crate::model::wire::{self, Unreadable};
use crate::say::Say;
use crate::text::prefs as words;
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::cell::{Cell, OnceCell, RefCell};
use svc_shared::error::ErrorCode;
use svc_shared::paths::UI_PREFS;

/// Where this browser keeps its copy; `theme.js` knows the name too.
const COPY: &str = "svc.prefs";
/// How often a change is made again on what another device made meanwhile.
const TRIES: u32 = 4;

thread_local! {
    /// Times are written, and lists made, in places that know no page.
    static OF_PAGE: OnceCell<Preferences> = const { OnceCell::new() };
    /// Changes the service has not kept yet.
    static UNKEPT: RefCell<Vec<Change>> = const { RefCell::new(Vec::new()) };
    /// The revision the service named last when it kept a change of this page.
    static HEARD: Cell<u64> = const { Cell::new(0) };
}

/// The choices, and how to change them.
#[derive(Clone, Copy)]
pub struct Preferences {
    now: RwSignal<Prefs>,
    host_zone: RwSignal<String>,
    is_saving: RwSignal<bool>,
    say: Say,
}

impl Preferences {
    /// Begins with the copy of this browser, and follows other tabs.
    pub fn new(say: Say) -> Self {
        let this = Self {
            now: RwSignal::new(copy().unwrap_or_default()),
            host_zone: RwSignal::new(String::new()),
            is_saving: RwSignal::new(false),
            say,
        };
        OF_PAGE.with(|page| {
            let _ = page.set(this); // made once per page
        });
        this.paint();
        browser::on_window("storage", move |_| {
            let next = copy().map(with_unkept);
            let next = next.filter(|next| this.now.with_untracked(|now| now != next));
            if let Some(next) = next.filter(|_| !this.is_saving.get_untracked()) {
                this.now.set(next);
                this.paint();
            }
        });
        this
    }

    /// Takes the preferences and the time zone of the service.
    ///
    /// An answer that was sent before a later choice does not undo that choice.
    pub fn take(self, kept: Option<Prefs>, host_zone: &str) {
        self.host_zone.set(host_zone.to_owned());
        if let Some(kept) = kept.filter(|kept| kept.rev() >= HEARD.get())
            && !self.is_saving.get_untracked()
        {
            self.show(with_unkept(kept));
            self.keep_on();
        }
    }

    /// Looks at the choices. Tracked.
    pub fn with<R>(self, look: impl FnOnce(&Prefs) -> R) -> R {
        self.now.with(look)
    }

    /// Looks at the choices, without tracking.
    pub fn with_untracked<R>(self, look: impl FnOnce(&Prefs) -> R) -> R {
        self.now.with_untracked(look)
    }

    /// Makes a change, and has it kept.
    pub fn change(self, change: Change) {
        self.show(self.now.get_untracked().with(std::slice::from_ref(&change)));
        UNKEPT.with_borrow_mut(|unkept| unkept.push(change));
        self.keep_on();
    }

    /// Sends what the service has not kept yet, unless that is under way.
    pub fn keep_on(self) {
        let is_done = UNKEPT.with_borrow(Vec::is_empty);
        if !is_done && !self.is_saving.get_untracked() {
            self.is_saving.set(true);
            spawn_local(self.keep());
        }
    }

    fn show(self, next: Prefs) {
        browser::store(COPY, Some(&next.text()));
        self.now.set(next);
        self.paint();
    }

    fn paint(self) {
        let Some(root) = document().document_element() else { return };
        self.now.with_untracked(|now| {
            match now.word(THEME) {
                // Also where nothing can be stored.
                theme @ ("light" | "dark") => drop(root.set_attribute("data-theme", theme)),
                _ => {
                    if let Ok(changed) = web_sys::Event::new("svc-theme") {
                        let _ = window().dispatch_event(&changed); // a fixed, legal name
                    }
                }
            }
            let _ = root.set_attribute("data-density", now.word(DENSITY)); // a fixed, legal name
        });
    }

    async fn keep(self) {
        let mut tries = TRIES;
        let failed = loop {
            let sent = UNKEPT.with_borrow(Vec::len);
            if sent == 0 {
                break None;
            }
            let body = self.now.with_untracked(Prefs::text);
            let answer = api::request(Method::PUT, UI_PREFS, Some(body), None).await;
            match api::understood::<Prefs>(answer) {
                Ok(kept) => {
                    UNKEPT.with_borrow_mut(|unkept| drop(unkept.drain(..sent)));
                    HEARD.set(kept.rev());
                    let mut now = self.now.get_untracked();
                    now.kept(kept.rev());
                    self.show(now);
                }
                Err(problem) if problem.is(ErrorCode::Stale) && tries > 0 => {
                    tries -= 1;
                    match api::get::<Prefs>(UI_PREFS).await {
                        Ok(theirs) => {
                            HEARD.set(theirs.rev());
                            self.show(with_unkept(theirs));
                        }
                        Err(problem) => break Some(problem),
                    }
                }
                Err(problem) => break Some(problem),
            }
        };
        if let Some(problem) = failed {
            self.failed(&problem).await;
        }
        self.is_saving.set(false);
    }

    /// Handles a choice that could not be stored.
    ///
    /// A choice that is refused for good is taken back, because every later choice would be refused
    /// with it. Any other choice stays here and is sent again later.
    async fn failed(self, problem: &Problem) {
        let title = if problem.is_unfit() { words::REFUSED } else { words::NOT_KEPT };
        self.say.notice(Notice::new(Level::Warning, title.to_owned(), problem.words()));
        if problem.is_unfit()
            && let Ok(theirs) = api::get::<Prefs>(UI_PREFS).await
        {
            UNKEPT.with_borrow_mut(Vec::clear);
            self.show(theirs);
        }
    }
}

/// What the service keeps, with what it has not been told yet.
fn with_unkept(kept: Prefs) -> Prefs {
    UNKEPT.with_borrow(|unkept| kept.with(unkept))
}

fn copy() -> Option<Prefs> {
    let text = browser::stored(COPY)?;
    wire::read(&text).map_err(|Unreadable| browser::store(COPY, None)).ok()
}

/// Looks at the choices where no page is at hand. Tracked.
pub fn look<R: Default>(look: impl FnOnce(&Prefs) -> R) -> R {
    OF_PAGE.with(|page| page.get().map(|this| this.with(look)).unwrap_or_default())
}

/// Forgets what this browser keeps: somebody signs out.
pub fn forget() {
    browser::forget("svc.");
}

/// Minutes east of UTC at a time, in the zone that is chosen. Tracked.
pub fn zone(at: i64) -> i32 {
    OF_PAGE.with(|page| match page.get() {
        Some(this) => this.with(|now| match now.word(ZONE) {
            "utc" => 0,
            "host" => this.host_zone.with(|name| browser::zone_of(name, at)).unwrap_or_default(),
            _ => browser::zone(at),
        }),
        None => browser::zone(at),
    })
}

/// What stands after an absolute time that is not in the browser's zone. Tracked.
pub fn zone_mark() -> String {
    OF_PAGE.with(|page| match page.get() {
        Some(this) => this.with(|now| match now.word(ZONE) {
            "utc" => " UTC".to_owned(),
            "host" => this.host_zone.with(|name| match browser::zone_of(name, 0) {
                Some(_) => words::in_zone(name),
                None => " UTC".to_owned(),
            }),
            _ => String::new(),
        }),
        None => String::new(),
    })
}
