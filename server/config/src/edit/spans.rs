//! Where the parts of a YAML text stand.
//!
//! Only for texts that [`crate::tree`] has read: what it refuses is not looked at again here.

use granit_parser::{Event, Parser, ScalarStyle};
use std::ops::Range;

/// One value and its place in the text.
#[derive(Debug)]
pub(super) struct Node {
    /// Bytes of the value, without its anchor and tag.
    /// Of a block collection: from its first key or dash to the end of its last value.
    pub span: Range<usize>,
    pub body: Body,
}

/// The shape of a value.
#[derive(Debug)]
pub(super) enum Body {
    /// Nothing is written: a null.
    Nothing,
    Scalar {
        text: String,
        style: Style,
    },
    Alias,
    List {
        is_flow: bool,
        items: Vec<Node>,
    },
    Map {
        is_flow: bool,
        entries: Vec<Entry>,
    },
}

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Single,
    Double,
    /// Over several lines, after `|` or `>`.
    Block,
}

/// One key with its value.
#[derive(Debug)]
pub(super) struct Entry {
    pub key: String,
    /// Bytes of the key.
    pub name: Range<usize>,
    pub value: Node,
}

/// A collection that is still being read.
struct Open {
    start: usize,
    is_flow: bool,
    content: Content,
}

enum Content {
    Items(Vec<Node>),
    Entries { done: Vec<Entry>, key: Option<(String, Range<usize>)> },
}

/// The root of the document; none where it is empty.
///
/// # Errors
/// The text is not YAML, or the parser does not say where something stands.
pub(super) fn read(text: &str) -> Result<Option<Node>, Unclear> {
    let mut stack: Vec<Open> = Vec::new();
    let mut root = None;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|_| Unclear)?;
        let span = span.byte_range().ok_or(Unclear)?;
        let node = match event {
            Event::Scalar(value, style, ..) => {
                let style = match style {
                    ScalarStyle::Plain => Style::Plain,
                    ScalarStyle::SingleQuoted => Style::Single,
                    ScalarStyle::DoubleQuoted => Style::Double,
                    _ => Style::Block,
                };
                let body = match (value.is_empty(), style) {
                    (true, Style::Plain) => Body::Nothing,
                    _ => Body::Scalar { text: value.into_owned(), style },
                };
                Node { span, body }
            }
            Event::Alias(_) => Node { span, body: Body::Alias },
            Event::SequenceStart(..) => {
                let is_flow = text.as_bytes().get(span.start) == Some(&b'[');
                stack.push(Open {
                    start: span.start,
                    is_flow,
                    content: Content::Items(Vec::new()),
                });
                continue;
            }
            Event::MappingStart(..) => {
                let is_flow = text.as_bytes().get(span.start) == Some(&b'{');
                let content = Content::Entries { done: Vec::new(), key: None };
                stack.push(Open { start: span.start, is_flow, content });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => stack.pop().ok_or(Unclear)?.close(span.end),
            _ => continue,
        };
        match stack.last_mut() {
            None => root = Some(node),
            Some(open) => open.take(node, text)?,
        }
    }
    Ok(root)
}

/// The text cannot be taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unclear;

impl Open {
    fn take(&mut self, node: Node, text: &str) -> Result<(), Unclear> {
        match &mut self.content {
            Content::Items(items) => items.push(node),
            Content::Entries { done, key } => match key.take() {
                None => {
                    let name = match node.body {
                        Body::Scalar { text, .. } => text,
                        // A key that is an alias or nothing is no key that is looked for.
                        Body::Nothing | Body::Alias => String::new(),
                        Body::List { .. } | Body::Map { .. } => return Err(Unclear),
                    };
                    *key = Some((name, node.span));
                }
                Some((key, name)) => {
                    let mut value = node;
                    if matches!(value.body, Body::Nothing) {
                        // Where nothing is written, the parser names the place of what follows.
                        let end = after_colon(text, name.end);
                        value.span = end..end;
                    }
                    done.push(Entry { key, name, value });
                }
            },
        }
        Ok(())
    }

    fn close(self, end: usize) -> Node {
        let Self { start, is_flow, content } = self;
        let last = match &content {
            Content::Items(items) => items.last().map(|item| item.span.end),
            Content::Entries { done, .. } => done.last().map(|entry| entry.value.span.end),
        };
        let end = if is_flow { end } else { last.unwrap_or(end) };
        let body = match content {
            Content::Items(items) => Body::List { is_flow, items },
            Content::Entries { done, .. } => Body::Map { is_flow, entries: done },
        };
        Node { span: start..end, body }
    }
}

/// The place after the colon of a key that ends at `from`.
/// It is `from` where no colon follows.
fn after_colon(text: &str, from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    if rest.as_bytes().get(blanks) == Some(&b':') { from + blanks + 1 } else { from }
}
