//! Navigation between views.
//!
//! A table of addresses with two parameters at most, read by the rules in `model::route`. A general
//! router is for many more of them, and was a tenth of the module.

use crate::browser;
use crate::layers;
use crate::model::launch::{Choice, MEMBERS};
use crate::model::route::{Query, Route};
use crate::reactive::memo;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::JsValue;
use web_sys::{Element, Event, MouseEvent};

/// Query member that names the project whose launch dialog is open.
pub const LAUNCH: &str = "launch";

/// A way to another view that waits for an answer about unsaved edits.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Way {
    /// To an address.
    To(String),
    /// To an address that takes the place of the present one.
    Replace(String),
    /// Back in the history.
    Back,
}

/// Where the page is, and how it gets elsewhere.
#[derive(Clone, Copy)]
pub struct Nav {
    at: RwSignal<(String, Query)>,
    /// The view.
    pub route: Memo<Route>,
    /// Whether the view has edits that leaving it would lose; none where it keeps none.
    unsaved: StoredValue<Option<Signal<bool>>>,
    leaving: RwSignal<Option<Way>>,
}

/// The navigation of this page.
pub fn nav() -> Nav {
    expect_context()
}

fn here() -> (String, Query) {
    let at = window().location();
    let path = at.pathname().unwrap_or_default();
    let local = path.strip_prefix(&browser::root()).unwrap_or(&path).to_owned();
    (local, Query::parse(&at.search().unwrap_or_default()))
}

/// Stores the scroll position with the address that is left.
///
/// The way back restores it.
fn keep_place() {
    let y = JsValue::from_f64(window().scroll_y().unwrap_or_default());
    let _ = window().history().and_then(|h| h.replace_state(&y, "")); // only the place is lost
}

/// Adds an address to the history, in place of what a layer left there.
fn add(href: &str) {
    let Ok(history) = window().history() else { return };
    let _ = if layers::is_on_top() {
        history.replace_state_with_url(&JsValue::NULL, "", Some(href))
    } else {
        keep_place();
        history.push_state_with_url(&JsValue::NULL, "", Some(href))
    }; // refused after many in a short time: the next click works
}

impl Nav {
    /// Follows the address bar and takes over the links of the page.
    pub fn start() -> Self {
        let at = RwSignal::new(here());
        let nav = Self {
            at,
            route: memo(move || Route::of(&at.with(|(path, _)| path.clone()))),
            unsaved: StoredValue::new(None),
            leaving: RwSignal::new(None),
        };
        browser::on_window("popstate", move |_: Event| {
            let is_layer = layers::stepped();
            let now = here();
            if is_layer && at.with_untracked(|at| *at == now) {
                return; // something over the view was closed; the view stays
            }
            if nav.holds(&now.0) {
                nav.stay_here();
                return;
            }
            at.set(now);
            let place = window().history().and_then(|h| h.state()).ok().and_then(|it| it.as_f64());
            if let Some(y) = place {
                // After the focus went to the heading, which scrolls there.
                browser::after_paint(move || {
                    browser::after_paint(move || window().scroll_to_with_x_and_y(0.0, y));
                });
            }
        });
        browser::on_document("click", move |event: Event| {
            if let Some(href) = followed(&event) {
                event.prevent_default();
                nav.to(&href);
            }
        });
        nav
    }

    /// Asks before this view is left while `is_unsaved` holds.
    ///
    /// As long as the view exists.
    pub fn guard(self, is_unsaved: Signal<bool>) {
        self.unsaved.set_value(Some(is_unsaved));
        // Another page, or none: then the browser asks, in its own words.
        let close = window_event_listener_untyped("beforeunload", move |event| {
            if is_unsaved.get_untracked() {
                event.prevent_default();
            }
        });
        on_cleanup(move || {
            close.remove();
            self.unsaved.set_value(None);
        });
    }

    /// Whether the way to `path` (without prefix) would lose edits.
    fn holds(self, path: &str) -> bool {
        let is_other = self.at.with_untracked(|(here, _)| here != path);
        is_other && self.unsaved.get_value().is_some_and(|is_unsaved| is_unsaved.get_untracked())
    }

    /// The same for an address (with prefix); true when the way waits for an answer.
    fn asks(self, href: &str, way: impl FnOnce(String) -> Way) -> bool {
        let local = href.strip_prefix(&browser::root()).unwrap_or(href);
        let path = local.split(['?', '#']).next().unwrap_or(local);
        let holds = self.holds(path);
        if holds {
            self.leaving.set(Some(way(href.to_owned())));
        }
        holds
    }

