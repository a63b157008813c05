//! Reads the credentials of a request: `Authorization`, cookies, return paths.
//!
//! Rules: `http-api` §5.1 and §5.2, H16, H23, H27. Whether a credential is valid is decided by the
//! code that holds the secret.

/// Longest credential that is looked at, bytes (H19, H23).
pub const LONGEST: usize = 4096;

/// What the `Authorization` values of a request amount to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bearer<'h> {
    /// None, or another scheme: a proxy's `Basic` is not ours.
    Absent,
    /// One token that may be true.
    Token(&'h str),
    /// A Bearer header that can never be valid.
    /// There are several headers, or it contains blanks, is not ASCII, or is too long.
    Broken,
}

/// Reads all `Authorization` values.
pub fn bearer<'h>(values: impl IntoIterator<Item = &'h [u8]>) -> Bearer<'h> {
    let mut found = Bearer::Absent;
    let mut seen = 0;
    for value in values {
        seen += 1;
        let value = value.trim_ascii();
        let Some((scheme, rest)) = value.split_at_checked(6) else { continue };
        let is_end = rest.first().is_none_or(u8::is_ascii_whitespace);
        if !scheme.eq_ignore_ascii_case(b"bearer") || !is_end {
            continue;
        }
        let token = rest.trim_ascii();
        let is_plain = !token.is_empty() && token.iter().all(u8::is_ascii_graphic);
        found = match std::str::from_utf8(token) {
            Ok(token) if is_plain && token.len() <= LONGEST => Bearer::Token(token),
            Ok(_) | Err(_) => Bearer::Broken,
        };
    }
    match found {
        Bearer::Token(_) if seen > 1 => Bearer::Broken,
        other => other,
    }
}

/// The value of a cookie that occurs exactly once in all `Cookie` headers.
/// Another server on the same host may have planted a second one, so two count as none (H16).
pub fn cookie<'h>(values: impl IntoIterator<Item = &'h [u8]>, name: &str) -> Option<&'h str> {
    let mut found = None;
    for value in values {
        for pair in value.split(|byte| *byte == b';') {
            let pair = pair.trim_ascii();
            let Some(place) = pair.iter().position(|byte| *byte == b'=') else { continue };
            let (key, rest) = pair.split_at_checked(place)?;
            if key.trim_ascii() != name.as_bytes() {
                continue;
            }
            if found.is_some() {
                return None;
            }
            found = Some(rest.get(1..)?.trim_ascii());
        }
    }
    let found = found.filter(|value| !value.is_empty() && value.len() <= LONGEST)?;
    std::str::from_utf8(found).ok()
}

/// The one value of a header, if it is plain visible text.
pub fn single<'h>(values: impl IntoIterator<Item = &'h [u8]>) -> Option<&'h str> {
    let mut values = values.into_iter();
    let value = values.next()?;
    if values.next().is_some() || value.is_empty() || value.len() > LONGEST {
        return None;
    }
    let is_visible = value.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ');
    std::str::from_utf8(value).ok().filter(|text| is_visible && !text.trim().is_empty())
}

/// Whether a browser may be sent to this path after signing in (H27).
/// The path must stay on this service, as a browser reads it, also after it is decoded once.
#[must_use]
pub fn is_local_path(next: &str) -> bool {
    const LONGEST_PATH: usize = 2048;
    next.len() <= LONGEST_PATH
        && is_plain_path(next)
        && decoded(next).is_some_and(|next| is_plain_path(&next))
}

fn is_plain_path(next: &str) -> bool {
    next.starts_with('/')
        && !next.contains("//")
        && !next.contains(['\\', '\u{7f}'])
        && !next.chars().any(char::is_control)
}

/// Decoded once; `None` for what is no text then.
fn decoded(raw: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit =
            |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        bytes.push(digit(rest.next()?)? * 16 + digit(rest.next()?)?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read<'h>(values: &[&'h str]) -> Bearer<'h> {
        bearer(values.iter().map(|value| value.as_bytes()))
    }

    #[test]
    fn h23_exactly_one_token_in_exactly_one_header() {
        for value in ["Bearer abc", "bearer abc", "BEARER   abc  ", "Bearer\tabc"] {
            assert_eq!(read(&[value]), Bearer::Token("abc"), "{value}");
        }
        let long = format!("Bearer {}", "a".repeat(64 * 1024));
        for value in ["Bearer", "Bearer ", "Bearer a b", "Bearer ä", "Bearer a,Bearer b x", &long]
        {
            assert_eq!(read(&[value]), Bearer::Broken, "{value:.40}");
        }
        for value in ["", "Basic YTpi", "Bearerabc", "Token abc", "Bear"] {
            assert_eq!(read(&[value]), Bearer::Absent, "{value}");
        }
        assert_eq!(read(&["Bearer abc", "Bearer abc"]), Bearer::Broken);
        assert_eq!(read(&["Basic YTpi", "Bearer abc"]), Bearer::Broken);
        assert_eq!(bearer([&b"Bearer \xff"[..]]), Bearer::Broken);
        assert_eq!(read(&[]), Bearer::Absent);
    }

    #[test]
    fn h16_a_cookie_counts_only_when_it_stands_once() {
        let one =
            |values: &[&'static str]| cookie(values.iter().map(|value| value.as_bytes()), "s");
        assert_eq!(one(&["a=b; s=x.y; ss=z"]), Some("x.y"));
        assert_eq!(one(&["a=b", " s = x "]), Some("x"));
        for none in [&["s=x; s=x"][..], &["s=x", "s=y"], &["s="], &["S=x"], &["a=s=x"], &[]] {
            assert_eq!(one(none), None, "{none:?}");
        }
    }

    #[test]
    fn h24_a_header_that_is_not_one_plain_value_is_none() {
        assert_eq!(single([&b"alice"[..]]), Some("alice"));
        for bad in [&b""[..], b" ", b"a\tb", b"\xc3\xa4", b"a\x7f"] {
            assert_eq!(single([bad]), None, "{bad:?}");
        }
        assert_eq!(single([&b"a"[..], &b"a"[..]]), None);
    }

    #[test]
    fn h27_only_paths_of_this_service_may_follow_a_sign_in() {
        for good in ["/", "/ui/p/has.dot?x=1#y", "/ui/a%20b", "/ui/%C3%BC", "/a:b"] {
            assert!(is_local_path(good), "{good}");
        }
        let long = format!("/{}", "a".repeat(8192));
        for bad in [
            "",
            "ui",
            "//evil",
            "/\\evil",
            "/%09/evil",
            "/%2f%2fevil",
            "/%2fevil",
            "/%5cevil",
            "https:evil",
            "https://evil",
            "javascript:alert(1)",
            "/a\nb",
            "/%0d%0aSet-Cookie:x",
            "/a//b",
            "/%ff",
            "/%4",
            " /x",
            &long,
        ] {
            assert!(!is_local_path(bad), "{bad:.40}");
        }
    }

    proptest! {
        #[test]
        fn bytes_of_any_kind_never_panic(values: Vec<Vec<u8>>, text: String) {
            let _ = bearer(values.iter().map(Vec::as_slice));
            let _ = cookie(values.iter().map(Vec::as_slice), "svc_session");
            let _ = single(values.iter().map(Vec::as_slice));
            if is_local_path(&text) {
                prop_assert!(text.starts_with('/') && !text.starts_with("//"));
            }
        }
    }
}
