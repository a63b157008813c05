//! Tokens and costs of all projects.

use crate::api;
use crate::appear::enter;
use crate::browser;
use crate::model::problem::Problem;
use crate::model::shown::shown;
use crate::model::spending::{self, Row};
use crate::model::time;
use crate::nav::nav;
use crate::page::page;
use crate::parts::icon::{icon, symbol};
use crate::prefs;
use crate::reactive::{dynamic, effect, live, memo};
use crate::text::spending as words;
use crate::views::conversations::failed;
use crate::views::home::Loading;
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::time::Duration;
use svc_shared::Timestamp;
use svc_shared::internal::usage::{TokenBreakdown, UsageDisplay, UsageReport};
use svc_shared::paths::{self, segment};

/// Query member of the time.
const RANGE: &str = "range";

/// While transcripts are still being read, the figures are asked for again.
const AGAIN: Duration = Duration::from_secs(3);

/// The view.
#[component]
pub fn Spending() -> impl IntoView {
    let page = page();
    let nav = nav();
    enter(words::TITLE);
    let display = memo(move || {
        page.live.basics.with(|basics| basics.as_ref().map(|basics| basics.usage.clone()))
    });
    // With the time that was asked for: an answer about another one is not shown.
    let found = RwSignal::new(None::<(String, Result<UsageReport, Problem>)>);
    let range = memo(move || nav.member(RANGE));
    let ask = move || {
        let asked = range.get_untracked();
        let since = spending::since(&asked, page.clock.now());
        let path = match since {
            None => paths::USAGE.to_owned(),
            Some(at) => {
                let since = Timestamp::from_millis(at).to_string();
                format!("{}?since={}", paths::USAGE, segment(&since))
            }
        };
        spawn_local(async move {
            let answer = api::get::<UsageReport>(&path).await;
            // Left meanwhile, or another time is wanted by now.
            if range.try_get_untracked().as_ref() == Some(&asked) {
                found.try_set(Some((asked, answer)));
            }
        });
    };
    effect(move || {
        range.get();
        let is_shown = display.get().is_some_and(|display| !spending::is_off(&display));
        if is_shown && !page.live.is_offline.get() {
            ask();
        }
    });
    effect(move || {
        let is_partial =
            found.with(|found| matches!(found, Some((_, Ok(report))) if !report.complete));
        if is_partial && let Ok(timer) = set_timeout_with_handle(ask, AGAIN) {
            on_cleanup(move || timer.clear());
        }
    });
    dynamic(move || match (display.get(), found.get()) {
        (Some(display), _) if spending::is_off(&display) => {
            view! { <div class="card empty" data-testid="usage-off"><p>{words::OFF}</p></div> }
                .into_any()
        }
        (Some(display), Some((asked, Ok(report)))) => whole(report, display, asked),
        (_, Some((_, Err(problem)))) => failed(&problem, Callback::new(move |()| ask())),
        (_, None) | (None, _) => view! { <Loading /> }.into_any(),
    })
}

fn whole(report: UsageReport, display: UsageDisplay, asked: String) -> AnyView {
    let nav = nav();
    let has_money = spending::has_money(&display);
    let range = memo(move || nav.member(RANGE));
    // Another time was chosen, and its figures are on their way.
    let is_old = memo(move || range.with(|range| *range != asked));
    let choices: Vec<AnyView> = words::RANGES
        .map(|(value, label)| {
            view! {
                <button
                    type="button" class="filter" data-testid="usage-range"
                    aria-pressed=live(move || (range.get() == value).to_string())
                    on:click=move |_| nav.set_query(&[(RANGE, value)], true)
                >{label}</button>
            }
            .into_any()
        })
        .into();
    let clock = report.as_of.map(|at| time::clock(at, prefs::zone(at.as_millis())));
    let text = spending::csv(&report, &display);
    let rows = spending::rows(&report, has_money);
    view! {
        <div class="spending" data-testid="usage" aria-busy=live(move || is_old.get().to_string())>
            <div class="toolbar">
                <div class="filters" role="group" aria-label=words::RANGE>{choices}</div>
                <div class="end sort">
                    <span class="num" role="status">{words::as_of(clock.as_deref(), report.pending_files)}</span>
                    <button type="button" class="btn btn-secondary" data-testid="usage-csv" disabled=live(move || is_old.get()) on:click=move |_| browser::download(words::CSV_NAME, &text)>
                        {icon("download", 16)} {words::CSV}
                    </button>
                </div>
            </div>
            {figures(&report, &display)}
            <div class="spending-parts">
                {if rows.is_empty() {
                    view! { <div class="card empty"><p>{words::EMPTY}</p></div> }.into_any()
                } else {
                    table(&rows, &report, &display)
                }}
                <div class="spending-side">{models(&report, &display)} {how(has_money)}</div>
            </div>
        </div>
    }
    .into_any()
}

