//! Where requests begin and end on a connection, read strictly (H10).
//!
//! Two readers that disagree about the length of a message can be made to see different requests.
//! The HTTP library is lenient in places (bare line feeds; `Content-Length` beside
//! `Transfer-Encoding`), so bytes pass here first: a head goes on only when it is complete and
//! unambiguous, a body only in the framing its head announced. After a fault nothing goes on.

use crate::layers::limits::{HEADER_BLOCK, TARGET};
use bytes::{Buf as _, Bytes, BytesMut};

/// Largest head, bytes.
///
/// Target and header block at their limits, and room for the rest of the first line, so that a
/// little too much still gets a proper reply.
const HEAD: usize = TARGET + HEADER_BLOCK + 8 * 1024;
/// Most header lines that go on; over the limit but below this gets a proper reply.
const LINES: usize = 400;
/// Longest size of a chunk, hexadecimal digits.
const SIZE_DIGITS: usize = 16;
/// Longest line of a chunk size, and longest block of trailers, bytes.
const CHUNK_LINE: usize = 1024;
const TRAILERS: usize = 4 * 1024;

/// Why nothing more is read from a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// No request, or one that two readers could read differently.
    Malformed,
    /// A head beyond every limit.
    HeadTooLarge,
    /// A head that did not arrive in time.
    TooSlow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    Sized {
        left: u64,
    },
    ChunkSize,
    ChunkData {
        left: u64,
    },
    ChunkEnd,
    Trailers {
        left: usize,
    },
    /// The connection changed its protocol.
    Through,
}

/// Reads one connection.
#[derive(Debug)]
pub(super) struct Framing {
    state: State,
    /// Bytes that cannot be judged yet.
    held: BytesMut,
    /// How far `held` was searched for its end.
    searched: usize,
    requests: u64,
}

impl Framing {
    pub(super) fn new() -> Self {
        Self { state: State::Head, held: BytesMut::new(), searched: 0, requests: 0 }
    }

    /// Takes bytes from the peer and puts those that may go on into `onward`.
    ///
    /// # Errors
    /// The fault; what was put into `onward` before it is still good.
    pub(super) fn feed(&mut self, input: &[u8], onward: &mut BytesMut) -> Result<(), Fault> {
        self.held.extend_from_slice(input);
        while !self.held.is_empty() {
            let is_stuck = match self.state {
                State::Head => !self.head(onward)?,
                State::Sized { left } => {
                    let left = self.pass(left, onward);
                    self.state = if left == 0 { State::Head } else { State::Sized { left } };
                    false
                }
                State::ChunkSize => !self.chunk_size(onward)?,
                State::ChunkData { left } => {
                    let left = self.pass(left, onward);
                    self.state =
                        if left == 0 { State::ChunkEnd } else { State::ChunkData { left } };
                    false
                }
                State::ChunkEnd => !self.chunk_end(onward)?,
                State::Trailers { left } => !self.trailers(left, onward)?,
                State::Through => {
                    onward.extend_from_slice(&self.held.split());
                    false
                }
            };
            if is_stuck {
                break;
            }
        }
        Ok(())
    }

    /// The connection speaks another protocol from here on.
    pub(super) fn pass_through(&mut self, onward: &mut BytesMut) {
        self.state = State::Through;
        onward.extend_from_slice(&self.held.split());
    }

    /// Requests whose heads went on.
    pub(super) fn requests(&self) -> u64 {
        self.requests
    }

    /// Inside the body of a request.
    pub(super) fn is_inside_body(&self) -> bool {
        !matches!(self.state, State::Head | State::Through)
    }

    /// A head has begun and is not complete.
    pub(super) fn is_inside_head(&self) -> bool {
        self.state == State::Head && !self.held.is_empty()
    }

    /// Between two requests.
    pub(super) fn is_between(&self) -> bool {
        self.state == State::Head && self.held.is_empty()
    }

