//! Limits control strings (OSC, DCS, APC, PM, SOS).
//!
//! The parser would collect them without end.

/// Most bytes of one control string. The rest, up to its end, is dropped (H54).
const MOST: usize = 4 << 10;

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum At {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// Inside a string, with the bytes so far. Only an OSC ends with BEL.
    String { length: usize, is_osc: bool },
}

/// Knows where control strings begin and end, over any number of reads.
#[derive(Debug, Default)]
pub(super) struct StringLimit {
    at: At,
    dropped: u64,
}

impl StringLimit {
    /// Bytes dropped so far.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Hands on all bytes but those beyond the limit of a control string.
    pub(super) fn pass(&mut self, bytes: &[u8], mut on: impl FnMut(&[u8])) {
        let mut start = 0;
        let mut index = 0;
        while let Some(&byte) = bytes.get(index) {
            match self.at {
                At::Text => {
                    let rest = bytes.get(index..).unwrap_or_default();
                    match rest.iter().position(|byte| *byte == ESC) {
                        Some(ahead) => index = index.saturating_add(ahead),
                        None => break,
                    }
                    self.at = At::Escape;
                }
                At::Escape => {
                    self.at = match byte {
                        b']' => At::String { length: 0, is_osc: true },
                        b'P' | b'X' | b'^' | b'_' => At::String { length: 0, is_osc: false },
                        CAN | SUB => At::Text,
                        // The parser executes other controls and stays where it is.
                        0..=0x1f | 0x7f => At::Escape,
                        _ => At::Text,
                    };
                }
                At::String { length, is_osc } => {
                    let ends = matches!(byte, ESC | CAN | SUB) || (byte == BEL && is_osc);
                    if ends {
                        self.at = if byte == ESC { At::Escape } else { At::Text };
                    } else {
                        if length == MOST {
                            on(bytes.get(start..index).unwrap_or_default());
                        }
                        if length >= MOST {
                            start = index.saturating_add(1);
                            self.dropped = self.dropped.saturating_add(1);
                        }
                        self.at = At::String { length: length.saturating_add(1), is_osc };
                    }
                }
            }
            index = index.saturating_add(1);
        }
        let rest = bytes.get(start..).unwrap_or_default();
        if !rest.is_empty() {
            on(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(pieces: &[&[u8]]) -> (Vec<u8>, u64) {
        let mut limit = StringLimit::default();
        let mut out = Vec::new();
        for piece in pieces {
            limit.pass(piece, |bytes| out.extend_from_slice(bytes));
        }
        (out, limit.dropped())
    }

    #[test]
    fn h54_a_control_string_is_cut_and_what_follows_arrives() {
        for begin in [&b"\x1b]0;"[..], b"\x1bP", b"\x1b_", b"\x1b^", b"\x1bX", b"\x1b\n]"] {
            let long = [begin, &[b'x'; 9000], b"\x1b\\after"].concat();
            let (whole, dropped) = passed(&[&long]);
            assert!(dropped > 4800, "{begin:?} {dropped}");
            assert!(whole.ends_with(b"x\x1b\\after") && whole.len() < 4200);
            // However it is read.
            let single: Vec<&[u8]> = long.chunks(1).collect();
            assert_eq!(passed(&single), (whole.clone(), dropped));
            let pieces: Vec<&[u8]> = long.chunks(4099).collect();
            assert_eq!(passed(&pieces), (whole, dropped));
        }
    }

    #[test]
    fn other_bytes_arrive_unchanged() {
        for text in
            [&b"\x1b]0;title\x07plain"[..], b"\x1b[31mred\x1b[0m", b"\x1b(0qqq\x1b(B", b"\xff\x1b"]
        {
            let many = text.repeat(3000);
            assert_eq!(passed(&[&many]), (many.clone(), 0));
        }
        let unended = [&b"\x1b]8;;"[..], &[b'y'; 1 << 20]].concat();
        assert!(passed(&[&unended]).0.len() < 5000);
    }
}
