//! Reads the wanted parts of a JSON text and keeps nothing of the rest.
//!
//! The agent's configuration file can have tens of megabytes of history that is of no interest. A
//! whole tree of it takes several times its size, and what is freed of so many small pieces does
//! not go back to the system.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// What is kept of a value. A value of another type is kept as `null`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted {
    /// All of it.
    Whole,
    /// None of it.
    ///
    /// It is read like everything else, so that the limit on its depth holds.
    Nothing,
    /// The names of an object's members.
    Names,
    /// These members of an object.
    Members(&'static [(&'static str, Wanted)]),
    /// This of every member of an object.
    Each(&'static Wanted),
}

/// The wanted part of a text. Of members with the same name the last one counts.
///
/// # Errors
/// The text is no JSON.
pub(crate) fn part(text: &str, wanted: Wanted) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = wanted.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

impl<'de> DeserializeSeed<'de> for Wanted {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        match self {
            Self::Whole => serde::Deserialize::deserialize(reader),
            Self::Nothing | Self::Names | Self::Members(_) | Self::Each(_) => {
                reader.deserialize_any(self)
            }
        }
    }
}

impl<'de> Visitor<'de> for Wanted {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        if let Self::Nothing | Self::Whole = self {
            while members.next_key::<IgnoredAny>()?.is_some() {
                members.next_value_seed(Self::Nothing)?;
            }
            return Ok(Value::Null);
        }
        let mut kept = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let (wanted, is_kept) = match self {
                Self::Members(all) => {
                    let member = all.iter().find(|(member, _)| *member == name);
                    (member.map_or(Self::Nothing, |(_, wanted)| *wanted), member.is_some())
                }
                Self::Each(wanted) => (*wanted, true),
                Self::Names | Self::Nothing | Self::Whole => (Self::Nothing, true),
            };
            let value = members.next_value_seed(wanted)?;
            if is_kept {
                kept.insert(name, value);
            }
        }
        Ok(Value::Object(kept))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        while items.next_element_seed(Self::Nothing)?.is_some() {}
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_str<E>(self, _: &str) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const WANTED: Wanted = Wanted::Members(&[
        ("names", Wanted::Names),
        ("each", Wanted::Each(&Wanted::Members(&[("flag", Wanted::Whole)]))),
    ]);

    #[test]
    fn only_the_wanted_part_is_kept() {
        let text = json!({
            "history": [{"flag": true}, "x"],
            "names": {"a": {"long": [1, 2]}, "b": null},
            "each": {"/p": {"flag": [true, 1.5], "history": ["y"]}, "/q": 7, "/r": {}},
        });
        let expected = json!({
            "names": {"a": null, "b": null},
            "each": {"/p": {"flag": [true, 1.5]}, "/q": null, "/r": {}},
        });
        assert_eq!(part(&text.to_string(), WANTED).unwrap(), expected);
    }

    #[test]
    fn values_of_another_type_are_nothing_and_the_last_of_a_name_counts() {
        for (text, expected) in [
            ("[1, {\"names\": {\"a\": 1}}]", json!(null)),
            ("\"names\"", json!(null)),
            ("-1.5e3", json!(null)),
            ("{\"names\": [\"a\"], \"each\": true}", json!({"names": null, "each": null})),
            ("{\"each\": {\"/p\": {\"flag\": true}}, \"each\": 1}", json!({"each": null})),
        ] {
            assert_eq!(part(text, WANTED).unwrap(), expected, "{text}");
        }
        let deep = format!("{{\"other\": {}{}}}", "[".repeat(5000), "]".repeat(5000));
        for bad in
            [deep.as_str(), "", "{", "{} x", "{\"other\": tru}", "{\"other\": \"\\q\"}", "{'a': 1}"]
        {
            assert!(part(bad, WANTED).is_err(), "{bad}");
        }
    }
}
