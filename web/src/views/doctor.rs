//! The Readiness view: problems, warnings, and what to do about them.

use crate::act;
use crate::appear::enter;
use crate::browser;
use crate::model::shown::shown;
use crate::model::status::Tone;
use crate::model::usage::memory;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::confirm::Confirm;
use crate::parts::icon::{icon, symbol};
use crate::reactive::{derived, dynamic, live};
use crate::ready::{KEEPERS, STRAYS, TRUST, is_decision};
use crate::text::launch;
use crate::text::page::session::field;
use crate::text::ready::{self as words, strays};
use crate::text::session::named;
use crate::views::act_button::ActButton;
use crate::views::agent_sign_in::open_button;
use crate::views::copy::{Copyable, copy};
use crate::views::keepers;
use crate::views::row::fact;
use crate::views::support::{self, Stage};
use crate::views::times::{Age, When};
use leptos::prelude::*;
use svc_shared::internal::strays::Stray;
use svc_shared::internal::{Check, Doctor};
use svc_shared::status::CheckStatus;

/// A group of checks.
///
/// Its name for tests, title, colour and symbol, and which checks are in it.
type Group = (&'static str, &'static str, Tone, &'static str, fn(&Check) -> bool);

/// The check of the sign-in.
const SIGN_IN: &str = "claude-login";

const GROUPS: [Group; 4] = [
    ("fail", words::BLOCKING, Tone::Danger, "g-octagon", |c| c.status.is(&CheckStatus::Fail)),
    ("warn", words::WARNING, Tone::Warn, "g-triangle", |c| {
        c.status.is(&CheckStatus::Warn) && !is_decision(c)
    }),
    ("decision", words::DECISION, Tone::Info, "g-question", is_decision),
    ("ok", words::FINE, Tone::Ok, "g-check-disc", |c| c.status.is(&CheckStatus::Ok)),
];

/// The view.
#[component]
pub fn Readiness() -> impl IntoView {
    let page = page();
    enter(words::TITLE);
    if page.ready.found.with_untracked(Option::is_none) {
        page.ready.ask();
    }
    page.ready.follow_keepers();
    // Outlives what is drawn anew: the process that a question is about.
    let asks = RwSignal::new(None::<i32>);
    let bundle = RwSignal::new(Stage::Closed);
    let report = move |_| {
        if let Some(Ok(doctor)) = page.ready.found.get_untracked() {
            copy(page, report(&doctor), None);
        }
    };
    view! {
        <div class="toolbar doctor-bar">
            <span class="doctor-sum">
                {dynamic(move || match page.ready.found.get() {
                    Some(Ok(doctor)) => summary(&doctor),
                    _ => String::new(),
                })}
            </span>
            <span class="muted" role="status">
                {dynamic(move || match page.ready.found.get() {
                    _ if page.ready.is_asking.get() => words::ASKING.into_any(),
                    Some(Ok(doctor)) => view! { {words::AS_OF} <When at=Signal::stored(doctor.at) /> }.into_any(),
                    _ => ().into_any(),
                })}
            </span>
            <button
                type="button"
                class=ButtonStyle::Secondary.class()
                aria-disabled=live(move || page.ready.is_asking.get().then_some("true"))
                data-testid="doctor-again"
                on:click=move |_| page.ready.ask()
            >
                {icon("refresh", 16)} {words::AGAIN}
            </button>
            <button type="button" class=ButtonStyle::Ghost.class() on:click=report>{icon("copy", 16)} {words::COPY}</button>
            {support::button(bundle)}
        </div>
        {support::card(bundle)}
        {dynamic(move || match page.ready.found.get() {
            None => ().into_any(),
            Some(Err(problem)) => view! {
                <p class="strip tone-danger" role="alert">{problem.words()}</p>
            }.into_any(),
            Some(Ok(doctor)) => GROUPS.map(|group| section(&doctor, group, asks)).into_any(),
        })}
    }
}

fn section(
    doctor: &Doctor,
    (testid, title, tone, shape, takes): Group,
    asks: RwSignal<Option<i32>>,
) -> AnyView {
    let these = doctor.checks.iter().filter(|c| takes(c));
    let checks: Vec<_> = these.map(|one| check(one, asks)).collect();
    if checks.is_empty() {
        return ().into_any();
    }
    view! {
        <section aria-label=title data-testid=testid>
            <div class=format!("section-head {}", tone.class())>
                {symbol(shape, "glyph")} <h2>{title}</h2> <span class="count num">{checks.len()}</span>
            </div>
            <ul class=format!("card list doctor {}", tone.class())>{checks}</ul>
        </section>
    }
    .into_any()
}

fn check(check: &Check, asks: RwSignal<Option<i32>>) -> AnyView {
    let page = page();
    let title = words::title(&check.name);
    let below = (check.name == STRAYS).then(|| {
        dynamic(move || {
            let found = page.ready.strays.get();
            (!found.is_empty()).then(|| {
                let rows: Vec<_> = found.iter().map(|one| stray(one, asks)).collect();
                view! { <ul class="strays" aria-label=strays::LIST data-testid="strays">{rows}</ul> }
            })
        })
    });
    view! {
        <li data-testid="check" data-check=check.name.clone()>
            <span class="check-name">
                <b><bdi>{title.to_owned()}</bdi></b>
                {(title != check.name).then(|| view! { " " <code>{check.name.clone()}</code> })}
            </span>
            <span>
                <bdi>{shown(&check.detail).into_owned()}</bdi>
                {check.hint.as_deref().map(|hint| view! {
                    <span class="hint">{remedy(hint)}</span>
                })}
            </span>
            {(check.name == TRUST && !check.status.is(&CheckStatus::Ok)).then(|| view! {
                <a class="btn btn-soft check-act" href=browser::href("/ui/projects?trust=untrusted") data-testid="check-trust">
                    {icon("shield", 16)} {launch::TRUST_DOTS}
                </a>
            })}
            {(check.name == SIGN_IN && !check.status.is(&CheckStatus::Ok)).then(|| view! {
                <span class="check-act">{open_button(page)}</span>
            })}
            {below}
            {(check.name == KEEPERS).then(|| keepers::list(asks))}
        </li>
    }
    .into_any()
}

/// How many checks there are of each kind.
fn summary(doctor: &Doctor) -> String {
    let [blocking, warnings, decisions, passed] =
        GROUPS.map(|(_, _, _, _, takes)| doctor.checks.iter().filter(|check| takes(check)).count());
    words::summary(blocking, warnings, decisions, passed)
}

/// What to do, with a button beside each command in it.
fn remedy(hint: &str) -> Vec<AnyView> {
    let parts = hint.split('`').enumerate();
    parts
        .map(|(at, part)| {
            let text = shown(part).into_owned();
            match (at % 2, part.contains(' ')) {
                (0, _) => view! { <bdi>{text}</bdi> }.into_any(),
                (_, false) => view! { <code>{text}</code> }.into_any(),
                (_, true) => view! {
                    <span class="command"><Copyable shown=text full=part what=field::COMMANDS /></span>
                }
                .into_any(),
            }
        })
        .collect()
}

/// A process without a live bridge, and its end.
fn stray(stray: &Stray, asks: RwSignal<Option<i32>>) -> AnyView {
    let page = page();
    let pid = stray.pid;
    let object = StoredValue::new(strays::object(pid, &shown(&stray.program)));
    let button = format!("[data-pid=\"{pid}\"] [data-testid=act-end-stray]");
    let close = Callback::new(move |()| {
        asks.set(None);
        let button = button.clone();
        browser::after_paint(move || {
            browser::focus(&button);
        });
    });
    let on_yes = Callback::new(move |()| {
        close.run(());
        page.end_stray(pid, object.get_value());
    });
    let on_act = Callback::new(move |()| asks.set(Some(pid)));
    let is_pending = derived(move || page.pending.has(&act::stray(pid)));
    let name = derived(move || named(strays::END, &object.get_value()));
    let kind = match stray.kind.as_str() {
        "leftover" => strays::LEFTOVER,
        "duplicate" => strays::DUPLICATE,
        other => other,
    };
    view! {
        <li data-testid="stray" data-pid=pid.to_string()>
            <span>
                <b><bdi>{object.get_value()}</bdi></b>
                {fact(kind)}
                {fact(stray.project.as_deref().unwrap_or(strays::NO_PROJECT))}
                {fact(&memory(stray.rss_bytes))}
                <span class="fact"><Age since=Signal::stored(stray.started_at) /></span>
            </span>
            {dynamic(move || if asks.get() == Some(pid) {
                view! {
                    <Confirm
                        verb=strays::END object=object.get_value() rest=strays::QUESTION on_yes=on_yes
                        on_no=close
                    />
                }
                .into_any()
            } else {
                view! {
                    <ActButton
                        label=strays::END name=name on_act=on_act is_pending=is_pending
                        testid="act-end-stray"
                    />
                }
                .into_any()
            })}
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
