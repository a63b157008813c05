//! What views are made of. The notation is that of Leptos, its signals and components too; the
//! elements are not: there each element, attribute and text is a type of its own, compiled anew
//! per use, which was a third of the module. Here a view is a value, and one copy of the code
//! builds it, patches it in place when it is made again, and takes it away.

mod list;
mod tree;
mod value;

pub use list::keyed;
pub use tree::mount;
pub use value::{IntoValue, Kind, on};

use crate::parts::reactive::Held;
use leptos::prelude::*;
use send_wrapper::SendWrapper;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;
use wasm_bindgen::JsCast;
use web_sys::Element;

/// Everything a view's file needs; instead of `leptos::prelude`.
pub mod prelude {
    pub use super::{AnyView, Children, CollectView, IntoView, NodeRef, ViewFn};
    pub use leptos::prelude::{
        ArcRwSignal, Callable, Callback, Effect, Get, GetUntracked, GetValue, LocalStorage,
        ReadSignal, RwSignal, Set, SetValue, Signal, StoredValue, Track, Update, UpdateValue, With,
        WithUntracked, WithValue, component, document, event_target_value, expect_context,
        on_cleanup, provide_context, set_interval, set_timeout, set_timeout_with_handle, untrack,
        window, window_event_listener, window_event_listener_untyped,
    };
    pub use svc_view::view;
}

/// A part of the page.
#[derive(Default)]
pub struct AnyView(Option<Box<Node>>);

enum Node {
    Text(Cow<'static, str>),
    Element(Content),
    Many(Vec<AnyView>),
    Dynamic(Box<dyn FnMut() -> AnyView>),
    Keyed(list::Keyed),
}

struct Content {
    tag: &'static str,
    attributes: Vec<value::Attribute>,
    children: Vec<AnyView>,
}

impl AnyView {
    fn new(node: Node) -> Self {
        Self(Some(Box::new(node)))
    }

    /// A text.
    pub fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Node::Text(text.into()))
    }

    /// One after the other.
    pub fn many(views: Vec<Self>) -> Self {
        Self::new(Node::Many(views))
    }

    /// Made anew whenever what it reads changes.
    pub fn dynamic(make: Box<dyn FnMut() -> Self>) -> Self {
        Self::new(Node::Dynamic(make))
    }
}

/// An element that is being written down; made by `view!`.
pub struct El(Box<Content>);

impl El {
    /// An element without anything.
    pub fn new(tag: &'static str) -> Self {
        Self(Box::new(Content { tag, attributes: Vec::new(), children: Vec::new() }))
    }

    /// A child after the others.
    pub fn child(&mut self, child: AnyView) {
        self.0.children.push(child);
    }

    /// The element can be asked for by this.
    pub fn known_as<E>(&mut self, by: NodeRef<E>) {
        self.0.attributes.push(value::Attribute::Known(by.held));
    }

    /// The element as a view.
    pub fn done(self) -> AnyView {
        AnyView::new(Node::Element(*self.0))
    }
}

/// Whatever can stand in a view.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand in a view",
    note = "views come from `crate::dom::prelude`, not from `leptos::prelude`"
)]
pub trait IntoView: Sized {
    /// It as a view.
    fn into_view(self) -> AnyView;

    /// It as a view.
    fn into_any(self) -> AnyView {
        self.into_view()
    }
}

impl IntoView for AnyView {
    fn into_view(self) -> AnyView {
        self
    }
}

impl IntoView for () {
    fn into_view(self) -> AnyView {
        AnyView::default()
    }
}

impl IntoView for &str {
    fn into_view(self) -> AnyView {
        AnyView::text(self.to_owned())
    }
}

impl IntoView for String {
    fn into_view(self) -> AnyView {
        AnyView::text(self)
    }
}

impl IntoView for usize {
    fn into_view(self) -> AnyView {
        AnyView::text(self.to_string())
    }
}

impl<V: IntoView> IntoView for Option<V> {
    fn into_view(self) -> AnyView {
        self.map_or_else(AnyView::default, V::into_view)
    }
}

impl<V: IntoView> IntoView for Vec<V> {
    fn into_view(self) -> AnyView {
        self.into_iter().collect_view()
    }
}

impl<V: IntoView, const N: usize> IntoView for [V; N] {
    fn into_view(self) -> AnyView {
        self.into_iter().collect_view()
    }
}

impl<A: IntoView, B: IntoView> IntoView for (A, B) {
    fn into_view(self) -> AnyView {
        AnyView::many(vec![self.0.into_view(), self.1.into_view()])
    }
}

impl<A: IntoView, B: IntoView, C: IntoView> IntoView for (A, B, C) {
    fn into_view(self) -> AnyView {
        AnyView::many(vec![self.0.into_view(), self.1.into_view(), self.2.into_view()])
    }
}

impl<V: IntoView, F: FnMut() -> V + 'static> IntoView for F {
    fn into_view(mut self) -> AnyView {
        AnyView::dynamic(Box::new(move || self().into_view()))
    }
}

impl<T: IntoView + Clone + Send + Sync + 'static> IntoView for Signal<T> {
    fn into_view(self) -> AnyView {
        (move || self.get()).into_view()
    }
}

impl IntoView for RwSignal<String> {
    fn into_view(self) -> AnyView {
        (move || self.get()).into_view()
    }
}

/// Many views from whatever yields them.
pub trait CollectView {
    /// All of them, one after the other.
    fn collect_view(self) -> AnyView;
}

impl<V: IntoView, I: IntoIterator<Item = V>> CollectView for I {
    fn collect_view(self) -> AnyView {
        AnyView::many(self.into_iter().map(V::into_view).collect())
    }
}

/// What stands between the tags of a component.
pub type Children = Box<dyn FnOnce() -> AnyView>;

/// Makes a view as often as it is asked to; nothing at first.
#[derive(Clone, Default)]
pub struct ViewFn(Option<Arc<dyn Fn() -> AnyView + Send + Sync>>);

impl ViewFn {
    /// The view.
    pub fn run(&self) -> AnyView {
        self.0.as_ref().map_or_else(AnyView::default, |make| make())
    }
}

impl<V: IntoView, F: Fn() -> V + Send + Sync + 'static> From<F> for ViewFn {
    fn from(make: F) -> Self {
        Self(Some(Arc::new(move || make().into_view())))
    }
}

/// A handle to an element that may not exist yet.
pub struct NodeRef<E> {
    held: Known,
    of: PhantomData<fn() -> E>,
}

type Known = Held<Option<SendWrapper<Element>>>;

impl<E> Clone for NodeRef<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for NodeRef<E> {}

impl<E: leptos::html::ElementType> NodeRef<E>
where
    E::Output: JsCast,
{
    /// A handle to no element.
    pub fn new() -> Self {
        Self { held: Held::new(None), of: PhantomData }
    }

    /// The element. Tracked.
    pub fn get(self) -> Option<E::Output> {
        self.held.get().map(|element| element.take().unchecked_into())
    }

    /// The same; `None` when whoever held it is gone.
    pub fn try_get_untracked(self) -> Option<Option<E::Output>> {
        let element = self.held.try_with_untracked(Option::clone)?;
        Some(element.map(|element| element.take().unchecked_into()))
    }

    /// The element, without tracking.
    pub fn get_untracked(self) -> Option<E::Output> {
        self.held.get_untracked().map(|element| element.take().unchecked_into())
    }
}
