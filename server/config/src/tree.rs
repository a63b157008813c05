//! Reads YAML text into a small tree with line numbers.
//!
//! The parser crate knows grammar and escapes. This file resolves aliases and merge keys, finds
//! duplicate keys and limits the size of hostile documents. `load` decides what a key means.
//!
//! A typed reader (serde) would lose what the checks need: it reads `1.10` as 1.1 and `off` as a
//! switch before the schema is asked, and it stops at the first problem.

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, Tag};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Deepest nesting, the root included.
const DEEPEST: usize = 64;

/// Most nodes after alias expansion.
const MOST_NODES: usize = 10_000;

/// One value of the document.
#[derive(Debug)]
pub struct Node {
    /// Line of its start, from 1.
    pub line: usize,
    /// Scalar, list or mapping.
    pub body: Body,
    /// Nodes in it, itself included.
    size: usize,
    /// Levels of lists and mappings in it, itself included.
    height: usize,
}

/// The content of a node.
#[derive(Debug)]
pub enum Body {
    /// A piece of text.
    Scalar(Scalar),
    /// A list.
    List(Vec<Arc<Node>>),
    /// A mapping, in document order, without duplicates.
    Map(Vec<Entry>),
}

/// A piece of text, and whether it was written without quotes.
#[derive(Debug)]
pub struct Scalar {
    /// The text after escape processing.
    pub text: Arc<str>,
    /// Whether it has neither quotes nor a tag that makes it a text.
    pub is_plain: bool,
}

/// One key with its value.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The key's text.
    pub key: Arc<str>,
    /// Line of the key, from 1.
    pub line: usize,
    /// The value.
    pub value: Arc<Node>,
}

impl Scalar {
    /// Whether the text is one of the spellings of null.
    pub fn is_null(&self) -> bool {
        self.is_plain && matches!(&*self.text, "" | "~" | "null" | "Null" | "NULL")
    }
}

impl Node {
    /// Whether the value is null.
    pub fn is_null(&self) -> bool {
        matches!(&self.body, Body::Scalar(scalar) if scalar.is_null())
    }
}

/// A key that one mapping has twice.
#[derive(Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// Keys from the root to the repeated one.
    pub path: Vec<Arc<str>>,
    /// Line of the first.
    pub first: usize,
    /// Line of the second.
    pub second: usize,
}

/// A document that was read completely.
#[derive(Debug)]
pub struct Document {
    /// The root; none in an empty document.
    pub root: Option<Arc<Node>>,
    /// Repeated keys, in document order; the first value is in the tree.
    pub duplicates: Vec<Duplicate>,
}

/// Why a text cannot be read. The reason never contains text of the document.
#[derive(Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, when it helps.
    pub column: Option<usize>,
    /// What is wrong.
    pub reason: &'static str,
}

/// Reads one document.
///
/// # Errors
/// The text is not YAML, holds more than one document, is too deep or too large, or has a cycle.
pub fn read(text: &str) -> Result<Document, Unreadable> {
    let options = granit_parser::options! {
        block_nesting_limit: DEEPEST,
        flow_nesting_limit: DEEPEST,
    };
    let mut builder = Builder::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| syntax(&error))?;
        builder.take(event, span)?;
    }
    Ok(Document { root: builder.root, duplicates: builder.duplicates })
}

/// The error of the parser, without the characters that it may quote.
fn syntax(error: &ScanError) -> Unreadable {
    let reason = match error.kind() {
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabInPlainScalar
        | ErrorKind::TabAtBlockScalarStart => "is not YAML: a tab stands where only blanks may",
        ErrorKind::UnknownAnchor => "is not YAML: an alias names an anchor that is not above it",
        ErrorKind::RecursionLimitExceeded => "is nested deeper than 64 levels",
        ErrorKind::UnclosedFlowCollection { .. }
        | ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofFlowMapping => "is not YAML: a bracket is not closed",
        ErrorKind::UnclosedQuotedScalar => "is not YAML: a quote is not closed",
        ErrorKind::InvalidIndentation => "is not YAML: the indentation does not fit",
        _ => "is not YAML at this position",
    };
    let marker = error.marker();
    Unreadable { line: marker.line().max(1), column: Some(marker.col() + 1), reason }
}

/// A collection that is still being read.
enum Frame {
    List { line: usize, anchor: usize, items: Vec<Arc<Node>> },
    Map(OpenMap),
}

