//! Keys that work everywhere outside of text fields, and the sheet that lists them.

use crate::browser;
use crate::model::launch::Choice;
use crate::nav::{Nav, nav};
use crate::page::{Page, Sheet, page};
use crate::parts::button::ButtonStyle;
use crate::parts::dialog::Dialog;
use crate::text::{job, keys as words, launch};
use crate::views::copy::copy;
use crate::views::prefs::LettersSwitch;
use crate::views::welcome;
use leptos::prelude::*;
use std::cell::Cell;
use wasm_bindgen::JsCast;
use web_sys::{Element, Event, HtmlElement, KeyboardEvent};

/// Listens as long as the page lives.
pub fn watch(page: Page, nav: Nav) {
    let after_g = Cell::new(false);
    browser::on_document("keydown", move |event: Event| {
        if let Some(event) = event.dyn_ref::<KeyboardEvent>()
            && press(page, nav, event, &after_g)
        {
            event.prevent_default();
        }
    });
}

/// True when the key meant something.
fn press(page: Page, nav: Nav, event: &KeyboardEvent, after_g: &Cell<bool>) -> bool {
    let key = event.key();
    let is_chord = event.ctrl_key() || event.meta_key();
    if is_chord && key == "k" {
        let is_light = page.sheet.with_untracked(|sheet| {
            matches!(sheet, Some(Sheet::Palette(_) | Sheet::Keys | Sheet::More))
        });
        // One that is there is open, or is opened again at once.
        if !is_light && browser::element("dialog").is_some() {
            // What the dialog holds would be lost.
            return true;
        }
        page.sheet.set(Some(Sheet::Palette(String::new())));
        return true;
    }
    if key == "Tab" {
        one_stop_per_list();
        return false;
    }
    if is_chord && key == "z" && !event.shift_key() && !is_typing(event) {
        return page.say.take_back(None);
    }
    if key == "Escape"
        && page.is_selecting.get_untracked()
        && !event.default_prevented()
        && !is_typing(event)
    {
        page.select_none();
        return true;
    }
    let went = after_g.take();
    if is_chord || event.alt_key() || event.default_prevented() || is_typing(event) {
        return false;
    }
    match key.as_str() {
        "ArrowDown" => return in_row() && step(1),
        "ArrowUp" => return in_row() && step(-1),
        "Home" => return in_row() && to_end(true),
        "End" => return in_row() && to_end(false),
        _ => {}
    }
    let is_letter = key.chars().count() == 1;
    let key = page.prefs.with_untracked(|prefs| match prefs.are_letters_on() || !is_letter {
        // The second of two keys is not one of those that can be changed.
        true if went => key.clone(),
        true => prefs.letter_of(&key).to_owned(),
        false => String::new(),
    });
    let go = |path: &str| {
        nav.to(&browser::href(path));
        true
    };
    match (went, key.as_str()) {
        (true, "h") => go("/ui/"),
        (true, "p") => go("/ui/projects"),
        (true, "b") => go("/ui/jobs"),
        (true, "a") => go("/ui/activity"),
        (true, "d") => go("/ui/doctor"),
        (true, _) => false,
        (false, "g") => {
            after_g.set(true);
            true
        }
        (false, "?") => {
            page.sheet.set(Some(Sheet::Keys));
            true
        }
        (false, "/") => browser::focus("main input[type=search]"),
        (false, "j") => step(1),
        (false, "k") => step(-1),
        (false, "[") => tab(-1),
        (false, "]") => tab(1),
        (false, "o") => click("[data-testid=act-open]"),
        (false, "r") => click("[data-testid=act-resume]"),
        (false, "s") => click("[data-testid=act-stop]"),
        (false, "x" | "X") => own("data-row").filter(|_| is_pickable()).is_some_and(|row| {
            if key == "X" {
                page.select_to(&row)
            } else {
                page.select(&row)
            }
            true
        }),
        (false, "f") => own("data-row").is_some_and(|key| page.remove_row(&key)),
        (false, "l") => own("data-project").is_some_and(|project| {
            nav.open_launch(&project, &Choice::default());
            true
        }),
        (false, "e") => own("data-instance").is_some_and(|id| {
            nav.to(&browser::session_href(&id));
            true
        }),
        (false, "y") => own("data-instance").is_some_and(|id| {
            copy(page, id, None);
            true
        }),
        (false, _) => false,
    }
}

/// Whether the key belongs to a field or to a dialog.
fn is_typing(event: &KeyboardEvent) -> bool {
    let target = event.target().and_then(|target| target.dyn_into::<Element>().ok());
    let within = target.and_then(|target| {
        target.closest("input:not([type=checkbox], [type=radio]), textarea, select, dialog").ok()?
    });
    within.is_some() || browser::element("dialog").is_some()
}

/// The row with the focus, else the page of one bridge or project.
fn at() -> Option<Element> {
    let focused = document().active_element()?;
    let row = focused.closest("[data-row], li[data-project]").ok().flatten();
    row.or_else(|| document().query_selector("article[data-project]").ok().flatten())
}

fn own(attribute: &str) -> Option<String> {
    at()?.get_attribute(attribute)
}

fn click(selector: &str) -> bool {
    let found = at().and_then(|row| row.query_selector(selector).ok().flatten());
    let Some(button) = found.and_then(|found| found.dyn_into::<HtmlElement>().ok()) else {
        return false;
    };
    button.click();
    true
}