    fn pass(&mut self, left: u64, onward: &mut BytesMut) -> u64 {
        let part = usize::try_from(left).unwrap_or(usize::MAX).min(self.held.len());
        onward.extend_from_slice(&self.held.split_to(part));
        left - part as u64
    }

    /// Whether a head was complete.
    fn head(&mut self, onward: &mut BytesMut) -> Result<bool, Fault> {
        // An empty line before a request is tolerated by the protocol; it need not go on.
        while self.held.starts_with(b"\r\n") {
            self.held.advance(2);
            self.searched = 0;
        }
        let Some(end) = self.end_of_head()? else {
            return if self.held.len() > HEAD { Err(Fault::HeadTooLarge) } else { Ok(false) };
        };
        if end > HEAD {
            return Err(Fault::HeadTooLarge);
        }
        let head = self.held.split_to(end).freeze();
        self.searched = 0;
        self.state = body_of(&head)?;
        self.requests += 1;
        onward.extend_from_slice(&head);
        Ok(true)
    }

    /// Where the head ends, looking only at what was not looked at before.
    fn end_of_head(&mut self) -> Result<Option<usize>, Fault> {
        let start = self.searched;
        self.searched = self.held.len();
        let mut before = start.checked_sub(1).and_then(|at| self.held.get(at)).copied();
        for (at, &byte) in self.held.iter().enumerate().skip(start) {
            check_line_end(before, byte)?;
            if byte == b'\n' && self.held.get(..=at).is_some_and(|head| head.ends_with(b"\r\n\r\n"))
            {
                return Ok(Some(at + 1));
            }
            before = Some(byte);
        }
        Ok(None)
    }

    /// Whether the line of a chunk's size was complete.
    fn chunk_size(&mut self, onward: &mut BytesMut) -> Result<bool, Fault> {
        let Some(line) = self.line(CHUNK_LINE, onward)? else {
            return Ok(false);
        };
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let (size, rest) = line.split_at(digits);
        let is_extension = rest.trim_ascii_start().starts_with(b";") && rest.is_ascii();
        if digits == 0 || digits > SIZE_DIGITS || !(rest.is_empty() || is_extension) {
            return Err(Fault::Malformed);
        }
        let size = std::str::from_utf8(size).map_err(|_| Fault::Malformed)?;
        let left = u64::from_str_radix(size, 16).map_err(|_| Fault::Malformed)?;
        self.state =
            if left == 0 { State::Trailers { left: TRAILERS } } else { State::ChunkData { left } };
        Ok(true)
    }

