//! Attributes, classes, properties and listeners: what they may be made from, and putting them
//! onto an element.

use super::{El, Known};
use crate::parts::reactive::owned;
use leptos::ev::EventDescriptor;
use leptos::prelude::*;
use send_wrapper::SendWrapper;
use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::{Closure, JsValue};
use web_sys::{Element, Event, HtmlElement};

/// What of an element.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An attribute.
    Attribute,
    /// One class, there or not.
    Class,
    /// A property of the object, as `value` of a field.
    Property,
    /// One property of its style.
    Style,
}

/// What it is.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum Value {
    /// Nothing: it is absent.
    #[default]
    None,
    /// There or not.
    Flag(bool),
    /// A text.
    Text(Cow<'static, str>),
}

pub(super) enum Attribute {
    Plain(Kind, &'static str, Value),
    Live(Kind, &'static str, Box<dyn FnMut() -> Value>),
    On(Cow<'static, str>, Box<dyn FnMut(Event)>),
    Known(Known),
}

/// An attribute of an element that exists.
pub(super) enum Kept {
    Value {
        kind: Kind,
        name: &'static str,
        last: Rc<RefCell<Value>>,
        effect: Option<RenderEffect<()>>,
    },
    On(#[expect(dead_code, reason = "held: it ends with this")] Listener),
    Known,
}

/// A listener that ends with its element: an event on its way must not find a view that is gone.
pub(super) struct Listener {
    element: Element,
    event: Cow<'static, str>,
    hear: JsValue,
}

impl Drop for Listener {
    fn drop(&mut self) {
        let hear = self.hear.unchecked_ref();
        // A legal name; a listener that is not there any more is no loss.
        let _ = self.element.remove_event_listener_with_callback(&self.event, hear);
    }
}

/// Whatever an attribute can be made from.
pub trait IntoValue: Sized {
    /// It now.
    fn value(self) -> Value;

    /// Puts it onto the element.
    fn put(self, element: &mut El, kind: Kind, name: &'static str) {
        element.plain(kind, name, self.value());
    }
}

impl IntoValue for &'static str {
    fn value(self) -> Value {
        Value::Text(Cow::Borrowed(self))
    }
}

impl IntoValue for String {
    fn value(self) -> Value {
        Value::Text(Cow::Owned(self))
    }
}

impl IntoValue for bool {
    fn value(self) -> Value {
        Value::Flag(self)
    }
}

impl<T: IntoValue> IntoValue for Option<T> {
    fn value(self) -> Value {
        self.map_or(Value::None, T::value)
    }
}

impl<T: IntoValue, F: FnMut() -> T + 'static> IntoValue for F {
    fn value(mut self) -> Value {
        self().value()
    }

    fn put(mut self, element: &mut El, kind: Kind, name: &'static str) {
        element.live(kind, name, Box::new(move || self().value()));
    }
}

impl<T: IntoValue + Clone + Send + Sync + 'static> IntoValue for Signal<T> {
    fn value(self) -> Value {
        self.get().value()
    }

    fn put(self, element: &mut El, kind: Kind, name: &'static str) {
        element.live(kind, name, Box::new(move || self.get().value()));
    }
}

impl IntoValue for RwSignal<String> {
    fn value(self) -> Value {
        self.get().value()
    }

    fn put(self, element: &mut El, kind: Kind, name: &'static str) {
        (move || self.get()).put(element, kind, name);
    }
}

impl El {
    fn plain(&mut self, kind: Kind, name: &'static str, value: Value) {
        self.0.attributes.push(Attribute::Plain(kind, name, value));
    }

    fn live(&mut self, kind: Kind, name: &'static str, value: Box<dyn FnMut() -> Value>) {
        self.0.attributes.push(Attribute::Live(kind, name, value));
    }

    /// Hears an event of the element.
    pub fn hear(&mut self, event: &'static str, hear: impl FnMut(Event) + 'static) {
        self.listen(Cow::Borrowed(event), Box::new(hear));
    }

