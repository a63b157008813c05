//! The page of one bridge: how it stands, what can be done, its log and its details.

use crate::app::page;
use crate::browser;
use crate::model::cause::{cause, uptime};
use crate::model::link::Found;
use crate::model::offers::{Offer, offers};
use crate::model::shown::shown;
use crate::model::status::face;
use crate::model::time;
use crate::parts::copy::Copyable;
use crate::parts::icon::glyph;
use crate::parts::reactive::{derived, dynamic, effect, live, memo};
use crate::parts::status::pill;
use crate::parts::tabs::{self, Tab, Tabs};
use crate::parts::times::{Age, When};
use crate::shell::nav::{enter, nav};
use crate::text::page::{nav as nav_words, session as words};
use crate::text::past;
use crate::text::{session as said, status as status_words};
use crate::views::actions::{Actions, Place};
use crate::views::activity::Timeline;
use crate::views::cause::CauseCard;
use crate::views::details::Details;
use crate::views::home::Loading;
use crate::views::log::LogPanel;
use crate::views::session_row::Chips;
use leptos::prelude::*;
use std::sync::Arc;
use svc_shared::api::instances::Instance;
use svc_shared::api::sessions::WorkingSession;

const TABS: &[Tab] = &[
    Tab { value: "", id: "tab-log", symbol: "log", label: words::TAB_LOG },
    Tab { value: "activity", id: "tab-activity", symbol: "activity", label: past::TITLE },
    Tab { value: "details", id: "tab-details", symbol: "list", label: words::TAB_DETAILS },
];

/// The view.
#[component]
pub fn Session(
    /// An id, or the beginning of one.
    reference: String,
) -> impl IntoView {
    let page = page();
    let nav = nav();
    let reference = StoredValue::new(reference);
    let found =
        memo(move || page.store.is_loaded.get().then(|| page.store.find(&reference.get_value())));
    effect(move || {
        if let Some(Found::Prefix(id)) = found.get() {
            nav.replace(&browser::session_href(&id));
        }
    });
    view! {
           {dynamic(move || match found.get() {
               None => {
                   enter(nav_words::SESSION);
                   view! { <Loading /> }.into_any()
               }
               // Its whole address is on its way.
    Some(Found::Prefix(_)) => ().into_any(),
    Some(Found::Exact(id)) => view! { <Known id=id /> }.into_any(),
               Some(Found::Several(ids)) => view! { <Several ids=ids /> }.into_any(),
               Some(Found::None) => view! { <Unknown reference=reference.get_value() /> }.into_any(),
           })}
       }
}

#[component]
fn Unknown(reference: String) -> impl IntoView {
    enter(words::UNKNOWN);
    view! {
        <div class="card page-card" data-testid="not-found">
            <h1 tabindex="-1">{words::UNKNOWN}</h1>
            <code><bdi>{shown(&reference).into_owned()}</bdi></code>
            <p>{words::UNKNOWN_WHY}</p>
            <a class="btn btn-secondary" href=browser::href("/ui/")>{crate::text::page::GO_HOME}</a>
        </div>
    }
}

#[component]
fn Several(ids: Vec<String>) -> impl IntoView {
    let page = page();
    enter(words::SEVERAL);
    let rows = ids
        .into_iter()
        .map(|id| {
            let project = page.store.instance(&id).map(|b| b.get_untracked().project.clone());
            view! {
                <li>
                    <a href=browser::session_href(&id)><bdi>{project}</bdi></a> " " <code>{id}</code>
                </li>
            }
        })
        .collect_view();
    view! {
        <div class="card page-card" data-testid="several">
            <h1 tabindex="-1">{words::SEVERAL}</h1>
            <ul>{rows}</ul>
        </div>
    }
}

