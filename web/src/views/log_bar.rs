//! The controls above the log.

use crate::browser;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::icon;
use crate::parts::menu::{Does, Entry, Menu};
use crate::prefs;
use crate::reactive::{dynamic, live, memo};
use crate::text::log as words;
use crate::views::copy::copy;
use crate::views::log::Reader;
use leptos::prelude::*;
use web_sys::KeyboardEvent;

/// Lines that the copy button takes.
const COPIED_LINES: usize = 100;

/// The controls.
#[component]
pub fn Bar(
    /// The panel.
    reader: Reader,
) -> impl IntoView {
    let page = page();
    let follow = move |_| {
        if reader.follows.get_untracked() {
            reader.follows.set(false);
        } else {
            reader.to_end();
        }
    };
    let take = Callback::new(move |()| {
        let shown: Option<web_sys::Element> = reader.lines.get_untracked().map(Into::into);
        let mut text = shown.as_ref().map(browser::selected).unwrap_or_default();
        if text.is_empty() {
            text = reader.feed.with(|log| log.tail(COPIED_LINES));
        }
        copy(page, text, shown);
    });
    let download = Callback::new(move |()| {
        let id = reader.feed.id.get_value();
        let name = format!("{}.log", id.get(..8).unwrap_or(&id));
        browser::download(&name, &reader.feed.with(|log| log.tail(usize::MAX)));
        page.say.done(words::downloaded(&name));
    });
    let pauses = reader.feed.is_paused;
    let entries = Callback::new(move |()| {
        let entry =
            |label, run, testid, class| Entry { label, does: Does::Run(run), testid, class };
        let flip = |is: RwSignal<bool>| Callback::new(move |()| is.update(|on| *on = !*on));
        let either = |is: RwSignal<bool>, on, off| if is.get_untracked() { off } else { on };
        let (numbers, announces) = (reader.numbers, reader.announces);
        vec![
            entry(
                either(numbers, words::NUMBERS, words::NO_NUMBERS),
                flip(numbers),
                "log-numbers",
                "",
            ),
            entry(
                either(announces, words::ANNOUNCE, words::NO_ANNOUNCE),
                flip(announces),
                "log-announce",
                "",
            ),
            entry(words::COPY_LAST, take, "log-menu-copy", "only-phone"),
            entry(words::DOWNLOAD, download, "log-menu-download", "only-phone"),
        ]
    });
    let tool = |symbol, label: &'static str, testid, run: Callback<()>| {
        view! {
            <button
                type="button"
                class="btn btn-ghost btn-icon only-wide"
                aria-label=label
                title=label
                data-testid=testid
                // The selection stays when the button is pressed.
                on:mousedown=|event| event.prevent_default()
                on:click=move |_| run.run(())
            >
                {icon(symbol, 20)}
            </button>
        }
        .into_any()
    };
    view! {
        <div class="log-bar">
            <button
                type="button"
                role="switch"
                class="switch"
                aria-checked=live(move || reader.follows.get().to_string())
                data-testid="log-follow"
                on:click=follow
            >
                {words::FOLLOW}
            </button>
            <button
                type="button"
                role="switch"
                class="switch"
                aria-checked=live(move || reader.wraps.get().to_string())
                data-testid="log-wrap"
                on:click=move |_| reader.wraps.update(|on| *on = !*on)
            >
                {words::WRAP}
            </button>
            <button
                type="button"
                class=ButtonStyle::Ghost.class()
                aria-pressed=live(move || pauses.get().to_string())
                data-testid="log-pause"
                on:click=move |_| reader.feed.pause(!pauses.get_untracked())
            >
                {dynamic(move || icon(if pauses.get() { "play" } else { "pause" }, 16))}
                {dynamic(move || if pauses.get() {
                    words::go_on(reader.feed.waiting.get())
                } else {
                    words::PAUSE.to_owned()
                })}
            </button>
            <span class="select">
                <select
                    aria-label=words::LEVEL
                    data-testid="log-level"
                    on:change=move |event| reader.least.set(event_target_value(&event))
                >
                    {words::LEVELS.map(|(value, label)| view! { <option value=value>{label}</option> })}
                </select>
                {icon("chevron-down", 16)}
            </span>
            <Find reader=reader />
            <span class="end">
                <span class="num count" data-testid="log-count">{dynamic(move || words::lines(reader.feed.lines.get()))}</span>
                <span class="num count" data-testid="log-zone">{zone()}</span>
                {tool("copy", words::COPY_LAST, "log-copy", take)}
                {tool("download", words::DOWNLOAD, "log-download", download)}
                <Menu of=Signal::stored(words::VIEW.to_owned()) entries=entries />
            </span>
        </div>
    }
}

/// The zone of the times, as minutes from UTC are written.
fn zone() -> String {
    let minutes = prefs::zone(browser::device_now());
    let sign = if minutes < 0 { '-' } else { '+' };
    match (minutes.abs() / 60, minutes.abs() % 60) {
        (0, 0) => "UTC".to_owned(),
        (hours, 0) => format!("UTC{sign}{hours}"),
        (hours, rest) => format!("UTC{sign}{hours}:{rest:02}"),
    }
}

#[component]
fn Find(reader: Reader) -> impl IntoView {
    let count = memo(move || reader.hits.with(Vec::len));
    let typed = move |event| {
        reader.typed.set(event_target_value(&event));
        // The newest hit is the likeliest to be meant.
        let last = reader.hits.with_untracked(|hits| hits.len().saturating_sub(1));
        reader.current.set(last);
        reader.show_hit();
    };
    let keys = move |event: KeyboardEvent| match event.key().as_str() {
        "Enter" => {
            event.prevent_default();
            reader.step(!event.shift_key());
        }
        "Escape" => reader.typed.set(String::new()),
        _ => {}
    };
    let says = move || {
        let at = if count.get() == 0 { 0 } else { reader.current.get() + 1 };
        reader.needle.with(|needle| !needle.is_empty()).then(|| words::hit(at, count.get()))
    };
    let is_off = move || (count.get() == 0).then_some("true");
    let button =
        move |forwards: bool, label: &'static str, symbol: &'static str, testid: &'static str| {
            view! {
                <button
                    type="button"
                    class="btn btn-ghost btn-icon"
                    aria-label=label
                    aria-disabled=live(is_off)
                    data-testid=testid
                    on:click=move |_| reader.step(forwards)
                >
                    {icon(symbol, 20)}
                </button>
            }
        };
    view! {
        <div class="field-box">
            {icon("search", 16)}
            <input
                type="search"
                aria-label=words::FIND
                placeholder=words::FIND
                autocomplete="off"
                data-testid="log-find"
                prop:value=reader.typed
                on:input=typed
                on:keydown=keys
            />
            <span class="num below" role="status" data-testid="log-hits">{dynamic(says)}</span>
        </div>
        {dynamic(move || reader.needle.with(|needle| !needle.is_empty()).then(|| {
            (
                button(false, words::PREVIOUS, "chevron-up", "log-previous"),
                button(true, words::NEXT, "chevron-down", "log-next"),
            )
        }))}
    }
}
