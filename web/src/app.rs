//! The page as a whole: what every view shares, and which view an address shows.

use crate::act::{Pending, TrustGate, Write};
use crate::browser;
use crate::clock::Clock;
use crate::live::Live;
use crate::model::prefs::DENSITY;
use crate::model::route::Route;
use crate::prefs::Preferences;
use crate::reactive::{dynamic, effect, memo};
use crate::ready::Ready;
use crate::say::Say;
use crate::shell::nav::Nav;
use crate::shell::sheets::Sheet;
use crate::shell::{Shell, keys};
use crate::store::Store;
use crate::views::session::Session;
use crate::views::{
    about::About, activity::Activity, doctor::Readiness, external::External, home::Home,
    jobs::Jobs, missing::Missing, open::Open, project::ProjectPage, projects::Projects,
};
use crate::{crash, focus};
use leptos::prelude::*;

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
    /// Removals that wait for the service to be back.
    pub later: RwSignal<Vec<Write>>,
    /// Some rows are selected.
    pub is_selecting: Memo<bool>,
    /// Trust that is being asked for.
    pub trust_gate: RwSignal<Option<TrustGate>>,
    /// What is open over the views.
    pub sheet: RwSignal<Option<Sheet>>,
    /// Readiness of the machine.
    pub ready: Ready,
    /// Name of the view, for the tab's title.
    pub view: RwSignal<String>,
    /// What a person chose.
    pub prefs: Preferences,
    /// Rows are closer together: chosen, and a mouse is used on a wide screen.
    pub is_compact: Memo<bool>,
    /// The layout is that of a phone.
    pub is_phone: ReadSignal<bool>,
}

impl Page {
    /// Everything at its beginning; nothing is connected yet.
    pub fn new() -> Self {
        let store = Store::new();
        let say = Say::new();
        let clock = Clock::start();
        let prefs = Preferences::new(say);
        let has_mouse = browser::matches("(min-width: 640px) and (not (pointer: coarse))");
        Self {
            store,
            live: Live::new(store, say, clock),
            say,
            clock,
            pending: Pending::new(),
            later: RwSignal::new(Vec::new()),
            is_selecting: memo(move || !store.selected.with(Vec::is_empty)),
            trust_gate: RwSignal::new(None),
            sheet: RwSignal::new(None),
            ready: Ready::new(),
            view: RwSignal::new(String::new()),
            prefs,
            is_compact: memo(move || {
                has_mouse.get() && prefs.with(|prefs| prefs.word(DENSITY) == "compact")
            }),
            is_phone: browser::matches("(max-width: 639px)"),
        }
    }
}

/// The shared handles.
pub fn page() -> Page {
    expect_context()
}

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
    view! {
        <Shell>
            {dynamic(move || match nav.route.get() {
                Route::Home => view! { <Home /> }.into_any(),
                Route::Projects => view! { <Projects /> }.into_any(),
                Route::Project(name) => view! { <ProjectPage name=name /> }.into_any(),
                Route::Launch(project) => {
                    // Not from within a view that reads the address.
                    browser::after_paint(move || nav.to_launch(&project));
                    ().into_any()
                }
                Route::Session(id) => view! { <Session reference=id /> }.into_any(),
                Route::Open(id) => view! { <Open id=id /> }.into_any(),
                Route::Jobs(id) => view! { <Jobs open=id.unwrap_or_default() /> }.into_any(),
                Route::External => view! { <External /> }.into_any(),
                Route::Activity => view! { <Activity /> }.into_any(),
                Route::Doctor => view! { <Readiness /> }.into_any(),
                Route::About => view! { <About /> }.into_any(),
                Route::Missing => view! { <Missing /> }.into_any(),
            })}
        </Shell>
    }
}
