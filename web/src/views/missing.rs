//! Addresses without a view, and a service that does not answer.

use crate::app::page;
use crate::browser;
use crate::model::problem::Problem;
use crate::model::status::Tone;
use crate::parts::button::Look;
use crate::parts::icon::symbol;
use crate::shell::nav::enter;
use crate::text::page as words;
use leptos::prelude::*;

/// There is nothing at this address.
#[component]
pub fn Missing() -> impl IntoView {
    enter(words::nav::MISSING);
    view! {
        <div class="card page-card" data-testid="not-found">
            <p>{words::MISSING}</p>
            <div class="actions">
                <a class=Look::Secondary.class() href=browser::href("/ui/")>{words::GO_HOME}</a>
                <a class=Look::Ghost.class() href=browser::href("/ui/projects")>{words::home::ALL_PROJECTS}</a>
            </div>
        </div>
    }
}

/// The page could not start.
#[component]
pub fn NoStart(
    /// Why.
    problem: Problem,
) -> impl IntoView {
    let page = page();
    if problem.is_wrong_address() {
        return view! { <WrongAddress /> }.into_any();
    }
    view! {
        <div class=format!("card page-card {}", Tone::Danger.class()) role="alert" data-testid="no-start">
            <h2>{symbol("g-octagon", "glyph")} {words::NO_START}</h2>
            <p>{problem.words()}</p>
            <button type="button" class=Look::Primary.class() on:click=move |_| page.live.retry_now()>
                {words::link::RETRY}
            </button>
        </div>
    }
    .into_any()
}

/// The service takes no actions from this address.
#[component]
pub fn WrongAddress() -> impl IntoView {
    view! {
        <div class=format!("card page-card {}", Tone::Warn.class()) role="alert" data-testid="wrong-address">
            <h2>{symbol("g-triangle", "glyph")} {words::WRONG_ADDRESS}</h2>
            <p>{words::wrong_address_how(&browser::origin())}</p>
        </div>
    }
}