    fn listen(&mut self, event: Cow<'static, str>, hear: Box<dyn FnMut(Event)>) {
        self.0.attributes.push(Attribute::On(event, hear));
    }
}

/// Hears an event of the element.
pub fn on<E: EventDescriptor>(
    element: &mut El,
    event: E,
    mut hear: impl FnMut(E::EventType) + 'static,
) where
    E::EventType: JsCast,
{
    element.listen(event.name(), Box::new(move |event| hear(event.unchecked_into())));
}

/// Puts what is wanted onto the element, over what it has from before, which goes.
pub(super) fn patch(element: &Element, mut before: Vec<Kept>, wanted: Vec<Attribute>) -> Vec<Kept> {
    before.retain_mut(|held| match held {
        Kept::Value { kind, name, last, effect } => {
            let stays = wanted.iter().any(|wanted| match wanted {
                Attribute::Plain(k, n, _) | Attribute::Live(k, n, _) => k == kind && n == name,
                _ => false,
            });
            *effect = None;
            if !stays && *last.borrow() != Value::None {
                write(element, *kind, name, &Value::None);
            }
            stays
        }
        Kept::On(_) | Kept::Known => false,
    });
    wanted.into_iter().map(|wanted| hold(element, &mut before, wanted)).collect()
}

fn hold(element: &Element, before: &mut Vec<Kept>, wanted: Attribute) -> Kept {
    match wanted {
        Attribute::Plain(kind, name, value) => {
            let last = taken(before, kind, name);
            update(element, kind, name, &last, value);
            Kept::Value { kind, name, last, effect: None }
        }
        Attribute::Live(kind, name, mut compute) => {
            let last = taken(before, kind, name);
            let (on, kept) = (element.clone(), Rc::clone(&last));
            let is_owned = owned();
            let effect = RenderEffect::new(move |_| {
                // What it is computed from goes with the owner, a moment before the element does.
                if is_owned() {
                    update(&on, kind, name, &kept, compute());
                }
            });
            Kept::Value { kind, name, last, effect: Some(effect) }
        }
        Attribute::On(event, mut hear) => {
            let owner = Owner::current().unwrap_or_default();
            let hear = Closure::<dyn FnMut(Event)>::new(move |event| owner.with(|| hear(event)));
            // The browser frees it when nothing can call it any more.
            let hear = hear.into_js_value();
            // Only an illegal name is refused, and these are the browser's own.
            let _ = element.add_event_listener_with_callback(&event, hear.unchecked_ref());
            Kept::On(Listener { element: element.clone(), event, hear })
        }
        Attribute::Known(by) => {
            by.set(Some(SendWrapper::new(element.clone())));
            Kept::Known
        }
    }
}

fn taken(before: &mut Vec<Kept>, kind: Kind, name: &str) -> Rc<RefCell<Value>> {
    let same = |held: &Kept| matches!(held, Kept::Value { kind: k, name: n, .. } if *k == kind && *n == name);
    match before.iter().position(same).map(|at| before.swap_remove(at)) {
        Some(Kept::Value { last, .. }) => last,
        _ => Rc::default(),
    }
}

fn update(element: &Element, kind: Kind, name: &str, last: &RefCell<Value>, value: Value) {
    if *last.borrow() != value {
        write(element, kind, name, &value);
        last.replace(value);
    }
}

/// Names and values are ours and legal: nothing of this is refused.
fn write(element: &Element, kind: Kind, name: &str, value: &Value) {
    let text = match value {
        Value::None | Value::Flag(false) => None,
        Value::Flag(true) => Some(""),
        Value::Text(text) => Some(&**text),
    };
    match (kind, text) {
        (Kind::Attribute, Some(text)) => {
            let _ = element.set_attribute(name, text);
        }
        (Kind::Attribute, None) => {
            let _ = element.remove_attribute(name);
        }
        (Kind::Class, text) => {
            let _ = element.class_list().toggle_with_force(name, text.is_some());
        }
        (Kind::Property, _) => {
            let value = match value {
                Value::None => JsValue::UNDEFINED,
                Value::Flag(flag) => JsValue::from_bool(*flag),
                Value::Text(text) => JsValue::from_str(text),
            };
            let _ = js_sys::Reflect::set(element, &JsValue::from_str(name), &value);
        }
        (Kind::Style, text) => {
            let style = element.unchecked_ref::<HtmlElement>().style();
            let _ = style.set_property(name, text.unwrap_or_default());
        }
    }
}
