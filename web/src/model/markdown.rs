//! Markdown as a tree of safe elements (H71).
//!
//! No raw HTML, no image, links only to the web.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Deeper parts are shown at this depth.
const DEEPEST: usize = 32;

/// Characters of a text that are shown until more is asked for.
pub const SHOWN: usize = 8_000;

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// Words.
    Text(String),
    /// Words in the type of a program.
    Code(String),
    /// A line ends.
    Break,
    /// A line across.
    Rule,
    /// A program.
    Block(String),
    /// Something around other parts.
    Around(Kind, Vec<Node>),
}

/// What stands around parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A paragraph.
    Paragraph,
    /// A heading.
    Heading,
    /// A quotation.
    Quote,
    /// A list, with its first number.
    List(Option<u64>),
    /// One item of it.
    Item,
    /// Weighty.
    Strong,
    /// Stressed.
    Emphasis,
    /// A link to an address that was checked.
    Link(String),
    /// A table.
    Table,
    /// A row of it.
    Row,
    /// A cell of a row.
    Cell,
    /// Nothing that is shown.
    Plain,
}

/// An address that a link may lead to; `None` for any other.
#[must_use]
pub fn address(raw: &str) -> Option<String> {
    let is_plain = raw.chars().all(|c| !c.is_whitespace() && !c.is_control());
    let lower = raw.to_ascii_lowercase();
    let fits = ["https://", "http://", "mailto:"].iter().any(|begin| lower.starts_with(begin));
    (is_plain && fits).then(|| raw.to_owned())
}

/// Reads a text.
#[must_use]
pub fn tree(text: &str) -> Vec<Node> {
    let mut open: Vec<(Kind, Vec<Node>)> = vec![(Kind::Plain, Vec::new())];
    // Elements that are too deep are not opened; their ends are passed over.
    let mut too_deep = 0_usize;
    let mut code: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => code = Some(String::new()),
            Event::End(TagEnd::CodeBlock) => {
                if let Some(text) = code.take() {
                    put(&mut open, Node::Block(text.trim_end_matches('\n').to_owned()));
                }
            }
            Event::Start(_) if open.len() > DEEPEST => too_deep += 1,
            Event::Start(tag) => open.push((kind(tag), Vec::new())),
            Event::End(_) if too_deep > 0 => too_deep -= 1,
            Event::End(_) => close(&mut open),
            Event::Text(text) => match &mut code {
                Some(code) => code.push_str(&text),
                None => put(&mut open, Node::Text(text.into_string())),
            },
            Event::Code(text) => put(&mut open, Node::Code(text.into_string())),
            // Shown as it was written.
            Event::Html(text) | Event::InlineHtml(text) => {
                put(&mut open, Node::Text(text.into_string()));
            }
            Event::SoftBreak => put(&mut open, Node::Text("\n".to_owned())),
            Event::HardBreak => put(&mut open, Node::Break),
            Event::Rule => put(&mut open, Node::Rule),
            // Of extensions that are not switched on.
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                put(&mut open, Node::Text(text.into_string()));
            }
            Event::TaskListMarker(_) => {}
        }
    }
    while open.len() > 1 {
        close(&mut open);
    }
    open.pop().map(|(_, nodes)| nodes).unwrap_or_default()
}

fn put(open: &mut [(Kind, Vec<Node>)], node: Node) {
    if let Some((_, nodes)) = open.last_mut() {
        nodes.push(node);
    }
}

fn close(open: &mut Vec<(Kind, Vec<Node>)>) {
    if open.len() > 1
        && let Some((kind, nodes)) = open.pop()
    {
        put(open, Node::Around(kind, nodes));
    }
}

fn kind(tag: Tag<'_>) -> Kind {
    match tag {
        Tag::Paragraph => Kind::Paragraph,
        Tag::Heading { .. } => Kind::Heading,
        Tag::BlockQuote(_) => Kind::Quote,
        Tag::List(first) => Kind::List(first),
        Tag::Item => Kind::Item,
        Tag::Strong => Kind::Strong,
        Tag::Emphasis => Kind::Emphasis,
        Tag::Link { dest_url, .. } => address(&dest_url).map_or(Kind::Plain, Kind::Link),
        Tag::Table(_) => Kind::Table,
        Tag::TableHead | Tag::TableRow => Kind::Row,
        Tag::TableCell => Kind::Cell,
        // An image is its words; nothing is fetched.
        _ => Kind::Plain,
    }
}

/// The beginning of a text that is shown at once, and whether there is more.
#[must_use]
pub fn beginning(text: &str) -> (&str, bool) {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => (text.get(..end).unwrap_or(text), true),
        None => (text, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth(nodes: &[Node]) -> usize {
        let of = |node: &Node| match node {
            Node::Around(_, inside) => 1 + depth(inside),
            _ => 0,
        };
        nodes.iter().map(of).max().unwrap_or(0)
    }

    fn links(nodes: &[Node]) -> Vec<String> {
        nodes
            .iter()
            .flat_map(|node| match node {
                Node::Around(Kind::Link(to), _) => vec![to.clone()],
                Node::Around(_, inside) => links(inside),
                _ => Vec::new(),
            })
            .collect()
    }

    #[test]
    fn h71_only_links_to_the_web_are_links() {
        let text = "[a](javascript:alert(1)) [b](https://e.example/x) [c](JaVaScRiPt:1) \
             [d](data:text/html,x) [e](mailto:a@b.example) [f](//evil) [g](/ui) \
             ![h](https://e.example/pixel.png) <https://auto.example> <img src=x onerror=y>";
        assert_eq!(
            links(&tree(text)),
            ["https://e.example/x", "mailto:a@b.example", "https://auto.example"]
        );
    }

    #[test]
    fn h71_raw_html_is_text() {
        let nodes = tree("<script>x</script>\n\na <b>c</b>");
        let text = format!("{nodes:?}");
        assert!(text.contains("<script>x</script>") && text.contains("Text(\"<b>\")"), "{text}");
    }

    #[test]
    fn h71_nothing_is_deeper_than_thirty_two() {
        assert!(depth(&tree(&"> ".repeat(5_000))) <= DEEPEST);
        assert!(depth(&tree(&format!("{}x", "- ".repeat(5_000)))) <= DEEPEST);
        let stars = format!("{}x{}", "*a ".repeat(3_000), "*".repeat(3_000));
        assert!(depth(&tree(&stars)) <= DEEPEST);
    }

    #[test]
    fn h71_a_long_text_is_cut_at_a_character() {
        let long = "ü".repeat(SHOWN + 1);
        assert_eq!(beginning(&long), (long.get(..2 * SHOWN).unwrap(), true));
        assert_eq!(beginning("short"), ("short", false));
    }

    #[test]
    fn a_block_a_list_and_a_table_are_told_apart() {
        let nodes = tree("```rs\nfn x() {}\n```\n1. a\n2. b\n\n|a|b|\n|-|-|\n|1|2|\n");
        let text = format!("{nodes:?}");
        for part in ["Block(\"fn x() {}\")", "List(Some(1))", "Table", "Cell"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