    fn chunk_end(&mut self, onward: &mut BytesMut) -> Result<bool, Fault> {
        match self.line(0, onward)? {
            Some(_) => {
                self.state = State::ChunkSize;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    fn trailers(&mut self, left: usize, onward: &mut BytesMut) -> Result<bool, Fault> {
        let Some(line) = self.line(left, onward)? else {
            return Ok(false);
        };
        if line.is_empty() {
            self.state = State::Head;
        } else {
            check_field(&line)?;
            let left = left.checked_sub(line.len() + 2).ok_or(Fault::Malformed)?;
            self.state = State::Trailers { left };
        }
        Ok(true)
    }

    /// A line of at most `longest` bytes, without its end; it goes on.
    fn line(&mut self, longest: usize, onward: &mut BytesMut) -> Result<Option<Bytes>, Fault> {
        match end_of_line(&self.held)? {
            Some(end) if end <= longest => {
                let mut line = self.held.split_to(end + 2).freeze();
                onward.extend_from_slice(&line);
                line.truncate(end);
                Ok(Some(line))
            }
            Some(_) => Err(Fault::Malformed),
            // The carriage return may be here without its line feed.
            None if self.held.len() > longest + 1 => Err(Fault::Malformed),
            None => Ok(None),
        }
    }
}

/// Refuses a lone line feed or carriage return, and NUL.
fn check_line_end(before: Option<u8>, byte: u8) -> Result<(), Fault> {
    let is_bare = (byte == b'\n') != (before == Some(b'\r'));
    if is_bare || byte == 0 { Err(Fault::Malformed) } else { Ok(()) }
}

/// Where the first line ends, if it does.
fn end_of_line(bytes: &[u8]) -> Result<Option<usize>, Fault> {
    let mut before = None;
    for (at, &byte) in bytes.iter().enumerate() {
        check_line_end(before, byte)?;
        if byte == b'\n' {
            return Ok(at.checked_sub(1));
        }
        before = Some(byte);
    }
    Ok(None)
}

/// The framing a head announces.
fn body_of(head: &[u8]) -> Result<State, Fault> {
    let mut lines =
        head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let first = lines.next().unwrap_or_default();
    let is_http_10 = first.ends_with(b" HTTP/1.0");
    let mut length = None;
    let mut is_chunked = false;
    for (count, line) in lines.take_while(|line| !line.is_empty()).enumerate() {
        if count >= LINES {
            return Err(Fault::HeadTooLarge);
        }
        let (name, value) = check_field(line)?;
        if name.eq_ignore_ascii_case(b"content-length") {
            if length.is_some() {
                return Err(Fault::Malformed);
            }
            length = Some(plain_number(value)?);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if is_chunked || is_http_10 || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Fault::Malformed);
            }
            is_chunked = true;
        }
    }
    match (length, is_chunked) {
        (Some(_), true) => Err(Fault::Malformed),
        (None, true) => Ok(State::ChunkSize),
        (None | Some(0), false) => Ok(State::Head),
        (Some(left), false) => Ok(State::Sized { left }),
    }
}

/// Name and value of a header line.
///
/// A folded line begins with a blank, and a blank before the colon makes a name that some readers
/// see and others do not: neither is a name.
fn check_field(line: &[u8]) -> Result<(&[u8], &[u8]), Fault> {
    let colon = line.iter().position(|byte| *byte == b':').ok_or(Fault::Malformed)?;
    let (name, value) = line.split_at(colon);
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    if name.is_empty() || !name.iter().all(is_token) {
        return Err(Fault::Malformed);
    }
    Ok((name, value.get(1..).unwrap_or_default().trim_ascii()))
}

fn plain_number(value: &[u8]) -> Result<u64, Fault> {
    let is_plain = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(value).ok().filter(|_| is_plain).ok_or(Fault::Malformed)?;
    text.parse().map_err(|_| Fault::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

    fn run(parts: &[&[u8]]) -> (Result<(), Fault>, String) {
        let mut framing = Framing::new();
        let mut onward = BytesMut::new();
        let mut result = Ok(());
        for part in parts {
            result = framing.feed(part, &mut onward);
            if result.is_err() {
                break;
            }
        }
        (result, String::from_utf8_lossy(&onward).into_owned())
    }

    #[test]
    fn proper_requests_go_on_unchanged() {
        let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
        let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n\
                       5\r\nhello\r\nA;x=\"y\"\r\n0123456789\r\n0\r\nX-Sum: 1\r\n\r\n";
        for request in [GET, post, chunked] {
            let twice = format!("{request}{request}");
            assert_eq!(run(&[twice.as_bytes()]), (Ok(()), twice.clone()), "{request}");
        }
    }

    #[test]
    fn ambiguous_framing_is_a_fault_and_nothing_after_it_goes_on() {
        let heads = [
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\r\nContent-Length: 5",
            "Content-Length: 5\r\nContent-Length: 6",
            "Content-Length: 5\r\ncontent-length: 5",
            "Content-Length: 5, 5",
            "Content-Length: +5",
            "Content-Length: -5",
            "Content-Length: 0x5",
            "Content-Length: 5 5",
            "Content-Length:",
            "Content-Length: 99999999999999999999",
            "Content-Length : 5",
            " Content-Length: 5",
            "X: a\r\n b",
            "X: a\r\n\tTransfer-Encoding: chunked",
            "Transfer-Encoding: gzip",
            "Transfer-Encoding: gzip, chunked",
            "Transfer-Encoding: chunked, chunked",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
            "Transfer-Encoding: \u{b}chunked",
            "Transfer-Encoding",
            "X: a\nContent-Length: 5",
            "X: a\rContent-Length: 5",
            "X: a\u{0}b",
            ": a",
        ];
        for head in heads {
            let raw = format!("POST / HTTP/1.1\r\nHost: a\r\n{head}\r\n\r\nhello{GET}");
            let (result, onward) = run(&[raw.as_bytes()]);
            assert_eq!((result, onward.as_str()), (Err(Fault::Malformed), ""), "{head:?}");
        }
        let old = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
        assert_eq!(run(&[old.as_bytes()]).0, Err(Fault::Malformed));
    }

    #[test]
    fn bare_line_feeds_are_no_line_ends() {
        for raw in [
            "GET / HTTP/1.1\nHost: a\n\n",
            "GET / HTTP/1.1\r\nHost: a\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\n",
            "\nGET / HTTP/1.1\r\n\r\n",
        ] {
            assert_eq!(run(&[raw.as_bytes()]), (Err(Fault::Malformed), String::new()), "{raw:?}");
        }
    }

    #[test]
    fn chunks_are_read_strictly() {
        let head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        for body in [
            "5\nhello\r\n0\r\n\r\n",
            "5\r\nhelloX\r\n0\r\n\r\n",
            "5\r\nhello\n0\r\n\r\n",
            "+5\r\nhello\r\n",
            "0x5\r\nhello\r\n",
            " 5\r\nhello\r\n",
            "5 5\r\nhello\r\n",
            "\r\nhello\r\n",
            "00000000000000005\r\nhello\r\n",
            "fffffffffffffffff\r\n",
            "g\r\n",
            "0\r\n Folded: 1\r\n\r\n",
            "0\r\nX: 1\n\r\n",
        ] {
            let raw = format!("{head}{body}{GET}");
            let (result, onward) = run(&[raw.as_bytes()]);
            assert_eq!(result, Err(Fault::Malformed), "{body:?}");
            assert!(!onward.contains("GET"), "{body:?}");
        }
    }

    #[test]
    fn what_is_good_before_a_fault_still_goes_on() {
        let raw = format!("{GET}GET / HTTP/1.1\nHost: a\n\n");
        assert_eq!(run(&[raw.as_bytes()]), (Err(Fault::Malformed), GET.to_owned()));
    }

    #[test]
    fn a_head_without_end_is_too_large() {
        let raw = format!("GET / HTTP/1.1\r\nX: {}", "a".repeat(HEAD));
        assert_eq!(run(&[raw.as_bytes()]).0, Err(Fault::HeadTooLarge));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: a\r\n".repeat(LINES + 1));
        assert_eq!(run(&[many.as_bytes()]).0, Err(Fault::HeadTooLarge));
    }

    #[test]
    fn another_protocol_goes_through_untouched() {
        let mut framing = Framing::new();
        let mut onward = BytesMut::new();
        framing.feed(GET.as_bytes(), &mut onward).unwrap();
        framing.feed(b"\x81", &mut onward).unwrap();
        framing.pass_through(&mut onward);
        framing.feed(b"\x85\n\0\n", &mut onward).unwrap();
        assert!(onward.ends_with(b"\x81\x85\n\0\n"));
    }

    fn raw() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just(GET.to_owned()),
            Just("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc".to_owned()),
            Just("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned()),
            Just("3\r\nabc\r\n".to_owned()),
            Just("0\r\n\r\n".to_owned()),
            Just("\n".to_owned()),
            Just("\r".to_owned()),
            "[ -~\r\n]{0,12}",
        ];
        prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn it_reads_the_same_in_one_piece_and_byte_by_byte(raw in raw()) {
            let whole = run(&[raw.as_bytes()]);
            let bytes: Vec<&[u8]> = raw.as_bytes().chunks(1).collect();
            prop_assert_eq!(whole, run(&bytes));
        }
    }
}
