//! The page as a whole: what every view shares, and which view an address shows.

use crate::act::{Pending, TrustGate};
use crate::browser;
use crate::clock::Clock;
use crate::live::Live;
use crate::say::Say;
use crate::shell::Shell;
use crate::store::Store;
use crate::views::{about::About, home::Home, missing::Missing, open::Open, projects::Projects};
use crate::views::{launch_link::LaunchLink, session::Session};
use crate::{crash, focus};
use leptos::prelude::*;
use leptos_router::components::{FlatRoutes, Route, Router};
use leptos_router::path;

/// Handles to everything shared; copied freely.
#[derive(Clone, Copy)]
pub struct Page {
    /// Records.
    pub store: Store,
    /// Connection.
    pub live: Live,
    /// Messages.
    pub say: Say,
    /// Time.
    pub clock: Clock,
    /// Requests on their way.
    pub pending: Pending,
    /// Trust that is being asked for.
    pub trust_gate: RwSignal<Option<TrustGate>>,
    /// Name of the view, for the tab's title.
    pub view: RwSignal<String>,
    /// The layout is that of a phone.
    pub is_phone: ReadSignal<bool>,
}

/// The shared handles.
pub fn page() -> Page {
    expect_context()
}

/// Mounts the page.
pub fn run() {
    crash::install();
    if let Some(root) = document().document_element() {
        // Part of the module's bytes, and so of its name: see build.rs.
        let _ = root.set_attribute("data-build", env!("WEB_BUILD")); // a fixed, legal name
    }
    mount_to_body(App);
    if let Some(skeleton) = document().get_element_by_id("boot") {
        skeleton.remove();
    }
}

#[component]
fn App() -> impl IntoView {
    let store = Store::new();
    let say = Say::new();
    let clock = Clock::start();
    let page = Page {
        store,
        live: Live::new(store, say, clock),
        say,
        clock,
        pending: Pending::new(),
        trust_gate: RwSignal::new(None),
        view: RwSignal::new(String::new()),
        is_phone: browser::matches("(max-width: 639px)"),
    };
    provide_context(page);
    focus::watch();
    page.live.start();
    view! {
        <Router base=browser::root()>
            <Shell>
                <FlatRoutes fallback=Missing>
                    <Route path=path!("/") view=Home />
                    <Route path=path!("/ui") view=Home />
                    <Route path=path!("/ui/projects") view=Projects />
                    <Route path=path!("/ui/projects/:name/launch") view=LaunchLink />
                    <Route path=path!("/ui/s/:id") view=Session />
                    <Route path=path!("/ui/s/:id/open") view=Open />
                    <Route path=path!("/ui/about") view=About />
                </FlatRoutes>
            </Shell>
        </Router>
    }
}
