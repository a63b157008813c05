//! Reactive values behind boxes. Every closure and every type of value is a type of its own to
//! the framework, which is compiled once per type: boxed, the whole page shares one copy. This is
//! what keeps the module small; the price is an allocation per binding.

use leptos::prelude::*;
use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

/// A value of any type that can be compared with another of the same type.
trait Same: Any + Send + Sync {
    fn is_same(&self, other: &dyn Any) -> bool;
}

impl<T: PartialEq + Send + Sync + 'static> Same for T {
    fn is_same(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<T>() == Some(self)
    }
}

#[derive(Clone)]
struct Boxed(Arc<dyn Same>);

impl PartialEq for Boxed {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_same(&*other.0 as &dyn Any)
    }
}

/// A value computed once per change of what it reads; readers run again only when it differs.
pub struct Cached<T> {
    memo: Memo<Boxed>,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for Cached<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Cached<T> {}

impl<T: Clone + 'static> Cached<T> {
    /// The value. Tracked.
    pub fn get(self) -> T {
        self.with(T::clone)
    }

    /// The value, without tracking.
    pub fn get_untracked(self) -> T {
        untrack(|| self.get())
    }

    /// Looks at the value, without tracking.
    pub fn with_untracked<R>(self, look: impl FnOnce(&T) -> R) -> R {
        untrack(|| self.with(look))
    }

    /// Looks at the value. Tracked.
    pub fn with<R>(self, look: impl FnOnce(&T) -> R) -> R {
        let value = self.memo.get();
        // The constructor is the only writer, and it writes a T.
        #[expect(clippy::expect_used, reason = "only `memo` makes these, with this very type")]
        let value = (&*value.0 as &dyn Any).downcast_ref::<T>().expect("a memo holds its type");
        look(value)
    }
}

impl<T: Clone + Send + 'static> Cached<T> {
    /// The value for one attribute or text.
    pub fn live(self) -> Live<T> {
        Box::new(move || self.get())
    }
}

/// Makes such a value.
pub fn memo<T: PartialEq + Send + Sync + 'static>(
    compute: impl Fn() -> T + Send + Sync + 'static,
) -> Cached<T> {
    fn shared(compute: Box<dyn Fn() -> Arc<dyn Same> + Send + Sync>) -> Memo<Boxed> {
        Memo::new(move |_| Boxed(compute()))
    }
    Cached { memo: shared(Box::new(move || Arc::new(compute()))), of: PhantomData }
}

/// A value for one attribute or text, computed whenever what it reads changes.
pub type Live<T> = Box<dyn FnMut() -> T + Send>;

/// Makes such a value.
pub fn live<T>(compute: impl Fn() -> T + Send + 'static) -> Live<T> {
    Box::new(compute)
}

/// A value computed wherever it is read; for what is handed to a part.
pub fn derived<T: Send + Sync + 'static>(
    compute: impl Fn() -> T + Send + Sync + 'static,
) -> Signal<T> {
    Signal::derive(compute)
}

/// An effect.
pub fn effect(run: impl Fn() + 'static) {
    fn shared(run: Box<dyn Fn()>) {
        Effect::new(move |_| run());
    }
    shared(Box::new(run));
}

/// Makes a part of a view that is made anew when what it reads changes.
pub fn dynamic<V: IntoView + 'static>(make: impl Fn() -> V + Send + 'static) -> Live<AnyView> {
    Box::new(move || make().into_any())
}

/// A list of rows by key, of which only what changed is touched.
pub fn keyed<V: IntoView + 'static>(
    keys: Cached<Vec<String>>,
    row: impl Fn(String) -> V + Send + Sync + 'static,
) -> AnyView {
    type Row = Arc<dyn Fn(String) -> AnyView + Send + Sync>;
    fn shared(keys: Cached<Vec<String>>, row: Row) -> AnyView {
        view! { <For each=move || keys.get() key=String::clone children=move |key| row(key) /> }
            .into_any()
    }
    shared(keys, Arc::new(move |key| row(key).into_any()))
}
