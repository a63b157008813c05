//! Row of a background job.

use crate::act::Target;
use crate::browser;
use crate::model::job::{self, Job, JobView as _};
use crate::model::shown::shown;
use crate::page::{Page, page};
use crate::parts::button::ButtonStyle;
use crate::parts::confirm::Confirm;
use crate::parts::menu::{Does, Entry, Menu};
use crate::reactive::{derived, dynamic, memo};
use crate::store::JOB;
use crate::text::job as words;
use crate::text::page::link;
use crate::text::session::{act, named};
use crate::views::act_button::ActButton;
use crate::views::copy::copy;
use crate::views::remote::{ActivityFact, LimitFact};
use crate::views::report::ReportCard;
use crate::views::row::{Row, fact};
use crate::views::times::When;
use leptos::prelude::*;
use std::sync::Arc;

/// The row of a job.
///
/// `open` is set where prompt and result can be read, and says whether they are unfolded.
pub fn job_row(id: String, open: Option<bool>) -> AnyView {
    let page = page();
    let href = browser::href(&job::path(&id));
    let key = format!("{JOB}{id}");
    let Some(first) = untrack(|| page.store.job(&id)) else {
        return ().into_any();
    };
    // A job that is gone is shown as it was until its row is taken away, in the same step.
    let job = Memo::new(move |last: Option<&Arc<Job>>| {
        page.store.job(&id).or_else(|| last.cloned()).unwrap_or_else(|| Arc::clone(&first))
    });
    let label = memo(move || {
        let label = job.with(|job| job.label());
        (!label.is_empty()).then(|| shown(&label).into_owned())
    });
    let updated = memo(move || job.with(|job| job.changed_at()));
    let facts = memo(move || job.with(|job| job.facts()));
    let remote = memo(move || job.with(|job| job.remote_registered));
    let limit = derived(move || job.with(|job| job.limit.clone()));
    let activity = derived(move || job.with(|job| job.activity.clone()));
    let answer = memo(move || job.with(|job| job.answer()));
    let end = memo(move || {
        job.with(|job| (!job.is_live()).then(|| format!("{} {}", job.state, job.updated_at)))
    });
    Row {
        key,
        testid: "job-row",
        instance: None,
        project: derived(move || job.with(|job| job.project.clone().unwrap_or_default())),
        status: derived(move || job.with(|job| job.state.clone())),
        href,
        face: memo(move || job.with(|job| job::face(&job.state))),
        name: memo(move || job.with(|job| shown(&job.object()).into_owned())),
        label,
        kind: memo(|| words::KIND.to_owned()),
        chips: dynamic(move || {
            remote.get().then(|| view! { <span class="chip">{words::REMOTE}</span> })
        })
        .into_any(),
        facts: view! {
            {dynamic(move || label.get().map(|label| view! {
                <span class="fact only-phone"><bdi>{label}</bdi></span>
            }))}
            {dynamic(move || facts.get().iter().map(|text| fact(text)).collect_view())}
            <ActivityFact activity=activity /> <LimitFact limit=limit />
            {dynamic(move || updated.get().map(|at| view! {
                <span class="fact"><When at=Signal::stored(at) /></span>
            }))}
        }
        .into_any(),
        used: ().into_any(),
        actions: view! { <JobActions job=job /> }.into_any(),
        below: view! {
            {dynamic(move || answer.get().map(|(how, command)| view! {
                <p class="below-row" data-testid="job-answer">{how} " " <code><bdi>{command}</bdi></code></p>
            }))}
            {open.map(|open| view! { <Texts job=job is_open=open /> })}
            {(open == Some(true)).then(|| view! {
                <ReportCard id=job.with_untracked(|job| job.id.to_string()) end=end has_cause=false />
            })}
        }
        .into_any(),
    }
    .view()
}

#[component]
fn Texts(job: Memo<Arc<Job>>, is_open: bool) -> impl IntoView {
    let texts = memo(move || job.with(|job| (job.intent.clone(), job.result.clone())));
    view! {
        {dynamic(move || {
            let (prompt, result) = texts.get();
            if prompt.is_empty() && result.is_none() {
                return ().into_any();
            }
            let title = if result.is_some() { words::MORE } else { words::PROMPT };
            let prompt = (!prompt.is_empty()).then(|| view! {
                <p class="prose" data-testid="job-prompt"><bdi>{shown(&prompt).into_owned()}</bdi></p>
            });
            let result = result.map(|text| view! {
                <p class="prose job-result" tabindex="0" role="region" aria-label=words::RESULT data-testid="job-result">
                    <bdi>{shown(&text).into_owned()}</bdi>
                </p>
            });
            view! {
                <details class="below-row" open=is_open data-testid="job-texts">
                    <summary>{title}</summary> {prompt} {result}
                </details>
            }
            .into_any()
        })}
    }
}

