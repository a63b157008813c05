//! JSON with the limits of H77: 64 levels, no member twice, nothing out of range.

use crate::error::Refusal;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;
use svc_shared::error::SchemaProblem;

/// Deepest nesting of arrays and objects.
const DEPTH: usize = 64;

/// Parses a body.
///
/// # Errors
/// 422 `schema` with the place of the first defect, without an echo of the body.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, Refusal> {
    let mut parser = serde_json::Deserializer::from_slice(bytes);
    Strict { depth: DEPTH }
        .deserialize(&mut parser)
        .and_then(|value| parser.end().map(|()| value))
        .map_err(|error| {
            Refusal::schema(vec![SchemaProblem {
                loc: vec!["body".into()],
                msg: format!("not acceptable JSON: {error}"),
                kind: "json_invalid".into(),
            }])
        })
}

#[derive(Clone, Copy)]
struct Strict {
    depth: usize,
}

impl Strict {
    fn deeper<E: Error>(self) -> Result<Self, E> {
        let depth = self.depth.checked_sub(1);
        depth.map(|depth| Self { depth }).ok_or_else(|| E::custom("more than 64 levels"))
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("number out of range"))?;
        Ok(Value::Number(number))
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }
    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if map.contains_key(&name) {
                return Err(A::Error::custom("a member is given twice"));
            }
            let value = members.next_value_seed(inner)?;
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn refused(raw: &[u8]) {
        let refusal = parse(raw).unwrap_err();
        assert_eq!(refusal.status(), 422);
    }

    #[test]
    fn h77_malformed_and_hostile_documents_are_refused() {
        for raw in [
            "",
            "{",
            "nul",
            "{}x",
            "{'a':1}",
            "[1,]",
            "NaN",
            "1e999",
            "-1e999",
            "\u{feff}{}",
            r#"{"a":1,"a":2}"#,
            r#"{"a":{"b":1,"b":2}}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#""\ud800""#,
            r#""\udc00x""#,
            "\"\u{1}\"",
        ] {
            refused(raw.as_bytes());
        }
        refused(b"\"\xff\"");
        refused("9".repeat(5000).as_bytes());
        refused("[".repeat(200_000).as_bytes());
        refused(r#"{"a":"#.repeat(200_000).as_bytes());
    }

    #[test]
    fn h77_nesting_is_accepted_up_to_64_levels() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(parse(nested(64).as_bytes()).is_ok());
        refused(nested(65).as_bytes());
    }

    #[tokio::test]
    async fn h69_the_body_is_never_echoed() {
        let raw = br#"{"CANARYCANARY": CANARYCANARY}"#;
        let response = parse(raw).unwrap_err().into_json();
        let text = response.into_body().into_string().await.unwrap();
        assert!(!text.contains("CANARY"), "{text}");
    }

    proptest! {
        #[test]
        fn what_it_accepts_is_what_serde_reads(raw in r#"[\[\]{}",:0-9a-z\\ .e-]{0,40}"#) {
            if let Ok(value) = parse(raw.as_bytes()) {
                prop_assert_eq!(value, serde_json::from_str::<Value>(&raw).unwrap());
            }
        }
    }
}
