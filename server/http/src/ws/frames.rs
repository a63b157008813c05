//! Counts the fragments of a message from a client (H59, RFC 6455 §5.2).
//!
//! The library joins fragments and tells of whole messages only.

/// Most fragments of one message.
const FRAGMENTS: u32 = 64;
/// Longest head: two bytes, eight of length, four of mask.
const HEAD: usize = 14;

/// Where the reading of frames stands.
#[derive(Debug)]
pub(super) struct Frames {
    head: [u8; HEAD],
    have: usize,
    /// Bytes of the payload that are still to come.
    payload: u64,
    fragments: u32,
}

impl Frames {
    pub(super) fn new() -> Self {
        Self { head: [0; HEAD], have: 0, payload: 0, fragments: 0 }
    }

    /// Takes the next bytes; false when a message has too many fragments.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            if self.payload > 0 {
                let part = usize::try_from(self.payload).unwrap_or(usize::MAX).min(bytes.len());
                self.payload -= part as u64;
                bytes = bytes.get(part..).unwrap_or_default();
                continue;
            }
            let Some((byte, rest)) = bytes.split_first() else { break };
            bytes = rest;
            if let Some(place) = self.head.get_mut(self.have) {
                *place = *byte;
                self.have += 1;
            }
            if self.have == self.head_length() && !self.finish_head() {
                return false;
            }
        }
        true
    }

    /// How long the head is, as far as its first two bytes tell.
    fn head_length(&self) -> usize {
        if self.have < 2 {
            return 2;
        }
        let [_, second, ..] = self.head;
        let length = match second & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        2 + length + if second & 0x80 == 0 { 0 } else { 4 }
    }

    fn finish_head(&mut self) -> bool {
        let [first, second, length @ .., _, _, _, _] = self.head;
        let length = u64::from_be_bytes(length);
        self.have = 0;
        self.payload = match second & 0x7f {
            // Only the first two of the eight bytes are the length then.
            126 => length >> 48,
            127 => length,
            short => u64::from(short),
        };
        // Control frames stand between the fragments of a message and are none.
        if first & 0x08 == 0 {
            self.fragments += 1;
            if self.fragments > FRAGMENTS {
                return false;
            }
            if first & 0x80 != 0 {
                self.fragments = 0;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(first: u8, payload: usize) -> Vec<u8> {
        let mut bytes = vec![first];
        match payload {
            0..126 => bytes.push(0x80 | u8::try_from(payload).unwrap()),
            126..65_536 => {
                bytes.push(0x80 | 126);
                bytes.extend(u16::try_from(payload).unwrap().to_be_bytes());
            }
            _ => {
                bytes.push(0x80 | 127);
                bytes.extend((payload as u64).to_be_bytes());
            }
        }
        bytes.extend([0; 4]);
        bytes.extend(std::iter::repeat_n(0x81, payload));
        bytes
    }

    fn message(fragments: usize, payload: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for n in 1..=fragments {
            let first = u8::from(n == 1) | u8::from(n == fragments) << 7;
            bytes.extend(frame(first, payload));
            bytes.extend(frame(0x89, 1));
        }
        bytes
    }

    #[test]
    fn h59_fragments_are_counted_however_they_arrive() {
        for payload in [0, 1, 125, 126, 700, 66_000] {
            for (fragments, is_good) in [(1, true), (64, true), (65, false), (200, false)] {
                let bytes = [message(fragments, payload), message(64, 0)].concat();
                for piece in [1, 3, 4096] {
                    let mut frames = Frames::new();
                    let is_kept = bytes.chunks(piece).all(|part| frames.feed(part));
                    assert_eq!(is_kept, is_good, "{fragments} of {payload} in pieces of {piece}");
                }
            }
        }
    }
}
