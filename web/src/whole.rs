//! The whole of a text that does not fit, under the pointer.

use crate::browser;
use wasm_bindgen::JsCast;
use web_sys::{Element, Event, HtmlElement};

/// What may be cut: it ends in an ellipsis.
const CUT: &str = ".name, .label, .row-facts, .fact, .badge, .chip, .path, .here, .brand-host, \
                   .cause-line code, option";

/// Names a text that is cut by itself, as long as the page lives.
pub fn watch() {
    browser::on_document("pointerover", |event: Event| {
        let target = event.target().and_then(|target| target.dyn_into::<Element>().ok());
        let mut at = target.and_then(|target| target.closest(CUT).ok().flatten());
        while let Some(element) = at {
            name(&element);
            at = element.parent_element().and_then(|above| above.closest(CUT).ok().flatten());
        }
    });
}

fn name(element: &Element) {
    let Some(element) = element.dyn_ref::<HtmlElement>() else { return };
    let is_own = element.has_attribute("data-whole");
    if !is_own && element.has_attribute("title") {
        return;
    }
    let is_cut = element.scroll_width() > element.client_width()
        || element.scroll_height() > element.client_height() + 2;
    if is_cut {
        element.set_title(&element.text_content().unwrap_or_default());
        let _ = element.set_attribute("data-whole", ""); // a fixed, legal name
    } else if is_own {
        let _ = element.remove_attribute("title"); // as above
    }
}
