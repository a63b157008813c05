//! One bridge in a list: what it is, how it stands, why it ended, what can be done.

use crate::browser;
use crate::model::cause::{cause, ended_facts};
use crate::model::sections::Section;
use crate::model::shown::shown;
use crate::model::status::{self, face};
use crate::model::time;
use crate::page::page;
use crate::prefs;
use crate::reactive::{derived, dynamic, memo};
use crate::store;
use crate::text::{cause as cause_words, page::link, restart, session as said, status as words};
use crate::views::actions::{ActionLayout, Actions};
use crate::views::cause::CauseLine;
use crate::views::question::Question;
use crate::views::remote::RemoteFacts;
use crate::views::restart::RestartFacts;
use crate::views::row::{Inside, Row, fact};
use crate::views::times::{Age, When};
use crate::views::usage::{curve, figure, used};
use leptos::prelude::*;
use std::sync::Arc;
use svc_shared::api::instances::Instance;
use svc_shared::status::{BridgeStatus, PermissionMode};

/// A stop longer than this is worth a remark, milliseconds.
const SLOW_STOP_MS: i64 = 15_000;
/// A link not there after this long is worth a remark, milliseconds.
const NO_LINK_MS: i64 = 30_000;

/// A row; nothing when the record is gone.
pub fn session_row(id: String, section: Section) -> AnyView {
    let page = page();
    let Some(record) = page.store.instance(&id) else {
        return ().into_any();
    };
    let tracked = page.store.inside(&id);
    let bridge = derived(move || record.get());
    let inside = derived(move || tracked.get());
    let text = move |pick: fn(&Instance) -> String| memo(move || pick(&bridge.get()));
    let explained = memo(move || {
        let bridge = bridge.get();
        (section == Section::NeedsLook).then(|| cause(&bridge)).flatten()
    });
    let sub = Inside::new(inside);
    let is_live = matches!(section, Section::Waiting | Section::Live);
    let used = is_live.then(|| used(id.clone()));
    let seen_id = id.clone();
    let is_new = memo(move || page.store.unseen.with(|unseen| unseen.contains(&seen_id)));
    let layout = match section {
        Section::NeedsLook => ActionLayout::NeedsLook,
        Section::Waiting | Section::Live => ActionLayout::Row,
        Section::Ended => ActionLayout::Dense,
    };
    let href = browser::session_href(&id);
    let log_href = href.clone();
    Row {
        key: id.clone(),
        testid: "session-row",
        instance: Some(id),
        project: text(|b| b.project.clone()).into(),
        status: text(|b| b.status.to_string()).into(),
        href,
        face: memo(move || face(&bridge.get(), &inside.get())),
        name: text(|b| shown(&b.project).into_owned()),
        label: memo(move || {
            let bridge = bridge.get();
            (bridge.label != bridge.project).then(|| shown(&bridge.label).into_owned())
        }),
        kind: text(|b| words::kind(&b.channel.to_string(), &b.resume_mode.to_string())),
        chips: view! {
            <Chips bridge=bridge />
            {dynamic(move || is_new.get().then(|| view! { <span class="chip chip-new">{said::NEW}</span> }))}
        }
        .into_any(),
        facts: view! {
            <Facts bridge=bridge section=section />
            {sub.fact(said::inside)}
            {used.map(figure)}
        }
        .into_any(),
        used: used.map(curve).into_any(),
        actions: view! { <Actions bridge=bridge inside=inside layout=layout /> }.into_any(),
        below: view! {
            {(section == Section::Waiting).then(|| view! { <Asked bridge=bridge /> })}
            {sub.warning()} {sub.list()}
            {dynamic(move || explained.get().map(|cause| view! {
                <CauseLine cause=cause href=log_href.clone() />
            }))}
        }
        .into_any(),
    }
    .view()
}

/// What the agent asks, to be answered in the row.
#[component]
fn Asked(bridge: Signal<Arc<Instance>>) -> impl IntoView {
    let asked = memo(move || bridge.get().pending_permissions.clone());
    view! {
        <For
            each=move || asked.get()
            key=|asked| asked.request_id.clone()
            children=move |asked| view! {
                <div class="below-row"><Question of=store::Asked::of(&bridge.get_untracked(), &asked) is_inside=true /></div>
            }
        />
    }
}

/// What differs from the usual.
#[component]
pub fn Chips(
    /// The record.
    bridge: Signal<Arc<Instance>>,
) -> impl IntoView {
    let page = page();
    let chips = memo(move || {
        let bridge = bridge.get();
        let mut chips = Vec::new();
        let mode = bridge.permission_mode.to_string();
        if mode != PermissionMode::Default.as_str() {
            let labels = page.live.basics.get();
            let label = labels.map_or_else(|| mode.clone(), |b| b.label(&mode).short);
            let class = if mode == PermissionMode::BypassPermissions.as_str() {
                "chip chip-danger"
            } else {
                "chip"
            };
            chips.push((label, class));
        }
        let (mode, place) = (bridge.resume_mode.to_string(), bridge.spawn_mode.to_string());
        if let Some(place) = words::spawn_mode_chip(&mode, &place) {
            chips.push((place.to_owned(), "chip"));
        }
        if let Some(policy) = restart::chip(&bridge.restart.policy.to_string()) {
            chips.push((policy.to_owned(), "chip"));
        }
        if status::is_taken_over(&bridge) {
            chips.push((said::ADOPTED.to_owned(), "chip"));
        }
        chips
    });
    view! {
        {dynamic(move || {
            chips.get().into_iter().map(|(text, class)| view! { <span class=class>{text}</span> }).collect_view()
        })}
    }
}

