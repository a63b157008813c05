//! The reader of one conversation.
//!
//! It follows the end until the user scrolls up, and never moves the turns that the user reads.

use crate::api;
use crate::appear::enter;
use crate::browser;
use crate::model::outcome::{Level, Notice, Then};
use crate::model::problem::Problem;
use crate::model::shown::shown;
use crate::model::talk::{self, Shown, Window};
use crate::model::time;
use crate::model::wire;
use crate::nav::nav;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::icon;
use crate::prefs;
use crate::reactive::{dynamic, effect, live, memo};
use crate::talk_feed::{Reading, TalkFeed};
use crate::text::conversation as words;
use crate::text::page as page_words;
use crate::views::conversations::failed;
use crate::views::home::Loading;
use crate::views::prose::{Plain, Prose};
use crate::views::row::fact;
use crate::views::times::{When, absolute};
use gloo_net::http::Method;
use leptos::html;
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::sync::Arc;
use svc_shared::api::instances::SpawnResult;
use svc_shared::internal::conversations::{Block, ConversationPage, Turn};
use svc_shared::paths::{self, segment};

/// Closer to the end than this counts as at the end, pixels.
const AT_END_PX: i32 = 24;
/// Closer to the start than this reads the page before, pixels.
const NEAR_START_PX: i32 = 300;
/// Turns that one step of a search returns at most.
const HITS: u32 = 100;

/// The view.
#[component]
pub fn ConversationView(
    /// The project.
    project: String,
    /// Reference of the conversation.
    conversation: String,
) -> impl IntoView {
    let nav = nav();
    enter(words::ONE);
    // Another turn of the same conversation is another beginning.
    let around = memo(move || nav.member("turn").parse().ok());
    view! {
        <article class="session-view" data-testid="conversation-page">
            {dynamic(move || {
                let (project, conversation) = (project.clone(), conversation.clone());
                view! { <Talk project=project conversation=conversation around=around.get() /> }
            })}
        </article>
    }
}

/// A conversation with its head, search and turns.
#[component]
pub fn Talk(
    /// The project.
    project: String,
    /// Reference of the conversation.
    conversation: String,
    /// The turn to begin at; `None` for the end.
    around: Option<u64>,
) -> impl IntoView {
    let feed = TalkFeed::open(project, conversation, around);
    let typed = RwSignal::new(String::new());
    let asked = RwSignal::new(String::new());
    view! {
        <Head feed=feed />
        <section class="card log talk-reader" aria-label=words::ONE>
            <div class="log-bar">
                <form class="field-box" role="search" on:submit=move |event: web_sys::SubmitEvent| {
                    event.prevent_default();
                    asked.set(typed.get_untracked().trim().to_owned());
                }>
                    {icon("search", 16)}
                    <input
                        type="search" aria-label=words::FIND placeholder=words::FIND autocomplete="off" maxlength="200"
                        data-testid="talk-find" prop:value=typed
                        on:input=move |event| {
                            typed.set(event_target_value(&event));
                            if typed.with_untracked(String::is_empty) {
                                asked.set(String::new());
                            }
                        }
                    />
                </form>
                {dynamic(move || (!asked.with(String::is_empty)).then(|| view! {
                    <button
                        type="button" class="btn btn-ghost btn-icon" aria-label=words::CLOSE_FIND data-testid="talk-find-close"
                        on:click=move |_| { typed.set(String::new()); asked.set(String::new()); }
                    >{icon("close", 20)}</button>
                }))}
                <span class="end num" role="status">{dynamic(move || {
                    let (shown, total) = feed.window.with(|all| (all.turns().len(), all.total));
                    words::part(shown, total)
                })}</span>
            </div>
            {dynamic(move || {
                let find = asked.get();
                if find.is_empty() {
                    view! { <Turns feed=feed around=around /> }.into_any()
                } else {
                    view! { <Hits feed=feed find=find asked=asked /> }.into_any()
                }
            })}
        </section>
    }
}

