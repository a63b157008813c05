//! Masks identifiers and secrets in outgoing text (`command-line` §12.2).
//!
//! Terminal escapes and invisible characters are removed first, then the rest is matched and
//! masked. An escape sequence can take the first characters of a secret with it: such a line is
//! also matched with them. Percent-encoding and backslash escapes are undone for matching, up to three times, and
//! matches are mapped back. Masking too much is acceptable, masking too little is not. Linear in
//! the length of the text. `tail_lines` decides where lines end.

mod decode;
mod escape;
mod forms;
mod hints;
mod key_value;
mod pattern;
mod pem;
mod rule_set;
mod rules;
pub mod screen;
mod span;
#[cfg(test)]
mod tests;
mod view;

use std::borrow::Cow;

use crate::words::Kinds;
use escape::{Clean, Kept};
use hints::{Hints, Scan};
pub(crate) use pattern::pattern;
use pem::{Pem, PemLine};
use span::Span;
use view::View;

/// What a secret becomes.
pub const MASK: &str = "<redacted>";

/// How often encodings are undone. Percent-encoded JSON in a JSON string needs 3.
const DEPTH: usize = 3;

/// What happens to colour sequences (`logs.strip_ansi_in_stream`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colour {
    /// All escape sequences go.
    #[default]
    Strip,
    /// Keeps colour on lines where nothing near it is masked; other sequences go.
    Keep,
}

/// Redacts a stream line by line.
/// It remembers what masking across several lines needs.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    colour: Colour,
    pem: Pem,
}

impl Redactor {
    /// A redactor at the begin of a stream.
    #[must_use]
    pub fn new(colour: Colour) -> Self {
        Self { colour, pem: Pem::default() }
    }

    /// One whole line, without its line end, fit to leave the service.
    ///
    /// Most lines hold nothing that could begin anything: they are looked through once and passed
    /// on as they are.
    pub fn line<'r>(&mut self, raw: &'r str) -> Cow<'r, str> {
        let scan = Scan::of(raw);
        if hides_something(raw, scan.kinds) {
            return Cow::Owned(self.cleaned(raw, Scan::of));
        }
        let nothing = scan.rules == Hints::NONE && !scan.kinds.may_be_encoded();
        if nothing && self.pem.line(raw).is_ordinary() {
            return Cow::Borrowed(raw);
        }
        let mut pem = self.pem.line(raw);
        let spans = merged(find(raw, scan, Scan::of, &mut pem));
        self.pem = pem.after();
        if spans.is_empty() { Cow::Borrowed(raw) } else { Cow::Owned(masked(raw, &spans, &[])) }
    }

    /// The same as [`Redactor::line`] with every rule asked. Tests compare the two.
    #[cfg(any(test, fuzzing))]
    #[must_use]
    pub fn line_by_every_rule(&mut self, raw: &str) -> String {
        self.cleaned(raw, |_| Scan::ALL)
    }

    /// A line that may hold escape sequences or invisible characters.
    fn cleaned(&mut self, raw: &str, look: fn(&str) -> Scan) -> String {
        let clean = escape::clean(raw, Kept::Nothing);
        let text = clean.view.text();
        let mut pem = self.pem.line(text);
        let mut spans = find(text, look(text), look, &mut pem);
        for other in other_forms(raw, &clean) {
            let found = find(other.text(), look(other.text()), look, &mut pem);
            let shown = |at| clean.view.derived(other.source(at));
            let found = found.iter().map(|span| span.mapped(shown));
            // What the sequence hides altogether needs no mask.
            spans.extend(found.filter(|span| span.start < span.end));
        }
        self.pem = pem.after();
        let spans = merged(spans);
        match self.colour {
            Colour::Strip => masked(text, &spans, &[]),
            Colour::Keep => {
                // A sequence inside a secret would have to be dropped or would show where the
                // secret was: such a line falls back to its plain form.
                let inside = |at: usize| spans.iter().any(|s| s.start < at && at < s.end);
                let provable = !clean.colours.iter().any(|(at, _)| inside(*at));
                let colours = if provable { clean.colours.as_slice() } else { &[] };
                masked(text, &spans, colours)
            }
        }
    }
}

