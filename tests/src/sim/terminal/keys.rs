//! What comes from the terminal: keys, pasted text, and answers to queries.

/// One thing that was typed, pasted or answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Key {
    Text(String),
    Enter,
    Backspace,
    Escape,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-U.
    Clear,
    FocusIn,
    FocusOut,
    /// The answer to DA: `CSI ? … c`.
    Attributes(String),
    /// The answer to XTVERSION: `DCS > | … ST`.
    Version(String),
}

/// Splits the byte stream; a sequence may come in any number of pieces.
#[derive(Debug, Default)]
pub(super) struct Keys {
    pending: Vec<u8>,
    pasting: bool,
}

impl Keys {
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.pending.extend_from_slice(bytes);
        let mut keys = Vec::new();
        let mut used = 0;
        while let Some(rest) = self.pending.get(used..).filter(|rest| !rest.is_empty()) {
            let Some((length, key)) = first(rest, &mut self.pasting) else {
                break; // the rest of the sequence comes later
            };
            match (key, keys.last_mut()) {
                (Some(Key::Text(more)), Some(Key::Text(text))) => text.push_str(&more),
                (Some(key), _) => keys.push(key),
                (None, _) => {}
            }
            used += length;
        }
        self.pending.drain(..used);
        keys
    }
}

/// The first key of `bytes` and its length, or nothing while it is incomplete.
fn first(bytes: &[u8], pasting: &mut bool) -> Option<(usize, Option<Key>)> {
    let one = |key| Some((1, Some(key)));
    match bytes {
        [0x1b, b'[', ..] => control_sequence(bytes, pasting),
        [0x1b, kind @ (b'P' | b']' | b'_' | b'^'), ..] => {
            let (length, text) = control_string(bytes)?;
            let version = text.strip_prefix(">|").filter(|_| *kind == b'P');
            Some((length, version.map(|text| Key::Version(text.to_owned()))))
        }
        // Alone in its packet it is the key; no terminal splits an answer right there.
        [0x1b] => one(Key::Escape),
        [0x1b, ..] => one(Key::Escape),
        [b'\r' | b'\n', ..] if *pasting => one(Key::Text(" ".into())),
        [b'\r', ..] => one(Key::Enter),
        [3, ..] if !*pasting => one(Key::Interrupt),
        [21, ..] => one(Key::Clear),
        [8 | 127, ..] => one(Key::Backspace),
        [0..=31, ..] => Some((1, None)),
        [lead, ..] => {
            let length = match lead {
                0xf0.. => 4,
                0xe0.. => 3,
                0xc0.. => 2,
                _ => 1,
            };
            let character = bytes.get(..length)?;
            let text = String::from_utf8_lossy(character).into_owned();
            Some((length, Some(Key::Text(text))))
        }
        [] => None,
    }
}

fn control_sequence(bytes: &[u8], pasting: &mut bool) -> Option<(usize, Option<Key>)> {
    let body = bytes.get(2..)?;
    let end = body.iter().position(|byte| (0x40..=0x7e).contains(byte))?;
    let text = String::from_utf8_lossy(body.get(..=end)?);
    let key = match text.as_ref() {
        "200~" => {
            *pasting = true;
            None
        }
        "201~" => {
            *pasting = false;
            None
        }
        "I" => Some(Key::FocusIn),
        "O" => Some(Key::FocusOut),
        answer if answer.starts_with('?') && answer.ends_with('c') => {
            Some(Key::Attributes(answer.to_owned()))
        }
        _ => None,
    };
    Some((end + 3, key))
}

/// The length of a control string and its text.
fn control_string(bytes: &[u8]) -> Option<(usize, String)> {
    let body = bytes.get(2..)?;
    let end = body.windows(2).position(|pair| pair == b"\x1b\\");
    let bell = body.iter().position(|byte| *byte == 7);
    let (end, closing) = match (end, bell) {
        (Some(end), Some(bell)) if bell < end => (bell, 1),
        (Some(end), _) => (end, 2),
        (None, Some(bell)) => (bell, 1),
        (None, None) => return None,
    };
    let text = String::from_utf8_lossy(body.get(..end)?).into_owned();
    Some((2 + end + closing, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_answers_are_the_same_in_any_pieces() {
        let typed = "hé\x1b[?62;22c\x1b[I\r\x1b[200~a\rb\x1b[201~\x7f\x1bP>|term 1\x1b\\\x03x";
        let expected = vec![
            Key::Text("hé".into()),
            Key::Attributes("?62;22c".into()),
            Key::FocusIn,
            Key::Enter,
            Key::Text("a b".into()),
            Key::Backspace,
            Key::Version("term 1".into()),
            Key::Interrupt,
            Key::Text("x".into()),
        ];
        assert_eq!(Keys::default().feed(typed.as_bytes()), expected);
        // An escape by itself is a key, so a cut directly behind one is another input.
        let bytes = typed.as_bytes();
        for cut in (1..bytes.len()).filter(|cut| bytes.get(cut - 1) != Some(&0x1b)) {
            let mut keys = Keys::default();
            let mut found = keys.feed(&bytes[..cut]);
            for key in keys.feed(&bytes[cut..]) {
                match (found.last_mut(), key) {
                    (Some(Key::Text(text)), Key::Text(more)) => text.push_str(&more),
                    (_, key) => found.push(key),
                }
            }
            assert_eq!(found, expected, "cut at {cut}");
        }
    }
}
