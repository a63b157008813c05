//! The question before an action that cannot be undone.
//!
//! It takes the place of the button.

use crate::browser;
use crate::model::shown::shown;
use crate::parts::button::ButtonStyle;
use crate::text::session::{act, named};
use leptos::prelude::*;

/// Asks before an action.
///
/// The question names the action and its object. The safe answer has the focus.
#[component]
pub fn Confirm(
    /// Verb of the action.
    verb: &'static str,
    /// What it is done to.
    object: String,
    /// The rest of the question, with what else it affects.
    rest: &'static str,
    /// Yes.
    on_yes: Callback<()>,
    /// No, also by Escape.
    on_no: Callback<()>,
) -> impl IntoView {
    browser::after_paint(|| {
        browser::focus(".confirm [data-testid=confirm-no]");
    });
    // On the page, not on the question: it takes the focus only after it was painted, and whoever
    // asked by a key may be faster.
    let escape = window_event_listener(leptos::ev::keydown, move |event| {
        if event.key() == "Escape" && !event.default_prevented() {
            event.prevent_default();
            on_no.run(());
        }
    });
    on_cleanup(move || escape.remove());
    let no = if verb == act::STOP { act::KEEP_RUNNING } else { act::CANCEL };
    let question = named(verb, &object);
    let yes = question.clone();
    view! {
        <div class="confirm" role="group" aria-label=question data-testid="confirm">
            <span class="confirm-text">
                {verb} " " <b><bdi>{shown(&object).into_owned()}</bdi></b> {rest}
            </span>
            <button
                type="button"
                class=ButtonStyle::Danger.class()
                aria-label=yes
                data-testid="confirm-yes"
                on:click=move |_| on_yes.run(())
            >
                {verb}
            </button>
            <button
                type="button"
                class=ButtonStyle::Secondary.class()
                data-testid="confirm-no"
                on:click=move |_| on_no.run(())
            >
                {no}
            </button>
        </div>
    }
}
