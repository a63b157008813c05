//! Undoes percent-encoding and backslash escapes, for matching only.
//!
//! Examples: `%5F`, `%255F`, `\u005f`, `\\u005f`, `\x5f`, `\n`.

use super::view::View;

/// The text with its encodings undone once, `None` when it has none.
///
/// Repeated escaping of one character (`%25…`, several backslashes) is undone in one go. Linear.
pub(super) fn decode(text: &str) -> Option<View> {
    let bytes = text.as_bytes();
    let mut view = View::default();
    let mut copied = 0;
    let mut at = 0;
    while let Some(step) = next_mark(bytes, at) {
        at += step;
        match unit_at(bytes, at) {
            Unit::Char { c, end } => {
                view.copy(text, copied..at);
                view.put(c, at);
                copied = end;
                at = end;
            }
            Unit::Plain { end } => at = end,
        }
    }
    if copied == 0 {
        return None;
    }
    view.copy(text, copied..text.len());
    view.finish(text.len());
    Some(view)
}

fn next_mark(bytes: &[u8], from: usize) -> Option<usize> {
    bytes.get(from..)?.iter().position(|b| matches!(b, b'%' | b'\\'))
}

enum Unit {
    /// An encoded character and where its encoding ends.
    Char { c: char, end: usize },
    /// Nothing encoded up to `end`, which is after the place asked about.
    Plain { end: usize },
}

fn unit_at(bytes: &[u8], at: usize) -> Unit {
    if bytes.get(at) == Some(&b'%') { percent(bytes, at) } else { backslash(bytes, at) }
}

fn hex(bytes: &[u8], at: usize, digits: usize) -> Option<u32> {
    let raw = bytes.get(at..at.checked_add(digits)?)?;
    raw.iter().try_fold(0, |sum, digit| Some(sum * 16 + char::from(*digit).to_digit(16)?))
}

fn percent(bytes: &[u8], at: usize) -> Unit {
    let mut digits = at + 1;
    let Some(mut value) = hex(bytes, digits, 2) else {
        return Unit::Plain { end: at + 1 };
    };
    while value == u32::from(b'%') {
        let Some(inner) = hex(bytes, digits + 2, 2) else {
            break;
        };
        value = inner;
        digits += 2;
    }
    let end = digits + 2;
    match u8::try_from(value) {
        Ok(byte) if byte.is_ascii() => Unit::Char { c: char::from(byte), end },
        Ok(lead) => wide(bytes, lead, end).unwrap_or(Unit::Plain { end }),
        Err(_) => Unit::Plain { end },
    }
}

/// Reads a character of several percent-encoded bytes; `next` is after the first.
fn wide(bytes: &[u8], lead: u8, next: usize) -> Option<Unit> {
    let len = match lead {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return None,
    };
    let mut encoded = vec![lead];
    let mut end = next;
    while encoded.len() < len {
        if bytes.get(end) != Some(&b'%') {
            return None;
        }
        encoded.push(u8::try_from(hex(bytes, end + 1, 2)?).ok()?);
        end += 3;
    }
    let c = std::str::from_utf8(&encoded).ok()?.chars().next()?;
    Some(Unit::Char { c, end })
}

fn backslash(bytes: &[u8], at: usize) -> Unit {
    let run = bytes.get(at..).unwrap_or_default().iter().take_while(|b| **b == b'\\').count();
    let letter = at + run;
    let plain = Unit::Plain { end: letter };
    let short = |c| Unit::Char { c, end: letter + 1 };
    match bytes.get(letter) {
        Some(b'u') => unicode(bytes, letter + 1).unwrap_or(plain),
        Some(b'x') => match hex(bytes, letter + 1, 2).and_then(char::from_u32) {
            Some(c) => Unit::Char { c, end: letter + 3 },
            None => plain,
        },
        Some(b'0') => octal(bytes, letter),
        Some(b'n') => short('\n'),
        Some(b'r') => short('\r'),
        Some(b't') => short('\t'),
        Some(b'b') => short('\u{8}'),
        Some(b'f') => short('\u{c}'),
        Some(b'e') => short('\u{1b}'),
        Some(quote @ (b'"' | b'\'' | b'/')) => short(char::from(*quote)),
        _ => plain,
    }
}

/// Reads what follows `\u`: four digits, or any number of digits in braces.
/// Characters beyond the first plane are written as a pair of four digits.
fn unicode(bytes: &[u8], at: usize) -> Option<Unit> {
    if bytes.get(at) == Some(&b'{') {
        let len = bytes.get(at + 1..)?.iter().take(7).position(|b| *b == b'}')?;
        let c = char::from_u32(hex(bytes, at + 1, len)?)?;
        return Some(Unit::Char { c, end: at + len + 2 });
    }
    let first = hex(bytes, at, 4)?;
    if let Some(c) = char::from_u32(first) {
        return Some(Unit::Char { c, end: at + 4 });
    }
    let gap = bytes.get(at + 4..)?.iter().take(8).take_while(|b| **b == b'\\').count();
    let low_at = at + 4 + gap;
    if gap == 0 || bytes.get(low_at) != Some(&b'u') {
        return None;
    }
    let low = hex(bytes, low_at + 1, 4)?;
    let units = [u16::try_from(first).ok()?, u16::try_from(low).ok()?];
    let c = char::decode_utf16(units).next()?.ok()?;
    Some(Unit::Char { c, end: low_at + 5 })
}

/// `\0`, `\033`: at most three octal digits.
fn octal(bytes: &[u8], at: usize) -> Unit {
    let digits = bytes.get(at..).unwrap_or_default().iter().take(3);
    let (value, count) = digits
        .map_while(|b| char::from(*b).to_digit(8))
        .fold((0, 0), |(value, count), digit| (value * 8 + digit, count + 1));
    match char::from_u32(value) {
        Some(c) => Unit::Char { c, end: at + count },
        None => Unit::Plain { end: at + count },
    }
}
