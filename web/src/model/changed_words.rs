//! What changed inside the lines of a change, and the lines side by side.

use crate::model::changes::{NumberedLine, numbered};
use similar::{ChangeTag, TextDiff};
use svc_shared::internal::changes::{ChangedPart, LineSign};

/// Lines with more characters show no changed words.
const LONGEST: usize = 1_000;
/// Lines that share less than this show no changed words.
///
/// Nearly everything would be marked.
const LEAST_SHARED: f32 = 0.4;

/// A line in pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkedLine {
    /// The line.
    pub line: NumberedLine,
    /// Its text in order; true for what changed. Empty when nothing in it is marked.
    pub pieces: Vec<(bool, String)>,
}

/// The lines of a part.
///
/// A deleted line and the one that took its place show what differs.
#[must_use]
pub fn marked(part: &ChangedPart) -> Vec<MarkedLine> {
    let plain = |line| MarkedLine { line, pieces: Vec::new() };
    let mut all: Vec<MarkedLine> = numbered(part).into_iter().map(plain).collect();
    for (old, new) in pairs(&all) {
        let (Some(before), Some(after)) = (all.get(old), all.get(new)) else { continue };
        let Some((was, is)) = pieces(&before.line.text, &after.line.text) else { continue };
        for (at, found) in [(old, was), (new, is)] {
            if let Some(one) = all.get_mut(at) {
                one.pieces = found;
            }
        }
    }
    all
}

/// Places of deleted lines, each with that of the line that took its place.
fn pairs(all: &[MarkedLine]) -> Vec<(usize, usize)> {
    let is = |at: usize, sign| all.get(at).is_some_and(|one| one.line.sign == Some(sign));
    let run = |from: usize, sign| (from..).take_while(move |at| is(*at, sign));
    let mut found = Vec::new();
    let mut at = 0;
    while at < all.len() {
        let deleted = run(at, LineSign::Deleted).count();
        let added = run(at + deleted, LineSign::Added).count();
        let both = deleted.min(added);
        found.extend((0..both).map(|one| (at + one, at + deleted + one)));
        at += (deleted + added).max(1);
    }
    found
}

type Pieces = Vec<(bool, String)>;

fn pieces(before: &str, after: &str) -> Option<(Pieces, Pieces)> {
    if before.len().max(after.len()) > LONGEST {
        return None;
    }
    let (was, is) = (words(before), words(after));
    let diff = TextDiff::from_slices(&was, &is);
    if diff.ratio() < LEAST_SHARED {
        return None;
    }
    let (mut old, mut new) = (Pieces::new(), Pieces::new());
    for change in diff.iter_all_changes() {
        let text = change.value();
        match change.tag() {
            ChangeTag::Equal => {
                push(&mut old, false, text);
                push(&mut new, false, text);
            }
            ChangeTag::Delete => push(&mut old, true, text),
            ChangeTag::Insert => push(&mut new, true, text),
        }
    }
    Some((old, new))
}

fn push(pieces: &mut Pieces, is_marked: bool, text: &str) {
    match pieces.last_mut() {
        Some((marked, last)) if *marked == is_marked => last.push_str(text),
        _ => pieces.push((is_marked, text.to_owned())),
    }
}

/// Names and numbers, blanks, and every other character for itself.
fn words(text: &str) -> Vec<&str> {
    let kind = |c: char| match c {
        c if c.is_alphanumeric() || c == '_' => 1,
        c if c.is_whitespace() => 2,
        _ => 0,
    };
    let mut found = Vec::new();
    let (mut from, mut last) = (0, 0);
    for (at, c) in text.char_indices() {
        if at > from && (kind(c) == 0 || kind(c) != last) {
            found.extend(text.get(from..at));
            from = at;
        }
        last = kind(c);
    }
    found.extend(text.get(from..).filter(|rest| !rest.is_empty()));
    found
}

/// Two lines beside each other: before and after.
pub type Beside = (Option<MarkedLine>, Option<MarkedLine>);

