//! The settings of the service: shown, changed, saved.

use crate::appear::enter;
use crate::browser;
use crate::model::settings::{Edits, is_wanted, sections};
use crate::model::shown::shown;
use crate::nav::nav;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::reactive::{derived, dynamic, effect, live, memo};
use crate::text::agent_config;
use crate::text::settings as words;
use crate::views::setting_row::row;
use crate::views::settings_form::SettingsForm;
use crate::views::settings_lock::advanced;
use crate::views::settings_restart::waiting;
use crate::views::settings_review::changes;
use leptos::prelude::*;
use std::collections::BTreeMap;
use svc_shared::internal::settings::{ConfigReport, ConfigSpec, FileOnlyKey};

/// The view.
#[component]
pub fn Settings() -> impl IntoView {
    enter(words::TITLE);
    let form = SettingsForm::new();
    form.read();
    nav().guard(derived(move || form.is_unsaved()));
    // After a restart the service runs with other values; edits stay.
    let was_away = StoredValue::new(false);
    let since = page().restarting.since;
    effect(move || {
        let is_away = since.with(Option::is_some);
        if was_away.get_value() && !is_away {
            form.read();
        }
        was_away.set_value(is_away);
    });
    view! {
        {dynamic(move || match form.basic.get() {
            None => view! { <p class="muted" role="status">{words::ASKING}</p> }.into_any(),
            Some(Err(problem)) => view! {
                <p class="strip tone-danger" role="alert">{problem.words()}</p>
            }.into_any(),
            Some(Ok(report)) => lists(form, report),
        })}
    }
}

fn lists(form: SettingsForm, report: ConfigReport) -> AnyView {
    let has_file = report.file.is_some();
    let file = report.file.as_deref().map(|file| shown(file).into_owned()).unwrap_or_default();
    let note = match (report.can_save, report.hash.is_some()) {
        (_, false) if !has_file => Some(words::NO_CONFIG.to_owned()),
        (_, false) => Some(words::NO_FILE.to_owned()),
        (false, true) => Some(words::read_only(&file)),
        (true, true) => None,
    };
    let note = note.map(|note| {
        view! {
            <p class="strip tone-info" data-testid="settings-read-only">{note}</p>
        }
    });
    let named = sections(&report);
    let count = named.len();
    let keys = |specs: &[&ConfigSpec]| specs.iter().map(|spec| spec.key.clone()).collect();
    let places = named
        .iter()
        .enumerate()
        .map(|(index, (label, specs))| place(form, index, label.clone(), keys(specs)))
        .chain([place(form, count, words::FILE_ONLY.to_owned(), Vec::new())])
        .collect::<Vec<_>>();
    let rows = named
        .into_iter()
        .enumerate()
        .map(|(index, (label, specs))| section(form, &report, index, label, &specs))
        .collect::<Vec<_>>();
    let can_save = report.can_save && report.hash.is_some();
    let basics = page().live.basics;
    // The settings can be here first.
    let can_configure = memo(move || basics.with(|b| b.as_ref().is_some_and(|b| b.can_configure)));
    let file_only = file_only(form, count, &report.file_only);
    view! {
        <div class="settings" data-testid="settings">
            <div class="settings-side">
                <input
                    class="input" type="search" aria-label=words::FILTER placeholder=words::FILTER
                    autocomplete="off" data-testid="settings-filter"
                    prop:value=live(move || form.filter.get())
                    on:input=move |event| form.filter.set(event_target_value(&event))
                />
                <nav class="card settings-places" aria-label=words::SECTIONS>{places}</nav>
                <a class="settings-link" href=browser::href("/ui/tokens") data-testid="to-tokens">{crate::text::access::TITLE}</a>
                {dynamic(move || can_configure.get().then(|| view! {
                    <a class="settings-link" href=browser::href("/ui/agent-config") data-testid="settings-agent-config">{agent_config::TITLE}</a>
                }))}
                {has_file.then(|| view! {
                    <p class="muted settings-file">{words::FILE} " " <code><bdi>{file}</bdi></code></p>
                })}
            </div>
            <div class="settings-main">
                {note}
                {waiting(form.waits())}
                {dynamic(move || form.strip.get().map(|said| view! {
                    <p class="strip tone-danger" role="alert" data-testid="settings-problem">{said}</p>
                }))}
                {rows}
                {can_save.then(|| advanced(form))}
                {file_only}
                {can_save.then(|| bar(form))}
            </div>
        </div>
    }
    .into_any()
}