fn figures(report: &UsageReport, display: &UsageDisplay) -> AnyView {
    let tokens = report.totals.token_breakdown;
    let mut all = Vec::new();
    if spending::has_money(display) {
        all.push((spending::money(report.totals.cost_usd, display), words::COST_FIGURE));
    }
    all.extend([
        (spending::tokens(tokens.input), words::INPUT_FIGURE),
        (spending::tokens(tokens.output), words::OUTPUT_FIGURE),
        (spending::tokens(tokens.cache_creation), words::WRITTEN_FIGURE),
        (spending::tokens(tokens.cache_read), words::READ_FIGURE),
    ]);
    let all: Vec<AnyView> = all
        .into_iter()
        .map(|(figure, label)| {
            view! { <div><dd class="num">{figure}</dd><dt>{label}</dt></div> }.into_any()
        })
        .collect();
    view! { <dl class="card figures" data-testid="usage-figures">{all}</dl> }.into_any()
}

fn cells(tokens: TokenBreakdown) -> AnyView {
    [
        (words::INPUT, tokens.input),
        (words::OUTPUT, tokens.output),
        (words::WRITTEN, tokens.cache_creation),
        (words::READ, tokens.cache_read),
    ]
    .map(|(label, n)| {
        view! { <td class="num" data-label=label title=n.to_string()>{spending::tokens(n)}</td> }
            .into_any()
    })
    .into_iter()
    .collect_view()
    .into_any()
}

fn table(rows: &[Row], report: &UsageReport, display: &UsageDisplay) -> AnyView {
    let has_money = spending::has_money(display);
    let money = |dollars: f64| {
        has_money.then(|| {
            view! { <td class="num" data-label=words::COST>{spending::money(dollars, display)}</td> }
        })
    };
    let lines: Vec<AnyView> = rows
        .iter()
        .map(|row| {
            let href = format!("{}?tab=conversations", browser::project_href(&row.name));
            view! {
                <tr data-testid="usage-row">
                    <th scope="row"><a href=href><bdi>{shown(&row.name).into_owned()}</bdi></a></th>
                    {cells(row.usage.token_breakdown)} {money(row.usage.cost_usd)}
                    <td class="only-wide" aria-hidden="true">{bar(row.share)}</td>
                </tr>
            }
            .into_any()
        })
        .collect();
    let totals = &report.totals;
    view! {
        <div class="card spending-table" tabindex="0" role="group" aria-label=words::TITLE>
            <table>
                <thead><tr>
                    <th scope="col">{words::PROJECT}</th>
                    <th scope="col">{words::INPUT}</th><th scope="col">{words::OUTPUT}</th>
                    <th scope="col">{words::WRITTEN}</th><th scope="col">{words::READ}</th>
                    {has_money.then(|| view! { <th scope="col">{words::COST}</th> })}
                    <td class="only-wide"></td>
                </tr></thead>
                <tbody>{lines}</tbody>
                <tfoot><tr>
                    <th scope="row">{words::SUM}</th>
                    {cells(totals.token_breakdown)} {money(totals.cost_usd)}
                    <td class="only-wide"></td>
                </tr></tfoot>
            </table>
        </div>
    }
    .into_any()
}

fn bar(percent: u32) -> AnyView {
    view! { <span class="meter"><span style:width=format!("{percent}%")></span></span> }.into_any()
}

fn models(report: &UsageReport, display: &UsageDisplay) -> AnyView {
    let has_money = spending::has_money(display);
    let unpriced = &report.totals.unpriced_models;
    let all: Vec<AnyView> = spending::models(report)
        .into_iter()
        .map(|(name, tokens, dollars, percent)| {
            let is_unpriced = unpriced.contains(&name);
            let cost = (has_money && !is_unpriced).then(|| spending::money(dollars, display) + " · ");
            let warning = (has_money && is_unpriced).then(|| {
                let text = words::unpriced(&shown(&name), &spending::tokens(tokens));
                view! { <p class="tone-warn unpriced">{symbol("g-triangle", "glyph")} <span>{text}</span></p> }
            });
            view! {
                <li>
                    <span class="model"><b><bdi>{shown(&name).into_owned()}</bdi></b> <span class="num">{cost} {words::share(percent)}</span></span>
                    {bar(percent)} {warning}
                </li>
            }
            .into_any()
        })
        .collect();
    if all.is_empty() {
        return ().into_any();
    }
    view! { <section class="card aside" data-testid="usage-models"><h2>{words::MODELS}</h2><ul class="models">{all}</ul></section> }
        .into_any()
}

fn how(has_money: bool) -> AnyView {
    has_money
        .then(|| view! { <section class="card aside"><h2>{words::HOW}</h2><p>{words::HOW_TEXT}</p></section> })
        .into_any()
}