/// The facts after the status word.
#[component]
fn Facts(bridge: Signal<Arc<Instance>>, section: Section) -> impl IntoView {
    let page = page();
    let last_seen = memo(move || match page.live.link.get() {
        crate::live::Link::Lost { as_of, .. } if page.live.is_offline.get() => {
            let at = svc_shared::Timestamp::from_millis(as_of);
            Some(link::last_seen(&time::clock(at, prefs::zone(as_of))))
        }
        _ => None,
    });
    let facts = memo(move || {
        let bridge = bridge.get();
        match section {
            Section::Waiting | Section::Live => Vec::new(),
            Section::NeedsLook => held_facts(&bridge).unwrap_or_else(|| ended_facts(&bridge)),
            Section::Ended => ended_words(&bridge),
        }
    });
    let is_live = matches!(section, Section::Waiting | Section::Live);
    let since = derived(move || status::since(&bridge.get()));
    let ended = derived(move || bridge.get().ended_at.unwrap_or(bridge.get().status_since));
    view! {
        {dynamic(move || last_seen.get().as_deref().map(fact))}
        {dynamic(move || facts.get().iter().map(|text| fact(text)).collect_view())}
        <RemoteFacts bridge=bridge />
        <RestartFacts bridge=bridge />
        {is_live.then(|| view! { <LiveFacts bridge=bridge since=since /> })}
        {(!is_live).then(|| view! { <span class="fact"><When at=ended /></span> })}
        {dynamic(move || bridge.get().notice.as_ref().map(|notice| view! {
            <span class="fact fact-notice"><bdi>{shown(notice).into_owned()}</bdi></span>
        }))}
    }
}

fn held_facts(bridge: &Instance) -> Option<Vec<String>> {
    let hold = bridge.quarantined.as_ref()?;
    Some(vec![if status::is_held(bridge) {
        cause_words::held(&hold.code)
    } else {
        cause_words::crash_loop(bridge.restart.crashes_in_window)
    }])
}

fn ended_words(bridge: &Instance) -> Vec<String> {
    let mut facts: Vec<String> = crate::model::cause::headline(bridge).into_iter().collect();
    if facts.is_empty() && bridge.intentional_stop {
        facts.extend(
            cause_words::reason(svc_shared::status::ExitReason::OperatorStop).map(str::to_owned),
        );
    }
    if !status::ended_as_meant(bridge) && bridge.resumable {
        facts.push(said::RESUME_TO_CONTINUE.to_owned());
    }
    facts
}

/// The facts of a live bridge: its age and whether its link is there.
#[component]
fn LiveFacts(bridge: Signal<Arc<Instance>>, since: Signal<svc_shared::Timestamp>) -> impl IntoView {
    let page = page();
    let is_starting = memo(move || bridge.get().status.is(&BridgeStatus::Starting));
    let version = memo(move || bridge.get().agent_version.clone());
    let remark = memo(move || {
        if page.live.is_offline.get() {
            return None;
        }
        let bridge = bridge.get();
        let age =
            page.clock.for_age(bridge.status_since.as_millis()) - bridge.status_since.as_millis();
        if status::is_stopping(&bridge) {
            return (age > SLOW_STOP_MS).then_some(said::SLOW_STOP);
        }
        if status::is_direct(&bridge) {
            return Some(said::HERE_ONLY);
        }
        if bridge.connect.available || bridge.notice.is_some() {
            return None;
        }
        let running = bridge.status.is(&BridgeStatus::Running);
        Some(if running && age > NO_LINK_MS { said::NO_LINK_YET } else { said::LINK_PENDING })
    });
    let starting = memo(move || {
        let bridge = bridge.get();
        if bridge.adopted {
            return said::WAITING_READY.to_owned();
        }
        let age = page.clock.seconds() - bridge.status_since.as_millis();
        let allowed = page.live.basics.with(|b| b.as_ref().map_or(0, |b| b.grace_ms));
        said::starting_for(&time::span(age), &time::limit(allowed))
    });
    view! {
        {dynamic(move || {
            if is_starting.get() && !page.live.is_offline.get() {
                view! { <span class="fact num">{starting}</span> }.into_any()
            } else {
                view! { <span class="fact"><Age since=since /></span> }.into_any()
            }
        })}
        {dynamic(move || version.get().map(|version| fact(&said::agent(&version))))}
        {dynamic(move || remark.get().map(fact))}
    }
}
