//! Home: rows that need the user, live rows, ended rows, projects.

use crate::appear::enter;
use crate::browser;
use crate::model::job::Group;
use crate::model::launch::Choice;
use crate::model::projects::{Query, Sort};
use crate::model::sections::{Only, Section};
use crate::model::shown::shown;
use crate::model::status::Tone;
use crate::model::stream::SKEW_MS;
use crate::model::time;
use crate::nav::nav;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::{icon, symbol};
use crate::reactive::{dynamic, live, memo};
use crate::store::Store;
use crate::text::agent_sign_in;
use crate::text::job::{self as job_words, external};
use crate::text::launch as launch_words;
use crate::text::page::{home as words, nav as nav_words};
use crate::text::planned as planned_words;
use crate::text::ready;
use crate::text::session::named;
use crate::views::agent_sign_in::open_button;
use crate::views::project_row::Star;
use crate::views::restore_strip::RestoreStrip;
use crate::views::rows::{AsOf, Rows, any_row};
use crate::views::welcome::{FirstSteps, Welcome};
use leptos::prelude::*;
use svc_shared::status::CheckStatus;

/// Ended rows shown before "Show all".
const FEW_ENDED: usize = 10;
/// Projects shown on Home.
const FEW_PROJECTS: usize = 8;
/// Query member that shows every ended row.
const ENDED: &str = "ended";

/// Query member with the kind shown.
const FILTER: &str = "filter";

fn live_keys(store: Store) -> Vec<String> {
    let mut keys = store.section(Section::Live);
    keys.extend(store.jobs_of(&[Group::Live]));
    keys.extend(store.externals());
    keys
}

/// The view.
#[component]
pub fn Home() -> impl IntoView {
    let page = page();
    let nav = nav();
    enter(nav_words::HOME);
    let filter = memo(move || Only::parse(&nav.member(FILTER)));
    let shown_of = move |keys: fn(Store) -> Vec<String>| {
        memo(move || page.store.of_kind(filter.get(), keys(page.store)))
    };
    let waiting = shown_of(|store| {
        let mut keys = store.section(Section::Waiting);
        keys.extend(store.jobs_of(&[Group::Waiting]));
        keys
    });
    let needs_look = shown_of(|store| {
        let mut keys = store.section(Section::NeedsLook);
        keys.extend(store.jobs_of(&[Group::NeedsLook]));
        keys
    });
    let live = shown_of(live_keys);
    let planned = memo(move || page.store.planned_of(None));
    let ended = shown_of(|store| store.section(Section::Ended));
    let shows_all = memo(move || nav.member(ENDED) == "all");
    let few_ended = memo(move || {
        let take = if shows_all.get() { usize::MAX } else { FEW_ENDED };
        ended.with(|ids| ids.iter().take(take).cloned().collect::<Vec<_>>())
    });
    let is_empty = memo(move || {
        page.store.count_projects() == 0
            && filter.get() == Only::All
            && [waiting, needs_look, live, planned, ended].iter().all(|ids| ids.with(Vec::is_empty))
    });
    let toggle = move |event: web_sys::MouseEvent| {
        event.prevent_default();
        let next = if shows_all.get_untracked() { "" } else { "all" };
        nav.set_query(&[(ENDED, next)], true);
    };
    let more = move || {
        (ended.with(Vec::len) > FEW_ENDED).then(|| {
            view! {
                <button type="button" class="linkish" data-testid="ended-all" on:click=toggle>
                    {dynamic(move || if shows_all.get() { words::SHOW_FEWER } else { words::SHOW_ALL })}
                </button>
            }
        })
    };
    view! {
        {dynamic(move || match (page.store.is_loaded.get(), is_empty.get()) {
            (false, _) => view! { <Loading /> }.into_any(),
            (true, true) => view! { <Strips /> <Welcome /> }.into_any(),
            (true, false) => view! {
                <Strips />
                <Rows title=job_words::WAITING testid="section-waiting" keys=waiting total=waiting row=section_rows(Section::Waiting) />
                <Rows title=words::NEEDS_LOOK testid="section-needs-look" keys=needs_look total=needs_look row=section_rows(Section::NeedsLook) />
                <LiveRows keys=live filter=filter />
                <Rows title=planned_words::TITLE testid="section-planned" keys=planned total=planned row=section_rows(Section::Waiting) />
                <Rows
                    title=words::ENDED testid="section-ended" keys=few_ended total=ended dense=true
                    row=section_rows(Section::Ended) more=ViewFn::from(more)
                />
                <Quick />
                <FirstSteps />
            }.into_any(),
        })}
    }
}

