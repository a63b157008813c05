//! Notifications: of this browser, and through services.

use crate::api;
use crate::appear::enter;
use crate::browser;
use crate::model::outcome::{Level, Notice};
use crate::model::problem::Problem;
use crate::model::shown::shown;
use crate::model::status::Tone;
use crate::model::wire;
use crate::page::page;
use crate::parts::icon::symbol;
use crate::reactive::{derived, dynamic};
use crate::text::notifications as words;
use crate::text::session::named;
use crate::views::act_button::ActButton;
use crate::views::notify::NotifySwitch;
use crate::views::push::{PushSwitch, devices};
use crate::views::times::Age;
use crate::views::webhooks::Webhooks;
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use svc_shared::internal::notifications::{
    DeliveryState, NotificationDelivery, NotificationReport, NotificationTarget, NotificationTests,
    TestNotification,
};
use svc_shared::paths;

/// The report, and how it is read again.
#[derive(Clone, Copy)]
struct Shown {
    report: RwSignal<Option<Result<NotificationReport, Problem>>>,
    /// A test is under way: of an entry, or of all (0).
    tests: RwSignal<Option<usize>>,
}

impl Shown {
    fn read(self) {
        spawn_local(async move {
            let found = api::get(paths::NOTIFICATIONS).await;
            // The view may be gone by now.
            let _ = self.report.try_set(Some(found));
        });
    }

    /// Sends a test, says what came of it, and reads the report again.
    fn test(self, entry: Option<usize>) {
        if self.tests.get_untracked().is_some() {
            return;
        }
        let page = page();
        self.tests.set(Some(entry.unwrap_or_default()));
        spawn_local(async move {
            let body = serde_json::to_string(&TestNotification { entry }).ok();
            let answer = api::request(Method::POST, paths::TEST_NOTIFICATION, body, None).await;
            match answer {
                Ok((_, text)) => {
                    let tested = wire::read::<NotificationTests>(&text);
                    let tested = tested.map(|all| all.tested).unwrap_or_default();
                    let is_taken = |state: DeliveryState| matches!(state, DeliveryState::Accepted);
                    let taken = tested.iter().filter(|one| is_taken(one.outcome.state)).count();
                    let said = words::tested(taken, tested.len());
                    if taken == tested.len() {
                        page.say.done(said);
                    } else {
                        let failed = tested.iter().find(|one| !is_taken(one.outcome.state));
                        let why = failed.and_then(|one| one.outcome.reason.clone());
                        let why = why.unwrap_or_default();
                        page.say.notice(Notice::new(Level::Danger, said, why));
                    }
                }
                Err(problem) => {
                    page.say.notice(Notice::new(Level::Danger, problem.words(), String::new()));
                }
            }
            let found = api::get(paths::NOTIFICATIONS).await;
            let _ = self.report.try_set(Some(found)); // the view may be gone by now
            let _ = self.tests.try_set(None);
        });
    }
}

/// The view.
#[component]
pub fn Notifications() -> impl IntoView {
    enter(words::TITLE);
    let page = page();
    let shown = Shown { report: RwSignal::new(None), tests: RwSignal::new(None) };
    shown.read();
    let is_known = derived(move || page.live.basics.with(Option::is_some));
    view! {
        <section class="card page-card prefs" aria-labelledby="this-device" data-testid="this-device">
            <h2 id="this-device">{words::DEVICE}</h2>
            {dynamic(move || is_known.get().then(|| view! {
                <PushSwitch on_change=Callback::new(move |()| shown.read()) />
                <NotifySwitch />
            }))}
        </section>
        {dynamic(move || match shown.report.get() {
            None => view! { <p class="muted" role="status">{words::ASKING}</p> }.into_any(),
            Some(Err(problem)) => view! {
                <p class="strip tone-danger" role="alert">{problem.words()}</p>
            }.into_any(),
            Some(Ok(report)) => {
                let all = report.push_enabled.then_some(report.devices.as_slice());
                let devices = devices(all, Callback::new(move |()| shown.read()));
                view! { {devices} {services(shown, &report)} }.into_any()
            }
        })}
        <Webhooks />
    }
}