/// What is to be masked in a line without escape sequences.
/// `scan` is true for it.
fn find(clean: &str, scan: Scan, look: fn(&str) -> Scan, pem: &mut PemLine) -> Vec<Span> {
    let mut spans = Vec::new();
    rules::find(clean, scan.rules, &mut spans);
    pem.find(clean, scan.rules, &mut spans);
    let mut levels: Vec<View> = Vec::new();
    let depth = if scan.kinds.may_be_encoded() { DEPTH } else { 0 };
    while levels.len() < depth {
        let Some(view) = decode::decode(levels.last().map_or(clean, View::text)) else {
            break;
        };
        levels.push(view);
        let Some(text) = levels.last().map(View::text) else {
            break;
        };
        let origin = |at: usize| levels.iter().rev().fold(at, |at, view| view.source(at));
        let mut found = Vec::new();
        let scan = look(text);
        rules::find(text, scan.rules, &mut found);
        pem.find(text, scan.rules, &mut found);
        spans.extend(found.iter().map(|span| span.mapped(origin)));
        if hides_something(text, scan.kinds) {
            let inner = escape::clean(text, Kept::Nothing);
            for view in other_forms(text, &inner).into_iter().chain([inner.view]) {
                let mut found = Vec::new();
                let scan = look(view.text());
                rules::find(view.text(), scan.rules, &mut found);
                pem.find(view.text(), scan.rules, &mut found);
                spans.extend(found.iter().map(|span| span.mapped(|at| origin(view.source(at)))));
            }
        }
    }
    spans
}

/// Other readings of a text whose escape sequences may have eaten a secret.
fn other_forms(text: &str, clean: &Clean) -> Vec<View> {
    let forms = if clean.took_text { &[Kept::Last, Kept::All][..] } else { &[] };
    forms.iter().map(|kept| escape::clean(text, *kept).view).collect()
}

/// A text of any number of lines, fit to leave the service. Line ends stay.
///
/// For text that is complete: an error detail, a command's output. Streams keep a [`Redactor`].
#[must_use]
pub fn redact_text(raw: &str) -> String {
    let mut redactor = Redactor::default();
    let mut out = String::with_capacity(raw.len());
    for line in raw.split_inclusive('\n') {
        let body = line.strip_suffix('\n');
        out.push_str(&redactor.line(body.unwrap_or(line)));
        if body.is_some() {
            out.push('\n');
        }
    }
    out
}

/// Removes escape sequences and invisible characters. Secrets stay.
#[must_use]
pub fn strip_ansi(raw: &str) -> Cow<'_, str> {
    if hides_something(raw, Kinds::of(raw)) {
        Cow::Owned(escape::clean(raw, Kept::Nothing).view.into_text())
    } else {
        Cow::Borrowed(raw)
    }
}

/// Whether a text of these kinds has an escape sequence or an invisible character.
fn hides_something(text: &str, kinds: Kinds) -> bool {
    kinds.has_control() || kinds.has_wide() && text.chars().any(escape::is_invisible)
}

/// Overlapping spans as one, in order.
fn merged(mut spans: Vec<Span>) -> Vec<Span> {
    // The longest label first, so that an identifier keeps its prefix beside an equal start.
    spans.sort_by_key(|span| (span.start, usize::MAX - span.label.len()));
    let mut out: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match out.last_mut() {
            Some(last) if span.start < last.end => last.end = last.end.max(span.end),
            Some(_) | None => out.push(span),
        }
    }
    out
}

/// The text with its spans masked and `colours` put back at their offsets.
/// No offset may be inside a span.
fn masked(text: &str, spans: &[Span], colours: &[(usize, String)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut colours = colours.iter().peekable();
    let mut plain = |out: &mut String, from: usize, to: usize| {
        let mut from = from;
        while let Some((at, sequence)) = colours.next_if(|(at, _)| *at <= to) {
            out.push_str(text.get(from..*at).unwrap_or_default());
            out.push_str(sequence);
            from = *at;
        }
        out.push_str(text.get(from..to).unwrap_or_default());
    };
    let mut at = 0;
    for span in spans {
        plain(&mut out, at, span.start);
        out.push_str(span.label);
        out.push_str(MASK);
        at = span.end;
    }
    plain(&mut out, at, text.len());
    out
}