#[derive(Default)]
struct OpenMap {
    line: usize,
    anchor: usize,
    entries: Vec<Entry>,
    lines: HashMap<Arc<str>, usize>,
    key: Option<(Key, usize)>,
}

/// A key that waits for its value.
enum Key {
    Name(Arc<str>),
    Merge,
}

#[derive(Default)]
struct Builder {
    stack: Vec<Frame>,
    /// Finished anchors. An alias to an open one is a cycle.
    anchors: HashMap<usize, Arc<Node>>,
    nodes: usize,
    documents: usize,
    root: Option<Arc<Node>>,
    duplicates: Vec<Duplicate>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Unreadable> {
        let line = span.start.line().max(1);
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(at(line, "holds more than one document; keep one"));
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let is_plain = style == ScalarStyle::Plain && !is_text_tag(tag.as_deref(), line)?;
                let scalar = Scalar { text: text.into(), is_plain };
                self.finish(leaf(line, scalar), anchor)?;
            }
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor).map(Arc::clone) else {
                    return Err(at(line, "has an alias inside the very value it stands for"));
                };
                let cost = node.size;
                self.insert(node, line, cost)?;
            }
            Event::SequenceStart(_, anchor, tag) => {
                is_text_tag(tag.as_deref(), line)?;
                self.open(Frame::List { line, anchor, items: Vec::new() }, line)?;
            }
            Event::MappingStart(_, anchor, tag) => {
                is_text_tag(tag.as_deref(), line)?;
                self.open(Frame::Map(OpenMap { line, anchor, ..OpenMap::default() }), line)?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let (node, anchor) = match self.stack.pop() {
                    Some(Frame::List { line, anchor, items }) => {
                        (collection(line, Body::List(items)), anchor)
                    }
                    Some(Frame::Map(map)) => {
                        (collection(map.line, Body::Map(map.entries)), map.anchor)
                    }
                    None => return Err(at(line, "is not YAML at this position")),
                };
                self.finish(node, anchor)?;
            }
            // Stream and document marks, comments and metadata carry no values.
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, frame: Frame, line: usize) -> Result<(), Unreadable> {
        if let Some(Frame::Map(OpenMap { key: None, .. })) = self.stack.last() {
            return Err(at(line, "has a list or a mapping where a key belongs"));
        }
        self.stack.push(frame);
        if self.stack.len() > DEEPEST {
            return Err(at(line, "is nested deeper than 64 levels"));
        }
        Ok(())
    }

    fn finish(&mut self, node: Node, anchor: usize) -> Result<(), Unreadable> {
        let line = node.line;
        let node = Arc::new(node);
        if anchor != 0 {
            self.anchors.insert(anchor, Arc::clone(&node));
        }
        // Its children were counted one by one.
        self.insert(node, line, 1)
    }

    /// Adds a finished value to the collection that is open.
    ///
    /// `line` is the line that uses it, `cost` the number of nodes that it adds to the document.
    fn insert(&mut self, node: Arc<Node>, line: usize, cost: usize) -> Result<(), Unreadable> {
        self.spend(cost, line)?;
        if self.stack.len() + node.height > DEEPEST {
            return Err(at(line, "is nested deeper than 64 levels"));
        }
        match self.stack.last_mut() {
            None => self.root = Some(node),
            Some(Frame::List { items, .. }) => items.push(node),
            Some(Frame::Map(map)) => match map.key.take() {
                None => map.key = Some((key_of(&node, line)?, line)),
                Some((Key::Merge, _)) => self.merge(&node, line)?,
                Some((Key::Name(key), key_line)) => self.entry(key, key_line, node),
            },
        }
        Ok(())
    }

    fn spend(&mut self, nodes: usize, line: usize) -> Result<(), Unreadable> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MOST_NODES {
            return Err(at(line, "holds more than 10000 values after its aliases are expanded"));
        }
        Ok(())
    }

    fn entry(&mut self, key: Arc<str>, line: usize, value: Arc<Node>) {
        let Some(Frame::Map(map)) = self.stack.last_mut() else { return };
        if let Some(first) = map.lines.get(&key).copied() {
            let path = self.path_to(&key);
            self.duplicates.push(Duplicate { path, first, second: line });
            return;
        }
        // An explicit key wins over a merged one, whatever their order.
        if map.entries.len() > map.lines.len() {
            map.entries.retain(|entry| entry.key != key);
        }
        map.lines.insert(Arc::clone(&key), line);
        map.entries.push(Entry { key, line, value });
    }

    /// Adds the keys of another mapping that this one does not have yet.
    fn merge(&mut self, node: &Arc<Node>, line: usize) -> Result<(), Unreadable> {
        const WRONG: &str = "has a merge key (<<) that names neither a mapping nor a list of them";
        let sources = match &node.body {
            Body::Map(_) => vec![Arc::clone(node)],
            Body::List(items) => items.clone(),
            Body::Scalar(_) => return Err(at(line, WRONG)),
        };
        for source in sources {
            let Body::Map(entries) = &source.body else { return Err(at(line, WRONG)) };
            self.spend(source.size, line)?;
            let Some(Frame::Map(map)) = self.stack.last_mut() else { return Ok(()) };
            let present: HashSet<Arc<str>> =
                map.entries.iter().map(|entry| Arc::clone(&entry.key)).collect();
            map.entries
                .extend(entries.iter().filter(|entry| !present.contains(&entry.key)).cloned());
        }
        Ok(())
    }

    /// Names of the mappings that are open, then `key`.
    fn path_to(&self, key: &Arc<str>) -> Vec<Arc<str>> {
        let open = self.stack.iter().filter_map(|frame| match frame {
            Frame::Map(OpenMap { key: Some((Key::Name(name), _)), .. }) => Some(Arc::clone(name)),
            Frame::Map(_) | Frame::List { .. } => None,
        });
        open.chain([Arc::clone(key)]).collect()
    }
}

