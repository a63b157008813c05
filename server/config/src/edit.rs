//! Changes single values in the text of the file, and nothing else.
//!
//! Every edit replaces or inserts bytes at the places that the YAML parser reports, so comments,
//! order, quoting and unknown text stay. The result is read again and compared with the text
//! before: an edit that changed anything but its key (a shared anchor does that) is refused.

mod places;
mod render;
mod spans;

use crate::tree::{self, Body, Document, Node};
use serde_json::Value as Json;
use spans::Unclear;

/// What happens with one key of the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    /// The key has this value from now on: a scalar, or a list of texts.
    Set(Json),
    /// The key goes, with what is written on its line.
    Remove,
    /// The key keeps its value under another last name.
    Rename(String),
}

/// One change of the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Edit {
    /// Names from the root to the key; at least one.
    pub path: Vec<String>,
    pub change: Change,
}

/// Why a text was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// It cannot be read, so nothing can be kept.
    #[error("line {line} {reason}; correct the file by hand first")]
    Unreadable {
        /// Line, from 1.
        line: usize,
        /// What is wrong, without text of the file.
        reason: String,
    },
    /// The change would have touched something else.
    #[error(
        "{key} is written in a way that cannot be changed without changing something else (an \
         anchor, an alias, or text over several lines); change it in the file by hand"
    )]
    Shape {
        /// The dotted key.
        key: String,
    },
}

/// The text with all edits made, one after the other.
///
/// # Errors
/// The first edit that cannot be made without changing something else.
pub(crate) fn edited(text: &str, edits: &[Edit]) -> Result<String, EditError> {
    let (mark, body) = match text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    };
    let mut body = body.to_owned();
    for edit in edits {
        body = one(&body, edit)?;
    }
    Ok(format!("{mark}{body}"))
}

fn one(text: &str, edit: &Edit) -> Result<String, EditError> {
    let shape = || EditError::Shape { key: edit.path.join(".") };
    let before = whole(text)?;
    let root = spans::read(text).map_err(|Unclear| shape())?;
    let root = root.as_ref();
    let path: Vec<&str> = edit.path.iter().map(String::as_str).collect();
    let after = match &edit.change {
        Change::Set(value) => places::set(text, root, &path, value),
        Change::Remove => places::remove(text, root, &path),
        Change::Rename(name) => places::rename(text, root, &path, name),
    };
    let after = after.ok_or_else(shape)?;
    let read = whole(&after).map_err(|_| shape())?;
    let renamed = match &edit.change {
        Change::Rename(name) => Some(sibling(&edit.path, name)),
        Change::Set(_) | Change::Remove => None,
    };
    let touched: Vec<&[String]> =
        std::iter::once(edit.path.as_slice()).chain(renamed.as_deref()).collect();
    let is_as_asked = match (&edit.change, find(&read, &edit.path)) {
        (Change::Set(value), Some(node)) => is_value(node, value),
        (Change::Set(_), None) => false,
        // A merged mapping may show through.
        (Change::Remove, _) => true,
        (Change::Rename(_), _) => {
            let there = renamed.as_deref().and_then(|path| find(&read, path));
            let was = find(&before, &edit.path);
            matches!((was, there), (Some(was), Some(there)) if values(was) == values(there))
        }
    };
    if !is_as_asked || others(&before, &touched) != others(&read, &touched) {
        return Err(shape());
    }
    Ok(after)
}

fn sibling(path: &[String], name: &str) -> Vec<String> {
    let above = path.split_last().map_or(&[][..], |(_, above)| above);
    above.iter().cloned().chain([name.to_owned()]).collect()
}

fn whole(text: &str) -> Result<Document, EditError> {
    let document = tree::read(text).map_err(|error| EditError::Unreadable {
        line: error.line,
        reason: error.reason.to_owned(),
    })?;
    match document.duplicates.first() {
        None => Ok(document),
        Some(double) => Err(EditError::Unreadable {
            line: double.second,
            reason: format!("sets a key again that line {} sets", double.first),
        }),
    }
}

fn find<'d>(document: &'d Document, path: &[String]) -> Option<&'d Node> {
    let mut node = document.root.as_deref()?;
    for name in path {
        let Body::Map(entries) = &node.body else { return None };
        node = &entries.iter().find(|entry| *entry.key == **name)?.value;
    }
    Some(node)
}

/// Whether a node of the text says what was asked for.
fn is_value(node: &Node, value: &Json) -> bool {
    match (&node.body, value) {
        (Body::Scalar(_), Json::Null) => node.is_null(),
        (Body::Scalar(scalar), Json::String(text)) => !node.is_null() && *scalar.text == **text,
        (Body::Scalar(scalar), Json::Bool(_) | Json::Number(_)) => {
            scalar.is_plain && *scalar.text == *value.to_string()
        }
        (Body::List(nodes), Json::Array(items)) => {
            nodes.len() == items.len()
                && nodes.iter().zip(items).all(|(node, item)| is_value(node, item))
        }
        _ => false,
    }
}

/// Every value with its names, but those that an edit was allowed to touch.
fn others(document: &Document, touched: &[&[String]]) -> Vec<(Vec<String>, String)> {
    let Some(root) = document.root.as_deref() else { return Vec::new() };
    let mut all = values(root);
    all.retain(|(path, _)| {
        // A section that was empty before has something in it now.
        !touched.iter().any(|edited| path.starts_with(edited) || edited.starts_with(path))
    });
    all
}

/// Every scalar below a node, with the names that lead to it.
fn values(node: &Node) -> Vec<(Vec<String>, String)> {
    fn walk(node: &Node, path: &mut Vec<String>, out: &mut Vec<(Vec<String>, String)>) {
        match &node.body {
            Body::Scalar(scalar) => {
                let kind = if scalar.is_plain { "plain" } else { "text" };
                out.push((path.clone(), format!("{kind} {}", scalar.text)));
            }
            Body::List(items) => {
                out.push((path.clone(), format!("list {}", items.len())));
                for (index, item) in items.iter().enumerate() {
                    path.push(index.to_string());
                    walk(item, path, out);
                    path.pop();
                }
            }
            Body::Map(entries) => {
                if entries.is_empty() {
                    out.push((path.clone(), "map".to_owned()));
                }
                for entry in entries {
                    path.push(entry.key.to_string());
                    walk(&entry.value, path, out);
                    path.pop();
                }
            }
        }
    }
    let mut out = Vec::new();
    walk(node, &mut Vec::new(), &mut out);
    out
}
