//! The settings of the service: shown, changed, saved.

use crate::appear::enter;
use crate::browser;
use crate::model::settings::{
    Edits, Section, Texts, is_found, sections, texts_of, texts_of_file_only,
};
use crate::model::shown::shown;
use crate::nav::nav;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::icon;
use crate::reactive::{derived, dynamic, effect, live, memo};
use crate::text::agent_config;
use crate::text::settings as words;
use crate::views::setting_row::row;
use crate::views::settings_form::SettingsForm;
use crate::views::settings_lock::advanced;
use crate::views::settings_places::{self, places};
use crate::views::settings_restart::waiting;
use crate::views::settings_review::changes;
use leptos::prelude::*;
use std::collections::BTreeMap;
use svc_shared::internal::settings::{ConfigReport, FileOnlyKey};

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
    let can_save = report.can_save && report.hash.is_some();
    let named = sections(&report);
    let places = places(form, &named, &report.file_only, can_save);
    let rows = named.iter().map(|one| section(form, &report, one)).collect::<Vec<_>>();
    let texts: Vec<Texts> = named
        .iter()
        .flat_map(|one| one.specs.iter().copied())
        .map(texts_of)
        .chain(report.file_only.iter().map(texts_of_file_only))
        .collect();
    let none = memo(move || {
        let is_here = form.filter.with(|filter| {
            let is_open = form.advanced.with(|report| {
                let mut specs = report.iter().flat_map(|report| report.specs.values());
                specs.any(|spec| is_found(filter, &texts_of(spec)))
            });
            is_open || texts.iter().any(|one| is_found(filter, one))
        });
        let is_locked = can_save && form.advanced.with(Option::is_none);
        (!is_here).then_some(if is_locked { words::NONE_OPEN } else { words::NONE })
    });
    let basics = page().live.basics;
    // The settings can be here first.
    let can_configure = memo(move || basics.with(|b| b.as_ref().is_some_and(|b| b.can_configure)));
    let file_only = file_only(form, &report.file_only);
    view! {
        <div class="toolbar">
            <a class=ButtonStyle::Secondary.class() href=browser::href("/ui/tokens") data-testid="to-tokens">
                {crate::text::access::TITLE} {icon("chevron-right", 16)}
            </a>
            {dynamic(move || can_configure.get().then(|| view! {
                <a class=ButtonStyle::Secondary.class() href=browser::href("/ui/agent-config") data-testid="settings-agent-config">
                    {agent_config::TITLE} {icon("chevron-right", 16)}
                </a>
            }))}
        </div>
        <div class="settings" data-testid="settings">
            <div class="settings-side">
                <div class="field-box">
                    {icon("search", 16)}
                    <input
                        type="search" aria-label=words::FILTER placeholder=words::FILTER
                        autocomplete="off" data-testid="settings-filter"
                        prop:value=live(move || form.filter.get())
                        on:input=move |event| form.filter.set(event_target_value(&event))
                    />
                    <kbd class="only-desk">"/"</kbd>
                </div>
                {places}
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
                {dynamic(move || none.get().map(|said| view! {
                    <p class="muted" role="status" data-testid="settings-none">{said}</p>
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

/// A section with its rows; hidden while no row fits the filter.
pub fn section(form: SettingsForm, report: &ConfigReport, one: &Section<'_>) -> AnyView {
    let texts: Vec<Texts> = one.specs.iter().copied().map(texts_of).collect();
    let is_hidden =
        derived(move || form.filter.with(|filter| !texts.iter().any(|one| is_found(filter, one))));
    let rows = one.specs.iter().map(|spec| row(form, report, spec)).collect::<Vec<_>>();
    let id = settings_places::id(one.name);
    view! {
        <section aria-labelledby=id.clone() hidden=is_hidden>
            <h2 id=id.clone() tabindex="-1">{one.label.to_owned()}</h2>
            <div class="card settings-rows">{rows}</div>
        </section>
    }
    .into_any()
}

fn file_only(form: SettingsForm, keys: &[FileOnlyKey]) -> AnyView {
    let all: Vec<Texts> = keys.iter().map(texts_of_file_only).collect();
    let is_hidden =
        derived(move || form.filter.with(|filter| !all.iter().any(|one| is_found(filter, one))));
    let rows = keys
        .iter()
        .map(|one| {
            let texts = texts_of_file_only(one);
            let is_hidden = derived(move || form.filter.with(|filter| !is_found(filter, &texts)));
            view! {
                <li hidden=is_hidden data-testid="file-only">
                    <code>{one.key.clone()}</code>
                    <span>{one.description.clone()}</span>
                    <span class="muted">{words::because(&one.reason)}</span>
                </li>
            }
        })
        .collect::<Vec<_>>();
    view! {
        <section aria-labelledby=settings_places::FILE_ONLY hidden=is_hidden>
            <h2 id=settings_places::FILE_ONLY tabindex="-1">{words::FILE_ONLY}</h2>
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
            |key: &&String| form.known(key).is_some_and(|(_, spec)| spec.applies != "restart");
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
