//! The list of sections beside the settings.
//!
//! It leads to each section and marks the one that is in view.

use crate::browser;
use crate::model::settings::{Section, Texts, is_found, texts_of, texts_of_file_only};
use crate::parts::icon::{icon, symbol};
use crate::parts::visible::VisibleWatch;
use crate::reactive::{derived, dynamic, effect, live, memo};
use crate::text::settings as words;
use crate::views::settings_form::SettingsForm;
use leptos::html;
use leptos::prelude::*;
use std::collections::BTreeSet;
use svc_shared::internal::settings::FileOnlyKey;
use wasm_bindgen::JsCast as _;
use web_sys::{Element, Event, HtmlSelectElement};

/// Element of the second list.
pub const ADVANCED: &str = "settings-of-advanced";
/// Element of the keys that no editor changes.
pub const FILE_ONLY: &str = "settings-of-file";
/// The part of the window in which a section counts as the one that is read.
///
/// It is below the bar at the top and above the lower half.
const READ_AREA: &str = "-64px 0px -50% 0px";

/// Element of a section.
#[must_use]
pub fn id(section: &str) -> String {
    format!("settings-{section}")
}

/// An entry of the list.
struct Entry {
    id: String,
    icon: &'static str,
    label: String,
    keys: Keys,
    /// What its keys are found by; none where it always stays.
    texts: Option<Vec<Texts>>,
}

/// The keys behind an entry.
enum Keys {
    /// These.
    Of(Vec<String>),
    /// Those of the second list, once it is open.
    Advanced,
}

impl Keys {
    /// How many of them have another value that is not saved yet.
    fn changed(&self, form: SettingsForm) -> usize {
        form.edits.with(|edits| match self {
            Self::Of(keys) => keys.iter().filter(|key| edits.contains_key(*key)).count(),
            Self::Advanced => form.advanced.with(|report| {
                let specs = report.iter().flat_map(|report| report.specs.keys());
                specs.filter(|key| edits.contains_key(*key)).count()
            }),
        })
    }
}

/// The list. The second list is in it while something can be saved.
pub fn places(
    form: SettingsForm,
    sections: &[Section<'_>],
    file_only: &[FileOnlyKey],
    can_save: bool,
) -> AnyView {
    let advanced = can_save.then(|| Entry {
        id: ADVANCED.to_owned(),
        icon: "g-padlock",
        label: words::ADVANCED.to_owned(),
        keys: Keys::Advanced,
        texts: None,
    });
    let file_only = Entry {
        id: FILE_ONLY.to_owned(),
        icon: "file",
        label: words::FILE_ONLY.to_owned(),
        keys: Keys::Of(Vec::new()),
        texts: Some(file_only.iter().map(texts_of_file_only).collect()),
    };
    let named = sections.iter().map(|one| Entry {
        id: id(one.name),
        icon: icon_of(one.name),
        label: one.label.to_owned(),
        keys: Keys::Of(one.specs.iter().map(|spec| spec.key.clone()).collect()),
        texts: Some(one.specs.iter().copied().map(texts_of).collect()),
    });
    let all: Vec<Entry> = named.chain(advanced).chain([file_only]).collect();
    let options: Vec<_> = all
        .iter()
        .map(|one| view! { <option value=one.id.clone()>{one.label.clone()}</option> })
        .collect();
    let chosen = |event: Event| {
        let target = event.target();
        let Some(menu) = target.and_then(|at| at.dyn_into::<HtmlSelectElement>().ok()) else {
            return;
        };
        go_to(&menu.value());
        menu.set_value(""); // so that the same section can be chosen again
    };
    let list = NodeRef::<html::Nav>::new();
    let current = followed(list, all.iter().map(|place| place.id.clone()).collect());
    let count = sections.len();
    let rows = all
        .into_iter()
        .enumerate()
        .map(|(at, one)| {
            let line = (at == count).then(|| view! { <hr /> });
            view! { {line} {place(form, at, one, current)} }
        })
        .collect::<Vec<_>>();
    view! {
        <nav class="card settings-places" aria-label=words::SECTIONS node_ref=list>{rows}</nav>
        // Where the list does not fit beside the settings.
        <span class="select settings-goto">
            <select aria-label=words::GO_TO data-testid="settings-goto" on:change=chosen>
                <option value="">{words::GO_TO}</option>
                {options}
            </select>
        </span>
    }
    .into_any()
}

/// Brings a section into view, with the focus on its heading.
fn go_to(id: &str) {
    if let Some(section) = browser::element(&format!("#{id}")) {
        section.scroll_into_view();
        let _ = section.focus(); // a heading that can have the focus
    }
}

fn icon_of(section: &str) -> &'static str {
    match section {
        "claude" => "terminal",
        "instance_defaults" => "play",
        "restart" => "resume",
        "ceilings" => "shield",
        "hosted" => "chat",
        "logs" => "log",
        "usage" => "bars",
        "metrics" => "activity",
        "observability" => "eye",
        "notifications" => "bell",
        "push" => "phone",
        "api" => "plug",
        "reaper" => "layers",
        _ => "sliders",
    }
}

/// A button that leads to a section, with the number of changes in it.
fn place(form: SettingsForm, at: usize, place: Entry, current: Signal<Option<usize>>) -> AnyView {
    let Entry { id, icon: shape, label, keys, texts } = place;
    let is_hidden = derived(move || {
        form.filter.with(|filter| {
            texts.as_ref().is_some_and(|all| !all.iter().any(|one| is_found(filter, one)))
        })
    });
    let press = move |_| go_to(&id);
    let changes = memo(move || keys.changed(form));
    let shape = match shape {
        "g-padlock" => symbol(shape, "glyph").into_any(),
        shape => icon(shape, 16).into_any(),
    };
    view! {
        <button
            type="button" class="menu-item" data-testid="settings-place" hidden=is_hidden on:click=press
            aria-current=live(move || (current.get() == Some(at)).then_some("true"))
        >
            {shape} <span>{label}</span>
            {dynamic(move || (changes.get() > 0).then(|| view! {
                <span class="chip num">{changes.get()} <span class="sr-only">{words::CHANGED}</span></span>
            }))}
        </button>
    }
    .into_any()
}

/// The first of the sections that is where a person reads.
///
/// It is known once the list is on the page.
fn followed(list: NodeRef<html::Nav>, ids: Vec<String>) -> Signal<Option<usize>> {
    let read = RwSignal::new(BTreeSet::<usize>::new());
    let watch = StoredValue::new_local(None::<VisibleWatch>);
    effect(move || {
        if list.get().is_none() {
            return;
        }
        // The sections follow the list: they are there before the next paint.
        let ids = ids.clone();
        browser::after_paint(move || {
            let sections: Vec<Option<Element>> = ids.iter().map(|id| section_of(id)).collect();
            let all = sections.clone();
            let made = VisibleWatch::new(None, READ_AREA, move |section, is_visible| {
                let Some(at) = all.iter().position(|one| one.as_ref() == Some(&section)) else {
                    return;
                };
                let _ = read.try_update(|read| match is_visible {
                    true => drop(read.insert(at)),
                    false => drop(read.remove(&at)),
                });
            });
            if let Some(made) = made {
                sections.iter().flatten().for_each(|section| made.observe(section));
                // The view may be gone by now: then the observer goes at once.
                drop(watch.try_set_value(Some(made)));
            }
        });
    });
    memo(move || read.with(|read| read.first().copied())).into()
}

fn section_of(id: &str) -> Option<Element> {
    browser::element(&format!("#{id}"))?.closest("section").ok().flatten()
}
