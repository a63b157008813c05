//! A clone while it runs, and what it brought.

use crate::api;
use crate::model::launch::Choice;
use crate::model::new_project::{self as rules, Making};
use crate::model::problem::Problem;
use crate::model::shown::shown;
use crate::model::status::Tone;
use crate::nav::nav;
use crate::page::{Sheet, page};
use crate::parts::button::ButtonStyle;
use crate::parts::icon::{icon, symbol};
use crate::reactive::{dynamic, effect, live, memo};
use crate::text::{launch, new_project as words};
use crate::views::trust::{Brings, Gate, brings};
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use svc_shared::api::projects::Project;
use svc_shared::internal::clones::{CancellingClone, CloneJob, CloneState};
use svc_shared::paths;
use svc_shared::status::TrustState;

/// The three steps of a clone, with the present one marked.
pub fn steps(now: usize) -> AnyView {
    let each = words::STEPS.into_iter().enumerate().map(|(at, label)| {
        let mark = if at < now { icon("check", 14).into_any() } else { (at + 1).into_any() };
        view! {
            <li class:done=at < now class:now=at == now aria-current=(at == now).then_some("step")>
                <span class="step-mark" aria-hidden="true">{mark}</span> {label}
            </li>
        }
    });
    view! { <ol class="wide clone-steps">{each.collect_view()}</ol> }.into_any()
}

/// Running clones, in the top bar; nothing without any.
#[component]
pub fn ClonePill() -> impl IntoView {
    let page = page();
    let under_way = memo(move || {
        let clones = page.store.clones.get();
        clones.into_values().filter(rules::is_under_way).collect::<Vec<_>>()
    });
    let open = move |_| {
        let first = under_way.with_untracked(|jobs| jobs.first().map(|job| job.job_id.clone()));
        if let Some(job) = first {
            page.sheet.set(Some(Sheet::New(Making::Clone(job))));
        }
    };
    let text = move || {
        under_way.with(|jobs| match jobs.as_slice() {
            [job] => words::cloning(&shown(&job.name), job.percent),
            many => words::cloning_several(many.len()),
        })
    };
    let is_any = memo(move || !under_way.with(Vec::is_empty));
    view! {
        {dynamic(move || is_any.get().then(|| view! {
            <button type="button" class=format!("pill {}", Tone::Info.class()) aria-haspopup="dialog" data-testid="clone-pill" on:click=open>
                {symbol("g-ring", "glyph")} <span class="words">{live(text)}</span>
            </button>
        }))}
    }
}

/// One clone: its progress, or its end.
#[component]
pub fn CloneView(job: String, on_close: Callback<()>, on_again: Callback<()>) -> impl IntoView {
    let page = page();
    let id = StoredValue::new(job);
    // The service forgets a clone a minute after its end; the sheet does not.
    let last: RwSignal<Option<CloneJob>> = RwSignal::new(None);
    effect(move || {
        let now = id.with_value(|id| page.store.clones.with(|all| all.get(id).cloned()));
        if now.is_some() {
            last.set(now);
        }
    });
    let state = memo(move || last.with(|job| job.as_ref().map(|job| job.state.to_string())));
    view! {
        {dynamic(move || {
            // Read in any case: the first time there is no record yet, and this must hear of it.
            let state = state.get();
            let is = |wanted: CloneState| state.as_deref() == Some(wanted.as_str());
            let job = last.get_untracked();
            match job {
                Some(job) if is(CloneState::Done) => {
                    let name = job.name.clone();
                    view! {
                        <Review name=name says=words::cloned(&shown(&job.name)) is_clone=true on_close=on_close />
                    }.into_any()
                }
                Some(job) if is(CloneState::Error) => {
                    view! { <Failed job=job on_close=on_close on_again=on_again /> }.into_any()
                }
                _ => view! { <Running last=last id=id on_close=on_close /> }.into_any(),
            }
        })}
    }
}

