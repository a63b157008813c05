//! Texts as a whole: instructions, and one subagent.

use super::editor::Editor;
use super::review::missing;
use crate::api;
use crate::model::agent_config::faults::is_subagent;
use crate::model::agent_config::{Subject, Surface};
use crate::model::problem::Problem;
use crate::model::route::Query;
use crate::model::shown::shown;
use crate::nav::nav;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::icon;
use crate::reactive::{derived, dynamic, live, memo};
use crate::text::agent_config::{fault, review, subagents as words, text as size};
use crate::views::agent_config::fields::new_name;
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde_json::Value;
use svc_shared::internal::agent_config::{ConfigDeleted, SubagentItem, Subagents};

/// Query member that names one of several.
pub const NAME: &str = "name";

/// The text with its size.
pub fn text(editor: Editor) -> AnyView {
    let label = match editor.surface() {
        Surface::Subagents => words::TEXT,
        _ => size::INSTRUCTIONS,
    };
    let first = editor.draft.with_untracked(|draft| draft.as_str().unwrap_or_default().to_owned());
    let wrong = move || editor.fault("");
    let is_bad = move || wrong().is_some().then_some("true");
    let bytes = move || editor.draft.with(|draft| size::size(draft.as_str().map_or(0, str::len)));
    view! {
        <div class="config-text">
            <label class="sr-only" for="config-text">{label}</label>
            <textarea
                class="input mono" id="config-text" spellcheck="false" data-testid="config-text"
                aria-describedby="config-size" aria-invalid=live(is_bad)
                prop:value=first
                on:input=move |event| editor.set("", Some(Value::from(event_target_value(&event))))
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

/// Above the text of one subagent: the way back, and its removal.
pub fn subagent_head(editor: Editor) -> AnyView {
    let nav = nav();
    // One that does not exist begins with what it must have.
    let begin = memo(move || editor.known.with(|known| known.as_ref().map(|known| known.exists)));
    crate::reactive::effect(move || {
        if begin.get() == Some(false) && editor.draft.with_untracked(|draft| *draft == "") {
            let name = editor.subject.with_value(|subject| subject.name.clone());
            editor.reshape("", Some(Value::from(words::template(&name))));
        }
    });
    let asks = RwSignal::new(false);
    view! {
        <div class="config-one">
            <button type="button" class=ButtonStyle::Ghost.class() data-testid="subagent-back" on:click=move |_| nav.set_query(&[(NAME, "")], true)>
                {icon("chevron-left", 16)} {words::BACK}
            </button>
            {dynamic(move || (begin.get() == Some(true) && !asks.get()).then(|| view! {
                <button type="button" class=ButtonStyle::Ghost.class() data-testid="subagent-delete" on:click=move |_| asks.set(true)>
                    {icon("trash", 16)} {words::DELETE}
                </button>
            }))}
        </div>
        {dynamic(move || asks.get().then(|| removal(editor, asks)))}
    }
    .into_any()
}

fn removal(editor: Editor, asks: RwSignal<bool>) -> AnyView {
    let wanted = StoredValue::new(editor.confirmation());
    let typed = RwSignal::new(String::new());
    let refused = RwSignal::new(None::<String>);
    let why_not =
        derived(move || typed.with(|typed| wanted.with_value(|wanted| missing(typed, wanted))));
    let page = page();
    let nav = nav();
    let go = move |_| {
        if let Some(why) = why_not.get_untracked() {
            return page.say.politely(&why);
        }
        let subject = editor.subject.get_value();
        let mut query = Query::default();
        for (name, value) in subject.body(&typed.get_untracked()) {
            query.set(&name, value.as_str().unwrap_or_default());
        }
        let hash = editor.known.with_untracked(|known| known.as_ref()?.hash.clone());
        query.set("hash", &hash.unwrap_or_default());
        let path = format!("{}{}", subject.path(), query.text());
        spawn_local(async move {
            match api::call::<ConfigDeleted>(Method::DELETE, &path).await {
                Ok(_) => {
                    page.say.done(words::deleted(&subject.name));
                    nav.set_query(&[(NAME, "")], true);
                }
                Err(problem) => drop(refused.try_set(Some(problem.words()))),
            }
        });
    };
    view! {
        <div class="config-ask" role="group" aria-label=words::DELETE data-testid="subagent-ask">
            <label for="config-delete">
                {review::TYPE} " " <b><bdi>{shown(&wanted.get_value()).into_owned()}</bdi></b> " " {review::TO_DELETE}
            </label>
            <input
                class="input mono" id="config-delete" autocomplete="off" spellcheck="false" data-testid="subagent-typed"
                prop:value=typed on:input=move |event| typed.set(event_target_value(&event))
            />
            <span class="muted" aria-live="polite">{dynamic(move || why_not.get())}</span>
            <button type="button" class=ButtonStyle::Secondary.class() on:click=move |_| asks.set(false)>{review::CANCEL}</button>
            <button
                type="button" class=ButtonStyle::Danger.class() data-testid="subagent-yes"
                aria-disabled=live(move || why_not.get().is_some().then_some("true")) on:click=go
            >{words::YES}</button>
            {dynamic(move || refused.get().map(|said| view! { <p class="help help-error" role="alert">{shown(&said).into_owned()}</p> }))}
        </div>
    }
    .into_any()
}
