//! The entry of the page, and which view an address shows.

use crate::browser;
use crate::lazy::{Built, Part};
use crate::model::route::Route;
use crate::nav::Nav;
use crate::page::{Page, Sheet};
use crate::reactive::{derived, dynamic, effect};
use crate::shell::{Shell, keys};
use crate::unsaved;
use crate::views::inbox::Inbox;
use crate::views::session::Session;
use crate::views::settings::Settings;
use crate::views::{
    about::About, access::DevicesAndTokens, activity::Activity, agent_config::AgentConfig,
    conversation::ConversationView, doctor::Readiness, external::External, home::Home, jobs::Jobs,
    maintenance::Maintenance, missing::Missing, notifications::Notifications, open::Open,
    project::ProjectPage, projects::Projects, restore::Restore, spending::Spending,
};
use crate::{crash, focus, push, whole};
use leptos::prelude::*;
use leptos::wasm_split::wasm_split;
use std::time::Duration;

/// How long after the first view the other modules are fetched.
const MODULES_AFTER: Duration = Duration::from_secs(2);

/// Mounts the page.
pub fn run() {
    start();
    mount_to_body(|| view! { <App /> });
    if let Some(skeleton) = document().get_element_by_id("boot") {
        skeleton.remove();
    }
}

/// What every module does first.
pub fn start() {
    crash::install();
    if let Some(root) = document().document_element() {
        // Part of the module's bytes, and so of its name: see build.rs.
        let _ = root.set_attribute("data-build", env!("WEB_BUILD")); // a fixed, legal name
    }
}

#[component]
fn App() -> impl IntoView {
    let page = Page::new();
    provide_context(page);
    focus::watch();
    whole::watch();
    page.live.start();
    let nav = Nav::start();
    provide_context(nav);
    keys::watch(page, nav);
    effect(move || {
        if page.store.is_loaded.get() && page.ready.found.with_untracked(Option::is_none) {
            // What was waited for is shown first.
            browser::after_paint(move || page.ready.ask());
        }
    });
    effect(move || {
        if !page.live.is_offline.get() {
            page.send_later();
            page.prefs.keep_on();
        }
    });
    browser::on_window("pagehide", move |_| page.say.leave());
    effect(move || {
        if let Some(basics) = page.live.basics.get() {
            page.prefs.take(basics.prefs.clone(), &basics.timezone);
        }
    });
    effect(move || {
        // Another start of the service has answered, be it of another version.
        page.live.starts.track();
        if page.restarting.settle(page)
            && page.sheet.with_untracked(|sheet| *sheet == Some(Sheet::Restart))
        {
            page.sheet.set(None);
        }
    });
    effect(move || {
        page.live.returns.track();
        page.restarting.did_not_begin();
    });
    unsaved::listen();
    let push_enabled = derived(move || {
        page.live.basics.with(|all| all.as_ref().map(|all| all.notifications.push_enabled))
    });
    effect(move || {
        if let Some(is_offered) = push_enabled.get() {
            browser::after_paint(move || push::settle(is_offered));
        }
    });
    let modules = Modules::new();
    effect(move || {
        if page.store.is_loaded.get() {
            // What was opened first comes first; then nothing that is opened has to wait.
            set_timeout(move || modules.fetch(), MODULES_AFTER);
        }
    });
    effect(move || {
        if !page.live.is_offline.get() {
            modules.retry();
        }
    });
    provide_context(modules);
    view! {
        <Shell>
            {dynamic(move || match nav.route.get() {
                Route::Home => view! { <Home /> }.into_any(),
                Route::AgentSignIn => {
                    // Not from within a view that reads the address.
                    browser::after_paint(move || page.sheet.set(Some(Sheet::AgentSignIn)));
                    view! { <Home /> }.into_any()
                }
                Route::Projects => view! { <Projects /> }.into_any(),
                Route::Launch(project) => {
                    // Not from within a view that reads the address.
                    browser::after_paint(move || nav.to_launch(&project));
                    ().into_any()
                }
                Route::Request(session, request) => {
                    // Not from within a view that reads the address.
                    browser::after_paint(move || nav.to_request(&session, &request));
                    ().into_any()
                }
                Route::Missing => view! { <Missing /> }.into_any(),
                route @ (Route::Project(_)
                | Route::Conversation(..)
                | Route::Session(_)
                | Route::Open(_)
                | Route::Jobs(_)
                | Route::External
                | Route::Restore
                | Route::Inbox) => modules.sessions.show(move || Box::pin(of_sessions(route.clone()))),
                route @ (Route::Usage
                | Route::Activity
                | Route::Doctor
                | Route::Maintenance
                | Route::Tokens
                | Route::Notifications
                | Route::Settings
                | Route::AgentConfig(_)
                | Route::About) => modules.owner.show(move || Box::pin(of_the_owner(route.clone()))),
            })}
        </Shell>
    }
}

#[wasm_split(sessions, wasm_split_path = ::leptos::wasm_split, fallible, preload(fetch_sessions))]
fn of_sessions(route: Route) -> Built {
    Ok(match route {
        Route::Project(name) => view! { <ProjectPage name=name /> }.into_any(),
        Route::Conversation(project, conversation) => {
            view! { <ConversationView project=project conversation=conversation /> }.into_any()
        }
        Route::Session(id) => view! { <Session reference=id /> }.into_any(),
        Route::Open(id) => view! { <Open id=id /> }.into_any(),
        Route::Jobs(id) => view! { <Jobs open=id.unwrap_or_default() /> }.into_any(),
        Route::External => view! { <External /> }.into_any(),
        Route::Restore => view! { <Restore /> }.into_any(),
        Route::Inbox => view! { <Inbox /> }.into_any(),
        _ => view! { <Missing /> }.into_any(),
    })
}

#[wasm_split(owner, wasm_split_path = ::leptos::wasm_split, fallible, preload(fetch_owner))]
fn of_the_owner(route: Route) -> Built {
    Ok(match route {
        Route::Usage => view! { <Spending /> }.into_any(),
        Route::Activity => view! { <Activity /> }.into_any(),
        Route::Doctor => view! { <Readiness /> }.into_any(),
        Route::Maintenance => view! { <Maintenance /> }.into_any(),
        Route::Tokens => view! { <DevicesAndTokens /> }.into_any(),
        Route::Notifications => view! { <Notifications /> }.into_any(),
        Route::Settings => view! { <Settings /> }.into_any(),
        Route::AgentConfig(surface) => view! { <AgentConfig surface=surface /> }.into_any(),
        Route::About => view! { <About /> }.into_any(),
        _ => view! { <Missing /> }.into_any(),
    })
}

/// The modules of the views that are not in the page's own.
#[derive(Clone, Copy)]
struct Modules {
    /// Sessions, projects and what agents ask.
    sessions: Part,
    /// What only the owner of the machine sets up and looks up.
    owner: Part,
}

impl Modules {
    fn new() -> Self {
        Self {
            sessions: Part::new(|| Box::pin(fetch_sessions())),
            owner: Part::new(|| Box::pin(fetch_owner())),
        }
    }

    fn fetch(self) {
        self.sessions.fetch();
        self.owner.fetch();
    }

    fn retry(self) {
        self.sessions.retry();
        self.owner.retry();
    }
}
