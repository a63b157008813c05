//! Readiness: what blocks, what is worth a look, what is in order, and what to do about it.

use crate::app::page;
use crate::dom::prelude::*;
use crate::model::shown::shown;
use crate::model::status::Tone;
use crate::parts::button::Look;
use crate::parts::copy::copy;
use crate::parts::icon::{icon, symbol};
use crate::parts::reactive::{dynamic, live};
use crate::parts::times::When;
use crate::shell::nav::enter;
use crate::text::ready as words;
use svc_shared::internal::{Check, Doctor};
use svc_shared::status::CheckStatus;

const GROUPS: [(CheckStatus, &str, Tone, &str); 3] = [
    (CheckStatus::Fail, words::BLOCKING, Tone::Danger, "g-octagon"),
    (CheckStatus::Warn, words::WARNING, Tone::Warn, "g-triangle"),
    (CheckStatus::Ok, words::FINE, Tone::Ok, "g-check-disc"),
];

/// The view.
#[component]
pub fn Readiness() -> impl IntoView {
    let page = page();
    enter(words::TITLE);
    if page.ready.found.with_untracked(Option::is_none) {
        page.ready.ask();
    }
    let report = move |_| {
        if let Some(Ok(doctor)) = page.ready.found.get_untracked() {
            copy(page, report(&doctor), None);
        }
    };
    view! {
        <div class="toolbar">
            <button
                type="button"
                class=Look::Secondary.class()
                aria-disabled=live(move || page.ready.is_asking.get().then_some("true"))
                data-testid="doctor-again"
                on:click=move |_| page.ready.ask()
            >
                {icon("resume", 16)} {words::AGAIN}
            </button>
            <button type="button" class=Look::Ghost.class() on:click=report>{icon("copy", 16)} {words::COPY}</button>
            <span class="muted" role="status">
                {dynamic(move || match page.ready.found.get() {
                    _ if page.ready.is_asking.get() => words::ASKING.into_any(),
                    Some(Ok(doctor)) => view! { {words::AS_OF} <When at=Signal::stored(doctor.at) /> }.into_any(),
                    _ => ().into_any(),
                })}
            </span>
        </div>
        {dynamic(move || match page.ready.found.get() {
            None => ().into_any(),
            Some(Err(problem)) => view! {
                <p class="strip tone-danger" role="alert">{problem.words()}</p>
            }.into_any(),
            Some(Ok(doctor)) => GROUPS.map(|group| section(&doctor, group)).into_any(),
        })}
    }
}

fn section(
    doctor: &Doctor,
    (status, title, tone, shape): (CheckStatus, &'static str, Tone, &'static str),
) -> AnyView {
    let checks: Vec<_> = doctor.checks.iter().filter(|c| c.status.is(&status)).map(check).collect();
    if checks.is_empty() {
        return ().into_any();
    }
    view! {
        <section aria-label=title data-testid=status.as_str()>
            <div class=format!("section-head {}", tone.class())>
                {symbol(shape, "glyph")} <h2>{title}</h2> <span class="count num">{checks.len()}</span>
            </div>
            <ul class="card list doctor">{checks}</ul>
        </section>
    }
    .into_any()
}

fn check(check: &Check) -> AnyView {
    view! {
        <li data-testid="check" data-check=check.name.clone()>
            <b>{check.name.replace('_', " ")}</b>
            <span>
                <bdi>{shown(&check.detail).into_owned()}</bdi>
                {check.hint.as_deref().map(|hint| view! {
                    <span class="hint"><bdi>{shown(hint).replace('`', "")}</bdi></span>
                })}
            </span>
        </li>
    }
    .into_any()
}

/// The report as text, for a message to somebody who can help.
fn report(doctor: &Doctor) -> String {
    let lines = doctor.checks.iter().map(|check| {
        let hint = check.hint.as_deref().unwrap_or_default();
        format!("{}: {} {} {hint}\n", check.status, check.name, check.detail)
    });
    format!("svc {}\n{}", doctor.version, lines.collect::<String>())
}
