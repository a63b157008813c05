//! Long lists: only the rows near the visible part exist; the rest is space of the right height.

use crate::dom::prelude::*;
use crate::model::window::{ALL_UP_TO, range};
use crate::parts::reactive::{Cached, keyed, live, memo};
use leptos::ev;
use leptos::html;

/// The keys of the whole list, for rows that say where they stand in it.
#[derive(Clone, Copy)]
pub struct Listed(pub Cached<Vec<String>>);

/// A list of which only the rows near the visible part of the page exist.
#[component]
pub fn Windowed(
    /// Keys of the rows, in order.
    items: Cached<Vec<String>>,
    /// Height of every row with its gap, pixels.
    #[prop(into)]
    row_px: Signal<usize>,
    /// Makes a row from its key.
    #[prop(into)]
    row: Callback<String, AnyView>,
    /// Classes.
    #[prop(into)]
    class: String,
    /// Name of the list.
    label: &'static str,
) -> impl IntoView {
    let node = NodeRef::<html::Ul>::new();
    let scrolled = RwSignal::new(0u32);
    let bump = move || scrolled.update(|n| *n = n.wrapping_add(1));
    let on_scroll = window_event_listener(ev::scroll, move |_| bump());
    let on_resize = window_event_listener(ev::resize, move |_| bump());
    on_cleanup(move || {
        on_scroll.remove();
        on_resize.remove();
    });
    let shown = memo(move || {
        scrolled.track();
        let total = items.with(Vec::len);
        if total <= ALL_UP_TO {
            return (0, total); // nothing to measure
        }
        #[expect(clippy::cast_possible_truncation, reason = "pixels of a page")]
        let top = node.get().map_or(0, |list| list.get_bounding_client_rect().top() as i32);
        let height = document().document_element().map_or(0, |root| root.client_height());
        range(total, row_px.get(), top, height)
    });
    let keys = memo(move || {
        let (first, count) = shown.get();
        items.with(|items| items.iter().skip(first).take(count).cloned().collect::<Vec<_>>())
    });
    let space = move |rows: usize| format!("{}px", rows * row_px.get());
    let above = live(move || space(shown.get().0));
    let below = live(move || {
        let (first, count) = shown.get();
        space(items.with(Vec::len).saturating_sub(first + count))
    });
    provide_context(Listed(items));
    view! {
        <ul node_ref=node class=class aria-label=label style:padding-top=above style:padding-bottom=below>
            {keyed(keys, move |key| row.run(key))}
        </ul>
    }
}
