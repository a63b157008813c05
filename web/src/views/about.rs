//! About: which service this is, and what it found on this machine.

use crate::appear::enter;
use crate::browser;
use crate::model::time;
use crate::page::{Sheet, page};
use crate::parts::button::ButtonStyle;
use crate::reactive::{dynamic, memo};
use crate::text::page::{about as words, nav};
use crate::text::restarting;
use crate::views::home::Loading;
use crate::views::prefs::preferences;
use leptos::prelude::*;

/// The view.
#[component]
pub fn About() -> impl IntoView {
    let page = page();
    enter(nav::ABOUT);
    let agent = move || {
        page.store.health.with(|health| match health {
            None => words::UNKNOWN.to_owned(),
            Some(health) if !health.claude_ok => words::NOT_FOUND.to_owned(),
            Some(health) => {
                health.claude_version.clone().unwrap_or_else(|| words::UNKNOWN.to_owned())
            }
        })
    };
    let sign_in = move || {
        page.store.health.with(|health| match health {
            None => words::UNKNOWN.to_owned(),
            Some(health) if !health.claude_login_ok => words::NOT_SIGNED_IN.to_owned(),
            Some(health) => {
                health.claude_login_method.clone().unwrap_or_else(|| words::SIGNED_IN.to_owned())
            }
        })
    };
    let is_known = memo(move || page.live.basics.with(Option::is_some));
    view! {
        {dynamic(move || match page.live.basics.get() {
            None => view! { <Loading /> }.into_any(),
            Some(about) => {
                let cap = about.max_bridges.map_or_else(|| words::NO_CAP.to_owned(), |n| n.to_string());
                let rows = [
                    (words::VERSION, about.version.clone()),
                    (words::BUILD, about.build.clone()),
                    (words::HOST, about.hostname.clone()),
                    (words::ROOT, about.projects_root.clone()),
                    (words::AGENT, agent()),
                    (words::SIGN_IN, sign_in()),
                    (words::GRACE, time::limit(about.grace_ms)),
                    (words::CAP, cap),
                    (words::LICENCE, words::LICENCE_TEXT.to_owned()),
                ];
                let rows = rows
                    .into_iter()
                    .map(|(name, value)| view! { <dt>{name}</dt> <dd><bdi>{value}</bdi></dd> })
                    .collect_view();
                view! {
                    <dl class="card details" data-testid="about">{rows}</dl>
                    <p><a href=browser::href("/ui/tokens") data-testid="to-tokens">{crate::text::access::TITLE}</a></p>
                    <p><a href=browser::href("/ui/maintenance") data-testid="to-maintenance">{crate::text::maintenance::TITLE}</a></p>
                    {about.can_restart.then(|| view! {
                        <p><button
                            type="button" class=ButtonStyle::Secondary.class() data-testid="about-restart"
                            on:click=move |_| page.sheet.set(Some(Sheet::Restart))
                        >{restarting::TITLE}"…"</button></p>
                    })}
                    // Another module: the page is left for it.
                    <p><a href=browser::href("/ui/about/components") target="_self" data-testid="components">{words::COMPONENTS}</a></p>
                }
                .into_any()
            }
        })}
        {dynamic(move || is_known.get().then(preferences))}
    }
}
