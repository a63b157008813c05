//! The project list: search, filters, order, and a row for every project.

use crate::app::page;
use crate::dom::prelude::*;
use crate::model::projects::{Query, Show, Sort};
use crate::parts::button::Look;
use crate::parts::icon::icon;
use crate::parts::reactive::{Cached, derived, dynamic, live, memo};
use crate::parts::window::Windowed;
use crate::shell::nav::{Nav, enter, nav};
use crate::text::page::{nav as nav_words, projects as words};
use crate::views::home::Loading;
use crate::views::project_row::ProjectRow;

/// Height of a row on wide screens, pixels.
const ROW_PX: usize = 56;
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
    }
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
    let row_px = derived(move || if page.is_phone.get() { CARD_PX } else { ROW_PX });
    view! {
        {dynamic(move || if page.store.is_loaded.get() {
            view! {
                <Toolbar asked=asked />
                <div>
                    {dynamic(move || if names.with(Vec::is_empty) {
                        view! { <NothingMatches all=all /> }.into_any()
                    } else {
                        view! {
                            <div class="card list">
                                <div class="projects-head" aria-hidden="true">
                                    <span></span><span>{words::PROJECT}</span><span>{words::SESSIONS}</span><span></span>
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
                    <p class="below num" role="status">{dynamic(move || words::counted(names.with(Vec::len), all.get()))}</p>
                </div>
            }.into_any()
        } else {
            view! { <Loading /> }.into_any()
        })}
    }
}

fn project_row(name: String) -> AnyView {
    view! { <ProjectRow name=name /> }.into_any()
}

#[component]
fn Toolbar(asked: Cached<Query>) -> impl IntoView {
    let page = page();
    let nav = nav();
    let chip = move |show: Show| {
        let count =
            memo(move || page.store.list_projects(&Query { show, ..Query::default() }).len());
        let pressed = derived(move || (asked.get().show == show).to_string());
        view! {
            <button
                type="button"
                class="filter"
                aria-pressed=pressed
                data-testid="filter"
                on:click=move |_| set_show(nav, show)
            >
                {label(show)} <span class="num">{count.live()}</span>
            </button>
        }
    };
    let chips = Show::ALL.into_iter().map(chip).collect_view();
    let sorts = [(Sort::Attention, words::BY_ATTENTION), (Sort::Name, words::BY_NAME)]
        .map(|(sort, label)| {
            let chosen = derived(move || asked.get().sort == sort);
            view! { <option value=sort.word() selected=chosen>{label}</option> }
        })
        .collect_view();
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
fn NothingMatches(all: Cached<usize>) -> impl IntoView {
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
                    <button type="button" class=Look::Secondary.class() on:click=clear>{words::CLEAR}</button>
                </div>
            }.into_any()
        })}
    }
}
