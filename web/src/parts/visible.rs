//! Elements that come into view and leave it.

use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::Closure;
use web_sys::{Element, IntersectionObserver, IntersectionObserverEntry, IntersectionObserverInit};

/// Tells which of its elements can be seen. It stops when it is dropped.
pub struct VisibleWatch {
    observer: IntersectionObserver,
    _changed: Closure<dyn FnMut(js_sys::Array)>,
}

impl VisibleWatch {
    /// Watches within `root`, or within the window.
    ///
    /// `margin` moves the edges as in a style sheet. `changed` is called for an element that came or went, and once for each at the beginning.
    pub fn new(
        root: Option<&Element>,
        margin: &str,
        mut changed: impl FnMut(Element, bool) + 'static,
    ) -> Option<Self> {
        let told = Closure::<dyn FnMut(js_sys::Array)>::new(move |entries: js_sys::Array| {
            for entry in entries {
                let entry = entry.unchecked_into::<IntersectionObserverEntry>();
                changed(entry.target(), entry.is_intersecting());
            }
        });
        let init = IntersectionObserverInit::new();
        init.set_root(root);
        init.set_root_margin(margin);
        let made = IntersectionObserver::new_with_options(told.as_ref().unchecked_ref(), &init);
        made.ok().map(|observer| Self { observer, _changed: told })
    }

    /// Watches this element as well.
    pub fn observe(&self, element: &Element) {
        self.observer.observe(element);
    }
}

impl Drop for VisibleWatch {
    fn drop(&mut self) {
        self.observer.disconnect();
    }
}
