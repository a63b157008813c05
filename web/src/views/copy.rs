//! Copying texts, also where the browser offers no clipboard.

use crate::browser;
use crate::page::{Page, page};
use crate::parts::icon::icon;
use crate::text::{page::session as words, session};
use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen::JsCast;
use web_sys::Element;

/// Copies a text and says so.
///
/// Without a clipboard it selects the text of `shown`, if that is on the page.
pub fn copy(page: Page, text: String, shown: Option<Element>) {
    spawn_local(async move {
        if browser::copy(&text).await {
            page.say.done(words::COPIED.to_owned());
        } else if let Some(element) = shown {
            browser::select(&element);
            page.say.done(words::PRESS_COPY.to_owned());
        } else {
            page.say.notice(crate::model::outcome::Notice::new(
                crate::model::outcome::Level::Warning,
                words::NO_CLIPBOARD.to_owned(),
                text,
            ));
        }
    });
}

/// The element before the one an event is handled at.
pub fn before(event: &web_sys::MouseEvent) -> Option<Element> {
    let at = event.current_target()?.dyn_into::<Element>().ok()?;
    at.previous_element_sibling()
}

/// A text in the monospaced face, with a button that copies it.
#[component]
pub fn Copyable(
    /// What is shown.
    #[prop(into)]
    shown: String,
    /// What is copied.
    #[prop(into)]
    full: String,
    /// What it is, for the button's name.
    what: &'static str,
) -> impl IntoView {
    let page = page();
    let name = session::named(words::COPY, what);
    let title = full.clone();
    let press = move |event: web_sys::MouseEvent| copy(page, full.clone(), before(&event));
    view! {
        <code title=title>{shown}</code>
        <button type="button" class="btn btn-ghost btn-icon" aria-label=name on:click=press>
            {icon("copy", 16)}
        </button>
    }
}
