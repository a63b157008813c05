//! Short forms for values that follow signals.
//!
//! Each boxes its closure, so that the framework is compiled once per type of result instead of
//! once per closure.

use leptos::prelude::{AnyView, Effect, GetValue, IntoAny, IntoView, Memo, Signal, StoredValue};

/// A value for one attribute or text.
///
/// It is computed again whenever a signal that it reads changes.
pub type Live<T> = Box<dyn FnMut() -> T + Send>;

/// Makes a value for one attribute or text.
pub fn live<T>(compute: impl Fn() -> T + Send + 'static) -> Live<T> {
    Box::new(compute)
}

/// Makes a value that is computed once per change.
///
/// Its readers run again only when the value differs.
pub fn memo<T: PartialEq + Send + Sync + 'static>(
    compute: impl Fn() -> T + Send + Sync + 'static,
) -> Memo<T> {
    fn boxed<T: PartialEq + Send + Sync + 'static>(
        compute: Box<dyn Fn() -> T + Send + Sync>,
    ) -> Memo<T> {
        Memo::new(move |_| compute())
    }
    boxed(Box::new(compute))
}

/// Makes a value that is computed wherever it is read, to be handed to a component.
pub fn derived<T: Send + Sync + 'static>(
    compute: impl Fn() -> T + Send + Sync + 'static,
) -> Signal<T> {
    Signal::derive(compute)
}

/// Makes a part of a view that is built again when a signal that it reads changes.
pub fn dynamic<V: IntoView>(build: impl Fn() -> V + Send + 'static) -> AnyView {
    let build: Box<dyn FnMut() -> AnyView + Send> = Box::new(move || build().into_any());
    build.into_any()
}

/// Runs an effect, but not once its owner is gone.
///
/// The framework queues the first run of each effect: it would happen after the owner and its
/// signals are disposed of when the owner goes at once, and reading them would panic.
pub fn effect(run: impl Fn() + 'static) {
    fn boxed(run: Box<dyn Fn()>) {
        let owner = StoredValue::new(());
        Effect::new(move |_| {
            if owner.try_get_value().is_some() {
                run();
            }
        });
    }
    boxed(Box::new(run));
}
