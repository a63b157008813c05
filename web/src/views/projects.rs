//! The project list: search, filters, order, and a row for every project.

use crate::api;
use crate::appear::enter;
use crate::browser;
use crate::focus;
use crate::model::past::LastUsed;
use crate::model::prefs::Prefs;
use crate::model::projects::{Query, Show, Sort};
use crate::nav::{Nav, nav};
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::icon;
use crate::parts::window::Windowed;
use crate::reactive::{derived, dynamic, effect, live, memo};
use crate::text::launch;
use crate::text::page::{nav as nav_words, projects as words};
use crate::views::act_button::ActButton;
use crate::views::bulk_trust::BulkTrust;
use crate::views::home::Loading;
use crate::views::new_project::NewButtons;
use crate::views::project_row::ProjectRow;
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::collections::HashSet;
use std::sync::Arc;
use svc_shared::status::TrustState;

/// Height of a row on wide screens, pixels.
const ROW_PX: usize = 56;
/// The same where density is compact.
const COMPACT_PX: usize = 44;
/// The same on tablets.
const SMALL_PX: usize = 64;
/// Height of a card with its gap on phones, pixels.
const CARD_PX: usize = 144;
/// Query member with the words searched for.
const SEARCH: &str = "q";
/// Query member with the order.
const SORT: &str = "sort";

/// What the address asks for. Tracked.
fn query(nav: Nav) -> Query {
    let show = Show::ALL
        .into_iter()
        .find(|show| show.query().is_some_and(|(name, value)| nav.member(name) == value));
    Query {
        search: nav.member(SEARCH),
        show: show.unwrap_or_default(),
        sort: Sort::parse(&nav.member(SORT)),
        favourites_first: false,
    }
}

/// The projects that are selected, and the last one that was.
#[derive(Clone, Copy)]
pub struct Chosen {
    names: RwSignal<HashSet<String>>,
    last: RwSignal<String>,
    listed: Memo<Vec<String>>,
}

impl Chosen {
    /// Whether a project is selected. Tracked.
    pub fn has(self, name: &str) -> bool {
        self.names.with(|names| names.contains(name))
    }

    /// Selects or deselects a project.
    ///
    /// `range` also selects all projects from the last one.
    pub fn toggle(self, name: &str, range: bool) {
        let ends = [self.last.get_untracked(), name.to_owned()];
        self.last.set(name.to_owned());
        let between = self.listed.with_untracked(|listed| {
            let place = |end: &String| listed.iter().position(|one| one == end);
            let (a, b) = (place(&ends[0])?, place(&ends[1])?);
            Some(listed.get(a.min(b)..=a.max(b))?.to_vec())
        });
        self.names.update(|names| match between.filter(|_| range) {
            Some(between) => names.extend(between),
            None if names.remove(name) => {}
            None => drop(names.insert(name.to_owned())),
        });
    }

    /// Selects nothing.
    pub fn clear(self) {
        self.names.set(HashSet::new());
    }

    /// What is selected, in the order of the list, whether or not it is listed now.
    pub fn names(self) -> Vec<String> {
        let mut names: Vec<String> = self.names.with(|names| names.iter().cloned().collect());
        names.sort_unstable();
        names
    }
}

/// Reads once when each project was last used.
///
/// Later uses are in the records. It waits for the list, because a launch needs nothing of it.
fn read_used() {
    let page = page();
    let read = move || {
        spawn_local(async move {
            // Without it the column tells what the records say.
            if let Ok(LastUsed(used)) = api::get("/api/projects/sortmeta").await {
                page.store.used.set(Arc::new(used));
            }
        });
    };
    effect(move || {
        if page.store.is_loaded.get() {
            browser::after_paint(read);
        }
    });
}

fn set_show(nav: Nav, show: Show) {
    let mut members: Vec<(&'static str, &str)> =
        Show::ALL.into_iter().filter_map(Show::query).map(|(name, _)| (name, "")).collect();
    members.extend(show.query());
    nav.set_query(&members, true);
}

fn label(show: Show) -> &'static str {
    match show {
        Show::All => words::ALL,
        Show::Live => words::LIVE,
        Show::Favourites => words::FAVOURITES,
        Show::Git => words::GIT,
        Show::Untrusted => words::UNTRUSTED,
    }
}

/// The view.
#[component]
pub fn Projects() -> impl IntoView {
    let page = page();
    let nav = nav();
    enter(nav_words::PROJECTS);
    let asked = memo(move || query(nav));
    let names = memo(move || page.store.list_projects(&asked.get()));
    let all = memo(move || page.store.count_projects());
    let row_px =
        derived(move || match (page.is_phone.get(), page.is_small.get(), page.is_compact.get()) {
            (true, ..) => CARD_PX,
            (false, true, _) => SMALL_PX,
            (false, false, true) => COMPACT_PX,
            (false, false, false) => ROW_PX,
        });
    let chosen = Chosen {
        names: RwSignal::new(HashSet::new()),
        last: RwSignal::new(String::new()),
        listed: names,
    };
    provide_context(chosen);
    read_used();
    view! {
        {dynamic(move || if page.store.is_loaded.get() {
            view! {
                <Toolbar asked=asked />
                <Selection chosen=chosen />
                <div>
                    {dynamic(move || if names.with(Vec::is_empty) {
                        view! { <NothingMatches all=all /> }.into_any()
                    } else {
                        view! {
                            <div class="card list">
                                <div class="projects-head" aria-hidden="true">
                                    <span></span><span></span><span>{words::PROJECT}</span><span>{words::SESSIONS}</span><span>{words::LAST_USED}</span><span></span>
                                </div>
                                <Windowed
                                    items=names
                                    row_px=row_px
                                    row=project_row
                                    class="projects"
                                    label=nav_words::PROJECTS
                                />
                            </div>
                        }.into_any()
                    })}
                    <div class="list-foot below num">
                        <p role="status">{dynamic(move || words::counted(names.with(Vec::len), all.get()))}</p>
                        {dynamic(move || page.prefs.with(Prefs::are_letters_on).then(hints))}
                    </div>
                </div>
            }.into_any()
        } else {
            view! { <Loading /> }.into_any()
        })}
    }
}

