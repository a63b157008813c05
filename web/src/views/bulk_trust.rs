//! Trusts several folders at once.
//!
//! Each is named with its path, and none is checked beforehand. None can be checked before what it
//! brings is named.

use crate::model::shown::shown;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::dialog::Dialog;
use crate::parts::icon::icon;
use crate::reactive::{dynamic, live};
use crate::text::{launch, page::projects as words};
use crate::views::trust::{Brings, look, marks};
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::sync::Arc;

/// How many folders the service looks into at once.
const AT_ONCE: usize = 2;

/// The dialog.
#[component]
pub fn BulkTrust(
    /// The projects in question, none of them trusted.
    names: Vec<String>,
    /// Wanted away.
    on_close: Callback<()>,
) -> impl IntoView {
    let page = page();
    let agreed: RwSignal<Vec<String>> = RwSignal::new(Vec::new());
    let asked: Vec<(String, RwSignal<Brings>)> =
        names.into_iter().map(|name| (name, RwSignal::new(Brings::Asking))).collect();
    look_into(&asked);
    let rows: Vec<AnyView> =
        asked.into_iter().map(|(name, found)| folder(name, found, agreed)).collect();
    let is_ready = move || !agreed.with(Vec::is_empty) && !page.live.is_offline.get();
    let grant = move |_| {
        if !untrack(is_ready) {
            page.say.politely(words::CHECK_SOME);
            return;
        }
        page.trust_all(agreed.get_untracked());
        on_close.run(());
    };
    let is_dirty = Signal::derive(move || !agreed.with(Vec::is_empty));
    view! {
        <Dialog title=words::TRUST_SEVERAL.to_owned() on_close=on_close is_dirty=is_dirty testid="bulk-trust">
            <div class="dialog-body">
                <p class="wide">{launch::TRUST_ALLOWS}</p>
                <ul class="wide folders">{rows}</ul>
            </div>
            <div class="dialog-foot">
                <span class="says">{launch::TRUST_LASTS}</span>
                <button type="button" class=ButtonStyle::Ghost.class() on:click=move |_| on_close.run(())>{launch::CANCEL}</button>
                <button
                    type="button"
                    class=ButtonStyle::Primary.class()
                    aria-disabled=live(move || (!is_ready()).then_some("true"))
                    data-testid="trust-confirm"
                    on:click=grant
                >
                    {live(move || words::trust_n(agreed.with(Vec::len)))}
                </button>
            </div>
        </Dialog>
    }
}

/// Asks what each folder brings, a few at a time, until the dialog is closed.
fn look_into(asked: &[(String, RwSignal<Brings>)]) {
    for first in 0..AT_ONCE {
        let share: Vec<_> = asked.iter().skip(first).step_by(AT_ONCE).cloned().collect();
        spawn_local(async move {
            for (project, found) in share {
                if !look(&project, found).await {
                    return;
                }
            }
        });
    }
}

fn folder(name: String, found: RwSignal<Brings>, agreed: RwSignal<Vec<String>>) -> AnyView {
    let project = page().store.project(&name).map(|record| record.get_untracked());
    let Some(project) = project else { return ().into_any() };
    let record = Arc::clone(&project);
    let marks = move || {
        let marks = found.with(|found| marks(&record, found));
        let items = marks.into_iter().map(|(symbol, text)| {
            view! { <li>{icon(symbol, 16)} <bdi>{shown(&text).into_owned()}</bdi></li> }
        });
        view! { <ul class="brings">{items.collect_view()}</ul> }
    };
    // Nobody agrees to hooks and servers that are not named yet.
    let is_unknown = live(move || found.with(|found| *found == Brings::Asking));
    let label = shown(&name).into_owned();
    let testid = name.clone();
    let change = move |event| {
        let is_checked = leptos::prelude::event_target_checked(&event);
        agreed.update(|agreed| {
            agreed.retain(|one| *one != name);
            if is_checked {
                agreed.push(name.clone());
            }
        });
    };
    view! {
        <li>
            <label class="check">
                <input type="checkbox" data-project=testid disabled=is_unknown on:change=change />
                <span><b><bdi>{label}</bdi></b> <code><bdi>{shown(&project.path).into_owned()}</bdi></code></span>
            </label>
            {dynamic(marks)}
        </li>
    }
    .into_any()
}
