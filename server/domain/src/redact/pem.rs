//! Masks private keys over any number of lines.
//!
//! In PEM form from BEGIN to END, and in the form of `PuTTY`.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::hints::Hints;
use super::pattern::pattern;
use super::rule_set::Rules;
use super::span::Span;

/// Most lines of a block without an END.
/// A stray BEGIN must not mask a log for ever. A 16,384-bit key has about 200 lines.
const BLOCK_LINES: u16 = 1_000;

/// Lengths of the full body lines that common writers make.
const BODY_LINE: std::ops::RangeInclusive<usize> = 60..=80;

static MARK: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"-----(BEGIN|END)[A-Z0-9 +]*PRIVATE[ +]KEY(?:[ +]BLOCK)?-----"));

/// Where blocks begin and end in a text.
/// Each mark with its bytes, and whether it is a BEGIN.
pub(super) fn marks(text: &str) -> impl Iterator<Item = (Range<usize>, bool)> {
    MARK.captures_iter(text).filter_map(|mark| {
        let (whole, kind) = (mark.get(0)?, mark.get(1)?);
        Some((whole.range(), kind.as_str() == "BEGIN"))
    })
}

/// How many lines of the private part follow in a `PuTTY` key file.
static PUTTY: LazyLock<Regex> = LazyLock::new(|| pattern(r"Private-Lines: *([0-9]{1,9})"));

/// What earlier lines said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Pem {
    /// Outside of a block.
    #[default]
    Outside,
    /// After a BEGIN, for at most this many lines more.
    Block { left: u16 },
    /// After a line that looks like the inside of a block whose BEGIN was not seen.
    /// A reader can join a stream in the middle.
    Body,
}

impl Pem {
    /// Whether the lines before say nothing about the next one.
    pub fn is_outside(self) -> bool {
        self == Self::Outside
    }

    /// The same outside of a block.
    pub fn without_block(self) -> Self {
        match self {
            Self::Block { .. } => Self::Outside,
            Self::Outside | Self::Body => self,
        }
    }

    /// Begins a line.
    pub fn line(self, clean: &str) -> PemLine {
        PemLine {
            before: self,
            looks_like_body: self.continues_with(clean),
            ends: None,
            follow: None,
        }
    }

    fn continues_with(self, clean: &str) -> bool {
        let body = clean.trim();
        let base64 = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
        let may_be_full = BODY_LINE.contains(&body.len());
        if body.is_empty() || !(may_be_full || self == Self::Body) || !body.bytes().all(base64) {
            return false;
        }
        let has = |class: fn(&u8) -> bool| body.as_bytes().iter().any(class);
        // All three classes: neither a ruler nor a checksum in hexadecimal has them.
        let full_line = may_be_full
            && has(u8::is_ascii_uppercase)
            && has(u8::is_ascii_lowercase)
            && has(u8::is_ascii_digit);
        full_line || self == Self::Body
    }
}

/// One line in progress; asked once for each form the line is read in.
pub(super) struct PemLine {
    before: Pem,
    looks_like_body: bool,
    /// Whether a block is open at the end of the line, as far as any form had a mark.
    ends: Option<bool>,
    /// How many lines of a private part follow.
    follow: Option<u16>,
}

impl PemLine {
    /// Whether nothing in the line belongs to a block, as long as it holds no mark.
    pub fn is_ordinary(&self) -> bool {
        self.before.is_outside() && !self.looks_like_body
    }

    /// Finds what belongs to a block in one form of the line, of which `hints` is true.
    pub fn find(&mut self, text: &str, hints: Hints, out: &mut Vec<Span>) {
        let mut open = match self.before {
            Pem::Block { .. } => Some(0),
            Pem::Outside | Pem::Body => None,
        };
        let mut seen = false;
        if hints.name(Rules::PEM)
            && let Some(count) = PUTTY.captures(text).and_then(|found| found.get(1))
        {
            let count = count.as_str().parse().unwrap_or(BLOCK_LINES).min(BLOCK_LINES);
            self.follow = self.follow.max(Some(count));
        }
        let marks = hints.name(Rules::PEM).then(|| marks(text));
        for (mark, begins) in marks.into_iter().flatten() {
            seen = true;
            if begins {
                open = open.or(Some(mark.start));
            } else {
                // An END alone closes a block that was joined in the middle.
                let start = open.take().unwrap_or(mark.start);
                out.push(Span::secret(start, mark.end));
            }
        }
        if let Some(start) = open {
            out.push(Span::secret(start, text.len()));
        } else if self.looks_like_body && !seen {
            out.push(Span::secret(0, text.len()));
        }
        if seen {
            // When the forms disagree the careful answer wins.
            self.ends = Some(self.ends.unwrap_or(false) || open.is_some());
        }
    }

    /// What the next line is to know.
    pub fn after(self) -> Pem {
        if let Some(more) = self.follow.and_then(|count| count.checked_sub(1))
            && self.ends != Some(true)
        {
            return Pem::Block { left: more };
        }
        match (self.ends, self.before) {
            (Some(true), _) => Pem::Block { left: BLOCK_LINES },
            (Some(false), _) => Pem::Outside,
            (None, Pem::Block { left }) => match left.checked_sub(1) {
                Some(left) => Pem::Block { left },
                None => Pem::Outside,
            },
            (None, Pem::Outside | Pem::Body) if self.looks_like_body => Pem::Body,
            (None, Pem::Outside | Pem::Body) => Pem::Outside,
        }
    }
}
