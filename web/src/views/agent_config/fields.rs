//! Fields that are bound to a place of the part: texts, lists and maps of texts.

use super::editor::Editor;
use crate::browser;
use crate::model::agent_config::place::{item, member, text};
use crate::model::shown::shown;
use crate::parts::icon::icon;
use crate::reactive::{derived, dynamic, live};
use crate::text::agent_config::{self as words, fault};
use crate::text::session::named;
use leptos::prelude::*;
use serde_json::{Map, Value};

/// How a text is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One line.
    Line,
    /// One line or more of code.
    Code,
    /// A number; empty is none.
    Number,
    /// Never echoed.
    Secret,
}

/// Makes ids that no other field of the page has.
fn id() -> String {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    format!("config-{}", NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
}

/// A field at a place of the part.
///
/// An emptied field that is not needed is taken away.
pub fn field(
    editor: Editor,
    at: &str,
    label: &'static str,
    kind: Kind,
    is_needed: bool,
) -> AnyView {
    let place = StoredValue::new(at.to_owned());
    // What is given up is taken out of the field as well.
    let now = derived(move || place.with_value(|at| editor.draft.with(|draft| text(draft, at))));
    let set = Callback::new(move |typed: String| {
        let value = match kind {
            _ if typed.is_empty() && !is_needed => None,
            Kind::Number => Some(number(&typed)),
            Kind::Line | Kind::Code | Kind::Secret => Some(Value::from(typed)),
        };
        place.with_value(|at| editor.set(at, value));
    });
    let wrong = derived(move || place.with_value(|at| editor.fault(at)));
    labelled(label, at, kind, now, set, wrong, None)
}

/// The number that is typed; the text itself where it is none, or not yet.
fn number(typed: &str) -> Value {
    // "3." is on its way to "3.5".
    let is_whole = |number: &Value| {
        let shown = number.to_string();
        shown == typed
    };
    let whole = typed.parse::<i64>().ok().map(Value::from).filter(is_whole);
    let number = whole.or_else(|| typed.parse::<f64>().ok().map(Value::from).filter(is_whole));
    number.unwrap_or_else(|| Value::from(typed))
}

/// A field with its label and what is wrong with it.
pub fn labelled(
    label: &str,
    at: &str,
    kind: Kind,
    now: Signal<String>,
    set: Callback<String>,
    wrong: Signal<Option<String>>,
    placeholder: Option<&'static str>,
) -> AnyView {
    let id = id();
    let help = format!("{id}-wrong");
    let described = help.clone();
    let is_bad = move || wrong.get().is_some().then_some("true");
    let at = at.to_owned();
    let control = if kind == Kind::Code {
        view! {
            <textarea
                class="input mono" id=id.clone() rows="1" spellcheck="false" autocapitalize="off" data-at=at
                aria-describedby=described aria-invalid=live(is_bad)
                prop:value=now
                on:input=move |event| set.run(event_target_value(&event))
            ></textarea>
        }
        .into_any()
    } else {
        let (mode, type_) = match kind {
            Kind::Number => ("decimal", "text"),
            Kind::Secret => ("text", "password"),
            Kind::Line | Kind::Code => ("text", "text"),
        };
        view! {
            <input
                class="input mono" id=id.clone() type=type_ inputmode=mode autocomplete="off" autocapitalize="off"
                spellcheck="false" data-at=at placeholder=placeholder
                aria-describedby=described aria-invalid=live(is_bad)
                prop:value=now
                on:input=move |event| set.run(event_target_value(&event))
            />
        }
        .into_any()
    };
    view! {
        <div class="config-field">
            <label for=id>{label.to_owned()}</label>
            {control}
            <p class="help help-error" id=help role="alert">{dynamic(move || wrong.get())}</p>
        </div>
    }
    .into_any()
}

/// A button that takes a row away.
pub fn remover(what: &str, go: Callback<()>) -> AnyView {
    view! {
        <button
            type="button" class="btn btn-ghost btn-icon" aria-label=named(words::REMOVE, &shown(what)) title=words::REMOVE
            data-testid="config-remove" on:click=move |_| go.run(())
        >{icon("trash", 16)}</button>
    }
    .into_any()
}

/// A button that adds a row.
pub fn adder(what: &'static str, testid: &'static str, go: Callback<()>) -> AnyView {
    view! {
        <button
            type="button" class="btn btn-ghost" aria-label=named(words::ADD, what)
            data-testid=testid on:click=move |_| go.run(())
        >{icon("plus", 16)} {words::ADD}</button>
    }
    .into_any()
}

/// Moves the focus into the last field of a group, once it is drawn.
pub fn focus_last(group: String) {
    browser::after_paint(move || {
        browser::focus(&format!("[data-group=\"{group}\"] > :last-child :is(input, textarea)"));
    });
}

/// A list of texts at a place of the part.
pub fn list(editor: Editor, at: &str, title: &'static str, label: &'static str) -> AnyView {
    let place = StoredValue::new(at.to_owned());
    let first: Vec<Value> = editor.draft.with_untracked(|draft| {
        draft.pointer(at).and_then(Value::as_array).cloned().unwrap_or_default()
    });
    // Rows keep their signals: what is typed does not draw the others anew.
    let rows = RwSignal::new(first.into_iter().map(RwSignal::new).collect::<Vec<_>>());
    let write = move || {
        let items: Vec<Value> =
            rows.with_untracked(|rows| rows.iter().map(|row| row.get_untracked()).collect());
        place.with_value(|at| editor.set(at, (!items.is_empty()).then(|| Value::from(items))));
    };
    let group = at.trim_start_matches('/').replace('/', "-");
    let key = StoredValue::new(group.clone());
    let add = Callback::new(move |()| {
        rows.update(|rows| rows.push(RwSignal::new(Value::from(""))));
        write();
        focus_last(key.get_value());
    });
    let one = move |index: usize, row: RwSignal<Value>| {
        let at = place.with_value(|at| item(at, index));
        let own = StoredValue::new(at.clone());
        let wrong = derived(move || own.with_value(|at| editor.fault(at)));
        let first = row.with_untracked(|value| text(value, ""));
        let now = derived(move || row.with(|value| text(value, "")));
        let set = Callback::new(move |typed: String| {
            row.set(Value::from(typed));
            write();
        });
        let remove = Callback::new(move |()| {
            rows.update(|rows| {
                rows.remove(index);
            });
            write();
        });
        view! {
            <li>
                {labelled(label, &at, Kind::Line, now, set, wrong, None)}
                {remover(&first, remove)}
            </li>
        }
    };
    view! {
        <section class="config-group" aria-label=title>
            <div class="config-group-head"><h3>{title}</h3> {adder(title, "config-add", add)}</div>
            <ul class="config-list" data-group=group>
                {dynamic(move || rows.get().into_iter().enumerate().map(|(index, row)| one(index, row)).collect_view())}
            </ul>
        </section>
    }
    .into_any()
}

/// A row of a map.
#[derive(Clone, Copy)]
struct Pair {
    id: u32,
    name: RwSignal<String>,
    value: RwSignal<Value>,
}

/// A map of texts at a place of the part. Its values are secret.
pub fn map(editor: Editor, at: &str, title: &'static str) -> AnyView {
    let place = StoredValue::new(at.to_owned());
    let next = StoredValue::new(0_u32);
    let pair = move |name: &str, value: Value| {
        next.update_value(|next| *next += 1);
        let name = RwSignal::new(name.to_owned());
        Pair { id: next.get_value(), name, value: RwSignal::new(value) }
    };
    let first: Vec<Pair> = editor.draft.with_untracked(|draft| {
        let members = draft.pointer(at).and_then(Value::as_object).into_iter().flatten();
        members.map(|(name, value)| pair(name, value.clone())).collect()
    });
    let rows = RwSignal::new(first);
    let place_of = move |id: u32| place.with_value(|at| member(at, &format!("#{id}")));
    let write = move || {
        let mut members = Map::new();
        for row in rows.get_untracked() {
            let name = row.name.get_untracked();
            let wrong = match name.trim() {
                "" => Some(fault::NO_NAME.to_owned()),
                name if members.contains_key(name) => Some(fault::TAKEN.to_owned()),
                _ => None,
            };
            if wrong.is_none() {
                members.insert(name.trim().to_owned(), row.value.get_untracked());
            }
            editor.mark(&place_of(row.id), wrong);
        }
        place.with_value(|at| {
            editor.set(at, (!members.is_empty()).then_some(Value::Object(members)));
        });
    };
    let group = at.trim_start_matches('/').replace('/', "-");
    let key = StoredValue::new(group.clone());
    let add = Callback::new(move |()| {
        rows.update(|rows| rows.push(pair("", Value::from(""))));
        write();
        browser::after_paint(move || {
            let group = key.get_value();
            browser::focus(&format!("[data-group=\"{group}\"] > :last-child input"));
        });
    });
    let one = move |row: Pair| {
        let at = place_of(row.id);
        let own = StoredValue::new(at.clone());
        let wrong = derived(move || own.with_value(|at| editor.fault(at)));
        let name = row.name.get_untracked();
        let set_name = Callback::new(move |typed| {
            row.name.set(typed);
            write();
        });
        let set_value = Callback::new(move |typed: String| {
            row.value.set(Value::from(typed));
            write();
        });
        let remove = Callback::new(move |()| {
            editor.mark(&place_of(row.id), None);
            rows.update(|rows| rows.retain(|other| other.id != row.id));
            write();
        });
        let value = derived(move || row.value.with(|value| text(value, "")));
        view! {
            <li class="config-pair">
                {labelled(words::NAME, &at, Kind::Line, row.name.into(), set_name, wrong, None)}
                {labelled(words::VALUE, &format!("{at}/value"), Kind::Secret, value, set_value, derived(|| None), None)}
                {remover(&name, remove)}
            </li>
        }
    };
    view! {
        <section class="config-group" aria-label=title>
            <div class="config-group-head"><h3>{title}</h3> {adder(title, "config-add", add)}</div>
            {dynamic(move || (!rows.with(Vec::is_empty)).then(|| view! { <p class="muted">{words::STARS}</p> }))}
            <ul class="config-list" data-group=group>{dynamic(move || rows.get().into_iter().map(one).collect_view())}</ul>
        </section>
    }
    .into_any()
}

/// Asks for the name of something new.
pub fn new_name(
    what: &'static str,
    check: fn(&str) -> Option<&'static str>,
    is_taken: Callback<String, bool>,
    go: Callback<String>,
) -> AnyView {
    let typed = RwSignal::new(String::new());
    let wrong = RwSignal::new(None::<String>);
    let add = move || {
        let name = typed.get_untracked().trim().to_owned();
        let found = check(&name).map(str::to_owned);
        let found = found.or_else(|| is_taken.run(name.clone()).then(|| fault::TAKEN.to_owned()));
        if found.is_none() {
            go.run(name);
            return;
        }
        wrong.set(found);
    };
    let press = move |event: web_sys::KeyboardEvent| {
        if event.key() == "Enter" {
            event.prevent_default();
            add();
        }
    };
    let set = Callback::new(move |name| {
        typed.set(name);
        wrong.set(None);
    });
    view! {
        <div class="config-new" on:keydown=press data-testid="config-new">
            {labelled(what, "new", Kind::Line, typed.into(), set, wrong.into(), None)}
            <button type="button" class="btn btn-secondary" data-testid="config-new-add" on:click=move |_| add()>{words::ADD}</button>
        </div>
    }
    .into_any()
}
