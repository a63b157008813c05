//! Draws Markdown as elements.
//!
//! Texts become text nodes and nothing else: there is no way from here to raw HTML.

use crate::model::markdown::{Kind, Node, beginning, tree};
use crate::model::shown::shown;
use crate::reactive::dynamic;
use crate::text::conversation as words;
use leptos::prelude::*;

/// A text in Markdown; a long one is unfolded on demand.
#[component]
pub fn Prose(
    /// The text.
    text: String,
) -> impl IntoView {
    unfolding(
        text,
        |shown| nodes(tree(shown)),
        |inside| view! { <div class="prose">{inside}</div> }.into_any(),
    )
}

/// A text as it is, in the type of a program; a long one is unfolded on demand.
#[component]
pub fn Plain(
    /// The text.
    text: String,
) -> impl IntoView {
    unfolding(
        text,
        |shown| shown.to_owned().into_any(),
        |inside| view! { <pre class="plain-text">{inside}</pre> }.into_any(),
    )
}

/// A sentence, with what stands between backticks in the type of a program.
pub fn sentence(text: &str) -> Vec<AnyView> {
    let parts = text.split('`').enumerate();
    parts
        .map(|(at, part)| {
            let text = shown(part).into_owned();
            match at % 2 {
                0 => view! { <bdi>{text}</bdi> }.into_any(),
                _ => view! { <code>{text}</code> }.into_any(),
            }
        })
        .collect()
}

/// The beginning of a text within `around`.
///
/// With a button that shows the rest where there is one.
fn unfolding(text: String, draw: fn(&str) -> AnyView, around: fn(AnyView) -> AnyView) -> AnyView {
    let is_whole = RwSignal::new(false);
    let has_more = beginning(&text).1;
    let inside = dynamic(move || draw(if is_whole.get() { &text } else { beginning(&text).0 }));
    let more = dynamic(move || {
        (has_more && !is_whole.get()).then(|| {
            view! {
                <button type="button" class="btn btn-ghost" data-testid="show-more" on:click=move |_| is_whole.set(true)>
                    {words::SHOW_MORE}
                </button>
            }
        })
    });
    view! { {around(inside)} {more} }.into_any()
}

fn nodes(all: Vec<Node>) -> AnyView {
    all.into_iter().map(node).collect_view().into_any()
}

fn node(one: Node) -> AnyView {
    match one {
        Node::Text(text) => text.into_any(),
        Node::Code(text) => view! { <code>{text}</code> }.into_any(),
        Node::Break => view! { <br /> }.into_any(),
        Node::Rule => view! { <hr /> }.into_any(),
        Node::Block(text) => view! { <pre class="plain-text">{text}</pre> }.into_any(),
        Node::Around(kind, inside) => around(kind, nodes(inside)),
    }
}

fn around(kind: Kind, inside: AnyView) -> AnyView {
    match kind {
        Kind::Paragraph => view! { <p>{inside}</p> }.into_any(),
        // The page has its own headings.
        Kind::Heading => view! { <p class="prose-heading">{inside}</p> }.into_any(),
        Kind::Quote => view! { <blockquote>{inside}</blockquote> }.into_any(),
        Kind::List(None) => view! { <ul>{inside}</ul> }.into_any(),
        Kind::List(Some(first)) => view! { <ol start=first.to_string()>{inside}</ol> }.into_any(),
        Kind::Item => view! { <li>{inside}</li> }.into_any(),
        Kind::Strong => view! { <strong>{inside}</strong> }.into_any(),
        Kind::Emphasis => view! { <em>{inside}</em> }.into_any(),
        Kind::Link(to) => {
            view! { <a href=to target="_blank" rel="noopener noreferrer">{inside}</a> }.into_any()
        }
        Kind::Table => {
            view! { <div class="prose-table"><table><tbody>{inside}</tbody></table></div> }
                .into_any()
        }
        Kind::Row => view! { <tr>{inside}</tr> }.into_any(),
        Kind::Cell => view! { <td>{inside}</td> }.into_any(),
        Kind::Plain => inside,
    }
}
