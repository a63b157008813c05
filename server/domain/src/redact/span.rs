//! A place in a text that is masked.

/// A piece of text to mask, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
    /// What stays in front of the mask: the prefix of an identifier, or nothing.
    pub(super) label: &'static str,
}

impl Span {
    pub(super) fn secret(start: usize, end: usize) -> Self {
        Self { start, end, label: "" }
    }

    pub(super) fn mapped(self, origin: impl Fn(usize) -> usize) -> Self {
        Self { start: origin(self.start), end: origin(self.end), ..self }
    }
}