fn at(line: usize, reason: &'static str) -> Unreadable {
    Unreadable { line, column: None, reason }
}

fn leaf(line: usize, scalar: Scalar) -> Node {
    Node { line, body: Body::Scalar(scalar), size: 1, height: 0 }
}

fn collection(line: usize, body: Body) -> Node {
    let children: Vec<&Arc<Node>> = match &body {
        Body::Scalar(_) => Vec::new(),
        Body::List(items) => items.iter().collect(),
        Body::Map(entries) => entries.iter().map(|entry| &entry.value).collect(),
    };
    let size = children.iter().map(|child| child.size).sum::<usize>().saturating_add(1);
    let height = children.iter().map(|child| child.height).max().unwrap_or(0) + 1;
    Node { line, body, size, height }
}

fn key_of(node: &Node, line: usize) -> Result<Key, Unreadable> {
    match &node.body {
        Body::Scalar(scalar) if scalar.is_null() => Err(at(line, "has a value without a key")),
        Body::Scalar(scalar) if scalar.is_plain && &*scalar.text == "<<" => Ok(Key::Merge),
        Body::Scalar(scalar) => Ok(Key::Name(Arc::clone(&scalar.text))),
        Body::List(_) | Body::Map(_) => {
            Err(at(line, "has a list or a mapping where a key belongs"))
        }
    }
}

