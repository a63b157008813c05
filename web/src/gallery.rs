//! The gallery: every component in every state and theme.
//!
//! It is drawn by the code of the page, but built as a module of its own, which the first load
//! never fetches. `gallery/service.js` stands in for the service.

mod atoms;
mod parts;

use crate::app;
use crate::browser;
use crate::model::route::Route;
use crate::nav::Nav;
use crate::page::Page;
use crate::reactive::effect;
use crate::shell::Shell;
use crate::text::gallery as words;
use crate::text::past;
use crate::views::{
    activity::Activity, doctor::Readiness, external::External, home::Home, jobs::Jobs,
    projects::Projects, session::Session, welcome::Welcome,
};
use leptos::prelude::*;

/// Mounts the gallery.
pub fn show() {
    app::start();
    mount_to_body(|| view! { <Gallery /> });
}

#[component]
fn Gallery() -> impl IntoView {
    let page = Page::new();
    provide_context(page);
    let nav = Nav::start();
    provide_context(nav);
    page.live.start();
    effect(move || {
        // The palette leads to places of the page, which are in the other module.
        if nav.route.get() != Route::Missing {
            let _ = window().location().reload(); // a choice can be repeated
        }
    });
    effect(move || {
        // Each view names itself when its records are there.
        if page.view.get() != words::TITLE {
            page.view.set(words::TITLE.to_owned());
        }
    });
    view! {
        <Shell>
            <p class="muted">{words::INTRO}</p>
            <div class="toolbar">
                {choices(nav, words::THEME, "theme", &words::THEMES)}
                {choices(nav, words::STATE, "state", &words::STATES)}
            </div>
            <div class="sheets" data-testid="gallery">{sheets()}</div>
        </Shell>
    }
}

/// The sheets, each with its name.
fn sheets() -> Vec<AnyView> {
    let live = "3a375c2e-0a3b-4c5d-8e9f-001122334455".to_owned();
    vec![
        sheet(words::BUTTONS, atoms::buttons()),
        sheet(words::BADGES, atoms::badges()),
        sheet(words::FIELDS, atoms::fields()),
        sheet(words::NOTICES, parts::notices()),
        sheet(words::DIALOGS, parts::dialogs()),
        sheet(words::ROWS, view! { <Home /> }.into_any()),
        sheet(words::JOBS, view! { <Jobs open="5e72b459".to_owned() /> }.into_any()),
        sheet(words::EXTERNAL, view! { <External /> }.into_any()),
        sheet(words::PROJECTS, view! { <Projects /> }.into_any()),
        sheet(words::CAUSE, parts::cause()),
        sheet(words::SESSION, view! { <Session reference=live /> }.into_any()),
        sheet(crate::text::terminal::LABEL, parts::terminals()),
        sheet(past::TITLE, view! { <Activity /> }.into_any()),
        sheet(words::READINESS, view! { <Readiness /> }.into_any()),
        sheet(words::FIRST, view! { <Welcome /> }.into_any()),
        sheet(words::TOKENS, atoms::tokens()),
    ]
}

fn sheet(title: &'static str, body: AnyView) -> AnyView {
    let name = title.to_lowercase().replace(' ', "-");
    view! {
        <section class="sheet" aria-label=title data-sheet=name>
            <h2 class="sheet-title">{title}</h2>
            {body}
        </section>
    }
    .into_any()
}

/// Links that open this page with another value of one query member.
///
/// The page is loaded again, because the state is chosen before the module starts.
fn choices(
    nav: Nav,
    label: &'static str,
    member: &'static str,
    all: &[(&'static str, &'static str)],
) -> AnyView {
    let now = untrack(|| nav.member(member));
    let (other, kept) = match member {
        "theme" => ("state", untrack(|| nav.member("state"))),
        _ => ("theme", untrack(|| nav.member("theme"))),
    };
    let links: Vec<_> = all
        .iter()
        .map(|(word, label)| {
            let href = format!("?{member}={word}&{other}={kept}");
            let here = (now == *word).then_some("true");
            view! { <a class="filter" href=href aria-current=here>{*label}</a> }
        })
        .collect();
    view! { <span class="filters" role="group" aria-label=label>{links}</span> }.into_any()
}

/// Moves the focus back to the heading.
///
/// Some components take the focus when they appear.
fn back_to_top() {
    browser::after_paint(|| {
        browser::after_paint(|| {
            browser::focus("h1");
        });
    });
}
