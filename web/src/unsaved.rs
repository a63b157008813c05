//! Edits that would be lost with the page, though no view shows them at the moment.

use leptos::prelude::*;
use std::cell::Cell;

thread_local! {
    /// Edits that are kept for a view which is not open.
    static KEPT: Cell<usize> = const { Cell::new(0) };
}

/// Notes how many edits are kept for views that are not open.
pub fn note_kept(count: usize) {
    KEPT.set(count);
}

/// Has the browser ask, in its own words, before the page goes with such edits.
pub fn listen() {
    let _ = window_event_listener_untyped("beforeunload", |event| {
        if KEPT.get() > 0 {
            event.prevent_default();
        }
    });
}
