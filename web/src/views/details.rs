//! All that is known of a bridge, and the commands that do the same.

use crate::model::cause;
use crate::model::past::Told;
use crate::model::shown::shown;
use crate::model::status::face;
use crate::page::page;
use crate::reactive::{dynamic, memo};
use crate::text::page::session::field as words;
use crate::text::{past, status};
use crate::views::activity::Few;
use crate::views::copy::Copyable;
use crate::views::remote::provenance;
use crate::views::restart::{OnLimitField, PolicyField};
use crate::views::times::absolute;
use leptos::prelude::*;
use std::sync::Arc;
use svc_shared::api::activity::Activity;
use svc_shared::api::instances::Instance;

/// The tab.
#[component]
pub fn Details(
    /// The record.
    bridge: Signal<Arc<Instance>>,
) -> impl IntoView {
    let page = page();
    let tracked = page.store.inside(bridge.get_untracked().instance_id.as_ref());
    let rows = memo(move || {
        let labels = page.live.basics.get();
        let bridge = bridge.get();
        let mode = bridge.permission_mode.to_string();
        let may_do = labels.map_or_else(|| mode.clone(), |b| b.label(&mode).long);
        let inside = tracked.get();
        fields(&bridge, &face(&bridge, &inside).word, may_do)
    });
    let commands = memo(move || commands(&bridge.get()));
    let id = bridge.get_untracked().instance_id.to_string();
    let own_id = id.clone();
    view! {
        <dl class="card details" data-testid="details">
            <dt>{words::RESTART}</dt>
            <dd><PolicyField bridge=bridge /></dd>
            <dt>{words::ON_LIMIT}</dt>
            <dd><OnLimitField bridge=bridge /></dd>
            {dynamic(move || rows
                .get()
                .into_iter()
                .map(|(name, value)| {
                    let value = shown(&value).into_owned();
                    view! { <dt>{name}</dt> <dd><bdi>{value}</bdi></dd> }
                })
                .collect_view())}
            <dt>{words::ID}</dt>
            <dd><Copyable shown=id.clone() full=id what=words::ID /></dd>
            <dt>{past::LAST_ENDS}</dt>
            <dd><Few about=own_id told=Told::Ends /></dd>
            <dt>{words::COMMANDS}</dt>
            {dynamic(move || commands
                .get()
                .into_iter()
                .map(|command| view! {
                    <dd class="command"><Copyable shown=command.clone() full=command what=words::COMMANDS /></dd>
                })
                .collect_view())}
        </dl>
    }
}

/// What is known of it, in the words of the rest of the page.
fn fields(bridge: &Instance, status: &str, may_do: String) -> Vec<(&'static str, String)> {
    let kind = status::kind(&bridge.channel.to_string(), &bridge.resume_mode.to_string());
    let (mode, place) = (bridge.resume_mode.to_string(), bridge.spawn_mode.to_string());
    let place = status::spawn_mode(&mode, &place).to_owned();
    let number = |number: Option<i32>| number.map(|n| n.to_string());
    let fields = [
        (words::PROJECT, Some(bridge.project.clone())),
        (words::LABEL, Some(bridge.label.clone())),
        (words::KIND, Some(kind)),
        (words::STATUS, Some(status.to_owned())),
        (words::SINCE, Some(absolute(bridge.status_since))),
        (words::ACTIVITY, bridge.activity.as_ref().map(activity)),
        (words::STARTED, bridge.started_at.map(absolute)),
        (words::ENDED, bridge.ended_at.map(absolute)),
        (words::REASON, cause::headline(bridge)),
        (words::CODE, number(bridge.exit_code)),
        (words::SIGNAL, number(bridge.exit_signal)),
        (words::MAY_DO, Some(may_do)),
        (words::RUNS_IN, Some(place)),
        (words::ORIGIN, Some(words::origin(&bridge.origin))),
        (words::GENERATION, Some(bridge.generation.to_string())),
        (words::PID, number(bridge.bridge_pid)),
        (words::KEEPER, number(bridge.keeper_pid)),
        (words::AGENT_PID, number(bridge.agent_pid)),
        (words::WORKTREE, bridge.worktree_name.clone()),
        (words::AGENT, bridge.agent_version.clone()),
        (words::SESSION_REF, bridge.session_ref.as_ref().map(ToString::to_string)),
        (words::ENVIRONMENT_REF, bridge.environment_ref.as_ref().map(ToString::to_string)),
        (words::REUSE, bridge.reuse_expires_at.map(absolute)),
        (words::LINK, said(bridge.connect.available)),
        (words::RESUMABLE, said(bridge.resumable)),
        (words::NOTICE, bridge.notice.clone()),
    ];
    let known = |(name, value): (_, Option<String>)| Some((name, value?));
    fields.into_iter().filter_map(known).collect()
}

/// What it does, from where that is known, and since when.
fn activity(now: &Activity) -> String {
    let words = now.words().unwrap_or_else(|| now.state.to_string());
    format!("{words}: {}", provenance(now))
}

fn said(is: bool) -> Option<String> {
    Some(if is { words::YES } else { words::NO }.to_owned())
}

fn commands(bridge: &Instance) -> Vec<String> {
    let id = bridge.instance_id.short();
    let verbs: &[&str] =
        if bridge.is_live() { &["logs -f", "open", "stop"] } else { &["logs", "resume", "forget"] };
    verbs.iter().map(|verb| format!("svc {verb} {id}")).collect()
}
