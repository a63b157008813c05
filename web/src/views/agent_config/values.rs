//! Settings by key, servers by name, and the whole as raw JSON.

use super::editor::Editor;
use super::fields::{Kind, field, labelled, list, map, new_name, remover};
use crate::model::agent_config::diff::tells;
use crate::model::agent_config::faults::is_server;
use crate::model::agent_config::place::{member, text};
use crate::model::shown::shown;
use crate::parts::icon::icon;
use crate::reactive::{derived, dynamic, live};
use crate::text::agent_config::{fault, servers as server, settings as words};
use leptos::prelude::*;
use serde_json::{Value, json};

/// Every key of the settings file without an editor of its own.
pub fn settings(editor: Editor) -> AnyView {
    let keys: Vec<(String, Value)> = editor.draft.with_untracked(|draft| {
        let members = draft.as_object().into_iter().flatten();
        let others = members.filter(|(key, _)| *key != "env");
        others.map(|(key, value)| (key.clone(), value.clone())).collect()
    });
    let rows = keys.into_iter().map(|(key, value)| setting(editor, &key, &value)).collect_view();
    let is_taken = Callback::new(move |name: String| {
        editor.draft.with_untracked(|draft| draft.get(&name).is_some())
    });
    let add = Callback::new(move |name: String| {
        editor.reshape(&member("", &name), Some(Value::from("")));
    });
    view! {
        {map(editor, "/env", words::ENV)}
        <section class="config-group" aria-label=words::KEYS>
            <div class="config-group-head"><h3>{words::KEYS}</h3></div>
            <ul class="config-list">{rows}</ul>
            {new_name(words::NEW, words::check, is_taken, add)}
        </section>
    }
    .into_any()
}

fn setting(editor: Editor, key: &str, value: &Value) -> AnyView {
    let at = member("", key);
    let place = StoredValue::new(at.clone());
    let remove = Callback::new(move |()| place.with_value(|at| editor.reshape(at, None)));
    let wrong = derived(move || place.with_value(|at| editor.fault(at)));
    let control = match value {
        Value::Bool(_) => {
            let is_on = move || {
                place.with_value(|at| {
                    editor.draft.with(|draft| draft.pointer(at) == Some(&true.into()))
                })
            };
            let toggle = move |_| {
                let next = !untrack(is_on);
                place.with_value(|at| editor.set(at, Some(next.into())));
            };
            view! {
                <button type="button" class="switch" role="switch" aria-checked=live(move || is_on().to_string()) on:click=toggle>
                    {shown(key).into_owned()}
                </button>
            }
            .into_any()
        }
        // A text stays a text, also one that looks like something else.
        Value::String(_) => {
            let now =
                derived(move || place.with_value(|at| editor.draft.with(|draft| text(draft, at))));
            let kind = if tells(key) { Kind::Secret } else { Kind::Line };
            let set = Callback::new(move |typed: String| {
                place.with_value(|at| editor.set(at, Some(Value::from(typed))));
            });
            labelled(key, &at, kind, now, set, wrong, None)
        }
        other => {
            let now = RwSignal::new(serde_json::to_string_pretty(other).unwrap_or_default());
            let set = Callback::new(move |typed: String| {
                now.set(typed.clone());
                place.with_value(|at| match parsed(&typed) {
                    Ok(value) => {
                        editor.mark(at, None);
                        editor.set(at, Some(value));
                    }
                    Err(said) => editor.mark(at, Some(said)),
                });
            });
            labelled(key, &at, Kind::Code, now.into(), set, wrong, None)
        }
    };
    view! { <li data-testid="config-key" data-key=key.to_owned()>{control} {remover(key, remove)}</li> }.into_any()
}

fn parsed(typed: &str) -> Result<Value, String> {
    serde_json::from_str(typed).map_err(|problem| fault::no_json(problem.line(), problem.column()))
}

