//! Messages on the screen.
//!
//! A message that needs the user stays. Others go by themselves unless they are being read.

use crate::act::Target;
use crate::browser;
use crate::model::job;
use crate::model::outcome::{Level, Then};
use crate::model::shown::shown;
use crate::model::status::{Glyph, Tone};
use crate::model::time;
use crate::nav::nav;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::{glyph, icon};
use crate::reactive::{dynamic, effect, live, memo};
use crate::say::Toast;
use crate::text::{launch, page as words, session};
use crate::views::copy::copy;
use crate::views::launch::reopen;
use leptos::prelude::*;

/// Seconds a message without weight stays.
const LIFE_S: u32 = 8;

/// All messages.
#[component]
pub fn Toasts() -> impl IntoView {
    let page = page();
    let keys = memo(move || {
        page.say.toasts.with(|all| all.iter().map(|t| t.key.to_string()).collect::<Vec<_>>())
    });
    let card =
        move |key: String| page.say.toast(&key).map(|toast| view! { <ToastCard toast=toast /> });
    view! {
        <section class="toasts" aria-label=words::MESSAGES>
                <For each=move || keys.get() key=String::clone children=card />
    </section>
        }
}

fn face(toast: &Toast) -> (Glyph, Tone, &'static str) {
    match toast.notice.level {
        Level::Success => (Glyph::CheckDisc, Tone::Ok, "success"),
        Level::Info => (Glyph::Arc, Tone::Info, "info"),
        Level::Warning => (Glyph::Triangle, Tone::Warn, "warning"),
        Level::Danger => (Glyph::Octagon, Tone::Danger, "danger"),
    }
}

#[component]
fn ToastCard(toast: Toast) -> impl IntoView {
    let page = page();
    let (shape, tone, level) = face(&toast);
    let shape = if toast.notice.level == Level::Info && toast.notice.follows.is_none() {
        Glyph::Dot
    } else {
        shape
    };
    let key = toast.key;
    let held = RwSignal::new(false);
    if !toast.stays {
        // The card's own: whoever said it may be gone before the message is.
        let left = RwSignal::new(LIFE_S + 1); // the second that has begun does not count
        effect(move || {
            page.clock.seconds();
            if held.get_untracked() {
                return;
            }
            let now = left.get_untracked().saturating_sub(1);
            left.set(now);
            if now == 0 {
                page.say.dismiss(key);
            }
        });
    }
    let buttons: Vec<_> =
        toast.notice.then.iter().map(|then| view_then(then.clone(), key)).collect();
    let not_before = toast.notice.not_before;
    let wait = move || {
        let left = not_before? - page.clock.seconds();
        (left > 0).then(|| launch::wait(&time::span(left)))
    };
    let repeat = toast.repeat.map(|repeat| {
        let press = move |_| match untrack(wait) {
            Some(why) => page.say.politely(&why),
            None => {
                page.say.dismiss(key);
                repeat.run(());
            }
        };
        view! {
            <span class="reason">{dynamic(wait)}</span>
            <button
                type="button"
                class=ButtonStyle::Soft.class()
                aria-disabled=live(move || wait().map(|_| "true"))
                data-testid="toast-repeat"
                on:click=press
            >
                {words::REPEAT}
            </button>
        }
    });
    let undo = toast.undo.map(|_| {
        let press = move |_| {
            page.say.take_back(Some(key));
        };
        view! {
            <button type="button" class=ButtonStyle::Soft.class() data-testid="toast-undo" on:click=press>
                {words::UNDO}
            </button>
        }
    });
    let body = toast.notice.body.clone();
    view! {
        <div
            class=format!("toast {}", tone.class())
            data-testid="toast"
            data-level=level
            on:mouseenter=move |_| held.set(true)
            on:mouseleave=move |_| held.set(false)
            on:focusin=move |_| held.set(true)
            on:focusout=move |_| held.set(false)
        >
            {glyph(shape)}
            <div class="toast-text">
                <p class="toast-title"><bdi>{shown(&toast.notice.title).into_owned()}</bdi></p>
                {(!body.is_empty())
                    .then(|| view! { <p class="toast-body"><bdi>{shown(&body).into_owned()}</bdi></p> })}
            </div>
            {buttons}
            {repeat} {undo}
            <button
                type="button"
                class="btn btn-ghost btn-icon"
                aria-label=session::named(words::DISMISS, &toast.notice.title)
                data-testid="toast-dismiss"
                on:click=move |_| page.say.dismiss(key)
            >
                {icon("close", 20)}
            </button>
        </div>
    }
}

fn view_then(then: Then, key: u64) -> AnyView {
    let page = page();
    let nav = nav();
    let gone = move |_| page.say.dismiss(key);
    match then {
        Then::Open(id) => view! {
            <a class=ButtonStyle::Soft.class() href=browser::open_href(&id) target="_blank" rel="noopener" on:click=gone>
                {session::act::OPEN}
            </a>
        }
        .into_any(),
        Then::View(id) => view! {
            <a class=ButtonStyle::Ghost.class() href=browser::session_href(&id) on:click=gone>
                {session::act::VIEW}
            </a>
        }
        .into_any(),
        Then::Job(id) => view! {
            <a class=ButtonStyle::Ghost.class() href=browser::href(&job::path(&id)) on:click=gone>
                {session::act::VIEW}
            </a>
        }
        .into_any(),
        Then::Resume(id) => {
            let press = move |_| {
                page.say.dismiss(key);
                if let Some(bridge) = page.store.instance(&id) {
                    page.resume(Target::of(&bridge.get_untracked()), false);
                }
            };
            view! {
                <button type="button" class=ButtonStyle::Soft.class() on:click=press>
                    {session::act::RESUME}
                </button>
            }
            .into_any()
        }
        Then::Launch(project, choice) => {
            let press = move |_| {
                page.say.dismiss(key);
                reopen(nav, &project, &choice);
            };
            view! {
                <button type="button" class=ButtonStyle::Soft.class() data-testid="toast-launch" on:click=press>
                    {launch::EDIT_AND_RETRY}
                </button>
            }
            .into_any()
        }
        Then::Copy(text) => {
            let press = move |_| copy(page, text.clone(), None);
            view! {
                <button type="button" class=ButtonStyle::Ghost.class() data-testid="toast-copy" on:click=press>
                    {session::act::COPY_ID}
                </button>
            }
            .into_any()
        }
    }
}
