//! The first steps.
//!
//! They stand on an empty Home, and below a used one until they are taken or dismissed.

use crate::focus;
use crate::model::prefs::{Change, DISMISSED};
use crate::page::{Page, page};
use crate::parts::button::ButtonStyle;
use crate::parts::icon::{icon, symbol};
use crate::reactive::{dynamic, live, memo};
use crate::text::page::home as words;
use crate::views::new_project::NewButtons;
use leptos::prelude::*;

/// Name of the card among what is put away.
const CARD: &str = "first-steps";
/// Name of the last step among what was done.
const OPENED: &str = "opened";

/// Marks the last step as taken.
///
/// The user opened the remote client or showed its code.
pub fn opened(page: Page) {
    if page.prefs.with_untracked(|prefs| !prefs.has(DISMISSED, OPENED)) {
        page.prefs.change(Change::Item(DISMISSED, OPENED.to_owned(), true));
    }
}

/// Shows the card again.
pub fn reopen(page: Page) {
    page.prefs.change(Change::Item(DISMISSED, CARD.to_owned(), false));
    page.prefs.change(Change::Item(DISMISSED, OPENED.to_owned(), false));
}

fn root(page: Page) -> String {
    let known = page.live.basics.with(|b| b.as_ref().map(|b| b.projects_root.clone()));
    known.unwrap_or_default()
}

/// Which steps are taken.
fn taken(page: Page) -> Memo<[bool; 4]> {
    memo(move || {
        let is_ready = page
            .store
            .health
            .with(|h| h.as_ref().is_some_and(|h| h.claude_ok && h.claude_login_ok));
        let has_launched = page.store.places.with(|places| !places.is_empty());
        let has_opened = page.prefs.with(|prefs| prefs.has(DISMISSED, OPENED));
        [is_ready, page.store.count_projects() > 0, has_launched, has_opened]
    })
}

/// The page of somebody who has no project yet.
#[component]
pub fn Welcome() -> impl IntoView {
    let page = page();
    view! {
        <div class="welcome" data-testid="welcome">
            {symbol("mark", "mark")} <h2>{words::NO_PROJECTS}</h2>
            <p>{words::BECOMES_A} <code>{live(move || root(page))}</code> {words::BECOMES_B}</p>
            <p>{words::BEGIN}</p>
            <NewButtons is_empty=true />
            {steps(page, taken(page))}
        </div>
    }
}

/// The card below Home: gone when every step is taken, or when it was put away.
#[component]
pub fn FirstSteps() -> impl IntoView {
    let page = page();
    let taken = taken(page);
    let is_wanted = memo(move || {
        taken.get() != [true; 4] && page.prefs.with(|prefs| !prefs.has(DISMISSED, CARD))
    });
    view! {
        {dynamic(move || is_wanted.get().then(|| view! {
            <div class="welcome" data-testid="first-steps">{steps(page, taken)}</div>
        }))}
    }
}

fn steps(page: Page, taken: Memo<[bool; 4]>) -> AnyView {
    let list = move || {
        let done = taken.get();
        let next = done.iter().position(|done| !done);
        let is_missing = page.store.health.with(|h| h.as_ref().is_some_and(|h| !h.claude_ok));
        let first = match is_missing {
            true => (words::STEP_INSTALL, words::STEP_INSTALL_HOW),
            false => (words::STEP_SIGN_IN, words::STEP_SIGN_IN_HOW),
        };
        let texts = [
            (first.0, first.1.to_owned()),
            (words::STEP_ADD, words::step_add_how(&root(page))),
            (words::STEP_LAUNCH, words::STEP_LAUNCH_HOW.to_owned()),
            (words::STEP_OPEN, words::STEP_OPEN_HOW.to_owned()),
        ];
        let rows = texts.into_iter().zip(done).enumerate();
        rows.map(|(at, ((title, how), done))| step(at, title, how, done, next == Some(at)))
            .collect_view()
    };
    let count = move || words::steps_done(taken.with(|t| t.iter().filter(|t| **t).count()), 4);
    let dismiss = move |_| {
        page.prefs.change(Change::Item(DISMISSED, CARD.to_owned(), true));
        focus::rescue("h1");
    };
    let can_go = memo(move || page.store.count_projects() > 0);
    view! {
        <section class="card steps" aria-label=words::STEPS>
            <div class="steps-head">
                <b>{words::STEPS}</b> <span class="muted">{live(count)}</span>
                {dynamic(move || can_go.get().then(|| view! {
                    <button type="button" class=ButtonStyle::Ghost.class() data-testid="dismiss-steps" on:click=dismiss>
                        {words::DISMISS}
                    </button>
                }))}
            </div>
            <ol>{dynamic(list)}</ol>
        </section>
    }
    .into_any()
}

fn step(at: usize, title: &'static str, how: String, done: bool, is_next: bool) -> AnyView {
    let mark = if done { icon("check", 16).into_any() } else { (at + 1).into_any() };
    view! {
        <li class="step" class:done=done class:next=is_next>
            <span class="step-mark" aria-hidden="true">{mark}</span>
            <span class="step-text"><b>{title}</b><span>{how}</span></span>
            <span class="state">{done.then_some(words::DONE)} {is_next.then_some(words::NEXT)}</span>
        </li>
    }
    .into_any()
}
