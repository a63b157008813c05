//! Finds and removes terminal escape sequences and invisible characters.

use std::ops::Range;

use super::view::View;

const ESC: char = '\u{1b}';
const BEL: u8 = 0x07;

/// A text without escape sequences and invisible characters.
pub(super) struct Clean {
    /// What a reader sees, with offsets back into the original.
    pub view: View,
    /// Colour changes that were taken out: offset in the clean text, and the sequence.
    pub colours: Vec<(usize, String)>,
    /// Whether a sequence other than a colour change took visible characters with it.
    ///
    /// They may be the beginning of a secret: an unfinished sequence ends at the first letter that
    /// can end it.
    pub took_text: bool,
}

/// Which visible characters of a sequence stay.
/// Colour changes always go as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// None: what a terminal shows.
    Nothing,
    /// The character that ends the sequence.
    /// As if the sequence were unfinished before it.
    Last,
    /// All but `[`, `]` and `^` at its beginning, as if there were no sequence.
    All,
}

/// Takes escape sequences and invisible characters out of `text`.
///
/// Tab, carriage return and line feed stay. A sequence never reaches over a line end, so that an
/// unterminated one cannot hide the lines after it. Linear in the length of the text.
pub(super) fn clean(text: &str, kept: Kept) -> Clean {
    let mut clean = Clean { view: View::default(), colours: Vec::new(), took_text: false };
    let mut terminators = Terminators::default();
    let mut kept_from = 0;
    let mut resume = 0;
    for (at, c) in text.char_indices() {
        if at < resume || !(is_introducer(c) || is_invisible(c)) {
            continue;
        }
        clean.view.copy(text, kept_from..at);
        let end = escape_end(text, at, c, &mut terminators).unwrap_or(at + c.len_utf8());
        let sequence = text.get(at..end).unwrap_or_default();
        if is_colour(sequence) {
            clean.colours.push((clean.view.text().len(), sequence.to_owned()));
        } else {
            let body = at + c.len_utf8()..end;
            clean.took_text |= !body.is_empty();
            clean.keep(text, body, kept);
        }
        kept_from = end;
        resume = end;
    }
    clean.view.copy(text, kept_from..text.len());
    clean.view.finish(text.len());
    clean
}

impl Clean {
    /// Puts back what stays of a sequence.
    /// `body` is the sequence after its first character.
    fn keep(&mut self, text: &str, body: Range<usize>, kept: Kept) {
        let is_mark = |at: usize, c| at == body.start && matches!(c, '[' | ']' | '^');
        let taken = text.get(body.clone()).unwrap_or_default();
        let visible = taken.char_indices().map(|(at, c)| (body.start + at, c));
        let mut visible = visible.filter(|(at, c)| !is_invisible(*c) && !is_mark(*at, *c));
        match kept {
            Kept::Nothing => {}
            Kept::Last => {
                let last = visible.next_back();
                last.into_iter().for_each(|(at, c)| self.view.put(c, at));
            }
            Kept::All => visible.for_each(|(at, c)| self.view.put(c, at)),
        }
    }
}

/// Whether a character shows nothing and is no tab or line end.
pub(super) fn is_invisible(c: char) -> bool {
    !matches!(c, '\t' | '\r' | '\n') && svc_shared::characters::is_invisible(c)
}

fn is_introducer(c: char) -> bool {
    matches!(c, ESC | '\u{90}' | '\u{98}' | '\u{9b}' | '\u{9d}' | '\u{9e}' | '\u{9f}')
}

/// A plain "select graphic rendition" sequence, the only one that may be passed on.
fn is_colour(sequence: &str) -> bool {
    sequence
        .strip_prefix("\u{1b}[")
        .and_then(|rest| rest.strip_suffix('m'))
        .is_some_and(|body| body.bytes().all(|b| matches!(b, b'0'..=b'9' | b';' | b':')))
}

/// Where the sequence beginning with `c` at `at` ends; `None` when `c` begins none.
fn escape_end(text: &str, at: usize, c: char, terminators: &mut Terminators) -> Option<usize> {
    let after = at + c.len_utf8();
    match c {
        '\u{9b}' => Some(control_end(text, after)),
        '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => {
            Some(terminators.end(text, after).unwrap_or(after))
        }
        ESC => {
            let next = text.get(after..)?.chars().next()?;
            let body = after + next.len_utf8();
            match next {
                '[' => Some(control_end(text, body)),
                ']' | 'P' | 'X' | '^' | '_' => Some(terminators.end(text, body).unwrap_or(body)),
                ' '..='/' => Some(designation_end(text, body)),
                '0'..='~' => Some(body),
                _ => Some(after),
            }
        }
        _ => None,
    }
}

/// End of a control sequence whose parameters begin at `from`.
/// Terminals execute control characters inside one and go on, so invisible characters belong to it.
fn control_end(text: &str, from: usize) -> usize {
    let mut end = from;
    for c in text.get(from..).unwrap_or_default().chars() {
        match c {
            ' '..='?' => {}
            '@'..='~' => return end + 1,
            ESC => return end,
            c if is_invisible(c) => {}
            _ => return end,
        }
        end += c.len_utf8();
    }
    end
}

/// End of an escape with intermediate characters, such as a character set choice.
fn designation_end(text: &str, from: usize) -> usize {
    let mut end = from;
    for c in text.get(from..).unwrap_or_default().chars() {
        match c {
            ' '..='/' => end += 1,
            '0'..='~' => return end + 1,
            _ => return end,
        }
    }
    end
}

/// Finds the ends of string sequences, and remembers the last answer.
/// So a flood of openings without an end costs one pass instead of one each.
#[derive(Default)]
struct Terminators {
    searched_from: usize,
    /// First terminator at or after `searched_from`: its begin and end.
    found: Option<(usize, usize)>,
    /// Everything before this offset was looked at.
    searched_to: usize,
}

impl Terminators {
    fn end(&mut self, text: &str, from: usize) -> Option<usize> {
        match self.found {
            Some((begin, end)) if self.searched_from <= from && from <= begin => return Some(end),
            None if self.searched_from <= from && from < self.searched_to => return None,
            _ => {}
        }
        self.searched_from = from;
        self.found = None;
        let bytes = text.as_bytes();
        let mut at = from;
        while let Some(&byte) = bytes.get(at) {
            let width = match (byte, bytes.get(at + 1)) {
                (b'\r' | b'\n', _) => break,
                (BEL, _) => 1,
                // `ESC \`, and U+009C in UTF-8.
                (0x1b, Some(b'\\')) | (0xc2, Some(0x9c)) => 2,
                _ => {
                    at += 1;
                    continue;
                }
            };
            self.found = Some((at, at + width));
            break;
        }
        self.searched_to = at;
        self.found.map(|(_, end)| end)
    }
}
