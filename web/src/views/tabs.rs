//! Tabs whose choice stands in the address.

use crate::browser;
use crate::nav::nav;
use crate::parts::icon::icon;
use crate::reactive::{live, memo};
use leptos::prelude::*;

/// Query member that names the tab.
pub const TAB: &str = "tab";

/// One tab.
#[derive(Debug, Clone, Copy)]
pub struct Tab {
    /// Value in the address; empty for the first.
    pub value: &'static str,
    /// Id of the element.
    pub id: &'static str,
    /// Icon.
    pub symbol: &'static str,
    /// Visible text.
    pub label: &'static str,
}

/// The chosen one; an unknown value means the first.
pub fn chosen(tabs: &'static [Tab]) -> Memo<usize> {
    let nav = nav();
    memo(move || {
        let value = nav.member(TAB);
        tabs.iter().position(|tab| tab.value == value).unwrap_or(0)
    })
}

/// The row of tabs.
#[component]
pub fn Tabs(
    /// All of them.
    tabs: &'static [Tab],
    /// The chosen one.
    at: Memo<usize>,
    /// Name of the row.
    label: &'static str,
) -> impl IntoView {
    let nav = nav();
    let choose = move |to: usize| {
        nav.set_query(&[(TAB, tabs.get(to).map_or("", |tab| tab.value))], true);
    };
    let keys = move |event: web_sys::KeyboardEvent| {
        let at = at.get_untracked();
        let to = match event.key().as_str() {
            "ArrowLeft" => at.checked_sub(1).unwrap_or(tabs.len() - 1),
            "ArrowRight" if at + 1 == tabs.len() => 0,
            "ArrowRight" => at + 1,
            _ => return,
        };
        event.prevent_default();
        choose(to);
        browser::after_paint(|| {
            browser::focus("[role=tab][aria-selected=true]");
        });
    };
    let buttons = tabs
        .iter()
        .enumerate()
        .map(|(own, tab)| {
            let is_on = move || at.get() == own;
            view! {
                <button
                    type="button"
                    role="tab"
                    class="tab"
                    id=tab.id
                    aria-controls="panel"
                    aria-selected=live(move || is_on().to_string())
                    tabindex=live(move || if is_on() { "0" } else { "-1" })
                    data-testid=tab.id
                    on:click=move |_| choose(own)
                >
                    {icon(tab.symbol, 16)} {tab.label}
                </button>
            }
        })
        .collect_view();
    view! { <div class="tabs" role="tablist" aria-label=label on:keydown=keys>{buttons}</div> }
}
