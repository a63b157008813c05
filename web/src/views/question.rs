//! A question of an agent with its answers.

use crate::browser;
use crate::model::shown::shown;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::reactive::derived;
use crate::text::direct as words;
use crate::views::times::Age;
use leptos::prelude::*;
use std::sync::Arc;
use svc_shared::api::instances::{Instance, PendingPermission};

/// A question with its answers.
#[component]
pub fn Question(
    /// The session that asks.
    bridge: Arc<Instance>,
    /// What it asks.
    asked: PendingPermission,
    /// It stands in the row of its session.
    #[prop(optional)]
    is_inside: bool,
    /// It leads to its session.
    #[prop(optional)]
    has_link: bool,
) -> impl IntoView {
    let page = page();
    let reason = RwSignal::new(String::new());
    let (id, project) = (bridge.instance_id.to_string(), bridge.project.clone());
    let about = format!("question-{}", asked.request_id);
    let answer = {
        let request = asked.request_id.clone();
        move |is_allowed: bool| {
            let text = reason.get_untracked();
            page.answer(&id, &request, &project, is_allowed, &text);
        }
    };
    let (allow, deny) = (answer.clone(), answer);
    let is_busy = derived(move || page.pending.has(&about).then_some("true"));
    let since = asked.since;
    let since = derived(move || since);
    let tool = asked.tool.clone().unwrap_or_else(|| asked.subtype.clone());
    view! {
        <section class="card question tone-warn" class:inside=is_inside data-testid="question" data-request=asked.request_id.clone()>
            <div class="question-head">
                <p>
                    <strong>{shown(&tool).into_owned()}</strong>
                    {(!is_inside).then(|| view! { " · " <bdi>{shown(&bridge.project).into_owned()}</bdi> })}
                    {(!is_inside).then(|| view! { " · " <Age since=since /> })} " · " {words::ONCE}
                </p>
                {has_link.then(|| view! { <a href=browser::session_href(bridge.instance_id.as_str())>{words::OPEN}</a> })}
            </div>
            <pre class="output" tabindex="0">{shown(&asked.summary).into_owned()}</pre>
            {asked.truncated.then(|| view! { <p class="muted">{words::SHORTENED}</p> })}
            <div class="question-acts">
                <input
                    class="input"
                    aria-label=words::REASON
                    placeholder=words::REASON
                    maxlength="2000"
                    prop:value=reason
                    on:input=move |event| reason.set(event_target_value(&event))
                />
                <button type="button" class=ButtonStyle::Secondary.class() data-testid="deny" aria-disabled=is_busy on:click=move |_| deny(false)>
                    {words::DENY}
                </button>
                <button type="button" class=ButtonStyle::Primary.class() data-testid="allow" aria-disabled=is_busy on:click=move |_| allow(true)>
                    {words::ALLOW}
                </button>
            </div>
        </section>
    }
}
