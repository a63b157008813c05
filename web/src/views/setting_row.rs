//! One setting: what it is, its value, and the control that changes it.

use crate::model::settings::{bound, edit, is_found, is_same, text_of, texts_of, value_of};
use crate::page::page;
use crate::parts::icon::icon;
use crate::reactive::{derived, dynamic, live, memo};
use crate::text::settings as words;
use crate::views::copy::{before, copy};
use crate::views::prose::sentence;
use crate::views::settings_form::SettingsForm;
use leptos::prelude::*;
use serde_json::{Map, Value};
use svc_shared::internal::settings::{ConfigReport, ConfigSpec};

/// What a control needs. Cheap to copy.
#[derive(Clone, Copy)]
struct Control {
    form: SettingsForm,
    spec: StoredValue<ConfigSpec>,
    /// The value of the file.
    now: StoredValue<Value>,
    /// The list that the key is in.
    report: StoredValue<ConfigReport>,
    is_fixed: bool,
}

impl Control {
    /// The value that is shown: the next one, or that of the file.
    fn value(self) -> Value {
        let key = self.spec.with_value(|spec| spec.key.clone());
        let next = self.form.edits.with(|edits| edits.get(&key).cloned());
        next.unwrap_or_else(|| self.now.get_value())
    }

    fn set(self, value: Value) {
        let key = self.spec.with_value(|spec| spec.key.clone());
        self.form.wrong.update(|wrong| drop(wrong.remove(&key)));
        self.form
            .edits
            .update(|edits| self.report.with_value(|report| edit(edits, report, &key, value)));
    }

    /// Takes what is typed, or says what is wrong with it.
    fn take(self, typed: &str) {
        match self.spec.with_value(|spec| value_of(spec, typed)) {
            Ok(value) => self.set(value),
            Err(broken) => {
                let said = match broken {
                    Some(bound) => words::bounds(&bound),
                    None => words::NO_NUMBER.to_owned(),
                };
                let key = self.spec.with_value(|spec| spec.key.clone());
                self.form.wrong.update(|wrong| drop(wrong.insert(key, said)));
            }
        }
    }
}

/// The row of a setting.
pub fn row(form: SettingsForm, report: &ConfigReport, spec: &ConfigSpec) -> AnyView {
    let key = spec.key.clone();
    // What is missing cannot be switched on; what is on can be switched off.
    let missing = spec.dep_status.clone().filter(|status| !status.available);
    let is_on = report.fields.get(&key) == Some(&Value::Bool(true));
    let control = Control {
        form,
        spec: StoredValue::new(spec.clone()),
        now: StoredValue::new(report.fields.get(&key).cloned().unwrap_or_default()),
        report: StoredValue::new(report.clone()),
        is_fixed: !report.can_save
            || report.hash.is_none()
            || spec.env_name.is_some()
            || (missing.is_some() && !is_on),
    };
    let texts = texts_of(spec);
    let is_hidden = derived(move || form.filter.with(|filter| !is_found(filter, &texts)));
    let (of_changed, of_conflict, of_wrong) = (key.clone(), key.clone(), key.clone());
    let is_changed = move || form.edits.with(|edits| edits.contains_key(&of_changed));
    let name = format!("setting-{key}");
    let (page, of_copy) = (page(), key.clone());
    let copy_key = move |event| copy(page, of_copy.clone(), before(&event));
    let bounds = match spec.kind.as_str() {
        "int" | "float" => words::bounds(&bound(spec)),
        "list" => words::ONE_PER_LINE.to_owned(),
        _ => String::new(),
    };
    view! {
        <div
            class="setting" data-testid="setting" data-key=key.clone() hidden=is_hidden
            class:changed=derived(is_changed)
        >
            <div class="setting-what">
                <p>
                    <b id=name.clone()>{spec.label.clone()}</b> <code>{key.clone()}</code>
                    <button
                        type="button" class="btn btn-ghost btn-icon only-desk" aria-label=words::copy(&key)
                        data-testid="setting-copy" on:click=copy_key
                    >{icon("copy", 14)}</button>
                    {badges(spec)}
                </p>
                <p class="muted">{sentence(&spec.description)} " " {bounds}</p>
                {missing.map(|status| view! {
                    <p class="setting-note tone-warn" data-testid="setting-missing">{sentence(&status.hint)}</p>
                })}
                {dynamic(move || form.conflicts.with(|keys| keys.contains(&of_conflict)).then(|| view! {
                    <p class="tone-warn setting-note" data-testid="setting-conflict">{words::CONFLICT}</p>
                }))}
            </div>
            <div class="setting-value">
                {input(control, &name)}
                {dynamic(move || form.wrong.with(|wrong| wrong.get(&of_wrong).cloned()).map(|said| view! {
                    <p class="setting-note tone-danger" role="alert" data-testid="setting-wrong">{said}</p>
                }))}
                <p class="muted">{live(move || below(control))}</p>
            </div>
        </div>
    }
    .into_any()
}

