//! Forms of permissions, approvals and skills.

use super::editor::Editor;
use super::fields::{list, new_name, remover};
use crate::model::agent_config::faults::RULES;
use crate::model::agent_config::place::{member, text};
use crate::model::shown::shown;
use crate::parts::icon::icon;
use crate::reactive::{dynamic, live};
use crate::text::agent_config::{approvals, permissions as words, skills};
use leptos::prelude::*;
use serde_json::Value;
use std::collections::BTreeSet;

/// A choice at a place of the part; the empty one takes away what is there.
fn choice(
    editor: Editor,
    at: &str,
    label: String,
    options: &[(&'static str, &'static str)],
) -> AnyView {
    let place = StoredValue::new(at.to_owned());
    let now = editor.draft.with_untracked(|draft| text(draft, at));
    let is_known = options.iter().any(|(word, _)| *word == now);
    let odd = (!is_known).then(|| {
        let odd = now.clone();
        view! { <option value=odd.clone() disabled=true selected=true>{odd.clone()}</option> }
    });
    let options = options
        .iter()
        .map(|&(word, said)| {
            let is_chosen = live(move || {
                place.with_value(|at| editor.draft.with(|draft| text(draft, at) == word))
            });
            view! { <option value=word prop:selected=is_chosen>{said}</option> }
        })
        .collect_view();
    let choose = move |event| {
        let word = event_target_value(&event);
        let value = (!word.is_empty()).then(|| Value::from(word));
        place.with_value(|at| editor.set(at, value));
    };
    view! {
        <span class="select">
            <select aria-label=label data-at=at.to_owned() on:change=choose>{odd} {options}</select>
            {icon("chevron-down", 16)}
        </span>
    }
    .into_any()
}

/// Rules and the default mode.
pub fn permissions(editor: Editor) -> AnyView {
    let lists = RULES.into_iter().zip(words::LISTS).map(|(rule, (title, about))| {
        view! {
            {list(editor, &member("", rule), title, words::RULE)}
            <p class="muted config-about-list">{about}</p>
        }
    });
    view! {
        <section class="config-group" aria-label=words::MODE>
            <div class="config-group-head"><h3>{words::MODE}</h3></div>
            {choice(editor, "/defaultMode", words::MODE.to_owned(), &words::MODES)}
            <p class="muted">{words::MODE_ABOUT}</p>
        </section>
        {lists.collect_view()}
    }
    .into_any()
}

/// How visible skills are.
pub fn overrides(editor: Editor) -> AnyView {
    let names: Vec<String> = editor.draft.with_untracked(|draft| {
        draft.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
    });
    let is_empty = names.is_empty();
    let rows = names.into_iter().map(|name| {
        let at = StoredValue::new(member("", &name));
        let wrong = move || at.with_value(|at| editor.fault(at));
        let remove = Callback::new(move |()| at.with_value(|at| editor.reshape(at, None)));
        let label = shown(&name).into_owned();
        view! {
            <li class="config-choice" data-testid="config-override">
                <b><bdi>{label.clone()}</bdi></b>
                {at.with_value(|at| choice(editor, at, label.clone(), &skills::VISIBILITY))}
                {remover(&name, remove)}
                <p class="help help-error" role="alert">{dynamic(wrong)}</p>
            </li>
        }
    });
    let rows = rows.collect_view();
    let is_taken = Callback::new(move |name: String| {
        editor.draft.with_untracked(|draft| draft.get(&name).is_some())
    });
    let add = Callback::new(move |name: String| {
        editor.reshape(&member("", &name), Some(Value::from("off")));
    });
    view! {
        {is_empty.then(|| view! { <p class="config-none" data-testid="config-none">{skills::NONE}</p> })}
        <ul class="config-choices">{rows}</ul>
        {new_name(skills::NEW, skills::check, is_taken, add)}
    }
    .into_any()
}

/// Which servers of a project may run.
pub fn decisions(editor: Editor, brought: &[String], locked: &[String]) -> AnyView {
    let lists = ["enabled", "disabled"];
    let of = move |list: &str| -> Vec<String> {
        let texts = |value: &Value| {
            let items = value.get(list).and_then(Value::as_array).into_iter().flatten();
            items.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        editor.draft.with(texts)
    };
    let decided = untrack(|| lists.map(of));
    let names: BTreeSet<String> =
        brought.iter().chain(decided.iter().flatten()).chain(locked).cloned().collect();
    let is_empty = names.is_empty();
    let decide = move |name: &str, to: Option<usize>| {
        for (index, list) in lists.into_iter().enumerate() {
            let mut now = untrack(|| of(list));
            let is_there = now.iter().any(|other| other == name);
            if is_there == (to == Some(index)) {
                continue;
            }
            now.retain(|other| other != name);
            if to == Some(index) {
                now.push(name.to_owned());
            }
            editor.set(&member("", list), Some(Value::from(now)));
        }
    };
    let rows = names.into_iter().map(|name| {
        let key = StoredValue::new(name.clone());
        let state = move || {
            let has = |list: &str| of(list).iter().any(|other| key.with_value(|key| key == other));
            if has("disabled") {
                Some(1)
            } else if has("enabled") {
                Some(0)
            } else {
                None
            }
        };
        let buttons = approvals::CHOICES.into_iter().map(|(label, to)| {
            view! {
                <button
                    type="button" class="filter" data-testid="config-decide"
                    aria-pressed=live(move || (state() == to).to_string())
                    on:click=move |_| key.with_value(|key| decide(key, to))
                >{label}</button>
            }
        });
        let is_locked = locked.contains(&name);
        let control = match is_locked {
            true => view! { <span class="muted">{approvals::LOCKED}</span> }.into_any(),
            false => view! { <span class="filters">{buttons.collect_view()}</span> }.into_any(),
        };
        let is_brought = brought.contains(&name);
        view! {
            <li class="config-choice" data-testid="config-approval" data-name=name.clone()>
                <span>
                    <b><bdi>{shown(&name).into_owned()}</bdi></b>
                    {(!is_brought).then(|| view! { " " <span class="muted">{approvals::GONE}</span> })}
                </span>
                {control}
            </li>
        }
    });
    let rows = rows.collect_view();
    let reset = move |_| {
        for list in lists {
            editor.set(&member("", list), Some(Value::Array(Vec::new())));
        }
    };
    view! {
        {is_empty.then(|| view! { <p class="config-none" data-testid="config-none">{approvals::NONE}</p> })}
        <ul class="config-choices">{rows}</ul>
        {(!is_empty).then(|| view! {
            <button type="button" class="btn btn-ghost" data-testid="config-reset" on:click=reset>{approvals::RESET}</button>
        })}
    }
    .into_any()
}
