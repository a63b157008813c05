//! The handles that every view shares.

use crate::act::{Pending, Target, TrustGate, Write};
use crate::browser;
use crate::clock::Clock;
use crate::drafts::Drafts;
use crate::live::Live;
use crate::model::bulk::Verb;
use crate::model::new_project::Making;
use crate::model::prefs::DENSITY;
use crate::prefs::Preferences;
use crate::reactive::memo;
use crate::ready::Ready;
use crate::restarting::Restarting;
use crate::restores::Restores;
use crate::say::Say;
use crate::store::Store;
use leptos::prelude::*;

/// What is open over the views.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sheet {
    /// The places that have no room in the bar of a phone.
    More,
    /// Everything that can be reached or done, with what is typed already.
    Palette(String),
    /// The list of keys.
    Keys,
    /// The question before something is done to every selected row.
    Bulk(Verb),
    /// The forms that make a project, or a clone.
    New(Making),
    /// The sign-in of the agent.
    AgentSignIn,
    /// The restart of the service.
    Restart,
    /// The link of a bridge as a picture.
    Qr(Target),
}

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
    /// Messages that are not sent yet.
    pub drafts: Drafts,
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
    /// What a restart of the machine ended.
    pub restores: Restores,
    /// The restart of the service that was asked for here.
    pub restarting: Restarting,
    /// Name of the view, for the tab's title.
    pub view: RwSignal<String>,
    /// What a person chose.
    pub prefs: Preferences,
    /// Rows are closer together: chosen, and a mouse is used on a wide screen.
    pub is_compact: Memo<bool>,
    /// The layout is that of a phone.
    pub is_phone: ReadSignal<bool>,
    /// The layout is that of a tablet or a phone, for fingers.
    pub is_small: ReadSignal<bool>,
    /// An ended row has no room for all of it in one line.
    pub is_narrow: ReadSignal<bool>,
}

impl Page {
    /// Everything at its beginning; nothing is connected yet.
    pub fn new() -> Self {
        let store = Store::new();
        let say = Say::new();
        let clock = Clock::start();
        let prefs = Preferences::new(say);
        let has_mouse = browser::matches("(min-width: 1024px) and (not (pointer: coarse))");
        Self {
            store,
            live: Live::new(store, say, clock),
            say,
            clock,
            pending: Pending::new(),
            drafts: Drafts::new(),
            later: RwSignal::new(Vec::new()),
            is_selecting: memo(move || !store.selected.with(Vec::is_empty)),
            trust_gate: RwSignal::new(None),
            sheet: RwSignal::new(None),
            ready: Ready::new(),
            restores: Restores::new(),
            restarting: Restarting::new(),
            view: RwSignal::new(String::new()),
            prefs,
            is_compact: memo(move || {
                has_mouse.get() && prefs.with(|prefs| prefs.word(DENSITY) == "compact")
            }),
            is_phone: browser::matches("(max-width: 639px)"),
            is_small: browser::matches("(max-width: 1023px)"),
            is_narrow: browser::matches("(max-width: 1439px)"),
        }
    }
}

/// The shared handles.
pub fn page() -> Page {
    expect_context()
}
