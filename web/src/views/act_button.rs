//! The button that changes something on the server.

use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::{icon, symbol as sprite};
use crate::reactive::{derived, dynamic, live};
use crate::text::page::link;
use leptos::prelude::*;

/// A button that changes something on the server.
///
/// It never acts twice and never stays silent: while offline, or with a `reason`, it stays
/// focusable, says why it cannot act, and does nothing. The reason stands to its left.
#[component]
pub fn ActButton(
    /// Visible text.
    label: &'static str,
    /// Name for people who do not see the row; begins with the label.
    #[prop(into)]
    name: Signal<String>,
    /// What it does.
    on_act: Callback<()>,
    /// Weight.
    #[prop(optional)]
    look: ButtonStyle,
    /// Icon before the text.
    #[prop(default = None)]
    symbol: Option<&'static str>,
    /// Why it cannot act now.
    #[prop(optional, into)]
    reason: Signal<Option<String>>,
    /// A request of it is on its way.
    #[prop(optional, into)]
    is_pending: Signal<bool>,
    /// For tests and automation.
    testid: &'static str,
    /// Further classes.
    #[prop(optional)]
    class: &'static str,
) -> impl IntoView {
    let page = page();
    let refusal = move || {
        if page.live.is_offline.get() { Some(link::OFFLINE.to_owned()) } else { reason.get() }
    };
    let act = move |_| {
        if is_pending.get_untracked() {
            return;
        }
        match untrack(refusal) {
            Some(why) => page.say.politely(&format!("{label}: {why}")),
            None => on_act.run(()),
        }
    };
    // One reason per section while offline: the heading has it.
    let shown = move || reason.get().filter(|_| !page.live.is_offline.get());
    let named = derived(move || match refusal() {
        Some(why) => format!("{}: {why}", name.get()),
        None => name.get(),
    });
    view! {
        {dynamic(move || shown().map(|why| view! { <span class=format!("reason {class}")>{why}</span> }))}
        <button
            type="button"
            class=format!("{} {class}", look.class())
            aria-label=named
            aria-disabled=live(move || (is_pending.get() || refusal().is_some()).then_some("true"))
            aria-busy=live(move || is_pending.get().then_some("true"))
            data-testid=testid
            on:click=act
        >
            {dynamic(move || {
                if is_pending.get() {
                    Some(sprite("g-arc", "icon icon-14 turns").into_any())
                } else {
                    symbol.map(|symbol| icon(symbol, 16).into_any())
                }
            })}
            {label}
        </button>
    }
}
