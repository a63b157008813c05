//! Processor time and memory in a row, with the curve of the last minutes.

use crate::model::usage::{self, Curve, HATCH_FROM, WIDTH};
use crate::page::page;
use crate::reactive::{dynamic, memo};
use crate::text::usage as words;
use leptos::prelude::*;
use std::sync::Arc;

/// Strokes over the place of what is not known.
const HATCH: &str = "M800 240L840 20M850 240L890 20M900 240L940 20";

/// What a bridge uses, kept up to date; `None` while nothing was measured.
pub fn used(id: String) -> Memo<Option<Arc<Curve>>> {
    let page = page();
    page.live.measures();
    memo(move || page.store.curves.with(|curves| curves.get(&id).cloned()))
}

/// The curve with its figures.
pub fn curve(of: Memo<Option<Arc<Curve>>>) -> AnyView {
    let page = page();
    let draw = move |curve: Arc<Curve>| {
        let is_stale = page.live.is_offline.get();
        let drawn = curve.draw(if is_stale { HATCH_FROM } else { WIDTH });
        let says = curve.words();
        let title = says.clone();
        let end = if is_stale {
            view! { <path class="spark-hatch" d=HATCH></path> }.into_any()
        } else {
            let (x, y) = drawn.end;
            view! { <path class="spark-end" d=format!("M{x} {y}h0")></path> }.into_any()
        };
        view! {
            <span class="used" data-testid="used" title=title>
                <svg class="spark" viewBox="0 0 960 240" role="img" aria-label=says>
                    <path class="spark-area" d=drawn.area></path>
                    <path class="spark-line" d=drawn.line></path>
                    {end}
                </svg>
                <span class="used-now num" aria-hidden="true">
                    <span>{usage::percent(curve.now.cpu)}</span>
                    <span>{usage::memory(curve.now.memory)}</span>
                </span>
            </span>
        }
    };
    dynamic(move || of.get().map(draw)).into_any()
}

/// Processor time and memory as words, where the curve has no room.
pub fn figure(of: Memo<Option<Arc<Curve>>>) -> AnyView {
    let text = memo(move || {
        of.with(|of| {
            let now = &of.as_ref()?.now;
            let cpu = words::cpu(&usage::percent(now.cpu));
            Some(format!("{cpu}, {}", usage::memory(now.memory)))
        })
    });
    dynamic(move || {
        text.get().map(|text| view! { <span class="fact only-narrow num">{text}</span> })
    })
    .into_any()
}
