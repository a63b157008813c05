//! Long lists: only the rows near the visible part exist; the rest is space of the right height.

use leptos::ev;
use leptos::html;
use leptos::prelude::*;

/// Up to this many rows, all of them exist.
const ALL_UP_TO: usize = 60;
/// Rows kept above and below the visible part.
const OVERSCAN: usize = 8;

/// First row and number of rows to show, of `total` rows of height `row`, when the list begins
/// at `top` of a viewport of height `height` (all in pixels).
fn range(total: usize, row: f64, top: f64, height: f64) -> (usize, usize) {
    if total <= ALL_UP_TO || row <= 0.0 {
        return (0, total);
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to a small positive number of rows"
    )]
    let rows = |px: f64| (px / row).clamp(0.0, 1e7) as usize;
    let first = rows(-top).saturating_sub(OVERSCAN).min(total);
    let count = rows(height) + 2 + 2 * OVERSCAN;
    (first, count.min(total - first))
}

/// A list of which only the rows near the visible part of the page exist.
#[component]
pub fn Windowed<V: IntoView + 'static>(
    /// Keys of the rows, in order.
    items: Memo<Vec<String>>,
    /// Height of every row with its gap, pixels.
    #[prop(into)]
    row_px: Signal<f64>,
    /// Makes a row from its key and position.
    row: fn(String, ReadSignal<usize>) -> V,
    /// Classes.
    class: &'static str,
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
    let shown = Memo::new(move |_| {
        scrolled.track();
        let total = items.with(Vec::len);
        let top = node.get().map_or(0.0, |list| list.get_bounding_client_rect().top());
        let height = window().inner_height().ok().and_then(|h| h.as_f64());
        range(total, row_px.get(), top, height.unwrap_or(900.0))
    });
    let keys = Memo::new(move |_| {
        let (first, count) = shown.get();
        items.with(|items| items.iter().skip(first).take(count).cloned().collect::<Vec<_>>())
    });
    #[expect(clippy::cast_precision_loss, reason = "numbers of rows are small")]
    let space = move |rows: usize| format!("{}px", rows as f64 * row_px.get());
    let above = move || space(shown.get().0);
    let below = move || {
        let (first, count) = shown.get();
        space(items.with(Vec::len).saturating_sub(first + count))
    };
    view! {
        <ul node_ref=node class=class aria-label=label style:padding-top=above style:padding-bottom=below>
            <ForEnumerate
                each=move || keys.get()
                key=|key| key.clone()
                children=move |at, key| row(key, at)
            />
        </ul>
    }
}
