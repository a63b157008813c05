//! Link and activity of a bridge, and conversations that lost their bridge.

use crate::act;
use crate::api;
use crate::model::shown::shown;
use crate::page::page;
use crate::reactive::{derived, dynamic, effect, memo};
use crate::text::ready::{link, stranded as words};
use crate::text::session::named;
use crate::views::act_button::ActButton;
use crate::views::row::fact;
use crate::views::times::{Age, absolute, clock_or_date};
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::sync::Arc;
use svc_shared::api::activity::Activity;
use svc_shared::api::instances::Instance;
use svc_shared::api::limits::PlanLimit;
use svc_shared::api::stranded::StrandedSession;
use svc_shared::paths;
use svc_shared::status::{ActivityState, StrandedState};

/// What a person should know of a bridge besides its status.
#[component]
pub fn RemoteFacts(
    /// The record.
    bridge: Signal<Arc<Instance>>,
) -> impl IntoView {
    let lost = memo(move || {
        let bridge = bridge.get();
        bridge.link.is_down().then(|| bridge.link.reason.clone().unwrap_or_default())
    });
    let since = derived(move || {
        let bridge = bridge.get();
        bridge.link.since.unwrap_or(bridge.status_since)
    });
    let activity = derived(move || bridge.get().activity.clone());
    let count = memo(move || bridge.get().stranded);
    let limit = derived(move || bridge.get().limit.clone());
    view! {
        <ActivityFact activity=activity /> <LimitFact limit=limit />
        {dynamic(move || lost.get().map(|reason| view! {
            <span class="fact fact-notice" data-testid="link-lost">
                {link::LOST} <Age since=since /> {link::AGO}
                {(!reason.is_empty()).then(|| view! { ": " <bdi>{shown(&reason).into_owned()}</bdi> })}
            </span>
        }))}
        {dynamic(move || (count.get() > 0).then(|| view! {
            <span class="fact fact-notice" data-testid="stranded-count">{words::count(count.get())}</span>
        }))}
    }
}

/// What a session does, with the source in its title.
///
/// A plan limit is left to [`LimitFact`], which says more about it.
#[component]
pub fn ActivityFact(
    /// What is known; none where nothing is.
    activity: Signal<Option<Activity>>,
) -> impl IntoView {
    let known = memo(move || {
        let of_limit = |now: &Activity| now.state.is(&ActivityState::Limit);
        activity.get().filter(|now| !of_limit(now))
    });
    dynamic(move || {
        let activity = known.get()?;
        let words = activity.words().unwrap_or_else(|| activity.state.to_string());
        let needs_person = activity.asks() || activity.state.is(&ActivityState::LoggedOut);
        let class = if needs_person { "fact fact-notice" } else { "fact" };
        Some(view! {
            <span class=class title=provenance(&activity) data-testid="activity" data-state=activity.state.to_string()>
                <bdi>{shown(&words).into_owned()}</bdi>
                {activity.stale.then_some(link::STALE)}
                " " <Age since=Signal::stored(activity.since) />
            </span>
        })
    })
}

/// From where something is known, and since when.
pub fn provenance(activity: &Activity) -> String {
    link::known(&activity.provenance(), &absolute(activity.since))
}

/// What a plan limit is called, with its times. Tracked.
pub fn limit_words(limit: &PlanLimit) -> String {
    let resets = limit.resets_at.map(clock_or_date);
    let continues = limit.continues_at.map(clock_or_date);
    link::limit(limit.name(), resets.as_deref(), continues.as_deref())
}

/// The plan limit that a conversation stopped at.
#[component]
pub fn LimitFact(
    /// What the agent said; none where nothing is in the way.
    limit: Signal<Option<PlanLimit>>,
) -> impl IntoView {
    let text = memo(move || {
        let limit = limit.get()?;
        Some(limit_words(&limit))
    });
    dynamic(move || {
        text.get().map(|text| {
            let hint = limit.get().and_then(|limit| limit.hint);
            view! { <span class="fact fact-notice" title=hint data-testid="plan-limit">{text}</span> }
        })
    })
}

/// The stranded conversations of one bridge, each with what can be done.
#[component]
pub fn StrandedList(
    /// The record.
    bridge: Signal<Arc<Instance>>,
) -> impl IntoView {
    let count = memo(move || bridge.get().stranded);
    let id = bridge.get_untracked().instance_id.clone();
    let found: RwSignal<Vec<StrandedSession>> = RwSignal::new(Vec::new());
    effect(move || {
        let id = id.clone();
        if count.get() == 0 {
            found.set(Vec::new());
            return;
        }
        spawn_local(async move {
            // Without an answer, what was known stays: a second continue is refused.
            if let Ok(mut all) = api::get::<Vec<StrandedSession>>(&paths::stranded()).await {
                let waits = |one: &StrandedSession| one.state.is(&StrandedState::Stranded);
                all.retain(|one| one.instance_id == id && waits(one));
                found.set(all);
            }
        });
    });
    view! {
        {dynamic(move || {
            let rows: Vec<AnyView> = found.get().iter().map(row).collect();
            (!rows.is_empty()).then(|| view! {
                <section class="card decline tone-warn stranded" aria-label=words::LIST data-testid="stranded">
                    <h2>{words::count(count.get())}</h2>
                    <p>{words::WHY}</p>
                    <ul class="strays">{rows}</ul>
                </section>
            })
        })}
    }
}

fn row(one: &StrandedSession) -> AnyView {
    let page = page();
    let reference = StoredValue::new(one.session_ref.to_string());
    let title = one.title.as_deref().map_or(words::NO_TITLE.into(), |title| shown(title));
    let object = StoredValue::new(words::object(&title));
    let title = title.into_owned();
    let go_on = Callback::new(move |()| {
        page.continue_stranded(&reference.get_value(), object.get_value());
    });
    let dismiss = Callback::new(move |()| {
        page.dismiss_stranded(&reference.get_value(), object.get_value());
    });
    let is_pending = derived(move || page.pending.has(&act::stranded(&reference.get_value())));
    let name_of = move |verb| derived(move || named(verb, &object.get_value()));
    view! {
        <li data-testid="stranded-session" data-ref=reference.get_value()>
            <span>
                <b><bdi>{title}</bdi></b>
                <span class="fact">{words::SINCE} <Age since=Signal::stored(one.found_at) /></span>
                {one.continued_as.as_deref().map(fact)}
            </span>
            <span class="end">
                <ActButton
                    label=words::CONTINUE name=name_of(words::CONTINUE) on_act=go_on
                    is_pending=is_pending testid="act-continue-stranded"
                />
                <ActButton
                    label=words::DISMISS name=name_of(words::DISMISS) on_act=dismiss
                    is_pending=is_pending testid="act-dismiss-stranded"
                />
            </span>
        </li>
    }
    .into_any()
}