/// Rows of a section.
pub fn section_rows(section: Section) -> Callback<String, AnyView> {
    Callback::new(move |key| any_row(key, section))
}

#[component]
fn LiveRows(keys: Memo<Vec<String>>, filter: Memo<Only>) -> impl IntoView {
    let page = page();
    let nav = nav();
    let is_empty = memo(move || keys.with(Vec::is_empty));
    let all = memo(move || live_keys(page.store));
    let chip = move |only: Only| {
        let count = memo(move || page.store.of_kind(only, all.get()).len());
        view! {
            <button
                type="button"
                class="filter"
                aria-pressed=live(move || (filter.get() == only).to_string())
                data-testid=format!("only-{}", only.word())
                on:click=move |_| nav.set_query(&[(FILTER, only.word())], true)
            >
                {only.label()} <span class="num">{count}</span>
            </button>
        }
    };
    let is_open = RwSignal::new(filter.get_untracked() != Only::All);
    let has_direct = memo(move || page.store.has_direct());
    let chips = move || {
        let is_shown =
            |only: &Only| *only != Only::Direct || has_direct.get() || filter.get() == *only;
        let chips = Only::ALL.into_iter().filter(is_shown).map(chip).collect_view();
        view! {
            <button
                type="button"
                class="btn btn-ghost only-phone"
                aria-expanded=live(move || is_open.get().to_string())
                data-testid="filter-open"
                on:click=move |_| is_open.update(|open| *open = !*open)
            >
                {icon("filter", 16)} {words::SHOW_FILTER}
            </button>
            <span class="filters" class:closed=move || !is_open.get() role="group" aria-label=words::FILTER>{chips}</span>
            {dynamic(move || (filter.get() == Only::External).then(|| view! {
                <a href=browser::href("/ui/external")>{external::TITLE}</a>
            }))}
        }
    };
    let first = memo(move || page.store.list_projects(&Query::default()).into_iter().next());
    view! {
        <Rows title=words::LIVE testid="section-live" keys=keys total=keys row=section_rows(Section::Live) more=ViewFn::from(chips) />
        {dynamic(move || is_empty.get().then(|| view! {
            <section aria-label=words::LIVE data-testid="section-live-empty">
                <div class="section-head"><h2>{words::LIVE}</h2><AsOf /><span class="end">{chips()}</span></div>
                <div class="card empty">
                    <p>{dynamic(move || if filter.get() == Only::All { words::NO_LIVE } else { words::NONE_SHOWN })}</p>
                    {dynamic(move || first.get().map(|name| {
                        let label = words::launch_in(&shown(&name));
                        let open = move |_| nav.open_launch(&name, &Choice::default());
                        view! { <button type="button" class=ButtonStyle::Primary.class() on:click=open>{label}</button> }
                    }))}
                </div>
            </section>
        }))}
    }
}

/// The projects one is most likely to launch in.
#[component]
fn Quick() -> impl IntoView {
    let page = page();
    let nav = nav();
    let names = memo(move || {
        let mut names = page.store.list_projects(&Query {
            sort: Sort::Used,
            favourites_first: true,
            ..Query::default()
        });
        names.truncate(FEW_PROJECTS);
        names
    });
    let row = move |name: String| {
        let href = browser::project_href(&name);
        let label = shown(&name).into_owned();
        let launches = named(launch_words::LAUNCH, &label);
        let project = name.clone();
        let key = StoredValue::new(name.clone());
        let open = move |_| nav.open_launch(&name, &Choice::default());
        view! {
            <li data-testid="quick-project" data-project=project>
                <Star name=key label=label.clone() /> <a class="name" href=href><bdi>{label}</bdi></a>
                <button
                    type="button"
                    class=ButtonStyle::Soft.class()
                    aria-label=launches
                    data-testid="act-launch"
                    on:click=open
                >
                    {icon("play", 16)} {launch_words::LAUNCH}
                </button>
            </li>
        }
    };
    view! {
        {dynamic(move || (!names.with(Vec::is_empty)).then(|| view! {
            <section aria-label=words::PROJECTS data-testid="section-projects">
                <div class="section-head">
                    <h2>{words::PROJECTS}</h2>
                    <span class="count num">{dynamic(move || page.store.count_projects())}</span>
                    <span class="end"><a href=browser::href("/ui/projects")>{words::ALL_PROJECTS}</a></span>
                </div>
                <ul class="card list quick">
                    <For each=move || names.get() key=String::clone children=row />
                </ul>
            </section>
        }))}
    }
}

