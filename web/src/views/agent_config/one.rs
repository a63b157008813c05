//! One of several: the way back, what a new one begins with, and its removal.

use super::editor::{Answer, Editor};
use super::review::missing;
use crate::api;
use crate::model::agent_config::{Subject, Surface};
use crate::model::problem::Problem;
use crate::model::route::Query;
use crate::model::shown::shown;
use crate::model::wire;
use crate::nav::{Nav, nav};
use crate::page::{Page, page};
use crate::parts::button::ButtonStyle;
use crate::parts::icon::icon;
use crate::reactive::{derived, dynamic, live, memo};
use crate::text::agent_config::{review, skills, subagents as words};
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde_json::Value;
use svc_shared::paths::CONFIG_WRITE;

/// Query member that names one of several.
pub const NAME: &str = "name";
/// Query member that names a file of a skill.
pub const FILE: &str = "file";

/// Goes back to the list.
fn leave(nav: Nav) {
    nav.set_query(&[(NAME, ""), (FILE, "")], true);
}

/// Above the text of one subagent or skill.
pub fn head(editor: Editor) -> AnyView {
    let nav = nav();
    let is_skill = editor.surface() == Surface::Skills;
    let (back, delete) = match is_skill {
        true => (skills::BACK, skills::DELETE),
        false => (words::BACK, words::DELETE),
    };
    // One that does not exist begins with what it must have.
    let is_there =
        memo(move || editor.known.with(|known| known.as_ref().map(|known| known.exists)));
    crate::reactive::effect(move || {
        if is_there.get() == Some(false) && editor.draft.with_untracked(|draft| *draft == "") {
            let subject = editor.subject.get_value();
            let first = match (is_skill, subject.is_script()) {
                (_, true) => return,
                (true, false) => skills::template(&subject.name),
                (false, _) => words::template(&subject.name),
            };
            editor.reshape("", Some(Value::from(first)));
        }
    });
    let asks = RwSignal::new(false);
    let may_go = move || is_there.get() == Some(true) && !asks.get();
    view! {
        <div class="config-one">
            <button type="button" class=ButtonStyle::Ghost.class() data-testid="config-back" on:click=move |_| leave(nav)>
                {icon("chevron-left", 16)} {back}
            </button>
            {dynamic(move || may_go().then(|| view! {
                <button type="button" class=ButtonStyle::Ghost.class() data-testid="config-delete" on:click=move |_| asks.set(true)>
                    {icon("trash", 16)} {delete}
                </button>
            }))}
        </div>
        {dynamic(move || asks.get().then(|| removal(editor, asks, delete)))}
    }
    .into_any()
}

async fn removed(subject: &Subject, hash: Option<String>, typed: &str) -> Result<Answer, Problem> {
    let mut body = subject.body(typed);
    // The hash of another file of a skill says nothing about the skill.
    if let Some(hash) = hash.filter(|_| !subject.is_script()) {
        body.insert("hash".to_owned(), hash.into());
    }
    if subject.surface == Surface::Skills {
        body.insert(NAME.to_owned(), subject.name.clone().into());
        let path = format!("{CONFIG_WRITE}/skills/delete");
        let answer = api::request(Method::POST, &path, Some(wire::written(&body)), None).await;
        return api::understood(answer);
    }
    let mut query = Query::default();
    for (name, value) in body {
        query.set(&name, value.as_str().unwrap_or_default());
    }
    api::call(Method::DELETE, &format!("{}{}", subject.path(), query.text())).await
}

fn go(editor: Editor, typed: String, refused: RwSignal<Option<String>>, page: Page, nav: Nav) {
    let subject = editor.subject.get_value();
    let hash = editor.known.with_untracked(|known| known.as_ref()?.hash.clone());
    spawn_local(async move {
        match removed(&subject, hash, &typed).await {
            Ok(_) => {
                page.say.done(match subject.surface {
                    Surface::Skills => skills::deleted(&subject.name),
                    _ => words::deleted(&subject.name),
                });
                editor.writes.tell();
                leave(nav);
            }
            Err(problem) => drop(refused.try_set(Some(problem.words()))),
        }
    });
}

fn removal(editor: Editor, asks: RwSignal<bool>, title: &'static str) -> AnyView {
    let wanted = StoredValue::new(editor.confirmation());
    let typed = RwSignal::new(String::new());
    let refused = RwSignal::new(None::<String>);
    let why_not =
        derived(move || typed.with(|typed| wanted.with_value(|wanted| missing(typed, wanted))));
    let (page, nav) = (page(), nav());
    let press = move |_| match why_not.get_untracked() {
        Some(why) => page.say.politely(&why),
        None => go(editor, typed.get_untracked(), refused, page, nav),
    };
    crate::browser::after_paint(|| {
        crate::browser::focus("[data-testid=config-delete-typed]");
    });
    view! {
        <div class="config-ask" role="group" aria-label=title data-testid="config-delete-ask">
            <label for="config-delete">
                {review::TYPE} " " <b><bdi>{shown(&wanted.get_value()).into_owned()}</bdi></b> " " {review::TO_DELETE}
            </label>
            <input
                class="input mono" id="config-delete" autocomplete="off" spellcheck="false" data-testid="config-delete-typed"
                prop:value=typed on:input=move |event| typed.set(event_target_value(&event))
            />
            <span class="muted" aria-live="polite">{dynamic(move || why_not.get())}</span>
            <span class="config-actions">
                <button type="button" class=ButtonStyle::Secondary.class() on:click=move |_| asks.set(false)>{review::CANCEL}</button>
                <button
                    type="button" class=ButtonStyle::Danger.class() data-testid="config-delete-yes"
                    aria-disabled=live(move || why_not.get().is_some().then_some("true")) on:click=press
                >{words::YES}</button>
            </span>
            {dynamic(move || refused.get().map(|said| view! { <p class="help help-error" role="alert">{shown(&said).into_owned()}</p> }))}
        </div>
    }
    .into_any()
}
