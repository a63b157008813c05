//! The conversations of a project, or those that one session holds.

use crate::api;
use crate::browser;
use crate::model::problem::Problem;
use crate::model::shown::shown;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::reactive::{dynamic, effect, live, memo};
use crate::text::conversation as words;
use crate::text::page as page_words;
use crate::views::conversation::Talk;
use crate::views::home::Loading;
use crate::views::times::When;
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::sync::Arc;
use svc_shared::api::instances::Instance;
use svc_shared::internal::conversations::{Conversation, ConversationList};
use svc_shared::paths;

type Found = Option<Result<ConversationList, Problem>>;

/// Reads the list.
fn read(project: String, found: RwSignal<Found>) {
    spawn_local(async move {
        let answer = api::get::<ConversationList>(&paths::conversations(&project)).await;
        found.try_set(Some(answer)); // left meanwhile: fine
    });
}

/// The list of a project.
#[component]
pub fn Conversations(
    /// The project.
    project: String,
) -> impl IntoView {
    let found = RwSignal::new(None);
    let page = page();
    let name = StoredValue::new(project);
    let again = move || read(name.get_value(), found);
    effect(move || {
        if !page.live.is_offline.get() {
            again();
        }
    });
    let with_helpers = RwSignal::new(false);
    let list = move |list: ConversationList| {
        let has_helpers = list.sessions.iter().any(|one| one.is_subagent);
        let wanted: Vec<Conversation> = list
            .sessions
            .into_iter()
            .filter(|one| with_helpers.get() || !one.is_subagent)
            .collect();
        let rows: Vec<AnyView> =
            wanted.iter().map(|one| name.with_value(|name| row(name, one))).collect();
        view! {
            <section data-testid="conversations">
                {has_helpers.then(|| view! {
                    <div class="toolbar">
                        <button
                            type="button" role="switch" class="switch" data-testid="with-subagents"
                            aria-checked=live(move || with_helpers.get().to_string())
                            on:click=move |_| with_helpers.update(|is| *is = !*is)
                        >{words::SHOW_SUBAGENTS}</button>
                    </div>
                })}
                {(list.pending_files > 0).then(|| view! {
                    <p class="muted" role="status">{words::pending(list.pending_files)}</p>
                })}
                {if rows.is_empty() {
                    view! { <div class="card empty"><p>{words::EMPTY}</p></div> }.into_any()
                } else {
                    view! { <ul class="card list plain talks">{rows}</ul> }.into_any()
                }}
            </section>
        }
        .into_any()
    };
    dynamic(move || match found.get() {
        None => view! { <Loading /> }.into_any(),
        Some(Ok(all)) => list(all),
        Some(Err(problem)) => failed(&problem, Callback::new(move |()| again())),
    })
}

/// What went wrong, and a button to try it again.
pub fn failed(problem: &Problem, again: Callback<()>) -> AnyView {
    view! {
        <p class="strip tone-danger" role="alert">
            {problem.words()}
            <button type="button" class="btn btn-secondary strip-end" on:click=move |_| again.run(())>
                {page_words::REPEAT}
            </button>
        </p>
    }
    .into_any()
}

fn row(project: &str, one: &Conversation) -> AnyView {
    let prompt = one.first_prompt.as_deref().unwrap_or(words::NO_PROMPT);
    let prompt = shown(prompt).into_owned();
    let worktree = one.worktree.as_deref().map(|name| words::worktree(&shown(name)));
    let last = one.last_ts;
    view! {
        <li class="talk">
            <a class="talk-prompt" href=browser::conversation_href(project, one.conversation.as_str()) data-testid="conversation">
                <bdi>{prompt}</bdi>
            </a>
            <span class="facts">
                {one.live.then(|| view! { <span class="badge tone-ok">{words::LIVE}</span> })}
                {one.is_subagent.then(|| view! { <span class="badge">{words::SUBAGENT}</span> })}
                {last.map(|at| view! { <span class="fact"><When at=Signal::stored(at) /></span> })}
                <span class="fact num">{words::turns(one.turn_count)}</span>
                {worktree.map(|text| view! { <span class="fact"><bdi>{text}</bdi></span> })}
                {(one.skipped_lines > 0).then(|| view! { <span class="fact">{words::skipped(one.skipped_lines)}</span> })}
            </span>
            <code class="muted talk-ref">{one.conversation.to_string()}</code>
        </li>
    }
    .into_any()
}

/// The conversation of one session.
/// Read here when there is one, a list when there are several.
#[component]
pub fn OfSession(
    /// The record.
    bridge: Signal<Arc<Instance>>,
) -> impl IntoView {
    let found = RwSignal::new(Found::None);
    let (project, id) =
        bridge.with_untracked(|it| (it.project.clone(), it.instance_id.to_string()));
    let (project, id) = (StoredValue::new(project), StoredValue::new(id));
    let again = move || read(project.get_value(), found);
    let own = memo(move || {
        let list = match found.get() {
            Some(Ok(list)) => list,
            _ => return Vec::new(),
        };
        let is_own = |one: &Conversation| {
            one.instance_id.as_ref().is_some_and(|held| id.with_value(|id| held.as_str() == id))
        };
        list.sessions.into_iter().filter(is_own).collect::<Vec<_>>()
    });
    // It appears with the first message, which the record tells of.
    effect(move || {
        bridge.track();
        if own.with_untracked(Vec::is_empty) {
            again();
        }
    });
    dynamic(move || match found.get() {
        None => view! { <Loading /> }.into_any(),
        Some(Err(problem)) => failed(&problem, Callback::new(move |()| again())),
        Some(Ok(_)) => {
            let own = own.get();
            let name = project.get_value();
            let all = format!("{}?tab=conversations", browser::project_href(&name));
            match own.as_slice() {
                [] => view! {
                    <div class="card empty">
                        <p>{words::NONE_OF_SESSION}</p>
                        <a class=ButtonStyle::Secondary.class() href=all>{words::ALL}</a>
                    </div>
                }
                .into_any(),
                [one] => view! {
                    <Talk project=name conversation=one.conversation.to_string() around=None />
                }
                .into_any(),
                several => {
                    let rows: Vec<AnyView> = several.iter().map(|one| row(&name, one)).collect();
                    view! { <ul class="card list plain talks">{rows}</ul> }.into_any()
                }
            }
        }
    })
}
