//! Masks secrets in shown values, and puts them back into written ones.
//!
//! A secret is shown as [`MASK`] and is never sent. What comes back with the mask keeps what is
//! stored in its place; a mask where nothing is stored is refused.

use super::{BadConfig, bad};
use crate::redact::redact_text;
use serde_json::{Map, Value};

/// Stands for a value that is not shown.
pub const MASK: &str = "********";

/// Members whose texts are all secret.
const WHOLLY: [&str; 2] = ["env", "headers"];
/// Parts of names whose texts are secret.
const TELLING: [&str; 9] = [
    "token",
    "secret",
    "password",
    "passwd",
    "apikey",
    "api_key",
    "api-key",
    "authorization",
    "private_key",
];

/// The value with a mask in the place of every secret.
#[must_use]
pub fn masked(value: &Value) -> Value {
    mask(value, false)
}

fn mask(value: &Value, is_secret: bool) -> Value {
    match value {
        Value::Object(members) => Value::Object(
            members
                .iter()
                .map(|(key, value)| (key.clone(), mask(value, is_secret || tells(key))))
                .collect(),
        ),
        Value::Array(items) => items.iter().map(|item| mask(item, is_secret)).collect(),
        Value::String(text) if is_secret || redact_text(text) != *text => Value::from(MASK),
        // A secret may be a number.
        Value::Number(_) if is_secret => Value::from(MASK),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn tells(key: &str) -> bool {
    let lower = key.to_ascii_lowercase();
    // A helper is the path of a program. A number of tokens is no token.
    let is_other = lower.ends_with("helper") || lower.ends_with("tokens");
    WHOLLY.contains(&key) || (!is_other && TELLING.iter().any(|part| lower.contains(part)))
}

/// What was sent, with what is stored in the place of each mask.
///
/// # Errors
/// A mask stands where no secret is stored: names the member.
pub fn unmasked(sent: &Value, stored: Option<&Value>) -> Result<Value, BadConfig> {
    let shown = stored.map(masked);
    restore(sent, stored.zip(shown.as_ref()), "")
}

type Stored<'a> = Option<(&'a Value, &'a Value)>;

fn restore(sent: &Value, stored: Stored<'_>, at: &str) -> Result<Value, BadConfig> {
    if let Some((stored, shown)) = stored
        && sent == shown
    {
        return Ok(stored.clone());
    }
    match sent {
        Value::Object(members) => {
            let of = |key: &str| stored.and_then(|(kept, shown)| kept.get(key).zip(shown.get(key)));
            let mut restored = Map::new();
            for (key, value) in members {
                let at = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                restored.insert(key.clone(), restore(value, of(key), &at)?);
            }
            Ok(Value::Object(restored))
        }
        Value::Array(items) => restore_items(items, stored, at),
        Value::String(text) if text == MASK => Err(bad(format!(
            "{at} is `{MASK}`, and nothing that this could stand for is stored there; write the \
             value itself"
        ))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(sent.clone()),
    }
}

/// Items may have moved: an unchanged one is found by what was shown of it.
fn restore_items(items: &[Value], stored: Stored<'_>, at: &str) -> Result<Value, BadConfig> {
    let pairs: Vec<(&Value, &Value)> = match stored {
        Some((Value::Array(kept), Value::Array(shown))) => kept.iter().zip(shown).collect(),
        Some(_) | None => Vec::new(),
    };
    let mut taken = vec![false; pairs.len()];
    let mut found = vec![None; items.len()];
    let mut take = |index: usize, pair: usize, found: &mut Vec<Option<usize>>| {
        if let (Some(taken), Some(found)) = (taken.get_mut(pair), found.get_mut(index))
            && !*taken
        {
            (*taken, *found) = (true, Some(pair));
            return true;
        }
        false
    };
    let is_secret = |item: &&Value| has_mask(item);
    let masks = || items.iter().enumerate().filter(|(_, item)| is_secret(item));
    for (index, item) in masks() {
        let is_same = |pair: usize| pairs.get(pair).is_some_and(|(_, shown)| *shown == item);
        let mut places = [index].into_iter().chain(0..pairs.len());
        let _ = places.any(|pair| is_same(pair) && take(index, pair, &mut found));
    }
    // What was edited beside its secret is found by its place, while no other item claims it.
    for (index, _) in masks() {
        if found.get(index) == Some(&None) && items.len() == pairs.len() {
            take(index, index, &mut found);
        }
    }
    for (_, item) in masks() {
        let like = || pairs.iter().filter(|(_, shown)| *shown == item).map(|(kept, _)| *kept);
        let differ = like().zip(like().skip(1)).any(|(one, next)| one != next);
        let sent = items.iter().filter(|other| *other == item).count();
        if differ && sent < like().count() {
            return Err(bad(alike(at)));
        }
    }
    let of = |index: usize| found.get(index).copied().flatten().and_then(|at| pairs.get(at));
    let restored = items
        .iter()
        .enumerate()
        .map(|(index, item)| restore(item, of(index).copied(), &format!("{at}[{index}]")));
    restored.collect::<Result<Vec<_>, _>>().map(Value::from)
}

/// Nobody can say which of several that are shown alike was meant.
fn alike(at: &str) -> String {
    format!(
        "{at} had several entries that look the same without their secrets, and some are gone; \
         write the secrets of those that stay, or change the file on the machine"
    )
}

fn has_mask(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.values().any(has_mask),
        Value::Array(items) => items.iter().any(has_mask),
        Value::String(text) => text == MASK,
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A text with the secrets of its lines masked.
#[must_use]
pub fn masked_text(text: &str) -> String {
    redact_text(text)
}

/// What was sent of a text, with the stored line in the place of each masked one.
///
/// # Errors
/// A line holds a mask that was not shown so.
pub fn unmasked_text(sent: &str, stored: &str) -> Result<String, BadConfig> {
    let mask = crate::redact::MASK;
    let shown = masked_text(stored);
    if sent == shown {
        return Ok(stored.to_owned());
    }
    let mut lines: Vec<Option<(&str, &str)>> =
        shown.lines().zip(stored.lines()).map(Some).collect();
    let mut out = String::with_capacity(sent.len());
    for (number, line) in sent.split_inclusive('\n').enumerate() {
        let body = line.trim_end_matches(['\n', '\r']);
        let is_like = |pair: &Option<(&str, &str)>| pair.is_some_and(|(shown, _)| shown == body);
        let has_mask = body.contains(mask);
        if has_mask {
            let kept = || lines.iter().flatten().filter(|(shown, _)| *shown == body);
            let differ = kept().zip(kept().skip(1)).any(|((_, one), (_, next))| one != next);
            let left = sent.lines().skip(number).filter(|other| *other == body).count();
            if differ && left < kept().count() {
                return Err(bad(alike(&format!("line {}", number + 1))));
            }
        }
        let place = lines.iter().position(is_like);
        let kept = place.and_then(|place| lines.get_mut(place)).and_then(Option::take);
        match kept {
            // An unchanged line keeps what is not shown of it: secrets, and joined emoji.
            Some((_, kept)) => {
                out.push_str(kept);
                out.push_str(line.get(body.len()..).unwrap_or_default());
            }
            None if has_mask => {
                return Err(bad(format!(
                    "line {} holds `{mask}`, and no line like it was shown; write the value itself",
                    number + 1
                )));
            }
            None => out.push_str(line),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn of_entries_that_look_alike_none_is_removed_by_guess() {
        let hook =
            |token: &str| json!({ "command": format!("curl -H 'Authorization: Bearer {token}'") });
        let stored = json!([
            hook("0123456789abcdef0123456789abcdef"),
            hook("fedcba9876543210fedcba9876543210")
        ]);
        let shown = masked(&stored);
        assert_eq!(shown[0], shown[1]);
        let fewer = json!([shown[1]]);
        assert!(unmasked(&fewer, Some(&stored)).is_err());
        assert_eq!(unmasked(&shown, Some(&stored)).unwrap(), stored);
        let same = json!([stored[0], stored[0]]);
        assert_eq!(unmasked(&fewer, Some(&same)).unwrap(), json!([stored[0]]));
    }

    #[test]
    fn a_line_that_nobody_touched_keeps_every_character() {
        let stored = "Watch out \u{26a0}\u{fe0f}\nfirst\r\nlast\n";
        let shown = masked_text(stored);
        assert_ne!(shown, stored);
        let sent = shown.replace("first", "second");
        let kept = unmasked_text(&sent, stored).unwrap();
        assert!(kept.starts_with("Watch out \u{26a0}\u{fe0f}\nsecond"), "{kept:?}");
        assert!(kept.ends_with("last\n"), "{kept:?}");
    }

    #[test]
    fn secrets_are_masked_by_their_place_their_name_and_their_form() {
        let value = json!({
            "env": {"DEBUG": "1", "N": 5, "FLAG": true},
            "apiKeyHelper": "/bin/helper", "maxOutputTokens": "100",
            "deep": [{"my_token": "x", "model": "opus"}],
            "headers": {"Authorization": "Bearer abc"},
            "args": ["-y", "https://user:hunter2hunter2@host.example/x"],
        });
        assert_eq!(
            masked(&value),
            json!({
                "env": {"DEBUG": MASK, "N": MASK, "FLAG": true},
                "apiKeyHelper": "/bin/helper", "maxOutputTokens": "100",
                "deep": [{"my_token": MASK, "model": "opus"}],
                "headers": {"Authorization": MASK},
                "args": ["-y", MASK],
            })
        );
    }

    #[test]
    fn what_comes_back_masked_keeps_what_is_stored() {
        let stored = json!({
            "env": {"A": "one", "B": "two"},
            "list": [{"token": "t1", "n": 1}, {"token": "t2", "n": 2}],
        });
        let check = |sent: Value, wanted: Value| {
            assert_eq!(unmasked(&sent, Some(&stored)).unwrap(), wanted, "{sent}");
        };
        check(json!({"env": {"A": MASK, "C": "new"}}), json!({"env": {"A": "one", "C": "new"}}));
        // Moved, and edited in its place.
        check(
            json!({"list": [{"token": MASK, "n": 2}, {"token": MASK, "n": 1}]}),
            json!({"list": [{"token": "t2", "n": 2}, {"token": "t1", "n": 1}]}),
        );
        check(
            json!({"list": [{"token": MASK, "n": 7}, {"token": MASK, "n": 2}]}),
            json!({"list": [{"token": "t1", "n": 7}, {"token": "t2", "n": 2}]}),
        );
        check(
            json!({"list": [{"token": MASK, "n": 2}]}),
            json!({"list": [{"token": "t2", "n": 2}]}),
        );
        for (sent, at) in [
            (json!({"env": {"NEW": MASK}}), "env.NEW"),
            (json!({"other": MASK}), "other"),
            (json!({"list": [{"token": MASK, "n": 9}]}), "list[0].token"),
            (json!([MASK]), "[0]"),
        ] {
            let refused = unmasked(&sent, Some(&stored)).unwrap_err().0;
            assert!(refused.starts_with(at), "{refused}");
        }
        assert!(unmasked(&json!({"a": MASK}), None).is_err());
    }

    #[test]
    fn a_text_comes_back_with_its_secrets() {
        let stored =
            "---\nname: x\n---\nexport API_KEY=sk-ant-api03-abcdefghijklmnopqrstuvwxyz\nend\n";
        let shown = masked_text(stored);
        assert!(!shown.contains("abcdefghij"), "{shown}");
        assert_eq!(unmasked_text(&shown, stored).unwrap(), stored);
        let edited = format!("# new\n{}", shown.replace("end", "The end."));
        let wanted = format!("# new\n{}", stored.replace("end", "The end."));
        assert_eq!(unmasked_text(&edited, stored).unwrap(), wanted);
        let moved = shown.replace("export", "set");
        assert!(unmasked_text(&moved, stored).unwrap_err().0.starts_with("line 4"));
        assert_eq!(unmasked_text("plain", stored).unwrap(), "plain");
    }

    proptest! {
        #[test]
        fn what_is_shown_and_sent_back_changes_nothing(
            keys in prop::collection::vec("[a-c]|env|token", 0..4),
            values in prop::collection::vec("[xy]{0,3}", 0..4),
        ) {
            let members: Map<String, Value> =
                keys.into_iter().zip(values.iter().cloned().map(Value::from)).collect();
            let stored = json!({"env": members, "list": [members, values], "other": members});
            let shown = masked(&stored);
            prop_assert_eq!(unmasked(&shown, Some(&stored)).unwrap(), stored);
        }
    }
}
