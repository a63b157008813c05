//! The settings of the service: shown, changed, saved.

use crate::api;
use crate::appear::enter;
use crate::browser;
use crate::model::problem::Problem;
use crate::model::settings::{Edits, conflicts, is_wanted, reasons, sections};
use crate::model::shown::shown;
use crate::model::wire;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::reactive::{derived, dynamic, live};
use crate::text::agent_config;
use crate::text::settings as words;
use crate::views::setting_row::row;
use crate::views::settings_lock::advanced;
use crate::views::settings_restart::waiting;
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::collections::{BTreeMap, BTreeSet};
use svc_shared::error::ErrorCode;
use svc_shared::internal::settings::{ConfigReport, FileOnlyKey, SaveConfig, SavedConfig};
use svc_shared::paths;

/// Everything that the view holds. Cheap to copy.
#[derive(Clone, Copy)]
pub struct SettingsForm {
    /// The first list.
    pub basic: RwSignal<Option<Result<ConfigReport, Problem>>>,
    /// The second list, once it is open.
    pub advanced: RwSignal<Option<ConfigReport>>,
    /// What is not saved yet, of both lists.
    pub edits: RwSignal<Edits>,
    /// What is wrong with a key.
    pub wrong: RwSignal<BTreeMap<String, String>>,
    /// Keys that somebody else changed meanwhile.
    pub conflicts: RwSignal<BTreeSet<String>>,
    /// What is said about the whole.
    pub strip: RwSignal<Option<String>>,
    /// The words that narrow the list.
    pub filter: RwSignal<String>,
    /// The dialog that asks for the password.
    pub asks: RwSignal<bool>,
    is_pending: RwSignal<bool>,
}

impl SettingsForm {
    fn new() -> Self {
        Self {
            basic: RwSignal::new(None),
            advanced: RwSignal::new(None),
            edits: RwSignal::new(Edits::new()),
            wrong: RwSignal::new(BTreeMap::new()),
            conflicts: RwSignal::new(BTreeSet::new()),
            strip: RwSignal::new(None),
            filter: RwSignal::new(String::new()),
            asks: RwSignal::new(false),
            is_pending: RwSignal::new(false),
        }
    }

    /// Reads the lists again.
    ///
    /// Edits stay; those of keys that changed meanwhile are marked.
    fn read(self) {
        spawn_local(async move { self.read_now().await });
    }

    async fn read_now(self) {
        let found = api::get::<ConfigReport>(paths::CONFIG).await;
        let is_open = self.advanced.try_with_untracked(Option::is_some) == Some(true);
        let second = match is_open {
            true => api::get::<ConfigReport>(paths::CONFIG_ADVANCED).await.ok(),
            false => None,
        };
        // The view may be gone by now.
        let Some(edits) = self.edits.try_get_untracked() else { return };
        let mut marked = BTreeSet::new();
        if let (Some(Ok(before)), Ok(now)) = (self.basic.get_untracked(), &found) {
            marked.extend(conflicts(&before, now, &edits));
        }
        if let (Some(before), Some(now)) = (self.advanced.get_untracked(), &second) {
            marked.extend(conflicts(&before, now, &edits));
        }
        marked.retain(|key| edits.contains_key(key));
        self.conflicts.set(marked);
        self.basic.set(Some(found));
        // Locked or opened meanwhile: then what was asked for before says nothing about it.
        if is_open && self.advanced.with_untracked(Option::is_some) {
            self.advanced.set(second);
        }
    }

    /// Whether saved values are not in use yet.
    fn waits(self) -> Signal<bool> {
        let waits = |report: &ConfigReport| report.specs.values().any(|spec| spec.pending);
        derived(move || {
            self.basic.with(|basic| matches!(basic, Some(Ok(report)) if waits(report)))
                || self.advanced.with(|second| second.as_ref().is_some_and(waits))
        })
    }

    fn discard(self) {
        self.edits.set(Edits::new());
        self.wrong.set(BTreeMap::new());
        self.conflicts.set(BTreeSet::new());
        self.strip.set(None);
        // The controls are drawn again with the values of the file.
        self.read();
    }

