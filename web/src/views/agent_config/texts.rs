//! Texts as a whole: instructions, and one subagent.

use super::editor::Editor;
use crate::api;
use crate::model::agent_config::faults::is_subagent;
use crate::model::agent_config::{Subject, Surface};
use crate::model::line_ends;
use crate::model::problem::Problem;
use crate::model::shown::shown;
use crate::nav::nav;
use crate::reactive::{dynamic, live};
use crate::text::agent_config::{fault, skills, subagents as words, text as size};
use crate::views::agent_config::fields::new_name;
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde_json::Value;
use svc_shared::internal::agent_config::{SubagentItem, Subagents};

/// Query member that names one of several.
pub const NAME: &str = "name";

/// The text with its size.
pub fn text(editor: Editor) -> AnyView {
    let label = match editor.surface() {
        Surface::Subagents => words::TEXT,
        Surface::Skills => skills::TEXT,
        _ => size::INSTRUCTIONS,
    };
    let now = move || editor.draft.with(|draft| draft.as_str().unwrap_or_default().to_owned());
    let type_in = move |typed: String| {
        let text = editor.known.with_untracked(|known| {
            let read = known.as_ref().and_then(|known| known.value.as_str()).unwrap_or_default();
            line_ends::as_in(read, typed)
        });
        editor.set("", Some(Value::from(text)));
    };
    let wrong = move || editor.fault("");
    let is_bad = move || wrong().is_some().then_some("true");
    let bytes = move || editor.draft.with(|draft| size::size(draft.as_str().map_or(0, str::len)));
    view! {
        <div class="config-text">
            <label class="sr-only" for="config-text">{label}</label>
            <textarea
                class="input mono" id="config-text" spellcheck="false" data-testid="config-text"
                aria-describedby="config-size" aria-invalid=live(is_bad)
                prop:value=live(now)
                on:input=move |event| type_in(event_target_value(&event))
            ></textarea>
            <p class="muted num" id="config-size">{live(bytes)}</p>
            <p class="help help-error" role="alert">{dynamic(wrong)}</p>
        </div>
    }
    .into_any()
}

/// The subagents of a scope.
pub fn subagents(subject: &Subject) -> AnyView {
    let found = RwSignal::new(None::<Result<Subagents, Problem>>);
    let path = subject.read_at("subagents", &[]);
    spawn_local(async move {
        let answer = api::get::<Subagents>(&path).await;
        let _ = found.try_set(Some(answer));
    });
    let nav = nav();
    let one = move |item: SubagentItem| {
        let name = StoredValue::new(item.name.clone());
        let label = shown(&item.name).into_owned();
        let title = match item.editable {
            true => view! {
                <button type="button" class="linkish" data-testid="subagent" data-name=item.name.clone()
                    on:click=move |_| name.with_value(|name| nav.set_query(&[(NAME, name)], false))
                ><b><bdi>{label}</bdi></b></button>
            }
            .into_any(),
            false => view! { <b><bdi>{label}</bdi></b> }.into_any(),
        };
        let about = item.description.map(|about| shown(&about).into_owned());
        view! {
            <li class="config-choice">
                <span>{title} {about.map(|about| view! { <span class="muted config-clip">{about}</span> })}</span>
                <span class="muted">{words::source(&item.source)}</span>
            </li>
        }
    };
    let is_taken = Callback::new(move |name: String| {
        found.with_untracked(|found| match found {
            Some(Ok(found)) => found.agents.iter().any(|agent| agent.name == name),
            _ => false,
        })
    });
    let add = Callback::new(move |name: String| nav.set_query(&[(NAME, &name)], false));
    let check = |name: &str| (!is_subagent(name)).then_some(fault::BAD_SUBAGENT);
    dynamic(move || {
        match found.get() {
        None => view! { <p class="muted" role="status">{crate::text::agent_config::READING}</p> }.into_any(),
        Some(Err(problem)) => {
            view! { <p class="strip tone-danger" role="alert">{shown(&problem.words()).into_owned()}</p> }.into_any()
        }
        Some(Ok(list)) => view! {
            <ul class="config-choices">{list.agents.into_iter().map(one).collect_view()}</ul>
            {new_name(words::NEW, check, is_taken, add)}
        }
        .into_any(),
    }
    })
}