/// The check of the agent program.
const AGENT_CHECK: &str = "claude";

/// One line for everything that concerns all launches.
#[component]
fn Strips() -> impl IntoView {
    let page = page();
    let agent = move || {
        page.store.health.with(|health| {
            let health = health.as_ref()?;
            if !health.claude_ok {
                Some((words::NO_AGENT, words::NO_AGENT_HOW))
            } else if !health.claude_login_ok {
                Some((words::NOT_SIGNED_IN, words::NOT_SIGNED_IN_HOW))
            } else {
                None
            }
        })
    };
    let skew = move || {
        let skew = page.clock.skew();
        (skew.abs() > SKEW_MS).then(|| words::skew(&time::span(skew.abs())))
    };
    let can_sign_in =
        move || page.live.basics.with(|b| b.as_ref().is_some_and(|b| b.can_sign_agent_in));
    let strip = |text: String, how: &'static str, more: AnyView| {
        view! {
            <div class=format!("strip {}", Tone::Warn.class()) data-testid="strip">
                {symbol("g-triangle", "glyph")} <p><b>{text}</b> " " {how}</p> {more}
            </div>
        }
    };
    let sign_in = move || {
        let button = view! { <span class="strip-end">{open_button(page)}</span> };
        button.into_any()
    };
    view! {
        {dynamic(move || {
            // A token can be made while the agent is signed in.
            let is_under_way = page.store.sign_in.with(Option::is_some);
            match agent() {
                Some((words::NOT_SIGNED_IN, _)) if can_sign_in() => {
                    Some(strip(words::NOT_SIGNED_IN.to_owned(), words::NOT_SIGNED_IN_WHY, sign_in()))
                }
                Some((text, how)) => Some(strip(text.to_owned(), how, ().into_any())),
                None if is_under_way => {
                    Some(strip(agent_sign_in::UNDER_WAY.to_owned(), "", sign_in()))
                }
                None => None,
            }
        })}
        {dynamic(move || {
            // The strip above tells of the agent already.
            let told = if agent().is_some() { AGENT_CHECK } else { "" };
            let blocking = page.ready.count_besides(CheckStatus::Fail, told);
            (blocking > 0).then(|| view! {
                <div class=format!("strip {}", Tone::Danger.class()) data-testid="strip">
                    {symbol("g-octagon", "glyph")} <p><b>{words::blocking(blocking)}</b></p>
                    <a class="strip-end" href=browser::href("/ui/doctor")>{ready::TITLE}</a>
                </div>
            })
        })}
        {dynamic(move || skew().map(|text| strip(text, "", ().into_any())))}
        <RestoreStrip />
    }
}

/// Rows of the real height until the first state is there; or why it does not come.
#[component]
pub fn Loading() -> impl IntoView {
    let page = page();
    view! {
        {dynamic(move || match page.live.no_start.get() {
            Some(problem) => view! { <super::missing::NoStart problem=problem /> }.into_any(),
            None => view! {
                <div role="group" aria-busy="true" aria-label=crate::text::page::LOADING>
                    <div class="skeleton skeleton-heading"></div>
                    <div class="card">
                        <div class="skeleton-row"></div>
                        <div class="skeleton-row"></div>
                        <div class="skeleton-row"></div>
                    </div>
                </div>
            }.into_any(),
        })}
    }
}
