//! What the page asks of the browser: addresses, clocks, storage, clipboard, focus.

use leptos::prelude::{ReadSignal, Set, document, signal, window};
use std::cell::OnceCell;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::{Closure, JsValue};
use web_sys::HtmlElement;

thread_local! {
    static ROOT: OnceCell<String> = const { OnceCell::new() };
    static SPRITE: OnceCell<String> = const { OnceCell::new() };
}

/// The prefix under which the service is reached: empty or `/a/b`.
pub fn root() -> String {
    ROOT.with(|root| root.get_or_init(read_root).clone())
}

fn read_root() -> String {
    head("meta[name=svc-root]", "content").trim_end_matches('/').to_owned()
}

/// Address of the icons.
///
/// It is the page's own icon file. Its name carries a hash, so the browser never fetches it again,
/// not even while offline.
pub fn sprite() -> String {
    SPRITE.with(|sprite| sprite.get_or_init(|| head("link[rel=icon]", "href")).clone())
}

fn head(selector: &str, attribute: &str) -> String {
    let found = document().query_selector(selector).ok().flatten();
    found.and_then(|element| element.get_attribute(attribute)).unwrap_or_default()
}

/// An address of this service from its app-local path.
pub fn href(path: &str) -> String {
    format!("{}{path}", root())
}

/// Path of the page of an instance.
pub fn session_href(id: &str) -> String {
    href(&format!("/ui/s/{}", svc_shared::paths::segment(id)))
}

/// Path of the page of a conversation.
pub fn conversation_href(project: &str, conversation: &str) -> String {
    use svc_shared::paths::segment;
    href(&format!("/ui/projects/{}/c/{}", segment(project), segment(conversation)))
}

/// Path of the page of a project.
pub fn project_href(name: &str) -> String {
    href(&format!("/ui/projects/{}", svc_shared::paths::segment(name)))
}

/// Path of the page that opens the client of an instance.
pub fn open_href(id: &str) -> String {
    href(&format!("/ui/s/{}/open", svc_shared::paths::segment(id)))
}

/// The same as a socket's address.
pub fn socket_href(path: &str) -> String {
    let at = window().location();
    let scheme = match at.protocol() {
        Ok(protocol) if protocol == "https:" => "wss:",
        _ => "ws:",
    };
    format!("{scheme}//{}{}", at.host().unwrap_or_default(), href(path))
}

/// Origin of the page.
pub fn origin() -> String {
    window().location().origin().unwrap_or_default()
}

/// Milliseconds since the Unix epoch by the clock of this device.
pub fn device_now() -> i64 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the platform's clock is a whole number of milliseconds far below 2^53"
    )]
    let now = js_sys::Date::now() as i64;
    now
}

/// A clock that never steps, milliseconds.
pub fn steady_now() -> f64 {
    window().performance().map_or(0.0, |clock| clock.now())
}

/// Minutes east of UTC at a time, as the browser's zone has it.
pub fn zone(at: i64) -> i32 {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "times lie far below 2^53, offsets within a day"
    )]
    let minutes = js_sys::Date::new(&JsValue::from_f64(at as f64)).get_timezone_offset() as i32;
    -minutes
}

/// The same in a zone by its name; `None` where this browser does not know it.
pub fn zone_of(name: &str, at: i64) -> Option<i32> {
    let text = || -> Option<String> {
        #[expect(clippy::cast_precision_loss, reason = "times lie far below 2^53")]
        let date = js_sys::Date::new(&JsValue::from_f64(at as f64));
        let options = js_sys::Object::new();
        js_sys::Reflect::set(&options, &"timeZone".into(), &name.into()).ok()?;
        let method = js_sys::Reflect::get(&date, &"toLocaleString".into()).ok()?;
        let method: js_sys::Function = method.dyn_into().ok()?;
        // Swedish writes dates as ISO 8601 does. Called so that an unknown zone is no panic.
        method.call2(&date, &"sv-SE".into(), &options).ok()?.as_string()
    };
    text().and_then(|text| crate::model::time::offset(&text, at))
}

/// Whether the tab is in the background.
pub fn is_hidden() -> bool {
    document().hidden()
}

/// Path and query of the page.
pub fn address() -> String {
    let at = window().location();
    format!("{}{}", at.pathname().unwrap_or_default(), at.search().unwrap_or_default())
}

/// A value kept in this browser.
pub fn stored(key: &str) -> Option<String> {
    window().local_storage().ok().flatten()?.get_item(key).ok().flatten()
}

/// Stores a value in this browser.
///
/// Where storage is not allowed, the value lasts as long as the page.
pub fn store(key: &str, value: Option<&str>) {
    put(window().local_storage(), key, value);
}

/// A value kept in this tab.
pub fn drafted(key: &str) -> Option<String> {
    window().session_storage().ok().flatten()?.get_item(key).ok().flatten()
}

/// Keeps a value in this tab.
pub fn draft(key: &str, value: Option<&str>) {
    put(window().session_storage(), key, value);
}

fn put(storage: Result<Option<web_sys::Storage>, JsValue>, key: &str, value: Option<&str>) {
    if let Ok(Some(storage)) = storage {
        let _ = match value {
            Some(value) => storage.set_item(key, value),
            None => storage.remove_item(key),
        }; // full or forbidden: only the memory of a choice is lost
    }
}

/// Forgets the values of this page in this browser and this tab.
///
/// Those are the values whose keys begin with `prefix`.
pub fn forget(prefix: &str) {
    for storage in [window().local_storage(), window().session_storage()] {
        let Ok(Some(storage)) = storage else { continue };
        let all = 0..storage.length().unwrap_or(0);
        let keys: Vec<String> = all.filter_map(|at| storage.key(at).ok().flatten()).collect();
        for key in keys.iter().filter(|key| key.starts_with(prefix)) {
            let _ = storage.remove_item(key); // what is there can be removed
        }
    }
}

