//! Modal dialogs.
//!
//! They are the browser's own, which trap the focus and disable the rest of the page.

use crate::browser;
use crate::layers;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::icon;
use crate::reactive::effect;
use crate::text::launch as words;
use leptos::ev;
use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement, MouseEvent};

/// A dialog that is open as long as it exists.
#[component]
pub fn Dialog(
    /// Heading.
    #[prop(into)]
    title: Signal<String>,
    /// Wanted away: by Escape, the cross, or a click beside it.
    on_close: Callback<()>,
    /// Something is typed that a stray click must not throw away.
    #[prop(optional, into)]
    is_dirty: Signal<bool>,
    /// The address opens it: then it has an entry of the history without another.
    #[prop(optional)]
    has_address: bool,
    /// Only its own buttons close it: it shows what is not shown again.
    #[prop(optional)]
    is_firm: bool,
    /// For tests and automation.
    testid: &'static str,
    /// Body and footer.
    children: Children,
) -> impl IntoView {
    let node = NodeRef::<html::Dialog>::new();
    let opener =
        document().active_element().and_then(|element| element.dyn_into::<HtmlElement>().ok());
    let opener = StoredValue::new_local(opener);
    effect(move || {
        if let Some(dialog) = node.get()
            && !dialog.open()
        {
            let _ = dialog.show_modal(); // it is in the document and not open
        }
    });
    let layer = (!has_address && !is_firm).then(|| layers::open(on_close));
    on_cleanup(move || {
        if let Some(layer) = layer {
            layer.close();
        }
        let opener = opener.try_get_value().flatten();
        browser::after_paint(move || give_back(opener));
    });
    let pressed_beside = StoredValue::new(false);
    let is_beside = move |event: &MouseEvent| {
        let target = event.target().and_then(|t| t.dyn_into::<Element>().ok());
        target.is_some_and(|element| element.tag_name() == "DIALOG")
    };
    let press = move |event: MouseEvent| pressed_beside.set_value(is_beside(&event));
    let click = move |event: MouseEvent| {
        if !is_firm && pressed_beside.get_value() && is_beside(&event) && !is_dirty.get_untracked()
        {
            on_close.run(());
        }
    };
    let cancel = move |event: web_sys::Event| {
        event.prevent_default(); // it goes when its owner takes it away
        if !is_firm {
            on_close.run(());
        }
    };
    // Where two requests to close follow each other, browsers let the page prevent the first only.
    // On the window: the focus may be nowhere.
    let escape = is_firm.then(|| {
        window_event_listener(ev::keydown, |event| {
            if event.key() == "Escape" {
                event.prevent_default();
            }
        })
    });
    on_cleanup(move || {
        if let Some(escape) = escape {
            escape.remove();
        }
    });
    let closed = move |_| {
        if is_firm
            && let Some(dialog) = node.get_untracked()
            && !dialog.open()
        {
            let _ = dialog.show_modal(); // it is in the document and not open
        }
    };
    view! {
        <dialog
            node_ref=node
            aria-labelledby="dialog-title"
            data-testid=testid
            on:cancel=cancel
            on:close=closed
            on:mousedown=press
            on:click=click
        >
            <div class="dialog-head">
                <h2 id="dialog-title">{title}</h2>
                {(!is_firm).then(|| view! {
                    <button
                        type="button"
                        class=format!("{} btn-icon", ButtonStyle::Ghost.class())
                        aria-label=words::CLOSE
                        data-testid="dialog-close"
                        on:click=move |_| on_close.run(())
                    >
                        {icon("close", 20)}
                    </button>
                })}
            </div>
            {children()}
        </dialog>
    }
}

/// Moves the focus back to the element that opened the dialog.
///
/// It stays where it is when it has moved elsewhere already.
fn give_back(opener: Option<HtmlElement>) {
    let lost = document().active_element().is_none_or(|element| element.tag_name() == "BODY");
    if !lost {
        return;
    }
    match opener.filter(|opener| opener.is_connected()) {
        Some(opener) => drop(opener.focus()),
        None => drop(browser::focus("h1")),
    }
}
