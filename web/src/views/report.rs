//! The card that tells why a session or job stopped.
//!
//! How that is known, and what to do.

use crate::api;
use crate::model::problem::Problem;
use crate::model::report::Report;
use crate::model::shown::shown;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::icon;
use crate::reactive::{dynamic, effect};
use crate::text::page::session::field;
use crate::text::report as said;
use crate::views::copy::{Copyable, copy};
use crate::views::prose::sentence;
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::sync::Arc;
use std::time::Duration;
use svc_shared::internal::report::{LastOutput, NextStep};
use svc_shared::paths;

/// How long a new end must stay before its report is read.
///
/// A restart ends a session and goes on with it at once: then there is nothing to report.
const SETTLES: Duration = Duration::from_millis(500);

/// The card, which reads the report whenever another end is shown.
#[component]
pub fn ReportCard(
    /// Id of the session or job.
    id: String,
    /// What tells one end from another; `None` while it runs.
    #[prop(into)]
    end: Signal<Option<String>>,
    /// Whether another card says the cause already.
    has_cause: bool,
) -> impl IntoView {
    let found = RwSignal::new(None::<Result<Arc<Report>, Problem>>);
    let path = StoredValue::new(paths::report(&id));
    let read = move || {
        spawn_local(async move {
            let Some(path) = path.try_get_value() else { return };
            let report = api::get::<Report>(&path).await.map(Arc::new);
            let _ = found.try_set(Some(report)); // the page may have left
        });
    };
    let is_first = StoredValue::new(true);
    effect(move || {
        found.set(None);
        let is_first = is_first.try_update_value(std::mem::take).unwrap_or_default();
        let now = end.get();
        if now.is_none() {
            return;
        }
        if is_first {
            return read(); // it was there when the page was opened
        }
        let settled = move || {
            if end.try_get_untracked() == Some(now) {
                read();
            }
        };
        set_timeout(settled, SETTLES);
    });
    dynamic(move || match (end.try_get()??, found.try_get()??) {
        (_, Ok(report)) => Some(card(&report, has_cause)),
        (_, Err(problem)) => Some(
            view! {
                <section class="card report-card" data-testid="report-failed">
                    <p role="alert">{problem.words()}</p>
                    <button type="button" class=ButtonStyle::Ghost.class() on:click=move |_| read()>
                        {said::AGAIN}
                    </button>
                </section>
            }
            .into_any(),
        ),
    })
}

fn card(report: &Arc<Report>, has_cause: bool) -> AnyView {
    let page = page();
    let whole = Arc::clone(report);
    let press = move |_| copy(page, whole.markdown.clone(), None);
    let cause = (!has_cause).then(|| {
        view! { <p class="report-cause" data-testid="report-cause"><bdi>{shown(&report.cause).into_owned()}</bdi></p> }
    });
    let evidence = report.evidence.iter().map(|one| view! { <li>{sentence(one)}</li> });
    let evidence: Vec<_> = evidence.collect();
    let next: Vec<_> = report.next.iter().map(step).collect();
    // The cause card has the output; the log is below.
    let shows = |one: &&LastOutput| !has_cause || one.source == "screen";
    let output: Vec<_> = report.output.iter().filter(shows).map(lines).collect();
    view! {
        <section class="card report-card" aria-labelledby="report-title" data-testid="report">
            <div class="cause-body-head">
                <h2 id="report-title">{said::TITLE}</h2>
                <span class="end">
                    <button type="button" class=ButtonStyle::Ghost.class() data-testid="copy-report" on:click=press>
                        {icon("copy", 16)} {said::COPY}
                    </button>
                </span>
            </div>
            {cause}
            <div class="report-parts">
                {(!evidence.is_empty()).then(|| view! {
                    <div>
                        <h3>{said::EVIDENCE}</h3>
                        <ul data-testid="report-evidence">{evidence}</ul>
                    </div>
                })}
                {(!next.is_empty()).then(|| view! {
                    <div>
                        <h3>{said::NEXT}</h3>
                        <ul data-testid="report-next">{next}</ul>
                    </div>
                })}
            </div>
            {output}
        </section>
    }
    .into_any()
}

fn step(step: &NextStep) -> AnyView {
    let command = step.command.as_deref().map(|command| {
        let full = command.to_owned();
        view! {
            <span class="command"><Copyable shown=shown(command).into_owned() full=full what=field::COMMANDS /></span>
        }
    });
    view! { <li>{sentence(&step.says)} " " {command}</li> }.into_any()
}

fn lines(output: &LastOutput) -> AnyView {
    let text: String = output.lines.iter().map(|line| format!("{}\n", shown(line))).collect();
    let name = said::source(&output.source).to_owned();
    let label = name.clone();
    view! {
        <details data-testid="report-output">
            <summary>{name}</summary>
            <pre class="output" tabindex="0" role="region" aria-label=label><code>{text}</code></pre>
        </details>
    }
    .into_any()
}