fn badges(spec: &ConfigSpec) -> Vec<AnyView> {
    let chip =
        |text: String, class: &'static str| view! { <span class=class>{text}</span> }.into_any();
    let mut badges = Vec::new();
    if spec.dep_status.as_ref().is_some_and(|status| !status.available) {
        badges.push(chip(words::MISSING.to_owned(), "chip"));
    }
    let (applies, class) = match spec.applies.as_str() {
        "restart" => (words::NEEDS_RESTART, "chip chip-all"),
        "next_session" => (words::APPLIES_TO_NEW, "chip"),
        _ => (words::APPLIES_LIVE, "chip"),
    };
    badges.push(chip(applies.to_owned(), class));
    if spec.deprecated {
        badges.push(chip(words::DEPRECATED.to_owned(), "chip"));
    }
    if spec.pending {
        badges.push(chip(words::PENDING.to_owned(), "chip chip-all"));
    }
    badges
}

/// Where the value comes from, and what it would be without.
fn below(control: Control) -> String {
    let (value, now) = (control.value(), control.now.get_value());
    control.spec.with_value(|spec| {
        let source = match (&spec.env_name, is_same(&value, &now)) {
            (Some(variable), _) => words::set_by(variable),
            (None, false) => words::was(&words::value(&now)),
            (None, true) if spec.source == "file" => words::FROM_FILE.to_owned(),
            (None, true) => return words::IS_DEFAULT.to_owned(),
        };
        format!("{source} · {}", words::default_is(&words::value(&spec.default)))
    })
}

fn input(control: Control, name: &str) -> AnyView {
    let spec = control.spec.get_value();
    let name = name.to_owned();
    let disabled = control.is_fixed.then_some("");
    // Only another value draws a field anew: what is being typed stays.
    let text = memo(move || text_of(&control.value()));
    match spec.kind.as_str() {
        "bool" => switch(
            move || control.value() == Value::Bool(true),
            move |on| control.set(Value::Bool(on)),
            name,
            None,
            control.is_fixed,
        ),
        "map" => {
            let state = move |key: &str, default: bool| {
                let value = control.value();
                value.get(key).and_then(Value::as_bool).unwrap_or(default)
            };
            let all = spec
                .map_keys
                .iter()
                .map(|one| {
                    let (key, of_set, default) = (one.key.clone(), one.key.clone(), one.default);
                    switch(
                        move || state(&key, default),
                        move |on| {
                            let mut states = match control.value() {
                                Value::Object(states) => states,
                                _ => Map::new(),
                            };
                            states.insert(of_set.clone(), Value::Bool(on));
                            control.set(Value::Object(states));
                        },
                        name.clone(),
                        Some(one.key.clone()),
                        control.is_fixed,
                    )
                })
                .collect::<Vec<_>>();
            view! { <div class="setting-map">{all}</div> }.into_any()
        }
        "enum" => {
            let options = spec.choices.iter().map(|word| {
                let own = word.clone();
                let is_chosen = live(move || control.value() == own.as_str());
                let label = words::choice(&spec.key, word);
                view! { <option value=word.clone() prop:selected=is_chosen>{label}</option> }
                    .into_any()
            });
            // A value that is not offered here stays what it is until another one is chosen.
            let odd = text_of(&control.now.get_value());
            let odd = (!spec.choices.contains(&odd)).then(|| {
                view! {
                    <option value=odd.clone() disabled=true prop:selected=live({
                        let odd = odd.clone();
                        move || control.value() == odd.as_str()
                    })>{odd.clone()}</option>
                }
            });
            view! {
                <span class="select">
                    <select
                        aria-labelledby=name disabled=disabled.is_some()
                        on:change=move |event| control.set(event_target_value(&event).into())
                    >{odd} {options.collect::<Vec<_>>()}</select>
                    {icon("chevron-down", 16)}
                </span>
            }
            .into_any()
        }
        "list" => view! {
            <textarea
                class="input" rows="4" aria-labelledby=name disabled=disabled.is_some()
                prop:value=text
                on:change=move |event| control.take(&event_target_value(&event))
            ></textarea>
        }
        .into_any(),
        kind => {
            let mode = if matches!(kind, "int" | "float") { "decimal" } else { "text" };
            view! {
                <span class="setting-field">
                    <input
                        class="input" autocomplete="off" inputmode=mode aria-labelledby=name
                        disabled=disabled.is_some()
                        prop:value=text
                        on:change=move |event| control.take(&event_target_value(&event))
                    />
                    {spec.unit.clone()}
                </span>
            }
            .into_any()
        }
    }
}

fn switch(
    is_on: impl Fn() -> bool + Clone + Send + Sync + 'static,
    set: impl Fn(bool) + 'static,
    name: String,
    label: Option<String>,
    is_fixed: bool,
) -> AnyView {
    let (state, shown, pressed) = (is_on.clone(), is_on.clone(), is_on);
    let words = label.clone();
    view! {
        <button
            type="button" class="switch" role="switch" disabled=is_fixed
            aria-checked=live(move || state().to_string())
            aria-labelledby=label.is_none().then_some(name)
            on:click=move |_| set(!untrack(&pressed))
        >
            {live(move || match &words {
                Some(label) => label.clone(),
                None if shown() => words::ON.to_owned(),
                None => words::OFF.to_owned(),
            })}
        </button>
    }
    .into_any()
}
