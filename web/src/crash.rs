//! Shows a message when the module panics.
//!
//! Without it the page would stay blank or frozen.
//!
//! Built from plain elements, because nothing of the application can be trusted any more. The
//! button is a link to the same address: it needs no code to work.

use crate::text::page as words;
use std::panic::PanicHookInfo;
use web_sys::{Document, Element};

/// Shows the crash screen on every panic from now on.
pub fn install() {
    std::panic::set_hook(Box::new(|info| {
        console_error_panic_hook::hook(info);
        let _ = show(info); // the console has it in any case
    }));
}

fn show(info: &PanicHookInfo<'_>) -> Option<()> {
    let window = web_sys::window()?;
    let document = window.document()?;
    let body = document.body()?;
    if document.get_element_by_id("crash").is_some() {
        return None; // the first cause counts
    }
    let screen = part(&document, "div", "crash", "")?;
    screen.set_id("crash");
    screen.set_attribute("role", "alert").ok()?;
    let card = part(&document, "div", "card page-card", "")?;
    let heading = part(&document, "h1", "", words::CRASH)?;
    let how = part(&document, "p", "", words::CRASH_HOW)?;
    let text = format!("{info}\nbuild {}", env!("WEB_BUILD"));
    let what = part(&document, "pre", "", &text)?;
    what.set_attribute("tabindex", "0").ok()?;
    let reload = part(&document, "a", "btn btn-primary", words::link::RELOAD)?;
    let at = window.location();
    let here = format!("{}{}", at.pathname().ok()?, at.search().ok()?);
    reload.set_attribute("href", &here).ok()?;
    for child in [heading, how, what, reload] {
        card.append_child(&child).ok()?;
    }
    screen.append_child(&card).ok()?;
    // Nothing else can be used any more, so nothing else may be reached.
    let mut sibling = body.first_element_child();
    while let Some(element) = sibling {
        sibling = element.next_element_sibling();
        element.set_attribute("inert", "").ok()?;
    }
    body.append_child(&screen).ok()?;
    Some(())
}

fn part(document: &Document, tag: &str, class: &str, text: &str) -> Option<Element> {
    let element = document.create_element(tag).ok()?;
    element.set_class_name(class);
    element.set_text_content(Some(text));
    Some(element)
}
