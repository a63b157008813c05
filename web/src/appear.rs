//! What happens when a view appears.
//!
//! It moves the focus, sets the title and is announced to screen readers.

use crate::browser;
use crate::page::page;
use leptos::prelude::*;

/// Names the view and moves the focus to its heading.
///
/// Every view calls it when it appears.
pub fn enter(name: impl Into<String>) {
    let page = page();
    let name = name.into();
    let first = page.view.with_untracked(String::is_empty);
    page.view.set(name.clone());
    if page.is_selecting.get_untracked() {
        // Once the rows that were selected are gone: they must not be told any more.
        browser::after_paint(move || page.select_none());
    }
    if first {
        return; // the browser has just announced the page itself
    }
    page.say.politely(&crate::text::page::opened(&name));
    browser::after_paint(|| {
        if browser::element("dialog[open]").is_none() {
            browser::focus("h1");
        }
    });
}
