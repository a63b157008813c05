//! Why a bridge ended.
//!
//! A row shows one line; the session page shows the whole tail on demand.

use crate::browser;
use crate::model::cause::Cause;
use crate::model::shown::shown;
use crate::model::status::{Face, Tone};
use crate::nav::nav;
use crate::page::page;
use crate::parts::icon::{glyph, icon};
use crate::reactive::{dynamic, live};
use crate::text::page::{home, session as words};
use crate::text::{cause as cause_words, session};
use crate::views::copy::copy;
use crate::views::tabs::TAB;
use leptos::prelude::*;

/// The last line of the output, with the rest behind a button.
#[component]
pub fn CauseLine(
    /// The cause.
    cause: Cause,
    /// Page of the session.
    href: String,
) -> impl IntoView {
    let is_open = RwSignal::new(false);
    let has_output = !cause.output.is_empty();
    let is_plain_output = has_output && !cause.is_evidence;
    let line = cause.line.clone().unwrap_or_else(|| cause_words::NO_OUTPUT.to_owned());
    let output = StoredValue::new(cause.output);
    let href = StoredValue::new(href);
    let advice = cause.advice;
    view! {
        <div class=format!("row-cause {}", Tone::Danger.class()) data-testid="cause">
            <div class="cause-line">
                {is_plain_output.then(|| view! { <span class="muted">{cause_words::LAST_OUTPUT}</span> })}
                <code data-testid="cause-line"><bdi>{shown(&line).into_owned()}</bdi></code>
                {has_output.then(|| view! {
                    <button
                        type="button"
                        class="btn btn-ghost"
                        aria-expanded=live(move || is_open.get().to_string())
                        data-testid="show-output"
                        on:click=move |_| is_open.update(|open| *open = !*open)
                    >
                        {icon("chevron-right", 14)}
                        {dynamic(move || if is_open.get() { home::HIDE_OUTPUT } else { home::SHOW_OUTPUT })}
                    </button>
                })}
            </div>
            {dynamic(move || is_open.get().then(|| view! {
                <Tail output=output.get_value() />
                <p class="advice">
                    {advice} " " <a href=href.get_value()>{words::OPEN_LOG}</a>
                </p>
            }))}
        </div>
    }
}

/// The captured tail, its last words marked.
#[component]
fn Tail(mut output: Vec<String>) -> impl IntoView {
    let last = output.pop().map(|line| shown(&line).into_owned());
    let text: String = output.iter().map(|line| format!("{}\n", shown(line))).collect();
    view! {
        <pre class="output" tabindex="0" role="region" aria-label=words::LAST_OUTPUT data-testid="output"><code>{text}<b>{last}</b></code></pre>
    }
}

/// The card above the tabs of a session that ended badly.
#[component]
pub fn CauseCard(
    /// The cause.
    cause: Cause,
    /// How the status looks.
    face: Face,
    /// How long it had lived, in words.
    after: Option<String>,
) -> impl IntoView {
    let page = page();
    let full = cause.output.join("\n");
    let count = cause.output.len();
    let output = cause.output.clone();
    let headline = sentence(&cause.headline);
    let nav = nav();
    let to_log = move |_| {
        nav.set_query(&[(TAB, "")], true);
        browser::after_paint(|| {
            browser::focus(".log-lines");
        });
    };
    let press = move |event: web_sys::MouseEvent| {
        let region = event.current_target().and_then(|_| browser::element("[data-testid=output]"));
        copy(page, full.clone(), region.map(Into::into));
    };
    view! {
        <section class="card cause-card" data-testid="cause-card">
            <div class=format!("cause-top {}", face.tone.class())>
                {glyph(face.glyph)}
                <div>
                    <h2>{headline}</h2>
                    <p>
                        {after.map(|after| format!("{} {after}. ", face.word))} {cause.advice}
                    </p>
                </div>
            </div>
            {(count > 0).then(|| view! {
                <div class="cause-body">
                    <div class="cause-body-head">
                        <b>{words::LAST_OUTPUT}</b>
                        <span class="muted">{words::lines_before_end(count)}</span>
                        <span class="end">
                            <button
                                type="button"
                                class="btn btn-ghost"
                                aria-label=session::named(words::COPY, words::LAST_OUTPUT)
                                on:click=press
                            >
                                {icon("copy", 16)} {words::COPY}
                            </button>
                            <button type="button" class="btn btn-ghost" data-testid="log-end" on:click=to_log>
                                {icon("log", 16)} {words::OPEN_LOG}
                            </button>
                        </span>
                    </div>
                    <Tail output=output />
                </div>
            })}
        </section>
    }
}

/// A headline begins like a sentence.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}