#[component]
fn Head(feed: TalkFeed) -> impl IntoView {
    let (page, nav) = (page(), nav());
    let name = memo(move || {
        let prompt = feed.about.with(|about| about.as_ref()?.first_prompt.clone());
        prompt.map_or_else(|| words::ONE.to_owned(), |prompt| shown(&prompt).into_owned())
    });
    let is_forking = RwSignal::new(false);
    let fork = move |_| {
        if is_forking.get_untracked() {
            return;
        }
        is_forking.set(true);
        let request = Fork {
            project: feed.project.get_value(),
            mode: "pty",
            conversation: feed.conversation.get_value(),
        };
        let key = browser::repeat_key();
        spawn_local(async move {
            let path = paths::instances() + "?wait=0";
            let answer =
                api::request(Method::POST, &path, Some(wire::written(&request)), Some(&key));
            match api::understood::<SpawnResult>(answer.await) {
                Ok(result) => {
                    let id = result.instance.instance_id.to_string();
                    match is_forking.try_get_untracked() {
                        Some(_) => {
                            page.say.politely(words::FORKED);
                            nav.to(&browser::session_href(&id));
                        }
                        // Whoever left the conversation is not taken away from where they are.
                        None => page.say.notice(
                            Notice::new(Level::Success, words::FORKED.to_owned(), "")
                                .then(Then::View(id)),
                        ),
                    }
                }
                Err(problem) => {
                    let title = page_words::not_done(words::FORK, &request.project);
                    page.say.notice(Notice::new(Level::Danger, title, problem.words()));
                }
            }
            is_forking.try_set(false); // left meanwhile: fine
        });
    };
    view! {
        <div class="session-head">
            <div class="session-line talk-title">
                <h1 tabindex="-1"><bdi>{name}</bdi></h1>
                <div class="end">
                    {dynamic(move || {
                        let held = feed.about.with(|about| about.as_ref()?.instance_id.clone())?;
                        Some(view! {
                            <a class=ButtonStyle::Secondary.class() href=browser::session_href(held.as_str())>{words::OPEN_SESSION}</a>
                        })
                    })}
                    <button
                        type="button" class=ButtonStyle::Primary.class() title=words::FORK_HELP data-testid="talk-fork"
                        aria-disabled=live(move || (is_forking.get() || page.live.is_offline.get()).then_some("true"))
                        on:click=fork
                    >{icon("branch", 16)} {words::FORK}</button>
                </div>
            </div>
            <div class="session-line session-facts">
                {dynamic(move || feed.about.get().map(|about| {
                    let name = feed.project.get_value();
                    let list = format!("{}?tab=conversations", browser::project_href(&name));
                    view! {
                        {about.live.then(|| view! { <span class="badge tone-ok">{words::LIVE}</span> })}
                        <span class="facts">
                            <span class="fact num">{words::turns(about.turn_count)}</span>
                            {about.last_ts.map(|at| view! { <span class="fact"><When at=Signal::stored(at) /></span> })}
                            <span class="fact"><a href=list><bdi>{shown(&name).into_owned()}</bdi></a></span>
                            {about.worktree.map(|name| fact(&words::worktree(&name)))}
                            {(about.skipped_lines > 0).then(|| fact(&words::skipped(about.skipped_lines)))}
                        </span>
                        <code class="ids muted">{about.conversation.to_string()}</code>
                    }
                }))}
            </div>
        </div>
    }
}

/// A launch that takes a copy of a conversation.
#[derive(serde::Serialize)]
struct Fork {
    project: String,
    mode: &'static str,
    conversation: String,
}

