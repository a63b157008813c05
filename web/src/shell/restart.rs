//! The dialog that restarts the service.

use crate::model::job::Group;
use crate::model::sections::Section;
use crate::model::status::is_direct;
use crate::model::time;
use crate::page::{Page, page};
use crate::parts::button::ButtonStyle;
use crate::parts::dialog::Dialog;
use crate::reactive::{dynamic, memo};
use crate::text::restarting as words;
use crate::text::session::act;
use leptos::prelude::*;

/// How long the service may be away before the page says where to look.
const LATE_AFTER_MS: i64 = 60_000;

/// Asks whether it is meant, and tells how far it is.
#[component]
pub fn RestartSheet() -> impl IntoView {
    let page = page();
    page.restarting.problem.set(None);
    let close = Callback::new(move |()| page.sheet.set(None));
    let is_away = memo(move || page.restarting.since.with(Option::is_some));
    view! {
        <Dialog title=words::TITLE.to_owned() on_close=close testid="restart-dialog">
            {dynamic(move || match is_away.get() {
                true => view! { <Away close=close /> }.into_any(),
                false => view! { <Ask close=close /> }.into_any(),
            })}
        </Dialog>
    }
}

#[component]
fn Ask(close: Callback<()>) -> impl IntoView {
    let page = page();
    let begin = move |_| page.restarting.begin(page);
    view! {
        <div class="dialog-body">
            <p class="wide" data-testid="restart-keeps">{move || keeps(page)}</p>
            <p class="wide">{words::MEANS}</p>
            {dynamic(move || page.restarting.problem.get().map(|problem| view! {
                <p class="wide strip tone-danger" role="alert" data-testid="restart-problem">{problem.words()}</p>
            }))}
        </div>
        <div class="dialog-foot">
            <span class="says"></span>
            <button type="button" class=ButtonStyle::Secondary.class() data-testid="restart-cancel" autofocus=true on:click=move |_| close.run(())>{act::CANCEL}</button>
            <button type="button" class=ButtonStyle::Primary.class() data-testid="restart-begin" on:click=begin>{words::RESTART}</button>
        </div>
    }
}

#[component]
fn Away(close: Callback<()>) -> impl IntoView {
    let page = page();
    let away_ms = move || {
        page.restarting.since.get().map_or(0, |since| (page.clock.seconds() - since).max(0))
    };
    let is_late = memo(move || away_ms() >= LATE_AFTER_MS);
    view! {
        <div class="dialog-body" role="status" data-testid="restart-away">
            <p class="wide">{words::IS_AWAY} " " <span class="num muted">{move || time::span(away_ms())}</span></p>
            {dynamic(move || is_late.get().then(|| view! {
                <div class="wide" data-testid="restart-late">
                    <p>{words::LATE}</p>
                    {words::LOOK.map(|command| view! { <p><code>{command}</code></p> })}
                </div>
            }))}
        </div>
        <div class="dialog-foot">
            <span class="says"></span>
            <button type="button" class=ButtonStyle::Secondary.class() on:click=move |_| close.run(())>{words::CLOSE}</button>
        </div>
    }
}

/// What keeps running meanwhile. Tracked.
fn keeps(page: Page) -> String {
    let live = [Section::Waiting, Section::Live].map(|section| page.store.section(section));
    let (mut bridges, mut direct) = (0, 0);
    for id in live.iter().flatten() {
        let Some(row) = page.store.instance(id) else { continue };
        match row.with(|row| is_direct(row)) {
            true => direct += 1,
            false => bridges += 1,
        }
    }
    let jobs = page.store.jobs_of(&[Group::Waiting, Group::Live]).len();
    words::keeps(bridges, direct, jobs)
}
