//! Icons and status glyphs.
//!
//! They are references into one sprite and have the colour of the text around them.

use crate::browser;
use crate::model::status::Glyph;
use leptos::prelude::*;

fn sprite(symbol: &str) -> String {
    format!("{}#{symbol}", browser::sprite())
}

/// An icon, decorative: the words beside it say the same.
pub fn icon(symbol: &'static str, size: u8) -> impl IntoView {
    let class = match size {
        14 => "icon icon-14",
        16 => "icon icon-16",
        24 => "icon icon-24",
        _ => "icon",
    };
    view! { <svg class=class aria-hidden="true"><use href=sprite(symbol)></use></svg> }
}

/// A status glyph, decorative: its word stands beside it.
pub fn glyph(of: Glyph) -> impl IntoView {
    let class = if of == Glyph::Arc { "glyph turns" } else { "glyph" };
    symbol(of.symbol(), class)
}

/// Any symbol with a class of its own.
pub fn symbol(symbol: &'static str, class: &'static str) -> impl IntoView {
    view! { <svg class=class aria-hidden="true"><use href=sprite(symbol)></use></svg> }
}
