//! The page of one bridge: status, actions, log and details.

use crate::act::Target;
use crate::appear::enter;
use crate::browser;
use crate::model::cause::{cause, uptime};
use crate::model::link::Found;
use crate::model::offers::{Instead, Offer, offers};
use crate::model::past::Told;
use crate::model::restart::{self, Stage};
use crate::model::shown::shown;
use crate::model::status::{face, since as standing_since};
use crate::model::time;
use crate::nav::nav;
use crate::page::page;
use crate::parts::icon::{glyph, icon};
use crate::parts::status::pill;
use crate::reactive::{derived, dynamic, effect, live, memo};
use crate::text::page::{link, nav as nav_words, session as words};
use crate::text::{changes, conversation, direct, past, terminal};
use crate::text::{session as said, status as status_words};
use crate::views::actions::{ActionLayout, Actions, Rename, view_instead};
use crate::views::activity::{Few, Timeline};
use crate::views::cause::CauseCard;
use crate::views::changes::ChangesPanel;
use crate::views::conversations::OfSession;
use crate::views::copy::Copyable;
use crate::views::details::Details;
use crate::views::direct::DirectPanel;
use crate::views::home::Loading;
use crate::views::log::LogPanel;
use crate::views::remote::{RemoteFacts, StrandedList};
use crate::views::report::ReportCard;
use crate::views::restart::{RestartCard, RestartFacts};
use crate::views::session_row::Chips;
use crate::views::tabs::{self, Tab, Tabs};
use crate::views::terminal::TerminalPanel;
use crate::views::times::{Age, When};
use crate::views::usage::{curve, figure, used};
use crate::views::worktrees::LeftWorktree;
use leptos::prelude::*;
use std::sync::Arc;
use svc_shared::api::instances::Instance;
use svc_shared::api::sessions::WorkingSession;
use svc_shared::paths;
use svc_shared::status::{Channel, ResumeMode};

const LOG: Tab = Tab { value: "", id: "tab-log", symbol: "log", label: words::TAB_LOG };
const TERMINAL: Tab =
    Tab { value: "terminal", id: "tab-terminal", symbol: "terminal", label: terminal::LABEL };
const CHANGES: Tab =
    Tab { value: "changes", id: "tab-changes", symbol: "branch", label: changes::LABEL };
const TALK: Tab =
    Tab { value: "conversation", id: "tab-conversation", symbol: "chat", label: conversation::ONE };
const ACTIVITY: Tab =
    Tab { value: "activity", id: "tab-activity", symbol: "activity", label: past::TITLE };
const DETAILS: Tab =
    Tab { value: "details", id: "tab-details", symbol: "list", label: words::TAB_DETAILS };

/// In the place of the log, which a Direct Session does not have.
const LIVE: Tab = Tab { value: "", id: "tab-live", symbol: "chat", label: direct::LIVE };

/// The tabs of a session: with a terminal, and with a repository.
fn tabs_of(has_terminal: bool, has_git: bool) -> &'static [Tab] {
    match (has_terminal, has_git) {
        (false, false) => &[LOG, TALK, ACTIVITY, DETAILS],
        (false, true) => &[LOG, CHANGES, TALK, ACTIVITY, DETAILS],
        (true, false) => &[LOG, TERMINAL, TALK, ACTIVITY, DETAILS],
        (true, true) => &[LOG, TERMINAL, CHANGES, TALK, ACTIVITY, DETAILS],
    }
}

/// The view.
#[component]
pub fn Session(
    /// An id, or the beginning of one.
    reference: String,
) -> impl IntoView {
    let page = page();
    let nav = nav();
    let reference = StoredValue::new(reference);
    let found =
        memo(move || page.store.is_loaded.get().then(|| page.store.find(&reference.get_value())));
    effect(move || {
        if let Some(Found::Prefix(id)) = found.get() {
            // The rest of the address stays: the tab, say.
            let query = window().location().search().unwrap_or_default();
            nav.replace(&format!("{}{query}", browser::session_href(&id)));
        }
    });
    view! {
           {dynamic(move || match found.get() {
               None => {
                   enter(nav_words::SESSION);
                   view! { <h1 tabindex="-1" class="sr-only">{nav_words::SESSION}</h1> <Loading /> }.into_any()
               }
               // Its whole address is on its way.
    Some(Found::Prefix(_)) => ().into_any(),
    Some(Found::Exact(id)) => view! { <Known id=id /> }.into_any(),
               Some(Found::Several(ids)) => view! { <Several ids=ids /> }.into_any(),
               Some(Found::None) => view! { <Unknown reference=reference.get_value() /> }.into_any(),
           })}
       }
}

#[component]
fn Unknown(reference: String) -> impl IntoView {
    enter(words::UNKNOWN);
    view! {
        <div class="card page-card" data-testid="not-found">
            <h1 tabindex="-1">{words::UNKNOWN}</h1>
            <code><bdi>{shown(&reference).into_owned()}</bdi></code>
            <p>{words::UNKNOWN_WHY}</p>
            <a class="btn btn-secondary" href=browser::href("/ui/")>{crate::text::page::GO_HOME}</a>
        </div>
    }
}

