//! Link and activity of a bridge, and conversations that lost their bridge.

use crate::act;
use crate::api;
use crate::model::shown::shown;
use crate::model::time;
use crate::page::page;
use crate::prefs;
use crate::reactive::{derived, dynamic, effect, memo};
use crate::text::ready::{link, stranded as words};
use crate::text::session::named;
use crate::views::act_button::ActButton;
use crate::views::row::fact;
use crate::views::times::Age;
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::sync::Arc;
use svc_shared::Timestamp;
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
    let waits = memo(move || {
        let bridge = bridge.get();
        let activity = bridge.activity.as_ref();
        let blocked = activity.filter(|now| now.state.is(&ActivityState::Blocked))?;
        Some(link::waits(blocked.tool.as_deref()))
    });
    let count = memo(move || bridge.get().stranded);
    let limit = derived(move || bridge.get().limit.clone());
    view! {
        <LimitFact limit=limit />
        {dynamic(move || lost.get().map(|reason| view! {
            <span class="fact fact-notice" data-testid="link-lost">
                {link::LOST} <Age since=since /> {link::AGO}
                {(!reason.is_empty()).then(|| view! { ": " <bdi>{shown(&reason).into_owned()}</bdi> })}
            </span>
        }))}
        {dynamic(move || waits.get().map(|text| view! {
            <span class="fact fact-notice" data-testid="waits-for-permission"><bdi>{text}</bdi></span>
        }))}
        {dynamic(move || (count.get() > 0).then(|| view! {
            <span class="fact fact-notice" data-testid="stranded-count">{words::count(count.get())}</span>
        }))}
    }
}

/// The plan limit that a conversation stopped at.
#[component]
pub fn LimitFact(
    /// What the agent said; none where nothing is in the way.
    limit: Signal<Option<PlanLimit>>,
) -> impl IntoView {
    let page = page();
    let text = memo(move || {
        let limit = limit.get()?;
        let time = |at: Timestamp| {
            let zone = prefs::zone(at.as_millis());
            time::clock_or_date(at, page.clock.now(), zone) + &prefs::zone_mark()
        };
        let (resets, continues) = (limit.resets_at.map(time), limit.continues_at.map(time));
        Some(link::limit(limit.kind.known(), resets.as_deref(), continues.as_deref()))
    });
    dynamic(move || {
        text.get().map(|text| {
            view! { <span class="fact fact-notice" data-testid="plan-limit">{text}</span> }
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