fn services(shown: Shown, report: &NotificationReport) -> AnyView {
    let is_testable = report.targets.iter().any(|target| target.problem.is_none());
    let rows: Vec<_> = report.targets.iter().map(|target| row(shown, target)).collect();
    let told = match report.enabled {
        true => words::told(&report.events),
        false => words::OFF.to_owned(),
    };
    let quiet = report.quiet_hours.as_ref().map(|hours| {
        let text = words::quiet(hours, report.is_quiet, report.held);
        view! { <p class="muted below" data-testid="quiet">{text}</p> }
    });
    let table = match rows.is_empty() {
        true => view! { <p class="card none muted">{words::NO_TARGET}</p> }.into_any(),
        false => view! {
            <table class="card grid-table" data-testid="notification-targets">
                <thead><tr>
                    <th scope="col">{words::SERVICE}</th>
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
    let all = Signal::stored(words::TEST_ALL.to_owned());
    view! {
        <section aria-labelledby="services" data-testid="notification-services">
            <div class="section-head">
                <h2 id="services">{words::SERVICES}</h2>
                <span class="end">
                    <a href=browser::href("/ui/settings")>{words::SETTINGS}</a>
                    {is_testable.then(|| view! {
                        <ActButton
                            label=words::TEST_ALL name=all
                            on_act=Callback::new(move |()| shown.test(None))
                            is_pending=derived(move || shown.tests.try_get().flatten().is_some())
                            testid="test-all"
                        />
                    })}
                </span>
            </div>
            <p class="muted below" data-testid="told">{told}</p>
            {quiet}
            {table}
        </section>
    }
    .into_any()
}

fn row(all: Shown, target: &NotificationTarget) -> AnyView {
    let entry = target.entry;
    if let Some(problem) = &target.problem {
        return view! {
            <tr data-testid="notification-target" data-entry=entry.to_string()>
                <th scope="row">{entry}</th>
                <td data-label=words::LAST></td>
                <td data-label=words::STATE>
                    <span class="late tone-warn">{symbol("g-triangle", "glyph")} {words::DISABLED}</span>
                    <span class="also">{shown(problem).into_owned()}</span>
                </td>
                <td></td>
            </tr>
        }
        .into_any();
    }
    let object = words::object(entry, &target.service);
    let name = Signal::stored(named(words::TEST, &object));
    let mut deliveries = target.deliveries.iter();
    let (last, state) = match deliveries.next() {
        None => (view! { <span class="muted">{words::NONE}</span> }.into_any(), ().into_any()),
        Some(delivery) => (made(delivery), outcome(delivery)),
    };
    let earlier: Vec<_> = deliveries
        .map(|delivery| view! { <li>{made(delivery)} {outcome(delivery)}</li> }.into_any())
        .collect();
    let earlier = (!earlier.is_empty()).then(|| {
        view! {
            <details>
                <summary>{words::earlier(earlier.len())}</summary>
                <ul>{earlier}</ul>
            </details>
        }
    });
    view! {
        <tr data-testid="notification-target" data-entry=entry.to_string()>
            <th scope="row">
                <bdi>{target.service.clone()}</bdi>
                <span class="also muted"><bdi>{shown(&target.target).into_owned()}</bdi></span>
            </th>
            <td data-label=words::LAST>{last} {earlier}</td>
            <td data-label=words::STATE>{state}</td>
            <td class="acts">
                <ActButton
                    label=words::TEST name=name
                    on_act=Callback::new(move |()| all.test(Some(entry)))
                    is_pending=derived(move || all.tests.try_get().flatten().is_some())
                    testid="test-target"
                />
            </td>
        </tr>
    }
    .into_any()
}

/// What was told, and when.
pub fn made(delivery: &NotificationDelivery) -> AnyView {
    view! {
        <span>
            <bdi>{shown(&delivery.title).into_owned()}</bdi> " "
            <span class="muted"><Age since=Signal::stored(delivery.at) /></span>
        </span>
    }
    .into_any()
}

/// What became of it.
pub fn outcome(delivery: &NotificationDelivery) -> AnyView {
    let (shape, tone) = match delivery.state {
        DeliveryState::Accepted => ("g-check-disc", Tone::Ok),
        DeliveryState::Failed => ("g-octagon", Tone::Danger),
        DeliveryState::Waiting | DeliveryState::Sent | DeliveryState::Withdrawn => {
            ("g-dot", Tone::Neutral)
        }
    };
    let reason = delivery.reason.as_ref().map(|why| {
        view! { <span class="also"><bdi>{shown(why).into_owned()}</bdi></span> }
    });
    view! {
        <span class=tone.class() data-state=words::state(delivery.state)>
            {symbol(shape, "glyph")} " " {words::state(delivery.state)}
        </span>
        {reason}
    }
    .into_any()
}
