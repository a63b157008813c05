//! A word of an enumeration that may be newer than this program.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// One of the words of `T`, or a word this version does not know, kept as written.
///
/// Records use it where a page may be older than the server: an unknown word is shown raw and
/// never mapped to a known one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Word<T> {
    /// A word of this version.
    Known(T),
    /// A word of another version.
    Other(Box<str>),
}

impl<T> Word<T> {
    /// The value, when this version knows it.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Other(_) => None,
        }
    }

    /// Whether this is exactly the known word `value`.
    pub fn is(&self, value: &T) -> bool
    where
        T: PartialEq,
    {
        self.known() == Some(value)
    }
}

impl<T: FromStr> Word<T> {
    /// The word that a text is.
    #[must_use]
    pub fn of(raw: &str) -> Self {
        raw.parse().map_or_else(|_| Self::Other(raw.into()), Self::Known)
    }
}

impl<T> From<T> for Word<T> {
    fn from(value: T) -> Self {
        Self::Known(value)
    }
}

impl<T: fmt::Display> fmt::Display for Word<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(value) => value.fmt(f),
            Self::Other(raw) => f.write_str(raw),
        }
    }
}

impl<T: fmt::Display> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de, T: FromStr> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self::of(&String::deserialize(from)?))
    }
}

#[cfg(feature = "openapi")]
mod schema {
    use super::Word;
    use poem_openapi::registry::{MetaSchemaRef, Registry};
    use poem_openapi::types::{ParseError, ParseFromJSON, ParseResult, ToJSON, Type};
    use std::borrow::Cow;

    /// The schema lists the known words only: they are what this version sends.
    impl<T: Type + std::fmt::Display + Send + Sync> Type for Word<T> {
        const IS_REQUIRED: bool = true;
        type RawValueType = Self;
        type RawElementValueType = Self;

        fn name() -> Cow<'static, str> {
            T::name()
        }
        fn schema_ref() -> MetaSchemaRef {
            T::schema_ref()
        }
        fn register(registry: &mut Registry) {
            T::register(registry);
        }
        fn as_raw_value(&self) -> Option<&Self::RawValueType> {
            Some(self)
        }
        fn raw_element_iter<'a>(
            &'a self,
        ) -> Box<dyn Iterator<Item = &'a Self::RawElementValueType> + 'a> {
            Box::new(self.as_raw_value().into_iter())
        }
    }

    impl<T: Type + std::fmt::Display + Send + Sync> ToJSON for Word<T> {
        fn to_json(&self) -> Option<serde_json::Value> {
            Some(serde_json::Value::String(self.to_string()))
        }
    }

    impl<T> ParseFromJSON for Word<T>
    where
        T: Type + std::fmt::Display + std::str::FromStr + Send + Sync,
    {
        fn parse_from_json(value: Option<serde_json::Value>) -> ParseResult<Self> {
            match value {
                Some(serde_json::Value::String(raw)) => Ok(Self::of(&raw)),
                Some(other) => Err(ParseError::expected_type(other)),
                None => Err(ParseError::expected_input()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Word;
    use crate::status::BridgeStatus;

    #[test]
    fn f87_an_unknown_word_survives_a_round_trip_as_written() {
        let word: Word<BridgeStatus> = serde_json::from_str("\"hibernating\"").unwrap();
        assert_eq!(word, Word::Other("hibernating".into()));
        assert_eq!(serde_json::to_string(&word).unwrap(), "\"hibernating\"");
        assert!(!word.is(&BridgeStatus::Stopped));
    }
}
