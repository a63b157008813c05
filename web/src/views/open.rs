//! The step between "Open" and the remote client.
//!
//! It asks for the link, checks it and leaves the page.
//!
//! A page of its own, because a window opened after an answer is blocked by browsers, and because
//! the link is a credential that must not stand in a record.

use crate::api;
use crate::appear::enter;
use crate::browser;
use crate::model::link::client_host;
use crate::model::status::Tone;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::symbol;
use crate::reactive::{dynamic, effect};
use crate::text::page::open as words;
use crate::text::session::act;
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use svc_shared::internal::Connect;
use svc_shared::paths;

/// How far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Asking,
    /// The link, until it is known where the page runs.
    Linked(String),
    Demo,
    Leaving(&'static str),
    Refused {
        why: String,
        how: &'static str,
    },
}

/// The view.
#[component]
pub fn Open(
    /// Instance id.
    id: String,
) -> impl IntoView {
    let page = page();
    let name = page.store.instance(&id).map_or_else(
        || act::OPEN.to_owned(),
        |bridge| words::title(&bridge.get_untracked().project),
    );
    enter(name.clone());
    let step = RwSignal::new(Step::Asking);
    let back = browser::session_href(&id);
    let id = StoredValue::new(id);
    let ask = move || {
        step.set(Step::Asking);
        let path = paths::instance_action(&id.get_value(), "connect");
        spawn_local(async move {
            step.set(match api::call::<Connect>(Method::POST, &path).await {
                Ok(connect) => Step::Linked(connect.url),
                Err(problem) => Step::Refused { why: problem.words(), how: "" },
            });
        });
    };
    ask();
    effect(move || {
        let Step::Linked(url) = step.get() else { return };
        let is_demo = page.live.basics.with(|b| b.as_ref().map(|b| b.demo));
        // The link of a demonstration leads to the real client, with an invented id.
        step.set(match is_demo {
            None => return,
            Some(true) => Step::Demo,
            Some(false) => leave(&url),
        });
    });
    view! {
        <h1 tabindex="-1" class="sr-only">{name}</h1>
        <div class="card page-card" data-testid="open">
            {dynamic(move || match step.get() {
                Step::Demo => view! { <p role="status" data-testid="open-demo">{words::DEMO}</p> }.into_any(),
                Step::Asking | Step::Linked(_) => view! { <p role="status">{words::ASKING}</p> }.into_any(),
                Step::Leaving(host) => view! { <p role="status">{words::leaving(host)}</p> }.into_any(),
                Step::Refused { why, how } => view! {
                    <div class=Tone::Danger.class() role="alert">
                        <h2>{symbol("g-octagon", "glyph")} {why}</h2>
                        <p>{how}</p>
                    </div>
                    <div class="actions">
                        <button type="button" class=ButtonStyle::Primary.class() data-testid="open-retry" on:click=move |_| ask()>
                            {words::RETRY}
                        </button>
                    </div>
                }.into_any(),
            })}
            <a href=back>{words::BACK}</a>
        </div>
    }
}

/// Leaves for the client, if that is where the link leads.
fn leave(url: &str) -> Step {
    let Some(host) = client_host(url) else {
        return Step::Refused { why: words::REFUSED.to_owned(), how: words::REFUSED_HOW };
    };
    match window().location().replace(url) {
        Ok(()) => Step::Leaving(host),
        Err(_) => Step::Refused { why: words::REFUSED.to_owned(), how: words::REFUSED_HOW },
    }
}