#[component]
fn Running(
    last: RwSignal<Option<CloneJob>>,
    id: StoredValue<String>,
    on_close: Callback<()>,
) -> impl IntoView {
    let page = page();
    let asks = RwSignal::new(false);
    let problem: RwSignal<Option<Problem>> = RwSignal::new(None);
    let with = move |read: fn(&CloneJob) -> String| {
        last.with(|job| job.as_ref().map(read).unwrap_or_default())
    };
    let name = move || with(|job| shown(&job.name).into_owned());
    let percent = move || last.with(|job| job.as_ref().and_then(|job| job.percent));
    let phase = memo(move || with(|job| job.phase.clone()));
    let is_waiting = memo(move || {
        last.with(|job| job.as_ref().is_none_or(|job| job.state.is(&CloneState::Waiting)))
    });
    let rows = move || {
        let done = rules::phases_done(&phase.get());
        let is_waiting = is_waiting.get();
        let row = |(at, label): (usize, &'static str)| {
            let (mark, class) = match at {
                _ if is_waiting => ("g-ring", "phase"),
                at if at < done => ("g-check-disc", "phase done"),
                at if at == done => ("g-arc", "phase now"),
                _ => ("g-ring", "phase"),
            };
            let turning = if at == done && !is_waiting { "glyph turns" } else { "glyph" };
            view! { <li class=class>{symbol(mark, turning)} {label}</li> }
        };
        words::PHASES.into_iter().enumerate().map(row).collect_view()
    };
    let cancel = move |_| {
        asks.set(false);
        let path = id.with_value(|id| paths::cancel_clone(id));
        spawn_local(async move {
            let answer = api::request(Method::POST, &path, None, None).await;
            if let Err(found) = api::understood::<CancellingClone>(answer) {
                let _ = problem.try_set(Some(found)); // the sheet may be closed by now
            }
        });
    };
    let heading = move || if is_waiting.get() { words::WAITING } else { words::CLONING };
    let shown_percent = move || percent().map(|p| format!("{p} %")).unwrap_or_default();
    view! {
        <div class="dialog-body">
            {steps(1)}
            <section class="wide card clone-card" data-testid="clone-progress" data-phase=live(move || phase.get())>
                <p class="clone-head"><b>{live(heading)} " " <bdi>{live(name)}</bdi></b> <span class="num">{live(shown_percent)}</span></p>
                <progress max="100" value=live(move || percent().map(|p| p.to_string())) aria-label=words::CLONING></progress>
                <ol class="phases">{dynamic(rows)}</ol>
            </section>
            <p class="wide muted">{words::GOES_ON}</p>
            {dynamic(move || problem.get().map(|problem| view! {
                <p class="wide help help-error" role="alert">{problem.words()}</p>
            }))}
        </div>
        <div class="dialog-foot">
            {dynamic(move || if asks.get() {
                view! {
                    <span class="says" role="alert">{words::CANCEL_SURE}</span>
                    <button type="button" class=ButtonStyle::Secondary.class() autofocus=true data-testid="clone-keep" on:click=move |_| asks.set(false)>{words::CANCEL_NO}</button>
                    <button type="button" class=ButtonStyle::Danger.class() data-testid="clone-cancel-yes" on:click=cancel>{words::CANCEL_YES}</button>
                }.into_any()
            } else {
                view! {
                    <span class="says"></span>
                    <button
                        type="button"
                        class=ButtonStyle::Secondary.class()
                        aria-disabled=live(move || page.live.is_offline.get().then_some("true"))
                        data-testid="clone-cancel"
                        on:click=move |_| asks.set(true)
                    >{words::CANCEL_CLONE}</button>
                    <button type="button" class=ButtonStyle::Secondary.class() on:click=move |_| on_close.run(())>{words::CLOSE}</button>
                }.into_any()
            })}
        </div>
    }
}