#[component]
fn Known(id: String) -> impl IntoView {
    let page = page();
    let Some(record) = page.store.instance(&id) else {
        return ().into_any();
    };
    let tracked = page.store.inside(&id);
    let bridge = derived(move || record.get());
    let inside = derived(move || tracked.get());
    enter(shown(&bridge.get_untracked().project).into_owned());
    let seen_id = id.clone();
    effect(move || {
        let is_new = page.store.unseen.with(|unseen| unseen.contains(&seen_id));
        if is_new {
            page.store.unseen.update(|unseen| {
                unseen.remove(&seen_id);
            });
        }
    });
    let at = tabs::chosen(TABS);
    let own_id = id.clone();
    view! {
        <article class="session-view" data-testid="session" data-row=id.clone() data-instance=id data-status=live(move || bridge.get().status.to_string()) data-project=live(move || bridge.get().project.clone())>
            <Head bridge=bridge inside=inside />
            <Explained bridge=bridge inside=inside />
            <Tabs tabs=TABS at=at label=words::TABS />
            {dynamic(move || {
                let tab = at.get();
                let panel = match tab {
                    1 => view! { <Timeline about=own_id.clone() kind="instance" /> }.into_any(),
                    2 => view! { <Details bridge=bridge /> }.into_any(),
                    _ => view! { <LogPanel id=own_id.clone() /> }.into_any(),
                };
                let named = TABS.get(tab).map(|tab| tab.id);
                view! { <div role="tabpanel" id="panel" aria-labelledby=named>{panel}</div> }
            })}
        </article>
    }
    .into_any()
}

#[component]
fn Head(bridge: Signal<Arc<Instance>>, inside: Signal<Arc<Vec<WorkingSession>>>) -> impl IntoView {
    let seen = memo(move || face(&bridge.get(), &inside.get()));
    let label = memo(move || {
        let bridge = bridge.get();
        (bridge.label != bridge.project).then(|| shown(&bridge.label).into_owned())
    });
    let kind = memo(move || {
        let bridge = bridge.get();
        status_words::kind(&bridge.channel.to_string(), &bridge.resume_mode.to_string())
    });
    let is_live = memo(move || bridge.get().is_live());
    let generation = memo(move || bridge.get().generation);
    let since = derived(move || bridge.get().status_since);
    let session = memo(move || bridge.get().session_ref.clone());
    let id = bridge.get_untracked().instance_id.clone();
    view! {
        <div class="session-head">
            <div class="session-line">
                <h1 tabindex="-1"><bdi>{dynamic(move || shown(&bridge.get().project).into_owned())}</bdi></h1>
                {dynamic(move || label.get().map(|label| view! { <span class="label"><bdi>{label}</bdi></span> }))}
                <div class="end"><Actions bridge=bridge inside=inside place=Place::Head /></div>
            </div>
            <div class="session-line session-facts">
                {dynamic(move || seen.with(pill))}
                {dynamic(move || if is_live.get() {
                    view! { <span><Age since=since /></span> }.into_any()
                } else {
                    view! { <span><When at=since /></span> }.into_any()
                })}
                <span class="badge">{kind.live()}</span> <Chips bridge=bridge />
                <span class="ids end">
                    {words::ID} " " <Copyable shown=id.short() full=id.as_str() what=words::ID />
                    {dynamic(move || session.get().map(|session| view! {
                        {words::REF} " " <Copyable shown=session.as_str() full=session.as_str() what=words::REF />
                    }))}
                    <span class="num">{dynamic(move || words::generation(generation.get()))}</span>
                </span>
            </div>
        </div>
    }
}

/// The cause of a bad end, and why Resume would not work.
#[component]
fn Explained(
    bridge: Signal<Arc<Instance>>,
    inside: Signal<Arc<Vec<WorkingSession>>>,
) -> impl IntoView {
    let page = page();
    let card = memo(move || {
        let bridge = bridge.get();
        let after = uptime(&bridge).map(|lived| said::after(&time::span(lived)));
        cause(&bridge).map(|cause| (cause, face(&bridge, &inside.get()), after))
    });
    let declined = memo(move || {
        let bridge = bridge.get();
        let sibling = page.store.live_sibling(&bridge);
        match offers(&bridge, sibling.as_deref()).resume {
            Offer::Refused(why) if card.with(Option::is_some) => Some(why),
            _ => None,
        }
    });
    view! {
        {dynamic(move || card.get().map(|(cause, face, after)| view! { <CauseCard cause=cause face=face after=after /> }))}
        {dynamic(move || declined.get().map(|why| view! {
            <section class="card decline tone-warn" data-testid="resume-declined">
                {glyph(crate::model::status::Glyph::Triangle)}
                <span class="says">{words::resume_declined(&why)}</span>
            </section>
        }))}
    }
}
