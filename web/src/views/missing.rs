//! Addresses without a view, and a service that does not answer.

use crate::appear::enter;
use crate::browser;
use crate::model::problem::Problem;
use crate::model::status::Tone;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::dialog::Dialog;
use crate::parts::icon::symbol;
use crate::text::page as words;
use leptos::prelude::*;
use svc_shared::paths;

/// There is nothing at this address.
#[component]
pub fn Missing() -> impl IntoView {
    enter(words::nav::MISSING);
    view! {
        <div class="card page-card" data-testid="not-found">
            <p>{words::MISSING}</p>
            <div class="actions">
                <a class=ButtonStyle::Secondary.class() href=browser::href("/ui/")>{words::GO_HOME}</a>
                <a class=ButtonStyle::Ghost.class() href=browser::href("/ui/projects")>{words::home::ALL_PROJECTS}</a>
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
            <button type="button" class=ButtonStyle::Primary.class() on:click=move |_| page.live.retry_now()>
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

/// Nobody is signed in any more; the page stays as it is behind this.
#[component]
pub fn SignedOut() -> impl IntoView {
    let at = window().location();
    let here = format!("{}{}", at.pathname().unwrap_or_default(), at.search().unwrap_or_default());
    let href = format!("{}?next={}", browser::href(paths::LOGIN), paths::segment(&here));
    // Another tab where something is typed: it goes on by itself when the person comes back.
    let target = browser::element("dialog[open], .rename").map(|_| "_blank");
    view! {
        <Dialog title=words::SIGNED_OUT.to_owned() on_close=Callback::new(|()| {}) testid="signed-out">
            <div class="dialog-body"><p class="wide">{words::SIGNED_OUT_HOW}</p></div>
            <div class="dialog-foot">
                <span class="says"></span>
                <a class=ButtonStyle::Primary.class() href=href target=target rel="noopener" data-testid="sign-in">
                    {words::SIGN_IN}
                </a>
            </div>
        </Dialog>
    }
}
