//! The live view of a Direct Session: conversation, questions, message box.

use crate::direct_feed::{DirectFeed, Hearing};
use crate::model::direct::Entry;
use crate::model::shown::shown;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::icon;
use crate::reactive::{dynamic, effect, live, memo};
use crate::store::Asked;
use crate::text::direct as words;
use crate::views::question::Question;
use leptos::prelude::*;
use std::sync::Arc;
use svc_shared::api::instances::Instance;
use svc_shared::status::BridgeStatus;

/// Lines of an outcome that are shown before it is unfolded.
const LINES: usize = 12;

/// The panel.
#[component]
pub fn DirectPanel(
    /// The session.
    bridge: Signal<Arc<Instance>>,
) -> impl IntoView {
    let id = bridge.with_untracked(|bridge| bridge.instance_id.to_string());
    let feed = DirectFeed::open(id);
    let generation = memo(move || bridge.with(|bridge| bridge.generation));
    effect(move || {
        generation.track();
        // A resume: what was complete goes on.
        if feed.hearing.get_untracked() == Hearing::Complete {
            feed.connect();
        }
    });
    let entries = memo(move || feed.talk.with(|talk| talk.entries.clone()));
    let draft = memo(move || feed.talk.with(|talk| talk.draft.clone()));
    let asked = memo(move || bridge.with(|bridge| bridge.pending_permissions.clone()));
    let why = move || match feed.hearing.get() {
        Hearing::Connecting => Some(words::CONNECTING),
        Hearing::Lost => Some(words::RECONNECTING),
        Hearing::Gone => Some(words::GONE),
        Hearing::Open | Hearing::Complete => {
            feed.talk.with(|talk| talk.entries.is_empty()).then_some(words::NOTHING_YET)
        }
    };
    view! {
        <div class="card direct" data-testid="direct">
            <div class="direct-talk" role="log" aria-label=words::TALK tabindex="0">
                {dynamic(move || why().map(|why| view! { <p class="muted">{why}</p> }))}
                {dynamic(move || entries.get().iter().map(entry).collect_view())}
                {dynamic(move || {
                    let text = draft.get();
                    (!text.is_empty()).then(|| line(words::AGENT, &text))
                })}
            </div>
            <For
                each=move || asked.get()
                key=|asked| asked.request_id.clone()
                children=move |asked| view! { <Question of=Asked::of(&bridge.get_untracked(), &asked) /> }
            />
            <Composer bridge=bridge has_question=Signal::derive(move || !asked.get().is_empty()) />
        </div>
    }
}

fn line(who: &'static str, text: &str) -> AnyView {
    view! {
        <div class="direct-line">
            <strong class="direct-who">{who}</strong>
            <div class="direct-text"><bdi>{shown(text).into_owned()}</bdi></div>
        </div>
    }
    .into_any()
}

fn mark(text: String) -> AnyView {
    view! { <p class="direct-mark muted">{text}</p> }.into_any()
}

fn entry(entry: &Entry) -> AnyView {
    match entry {
        Entry::You(text) => line(words::YOU, text),
        Entry::Agent(text) => line(words::AGENT, text),
        Entry::Step { tool, about, outcome, .. } => step(tool, about, outcome.as_ref()),
        Entry::TurnDone(millis) => mark(words::turn_done(*millis)),
        Entry::Output(text) => {
            view! { <pre class="output">{shown(text).into_owned()}</pre> }.into_any()
        }
        Entry::Decided(behavior) => mark(words::decided(behavior)),
        Entry::Gap(count) => mark(words::gap(*count)),
        Entry::Lost => mark(words::LOST.to_owned()),
        Entry::Ended(code) => mark(words::ended(*code)),
    }
}

fn step(tool: &str, about: &str, outcome: Option<&(String, bool)>) -> AnyView {
    let symbol = match outcome {
        None => "clock",
        Some((_, false)) => "check",
        Some((_, true)) => "close",
    };
    let text = outcome.map(|(text, _)| {
        let lines: Vec<&str> = text.lines().take(LINES).collect();
        shown(&lines.join("\n")).into_owned()
    });
    view! {
        <details class="direct-step">
            <summary>
                {icon(symbol, 16)} " " <strong>{shown(tool).into_owned()}</strong> " "
                <code>{shown(about).into_owned()}</code>
            </summary>
            {text.map(|text| view! { <pre class="output">{text}</pre> })}
        </details>
    }
    .into_any()
}

/// The message box.
#[component]
fn Composer(bridge: Signal<Arc<Instance>>, has_question: Signal<bool>) -> impl IntoView {
    let page = page();
    let id = bridge.with_untracked(|bridge| bridge.instance_id.to_string());
    page.drafts.open(&id);
    let id = StoredValue::new(id);
    let text = move || id.with_value(|id| page.drafts.text(id));
    let is_sending = memo(move || id.with_value(|id| page.drafts.is_sending(id)));
    let runs = memo(move || bridge.with(|bridge| bridge.status.is(&BridgeStatus::Running)));
    let send = move || {
        if !runs.get_untracked() {
            return;
        }
        if page.live.is_offline.get_untracked() {
            page.say.politely(crate::text::page::link::OFFLINE);
        } else if is_sending.get_untracked() {
            page.say.politely(words::SENDING);
        } else {
            let project = bridge.with_untracked(|bridge| bridge.project.clone());
            id.with_value(|id| page.message(id, &project));
        }
    };
    let keys = move |event: web_sys::KeyboardEvent| {
        if event.key() == "Enter" && !event.shift_key() && !event.is_composing() {
            event.prevent_default();
            send();
        }
    };
    let hint = move || {
        if !runs.get() {
            words::NOT_RUNNING
        } else if is_sending.get() {
            words::SENDING
        } else if has_question.get() {
            words::AFTER_ANSWER
        } else {
            words::KEYS
        }
    };
    view! {
        <form
            class="direct-composer"
            on:submit=move |event| {
                event.prevent_default();
                send();
            }
        >
            <textarea
                class="input"
                rows="2"
                aria-label=words::MESSAGE
                placeholder=words::MESSAGE
                data-testid="message"
                disabled=live(move || !runs.get())
                prop:value=live(text)
                on:input=move |event| id.with_value(|id| page.drafts.type_in(id, event_target_value(&event)))
                on:keydown=keys
            ></textarea>
            <button type="submit" class=ButtonStyle::Primary.class() data-testid="send" disabled=live(move || !runs.get())>
                {words::SEND}
            </button>
            <p class="muted">{dynamic(hint)}</p>
        </form>
    }
}