#[component]
fn Several(ids: Vec<String>) -> impl IntoView {
    let page = page();
    enter(words::SEVERAL);
    let rows = ids
        .into_iter()
        .map(|id| {
            let project = page.store.instance(&id).map(|b| b.get_untracked().project.clone());
            view! {
                <li>
                    <a href=browser::session_href(&id)><bdi>{project}</bdi></a> " " <code>{id}</code>
                </li>
            }
        })
        .collect_view();
    view! {
        <div class="card page-card" data-testid="several">
            <h1 tabindex="-1">{words::SEVERAL}</h1>
            <ul>{rows}</ul>
        </div>
    }
}

#[component]
fn Known(id: String) -> impl IntoView {
    let page = page();
    let Some(record) = page.store.instance(&id) else {
        return ().into_any();
    };
    let tracked = page.store.inside(&id);
    let bridge = derived(move || record.get());
    let inside = derived(move || tracked.get());
    enter(shown(&bridge.get_untracked().project).into_owned());
    let seen_id = id.clone();
    effect(move || {
        let is_new = page.store.unseen.with(|unseen| unseen.contains(&seen_id));
        if is_new {
            page.store.unseen.update(|unseen| {
                unseen.remove(&seen_id);
            });
        }
    });
    let is_interactive = bridge.with_untracked(|it| it.resume_mode.is(&ResumeMode::Pty));
    let has_terminal = page.live.basics.get_untracked().is_some_and(|basics| basics.has_terminal);
    let project = bridge.with_untracked(|it| it.project.clone());
    let has_git = page.store.project(&project).is_some_and(|it| it.get_untracked().is_git_repo);
    let is_direct = bridge.with_untracked(|it| it.channel.is(&Channel::Hosted));
    let all: &'static [Tab] = match (is_direct, has_git) {
        (true, false) => &[LIVE, ACTIVITY, DETAILS],
        (true, true) => &[LIVE, CHANGES, ACTIVITY, DETAILS],
        (false, has_git) => tabs_of(is_interactive && has_terminal, has_git),
    };
    let at = tabs::chosen(all);
    let own_id = id.clone();
    view! {
        <article class="session-view" data-testid="session" data-row=id.clone() data-instance=id data-status=live(move || bridge.get().status.to_string()) data-project=live(move || bridge.get().project.clone())>
            <Head bridge=bridge inside=inside />
            <Explained bridge=bridge inside=inside />
            <Reported bridge=bridge />
            <RestartCard bridge=bridge />
            <StrandedList bridge=bridge />
            <LeftWorktree bridge=bridge />
            <Tabs tabs=all at=at label=words::TABS />
            {dynamic(move || {
                let tab = all.get(at.get());
                let panel = match tab.map_or("", |tab| tab.value) {
                    "terminal" => view! { <TerminalPanel id=own_id.clone() /> }.into_any(),
                    "changes" => view! { <ChangesPanel path=paths::changes_of_instance(&own_id) notices=paths::changes_notices(&own_id) /> }.into_any(),
                    "conversation" => view! {
                        <OfSession bridge=bridge />
                    }.into_any(),
                    "activity" => view! { <Timeline about=own_id.clone() kind="instance" /> }.into_any(),
                    "details" => view! { <Details bridge=bridge /> }.into_any(),
                    _ if is_direct => view! { <DirectPanel bridge=bridge /> }.into_any(),
                    _ => view! { <LogPanel id=own_id.clone() /> }.into_any(),
                };
                let named = tab.map(|tab| tab.id);
                view! { <div role="tabpanel" id="panel" aria-labelledby=named>{panel}</div> }
            })}
        </article>
    }
    .into_any()
}

