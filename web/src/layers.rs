//! The history entry of what lies over a view: dialogs, sheets and menus.
//!
//! Each has one, so that Back closes it and leaves the view where it is. Closed by hand, it takes
//! its entry out again. Closed under another, it cannot: whoever comes to its entry goes on to the
//! one below.

use crate::browser;
use leptos::prelude::{Callable, Callback, set_timeout, window};
use std::cell::RefCell;
use std::time::Duration;
use wasm_bindgen::JsValue;
use web_sys::History;

/// Member of an entry's state that holds the number of its layer.
const LAYER: &str = "layer";

thread_local! {
    static LAYERS: RefCell<Layers> =
        RefCell::new(Layers { last: loaded_at(), ..Layers::default() });
}

/// What runs once an entry is out of the history.
type Waiting = Box<dyn FnOnce()>;

#[derive(Default)]
struct Layers {
    /// Open ones, the topmost last.
    open: Vec<(u64, Callback<()>)>,
    /// The number given last.
    ///
    /// It begins with the time of the load: the history still has the entries of earlier loads.
    last: u64,
    /// Set while an entry is taken out.
    leaving: Option<Leaving>,
}

/// The way from an entry that is taken out to the one below.
struct Leaving {
    /// Where the page was scrolled to, unless the browser is right about it.
    place: Option<f64>,
    /// Waits for the entry to be gone.
    waiting: Vec<Waiting>,
}

/// A layer that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layer(u64);

fn history() -> Option<History> {
    window().history().ok()
}

/// When this page was loaded, milliseconds since the Unix epoch.
fn loaded_at() -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "far below 2^53")]
    let at = window().performance().map_or(0.0, |clock| clock.time_origin()) as u64;
    at
}

/// Number of the layer that the present entry belongs to.
fn of_entry() -> Option<u64> {
    let state = history()?.state().ok()?;
    let number = js_sys::Reflect::get(&state, &LAYER.into()).ok()?.as_f64()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "written below")]
    let number = number as u64;
    Some(number)
}

/// Whether the present entry is that of a layer, open or not.
///
/// A view that follows it takes its place.
pub fn is_on_top() -> bool {
    of_entry().is_some()
}

/// Runs when no entry is on its way out, which is at once as a rule.
pub fn settled(run: impl FnOnce() + 'static) {
    let run: Waiting = Box::new(run);
    let now = LAYERS.with_borrow_mut(|layers| match &mut layers.leaving {
        Some(leaving) => {
            leaving.waiting.push(run);
            None
        }
        None => Some(run),
    });
    if let Some(run) = now {
        run();
    }
}

/// Opens a layer; `close` runs when the way back leads below it.
pub fn open(close: Callback<()>) -> Layer {
    let number = LAYERS.with_borrow_mut(|layers| {
        layers.last += 1;
        layers.open.push((layers.last, close));
        layers.last
    });
    settled(move || {
        if !is_open(number) {
            return;
        }
        let (Some(history), state) = (history(), js_sys::Object::new()) else { return };
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        let own = JsValue::from_f64(number as f64);
        let _ = js_sys::Reflect::set(&state, &LAYER.into(), &own); // a plain object
        // The entry of a layer that has just closed is used again.
        let is_left = of_entry().is_some_and(|of| !is_open(of));
        let _ = if is_left {
            history.replace_state(&state, "")
        } else {
            history.push_state(&state, "")
        }; // refused after many in a short time: then Back leaves the view
    });
    Layer(number)
}

fn is_open(number: u64) -> bool {
    LAYERS.with_borrow(|layers| layers.open.iter().any(|(one, _)| *one == number))
}

/// Notes that an entry is taken out.
///
/// False when one is on its way out already.
fn leave(place: Option<f64>) -> bool {
    LAYERS.with_borrow_mut(|layers| {
        let is_first = layers.leaving.is_none();
        if is_first {
            layers.leaving = Some(Leaving { place, waiting: Vec::new() });
        }
        is_first
    })
}

/// Goes one entry of the history back.
pub fn step_back() {
    if let Some(history) = history() {
        let _ = history.back(); // there is an entry below
    }
}

impl Layer {
    /// Takes the layer away, and its entry unless something else has taken its place.
    pub fn close(self) {
        let was_open = LAYERS.with_borrow_mut(|layers| {
            let before = layers.open.len();
            layers.open.retain(|(one, _)| *one != self.0);
            before != layers.open.len()
        });
        if !was_open {
            return;
        }
        // What closed it may lead elsewhere, or open the next one, in the same moment.
        set_timeout(
            move || {
                if of_entry() != Some(self.0) {
                    return;
                }
                if leave(Some(window().scroll_y().unwrap_or_default())) {
                    step_back();
                }
            },
            Duration::ZERO,
        );
    }
}

/// Follows a step in the history. True when it only concerned layers.
pub fn stepped() -> bool {
    let present = of_entry();
    // Of a layer that closed under another, that Forward leads to again, or of an earlier load.
    let is_left = present.is_some_and(|number| !is_open(number));
    if is_left && LAYERS.with_borrow(|layers| layers.leaving.is_some()) {
        step_back();
        return true;
    }
    if let Some(Leaving { place, waiting }) = LAYERS.with_borrow_mut(|layers| layers.leaving.take())
    {
        if let Some(y) = place {
            // The browser goes to where the entry below was scrolled to.
            browser::after_paint(move || window().scroll_to_with_x_and_y(0.0, y));
        }
        for run in waiting {
            run();
        }
        return true;
    }
    if is_left {
        // Before anything is closed: what that opens waits for the entry below.
        leave(None);
    }
    let present = present.unwrap_or(0);
    let left: Vec<Callback<()>> = LAYERS.with_borrow_mut(|layers| {
        let at = layers.open.iter().position(|(one, _)| *one > present);
        let left = at.map(|at| layers.open.split_off(at)).unwrap_or_default();
        left.into_iter().rev().map(|(_, close)| close).collect()
    });
    let is_ours = is_left || !left.is_empty();
    for close in left {
        close.run(());
    }
    if is_left {
        step_back();
    }
    is_ours
}

/// The state that an address takes over when it replaces the present one.
pub fn state() -> JsValue {
    let state = history().filter(|_| is_on_top()).and_then(|history| history.state().ok());
    state.unwrap_or(JsValue::NULL)
}
