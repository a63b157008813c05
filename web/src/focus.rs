//! Keeps the keyboard focus in a useful place.
//!
//! A new view gets the focus on its heading. When a row goes away, the next row gets the focus.

use crate::browser;
use leptos::prelude::document;
use std::cell::RefCell;
use wasm_bindgen::JsCast;
use web_sys::Element;

thread_local! {
    /// Key of the row that had the focus last, and of the one after it.
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
}

struct Last {
    id: String,
    next: Option<String>,
}

/// Remembers in which row the focus is.
pub fn watch() {
    browser::on_document("focusin", |event: web_sys::Event| {
        let row = event
            .target()
            .and_then(|target| target.dyn_into::<Element>().ok())
            .and_then(|element| element.closest("[data-row]").ok().flatten());
        let last = row.and_then(|row| {
            Some(Last {
                id: row.get_attribute("data-row")?,
                next: row.next_element_sibling().and_then(|next| next.get_attribute("data-row")),
            })
        });
        LAST.with(|slot| *slot.borrow_mut() = last);
    });
    // A person who points at something that takes no focus has left the row for good. (A lost
    // focus alone says nothing: it is also how an element goes that is taken away.)
    browser::on_document("pointerdown", |event: web_sys::Event| {
        let takes_focus =
            event.target().and_then(|target| target.dyn_into::<Element>().ok()).and_then(
                |element| element.closest("a, button, input, select, textarea").ok().flatten(),
            );
        if takes_focus.is_none() {
            LAST.with(|slot| *slot.borrow_mut() = None);
        }
    });
}

/// Moves the focus when its element is removed.
///
/// The next row gets it, or the heading of the view.
pub fn rescue(selector: &'static str) {
    browser::after_paint(move || {
        if is_lost() && !browser::focus(selector) {
            browser::focus("h1");
        }
    });
}

/// The same for the name of a row.
pub fn rescue_row(key: &str) {
    let name = row_name(key);
    browser::after_paint(move || {
        if is_lost() && !name.is_some_and(|name| browser::focus(&name)) {
            browser::focus("h1");
        }
    });
}

fn is_lost() -> bool {
    document().active_element().is_none_or(|element| element.tag_name() == "BODY")
}

/// Selector of the name in a row.
///
/// A project name with a character that has a meaning in selectors is not looked up.
fn row_name(key: &str) -> Option<String> {
    (!key.contains(['"', '\\'])).then(|| format!("[data-row=\"{key}\"] .name"))
}

/// Takes care of a focus that a change of the lists has lost.
pub fn keep() {
    browser::after_paint(|| {
        if !is_lost() || document().query_selector("dialog[open]").ok().flatten().is_some() {
            return;
        }
        let Some(last) = LAST.with(|slot| slot.borrow_mut().take()) else {
            return;
        };
        let name = |id: &str| row_name(id).is_some_and(|name| browser::focus(&name));
        if !name(&last.id) && !last.next.is_some_and(|id| name(&id)) {
            browser::focus("h1");
        }
    });
}
