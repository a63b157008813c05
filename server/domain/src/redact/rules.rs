//! The shapes of identifiers and secrets, one rule per row of `command-line` §12.2.

use std::sync::LazyLock;

use regex::Regex;

use super::forms;
use super::hints::Hints;
use super::key_value;
use super::pattern::pattern;
use super::rule_set::Rules;
use super::span::Span;

/// Finds everything to mask in one text, of which `hints` is true.
pub(super) fn find(text: &str, hints: Hints, out: &mut Vec<Span>) {
    if hints == Hints::NONE {
        return;
    }
    if hints.name(Rules::IDENTIFIER) {
        identifiers(text, out);
    }
    if hints.name(Rules::UUID) {
        uuids(text, out);
    }
    for (_, rule) in WHOLE.iter().filter(|(hint, _)| hints.name(*hint)) {
        out.extend(rule.find_iter(text).map(|m| Span::secret(m.start(), m.end())));
    }
    for (_, rule) in VALUE.iter().filter(|(hint, _)| hints.name(*hint)) {
        out.extend(rule.captures_iter(text).filter_map(|found| {
            found.get(1).map(|value| Span::secret(value.start(), value.end()))
        }));
    }
    forms::find(text, hints.forms(), out);
    if hints.name(Rules::BEARER) {
        bearer(text, out);
    }
    if hints.name(Rules::BASIC) {
        basic(text, out);
    }
    if hints.name(Rules::KEY_VALUE) {
        key_value::find(text, out);
    }
}

/// Tokens that are masked whole.
/// Each pattern also takes the beginning of a further token of its kind, so a chain without
/// separators is one match. There are no word boundaries, so no neighbour can hide a token.
static WHOLE: LazyLock<Vec<(Rules, Regex)>> = LazyLock::new(|| {
    [
        (Rules::GITHUB, "gh[pousr]_[A-Za-z0-9_]{16,}"),
        (Rules::PAT, "github_pat_[A-Za-z0-9_]{20,}"),
        (Rules::GITLAB, "glpat-[A-Za-z0-9_.-]{16,}"),
        (Rules::AWS, "A[KS]IA[0-9A-Z]{16,}"),
        (Rules::SK, "sk-[A-Za-z0-9_-]{16,}"),
        (Rules::SLACK, "xox[a-z]-[A-Za-z0-9-]{10,}"),
        (Rules::PAT, "svc_pat_[A-Za-z0-9_-]{16,}"),
        (Rules::JWT, r"eyJ[A-Za-z0-9_-]*\.[A-Za-z0-9_-]+\.[A-Za-z0-9_.-]*"),
        (Rules::GOOGLE, "AIza[0-9A-Za-z_-]{35,}"),
    ]
    .into_iter()
    .map(|(hint, source)| (hint, pattern(source)))
    .collect()
});

/// Secrets known by what stands before them: group 1 is masked.
static VALUE: LazyLock<Vec<(Rules, Regex)>> = LazyLock::new(|| {
    [
        // The user part of a URL, up to its last `@` before a slash.
        (Rules::URL_USER, r#"://([^/\s"'<>]+)@"#),
        (Rules::QUERY, r#"(?i)[?&#;](?:(?:access|refresh|id)_?token|token|api_?key|key|(?:client_)?secret|sig|signature|passw(?:or)?d|pwd|code)=([^&#\s"'<>]+)"#),
        (Rules::COOKIE, r#"svc_(?:session|elevation)_[0-9A-Fa-f]+=([^;,\s"']+)"#),
    ]
    .into_iter()
    .map(|(hint, source)| (hint, pattern(source)))
    .collect()
});

/// Prefixes of remote identifiers, each kept in front of its mask.
const PREFIXES: [&str; 3] = ["env_", "session_", "cse_"];
/// Shortest body masked when nothing is welded to the front.
const BODY: usize = 6;
/// Shortest body masked with any neighbour; such a body begins with `01`.
const WELDED_BODY: usize = 10;

fn identifiers(text: &str, out: &mut Vec<Span>) {
    for (underscore, _) in text.match_indices('_') {
        let (Some(head), Some(tail)) = (text.get(..=underscore), text.get(underscore + 1..)) else {
            continue;
        };
        let Some(label) = PREFIXES.into_iter().find(|prefix| head.ends_with(prefix)) else {
            continue;
        };
        let body = tail.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let start = head.len() - label.len();
        let before = head.as_bytes().get(start.wrapping_sub(1));
        let free = !before.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
        let welded = body >= WELDED_BODY && tail.starts_with("01");
        if welded || free && body >= BODY {
            out.push(Span { start, end: head.len() + body, label });
        }
    }
}

static UUID: LazyLock<Regex> =
    LazyLock::new(|| pattern("[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}"));

fn uuids(text: &str, out: &mut Vec<Span>) {
    let mut from = 0;
    while let Some(found) = UUID.find_at(text, from) {
        out.push(Span::secret(found.start(), found.end()));
        // The next one may begin in the last group of this one.
        from = found.start() + 1;
    }
}

static BEARER: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(?i)bearer["':=]*\s+["']?([A-Za-z0-9._-]{12,}\S*)"#));

fn bearer(text: &str, out: &mut Vec<Span>) {
    /// Longest end of a value that can itself be the word before the next value.
    const WORD: usize = "bearer".len() + 8;
    let mut from = 0;
    while let Some(value) = BEARER.captures_at(text, from).and_then(|found| found.get(1)) {
        out.push(Span::secret(value.start(), value.end()));
        from = value.start().max(value.end().saturating_sub(WORD));
        while !text.is_char_boundary(from) {
            from += 1;
        }
    }
}

static AUTHORIZATION: LazyLock<Regex> = LazyLock::new(|| pattern("(?i)authorization"));
static BASIC: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(?i)basic\s+["']?([A-Za-z0-9+/=_-]{12,})"#));

/// Masks `Basic` credentials behind `authorization`.
/// The word `basic` alone is ordinary language.
fn basic(text: &str, out: &mut Vec<Span>) {
    let Some(mut from) = AUTHORIZATION.find(text).map(|word| word.end()) else {
        return;
    };
    while let Some(value) = BASIC.captures_at(text, from).and_then(|found| found.get(1)) {
        out.push(Span::secret(value.start(), value.end()));
        from = value.end();
    }
}
