//! The switch for notifications of this browser, among the preferences.

use crate::model::notify::Standing;
use crate::notify;
use crate::page::page;
use crate::reactive::{effect, live};
use crate::text::notify as words;
use leptos::prelude::*;

/// The switch, and what it does or why it does nothing.
#[component]
pub fn NotifySwitch() -> impl IntoView {
    let page = page();
    let is_offered = move || {
        page.live.basics.with(|basics| {
            basics.as_ref().is_some_and(|basics| basics.notifications.browser_enabled)
        })
    };
    let (now, set_now) = signal(notify::standing(untrack(is_offered)));
    effect(move || set_now.set(notify::standing(is_offered())));
    let can_change = move || matches!(now.get(), Standing::On | Standing::Off);
    view! {
        <button
            type="button"
            class="switch wide"
            role="switch"
            aria-checked=live(move || (now.get() == Standing::On).to_string())
            aria-describedby="notify-standing"
            disabled=live(move || !can_change())
            data-testid="notify-switch"
            on:click=move |_| notify::switch(now.get_untracked(), set_now)
        >
            {words::SWITCH}
        </button>
        <p class="muted" id="notify-standing" data-testid="notify-standing">
            {live(move || words::standing(now.get()))}
        </p>
    }
}