/// Whether the tag makes a scalar a text; custom tags are refused.
fn is_text_tag(tag: Option<&Tag>, line: usize) -> Result<bool, Unreadable> {
    match tag {
        None => Ok(false),
        Some(tag) if tag.handle().is_empty() && tag.suffix() == "!" => Ok(true),
        Some(tag) => match tag.core_suffix() {
            Some(suffix) => Ok(suffix == "str"),
            None => Err(at(line, "has a custom tag (!…); only plain values are read")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn show(node: &Node) -> String {
        match &node.body {
            Body::Scalar(scalar) if scalar.is_null() => "null".into(),
            Body::Scalar(scalar) if scalar.is_plain => scalar.text.to_string(),
            Body::Scalar(scalar) => format!("{:?}", scalar.text),
            Body::List(items) => {
                format!("[{}]", items.iter().map(|item| show(item)).collect::<Vec<_>>().join(","))
            }
            Body::Map(entries) => {
                let shown: Vec<_> = entries
                    .iter()
                    .map(|entry| format!("{}@{}:{}", entry.key, entry.line, show(&entry.value)))
                    .collect();
                format!("{{{}}}", shown.join(","))
            }
        }
    }

    #[track_caller]
    fn reads(text: &str, expected: &str) {
        let document = read(text).unwrap();
        assert_eq!(document.root.map(|root| show(&root)).unwrap_or_default(), expected);
    }

    #[track_caller]
    fn refuses(text: &str, line: usize, reason: &str) {
        let error = read(text).unwrap_err();
        assert!(error.reason.contains(reason), "{error:?}");
        assert_eq!(error.line, line, "{error:?}");
    }

    #[test]
    fn values_keep_their_lines_and_their_quoting() {
        reads(
            "a: 1\nb:\n  - x\n  - 'y'\nc: {d: ~, e: \"\"}\n",
            "{a@1:1,b@2:[x,\"y\"],c@5:{d@5:null,e@5:\"\"}}",
        );
        reads("a: !!str 1\nb: ! 2\n", "{a@1:\"1\",b@2:\"2\"}");
        reads("", "");
        reads("# nothing\n", "");
        reads("---\n...\n", "null");
    }

    #[test]
    fn line_ends_of_other_systems_are_read() {
        reads("a: 1\r\nb: 2\r\n", "{a@1:1,b@2:2}");
    }

    #[test]
    fn a_merge_fills_in_and_never_overrides() {
        let base = "x-a: &a {k: 1, l: 1}\nx-b: &b {l: 2, m: 2}\n";
        reads(
            &format!("{base}s:\n  <<: *a\n  k: 9\n"),
            "{x-a@1:{k@1:1,l@1:1},x-b@2:{l@2:2,m@2:2},s@3:{l@1:1,k@5:9}}",
        );
        reads(
            &format!("{base}s: {{m: 0, <<: [*a, *b]}}\n"),
            "{x-a@1:{k@1:1,l@1:1},x-b@2:{l@2:2,m@2:2},s@3:{m@3:0,k@1:1,l@1:1}}",
        );
        refuses("<<: 7\n", 1, "merge key");
    }

    #[test]
    fn a_repeated_key_is_found_with_both_lines() {
        let document = read("auth:\n  a: 1\n  b: 2\n  a: 3\nport: 1\nauth: {}\n").unwrap();
        let found: Vec<_> = document
            .duplicates
            .iter()
            .map(|twice| (twice.path.join("."), twice.first, twice.second))
            .collect();
        assert_eq!(found, [("auth.a".to_owned(), 2, 4), ("auth".to_owned(), 1, 6)]);
    }

    #[test]
    fn what_no_configuration_needs_is_refused() {
        refuses("a: 1\n---\nb: 2\n", 2, "more than one document");
        refuses("a: !secret x\n", 1, "custom tag");
        refuses("a: &a [*a]\n", 1, "inside the very value");
        refuses("a: 1\nb: *nope\n", 2, "anchor");
        refuses("? [a]\n: 1\n", 1, "where a key belongs");
        refuses("a: 1\n~: 2\n", 2, "without a key");
        refuses("a:\n\tb: 1\n", 2, "tab");
        refuses("a: \"open\nb: 1\n", 2, "is not YAML");
    }

    #[test]
    fn h78_deep_nesting_is_refused_however_it_is_made() {
        refuses(&format!("a: {}", "[".repeat(200_000)), 1, "64");
        let block: String = (0..70).map(|depth| format!("{}k:\n", " ".repeat(depth))).collect();
        refuses(&block, 65, "64");
        let mut chain = "x0: &x0 [1]\n".to_owned();
        for level in 1..70 {
            chain.push_str(&format!("x{level}: &x{level} [*x{}]\n", level - 1));
        }
        refuses(&chain, 64, "64");
        let fits: String = (0..64).map(|depth| format!("{}k:\n", " ".repeat(depth))).collect();
        read(&fits).unwrap();
    }

    #[test]
    fn h78_an_alias_bomb_is_refused_before_it_grows() {
        let mut bomb = "x0: &x0 [a,a,a,a,a,a,a,a,a,a]\n".to_owned();
        for level in 1..9 {
            let tens = vec![format!("*x{}", level - 1); 10].join(",");
            bomb.push_str(&format!("x{level}: &x{level} [{tens}]\n"));
        }
        refuses(&bomb, 4, "10000");
        let mut merges = "x0: &x0 {a: 1, b: 2, c: 3}\n".to_owned();
        for level in 1..30 {
            let all = vec![format!("*x{}", level - 1); 40].join(",");
            merges.push_str(&format!("x{level}: &x{level} {{k{level}: *x0, <<: [{all}]}}\n"));
        }
        assert!(read(&merges).unwrap_err().reason.contains("10000"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn any_text_is_read_or_refused(text in "[-a-c:{}\\[\\]&*!|>'\"%@`#?,~<. \t\n]{0,60}") {
            let _ = read(&text);
        }
    }
}
