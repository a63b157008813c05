//! Commands that the agent runs at its events.

use super::editor::Editor;
use super::fields::{Kind, field, remover};
use crate::model::agent_config::place::{item, member, text};
use crate::model::shown::shown;
use crate::parts::icon::icon;
use crate::reactive::dynamic;
use crate::text::agent_config::hooks as words;
use crate::text::session::named;
use leptos::prelude::*;
use serde_json::{Value, json};

/// The form.
pub fn form(editor: Editor) -> AnyView {
    let events: Vec<(String, Value)> = editor.draft.with_untracked(|draft| {
        draft.as_object().into_iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect()
    });
    let absent: Vec<&'static str> = words::EVENTS
        .iter()
        .map(|(event, _, _)| *event)
        .filter(|event| !events.iter().any(|(there, _)| there == event))
        .collect();
    let is_empty = events.is_empty();
    let events = events.into_iter().map(|(event, groups)| one_event(editor, event, &groups));
    let choose = move |chosen: web_sys::Event| {
        let event = event_target_value(&chosen);
        // It offers the next one, and does not show the last choice.
        if let Some(field) = chosen.target() {
            let _ = js_sys::Reflect::set(&field, &"value".into(), &"".into()); // a field has a value
        }
        if !event.is_empty() {
            let first = json!([{ "hooks": [{ "type": "command", "command": "" }] }]);
            editor.reshape(&member("", &event), Some(first));
            focus_command(&event);
        }
    };
    view! {
        {is_empty.then(|| view! { <p class="config-none" data-testid="config-none">{words::NONE}</p> })}
        {events.collect_view()}
        <div class="config-add-event">
            <span class="select">
                <select aria-label=words::ADD_EVENT data-testid="hook-event" on:change=choose>
                    <option value="">{words::ADD_EVENT}</option>
                    {absent.into_iter().map(|event| view! { <option value=event>{event}</option> }).collect_view()}
                </select>
                {icon("chevron-down", 16)}
            </span>
        </div>
    }
    .into_any()
}

fn focus_command(event: &str) {
    let selector = format!("[data-event=\"{event}\"] .config-hook:last-of-type textarea");
    crate::browser::after_paint(move || {
        crate::browser::after_paint(move || {
            crate::browser::focus(&selector);
        });
    });
}

fn one_event(editor: Editor, event: String, groups: &Value) -> AnyView {
    let at = member("", &event);
    let (_, when, matcher) = words::EVENTS
        .iter()
        .find(|(known, _, _)| *known == event)
        .copied()
        .unwrap_or(("", "", Some(words::ONLY_FOR)));
    let all = groups.as_array().cloned().unwrap_or_default();
    let next = all.len();
    let rows = all.iter().enumerate().flat_map(|(group, value)| {
        let hooks = value.get("hooks").and_then(Value::as_array).cloned().unwrap_or_default();
        let (of, event) = (item(&at, group), event.clone());
        let count = hooks.len();
        hooks
            .into_iter()
            .enumerate()
            .map(move |(index, hook)| {
                let place = HookPosition { at: of.clone(), index, count, event: event.clone() };
                one_hook(editor, &place, &hook, matcher)
            })
            .collect::<Vec<_>>()
    });
    let rows = rows.collect_view();
    let (place, name) = (StoredValue::new(at.clone()), StoredValue::new(event.clone()));
    let add = move |_| {
        let hook = json!({ "hooks": [{ "type": "command", "command": "" }] });
        place.with_value(|at| editor.reshape(&item(at, next), Some(hook)));
        name.with_value(|event| focus_command(event));
    };
    let wrong = move || {
        let at = place.get_value();
        let of_groups = (0..next)
            .filter_map(|group| editor.said.with(|said| said.get(&item(&at, group)).cloned()));
        editor.fault(&at).into_iter().chain(of_groups).next()
    };
    view! {
        <section class="config-event" data-event=event.clone() aria-label=event.clone()>
            <div class="config-group-head">
                <h3><bdi>{shown(&event).into_owned()}</bdi></h3> <span class="muted">{when}</span>
                <button type="button" class="btn btn-ghost" aria-label=named(words::ADD_HOOK, &event) data-testid="hook-add" on:click=add>
                    {icon("plus", 16)} {words::ADD}
                </button>
            </div>
            {dynamic(move || wrong().map(|wrong| view! { <p class="help help-error" role="alert">{wrong}</p> }))}
            {rows}
        </section>
    }
    .into_any()
}

/// Where a hook stands.
struct HookPosition {
    /// Its group.
    at: String,
    index: usize,
    /// Hooks of the group.
    count: usize,
    event: String,
}

fn one_hook(
    editor: Editor,
    place: &HookPosition,
    hook: &Value,
    matcher: Option<&'static str>,
) -> AnyView {
    let (of, index) = (place.at.clone(), place.index);
    let at = item(&member(&of, "hooks"), index);
    let (group, own, count) = (of.clone(), at.clone(), place.count);
    let event = place.event.clone();
    // What holds nothing any more goes with its last hook.
    let remove = Callback::new(move |()| {
        let is_last_group = editor.draft.with_untracked(|draft| {
            draft.get(&event).and_then(Value::as_array).is_some_and(|groups| groups.len() == 1)
        });
        match (count, is_last_group) {
            (1, true) => editor.reshape(&member("", &event), None),
            (1, false) => editor.reshape(&group, None),
            (_, _) => editor.reshape(&own, None),
        }
    });
    if hook.get("type").and_then(Value::as_str) != Some("command") {
        let kind = text(hook, "/type");
        return view! {
            <div class="config-hook config-kept"><p class="muted">{words::kept(&shown(&kind))}</p></div>
        }
        .into_any();
    }
    let filter = match (matcher, index) {
        (Some(label), 0) => field(editor, &member(&of, "matcher"), label, Kind::Line, false),
        (Some(label), _) => fixed(label, words::AS_ABOVE),
        (None, _) => fixed(words::ONLY_FOR, words::NOT_USED),
    };
    let command = text(hook, "/command");
    view! {
        <div class="config-hook" data-testid="hook" data-changed=changed(editor, &at, &of)>
            {filter}
            {field(editor, &member(&at, "command"), words::COMMAND, Kind::Code, true)}
            {field(editor, &member(&at, "timeout"), words::TIMEOUT, Kind::Number, false)}
            {remover(&command, remove)}
        </div>
    }
    .into_any()
}

/// Whether a hook differs from what was read.
fn changed(editor: Editor, at: &str, group: &str) -> crate::reactive::Live<Option<&'static str>> {
    let (at, matcher) = (at.to_owned(), member(group, "matcher"));
    crate::reactive::live(move || {
        let differs = |place: &str| {
            editor.known.with(|known| {
                let known = known.as_ref().and_then(|known| known.value.pointer(place));
                editor.draft.with(|draft| draft.pointer(place) != known)
            })
        };
        (differs(&at) || differs(&matcher)).then_some("true")
    })
}

/// A field that says why it cannot be changed.
fn fixed(label: &'static str, why: &'static str) -> AnyView {
    view! {
        <div class="config-field config-fixed">
            <span class="config-label">{label}</span>
            <p class="input">{why}</p>
        </div>
    }
    .into_any()
}
