//! Values of keys that name a secret: `DB_PASSWORD=…`, `"api_key": "…"`.

use super::span::Span;

/// Shortest value masked.
const VALUE: usize = 8;

/// Words that mark the key of a secret.
/// Keys are compared in lower case with `_` for `-` and `.`.
const WORDS: [&str; 31] = [
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "api_key",
    "apikey",
    "access_key",
    "private_key",
    "credential",
    // Names that detect-secrets, gitleaks and common programs use.
    "passwort",
    "contrasena",
    "dbpass",
    "userpass",
    "keypass",
    "storepass",
    "accesskey",
    "privatekey",
    "priv_key",
    "encryption_key",
    "encryptionkey",
    "signing_key",
    "signingkey",
    "master_key",
    "masterkey",
    "service_key",
    "account_key",
    "client_key",
    "database_key",
    "db_key",
    "storage_key",
];

/// Finds the values of secret keys.
pub(super) fn find(text: &str, out: &mut Vec<Span>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(step) = position(bytes, at, |b| matches!(b, b':' | b'=')) {
        let delimiter = at + step;
        at = delimiter + 1;
        let Some(key) = key_before(bytes, delimiter).filter(Key::is_secret) else {
            continue;
        };
        let value_at = at + count(bytes, at, |b| matches!(b, b':' | b'=' | b'>' | b' ' | b'\t'));
        let (start, end) = value(bytes, value_at, &key);
        // A shell keeps its working directory under the same name.
        if key.name == "pwd" && bytes.get(start) == Some(&b'/') {
            continue;
        }
        if end - start >= VALUE && !is_short_literal(bytes, start, end) {
            out.push(Span::secret(start, end));
            at = at.max(end);
        }
        if key.is_authorization() {
            at = at.max(credentials(bytes, start, end, out));
        }
    }
}

struct Key {
    name: String,
    /// A parameter of a URL, whose value ends where the next one begins.
    in_query: bool,
}

impl Key {
    fn is_secret(&self) -> bool {
        WORDS.iter().any(|word| self.name.contains(word)) || self.is_auth() || self.is_pass()
    }

    /// Names whose last word is short for a password.
    /// `compass` and `bypass` are other words.
    fn is_pass(&self) -> bool {
        matches!(self.name.rsplit('_').next(), Some("pass" | "pwd"))
    }

    /// Names with `auth` in them, but not authors.
    fn is_auth(&self) -> bool {
        self.name.match_indices("auth").any(|(at, word)| {
            let rest = self.name.get(at + word.len()..).unwrap_or_default();
            !rest.starts_with("or") || rest.starts_with("oriz") || rest.starts_with("oris")
        })
    }

    fn is_authorization(&self) -> bool {
        self.name.ends_with("authorization")
    }
}

/// The name before a delimiter: closing quotes and brackets, then the name itself.
fn key_before(bytes: &[u8], delimiter: usize) -> Option<Key> {
    let head = bytes.get(..delimiter)?;
    let skipped = |b: &u8| matches!(b, b' ' | b'\t' | b'"' | b'\'' | b'`' | b'\\' | b']' | b')');
    let end = head.len() - head.iter().rev().take_while(|b| skipped(b)).count();
    let head = head.get(..end)?;
    let in_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    let start = end - head.iter().rev().take_while(|b| in_name(b)).count();
    let name: String = head
        .get(start..)?
        .iter()
        .map(|b| if matches!(b, b'-' | b'.') { '_' } else { char::from(b.to_ascii_lowercase()) })
        .collect();
    let before = start.checked_sub(1).and_then(|at| head.get(at));
    let in_query = matches!(before, Some(b'?' | b'&' | b'#'));
    (!name.is_empty()).then_some(Key { name, in_query })
}

/// Begin and end of the value at `at`: inside its quotes, or up to the next blank.
fn value(bytes: &[u8], at: usize, key: &Key) -> (usize, usize) {
    let slashes = count(bytes, at, |b| b == b'\\');
    if let Some(quote @ (b'"' | b'\'' | b'`')) = bytes.get(at + slashes) {
        let start = at + slashes + 1;
        return (start, quoted_end(bytes, start, *quote, slashes));
    }
    let query_end = |b| key.in_query && matches!(b, b'&' | b'#' | b'"' | b'\'' | b'<' | b'>');
    let len = count(bytes, at, |b| !b.is_ascii_whitespace() && !query_end(b));
    (at, at + len)
}

/// Where a quoted value ends: at a quote that is escaped no deeper than the first.
/// Without such a quote the value reaches to the end of the line.
fn quoted_end(bytes: &[u8], start: usize, quote: u8, slashes: usize) -> usize {
    let mut run = 0;
    for (step, b) in bytes.get(start..).unwrap_or_default().iter().enumerate() {
        if *b == b'\\' {
            run += 1;
        } else if *b == quote && run <= slashes {
            return start + step - run;
        } else {
            run = 0;
        }
    }
    bytes.len()
}

/// Whether the value is a short number or word followed by more of its structure.
/// `"max_tokens":8,"other":…` holds no secret, although the text up to the next blank is long.
fn is_short_literal(bytes: &[u8], start: usize, end: usize) -> bool {
    let run = bytes.get(start..end).unwrap_or_default();
    let closes = |b| matches!(b, b'}' | b']');
    let literal = count(run, 0, |b| !closes(b) && b != b',');
    let word = run.get(..literal).unwrap_or_default();
    let number = !word.is_empty() && word.iter().all(|b| b.is_ascii_digit() || *b == b'.');
    let after = literal + count(run, literal, closes);
    let structure = match run.get(after) {
        None => after > literal,
        Some(b',') => matches!(run.get(after + 1), Some(b'"' | b'\'' | b'\\' | b'{')),
        Some(_) => false,
    };
    structure
        && literal < VALUE
        && (number || matches!(word, b"null" | b"true" | b"false"))
        && bytes.get(start.wrapping_sub(1)).is_none_or(|b| !matches!(b, b'"' | b'\'' | b'`'))
}

/// Masks the credentials of `Authorization: Scheme credentials`; returns their end.
fn credentials(bytes: &[u8], start: usize, end: usize, out: &mut Vec<Span>) -> usize {
    let scheme = bytes.get(start..end).unwrap_or_default();
    if !scheme.iter().all(|b| b.is_ascii_alphabetic() || *b == b'-') {
        return end;
    }
    let from = end + count(bytes, end, |b| matches!(b, b' ' | b'\t'));
    let len = count(bytes, from, |b| !b.is_ascii_whitespace());
    if len >= VALUE {
        out.push(Span::secret(from, from + len));
        return from + len;
    }
    end
}

fn position(bytes: &[u8], from: usize, wanted: impl Fn(u8) -> bool) -> Option<usize> {
    bytes.get(from..)?.iter().position(|b| wanted(*b))
}

fn count(bytes: &[u8], from: usize, wanted: impl Fn(u8) -> bool) -> usize {
    bytes.get(from..).unwrap_or_default().iter().take_while(|b| wanted(**b)).count()
}