#[component]
fn JobActions(job: Memo<Arc<Job>>) -> impl IntoView {
    let page = page();
    let asks_stop = RwSignal::new(false);
    let target = memo(move || job.with(|job| Target::of_job(job)));
    let is_live = memo(move || job.with(|job| job.is_live()));
    let close = Callback::new(move |()| {
        // With its row gone, as after a stop, there is nothing to go back to.
        let Some(Target { id, .. }) = target.try_get_untracked() else { return };
        asks_stop.set(false);
        browser::after_paint(move || {
            browser::focus(&format!("[data-row=\"{JOB}{id}\"] [data-testid=act-more]"));
        });
    });
    let on_yes = Callback::new(move |()| {
        asks_stop.set(false);
        page.stop_job(target.get_untracked());
    });
    let name_of =
        move |verb: &'static str| derived(move || named(verb, &target.with(|t| t.project.clone())));
    let is_pending = derived(move || page.pending.has(&target.get().id));
    let on_stop = Callback::new(move |()| asks_stop.set(true));
    let on_resume = Callback::new(move |()| page.resume_job(target.get_untracked(), false));
    let refused = derived(move || job.with(|job| job.resume_refused().map(str::to_owned)));
    let main = move || {
        if is_live.get() {
            view! {
                <ActButton
                    label=act::STOP name=name_of(act::STOP) on_act=on_stop look=ButtonStyle::Ghost
                    is_pending=is_pending testid="act-stop"
                />
            }
            .into_any()
        } else {
            view! {
                <ActButton
                    label=act::RESUME name=name_of(act::RESUME) on_act=on_resume look=ButtonStyle::Soft
                    symbol=Some("resume") reason=refused is_pending=is_pending testid="act-resume"
                />
            }
            .into_any()
        }
    };
    let entries = Callback::new(move |()| menu(page, &job.get_untracked()));
    let of = derived(move || target.with(|target| target.project.clone()));
    view! {
        {dynamic(move || {
            if !asks_stop.get() {
                // The menu stays open when the button beside it changes.
                return view! { {dynamic(main)} <Menu of=of entries=entries /> }.into_any();
            }
            let object = target.get_untracked().project;
            view! { <Confirm verb=act::STOP object=object rest=words::STOP_QUESTION on_yes=on_yes on_no=close /> }
                .into_any()
        })}
    }
}

fn menu(page: Page, job: &Job) -> Vec<Entry> {
    let entry = |label, does, testid| Entry { label, does, testid, class: "" };
    let copies = |text: String| Does::Run(Callback::new(move |()| copy(page, text.clone(), None)));
    let verb = if job.is_live() { "stop" } else { "resume" };
    let mut entries = vec![
        entry(act::COPY_ID, copies(job.id.to_string()), "menu-copy-id"),
        entry(
            act::COPY_COMMAND,
            copies(format!("svc jobs {verb} {}", job.id)),
            "menu-copy-command",
        ),
    ];
    if let Some((_, command)) = job.answer() {
        entries.push(entry(words::COPY_ANSWER, copies(command), "menu-copy-answer"));
    }
    if let Some(session) = &job.session_ref {
        entries.push(entry(act::COPY_REF, copies(session.to_string()), "menu-copy-ref"));
    }
    let key = format!("{JOB}{}", job.id);
    let select = Does::Run(Callback::new(move |()| page.select(&key)));
    entries.push(Entry {
        class: "only-touch",
        ..entry(crate::text::bulk::SELECT, select, "menu-select")
    });
    if !job.is_live() {
        let does = if page.live.is_offline.get_untracked() {
            Does::Refuses(link::OFFLINE.to_owned())
        } else {
            let target = Target::of_job(job);
            Does::Run(Callback::new(move |()| page.remove_job(target.clone())))
        };
        entries.push(entry(words::REMOVE, does, "menu-remove"));
    }
    entries
}
