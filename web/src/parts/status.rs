//! How something stands, as a pill: shape and word in its colour.

use crate::model::status::Face;
use crate::parts::icon::glyph;
use leptos::prelude::*;

/// The pill.
pub fn pill(face: &Face) -> AnyView {
    view! {
        <span class=format!("pill {}", face.tone.class()) data-testid="status-word">
            {glyph(face.glyph)} {face.word.clone()}
        </span>
    }
    .into_any()
}
