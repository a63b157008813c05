//! Posts of events: their targets, what became of the last ones, and a test.

use crate::api;
use crate::browser;
use crate::model::outcome::{Level, Notice};
use crate::model::problem::Problem;
use crate::model::shown::shown;
use crate::model::status::Tone;
use crate::model::wire;
use crate::page::{Page, page};
use crate::parts::icon::symbol;
use crate::reactive::{derived, dynamic};
use crate::text::notifications as list;
use crate::text::session::named;
use crate::text::webhooks as words;
use crate::views::act_button::ActButton;
use crate::views::times::Age;
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use svc_shared::internal::webhooks::{
    PostState, ReplayWebhooks, ReplayedWebhooks, TestWebhook, WebhookPost, WebhookReport,
    WebhookTarget, WebhookTests,
};
use svc_shared::paths;

/// The report, and how it is read again.
#[derive(Clone, Copy)]
struct Shown {
    report: RwSignal<Option<Result<WebhookReport, Problem>>>,
    is_busy: RwSignal<bool>,
}

impl Shown {
    fn read(self) {
        spawn_local(async move {
            let found = api::get(paths::WEBHOOKS).await;
            // The view may be gone by now.
            let _ = self.report.try_set(Some(found));
        });
    }

    /// Asks for something, says what came of it, and reads the report again.
    fn ask(self, path: &'static str, body: Option<String>, told: fn(Page, &str)) {
        if self.is_busy.get_untracked() {
            return;
        }
        let page = page();
        self.is_busy.set(true);
        spawn_local(async move {
            match api::request(Method::POST, path, body, None).await {
                Ok((_, text)) => told(page, &text),
                Err(problem) => {
                    page.say.notice(Notice::new(Level::Danger, problem.words(), String::new()));
                }
            }
            let found = api::get(paths::WEBHOOKS).await;
            let _ = self.report.try_set(Some(found)); // the view may be gone by now
            let _ = self.is_busy.try_set(false);
        });
    }

    fn test(self, entry: usize) {
        let body = serde_json::to_string(&TestWebhook { entry: Some(entry) }).ok();
        self.ask(paths::TEST_WEBHOOK, body, tell_tested);
    }

    fn replay(self, entry: usize) {
        let wanted = ReplayWebhooks { entry: Some(entry), since: None };
        self.ask(paths::REPLAY_WEBHOOKS, serde_json::to_string(&wanted).ok(), |page, text| {
            if let Ok(ReplayedWebhooks { replayed }) = wire::read(text) {
                page.say.done(words::replayed(replayed));
            }
        });
    }
}

fn tell_tested(page: Page, text: &str) {
    let tested = wire::read::<WebhookTests>(text).map(|all| all.tested).unwrap_or_default();
    let taken = tested.iter().filter(|one| one.is_accepted()).count();
    let said = list::tested(taken, tested.len());
    match tested.iter().find(|one| !one.is_accepted()) {
        None => page.say.done(said),
        Some(failed) => {
            page.say.notice(Notice::new(Level::Danger, said, words::reason(failed)));
        }
    }
}

/// The section.
#[component]
pub fn Webhooks() -> impl IntoView {
    let shown = Shown { report: RwSignal::new(None), is_busy: RwSignal::new(false) };
    shown.read();
    dynamic(move || match shown.report.get() {
        None => ().into_any(),
        Some(Err(problem)) => view! {
            <p class="strip tone-danger" role="alert">{problem.words()}</p>
        }
        .into_any(),
        Some(Ok(report)) => section(shown, &report),
    })
}

fn section(all: Shown, report: &WebhookReport) -> AnyView {
    let rows: Vec<_> = report.targets.iter().map(|target| row(all, report, target)).collect();
    let table = match rows.is_empty() {
        true => view! { <p class="card none muted">{words::NO_TARGET}</p> }.into_any(),
        false => view! {
            <table class="card grid-table" data-testid="webhook-targets">
                <thead><tr>
                    <th scope="col">{words::TARGET}</th>
                    <th scope="col">{words::LAST}</th>
                    <th scope="col">{words::STATE}</th>
                    <td></td>
                </tr></thead>
                <tbody>{rows}</tbody>
            </table>
            <p class="muted below">{words::MASKED}</p>
        }
        .into_any(),
    };
    view! {
        <section aria-labelledby="webhooks" data-testid="webhooks">
            <div class="section-head">
                <h2 id="webhooks">{words::TITLE}</h2>
                <span class="end"><a href=browser::href("/ui/settings")>{list::SETTINGS}</a></span>
            </div>
            <p class="muted below" data-testid="posted">{words::told(report)}</p>
            {table}
        </section>
    }
    .into_any()
}

fn row(all: Shown, report: &WebhookReport, target: &WebhookTarget) -> AnyView {
    let entry = target.entry;
    let object = words::object(entry);
    let mut posts = target.posts.iter();
    let (last, state) = match posts.next() {
        None => (view! { <span class="muted">{words::NONE}</span> }.into_any(), ().into_any()),
        Some(post) => (made(post), outcome(post)),
    };
    let earlier: Vec<_> =
        posts.map(|post| view! { <li>{made(post)} " " {outcome(post)}</li> }.into_any()).collect();
    let earlier = (!earlier.is_empty()).then(|| {
        view! {
            <details>
                <summary>{list::earlier(earlier.len())}</summary>
                <ul>{earlier}</ul>
            </details>
        }
    });
    let counts = words::counts(target.waiting, target.failed);
    let counts = counts.map(|text| view! { <span class="also">{text}</span> });
    let is_busy = derived(move || all.is_busy.try_get().unwrap_or_default());
    let can_replay = report.outbox && target.failed > 0;
    let replay_name = Signal::stored(named(words::REPLAY, &object));
    view! {
        <tr data-testid="webhook-target" data-entry=entry.to_string()>
            <th scope="row"><bdi>{shown(&target.target).into_owned()}</bdi></th>
            <td data-label=words::LAST>{last} {earlier}</td>
            <td data-label=words::STATE>{state} {counts}</td>
            <td class="acts">
                {can_replay.then(|| view! {
                    <ActButton
                        label=words::REPLAY name=replay_name
                        on_act=Callback::new(move |()| all.replay(entry))
                        is_pending=is_busy testid="replay-webhook"
                    />
                })}
                <ActButton
                    label=list::TEST name=Signal::stored(named(list::TEST, &object))
                    on_act=Callback::new(move |()| all.test(entry))
                    is_pending=is_busy testid="test-webhook"
                />
            </td>
        </tr>
    }
    .into_any()
}

fn made(post: &WebhookPost) -> AnyView {
    view! {
        <span>
            {post.event.clone()} " "
            <span class="muted"><Age since=Signal::stored(post.at) /></span>
        </span>
    }
    .into_any()
}

fn outcome(post: &WebhookPost) -> AnyView {
    let (shape, tone) = match post.state {
        PostState::Delivered => ("g-check-disc", Tone::Ok),
        PostState::Failed => ("g-octagon", Tone::Danger),
        PostState::Waiting => ("g-dot", Tone::Neutral),
    };
    let reason = post.reason.as_ref().map(|why| {
        view! { <span class="also"><bdi>{shown(why).into_owned()}</bdi></span> }
    });
    view! {
        <span class=tone.class() data-state=words::state(post.state)>
            {symbol(shape, "glyph")} " " {words::state(post.state)}
        </span>
        {reason}
    }
    .into_any()
}
