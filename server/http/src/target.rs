//! The path of a request, decoded once, and its query.

use crate::error::{Refusal, echo};
use poem::Request;
use std::ops::RangeInclusive;
use svc_shared::error::SchemaProblem;
use svc_shared::status::UnknownWord;

/// Segments of an app-local path, percent-decoded once.
///
/// `None` means that nothing can be there:
/// empty and dot segments, a decoded `/` or NUL, a broken escape, bytes that are no UTF-8. Nothing
/// is normalised, so guard and router cannot read one path differently (H9); `/ui/` is the
/// written address of Home, the page at the root.
pub(crate) fn segments(path: &str) -> Option<Vec<String>> {
    let rest = path.strip_prefix('/')?;
    if matches!(rest, "" | "ui/") {
        return Some(Vec::new());
    }
    rest.split('/').map(segment).collect()
}

fn segment(raw: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.bytes();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'%' => hex_digit(rest.next()?)? * 16 + hex_digit(rest.next()?)?,
            byte => byte,
        };
        if matches!(byte, 0 | b'/') {
            return None;
        }
        bytes.push(byte);
    }
    let text = String::from_utf8(bytes).ok()?;
    (!matches!(text.as_str(), "" | "." | "..")).then_some(text)
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// The parameters after `?`, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn of(request: &Request) -> Self {
        // Escapes that are no UTF-8 become U+FFFD, which matches nothing.
        Self(request.params().unwrap_or_default())
    }

    /// Every value of a repeatable parameter.
    pub(crate) fn all<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The value of a parameter that may stand once.
    pub(crate) fn one<'q>(&'q self, name: &'q str) -> Result<Option<&'q str>, Refusal> {
        let mut values = self.all(name);
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            (_, Some(_)) => Err(problem(name, "is given more than once".into(), "list_type")),
        }
    }

    /// A whole number in bounds: digits only.
    pub(crate) fn number(
        &self,
        name: &str,
        bounds: RangeInclusive<u64>,
    ) -> Result<Option<u64>, Refusal> {
        let Some(raw) = self.one(name)? else {
            return Ok(None);
        };
        let is_plain = !raw.is_empty() && raw.bytes().all(|byte| byte.is_ascii_digit());
        let value: Option<u64> = raw.parse().ok().filter(|_| is_plain);
        match value.filter(|value| bounds.contains(value)) {
            Some(value) => Ok(Some(value)),
            None => {
                let (min, max) = (bounds.start(), bounds.end());
                let text = format!("must be a whole number from {min} to {max}");
                Err(problem(name, text, "int_type"))
            }
        }
    }

    /// A switch.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Refusal> {
        match self.one(name)? {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(problem(name, "must be true or false".into(), "bool_type")),
        }
    }

    /// Every value of a repeatable parameter whose values are words.
    pub(crate) fn words<T>(&self, name: &str) -> Result<Vec<T>, Refusal>
    where
        T: std::str::FromStr<Err = UnknownWord>,
    {
        let word = |raw: &str| {
            raw.parse().map_err(|error: UnknownWord| {
                problem(name, format!("`{}` is no value of it: {error}", echo(raw)), "enum")
            })
        };
        self.all(name).map(word).collect()
    }
}

