//! Takes identifiers and secrets out of text that leaves the service (`command-line` §12.2).
//!
//! Order: terminal escapes out, invisible characters out, match on what is left, mask. What is
//! matched is also the text with its percent-encoding and backslash escapes undone, up to three
//! times, and mapped back. Masking too much is acceptable, masking too little is not. Linear in
//! the length of the text. Leaves alone: where lines end (`tail_lines`), rows of a terminal.

mod decode;
mod escape;
mod key_value;
mod pem;
mod rules;
#[cfg(test)]
mod tests;
mod view;

use std::borrow::Cow;

use pem::Pem;
pub(crate) use rules::pattern;
use view::View;

/// What a secret becomes.
pub const MASK: &str = "<redacted>";

/// How often encodings are undone: percent-encoded JSON inside a JSON string is three.
const DEPTH: usize = 3;

/// What happens to colour sequences (`logs.strip_ansi_in_stream`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colour {
    /// All escape sequences go.
    #[default]
    Strip,
    /// Colour stays on lines where it touches nothing that is masked; other sequences go.
    Keep,
}

/// Redacts a stream line by line, with the memory that masking over several lines needs.
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
    pub fn line(&mut self, raw: &str) -> String {
        let clean = escape::clean(raw);
        let spans = merged(self.spans(clean.view.text()));
        match self.colour {
            Colour::Strip => masked(clean.view.text(), &spans, &[]),
            Colour::Keep => {
                // A sequence inside a secret would have to be dropped or would show where the
                // secret was: such a line falls back to its plain form.
                let inside = |at: usize| spans.iter().any(|s| s.start < at && at < s.end);
                let provable = !clean.colours.iter().any(|(at, _)| inside(*at));
                let colours = if provable { clean.colours.as_slice() } else { &[] };
                masked(clean.view.text(), &spans, colours)
            }
        }
    }

    /// What is to be masked in a clean line.
    fn spans(&mut self, clean: &str) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut pem = self.pem.line(clean);
        rules::find(clean, &mut spans);
        pem.find(clean, &mut spans);

        let mut levels: Vec<View> = Vec::new();
        while levels.len() < DEPTH {
            let Some(view) = decode::decode(levels.last().map_or(clean, View::text)) else {
                break;
            };
            levels.push(view);
            let Some(text) = levels.last().map(View::text) else {
                break;
            };
            let origin = |at: usize| levels.iter().rev().fold(at, |at, view| view.source(at));
            let mut found = Vec::new();
            rules::find(text, &mut found);
            pem.find(text, &mut found);
            spans.extend(found.iter().map(|span| span.mapped(origin)));

            if text.chars().any(escape::is_invisible) {
                let inner = escape::clean(text).view;
                let mut found = Vec::new();
                rules::find(inner.text(), &mut found);
                spans.extend(found.iter().map(|span| span.mapped(|at| origin(inner.source(at)))));
            }
        }
        self.pem = pem.after();
        spans
    }
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

/// A text without terminal escape sequences and invisible characters, secrets untouched.
#[must_use]
pub fn strip_ansi(raw: &str) -> Cow<'_, str> {
    if raw.chars().any(escape::is_invisible) {
        Cow::Owned(escape::clean(raw).view.into_text())
    } else {
        Cow::Borrowed(raw)
    }
}

/// A piece of text to mask, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    start: usize,
    end: usize,
    /// What stays in front of the mask: the prefix of an identifier, or nothing.
    label: &'static str,
}

impl Span {
    fn secret(start: usize, end: usize) -> Self {
        Self { start, end, label: "" }
    }

    fn mapped(self, origin: impl Fn(usize) -> usize) -> Self {
        Self { start: origin(self.start), end: origin(self.end), ..self }
    }
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

/// The text with its spans masked and `colours` put back at their offsets, none of which may be
/// inside a span.
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