#[component]
fn Head(bridge: Signal<Arc<Instance>>, inside: Signal<Arc<Vec<WorkingSession>>>) -> impl IntoView {
    let page = page();
    let renames = RwSignal::new(false);
    let rename = move |_| {
        if page.live.is_offline.get_untracked() {
            page.say.politely(link::OFFLINE);
        } else {
            renames.set(true);
        }
    };
    let renamed = Callback::new(move |()| {
        renames.set(false);
        browser::after_paint(|| {
            browser::focus("[data-testid=head-rename]");
        });
    });
    let seen = memo(move || face(&bridge.get(), &inside.get()));
    let label = memo(move || {
        let bridge = bridge.get();
        (bridge.label != bridge.project).then(|| shown(&bridge.label).into_owned())
    });
    let kind = memo(move || {
        let bridge = bridge.get();
        status_words::kind(&bridge.channel.to_string(), &bridge.resume_mode.to_string())
    });
    let is_live = memo(move || bridge.get().is_live());
    let generation = memo(move || bridge.get().generation);
    let since = derived(move || standing_since(&bridge.get()));
    let session = memo(move || bridge.get().session_ref.clone());
    let id = bridge.get_untracked().instance_id.clone();
    let uses = used(id.to_string());
    view! {
        <div class="session-head">
            <div class="session-line">
                <h1 tabindex="-1"><bdi>{dynamic(move || shown(&bridge.get().project).into_owned())}</bdi></h1>
                {dynamic(move || if renames.get() {
                    view! { <Rename bridge=bridge on_done=renamed /> }.into_any()
                } else {
                    view! {
                        {dynamic(move || label.get().map(|label| view! { <span class="label"><bdi>{label}</bdi></span> }))}
                        <button
                            type="button"
                            class="btn btn-ghost btn-icon"
                            aria-label=said::act::RENAME
                            aria-disabled=live(move || page.live.is_offline.get().then_some("true"))
                            data-testid="head-rename"
                            on:click=rename
                        >
                            {icon("pencil", 16)}
                        </button>
                    }.into_any()
                })}
                <div class="end"><Actions bridge=bridge inside=inside layout=ActionLayout::Head /></div>
            </div>
            <div class="session-line session-facts">
                {dynamic(move || seen.with(pill))}
                {dynamic(move || if is_live.get() {
                    view! { <span><Age since=since /></span> }.into_any()
                } else {
                    view! { <span><When at=since /></span> }.into_any()
                })}
                <span class="badge">{kind}</span> <Chips bridge=bridge />
                <RemoteFacts bridge=bridge /> <RestartFacts bridge=bridge />
                {dynamic(move || is_live.get().then(|| (curve(uses), figure(uses))))}
                <span class="ids end">
                    {words::ID} " " <Copyable shown=id.short() full=id.as_str() what=words::ID />
                    {dynamic(move || session.get().map(|session| view! {
                        {words::REF} " " <Copyable shown=session.as_str() full=session.as_str() what=words::REF />
                    }))}
                    <span class="num">{dynamic(move || words::generation(generation.get()))}</span>
                </span>
            </div>
        </div>
    }
}

/// The report of an end.
#[component]
fn Reported(bridge: Signal<Arc<Instance>>) -> impl IntoView {
    let end = memo(move || {
        let bridge = bridge.get();
        let ended = bridge.ended_at.filter(|_| !bridge.is_live())?;
        Some(format!("{} {ended}", bridge.generation))
    });
    let id = bridge.get_untracked().instance_id.to_string();
    let has_cause = memo(move || cause(&bridge.get()).is_some());
    dynamic(move || {
        view! { <ReportCard id=id.clone() end=end has_cause=has_cause.get() /> }
    })
}

/// The cause of a bad end with what went before, and why Resume would not work.
#[component]
fn Explained(
    bridge: Signal<Arc<Instance>>,
    inside: Signal<Arc<Vec<WorkingSession>>>,
) -> impl IntoView {
    let page = page();
    let card = memo(move || {
        let bridge = bridge.get();
        let after = uptime(&bridge).map(|lived| said::after(&time::span(lived)));
        // The card tells of the end; what follows by itself has a card of its own.
        let end = restart::without(&bridge);
        // Of what was given up every end counts.
        let told = match restart::stage(&bridge) {
            Some(Stage::GaveUp) => Told::Ends,
            Some(Stage::Waiting) | None => Told::Newest,
        };
        cause(&bridge).map(|cause| (cause, face(&end, &inside.get()), after, told))
    });
    let offered = memo(move || {
        let bridge = bridge.get();
        let sibling = page.store.live_sibling(&bridge);
        offers(&bridge, sibling.as_deref())
    });
    let declined = memo(move || {
        let explained = card.with(Option::is_some);
        offered.with(|offers| match &offers.resume {
            Offer::Refused(why) if explained || offers.instead != Instead::Nothing => {
                Some((words::resume_declined(why), offers.instead.clone()))
            }
            _ => None,
        })
    });
    let target = memo(move || Target::of(&bridge.get()));
    let id = bridge.get_untracked().instance_id.to_string();
    view! {
        {dynamic(move || card.get().map(|(cause, face, after, told)| view! {
            <div class="ended-card">
                <CauseCard cause=cause face=face after=after />
                <section class="card aside" aria-label=past::TIMELINE>
                    <h2>{past::TIMELINE}</h2>
                    <Few about=id.clone() told=told />
                </section>
            </div>
        }))}
        {dynamic(move || declined.get().map(|(why, instead)| {
            let stop = match &instead {
                Instead::ViewLive(id) => Some(format!("{}?ask=stop", browser::session_href(id))),
                _ => None,
            };
            view! {
                <section class="card decline tone-warn" data-testid="resume-declined">
                    {glyph(crate::model::status::Glyph::Triangle)}
                    <span class="says">{why}</span>
                    <span class="end">
                        {stop.map(|href| view! {
                            <a class="btn btn-ghost" href=href data-testid="act-stop-live">{said::act::STOP_LIVE}</a>
                        })}
                        {view_instead(instead, target)}
                    </span>
                </section>
            }
        }))}
    }
}
