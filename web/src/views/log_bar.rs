//! The controls above the log.

use crate::app::page;
use crate::parts::copy::copy;
use crate::parts::icon::icon;
use crate::parts::reactive::{dynamic, live, memo};
use crate::text::page::log as words;
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
    let take = move |_| {
        let text = reader.feed.with(|log| log.tail(COPIED_LINES));
        let shown = reader.lines.get_untracked().map(Into::into);
        copy(page, text, shown);
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
            <Find reader=reader />
            <span class="end">
                <span class="num count" data-testid="log-count">{dynamic(move || words::lines(reader.feed.lines.get()))}</span>
                <button
                    type="button"
                    class="btn btn-ghost btn-icon"
                    aria-label=words::COPY_LAST
                    title=words::COPY_LAST
                    data-testid="log-copy"
                    on:click=take
                >
                    {icon("copy", 20)}
                </button>
            </span>
        </div>
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