/// A key that marks repeats of one request as repeats.
pub fn repeat_key() -> String {
    let part = || {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a random number below 2^53 fits"
        )]
        let random = (js_sys::Math::random() * 9_007_199_254_740_992.0) as u64;
        random
    };
    format!("{:014x}{:014x}", part(), part())
}

/// Whether a media query matches, kept up to date.
pub fn matches(query: &str) -> ReadSignal<bool> {
    let (is, set) = signal(false);
    if let Ok(Some(media)) = window().match_media(query) {
        set.set(media.matches());
        let change = Closure::<dyn FnMut(web_sys::MediaQueryListEvent)>::new(
            move |event: web_sys::MediaQueryListEvent| set.set(event.matches()),
        );
        media.set_onchange(Some(change.as_ref().unchecked_ref()));
        change.forget(); // asked for once per page
        std::mem::forget(media); // its listener dies with it
    }
    is
}

/// Copies a text. False where the browser has no clipboard (an insecure address).
pub async fn copy(text: &str) -> bool {
    // Absent outside secure contexts, although the type says otherwise.
    let clipboard = window().navigator().clipboard();
    if clipboard.is_undefined() {
        return false;
    }
    wasm_bindgen_futures::JsFuture::from(clipboard.write_text(text)).await.is_ok()
}

/// Selects the text of an element, for copying by hand.
pub fn select(element: &web_sys::Element) {
    if let Ok(Some(selection)) = window().get_selection() {
        let _ = selection.select_all_children(element); // an element of this document
    }
}

/// The text that is selected within an element; blank when nothing is.
pub fn selected(within: &web_sys::Element) -> String {
    let Ok(Some(selection)) = window().get_selection() else {
        return String::new();
    };
    let is_inside = selection.anchor_node().is_some_and(|node| within.contains(Some(&node)));
    if is_inside { String::from(selection.to_string()) } else { String::new() }
}

/// Hands a text over as a file.
pub fn download(name: &str, text: &str) {
    let parts = js_sys::Array::of1(&JsValue::from_str(text));
    let Ok(blob) = web_sys::Blob::new_with_str_sequence(&parts) else {
        return; // never refused for text
    };
    let Ok(address) = web_sys::Url::create_object_url_with_blob(&blob) else {
        return; // as above
    };
    if let Ok(link) = document().create_element("a") {
        let _ = link.set_attribute("href", &address); // fixed, legal names
        let _ = link.set_attribute("download", name);
        link.unchecked_into::<HtmlElement>().click();
    }
    let _ = web_sys::Url::revoke_object_url(&address); // the download has its own hold
}

/// Listens on the window as long as the page lives.
pub fn on_window(event: &str, handler: impl FnMut(web_sys::Event) + 'static) {
    listen(&window(), event, Box::new(handler));
}

/// Listens on the document as long as the page lives.
pub fn on_document(event: &str, handler: impl FnMut(web_sys::Event) + 'static) {
    listen(&document(), event, Box::new(handler));
}

fn listen(on: &web_sys::EventTarget, event: &str, handler: Box<dyn FnMut(web_sys::Event)>) {
    let closure = Closure::wrap(handler);
    let _ = on.add_event_listener_with_callback(event, closure.as_ref().unchecked_ref()); // the names are fixed and legal
    closure.forget();
}

/// The first element for a selector that can take the focus.
pub fn element(selector: &str) -> Option<HtmlElement> {
    let found = document().query_selector(selector).ok().flatten()?;
    found.dyn_into().ok()
}

/// This attribute of every element for a selector, in the order of the page.
pub fn attributes(selector: &str, name: &str) -> Vec<String> {
    let Ok(list) = document().query_selector_all(selector) else {
        return Vec::new();
    };
    let of = |at| list.item(at)?.dyn_into::<web_sys::Element>().ok()?.get_attribute(name);
    (0..list.length()).filter_map(of).collect()
}

/// The number on the icon of the installed page, where there is such a thing.
pub fn badge(n: usize) {
    let navigator: JsValue = window().navigator().into();
    if let Ok(set) = js_sys::Reflect::get(&navigator, &"setAppBadge".into())
        && let Some(set) = set.dyn_ref::<js_sys::Function>()
    {
        #[expect(clippy::cast_precision_loss, reason = "a handful")]
        let _ = set.call1(&navigator, &(n as f64).into()); // not installed: nothing to show it on
    }
}

/// Gives the focus to the first element for a selector; false when there is none.
pub fn focus(selector: &str) -> bool {
    element(selector).is_some_and(|element| element.focus().is_ok())
}

/// Whether something is typed into a field that nobody keeps.
pub fn has_typed() -> bool {
    let Ok(fields) = document().query_selector_all("[data-unsent]") else { return false };
    (0..fields.length()).filter_map(|at| fields.item(at)).any(|field| {
        let input = field.dyn_ref::<web_sys::HtmlInputElement>();
        input.is_some_and(|input| !input.value().is_empty())
    })
}

/// Whether the browser would ask before the page goes, because a view holds edits.
pub fn asks_before_leaving() -> bool {
    let init = web_sys::EventInit::new();
    init.set_cancelable(true);
    let question = web_sys::Event::new_with_event_init_dict("beforeunload", &init);
    question.is_ok_and(|event| window().dispatch_event(&event).is_ok_and(|goes| !goes))
}

/// Runs before the next paint, when what was just changed is there.
///
/// The view that asked may be gone by then: signals of it are read with `try_…`.
pub fn after_paint(run: impl FnOnce() + 'static) {
    leptos::prelude::request_animation_frame(run);
}
