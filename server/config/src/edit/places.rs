//! Finds the bytes of a change and replaces them.
//!
//! A function returns nothing where the text is written in a way that it does not change.

use super::render;
use super::spans::{Body, Entry, Node};
use serde_json::Value as Json;
use std::ops::Range;

/// Blanks of a section where the file has no example.
const INDENT: usize = 2;

/// Gives a key a value; the key and its sections are made where they are missing.
pub(super) fn set(text: &str, root: Option<&Node>, path: &[&str], value: &Json) -> Option<String> {
    let step = step_of(text, root);
    let Some(root) = root else { return Some(at_end(text, &block(text, path, value, 0, step))) };
    if let Body::Nothing = root.body {
        return Some(at_end(text, &block(text, path, value, 0, step)));
    }
    let mut node = root;
    let mut above: Option<&Entry> = None;
    for (depth, name) in path.iter().enumerate() {
        let rest = path.get(depth..)?;
        match &node.body {
            Body::Map { is_flow, entries } => {
                let Some(entry) = entries.iter().find(|entry| entry.key == *name) else {
                    return match is_flow {
                        true => into_flow(text, node, entries, rest, value),
                        false => into_block(text, entries, rest, value, step, depth == 0),
                    };
                };
                above = Some(entry);
                node = &entry.value;
            }
            Body::Nothing => return below(text, above?, rest, value, step),
            Body::Scalar { text: written, .. } if matches!(&**written, "~" | "null") => {
                let bare = spliced(text, node.span.clone(), "")?;
                return below(&bare, above?, rest, value, step);
            }
            Body::Scalar { .. } | Body::Alias | Body::List { .. } => return None,
        }
    }
    replace(text, above?, value)
}

/// Takes a key away, with the lines that it stands on.
pub(super) fn remove(text: &str, root: Option<&Node>, path: &[&str]) -> Option<String> {
    let (parent, entry, siblings) = locate(root?, path)?;
    let Body::Map { is_flow, .. } = &parent.body else { return None };
    if *is_flow {
        return without_flow_entry(text, entry);
    }
    let lines = lines_of(text, entry.name.start, entry.value.span.end)?;
    if !text.get(lines.start..entry.name.start)?.trim().is_empty() {
        return None;
    }
    let bare = spliced(text, lines, "")?;
    if siblings > 1 || path.len() < 2 {
        return Some(bare);
    }
    // A section without a value would be a null, which is warned about.
    let (_, section, _) = locate(root?, path.get(..path.len() - 1)?)?;
    let colon = text.get(section.name.end..)?.find(':')? + section.name.end + 1;
    spliced(&bare, colon..colon, " {}")
}

/// Gives a key another last name.
pub(super) fn rename(text: &str, root: Option<&Node>, path: &[&str], name: &str) -> Option<String> {
    let (_, entry, _) = locate(root?, path)?;
    spliced(text, entry.name.clone(), &render::scalar(name))
}

/// The mapping that holds a key, the key, and how many keys the mapping has.
fn locate<'n>(root: &'n Node, path: &[&str]) -> Option<(&'n Node, &'n Entry, usize)> {
    let (name, above) = path.split_last()?;
    let mut node = root;
    for name in above {
        let Body::Map { entries, .. } = &node.body else { return None };
        node = &entries.iter().find(|entry| entry.key == *name)?.value;
    }
    let Body::Map { entries, .. } = &node.body else { return None };
    Some((node, entries.iter().find(|entry| entry.key == *name)?, entries.len()))
}

fn replace(text: &str, entry: &Entry, value: &Json) -> Option<String> {
    let span = entry.value.span.clone();
    match &entry.value.body {
        Body::Nothing => spliced(text, span, &format!(" {}", render::flow(value))),
        Body::Scalar { style, .. } => spliced(text, span, &render::like(value, *style)),
        Body::Alias | Body::List { is_flow: true, .. } => spliced(text, span, &render::flow(value)),
        Body::List { is_flow: false, items } => match value {
            Json::Array(wanted) if !wanted.is_empty() => {
                by_line(text, items, wanted).or_else(|| whole_list(text, &span, wanted))
            }
            // Everything below the key goes, so the value stands beside the key.
            _ => {
                let colon = text.get(entry.name.end..)?.find(':')? + entry.name.end + 1;
                spliced(text, colon..span.end, &format!(" {}", render::flow(value)))
            }
        },
        Body::Map { .. } => None,
    }
}

/// Takes entries away and adds new ones at the end.
/// The other lines stay as they are.
fn by_line(text: &str, items: &[Node], wanted: &[Json]) -> Option<String> {
    let texts: Vec<&str> = items
        .iter()
        .map(|item| match &item.body {
            Body::Scalar { text, .. } => Some(text.as_str()),
            Body::Nothing | Body::Alias | Body::List { .. } | Body::Map { .. } => None,
        })
        .collect::<Option<_>>()?;
    let wanted: Vec<&str> = wanted.iter().map(Json::as_str).collect::<Option<_>>()?;
    let kept: Vec<&str> = texts.iter().copied().filter(|text| wanted.contains(text)).collect();
    let added = wanted.strip_prefix(kept.as_slice())?;
    let last = items.last()?;
    let dash = lines_of(text, last.span.start, last.span.end)?;
    let lead = text.get(dash.start..last.span.start)?;
    if kept.is_empty() || !lead.trim_start().starts_with('-') {
        return None;
    }
    let end = newline(text);
    let more: String =
        added.iter().map(|item| format!("{lead}{}{end}", render::scalar(item))).collect();
    let mut out = insert_line(text, dash.end, &more);
    for (item, text_of) in items.iter().zip(&texts).rev() {
        if !wanted.contains(text_of) {
            let lines = lines_of(&out, item.span.start, item.span.end)?;
            out = spliced(&out, lines, "")?;
        }
    }
    Some(out)
}

