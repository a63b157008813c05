//! The controls around the terminal: state, size, search, copying and keys.

use crate::browser;
use crate::model::outcome::{Level, Notice};
use crate::model::terminal::{KEYS, SIZES};
use crate::model::time;
use crate::page::{Page, page};
use crate::parts::button::ButtonStyle;
use crate::parts::icon::icon;
use crate::prefs;
use crate::reactive::{dynamic, effect, live, memo};
use crate::terminal_feed::{Feed, Feeding};
use crate::text::log as log_words;
use crate::text::terminal as words;
use crate::views::copy::copy;
use crate::views::terminal::Reader;
use leptos::prelude::*;
use svc_shared::Timestamp;
use web_sys::KeyboardEvent;

/// The state in one word, and the class of its colour.
fn state(feed: Feed) -> (&'static str, &'static str) {
    let word = feed.standing.with(|standing| standing.word.clone());
    match (feed.feeding.get(), word.as_str()) {
        (Feeding::Off | Feeding::Gone, _) | (_, "unavailable") => {
            (words::UNAVAILABLE, "tone-danger")
        }
        (Feeding::Lost, _) => (words::RECONNECTING, "tone-warn"),
        (_, "exited") => (words::EXITED, "tone-neutral"),
        (_, "error") => (words::ASKS, "tone-warn"),
        (Feeding::Connecting, _) | (_, "" | "starting") => (words::CONNECTING, "tone-info"),
        (Feeding::Open, _) if feed.standing.with(|standing| !standing.has_text) => {
            (words::WAITING, "tone-info")
        }
        (Feeding::Open, _) => (words::LIVE, "tone-ok"),
    }
}

/// A button with an icon.
fn tool(
    symbol: &'static str,
    label: &'static str,
    testid: &'static str,
    run: impl Fn() + 'static,
) -> AnyView {
    let run: Box<dyn Fn()> = Box::new(run);
    view! {
        <button
            type="button"
            class="btn btn-ghost btn-icon"
            aria-label=label
            title=label
            data-testid=testid
            // The selection stays when the button is pressed.
            on:mousedown=|event| event.prevent_default()
            on:click=move |_| run()
        >
            {icon(symbol, 20)}
        </button>
    }
    .into_any()
}

/// Whether the service lets people type.
fn may_type(page: Page) -> bool {
    page.live.basics.get().is_some_and(|basics| basics.can_type)
}

fn copying(reader: Reader) -> impl Fn() + 'static {
    let page = page();
    move || copy(page, reader.text(), reader.body.get_untracked().map(Into::into))
}

fn step(reader: Reader, by: i8) {
    let size = reader.size.get_untracked().saturating_add_signed(by);
    reader.resize(size.clamp(SIZES.0, SIZES.1));
}

/// State, size and tools above the screen.
#[component]
pub fn Head(
    /// The panel.
    reader: Reader,
) -> impl IntoView {
    let feed = reader.feed;
    let shown = memo(move || state(feed));
    let facts = move || {
        let standing = feed.standing.get();
        let (columns, rows) = standing.size;
        let at = feed.seen_at.get();
        let clock = time::clock(Timestamp::from_millis(at), prefs::zone(at));
        (columns > 0).then(|| view! {
            <span class="fact-line num">
                <span>{format!("{columns} × {rows}")}</span>
                <span class="only-wide">{format!(" · {} · ", words::generation(standing.generation))}</span>
                <span class="only-wide">{words::frame(&clock)}</span>
            </span>
        })
    };
    let badge = move || {
        if may_type(page()) {
            view! { <span class="badge">{words::CAN_TYPE}</span> }.into_any()
        } else {
            view! { <span class="badge" data-testid="terminal-read-only">{icon("eye", 16)} {words::READ_ONLY}</span> }.into_any()
        }
    };
    let is_fit = memo(move || reader.fit.get().is_some());
    let label = move || reader.fit.get().is_none().then(|| words::size(reader.size.get()));
    view! {
        <div class="log-bar term-head">
            <span class=live(move || format!("pill {}", shown.get().1)) role="status" data-testid="terminal-state">
                <span class="term-dot"></span> {dynamic(move || shown.get().0)}
            </span>
            {badge()}
            {dynamic(facts)}
            <Find reader=reader />
            <span class="end only-wide">
                <button
                    type="button"
                    class=ButtonStyle::Ghost.class()
                    aria-pressed=live(move || is_fit.get().to_string())
                    data-testid="terminal-fit"
                    on:click=move |_| reader.fit()
                >
                    {icon("fit", 16)} {words::FIT}
                </button>
                <button
                    type="button"
                    class=ButtonStyle::Ghost.class()
                    aria-pressed=live(move || (!is_fit.get()).to_string())
                    data-testid="terminal-actual"
                    on:click=move |_| reader.fit.set(None)
                >
                    {words::ACTUAL}
                </button>
                <button type="button" class=ButtonStyle::Ghost.class() aria-label=words::SMALLER data-testid="terminal-smaller" on:click=move |_| step(reader, -1)>"A−"</button>
                <span class="num">{dynamic(label)}</span>
                <button type="button" class=ButtonStyle::Ghost.class() aria-label=words::LARGER data-testid="terminal-larger" on:click=move |_| step(reader, 1)>"A+"</button>
                {tool("copy", words::COPY, "terminal-copy", copying(reader))}
                {dynamic(move || {
                    let label = if reader.is_whole.get() { words::NOT_WHOLE } else { words::WHOLE };
                    tool("whole", label, "terminal-whole", move || reader.is_whole.update(|is| *is = !*is))
                })}
            </span>
        </div>
    }
}