/// The lines of a part beside each other.
#[must_use]
pub fn beside(part: &ChangedPart) -> Vec<Beside> {
    let mut rows: Vec<Beside> = Vec::new();
    // Rows whose right side is still free, from here on.
    let mut free = 0;
    for one in marked(part) {
        match one.line.sign {
            Some(LineSign::Deleted) => rows.push((Some(one), None)),
            Some(LineSign::Added) => {
                match rows.get_mut(free) {
                    Some(row) => row.1 = Some(one),
                    None => rows.push((None, Some(one))),
                }
                free += 1;
                continue;
            }
            Some(LineSign::Same) | None => {
                rows.push((Some(one.clone()), Some(one)));
                free = rows.len();
            }
        }
    }
    rows
}

/// The changed parts of a file as a patch.
///
/// It is for reading: masked values cannot be applied.
#[must_use]
pub fn patch(path: &str, old_path: Option<&str>, parts: &[ChangedPart]) -> String {
    let old = old_path.unwrap_or(path);
    let mut text = format!("--- a/{old}\n+++ b/{path}\n");
    for part in parts {
        let (old, new) = ((part.old_start, part.old_lines), (part.new_start, part.new_lines));
        text += &format!("@@ -{},{} +{},{} @@\n", old.0, old.1, new.0, new.1);
        for line in &part.lines {
            text += &format!("{}{}\n", line.t, line.text);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn part(lines: &[(&str, &str)]) -> ChangedPart {
        let lines: Vec<_> = lines.iter().map(|(t, text)| json!({ "t": t, "text": text })).collect();
        serde_json::from_value(json!({
            "old_start": 1, "old_lines": 3, "new_start": 1, "new_lines": 3, "lines": lines,
        }))
        .unwrap()
    }

    fn shown(one: &MarkedLine) -> String {
        let piece = |(is_marked, text): &(bool, String)| match is_marked {
            true => format!("[{text}]"),
            false => text.clone(),
        };
        one.pieces.iter().map(piece).collect()
    }

    #[test]
    fn a_line_that_took_the_place_of_another_shows_its_changed_words() {
        let all = marked(&part(&[
            ("-", "  if (age > ttl) return null"),
            ("-", "x"),
            ("+", "  if (age >= ttl) return null"),
        ]));
        let texts: Vec<String> = all.iter().map(shown).collect();
        assert_eq!(texts, ["  if (age > ttl) return null", "", "  if (age >[=] ttl) return null"]);
    }

    #[test]
    fn lines_that_share_little_or_are_very_long_are_not_marked() {
        let long = "a ".repeat(LONGEST);
        let other = format!("{long}b");
        for lines in [[("-", "alpha"), ("+", "beta(gamma)")], [("-", &long), ("+", &other)]] {
            let all = marked(&part(&lines));
            assert!(all.iter().all(|one| one.pieces.is_empty()), "{all:?}");
        }
    }

    #[test]
    fn every_piece_together_is_the_line() {
        let (old, new) = ("λ = früh(1)  # ü", "λ = spät(12) # ü");
        let all = marked(&part(&[("-", old), ("+", new)]));
        for (one, text) in all.iter().zip([old, new]) {
            let joined: String = one.pieces.iter().map(|(_, text)| text.as_str()).collect();
            assert_eq!(joined, text);
        }
    }

    #[test]
    fn beside_each_other_a_new_line_stands_at_the_one_it_replaces() {
        let rows = beside(&part(&[
            (" ", "a"),
            ("-", "b"),
            ("+", "c"),
            ("+", "d"),
            (" ", "e"),
            ("-", "f"),
            ("+", "g"),
        ]));
        let side = |one: &Option<MarkedLine>| {
            one.as_ref().map_or(String::new(), |one| one.line.text.clone())
        };
        let texts: Vec<_> = rows.iter().map(|(old, new)| (side(old), side(new))).collect();
        let expected = [("a", "a"), ("b", "c"), ("", "d"), ("e", "e"), ("f", "g")];
        assert_eq!(texts, expected.map(|(old, new)| (old.to_owned(), new.to_owned())));
    }

    #[test]
    fn a_patch_names_both_files_and_every_part() {
        let text = patch("b.rs", Some("a.rs"), &[part(&[(" ", "x"), ("-", "y"), ("+", "z")])]);
        assert_eq!(text, "--- a/a.rs\n+++ b/b.rs\n@@ -1,3 +1,3 @@\n x\n-y\n+z\n");
    }
}
