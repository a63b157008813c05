//! The choices of a person, on About.

use crate::model::outcome::{Level, Notice};
use crate::model::prefs::{Change, DENSITY, Prefs, THEME, ZONE};
use crate::page::page;
use crate::parts::icon::icon;
use crate::reactive::{dynamic, live, memo};
use crate::text::{keys, prefs as words};
use crate::views::notify::NotifySwitch;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{Event, HtmlInputElement};

/// The card.
pub fn preferences() -> AnyView {
    let page = page();
    // The view can be here before the service has told its zone.
    let has_zone =
        memo(move || page.live.basics.with(|b| b.as_ref().is_some_and(|b| !b.timezone.is_empty())));
    let times = move || {
        let mut zones = words::ZONES.to_vec();
        zones.retain(|(word, _)| has_zone.get() || *word != "host");
        choice(words::TIMES, ZONE, zones)
    };
    view! {
        <section class="card page-card prefs" aria-labelledby="prefs" data-testid="prefs">
            <h2 id="prefs">{words::TITLE}</h2>
            <p class="muted">{words::KEPT}</p>
            {choice(words::THEME, THEME, words::THEMES.to_vec())}
            {choice(words::DENSITY, DENSITY, words::DENSITIES.to_vec())}
            {dynamic(times)}
            <LettersSwitch />
            <NotifySwitch />
            <details>
                <summary>{words::KEYS}</summary>
                <dl class="keys">{own_keys()}</dl>
            </details>
        </section>
    }
    .into_any()
}

fn choice(
    label: &'static str,
    member: &'static str,
    values: Vec<(&'static str, &'static str)>,
) -> AnyView {
    let page = page();
    let options = values
        .iter()
        .map(|(word, words)| {
            let word = *word;
            let is_chosen = live(move || page.prefs.with(|prefs| prefs.word(member) == word));
            view! { <option value=word prop:selected=is_chosen>{*words}</option> }.into_any()
        })
        .collect::<Vec<_>>();
    let change = move |event| {
        let chosen = event_target_value(&event);
        if let Some((word, _)) = values.iter().find(|(word, _)| *word == chosen) {
            page.prefs.change(Change::Word(member, word));
        }
    };
    view! {
        <label class="pref">
            {label}
            <span class="select">
                <select data-testid=format!("pref-{member}") on:change=change>{options}</select>
                {icon("chevron-down", 16)}
            </span>
        </label>
    }
    .into_any()
}

fn own_keys() -> Vec<AnyView> {
    keys::LETTERS.iter().map(|(letter, does)| own_key(letter, does)).collect()
}

/// The key for what a letter does; empty brings the letter back.
fn own_key(letter: &'static str, does: &'static str) -> AnyView {
    let page = page();
    let own = move |prefs: &Prefs| prefs.key_for(letter).to_owned();
    let change = move |event: Event| {
        let typed = event_target_value(&event);
        let key = if typed.trim().is_empty() { letter.to_owned() } else { typed };
        let is_taken = page.prefs.with_untracked(|prefs| {
            let others = keys::LETTERS.iter().filter(|(other, _)| *other != letter);
            others.into_iter().any(|(other, _)| prefs.key_for(other) == key)
        });
        if is_taken {
            page.say.notice(Notice::new(Level::Warning, words::key_taken(&key), ""));
        } else {
            page.prefs.change(Change::Key(letter.to_owned(), key));
        }
        // Also where nothing changed: what was typed is not the key.
        let field = event.target().and_then(|field| field.dyn_into::<HtmlInputElement>().ok());
        if let Some(field) = field {
            field.set_value(&page.prefs.with_untracked(own));
        }
    };
    view! {
        <dt>
            <input
                class="input key"
                aria-label=does
                maxlength="1"
                autocomplete="off"
                data-testid=format!("key-{letter}")
                prop:value=live(move || page.prefs.with(own))
                on:change=change
            />
        </dt>
        <dd>{does}</dd>
    }
    .into_any()
}

/// Whether single letters do something.
#[component]
pub fn LettersSwitch() -> impl IntoView {
    let page = page();
    let toggle = move |_| {
        let on = page.prefs.with_untracked(Prefs::are_letters_on);
        page.prefs.change(Change::Letters(!on));
    };
    view! {
        <button
            type="button"
            class="switch wide"
            role="switch"
            aria-checked=live(move || page.prefs.with(Prefs::are_letters_on).to_string())
            data-testid="keys-switch"
            on:click=toggle
        >
            {keys::SINGLE}
        </button>
    }
}