    /// Sends the edits of each list with what was read of the file.
    fn save(self) {
        if self.is_pending.get_untracked() || !self.wrong.with_untracked(BTreeMap::is_empty) {
            return;
        }
        let Some(Ok(basic)) = self.basic.get_untracked() else { return };
        let Some(hash) = basic.hash.clone() else { return };
        let (first, second): (Edits, Edits) = self
            .edits
            .get_untracked()
            .into_iter()
            .partition(|(key, _)| basic.specs.contains_key(key));
        self.is_pending.set(true);
        self.strip.set(None);
        let page = page();
        spawn_local(async move {
            let outcome = async {
                let (mut hash, mut waits) = (hash, false);
                for (path, edits) in [(paths::CONFIG, first), (paths::CONFIG_ADVANCED, second)] {
                    if edits.is_empty() {
                        continue;
                    }
                    let keys: Vec<String> = edits.keys().cloned().collect();
                    let body = wire::written(&SaveConfig { edits, hash: hash.clone() });
                    let answer = api::request(Method::PUT, path, Some(body), None).await;
                    let saved = api::understood::<SavedConfig>(answer)?;
                    hash = saved.hash;
                    waits |= saved.restart_required;
                    // What is saved is no edit any more, even if the second list is refused.
                    let _ =
                        self.edits.try_update(|edits| edits.retain(|key, _| !keys.contains(key)));
                }
                Ok(waits)
            };
            let outcome: Result<bool, Problem> = outcome.await;
            if self.is_pending.try_set(false).is_some() {
                return; // the view is gone
            }
            match outcome {
                Ok(waits) => {
                    let said = if waits { words::SAVED_WAITS } else { words::SAVED };
                    page.say.done(said.to_owned());
                    // Other views show what a launch would do now.
                    page.live.read_basics();
                }
                Err(problem) => self.refused(&problem),
            }
            self.read_now().await;
            crate::focus::rescue("[data-testid=settings-filter]");
        });
    }

    fn refused(self, problem: &Problem) {
        if problem.is(ErrorCode::ReauthRequired) {
            self.asks.set(true);
            return;
        }
        if problem.is(ErrorCode::Stale) {
            self.strip.set(Some(words::STALE.to_owned()));
            return;
        }
        let said = problem.words();
        let of_keys = self.edits.with_untracked(|edits| reasons(&said, edits));
        self.wrong.set(of_keys);
        self.strip.set(Some(said));
    }
}

/// The view.
#[component]
pub fn Settings() -> impl IntoView {
    enter(words::TITLE);
    let form = SettingsForm::new();
    form.read();
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
    let names: Vec<String> = sections(&report).into_iter().map(|(label, _)| label).collect();
    let places = names
        .iter()
        .enumerate()
        .map(|(index, label)| place(index, label.clone()))
        .chain([place(names.len(), words::FILE_ONLY.to_owned())])
        .collect::<Vec<_>>();
    let count = names.len();
    let rows = sections(&report)
        .into_iter()
        .enumerate()
        .map(|(index, (label, specs))| section(form, &report, index, label, &specs))
        .collect::<Vec<_>>();
    let can_save = report.can_save && report.hash.is_some();
    let can_configure =
        || page().live.basics.with_untracked(|b| b.as_ref().is_some_and(|b| b.can_configure));
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
                {can_configure().then(|| view! {
                    <a class="settings-link" href=browser::href("/ui/agent-config") data-testid="settings-agent-config">{agent_config::TITLE}</a>
                })}
                {has_file.then(|| view! {
                    <p class="muted settings-file">{words::FILE} " " <code><bdi>{file}</bdi></code></p>
                })}
            </div>
            <div class="settings-main">
                {note}
                {waiting(form.waits(), Callback::new(move |()| form.read()), form.strip)}
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

/// A button that leads to a section.
fn place(index: usize, label: String) -> AnyView {
    let press = move |_| {
        if let Some(section) = crate::browser::element(&format!("#settings-{index}")) {
            section.scroll_into_view();
            let _ = section.focus(); // a heading that can have the focus
        }
    };
    view! { <button type="button" class="menu-item" on:click=press>{label}</button> }.into_any()
}

/// A section with its rows; hidden while no row fits the filter.
pub fn section(
    form: SettingsForm,
    report: &ConfigReport,
    index: usize,
    label: String,
    specs: &[&svc_shared::internal::settings::ConfigSpec],
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
    view! {
        {dynamic(move || {
            let count = form.edits.with(Edits::len) ;
            let wrong = form.wrong.with(BTreeMap::len);
            (count + wrong > 0).then(|| view! {
                <div class="settings-bar" data-testid="settings-bar">
                    <p role="status"><b>{words::changes(count)}</b> " " <span class="muted">{words::AFTER_RESTART}</span></p>
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
            })
        })}
    }
    .into_any()
}
