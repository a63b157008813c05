//! What a save of the settings would change.

use crate::model::shown::shown;
use crate::parts::button::ButtonStyle;
use crate::reactive::dynamic;
use crate::text::settings as words;
use crate::views::settings_form::SettingsForm;
use leptos::prelude::*;
use serde_json::Value;

/// Every change: the value of the file, the new one, and the way back.
pub fn changes(form: SettingsForm) -> AnyView {
    let [key, before, after] = words::REVIEW_COLUMNS;
    let rows = move || {
        let edits = form.edits.get();
        edits.into_iter().map(|(key, next)| row(form, key, &next)).collect_view()
    };
    view! {
        <section class="settings-review" aria-label=words::REVIEW_OF data-testid="settings-changes">
            <table>
                <thead><tr><th scope="col">{key}</th> <th scope="col">{before}</th> <th scope="col">{after}</th> <td></td></tr></thead>
                <tbody>{dynamic(rows)}</tbody>
            </table>
        </section>
    }
    .into_any()
}

fn row(form: SettingsForm, key: String, next: &Value) -> AnyView {
    let (before, unit) = match form.known(&key) {
        Some((before, spec)) => (words::value(&before), spec.unit),
        None => (words::NOTHING.to_owned(), None),
    };
    let unit = unit.map(|unit| format!(" {unit}")).unwrap_or_default();
    let before = format!("{}{unit}", shown(&before));
    let after = format!("{}{unit}", shown(&words::value(next)));
    let is_conflict = form.conflicts.with(|keys| keys.contains(&key));
    let conflict = is_conflict
        .then(|| view! { <span class="tone-warn setting-note">{words::CONFLICT}</span> });
    let (name, label) = (key.clone(), words::undo_of(&key));
    let undo = move |_| {
        form.undo(&key);
        crate::focus::rescue("[data-testid=settings-review]");
    };
    view! {
        <tr data-testid="settings-change">
            <th scope="row"><code>{name}</code> {conflict}</th>
            <td data-label=words::REVIEW_COLUMNS[1]><del>{before}</del></td>
            <td data-label=words::REVIEW_COLUMNS[2]><ins>{after}</ins></td>
            <td><button type="button" class=ButtonStyle::Ghost.class() aria-label=label on:click=undo>{words::UNDO}</button></td>
        </tr>
    }
    .into_any()
}