#[component]
fn Failed(job: CloneJob, on_close: Callback<()>, on_again: Callback<()>) -> impl IntoView {
    let (title, body) = match job.cancelled {
        true => (words::CANCELLED, String::new()),
        false => (words::FAILED, job.error.unwrap_or_default()),
    };
    view! {
        <div class="dialog-body">
            {steps(1)}
            <div class=format!("wide gate {}", if job.cancelled { Tone::Info } else { Tone::Danger }.class()) role="alert" data-testid="clone-failed">
                <h3>{title}</h3>
                <p><bdi>{shown(&body).into_owned()}</bdi></p>
            </div>
        </div>
        <div class="dialog-foot">
            <span class="says"></span>
            <button type="button" class=ButtonStyle::Secondary.class() on:click=move |_| on_close.run(())>{words::CLOSE}</button>
            <button type="button" class=ButtonStyle::Primary.class() data-testid="clone-again" on:click=move |_| on_again.run(())>{words::TRY_AGAIN}</button>
        </div>
    }
}

/// What a new project brings, and the way on.
///
/// Nothing is trusted before a person says so.
#[component]
pub fn Review(
    name: String,
    says: String,
    #[prop(optional)] is_clone: bool,
    on_close: Callback<()>,
) -> impl IntoView {
    let page = page();
    let nav = nav();
    let agreed = RwSignal::new(false);
    let problem: RwSignal<Option<Problem>> = RwSignal::new(None);
    let found = brings(&name);
    let name = StoredValue::new(name);
    // The record comes with the stream, perhaps a moment after the end of the clone.
    let record = memo(move || {
        let _ = page.store.count_projects();
        name.with_value(|name| page.store.project(name)).map(|record| record.get())
    });
    let is_trusted = move || {
        record.with(|record| {
            record.as_ref().is_some_and(|it| it.trust_state.is(&TrustState::Trusted))
        })
    };
    let go = move || {
        on_close.run(());
        name.with_value(|name| nav.open_launch(name, &Choice::default()));
    };
    let wants = RwSignal::new(false);
    effect(move || {
        if wants.get() && is_trusted() {
            go();
        }
    });
    let is_ready = move || {
        is_trusted()
            || (agreed.get()
                && found.with(|found| *found != Brings::Asking)
                && !page.live.is_offline.get())
    };
    let grant = move |_| {
        if untrack(is_trusted) {
            go();
            return;
        }
        if !untrack(is_ready) {
            page.say.politely(launch::WAITS_FOR_BOX);
            return;
        }
        problem.set(None);
        let path = name.with_value(|name| paths::project_action(name, "trust"));
        spawn_local(async move {
            let answer = api::request(Method::POST, &path, None, None).await;
            let trusted = api::understood::<Project>(answer);
            // The sheet may be closed by now.
            let _ = match trusted {
                Ok(_) => wants.try_set(true),
                Err(found) => problem.try_set(Some(found)).map(|_| true),
            };
        });
    };
    let verb = move || if is_trusted() { words::LAUNCH } else { words::TRUST_AND_LAUNCH };
    view! {
        <div class="dialog-body" data-testid="new-review">
            {is_clone.then(|| steps(2))}
            <p class="wide made" role="status">{symbol("g-check-disc", "glyph")} <bdi>{says}</bdi></p>
            <div class="wide">
                {dynamic(move || record.get().filter(|it| !it.trust_state.is(&TrustState::Trusted)).map(|project| view! {
                    <Gate project=project brings=found agreed=agreed />
                }))}
            </div>
            {dynamic(move || problem.get().map(|problem| view! {
                <p class="wide help help-error" role="alert">{problem.words()}</p>
            }))}
        </div>
        <div class="dialog-foot">
            <span class="says">{words::WITHOUT_TRUST}</span>
            <button type="button" class=ButtonStyle::Secondary.class() data-testid="new-later" on:click=move |_| on_close.run(())>{words::LATER}</button>
            <button
                type="button"
                class=ButtonStyle::Primary.class()
                aria-disabled=live(move || (!is_ready()).then_some("true"))
                data-testid="new-trust"
                on:click=grant
            >
                {live(verb)}
            </button>
        </div>
    }
}