/// The field that searches what is shown.
#[component]
fn Find(reader: Reader) -> impl IntoView {
    let count = memo(move || reader.hits.with(Vec::len));
    let keys = move |event: KeyboardEvent| match event.key().as_str() {
        "Enter" => {
            event.prevent_default();
            reader.step(!event.shift_key());
        }
        "Escape" => reader.typed.set(String::new()),
        _ => {}
    };
    let says = move || {
        let at = if count.get() == 0 { 0 } else { reader.current.get().min(count.get() - 1) + 1 };
        reader.needle.with(|needle| !needle.is_empty()).then(|| log_words::hit(at, count.get()))
    };
    view! {
        <div class="field-box term-find">
            {icon("search", 16)}
            <input
                type="search"
                aria-label=words::FIND
                placeholder=words::FIND
                data-testid="terminal-find"
                prop:value=move || reader.typed.get()
                on:input=move |event| {
                    reader.typed.set(event_target_value(&event));
                    reader.current.set(0);
                }
                on:keydown=keys
            />
            <span class="num" role="status" data-testid="terminal-hits">{dynamic(says)}</span>
        </div>
    }
}

/// Tools of the phone, and the line that types where that is allowed.
#[component]
pub fn Foot(
    /// The panel.
    reader: Reader,
) -> impl IntoView {
    let page = page();
    let types = memo(move || may_type(page));
    view! {
        {dynamic(move || types.get().then(|| view! { <Typing reader=reader /> }))}
        <div class="term-tools only-phone" role="toolbar" aria-label=words::LABEL>
            <button type="button" class=ButtonStyle::Ghost.class() aria-label=words::FIT data-testid="terminal-fit-phone" on:click=move |_| {
                if reader.fit.get_untracked().is_some() { reader.fit.set(None) } else { reader.fit() }
            }>{words::FIT_SHORT}</button>
            <button type="button" class=ButtonStyle::Ghost.class() aria-label=words::SMALLER on:click=move |_| step(reader, -1)>"A−"</button>
            <button type="button" class=ButtonStyle::Ghost.class() aria-label=words::LARGER on:click=move |_| step(reader, 1)>"A+"</button>
            {tool("chevron-left", words::LEFT, "terminal-left", move || reader.pan(false))}
            {tool("chevron-right", words::RIGHT, "terminal-right", move || reader.pan(true))}
            {tool("copy", words::COPY, "terminal-copy-phone", copying(reader))}
            {tool("whole", words::WHOLE, "terminal-whole-phone", move || reader.is_whole.update(|is| *is = !*is))}
        </div>
        {dynamic(move || (!types.get()).then(|| view! {
            <p class="term-note only-wide">{words::USE_OPEN}</p>
        }))}
    }
}

/// A line of text and the keys that a phone does not have.
#[component]
fn Typing(reader: Reader) -> impl IntoView {
    let page = page();
    let line = RwSignal::new(String::new());
    let not_sent = move || {
        page.say.notice(Notice::new(Level::Warning, words::NOT_SENT.to_owned(), ""));
    };
    let send = move |text: &str| {
        if reader.feed.type_in(text.to_owned()) {
            reader.to_end();
        } else {
            not_sent();
        }
    };
    effect(move || {
        let Some(text) = reader.feed.returned.get() else { return };
        if line.with_untracked(String::is_empty) {
            line.set(text);
        }
        reader.feed.returned.set(None);
    });
    let submit = move |event: web_sys::SubmitEvent| {
        event.prevent_default();
        let text = line.get_untracked();
        // What was not sent stays to be sent again.
        if reader.feed.enter(text) {
            reader.to_end();
            line.set(String::new());
        } else {
            not_sent();
        }
        browser::focus("[data-testid=terminal-line]");
    };
    let keys = KEYS
        .map(|(label, name, text)| {
            view! {
                <button type="button" class="btn btn-secondary" aria-label=name on:click=move |_| send(text)>{label}</button>
            }
        })
        .collect_view();
    view! {
        <form class="term-type" on:submit=submit>
            <input
                type="text"
                class="input"
                autocomplete="off"
                autocapitalize="off"
                spellcheck="false"
                enterkeyhint="send"
                maxlength="4000"
                data-unsent=""
                aria-label=words::TYPE_HERE
                placeholder=words::TYPE_HERE
                data-testid="terminal-line"
                prop:value=move || line.get()
                on:input=move |event| line.set(event_target_value(&event))
            />
            <button type="submit" class=ButtonStyle::Soft.class() data-testid="terminal-send">{words::SEND}</button>
            <span class="term-keys" role="group" aria-label=words::KEYS>{keys}</span>
        </form>
    }
}
