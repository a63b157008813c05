//! The lines: in chunks, of which only those near the visible part have elements.

use crate::model::find::Needle;
use crate::model::log::{Entry, Weight, parts};
use crate::model::shown::shown;
use crate::model::time;
use crate::parts::visible::VisibleWatch;
use crate::prefs;
use crate::reactive::{derived, dynamic, effect, memo};
use crate::text::log as words;
use crate::views::log::Reader;
use leptos::html;
use leptos::prelude::*;
use std::sync::Arc;
use svc_shared::Timestamp;
use svc_shared::stream::MarkKind;

/// How far outside the visible part chunks still have elements.
const MARGIN: &str = "1200px 0px";
/// Chunks at the end that have elements from the beginning: more than a screen.
const AT_END: i64 = 2;
/// A bracket that is longer than this is text, bytes.
const LONGEST_SOURCE: usize = 32;
/// Height of a line that is not broken, pixels.
const LINE_PX: usize = 24;

/// A run of lines; space of the same height while it is far away.
#[component]
pub fn ChunkView(
    /// The panel.
    reader: Reader,
    /// Chunk id.
    id: i64,
) -> impl IntoView {
    let Some(rows) = reader.feed.rows(id) else {
        return ().into_any();
    };
    let node = NodeRef::<html::Div>::new();
    // A burst makes many chunks that nobody sees before they are out of view again. Those put in
    // front are measured at once: the reader must not be moved by a guess.
    let last = reader.feed.chunks.with_untracked(|ids| ids.last().copied().unwrap_or(id));
    let is_near = RwSignal::new(id < 0 || last - id < AT_END);
    let height = RwSignal::new(rows.with_untracked(|rows| rows.len()) * LINE_PX);
    let exists = memo(move || is_near.get() || reader.hit().is_some_and(|(chunk, _)| chunk == id));
    let watch = StoredValue::new_local(None::<VisibleWatch>);
    effect(move || {
        let (Some(chunk), Some(lines)) = (node.get(), reader.lines.get()) else {
            return;
        };
        let measured = chunk.clone();
        let made = VisibleWatch::new(Some(lines.as_ref()), MARGIN, move |_, near| {
            if near == is_near.get_untracked() {
                return;
            }
            if near {
                reader.keep_place();
            } else {
                height.set(usize::try_from(measured.offset_height()).unwrap_or(0));
            }
            is_near.set(near);
        });
        if let Some(made) = made {
            made.observe(&chunk);
            watch.set_value(Some(made));
        }
    });
    let space = derived(move || (!exists.get()).then(|| format!("{}px", height.get())));
    let counts_from = derived(move || {
        reader.numbers.get().then(|| {
            reader.feed.chunks.track();
            format!("line {}", reader.feed.with(|log| log.lines_above(id)))
        })
    });
    let count = {
        let rows = rows.clone();
        memo(move || if exists.get() { rows.with(|rows| rows.len()) } else { 0 })
    };
    let line = move |at: usize| {
        let row = rows.with_untracked(|rows| rows.get(at).cloned());
        row.map(|row| view_row(reader, id, at, row))
    };
    view! {
           <div node_ref=node data-chunk=id.to_string() style:height=space style:counter-reset=counts_from>
               <For each=move || 0..count.get() key=|at| *at children=line />
           </div>
       }
    .into_any()
}

fn view_row(reader: Reader, chunk: i64, at: usize, row: Entry) -> AnyView {
    match row {
        Entry::Line { text, is_output, .. } => {
            view! { <Line reader=reader chunk=chunk at=at text=text is_output=is_output /> }
                .into_any()
        }
        Entry::Mark { kind, generation, at } => view_mark(kind, generation, at),
    }
}

fn view_mark(kind: MarkKind, generation: u32, at: Option<i64>) -> AnyView {
    let (text, tone, name) = match kind {
        MarkKind::Resumed => (words::resumed(generation), "tone-ok", "resumed"),
        MarkKind::Rotated => (words::ROTATED.to_owned(), "", "rotated"),
        MarkKind::Gap => (words::GAP.to_owned(), "tone-warn", "gap"),
        MarkKind::Ended => (words::ENDED.to_owned(), "", "ended"),
    };
    let at = at.map(|at| time::clock(Timestamp::from_millis(at), prefs::zone(at)));
    view! {
        <div class=format!("log-mark {tone}") role="separator" data-testid="log-mark" data-mark=name>
            <b>{text}</b> {at.map(|at| view! { <span class="num">{at}</span> })}
        </div>
    }
    .into_any()
}

#[component]
fn Line(
    reader: Reader,
    chunk: i64,
    at: usize,
    text: Arc<str>,
    /// Printed by the process, and not from its log.
    is_output: bool,
) -> impl IntoView {
    let text = shown(&text).into_owned();
    let weight = match parts(&text).weight {
        Weight::Plain => "log-line",
        Weight::Warn => "log-line warn",
        Weight::Error => "log-line error",
    };
    let is_hit = memo(move || reader.hit() == Some((chunk, at)));
    let body = dynamic(move || {
        let parts = parts(&text);
        reader.needle.with(|needle| {
            let piece = |class: &'static str, text: &str| {
                (!text.is_empty())
                    .then(|| view! { <span class=class>{marked(needle, text)}</span> })
            };
            let level = parts.level.trim().trim_matches(['[', ']', ':']);
            let (source, rest) = sourced(parts.rest);
            (
                stamp(parts.stamp),
                piece("level", level),
                piece("source", source),
                marked(needle, rest),
            )
        })
    });
    view! {
        <div class=weight class:hit=is_hit data-testid="log-line" data-source=is_output.then_some("output")>
            {is_output.then(|| view! { <span class="level">{words::OUTPUT} " "</span> })} {body}
        </div>
    }
}

/// Which part of the agent a line is from: a word in brackets before its text.
fn sourced(text: &str) -> (&str, &str) {
    let end = text.find("] ").filter(|end| text.starts_with('[') && *end < LONGEST_SOURCE);
    end.map_or(("", text), |end| text.split_at(end + 2))
}

/// The time of a line by the clock that the page shows everywhere.
///
/// The service writes days and UTC; both are under the pointer.
fn stamp(written: &str) -> Option<AnyView> {
    let written = written.trim();
    let text = written
        .parse::<Timestamp>()
        .map_or_else(|_| written.to_owned(), |at| time::clock(at, prefs::zone(at.as_millis())));
    let title = written.to_owned();
    (!written.is_empty())
        .then(|| view! { <span class="stamp" title=title>{text}</span> }.into_any())
}

fn marked(needle: &Needle, text: &str) -> AnyView {
    if needle.is_empty() {
        return text.to_owned().into_any();
    }
    needle
        .split(text)
        .into_iter()
        .map(|(piece, hit)| {
            let piece = piece.to_owned();
            if hit { view! { <mark>{piece}</mark> }.into_any() } else { piece.into_any() }
        })
        .collect_view()
        .into_any()
}