fn is_pickable() -> bool {
    at().is_some_and(|row| row.query_selector(".pick").is_ok_and(|pick| pick.is_some()))
}

/// Whether a control of a row has the focus; what scrolls keeps its arrows.
fn in_row() -> bool {
    let focused = document().active_element();
    focused.is_some_and(|focused| {
        focused.matches("main li :is(a, button, summary)").is_ok_and(|is| is)
    })
}

fn all(within: &Element, selector: &str) -> Vec<HtmlElement> {
    let Ok(list) = within.query_selector_all(selector) else {
        return Vec::new();
    };
    (0..list.length()).filter_map(|at| list.item(at)?.dyn_into().ok()).collect()
}

/// Lists of rows with names.
const LISTS: &str = "main ul:has(> li .name)";

/// Makes Tab leave a list after one row.
///
/// It is the row visited last, or the first row.
fn one_stop_per_list() {
    let (Some(root), focused) = (document().document_element(), document().active_element()) else {
        return;
    };
    for list in all(&root, LISTS) {
        let rows = all(&list, ":scope > li");
        let has = |selector: &str| {
            rows.iter().position(|row| row.query_selector(selector).is_ok_and(|it| it.is_some()))
        };
        let inside = focused.as_ref().filter(|focused| list.contains(Some(focused)));
        let at = inside.map_or_else(
            || has(".name[tabindex=\"0\"]"),
            |focused| rows.iter().position(|row| row.contains(Some(focused))),
        );
        let at = at.or_else(|| has(".name"));
        for (index, row) in rows.iter().enumerate() {
            let stops = ":is(a[href], button, summary, input, [tabindex]):not([role=menuitem])";
            for stop in all(row, stops) {
                stop.set_tab_index(if at == Some(index) { 0 } else { -1 });
            }
        }
    }
}

/// Moves the focus to the first or last row of its list.
///
/// The row may have to be built first.
fn to_end(first: bool) -> bool {
    let list =
        document().active_element().and_then(|focused| focused.closest(LISTS).ok().flatten());
    let Some(list) = list else {
        return false;
    };
    list.scroll_into_view_with_bool(first);
    browser::after_paint(move || {
        browser::after_paint(move || {
            let names = all(&list, ":scope > li .name");
            let name = if first { names.first() } else { names.last() };
            let _ = name.map(|name| name.focus()); // gone: fine
        });
    });
    true
}

/// Moves the focus among the names of rows.
fn step(by: i32) -> bool {
    among("main li .name", by, |names| {
        let row = document().active_element()?.closest("li").ok().flatten()?;
        names.iter().position(|name| row.contains(Some(name)))
    })
    .is_some_and(|name| name.focus().is_ok())
}

fn tab(by: i32) -> bool {
    among("[role=tab]", by, |tabs| {
        tabs.iter().position(|tab| tab.get_attribute("aria-selected").as_deref() == Some("true"))
    })
    .is_some_and(|tab| {
        tab.click();
        true
    })
}

/// The element one further, or the first where none is the present one.
fn among(
    selector: &str,
    by: i32,
    present: fn(&[HtmlElement]) -> Option<usize>,
) -> Option<HtmlElement> {
    let found = all(&document().document_element()?, selector);
    let to = match present(&found) {
        None => 0,
        Some(at) if by > 0 => at + 1,
        Some(at) => at.checked_sub(1)?,
    };
    found.into_iter().nth(to)
}

/// What the kinds of sessions and the permission modes are.
fn glossary(page: Page) -> AnyView {
    let kinds = [
        (words::SERVER_MODE, launch::SERVER_MODE_EFFECT.to_owned()),
        (job::KIND, launch::BACKGROUND_EFFECT.to_owned()),
        (job::external::KIND, words::EXTERNAL_MEANS.to_owned()),
    ];
    let kinds = kinds.into_iter().map(|(name, means)| (name.to_owned(), means));
    let labels = page.live.basics.with_untracked(|b| b.as_ref().map(|b| b.labels.clone()));
    let modes = labels.unwrap_or_default().into_iter().map(|label| (label.long, label.effect));
    kinds
        .chain(modes)
        .map(|(name, means)| view! { <dt>{name}</dt> <dd>{means}</dd> })
        .collect_view()
        .into_any()
}

/// The list of keys.
#[component]
pub fn Keys() -> impl IntoView {
    let page = page();
    let nav = nav();
    let again = move |_| {
        welcome::reopen(page);
        page.sheet.set(None);
        nav.to(&browser::href("/ui/"));
    };
    let rows = words::ALL
        .iter()
        .map(|(keys, does)| {
            let own = |key| page.prefs.with_untracked(|prefs| prefs.key_for(key).to_owned());
            let keys: Vec<_> = keys.split(' ').map(|key| view! { <kbd>{own(key)}</kbd> }).collect();
            view! { <dt>{keys}</dt> <dd>{*does}</dd> }
        })
        .collect_view();
    view! {
        <Dialog title=words::TITLE.to_owned() on_close=Callback::new(move |()| page.sheet.set(None)) testid="keys">
            <div class="dialog-body">
                <dl class="wide keys">{rows}</dl>
                <details class="wide" data-testid="glossary">
                    <summary>{words::GLOSSARY}</summary>
                    <dl class="glossary">{glossary(page)}</dl>
                </details>
                <LettersSwitch />
                <button type="button" class=ButtonStyle::Secondary.class() data-testid="first-steps-again" on:click=again>
                    {words::FIRST_STEPS}
                </button>
            </div>
        </Dialog>
    }
}