#[component]
fn Turns(feed: TalkFeed, around: Option<u64>) -> impl IntoView {
    let lines: NodeRef<html::Div> = NodeRef::new();
    let follows = RwSignal::new(around.is_none());
    let seen = RwSignal::new(feed.arrived.get_untracked());
    let to_end = move || {
        if let Some(lines) = lines.try_get_untracked().flatten() {
            lines.set_scroll_top(i32::MAX);
        }
    };
    // The turns that are read stay where they are when older ones come above them.
    feed.before_older.set_value(Some(Callback::new(move |()| {
        let Some(lines) = lines.try_get_untracked().flatten() else { return };
        let (height, top) = (lines.scroll_height(), lines.scroll_top());
        browser::after_paint(move || lines.set_scroll_top(top + lines.scroll_height() - height));
    })));
    effect(move || {
        feed.arrived.get();
        let is_done = feed.reading.get() == Reading::Done;
        if is_done && follows.get_untracked() {
            seen.set(feed.arrived.get_untracked());
            browser::after_paint(to_end);
        }
    });
    effect(move || {
        if let (Reading::Done, Some(turn)) = (feed.reading.get(), around) {
            browser::after_paint(move || {
                if let Some(turn) = browser::element(&format!("[data-turn=\"{turn}\"]")) {
                    turn.scroll_into_view();
                }
            });
        }
    });
    let scrolled = move |_| {
        let Some(lines) = lines.get_untracked() else { return };
        let below = lines.scroll_height() - lines.scroll_top() - lines.client_height();
        let is_at_end = below <= AT_END_PX && feed.window.with_untracked(Window::is_at_end);
        if is_at_end {
            seen.set(feed.arrived.get_untracked());
        }
        follows.set(is_at_end);
        if lines.scroll_top() < NEAR_START_PX && feed.reading.get_untracked() == Reading::Done {
            feed.read_older();
        }
    };
    let keys = move |event: web_sys::KeyboardEvent| {
        let forwards = match event.key().as_str() {
            "n" => true,
            "p" => false,
            _ => return,
        };
        if event.ctrl_key() || event.meta_key() || event.alt_key() {
            return;
        }
        if let Some(lines) = lines.get_untracked() {
            step(&lines, forwards);
        }
    };
    let turns = memo(move || feed.window.with(|all| all.turns().to_vec()));
    let has_older = memo(move || feed.window.with(|all| all.older().is_some()));
    let has_newer = memo(move || feed.window.with(|all| !all.is_at_end()));
    let more = move |label: &'static str, testid: &'static str, go: Callback<()>| {
        view! {
            <div class="log-top">
                <button
                    type="button" class="btn btn-ghost" data-testid=testid
                    aria-disabled=live(move || feed.is_turning.get().then_some("true"))
                    on:click=move |_| go.run(())
                >{dynamic(move || if feed.is_turning.get() { words::READING } else { label })}</button>
            </div>
        }
    };
    let row = move |turn: Arc<Turn>| view_turn(feed, &turn, false);
    let older = Callback::new(move |()| feed.read_older());
    let newer = Callback::new(move |()| feed.read_newer());
    view! {
        {dynamic(move || feed.is_gone.get().then(|| view! { <p class="strip tone-warn" role="status">{words::GONE}</p> }))}
        {dynamic(move || feed.is_replaced.get().then(|| view! { <p class="strip tone-warn" role="status">{words::REPLACED}</p> }))}
        {dynamic(move || feed.is_lost.get().then(|| view! { <p class="strip tone-warn" role="status">{words::LOST}</p> }))}
        <div class="talk-lines" tabindex="0" role="feed" aria-label=words::ONE node_ref=lines on:scroll=scrolled on:keydown=keys data-testid="talk-lines">
            {dynamic(move || match feed.reading.get() {
                Reading::First => view! { <Loading /> }.into_any(),
                Reading::Failed(problem) => failed(&problem, Callback::new(move |()| feed.begin(around))),
                Reading::Done => ().into_any(),
            })}
            {dynamic(move || has_older.get().then(|| more(words::OLDER, "talk-older", older)))}
            <For each=move || turns.get() key=|turn| turn.index children=row />
            {dynamic(move || has_newer.get().then(|| more(words::NEWER, "talk-newer", newer)))}
        </div>
        {dynamic(move || {
            let fresh = feed.arrived.get().saturating_sub(seen.get());
            (fresh > 0 && !follows.get()).then(|| view! {
                <button
                    type="button" class=format!("{} log-pill", ButtonStyle::Primary.class()) data-testid="talk-fresh"
                    on:click=move |_| {
                        seen.set(feed.arrived.get_untracked());
                        follows.set(true);
                        if feed.window.with_untracked(Window::is_at_end) {
                            to_end();
                        } else {
                            feed.begin(None);
                        }
                    }
                >{icon("chevron-down", 16)} {words::fresh(fresh)}</button>
            })
        })}
    }
}

/// Goes to the next or the previous turn of the person.
fn step(lines: &web_sys::HtmlElement, forwards: bool) {
    let top = lines.scroll_top();
    let Ok(found) = lines.query_selector_all(".turn-user") else { return };
    let mut best: Option<i32> = None;
    for at in 0..found.length() {
        use wasm_bindgen::JsCast as _;
        let Some(turn) = found.get(at).and_then(|it| it.dyn_into::<web_sys::HtmlElement>().ok())
        else {
            continue;
        };
        let at = turn.offset_top();
        match forwards {
            true if at > top + 1 && best.is_none() => best = Some(at),
            false if at < top - 1 => best = Some(at),
            _ => {}
        }
    }
    if let Some(best) = best {
        lines.set_scroll_top(best);
    }
}

