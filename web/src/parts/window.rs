//! Long lists.
//!
//! Only rows near the visible part exist; space of the same height stands for the others.

use crate::browser;
use crate::model::window::{ALL_UP_TO, range, step};
use crate::reactive::{effect, live, memo};
use leptos::ev;
use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{Element, Event, FocusOptions, KeyboardEvent};

/// The list that a row stands in, for `aria-posinset` and `aria-setsize`.
#[derive(Clone, Copy)]
pub struct Listed {
    items: Memo<Vec<String>>,
    shown: Memo<(usize, usize)>,
}

impl Listed {
    /// Place of a row, from 1; 0 for one that is not there. Tracked.
    pub fn place(self, key: &str) -> usize {
        let (first, count) = self.shown.get();
        let at = self
            .items
            .with(|items| items.iter().skip(first).take(count).position(|item| item == key));
        at.map_or(0, |at| first + at + 1)
    }

    /// Number of rows, existing or not. Tracked.
    pub fn size(self) -> usize {
        self.items.with(Vec::len)
    }
}

/// Place of the row an event comes from.
fn place_of(event: &Event) -> Option<usize> {
    let target = event.target()?.dyn_into::<Element>().ok()?;
    let row = target.closest("[aria-posinset]").ok()??;
    row.get_attribute("aria-posinset")?.parse().ok()
}

/// What scrolls by itself in a row, and keeps its keys.
const SCROLLS: &str = ".job-result, .output";

/// A list of which only the rows near the visible part of the page exist.
#[component]
pub fn Windowed(
    /// Keys of the rows, in order.
    items: Memo<Vec<String>>,
    /// Height of every row with its gap, pixels.
    #[prop(into)]
    row_px: Signal<usize>,
    /// Makes a row from its key.
    #[prop(into)]
    row: Callback<String, AnyView>,
    /// Classes.
    #[prop(into)]
    class: String,
    /// Name of the list.
    label: &'static str,
) -> impl IntoView {
    let node = NodeRef::<html::Ul>::new();
    let scrolled = RwSignal::new(0u32);
    let bump = move || scrolled.update(|n| *n = n.wrapping_add(1));
    let on_scroll = window_event_listener(ev::scroll, move |_| bump());
    let on_resize = window_event_listener(ev::resize, move |_| bump());
    on_cleanup(move || {
        on_scroll.remove();
        on_resize.remove();
    });
    let height = || document().document_element().map_or(0, |root| root.client_height());
    let shown = memo(move || {
        scrolled.track();
        let total = items.with(Vec::len);
        if total <= ALL_UP_TO {
            return (0, total); // nothing to measure
        }
        #[expect(clippy::cast_possible_truncation, reason = "pixels of a page")]
        let top = node.get().map_or(0, |list| list.get_bounding_client_rect().top() as i32);
        range(total, row_px.get(), top, height())
    });
    let keys = memo(move || {
        let (first, count) = shown.get();
        items.with(|items| items.iter().skip(first).take(count).cloned().collect::<Vec<_>>())
    });
    let space = move |rows: usize| format!("{}px", rows * row_px.get());
    let above = live(move || space(shown.get().0));
    let below = live(move || {
        let (first, count) = shown.get();
        space(items.with(Vec::len).saturating_sub(first + count))
    });
    provide_context(Listed { items, shown });

    // Where the keyboard is, also when the row itself was scrolled out of existence.
    let at = StoredValue::new(0_usize);
    let focused = move |event: web_sys::FocusEvent| {
        if let Some(place) = place_of(&event) {
            at.set_value(place);
        }
    };
    effect(move || {
        keys.with(|_| ());
        browser::after_paint(move || {
            let is_lost = document().active_element().is_none_or(|one| one.tag_name() == "BODY");
            let Some((first, count)) = shown.try_get_untracked() else { return };
            let was = at.try_get_value().unwrap_or_default();
            let is_out = was != 0 && !(first + 1..=first + count).contains(&was);
            let list = node.try_get_untracked().flatten();
            if let Some(list) = list.filter(|_| is_lost && is_out) {
                let options = FocusOptions::new();
                options.set_prevent_scroll(true);
                let _ = list.focus_with_options(&options); // gone: nothing to keep
            }
        });
    });
    let press = move |event: KeyboardEvent| {
        if event.default_prevented() || event.ctrl_key() || event.meta_key() || event.alt_key() {
            return;
        }
        let target = event.target().and_then(|target| target.dyn_into::<Element>().ok());
        if target.is_some_and(|target| target.matches(SCROLLS).unwrap_or_default()) {
            return;
        }
        let page = usize::try_from(height()).unwrap_or(0) / row_px.get_untracked().max(1);
        let total = items.with_untracked(Vec::len);
        if total <= ALL_UP_TO && place_of(&event).is_none() {
            return; // every row is there, and the keys of the page lead from one to the next
        }
        let Some(to) = step(&event.key(), at.get_value(), page, total) else { return };
        event.prevent_default();
        at.set_value(to);
        let (first, count) = shown.get_untracked();
        if !(first + 1..=first + count).contains(&to)
            && let Some(list) = node.get_untracked()
        {
            let row = row_px.get_untracked();
            #[expect(clippy::cast_precision_loss, reason = "pixels of a page")]
            let middle = ((to - 1) * row + row / 2) as f64 - f64::from(height()) / 2.0;
            let top = list.get_bounding_client_rect().top() + middle;
            window().scroll_by_with_x_and_y(0.0, top);
            bump();
        }
        // In this list: another on the page has such a row too.
        let focus = move || {
            let list = node.try_get_untracked().flatten();
            let row = format!("[aria-posinset=\"{to}\"] .name");
            let name = list.and_then(|list| list.query_selector(&row).ok().flatten());
            let name = name.and_then(|name| name.dyn_into::<web_sys::HtmlElement>().ok());
            name.is_some_and(|name| name.focus().is_ok())
        };
        if !focus() {
            // The row is made after this event, before the next paint.
            browser::after_paint(move || {
                focus();
            });
        }
    };
    view! {
        <ul
            node_ref=node
            class=class
            aria-label=label
            tabindex="-1"
            style:padding-top=above
            style:padding-bottom=below
            on:focusin=focused
            on:keydown=press
        >
            <For each=move || keys.get() key=String::clone children=move |key| row.run(key) />
        </ul>
    }
}
