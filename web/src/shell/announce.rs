//! The two live regions.
//!
//! They exist from the start and are empty, so that screen readers know them.

use crate::page::page;
use leptos::prelude::*;

/// Reads out what is said.
#[component]
pub fn Announcer() -> impl IntoView {
    let page = page();
    view! {
        <div class="sr-only" role="status" aria-live="polite" data-testid="live-polite">{page.say.polite}</div>
        <div class="sr-only" role="alert" aria-live="assertive" data-testid="live-assertive">{page.say.assertive}</div>
    }
}