fn whole_list(text: &str, span: &Range<usize>, wanted: &[Json]) -> Option<String> {
    let line = text.get(..span.start)?.rfind('\n').map_or(0, |at| at + 1);
    let indent = " ".repeat(text.get(line..span.start)?.chars().count());
    let items: Vec<String> =
        wanted.iter().map(|item| format!("- {}", render::flow(item))).collect();
    spliced(text, span.clone(), &items.join(&format!("{}{indent}", newline(text))))
}

/// Adds a key to a mapping in braces.
fn into_flow(
    text: &str,
    map: &Node,
    entries: &[Entry],
    rest: &[&str],
    value: &Json,
) -> Option<String> {
    let (name, deeper) = rest.split_first()?;
    let inner = deeper
        .iter()
        .rev()
        .fold(render::flow(value), |inner, name| format!("{{{}: {inner}}}", render::scalar(name)));
    let entry = format!("{}: {inner}", render::scalar(name));
    match entries.last() {
        Some(last) => {
            let at = last.value.span.end;
            spliced(text, at..at, &format!(", {entry}"))
        }
        None => spliced(text, map.span.start + 1..map.span.start + 1, &entry),
    }
}

/// Adds a key behind the last one of its section.
fn into_block(
    text: &str,
    entries: &[Entry],
    rest: &[&str],
    value: &Json,
    step: usize,
    is_root: bool,
) -> Option<String> {
    let (first, last) = (entries.first()?, entries.last()?);
    let line = text.get(..first.name.start)?.rfind('\n').map_or(0, |at| at + 1);
    let indent = text.get(line..first.name.start)?.chars().count();
    let new = block(text, rest, value, indent, step);
    // A new section stands at the end of the file, unless the document ends before.
    let is_open = !text.lines().any(|line| line.trim_end() == "..." || line.starts_with("--- "));
    if is_root && is_open {
        return Some(at_end(text, &new));
    }
    let end = lines_of(text, last.name.start, last.value.span.end)?.end;
    Some(insert_line(text, end, &new))
}

/// Adds a key below a section that has none yet.
fn below(text: &str, section: &Entry, rest: &[&str], value: &Json, step: usize) -> Option<String> {
    let line = text.get(..section.name.start)?.rfind('\n').map_or(0, |at| at + 1);
    let lead = text.get(line..section.name.start)?;
    if !lead.trim().is_empty() {
        return None;
    }
    let new = block(text, rest, value, lead.len() + step, step);
    let end = lines_of(text, section.name.start, section.name.end)?.end;
    Some(insert_line(text, end, &new))
}

fn without_flow_entry(text: &str, entry: &Entry) -> Option<String> {
    let end = entry.value.span.end;
    let after = text.get(end..)?;
    let blanks = after.len() - after.trim_start().len();
    if after.trim_start().starts_with(',') {
        let rest = after.get(blanks + 1..)?;
        let more = rest.len() - rest.trim_start_matches(' ').len();
        return spliced(text, entry.name.start..end + blanks + 1 + more, "");
    }
    let before = text.get(..entry.name.start)?.trim_end();
    let start = if before.ends_with(',') { before.len() - 1 } else { entry.name.start };
    spliced(text, start..end, "")
}

/// A key with its sections as lines of their own.
fn block(text: &str, path: &[&str], value: &Json, indent: usize, step: usize) -> String {
    let end = newline(text);
    let mut out = String::new();
    for (depth, name) in path.iter().enumerate() {
        out.push_str(&" ".repeat(indent + depth * step));
        out.push_str(&render::scalar(name));
        out.push(':');
        if depth + 1 == path.len() {
            out.push(' ');
            out.push_str(&render::flow(value));
        }
        out.push_str(end);
    }
    out
}

/// How far the first section of the file is indented.
fn step_of(text: &str, root: Option<&Node>) -> usize {
    let Some(Node { body: Body::Map { entries, .. }, .. }) = root else { return INDENT };
    let first = entries.iter().find_map(|entry| match &entry.value.body {
        Body::Map { is_flow: false, entries } => entries.first(),
        _ => None,
    });
    let Some(first) = first else { return INDENT };
    let line = text.get(..first.name.start).unwrap_or_default().rfind('\n').map_or(0, |at| at + 1);
    (first.name.start - line).clamp(1, 8)
}

/// The whole lines of a range, with the end of the last.
fn lines_of(text: &str, start: usize, end: usize) -> Option<Range<usize>> {
    let start = text.get(..start)?.rfind('\n').map_or(0, |at| at + 1);
    // A text over several lines ends at the beginning of the line after it.
    if end > start && text.get(..end)?.ends_with('\n') {
        return Some(start..end);
    }
    let end = text.get(end..)?.find('\n').map_or(text.len(), |at| end + at + 1);
    Some(start..end)
}

/// Inserts whole lines at the beginning of a line or at the end of the text.
fn insert_line(text: &str, at: usize, lines: &str) -> String {
    let (before, after) = text.split_at(at);
    let gap = if before.is_empty() || before.ends_with('\n') { "" } else { newline(text) };
    format!("{before}{gap}{lines}{after}")
}

fn at_end(text: &str, lines: &str) -> String {
    insert_line(text, text.len(), lines)
}

fn newline(text: &str) -> &'static str {
    if text.split('\n').next().is_some_and(|line| line.ends_with('\r')) { "\r\n" } else { "\n" }
}

fn spliced(text: &str, range: Range<usize>, new: &str) -> Option<String> {
    Some(format!("{}{new}{}", text.get(..range.start)?, text.get(range.end..)?))
}
