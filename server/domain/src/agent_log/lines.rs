//! Bytes of a growing agent log put together to lines.

use crate::tail_lines::lossy;

/// Most bytes held of one line.
pub const LINE_CAP: usize = 64 * 1024;

/// Bytes of an overlong line that are searched again with its next piece.
/// Without the overlap a text across the border would be missed.
const OVERLAP: usize = 4 * 1024;

/// A line, or a piece of one that is longer than [`LINE_CAP`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPiece<'a> {
    /// The text, without line end. Invalid bytes are U+FFFD.
    pub text: &'a str,
    /// False for the further pieces of a too long line, which cannot carry a marker.
    pub begins_line: bool,
}

/// Collects lines. Memory is bounded by twice [`LINE_CAP`], whatever is fed.
#[derive(Debug, Clone)]
pub struct LogLines {
    held: Vec<u8>,
    begins_line: bool,
    at_start: bool,
}

impl Default for LogLines {
    fn default() -> Self {
        Self { held: Vec::new(), begins_line: true, at_start: true }
    }
}

impl LogLines {
    /// At the first byte of a log; also for one that was truncated or replaced.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes and hands out the lines they complete.
    pub fn feed(&mut self, chunk: &[u8], mut each: impl FnMut(LogPiece<'_>)) {
        let mut rest = chunk;
        while !rest.is_empty() {
            let (body, ends) = match memchr::memchr(b'\n', rest) {
                Some(at) => {
                    let (body, after) = rest.split_at(at);
                    rest = after.get(1..).unwrap_or_default();
                    (body, true)
                }
                None => (std::mem::take(&mut rest), false),
            };
            let mut body = self.skip_nuls(body);
            if ends && self.held.is_empty() && body.len() <= LINE_CAP {
                // All of it is here: nothing is copied.
                self.hand_out(body, &mut each);
                self.begins_line = true;
                continue;
            }
            while self.held.len() + body.len() > LINE_CAP {
                let (now, later) = body.split_at((LINE_CAP - self.held.len()).min(body.len()));
                self.held.extend_from_slice(now);
                body = later;
                self.hand_out_held(&mut each);
                self.begins_line = false;
                self.held.drain(..self.held.len().saturating_sub(OVERLAP));
            }
            self.held.extend_from_slice(body);
            if ends {
                self.end_line(&mut each);
            }
        }
    }

    /// Whether the end of a line is still to come.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.held.is_empty()
    }

    /// The last line of a log that nobody writes any more, should its end be missing.
    pub fn finish(&mut self, mut each: impl FnMut(LogPiece<'_>)) {
        if !self.held.is_empty() {
            self.end_line(&mut each);
        }
    }

    /// Skips NUL bytes. A log truncated under its writer can begin with a hole.
    fn skip_nuls<'b>(&self, body: &'b [u8]) -> &'b [u8] {
        if !self.held.is_empty() || !self.begins_line {
            return body;
        }
        let nuls = body.iter().take_while(|b| **b == 0).count();
        body.get(nuls..).unwrap_or_default()
    }

    fn end_line(&mut self, each: &mut impl FnMut(LogPiece<'_>)) {
        self.hand_out_held(each);
        self.held.clear();
        self.begins_line = true;
    }

    fn hand_out_held(&mut self, each: &mut impl FnMut(LogPiece<'_>)) {
        let held = std::mem::take(&mut self.held);
        self.hand_out(&held, each);
        self.held = held;
    }

    fn hand_out(&mut self, mut line: &[u8], each: &mut impl FnMut(LogPiece<'_>)) {
        if self.at_start {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
            self.at_start = false;
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        each(LogPiece { text: &lossy(line), begins_line: self.begins_line });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn collect(chunks: &[&[u8]]) -> Vec<(String, bool)> {
        let mut lines = LogLines::new();
        let mut out = Vec::new();
        for chunk in chunks {
            lines.feed(chunk, |piece| out.push((piece.text.to_owned(), piece.begins_line)));
        }
        out
    }

    #[test]
    fn f35_line_ends_nul_bytes_and_a_byte_order_mark_are_taken_off() {
        let whole = collect(&[b"\xef\xbb\xbfone\r\n\0\0\0two\n\nthree \xff\n"]);
        let texts: Vec<_> = whole.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(texts, ["one", "two", "", "three \u{fffd}"]);
    }

    #[test]
    fn a_line_split_over_writes_is_one_line() {
        let split = collect(&[b"\0", b"\0one \xf0\x9f", b"\x9a\x80 t", b"wo\r", b"\nth"]);
        assert_eq!(split, [("one 🚀 two".to_owned(), true)]);
    }

    #[test]
    fn the_last_line_of_a_finished_log_needs_no_line_end() {
        let mut lines = LogLines::new();
        let mut last = Vec::new();
        lines.feed(b"one\ntwo", |_| {});
        lines.finish(|piece| last.push(piece.text.to_owned()));
        lines.finish(|piece| last.push(piece.text.to_owned()));
        assert_eq!(last, ["two"]);
    }

    #[test]
    fn f58_a_giant_line_is_scanned_in_overlapping_pieces_of_bounded_size() {
        let needle = "Workspace not trusted";
        for before in [0, LINE_CAP - 10, 2 * LINE_CAP - 5_000, 300_000] {
            let giant = format!("{}{needle}{}\nafter\n", "x".repeat(before), "y".repeat(200_000));
            let mut lines = LogLines::new();
            let mut found = false;
            let mut after = None;
            for chunk in giant.as_bytes().chunks(100_000) {
                lines.feed(chunk, |piece| {
                    assert!(piece.text.len() <= LINE_CAP);
                    found |= piece.text.contains(needle);
                    after = Some((piece.text.to_owned(), piece.begins_line));
                });
                assert!(lines.held.capacity() <= 2 * LINE_CAP);
            }
            assert!(found, "after {before} bytes");
            assert_eq!(after, Some(("after".to_owned(), true)));
        }
    }

    #[test]
    fn a_hole_of_nul_bytes_before_a_line_does_not_hide_it() {
        let mut log = vec![0; 300_000];
        log.extend(b"2026 marker\n");
        assert_eq!(collect(&[&log]), [("2026 marker".to_owned(), true)]);
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_where_the_chunks_were_cut(
            log in prop::collection::vec(
                prop_oneof![any::<u8>(), Just(b'\n'), Just(0), Just(b'\r')], 0..200),
            at: prop::sample::Index,
        ) {
            let (head, tail) = log.split_at(at.index(log.len() + 1));
            prop_assert_eq!(collect(&[head, tail]), collect(&[&log]));
            let bytes: Vec<&[u8]> = log.chunks(1).collect();
            prop_assert_eq!(collect(&bytes), collect(&[&log]));
        }
    }
}
