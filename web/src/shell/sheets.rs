//! Dialogs that belong to no single view, such as the link as a picture.

use crate::act::Target;
use crate::browser;
use crate::model::shown::shown;
use crate::page::{Sheet, page};
use crate::parts::dialog::Dialog;
use crate::parts::icon::icon;
use crate::prefs;
use crate::reactive::dynamic;
use crate::shell::keys::Keys;
use crate::shell::palette::Palette;
use crate::shell::restart::RestartSheet;
use crate::text::page::{nav as words, qr};
use crate::text::{access, job::external, past, ready, settings, spending};
use crate::views::agent_sign_in::AgentSignIn;
use crate::views::bulk::BulkSheet;
use crate::views::new_project::NewProject;
use crate::views::welcome;
use leptos::prelude::*;
use svc_shared::paths;

/// Shows the sheet that is wanted.
#[component]
pub fn Sheets() -> impl IntoView {
    let page = page();
    view! {
        {dynamic(move || page.sheet.get().map(|sheet| match sheet {
            Sheet::More => view! { <More /> }.into_any(),
            Sheet::Palette(typed) => view! { <Palette typed=typed /> }.into_any(),
            Sheet::Keys => view! { <Keys /> }.into_any(),
            Sheet::Bulk(verb) => view! { <BulkSheet verb=verb /> }.into_any(),
            Sheet::New(making) => view! { <NewProject making=making /> }.into_any(),
            Sheet::AgentSignIn => view! { <AgentSignIn /> }.into_any(),
            Sheet::Restart => view! { <RestartSheet /> }.into_any(),
            Sheet::Qr(target) => view! { <Qr target=target /> }.into_any(),
        }))}
    }
}

#[component]
fn More() -> impl IntoView {
    let page = page();
    let close = Callback::new(move |()| page.sheet.set(None));
    let places = [
        ("/ui/jobs", "layers", words::BACKGROUND),
        ("/ui/external", "open", external::TITLE),
        ("/ui/doctor", "check", ready::TITLE),
        ("/ui/activity", "activity", past::TITLE),
        ("/ui/tokens", "shield", access::TITLE),
        ("/ui/usage", "bars", spending::TITLE),
        ("/ui/notifications", "bell", crate::text::notifications::TITLE),
        ("/ui/settings", "sliders", settings::TITLE),
        ("/ui/about", "info", words::ABOUT),
    ]
    .map(|(path, symbol, label)| {
        view! {
            <a class="menu-item" href=browser::href(path) on:click=move |_| close.run(())>
                {icon(symbol, 20)} {label}
            </a>
        }
    });
    let can_sign_out =
        page.live.basics.with_untracked(|b| b.as_ref().is_some_and(|b| b.can_sign_out));
    let sign_out = can_sign_out.then(|| view! {
        <a class="menu-item wide" href=browser::href(paths::LOGOUT) data-testid="sign-out" on:click=move |_| prefs::forget()>{crate::text::page::SIGN_OUT}</a>
    });
    view! {
        <Dialog title=words::MORE.to_owned() on_close=close testid="more">
            <nav class="dialog-body" aria-label=words::MORE>{places.map(|place| view! { <div class="wide">{place}</div> })} {sign_out}</nav>
        </Dialog>
    }
}

#[component]
fn Qr(target: Target) -> impl IntoView {
    let page = page();
    let title = qr::title(&shown(&target.project));
    let source = browser::href(&paths::instance_action(&target.id, "qr"));
    welcome::opened(page);
    let is_missing = RwSignal::new(false);
    let close = Callback::new(move |()| page.sheet.set(None));
    // As much a credential as the link: it is not left lying in a tab nobody looks at.
    let hidden = window_event_listener_untyped("visibilitychange", move |_| {
        if browser::is_hidden() {
            close.run(());
        }
    });
    on_cleanup(move || hidden.remove());
    let alt = title.clone();
    let is_demo = page.live.basics.with_untracked(|b| b.as_ref().is_some_and(|b| b.demo));
    view! {
        <Dialog title=title on_close=close testid="qr">
            <div class="dialog-body">
                {dynamic(move || if is_demo {
                    view! { <p class="wide">{crate::text::page::open::DEMO}</p> }.into_any()
                } else if is_missing.get() {
                    view! { <p class="wide" role="alert">{qr::NONE}</p> }.into_any()
                } else {
                    view! {
                        <img class="wide qr" src=source.clone() alt=alt.clone() on:error=move |_| is_missing.set(true) />
                        <p class="wide muted">{qr::WARNING}</p>
                    }.into_any()
                })}
            </div>
        </Dialog>
    }
}
