//! Reactive values behind boxes. Every closure and every type of value is a type of its own to
//! the framework, which is compiled once per type: boxed, the whole page shares one copy. This is
//! what keeps the module small; the price is an allocation per binding.

pub use crate::dom::keyed;
use crate::dom::{AnyView, IntoView};
use leptos::prelude::{
    Effect, Get, GetUntracked, GetValue, Memo, RwSignal, Set, Signal, StoredValue, Track, untrack,
};
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

/// A value that is written from outside; for every type whose signal would be one more copy.
pub struct Held<T> {
    signal: RwSignal<Arc<dyn Any + Send + Sync>>,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for Held<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Held<T> {}

impl<T: Clone + Send + Sync + 'static> Held<T> {
    /// Holds this.
    pub fn new(value: T) -> Self {
        fn shared(value: Arc<dyn Any + Send + Sync>) -> RwSignal<Arc<dyn Any + Send + Sync>> {
            RwSignal::new(value)
        }
        Self { signal: shared(Arc::new(value)), of: PhantomData }
    }

    // The constructor and the setters are the only writers, and they write a T.
    #[expect(clippy::expect_used, reason = "only this type writes it, with this very type")]
    fn typed(value: &(dyn Any + Send + Sync)) -> &T {
        value.downcast_ref::<T>().expect("what is held has its type")
    }

    /// The value. Tracked.
    pub fn get(self) -> T {
        self.with(T::clone)
    }

    /// The value, without tracking.
    pub fn get_untracked(self) -> T {
        self.with_untracked(T::clone)
    }

    /// Looks at the value. Tracked.
    pub fn with<R>(self, look: impl FnOnce(&T) -> R) -> R {
        look(Self::typed(&*self.signal.get()))
    }

    /// Looks at the value, without tracking.
    pub fn with_untracked<R>(self, look: impl FnOnce(&T) -> R) -> R {
        look(Self::typed(&*self.signal.get_untracked()))
    }

    /// The same; `None` when whoever held it is gone.
    pub fn try_with_untracked<R>(self, look: impl FnOnce(&T) -> R) -> Option<R> {
        Some(look(Self::typed(&*self.signal.try_get_untracked()?)))
    }

    /// Reads it without looking, so that a change is noticed.
    pub fn track(self) {
        self.signal.track();
    }

    /// Another value. Nothing happens when whoever held it is gone.
    pub fn set(self, value: T) {
        fn shared(signal: RwSignal<Arc<dyn Any + Send + Sync>>, value: Arc<dyn Any + Send + Sync>) {
            let _ = signal.try_set(value); // gone with its owner: nobody looks any more
        }
        shared(self.signal, Arc::new(value));
    }

    /// Changes the value.
    pub fn update(self, change: impl FnOnce(&mut T)) {
        let _: Option<()> = self.try_update(change);
    }

    /// Changes the value; `None` when whoever held it is gone.
    pub fn try_update<R>(self, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut value = Self::typed(&*self.signal.try_get_untracked()?).clone();
        let told = change(&mut value);
        self.set(value);
        Some(told)
    }
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

/// Tells whether the owner of now is still there.
pub fn owned() -> impl Fn() -> bool + Copy {
    let here = StoredValue::new(());
    move || here.try_get_value().is_some()
}

/// An effect. It does not run once its owner is gone: the framework runs the first time of each
/// all the same, and what it reads would not be there any more.
pub fn effect(run: impl Fn() + 'static) {
    fn shared(run: Box<dyn Fn()>) {
        let is_owned = owned();
        Effect::new(move |_| {
            if is_owned() {
                run();
            }
        });
    }
    shared(Box::new(run));
}

/// Makes a part of a view that is made anew when what it reads changes.
pub fn dynamic<V: IntoView>(make: impl Fn() -> V + 'static) -> AnyView {
    AnyView::dynamic(Box::new(move || make().into_view()))
}