/// A button that leads to a section, with the number of changes in it.
fn place(form: SettingsForm, index: usize, label: String, keys: Vec<String>) -> AnyView {
    let press = move |_| {
        if let Some(section) = crate::browser::element(&format!("#settings-{index}")) {
            section.scroll_into_view();
            let _ = section.focus(); // a heading that can have the focus
        }
    };
    let changes = memo(move || {
        form.edits.with(|edits| keys.iter().filter(|key| edits.contains_key(*key)).count())
    });
    view! {
        <button type="button" class="menu-item" on:click=press>
            {label}
            {dynamic(move || (changes.get() > 0).then(|| view! {
                <span class="chip num">{changes.get()} <span class="sr-only">{words::CHANGED}</span></span>
            }))}
        </button>
    }
    .into_any()
}

/// A section with its rows; hidden while no row fits the filter.
pub fn section(
    form: SettingsForm,
    report: &ConfigReport,
    index: usize,
    label: String,
    specs: &[&ConfigSpec],
) -> AnyView {
    let parts: Vec<[String; 3]> = specs
        .iter()
        .map(|spec| [spec.label.clone(), spec.key.clone(), spec.description.clone()])
        .collect();
    let is_hidden = derived(move || {
        form.filter.with(|filter| {
            !parts.iter().any(|[label, key, about]| is_wanted(filter, &[label, key, about]))
        })
    });
    let rows = specs.iter().map(|spec| row(form, report, spec)).collect::<Vec<_>>();
    let id = format!("settings-{index}");
    view! {
        <section aria-labelledby=id.clone() hidden=is_hidden>
            <h2 id=id.clone() tabindex="-1">{label}</h2>
            <div class="card settings-rows">{rows}</div>
        </section>
    }
    .into_any()
}

fn file_only(form: SettingsForm, index: usize, keys: &[FileOnlyKey]) -> AnyView {
    let rows = keys
        .iter()
        .map(|one| {
            let parts = [one.key.clone(), one.description.clone(), one.reason.clone()];
            let is_hidden = derived(move || {
                let [key, about, reason] = &parts;
                form.filter.with(|filter| !is_wanted(filter, &[key, about, reason]))
            });
            view! {
                <li hidden=is_hidden data-testid="file-only">
                    <code>{one.key.clone()}</code>
                    <span>{one.description.clone()}</span>
                    <span class="muted">{words::because(&one.reason)}</span>
                </li>
            }
        })
        .collect::<Vec<_>>();
    let id = format!("settings-{index}");
    view! {
        <section aria-labelledby=id.clone()>
            <h2 id=id.clone() tabindex="-1">{words::FILE_ONLY}</h2>
            <p class="muted">{words::FILE_ONLY_WHY}</p>
            <ul class="card list plain settings-file-only">{rows}</ul>
        </section>
    }
    .into_any()
}

/// What waits to be saved, at the lower edge.
fn bar(form: SettingsForm) -> AnyView {
    let is_blocked = move || form.is_pending.get() || !form.wrong.with(BTreeMap::is_empty);
    let is_wanted = memo(move || form.is_unsaved());
    let count = move || words::changes(form.edits.with(Edits::len));
    let effect_of_save = move || {
        let keys: Vec<String> = form.edits.with(|edits| edits.keys().cloned().collect());
        let is_live =
            |key: &&String| form.known(key).is_some_and(|(_, spec)| spec.applies == "live");
        let at_once = keys.iter().filter(is_live).count();
        words::effect(at_once, keys.len() - at_once)
    };
    let review = move || {
        if form.is_reviewed.get() { words::HIDE_REVIEW } else { words::REVIEW }
    };
    view! {
        {dynamic(move || is_wanted.get().then(|| view! {
            <div class="settings-bar" data-testid="settings-bar">
                {dynamic(move || form.is_reviewed.get().then(|| changes(form)))}
                <p role="status"><b>{live(count)}</b> " " <span class="muted">{live(effect_of_save)}</span></p>
                <button
                    type="button" class=ButtonStyle::Ghost.class() data-testid="settings-review"
                    aria-expanded=live(move || form.is_reviewed.get().to_string())
                    on:click=move |_| form.is_reviewed.update(|is| *is = !*is)
                >{live(review)}</button>
                <button
                    type="button" class=ButtonStyle::Ghost.class() data-testid="settings-discard"
                    on:click=move |_| form.discard()
                >{words::DISCARD}</button>
                <button
                    type="button" class=ButtonStyle::Primary.class() data-testid="settings-save"
                    aria-disabled=live(move || is_blocked().then_some("true"))
                    on:click=move |_| form.save()
                >{words::SAVE}</button>
            </div>
        }))}
    }
    .into_any()
}
