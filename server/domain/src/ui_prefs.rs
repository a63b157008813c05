//! What the preferences of the page may contain.
//!
//! Members that a newer page wrote are kept as they are.

use serde_json::{Map, Value};

/// Largest document, bytes as it is kept.
pub const LIMIT: usize = 16 * 1024;

/// Why a document is not kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Over [`LIMIT`].
    #[error("the preferences would be larger than 16 KiB; take some favourites away and try again")]
    TooLarge,
    /// A known member has a value that means nothing.
    #[error("`prefs.{member}` must be {allowed}")]
    Member {
        /// Its name.
        member: &'static str,
        /// What it may be.
        allowed: &'static str,
    },
}

type Rule = (&'static str, &'static str, fn(&Value) -> bool);

/// Known members, their values in words, and the check. Null means the default.
const RULES: [Rule; 7] = [
    ("theme", "`system`, `light` or `dark`", |v| is_word(v, &["system", "light", "dark"])),
    ("density", "`comfortable` or `compact`", |v| is_word(v, &["comfortable", "compact"])),
    ("language", "a language tag such as `en`", is_language),
    ("zone", "`browser`, `host` or `utc`", |v| is_word(v, &["browser", "host", "utc"])),
    ("favourites", "a list of project names", is_list_of_texts),
    ("dismissed", "a list of names", is_list_of_texts),
    (
        "shortcuts",
        "an object of `on` (true or false) and `keys` (an object of texts)",
        is_shortcuts,
    ),
];

/// Checks a document and gives the text that is kept.
///
/// # Errors
/// It is too large, or a known member does not fit.
pub fn text(prefs: &Map<String, Value>) -> Result<String, Unfit> {
    for (member, allowed, fits) in RULES {
        let value = prefs.get(member).unwrap_or(&Value::Null);
        if !value.is_null() && !fits(value) {
            return Err(Unfit::Member { member, allowed });
        }
    }
    let text = Value::Object(prefs.clone()).to_string();
    if text.len() > LIMIT { Err(Unfit::TooLarge) } else { Ok(text) }
}

fn is_word(value: &Value, words: &[&str]) -> bool {
    value.as_str().is_some_and(|word| words.contains(&word))
}

fn is_language(value: &Value) -> bool {
    let is_tag = |tag: &str| {
        (2..=35).contains(&tag.len())
            && tag.split('-').all(|part| {
                !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
            })
    };
    value.as_str().is_some_and(is_tag)
}

fn is_list_of_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(Value::is_string))
}

fn is_shortcuts(value: &Value) -> bool {
    let Some(members) = value.as_object() else { return false };
    let keys = members.get("keys").unwrap_or(&Value::Null);
    let is_of_texts = |keys: &Map<String, Value>| keys.values().all(Value::is_string);
    members.get("on").is_none_or(|on| on.is_boolean() || on.is_null())
        && (keys.is_null() || keys.as_object().is_some_and(is_of_texts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(prefs: Value) -> Result<String, Unfit> {
        text(prefs.as_object().unwrap())
    }

    #[test]
    fn known_members_are_checked_and_unknown_ones_kept() {
        for good in [
            json!({}),
            json!({"theme": "dark", "density": null, "language": "zh-Hant", "zone": "utc"}),
            json!({"favourites": ["api", "übung"], "dismissed": []}),
            json!({"shortcuts": {"on": false, "keys": {"launch": "L"}}}),
            json!({"shortcuts": {}, "of a newer page": [1, {"a": null}]}),
        ] {
            let text = check(good.clone()).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), good);
        }
        for (member, bad) in [
            ("theme", json!("pink")),
            ("density", json!(1)),
            ("language", json!("e")),
            ("language", json!("en--us")),
            ("language", json!("en us")),
            ("zone", json!("CET")),
            ("favourites", json!("api")),
            ("favourites", json!([1])),
            ("dismissed", json!({})),
            ("shortcuts", json!([])),
            ("shortcuts", json!({"on": "yes"})),
            ("shortcuts", json!({"keys": {"launch": 1}})),
        ] {
            let refused = check(json!({ member: bad })).unwrap_err();
            assert!(refused.to_string().contains(&format!("`prefs.{member}`")), "{refused}");
        }
    }

    #[test]
    fn the_limit_is_that_of_what_is_kept() {
        let overhead = r#"{"x":""}"#.len();
        assert!(check(json!({"x": "a".repeat(LIMIT - overhead)})).is_ok());
        let over = check(json!({"x": "a".repeat(LIMIT - overhead + 1)}));
        assert_eq!(over, Err(Unfit::TooLarge));
    }
}
