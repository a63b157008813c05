//! Notifications of this browser, while the page is open in the background.
//!
//! They need a permission that the browser asks for after a click, and a choice that is kept in
//! this browser, because the permission is one of the device.

use crate::browser;
use crate::model::notify::{Notification as Told, Standing};
use crate::nav::nav;
use leptos::prelude::{Set, WriteSignal, window};
use leptos::task::spawn_local;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::Closure;
use wasm_bindgen_futures::JsFuture;
use web_sys::{Notification, NotificationOptions, NotificationPermission};

/// Where this browser keeps the choice; nothing there means off.
const CHOICE: &str = "svc.notify";

/// How notifications stand here.
pub fn standing(is_offered: bool) -> Standing {
    if !is_offered {
        return Standing::NotOffered;
    }
    if !window().is_secure_context() {
        return Standing::Insecure;
    }
    if !js_sys::Reflect::has(&window(), &"Notification".into()).unwrap_or(false) {
        return Standing::Unsupported;
    }
    match Notification::permission() {
        NotificationPermission::Denied => Standing::Denied,
        NotificationPermission::Granted if browser::stored(CHOICE).is_some() => Standing::On,
        _ => Standing::Off,
    }
}

/// Switches notifications on or off. The browser may ask for the permission first.
pub fn switch(now: Standing, shown: WriteSignal<Standing>) {
    match now {
        Standing::On => {
            browser::store(CHOICE, None);
            shown.set(standing(true));
        }
        Standing::Off => spawn_local(async move {
            browser::store(CHOICE, Some("on"));
            if let Ok(asked) = Notification::request_permission() {
                // What was answered is read below.
                let _ = JsFuture::from(asked).await;
            }
            shown.set(standing(true));
        }),
        Standing::NotOffered | Standing::Insecure | Standing::Unsupported | Standing::Denied => {}
    }
}

/// Shows a notification when nobody sees the page.
pub fn show(told: Told) {
    if !browser::is_hidden() || standing(true) != Standing::On {
        return;
    }
    let options = NotificationOptions::new();
    options.set_body(&told.body);
    options.set_tag(&told.tag);
    // Some browsers of phones have them for installed pages only.
    let Ok(notification) = Notification::new_with_options(&told.title, &options) else { return };
    let (nav, href) = (nav(), browser::session_href(&told.instance_id));
    let open = Closure::once_into_js(move || {
        let _ = window().focus(); // the browser may keep its window where it is
        nav.to(&href);
    });
    notification.set_onclick(Some(open.unchecked_ref()));
}