/// Servers of the model context protocol.
pub fn servers(editor: Editor) -> AnyView {
    let names: Vec<(String, Value)> = editor.draft.with_untracked(|draft| {
        draft.as_object().into_iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect()
    });
    let is_empty = names.is_empty();
    let cards = names.into_iter().map(|(name, entry)| one_server(editor, &name, &entry));
    let cards = cards.collect_view();
    let is_taken = Callback::new(move |name: String| {
        editor.draft.with_untracked(|draft| draft.get(&name).is_some())
    });
    let add = Callback::new(move |name: String| {
        editor.reshape(&member("", &name), Some(json!({ "command": "" })));
        let selector = format!("[data-server=\"{name}\"] textarea");
        crate::browser::after_paint(move || {
            crate::browser::after_paint(move || {
                crate::browser::focus(&selector);
            });
        });
    });
    let check = |name: &str| (!is_server(name)).then_some(fault::BAD_NAME);
    view! {
        {is_empty.then(|| view! { <p class="config-none" data-testid="config-none">{server::NONE}</p> })}
        {cards}
        {new_name(server::NEW, check, is_taken, add)}
    }
    .into_any()
}

fn one_server(editor: Editor, name: &str, entry: &Value) -> AnyView {
    let at = member("", name);
    let place = StoredValue::new(at.clone());
    let remove = Callback::new(move |()| place.with_value(|at| editor.reshape(at, None)));
    let kind = match (entry.get("url").is_some(), text(entry, "/type").as_str()) {
        (true, "sse") => "sse",
        (true, _) => "http",
        (false, _) => "stdio",
    };
    let choose = move |event| {
        let next = event_target_value(&event);
        let at = place.get_value();
        let now =
            editor.draft.with_untracked(|draft| draft.pointer(&at).cloned().unwrap_or_default());
        let url = text(&now, "/url");
        let mut entry = match next.as_str() {
            "stdio" => json!({ "command": text(&now, "/command") }),
            kind => json!({ "type": kind, "url": url }),
        };
        // What both kinds have stays.
        for shared in ["env", "headers"] {
            let may = shared == "env" || next != "stdio";
            if let (true, Some(kept), Some(members)) = (may, now.get(shared), entry.as_object_mut())
            {
                members.insert(shared.to_owned(), kept.clone());
            }
        }
        editor.reshape(&at, Some(entry));
    };
    let options = server::KINDS.into_iter().map(|(word, said)| {
        view! { <option value=word selected=word == kind>{said}</option> }
    });
    let fields = match kind {
        "stdio" => view! {
            {field(editor, &member(&at, "command"), server::COMMAND, Kind::Code, true)}
            {list(editor, &member(&at, "args"), server::ARGS, server::ARG)}
        }
        .into_any(),
        _ => view! {
            {field(editor, &member(&at, "url"), server::URL, Kind::Line, true)}
            {map(editor, &member(&at, "headers"), server::HEADERS)}
        }
        .into_any(),
    };
    let wrong = move || place.with_value(|at| editor.fault(at));
    view! {
        <section class="config-event config-server" data-testid="server" data-server=name.to_owned() aria-label=name.to_owned()>
            <div class="config-group-head">
                <h3><bdi>{shown(name).into_owned()}</bdi></h3>
                <span class="select">
                    <select aria-label=server::KIND on:change=choose>{options.collect_view()}</select>
                    {icon("chevron-down", 16)}
                </span>
                {remover(name, remove)}
            </div>
            {dynamic(move || wrong().map(|wrong| view! { <p class="help help-error" role="alert">{wrong}</p> }))}
            {fields}
            {map(editor, &member(&at, "env"), server::ENV)}
        </section>
    }
    .into_any()
}

/// The whole part as raw JSON.
pub fn raw(editor: Editor) -> AnyView {
    let first = editor
        .draft
        .with_untracked(|draft| serde_json::to_string_pretty(draft).unwrap_or_default());
    let now = RwSignal::new(first);
    let set = Callback::new(move |typed: String| {
        now.set(typed.clone());
        let found = parsed(&typed).and_then(|value| match value.is_object() {
            true => Ok(value),
            false => Err(fault::NO_OBJECT.to_owned()),
        });
        match found {
            Ok(value) => {
                editor.mark("/", None);
                editor.set("", Some(value));
            }
            Err(said) => editor.mark("/", Some(said)),
        }
    });
    let wrong = derived(move || editor.fault("/"));
    view! {
        <div class="config-raw" data-testid="config-raw">
            {labelled(crate::text::agent_config::RAW, "/", Kind::Code, now.into(), set, wrong, None)}
        </div>
    }
    .into_any()
}