    /// Undoes a step back out of the view, until the answer is there.
    fn stay_here(self) {
        let (path, query) = self.at.get_untracked();
        let href = format!("{}{}", browser::href(&path), query.text());
        if let Ok(history) = window().history() {
            let _ = history.push_state_with_url(&JsValue::NULL, "", Some(&href)); // as in `add`
        }
        // A second step back closes the question.
        let is_asked = self.leaving.with_untracked(Option::is_some);
        self.leaving.set((!is_asked).then_some(Way::Back));
    }

    /// Whether somebody is asked about unsaved edits. Tracked.
    pub fn is_asked(self) -> bool {
        self.leaving.with(Option::is_some)
    }

    /// The answer: the view and its edits stay.
    pub fn stay(self) {
        self.leaving.set(None);
    }

    /// The answer: the edits are lost, and the way is gone.
    pub fn leave(self) {
        let Some(way) = self.leaving.get_untracked() else { return };
        self.unsaved.set_value(None);
        self.leaving.set(None);
        match way {
            Way::To(href) => self.to(&href),
            Way::Replace(href) => self.replace(&href),
            // The question has no entry of its own.
            Way::Back => layers::step_back(),
        }
    }

    /// Goes to an address of this page (with prefix).
    pub fn to(self, href: &str) {
        if self.asks(href, Way::To) {
            return;
        }
        let href = href.to_owned();
        layers::settled(move || {
            add(&href);
            window().scroll_to_with_x_and_y(0.0, 0.0);
            self.at.set(here());
        });
    }

    /// The same, and the address left is forgotten.
    pub fn replace(self, href: &str) {
        if self.asks(href, Way::Replace) {
            return;
        }
        let href = href.to_owned();
        layers::settled(move || {
            let _ = window()
                .history()
                .and_then(|h| h.replace_state_with_url(&layers::state(), "", Some(&href))); // as in `add`
            self.at.set(here());
        });
    }

    /// Changes members of the query; an empty value removes one.
    pub fn set_query(self, members: &[(&'static str, &str)], replace: bool) {
        let href = self.with_members(members);
        if replace {
            self.replace(&href);
            return;
        }
        layers::settled(move || {
            add(&href);
            self.at.set(here());
        });
    }

    /// This address with other members of the query.
    fn with_members(self, members: &[(&'static str, &str)]) -> String {
        let (path, mut query) = self.at.get_untracked();
        for (name, value) in members {
            query.set(name, value);
        }
        format!("{}{}", browser::href(&path), query.text())
    }

    /// One member of the query; empty when absent. Tracked.
    pub fn member(self, name: &str) -> String {
        self.at.with(|(_, query)| query.get(name).to_owned())
    }

    /// Shows the inbox with one request chosen.
    pub fn to_request(self, session: &str, request: &str) {
        let (_, mut query) = self.at.get_untracked();
        query.set("session", session);
        query.set("request", request);
        self.replace(&format!("{}{}", browser::href("/ui/inbox"), query.text()));
    }

    /// Shows the project list with the launch dialog over it.
    pub fn to_launch(self, project: &str) {
        let (_, mut query) = self.at.get_untracked();
        query.set(LAUNCH, project);
        self.replace(&format!("{}{}", browser::href("/ui/projects"), query.text()));
    }

    /// Opens the launch dialog over this view.
    pub fn open_launch(self, project: &str, choice: &Choice) {
        self.set_query(&launch_members(project, choice), false);
    }

    /// The address at which the launch dialog is open.
    pub fn launch_address(self, project: &str, choice: &Choice) -> String {
        self.with_members(&launch_members(project, choice))
    }

    /// Closes the launch dialog.
    pub fn close_launch(self) {
        self.set_query(&launch_members("", &Choice::default()), true);
    }
}

/// The members of the query that open the launch dialog, as it is filled in.
fn launch_members<'a>(project: &'a str, choice: &'a Choice) -> Vec<(&'static str, &'a str)> {
    let filled = MEMBERS.map(|name| (name, choice.get(name).unwrap_or_default()));
    [(LAUNCH, project)].into_iter().chain(filled).collect()
}

/// The address of a clicked link of this page.
///
/// `None` when the user asked for another tab or window.
fn followed(event: &Event) -> Option<String> {
    let click = event.dyn_ref::<MouseEvent>()?;
    let plain = click.button() == 0
        && !(click.ctrl_key() || click.meta_key() || click.shift_key() || click.alt_key());
    if !plain || event.default_prevented() {
        return None;
    }
    let target = event.target()?.dyn_into::<Element>().ok()?;
    let link = target.closest("a[href]").ok()??;
    let href = link.get_attribute("href")?;
    let local = href.strip_prefix(&browser::root())?;
    let is_ours = local == "/ui" || local.starts_with("/ui/");
    (is_ours && !link.has_attribute("target")).then_some(href)
}
