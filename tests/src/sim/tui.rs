//! Knob `tui`: what the interactive form draws, and how.

use std::path::PathBuf;

use serde::Deserialize;

/// How the interactive form draws. Times are milliseconds.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tui {
    /// Period of the spinner while a turn is open; 0 draws it once.
    pub(crate) redraw_ms: u64,
    /// Draws on the alternate screen, with mouse reports, a full frame at a time.
    pub(crate) alt_screen: bool,
    /// Adds lines of wide, combined and right-to-left characters.
    pub(crate) wide: bool,
    /// Prints numbered lines without end.
    pub(crate) storm_lines_per_s: u64,
    /// Says its new size after each resize.
    pub(crate) resize_echo: bool,
    /// Asks the terminal nothing at the start.
    pub(crate) no_queries: bool,
    /// How long the reply to a typed prompt takes; `null` leaves the turn open.
    pub(crate) reply_ms: Option<u64>,
    /// Draws only what the scripts below print: no banner, prompt or status line.
    pub(crate) bare: bool,
    /// Printed as they are once the session is ready.
    pub(crate) bytes: Option<Bytes>,
    /// Writes `bytes` in pieces of this length.
    pub(crate) bytes_chunk: Option<usize>,
    /// Prints this many numbered lines once the session is ready.
    pub(crate) lines: u64,
    /// Prints whatever is written to this named pipe, as it comes.
    pub(crate) feed: Option<PathBuf>,
}

impl Default for Tui {
    fn default() -> Self {
        Self {
            redraw_ms: 100,
            alt_screen: false,
            wide: false,
            storm_lines_per_s: 0,
            resize_echo: false,
            no_queries: false,
            reply_ms: Some(300),
            bare: false,
            bytes: None,
            bytes_chunk: None,
            lines: 0,
            feed: None,
        }
    }
}

/// Bytes as text, with `\e`, `\xHH`, `\n`, `\r`, `\t`, `\a` and `\\`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl TryFrom<String> for Bytes {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.chars();
        while let Some(next) = rest.next() {
            if next != '\\' {
                bytes.extend_from_slice(next.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
            bytes.push(match rest.next() {
                Some('e') => 0x1b,
                Some('a') => 0x07,
                Some('n') => b'\n',
                Some('r') => b'\r',
                Some('t') => b'\t',
                Some('\\') => b'\\',
                Some('x') => {
                    let digits: String = rest.by_ref().take(2).collect();
                    u8::from_str_radix(&digits, 16)
                        .map_err(|_| format!("tui.bytes: \\x{digits} is not \\xHH"))?
                }
                odd => return Err(format!("tui.bytes: \\{} is unknown", odd.unwrap_or(' '))),
            });
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_text_with_escapes() {
        let read = |text: &str| Bytes::try_from(text.to_owned()).map(|bytes| bytes.0);
        assert_eq!(read("a\\e[1m\\xffé\\n"), Ok(b"a\x1b[1m\xff\xc3\xa9\n".to_vec()));
        assert!(read("\\q").is_err());
        assert!(read("\\xzz").is_err());
        assert!(read("\\").is_err());
    }
}
