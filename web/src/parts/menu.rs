//! The menu behind "More".
//!
//! A click or a key opens it. Escape, a choice or a click beside it closes it.

use crate::browser;
use crate::layers::{self, Layer};
use crate::parts::icon::icon;
use crate::reactive::{dynamic, live};
use crate::text::session::act;
use leptos::ev;
use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{HtmlElement, KeyboardEvent, Node};

/// What an entry does.
#[derive(Clone)]
pub enum Does {
    /// Runs this.
    Run(Callback<()>),
    /// Goes to this address of the page.
    Go(String),
    /// Cannot now, for this reason.
    Refuses(String),
}

/// One entry.
#[derive(Clone)]
pub struct Entry {
    /// Visible text.
    pub label: &'static str,
    /// What it does.
    pub does: Does,
    /// For tests and automation.
    pub testid: &'static str,
    /// `only-small` where a button does the same on wide screens.
    pub class: &'static str,
}

/// Room below the button that any menu fits in, pixels.
const ENOUGH_PX: f64 = 340.0;
/// Height that a menu has at least, pixels.
const LEAST_PX: f64 = 160.0;

/// The button with its menu.
#[component]
pub fn Menu(
    /// Name of the object, for the button.
    #[prop(into)]
    of: Signal<String>,
    /// The entries, made when it opens.
    entries: Callback<(), Vec<Entry>>,
) -> impl IntoView {
    let is_open = RwSignal::new(false);
    let layer = StoredValue::new(None::<Layer>);
    let is_up = RwSignal::new(false);
    let room = RwSignal::new(String::new());
    let shut = move || {
        is_open.set(false);
        if let Some(layer) = layer.try_update_value(Option::take).flatten() {
            layer.close();
        }
    };
    let wrap = NodeRef::<html::Div>::new();
    let beside = window_event_listener(ev::pointerdown, move |event| {
        if is_open.try_get_untracked() != Some(true) {
            return;
        }
        let target = event.target().and_then(|t| t.dyn_into::<Node>().ok());
        let wrap = wrap.try_get_untracked().flatten();
        let inside = wrap.is_some_and(|wrap| wrap.contains(target.as_ref()));
        if !inside {
            shut();
        }
    });
    on_cleanup(move || {
        beside.remove();
        if let Some(layer) = layer.try_get_value().flatten() {
            layer.close();
        }
    });
    let close = move || {
        shut();
        if let Some(button) = child(wrap, "button[aria-haspopup]") {
            let _ = button.focus(); // gone: fine
        }
    };
    let toggle = move |_| {
        if is_open.get_untracked() {
            return close();
        }
        layer.set_value(Some(layers::open(Callback::new(move |()| close()))));
        if let Some((above, below)) = child(wrap, "button[aria-haspopup]").map(space) {
            is_up.set(below < ENOUGH_PX && above > below);
            room.set(format!("{}px", above.max(below).max(LEAST_PX)));
        }
        is_open.set(true);
        browser::after_paint(move || step(wrap, Move::First));
    };
    let keys = move |event: KeyboardEvent| {
        let go = match event.key().as_str() {
            "Escape" if is_open.get_untracked() => {
                event.stop_propagation();
                return close();
            }
            "Tab" => return shut(),
            "ArrowDown" => Move::Next,
            "ArrowUp" => Move::Previous,
            "Home" => Move::First,
            "End" => Move::Last,
            _ => return,
        };
        if is_open.get_untracked() {
            event.prevent_default();
            step(wrap, go);
        }
    };
    view! {
        <div class="menu-wrap" node_ref=wrap on:keydown=keys>
            <button
                type="button"
                class="btn btn-ghost btn-icon"
                aria-haspopup="menu"
                aria-expanded=live(move || is_open.get().to_string())
                aria-label=live(move || crate::text::session::named(act::MORE, &of.get()))
                data-testid="act-more"
                on:click=toggle
            >
                {icon("more", 20)}
            </button>
            {dynamic(move || {
                is_open
                    .get()
                    .then(|| {
                        let rows: Vec<_> = entries
                            .run(())
                            .into_iter()
                            .map(|entry| view_entry(entry, close))
                            .collect();
                        view! { <div class="menu" class:up=is_up role="menu" style:max-height=room>{rows}</div> }
                    })
            })}
        </div>
    }
}

fn view_entry(entry: Entry, close: impl Fn() + Copy + 'static) -> AnyView {
    let class = format!("menu-item {}", entry.class);
    match entry.does {
        Does::Run(run) => {
            let press = move |_| {
                close();
                run.run(());
            };
            view! {
                <button type="button" role="menuitem" tabindex="-1" class=class data-testid=entry.testid on:click=press>
                    {entry.label}
                </button>
            }
            .into_any()
        }
        Does::Go(href) => view! {
            <a role="menuitem" tabindex="-1" class=class href=href data-testid=entry.testid on:click=move |_| close()>
                {entry.label}
            </a>
        }
        .into_any(),
        Does::Refuses(why) => view! {
            <button
                type="button"
                role="menuitem"
                tabindex="-1"
                class=class
                aria-disabled="true"
                data-testid=entry.testid
            >
                {entry.label} <span class="reason">{why}</span>
            </button>
        }
        .into_any(),
    }
}

/// Room above and below a button up to a margin of the screen, pixels.
fn space(button: HtmlElement) -> (f64, f64) {
    const MARGIN_PX: f64 = 12.0;
    let around = button.get_bounding_client_rect();
    let height = document().document_element().map_or(0, |root| root.client_height());
    (around.top() - MARGIN_PX, f64::from(height) - around.bottom() - MARGIN_PX)
}

#[derive(Clone, Copy)]
enum Move {
    First,
    Last,
    Next,
    Previous,
}

fn child(wrap: NodeRef<html::Div>, selector: &str) -> Option<HtmlElement> {
    // The row may be drawn anew between a press and the next frame.
    let wrap = wrap.try_get_untracked().flatten()?;
    let found = wrap.query_selector(selector).ok()??;
    found.dyn_into().ok()
}

/// Moves the focus among the entries that are shown.
fn step(wrap: NodeRef<html::Div>, go: Move) {
    let wrap = wrap.try_get_untracked().flatten();
    let Some(list) = wrap.and_then(|wrap| wrap.query_selector_all("[role=menuitem]").ok()) else {
        return;
    };
    let items: Vec<HtmlElement> = (0..list.length())
        .filter_map(|at| list.item(at)?.dyn_into::<HtmlElement>().ok())
        .filter(|item| item.offset_parent().is_some())
        .collect();
    let active = document().active_element();
    let at = items.iter().position(|item| active.as_ref() == Some(item.as_ref()));
    let last = items.len().saturating_sub(1);
    let to = match (go, at) {
        (Move::First, _) | (Move::Next, None) => 0,
        (Move::Last, _) | (Move::Previous, None) => last,
        (Move::Next, Some(at)) => {
            if at >= last {
                0
            } else {
                at + 1
            }
        }
        (Move::Previous, Some(at)) => at.checked_sub(1).unwrap_or(last),
    };
    if let Some(item) = items.get(to) {
        let _ = item.focus(); // gone: fine
    }
}