/// The keys of the list, for those who have a keyboard.
fn hints() -> AnyView {
    let page = page();
    let hint = |(letter, does): (&'static str, &'static str)| {
        let key = page.prefs.with(|prefs| prefs.key_for(letter).to_owned());
        view! { <span><kbd>{key}</kbd> {does}</span> }.into_any()
    };
    let hints: Vec<AnyView> = words::KEYS.into_iter().map(hint).collect();
    view! { <p class="hints only-wide" aria-hidden="true">{hints}</p> }.into_any()
}

/// What can be done with what is selected; nothing while nothing is.
#[component]
fn Selection(chosen: Chosen) -> impl IntoView {
    let page = page();
    let is_open = RwSignal::new(false);
    let untrusted = memo(move || {
        let mut names = chosen.names();
        names.retain(|name| {
            let record = page.store.project(name).map(|record| record.get());
            record.is_some_and(|project| !project.trust_state.is(&TrustState::Trusted))
        });
        names
    });
    let reason =
        derived(move || untrusted.with(Vec::is_empty).then(|| words::ALL_TRUSTED.to_owned()));
    let open = Callback::new(move |()| is_open.set(true));
    let close = Callback::new(move |()| is_open.set(false));
    let count = memo(move || chosen.names().len());
    let deselect = move |_| {
        chosen.clear();
        focus::rescue("h1");
    };
    view! {
        {dynamic(move || (count.get() > 0).then(|| view! {
            <div class="strip selection tone-info" role="group" aria-label=words::SELECTED data-testid="selection">
                <b role="status">{dynamic(move || words::selected(count.get()))}</b>
                <span class="strip-end project-actions">
                    <button type="button" class=ButtonStyle::Ghost.class() data-testid="deselect" on:click=deselect>
                        {words::DESELECT}
                    </button>
                    <ActButton label=launch::TRUST_DOTS name=launch::TRUST_DOTS.to_owned() on_act=open reason=reason testid="trust-selected" />
                </span>
            </div>
        }))}
        {dynamic(move || is_open.get().then(|| view! {
            <BulkTrust names=untrusted.get_untracked() on_close=close />
        }))}
    }
}

fn project_row(name: String) -> AnyView {
    view! { <ProjectRow name=name /> }.into_any()
}

#[component]
fn Toolbar(asked: Memo<Query>) -> impl IntoView {
    let page = page();
    let nav = nav();
    let chip = move |show: Show| {
        let count = memo(move || page.store.count_shown(show));
        let pressed = derived(move || (asked.get().show == show).to_string());
        view! {
            <button
                type="button"
                class="filter"
                aria-pressed=pressed
                data-testid="filter"
                on:click=move |_| set_show(nav, show)
            >
                {label(show)} <span class="num">{count}</span>
            </button>
        }
    };
    let chips = Show::ALL.into_iter().map(chip).collect_view();
    let sorts = Sort::ALL
        .map(|sort| {
            let label = match sort {
                Sort::Attention => words::BY_ATTENTION,
                Sort::Name => words::BY_NAME,
                Sort::Used => words::BY_USED,
                Sort::Live => words::BY_LIVE,
            };
            let chosen = derived(move || asked.get().sort == sort);
            view! { <option value=sort.word() selected=chosen>{label}</option> }
        })
        .collect_view();
    // An empty list has them in its middle.
    let has_any = memo(move || page.store.count_projects() > 0);
    let sort = move |event| {
        let word = event_target_value(&event);
        let word = if word == Sort::default().word() { String::new() } else { word };
        nav.set_query(&[(SORT, &word)], true);
    };
    view! {
        <div class="toolbar" role="search">
            <div class="field-box">
                {icon("search", 16)}
                <input
                    type="search"
                    placeholder=words::SEARCH
                    aria-label=words::SEARCH
                    autocomplete="off"
                    data-testid="search"
                    prop:value=live(move || asked.get().search)
                    on:input=move |event| nav.set_query(&[(SEARCH, &event_target_value(&event))], true)
                />
            </div>
            <div class="filters" role="group" aria-label=words::FILTERS>{chips}</div>
            {dynamic(move || has_any.get().then(|| view! { <NewButtons /> }))}
            <label class="sort end">
                {icon("sort", 16)} {words::SORT}
                <span class="select">
                    <select data-testid="sort" on:change=sort>{sorts}</select>
                    {icon("chevron-down", 16)}
                </span>
            </label>
        </div>
    }
}

#[component]
fn NothingMatches(all: Memo<usize>) -> impl IntoView {
    let nav = nav();
    let clear = move |_| {
        set_show(nav, Show::All);
        nav.set_query(&[(SEARCH, "")], true);
    };
    view! {
        {dynamic(move || if all.get() == 0 {
            view! { <super::welcome::Welcome /> }.into_any()
        } else {
            view! {
                <div class="card empty" data-testid="nothing-matches">
                    <p>{words::NOTHING_MATCHES}</p>
                    <button type="button" class=ButtonStyle::Secondary.class() on:click=clear>{words::CLEAR}</button>
                </div>
            }.into_any()
        })}
    }
}
