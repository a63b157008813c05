//! The history entry of what lies over a view: dialogs, sheets and menus.
//!
//! Each has one, so that Back closes it and leaves the view where it is. Closed by hand, it takes
//! its entry out again.

use crate::browser;
use leptos::prelude::{Callable, Callback, set_timeout, window};
use std::cell::RefCell;
use std::time::Duration;
use wasm_bindgen::JsValue;
use web_sys::History;

/// Member of an entry's state that holds the number of its layer.
const LAYER: &str = "layer";

thread_local! {
    static LAYERS: RefCell<Layers> = RefCell::new(Layers::default());
}

/// What runs once an entry is out of the history.
type Waiting = Box<dyn FnOnce()>;

#[derive(Default)]
struct Layers {
    /// Open ones, the topmost last.
    open: Vec<(u32, Callback<()>)>,
    /// The number given last.
    last: u32,
    /// Set while an entry is taken out.
    ///
    /// Where the page was scrolled to, and what waits for the entry to be gone.
    leaving: Option<(f64, Vec<Waiting>)>,
}

/// A layer that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layer(u32);

fn history() -> Option<History> {
    window().history().ok()
}

/// Number of the layer that the present entry belongs to.
fn of_entry() -> Option<u32> {
    let state = history()?.state().ok()?;
    let number = js_sys::Reflect::get(&state, &LAYER.into()).ok()?.as_f64()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "written below")]
    let number = number as u32;
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
        Some((_, waiting)) => {
            waiting.push(run);
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
        let _ = js_sys::Reflect::set(&state, &LAYER.into(), &number.into()); // a plain object
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

fn is_open(number: u32) -> bool {
    LAYERS.with_borrow(|layers| layers.open.iter().any(|(one, _)| *one == number))
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
                let is_first = LAYERS.with_borrow_mut(|layers| {
                    let is_first = layers.leaving.is_none();
                    if is_first {
                        let at = window().scroll_y().unwrap_or_default();
                        layers.leaving = Some((at, Vec::new()));
                    }
                    is_first
                });
                if let Some(history) = history().filter(|_| is_first) {
                    let _ = history.back(); // there is an entry below
                }
            },
            Duration::ZERO,
        );
    }
}

/// Follows a step in the history. True when it only concerned layers.
pub fn stepped() -> bool {
    if let Some((at, waiting)) = LAYERS.with_borrow_mut(|layers| layers.leaving.take()) {
        // The browser goes to where the entry below was scrolled to.
        browser::after_paint(move || window().scroll_to_with_x_and_y(0.0, at));
        for run in waiting {
            run();
        }
        return true;
    }
    let present = of_entry().unwrap_or(0);
    let left: Vec<Callback<()>> = LAYERS.with_borrow_mut(|layers| {
        let at = layers.open.iter().position(|(one, _)| *one > present);
        let left = at.map(|at| layers.open.split_off(at)).unwrap_or_default();
        left.into_iter().rev().map(|(_, close)| close).collect()
    });
    let is_ours = !left.is_empty();
    for close in left {
        close.run(());
    }
    is_ours
}

/// The state that an address takes over when it replaces the present one.
pub fn state() -> JsValue {
    let state = history().filter(|_| is_on_top()).and_then(|history| history.state().ok());
    state.unwrap_or(JsValue::NULL)
}