fn view_turn(feed: TalkFeed, turn: &Arc<Turn>, is_hit: bool) -> AnyView {
    let index = turn.index;
    let name = feed.project.get_value();
    let here = format!(
        "{}?turn={index}",
        browser::conversation_href(&name, &feed.conversation.get_value())
    );
    let time = turn.timestamp.map(|at| {
        let zone = prefs::zone(at.as_millis());
        let title = absolute(at);
        let clock = time::clock(at, zone);
        let label = words::link(&clock);
        view! {
            <a class="turn-time num" href=here.clone() title=title aria-label=label>
                <time datetime=at.to_string()>{clock}</time>
            </a>
        }
    });
    let parts: Vec<AnyView> = turn.content.iter().map(part).collect();
    view! {
        <article class=talk::class(turn) data-turn=index.to_string() data-testid="turn">
            <div class="turn-who">
                {talk::speaker(turn).map(|who| view! { <b>{who}</b> })} {time}
                {is_hit.then(|| view! { <a href=here data-testid="talk-show-here">{words::SHOW_HERE}</a> })}
            </div>
            <div class="turn-parts">{parts}</div>
        </article>
    }
    .into_any()
}

fn part(block: &Block) -> AnyView {
    let cut = block.truncated.then(|| view! { <p class="muted">{words::CUT}</p> });
    let text = block.text.clone();
    match talk::shown(block) {
        Shown::Prose if block.text.is_empty() => ().into_any(),
        Shown::Prose => view! { <Prose text=text /> {cut} }.into_any(),
        Shown::Folded { title, .. } if block.text.is_empty() => {
            view! { <p class="tool-line"><b>{shown(&title).into_owned()}</b></p> }.into_any()
        }
        Shown::Folded { title, summary, is_error } => {
            // What is folded has no elements: a conversation may have thousands of results.
            let is_open = RwSignal::new(false);
            let class = if is_error { "tool tone-danger" } else { "tool" };
            view! {
                <details class=class on:toggle=move |_| is_open.set(true)>
                    <summary>
                        <b>{shown(&title).into_owned()}</b> <code>{shown(&summary).into_owned()}</code>
                    </summary>
                    {dynamic(move || is_open.get().then(|| view! { <Plain text=text.clone() /> }))}
                    {cut}
                </details>
            }
            .into_any()
        }
    }
}

/// What a search has found.
#[component]
fn Hits(feed: TalkFeed, find: String, asked: RwSignal<String>) -> impl IntoView {
    let found = RwSignal::new(Vec::<Arc<Turn>>::new());
    let next = RwSignal::new(Some(0_u64));
    let is_reading = RwSignal::new(false);
    let problem = RwSignal::new(None::<Problem>);
    let find = StoredValue::new(find);
    let search = move || {
        let Some(from) = next.get_untracked() else { return };
        if is_reading.get_untracked() {
            return;
        }
        is_reading.set(true);
        problem.set(None);
        spawn_local(async move {
            let (Some(path), Some(words)) = (feed.path(), find.try_get_value()) else { return };
            let path =
                format!("{path}?order=desc&limit={HITS}&cursor={from}&q={}", segment(&words));
            let answer = api::get::<ConversationPage>(&path).await;
            if asked.try_get_untracked() != find.try_get_value() {
                return; // something else is looked for by now
            }
            match answer {
                Ok(page) => {
                    next.set(page.next_cursor);
                    found.update(|all| {
                        // The place is counted from the end: new turns bring old hits again.
                        let last = all.last().map(|turn| turn.index);
                        let is_new = |turn: &Turn| last.is_none_or(|last| turn.index < last);
                        all.extend(page.turns.into_iter().filter(is_new).map(Arc::new));
                    });
                }
                Err(why) => problem.set(Some(why)),
            }
            is_reading.set(false);
        });
    };
    search();
    let is_whole = memo(move || next.get().is_none());
    let row = move |turn: Arc<Turn>| view_turn(feed, &turn, true);
    view! {
        <div class="talk-lines" tabindex="0" aria-label=words::ONE data-testid="talk-hits">
            <p class="log-top num" role="status">{dynamic(move || {
                match (is_reading.get(), found.with(Vec::len), is_whole.get()) {
                    (true, ..) => words::READING.to_owned(),
                    (false, 0, true) => words::NO_HITS.to_owned(),
                    (false, n, is_whole) => words::hits(n, is_whole),
                }
            })}</p>
            <For each=move || found.get() key=|turn| turn.index children=row />
            {dynamic(move || problem.get().map(|why| failed(&why, Callback::new(move |()| search()))))}
            {dynamic(move || (!is_whole.get() && !is_reading.get()).then(|| view! {
                <div class="log-top"><button type="button" class="btn btn-secondary" data-testid="talk-search-on" on:click=move |_| search()>{words::MORE_HITS}</button></div>
            }))}
        </div>
    }
}