fn problem(name: &str, msg: String, kind: &str) -> Refusal {
    Refusal::schema(vec![SchemaProblem {
        loc: vec!["query".into(), name.into()],
        msg,
        kind: kind.into(),
    }])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use svc_shared::status::BridgeStatus;

    fn query(raw: &str) -> Query {
        Query::of(&Request::builder().uri_str(format!("/x?{raw}")).finish())
    }

    #[test]
    fn a_path_is_decoded_once_and_never_normalised() {
        let decoded = |path| segments(path).map(|parts| parts.join("|"));
        assert_eq!(decoded("/").as_deref(), Some(""));
        assert_eq!(decoded("/api/has%20space/%C3%BC").as_deref(), Some("api|has space|ü"));
        assert_eq!(decoded("/a%252fb").as_deref(), Some("a%2fb"));
        assert_eq!(decoded("/a;b=c").as_deref(), Some("a;b=c"));
        for nowhere in [
            "",
            "*",
            "//",
            "//api",
            "/api//projects",
            "/api/projects/",
            "/.",
            "/..",
            "/a/../b",
            "/%2e%2e/b",
            "/%2E/b",
            "/a%2fb",
            "/a%2Fb",
            "/a%00b",
            "/%ff",
            "/a%",
            "/a%4",
            "/a%zz",
            "/%c3%28",
        ] {
            assert_eq!(segments(nowhere), None, "{nowhere}");
        }
    }

    #[test]
    fn numbers_are_plain_digits_within_bounds() {
        assert_eq!(query("wait=30").number("wait", 0..=30).unwrap(), Some(30));
        assert_eq!(query("").number("wait", 0..=30).unwrap(), None);
        for bad in [
            "wait=31",
            "wait=-1",
            "wait=%2B1",
            "wait=1.0",
            "wait=",
            "wait=0x1",
            "wait=1&wait=2",
            "wait=99999999999999999999",
            "wait=1e1",
            "wait=%201",
        ] {
            assert_eq!(query(bad).number("wait", 0..=30).unwrap_err().status(), 422, "{bad}");
        }
    }

    #[test]
    fn filters_repeat_and_know_their_words() {
        let found: Vec<BridgeStatus> =
            query("status=running&status=crashed").words("status").unwrap();
        assert_eq!(found, [BridgeStatus::Running, BridgeStatus::Crashed]);
        assert_eq!(
            query("status=Running").words::<BridgeStatus>("status").unwrap_err().status(),
            422
        );
    }

    #[test]
    fn switches_are_true_or_false() {
        assert!(query("facts=true").flag("facts").unwrap());
        assert!(!query("facts=false").flag("facts").unwrap());
        assert_eq!(query("facts=1").flag("facts").unwrap_err().status(), 422);
    }

    proptest! {
        #[test]
        fn no_segment_leaves_its_place(path in "/[a-z%0-9./\\\\]{0,30}") {
            for part in segments(&path).unwrap_or_default() {
                prop_assert!(!part.is_empty() && part != "." && part != "..");
                prop_assert!(!part.contains(['/', '\0']));
            }
        }

        #[test]
        fn what_links_encode_is_what_the_router_reads(name in "\\PC{1,40}") {
            prop_assume!(!name.contains('/') && name != "." && name != "..");
            let path = format!("/{}", svc_shared::paths::segment(&name));
            prop_assert_eq!(segments(&path), Some(vec![name]));
        }

        #[test]
        fn h84_a_number_is_taken_only_when_it_is_plain_and_in_bounds(
            raw in "[0-9]{1,21}|[-+0-9a-fx.e ]{0,6}|\\PC{0,4}", low in 0_u64..40, size in 0_u64..2000,
        ) {
            let asked = query(&format!("n={}", svc_shared::paths::segment(&raw)));
            let bounds = low..=low + size;
            let is_plain = !raw.is_empty() && raw.bytes().all(|b| b.is_ascii_digit());
            let meant = raw.parse::<u64>().ok().filter(|n| is_plain && bounds.contains(n));
            match asked.number("n", bounds) {
                Ok(found) => prop_assert_eq!(found, meant),
                Err(refusal) => {
                    prop_assert_eq!(refusal.status(), 422);
                    prop_assert_eq!(meant, None);
                }
            }
        }

        #[test]
        fn h84_no_query_makes_a_reader_panic(raw in "[a-c%=&;+0-9\\[\\]]{0,30}") {
            let asked = query(&raw);
            for name in ["a", "b", "c"] {
                let given = asked.all(name).count();
                prop_assert_eq!(asked.one(name).is_err(), given > 1);
                let _ = (asked.flag(name), asked.words::<BridgeStatus>(name));
            }
        }
    }
}
