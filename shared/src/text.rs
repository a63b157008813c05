//! Rules for text that people give and that names things.

#[cfg(not(target_arch = "wasm32"))]
use unicode_general_category::{GeneralCategory, get_general_category};

/// Longest session name in characters (`http-api` §0.5).
pub const SESSION_NAME_CHARS: usize = 128;

/// Whether a character has no place in a name.
///
/// True for controls, format characters (bidi overrides and zero-width ones among them),
/// surrogates, private use, unassigned characters and the two line separators.
///
/// In the page (wasm32) unassigned characters pass: their table alone would be a twentieth of the
/// module, and the server has the last word on every name.
#[must_use]
pub fn is_unprintable(c: char) -> bool {
    #[cfg(target_arch = "wasm32")]
    let is = crate::characters::is_assigned_unprintable(c);
    #[cfg(not(target_arch = "wasm32"))]
    let is = matches!(
        get_general_category(c),
        GeneralCategory::Control
            | GeneralCategory::Format
            | GeneralCategory::Surrogate
            | GeneralCategory::PrivateUse
            | GeneralCategory::Unassigned
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator
    );
    is
}

/// Whether a character hides in a name.
/// It shows nothing, turns the text around it, or is no text.
///
/// For names and values that this product defines. Session and project names follow
/// [`is_unprintable`], the list of categories of `http-api` §0.5.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    is_unprintable(c) || crate::characters::is_invisible(c)
}

/// Why a session name was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadSessionName {
    /// Longer than [`SESSION_NAME_CHARS`].
    #[error("it has more than 128 characters; use a shorter one")]
    TooLong,
    /// A control, format or otherwise unprintable character.
    #[error("it holds a control or invisible character; remove it")]
    Unprintable,
    /// A leading `-` could be read as an option of the agent.
    #[error("it begins with `-`; begin it with another character")]
    LeadingDash,
}

/// The session name that a caller gave: trimmed; `None` is the default.
///
/// # Errors
/// The rule of `http-api` §0.5 that the name breaks.
pub fn session_name(raw: &str) -> Result<Option<String>, BadSessionName> {
    let name = raw.trim();
    if name.is_empty() {
        return Ok(None);
    }
    if name.chars().any(is_unprintable) {
        return Err(BadSessionName::Unprintable);
    }
    if name.starts_with('-') {
        return Err(BadSessionName::LeadingDash);
    }
    if name.chars().count() > SESSION_NAME_CHARS {
        return Err(BadSessionName::TooLong);
    }
    Ok(Some(name.to_owned()))
}

/// Gives a type that is a string on the wire its place in the `OpenAPI` document.
#[cfg(feature = "openapi")]
macro_rules! string_schema {
    ($type:ty, $name:literal, $format:literal) => {
        impl ::poem_openapi::types::Type for $type {
            const IS_REQUIRED: bool = true;
            type RawValueType = Self;
            type RawElementValueType = Self;

            fn name() -> ::std::borrow::Cow<'static, str> {
                ::std::borrow::Cow::Borrowed(concat!($name, "_", $format))
            }
            fn schema_ref() -> ::poem_openapi::registry::MetaSchemaRef {
                ::poem_openapi::registry::MetaSchemaRef::Inline(Box::new(
                    ::poem_openapi::registry::MetaSchema::new_with_format("string", $format),
                ))
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
        impl ::poem_openapi::types::ToJSON for $type {
            fn to_json(&self) -> Option<::serde_json::Value> {
                Some(::serde_json::Value::String(self.to_string()))
            }
        }
        impl ::poem_openapi::types::ToHeader for $type {
            fn to_header(&self) -> Option<::poem_openapi::__private::poem::http::HeaderValue> {
                ::poem_openapi::__private::poem::http::HeaderValue::from_str(&self.to_string()).ok()
            }
        }
        impl ::poem_openapi::types::ParseFromJSON for $type {
            fn parse_from_json(
                value: Option<::serde_json::Value>,
            ) -> ::poem_openapi::types::ParseResult<Self> {
                match value {
                    Some(::serde_json::Value::String(raw)) => raw
                        .parse()
                        .map_err(|_| ::poem_openapi::types::ParseError::custom("malformed value")),
                    Some(other) => Err(::poem_openapi::types::ParseError::expected_type(other)),
                    None => Err(::poem_openapi::types::ParseError::expected_input()),
                }
            }
        }
        impl ::poem_openapi::types::ParseFromParameter for $type {
            fn parse_from_parameter(raw: &str) -> ::poem_openapi::types::ParseResult<Self> {
                raw.parse()
                    .map_err(|_| ::poem_openapi::types::ParseError::custom("malformed value"))
            }
        }
    };
}
#[cfg(feature = "openapi")]
pub(crate) use string_schema;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::characters::is_assigned_unprintable;

    #[test]
    fn a_session_name_is_trimmed_and_blank_means_default() {
        assert_eq!(session_name("  nightly checks ").unwrap().as_deref(), Some("nightly checks"));
        assert_eq!(session_name(" \t ").unwrap(), None);
    }

    #[test]
    fn hostile_session_names_are_refused() {
        for (raw, why) in [
            ("a\u{0}b", BadSessionName::Unprintable),
            ("a\nb", BadSessionName::Unprintable),
            ("a\u{202e}b", BadSessionName::Unprintable),
            ("a\u{2066}b", BadSessionName::Unprintable),
            ("a\u{200b}b", BadSessionName::Unprintable),
            ("a\u{2028}b", BadSessionName::Unprintable),
            ("a\u{e000}b", BadSessionName::Unprintable),
            ("--help", BadSessionName::LeadingDash),
            ("-", BadSessionName::LeadingDash),
        ] {
            assert_eq!(session_name(raw), Err(why), "{raw:?}");
        }
        assert_eq!(session_name(&"é".repeat(129)), Err(BadSessionName::TooLong));
        assert!(session_name(&"é".repeat(128)).is_ok());
    }

    #[test]
    fn the_page_agrees_on_every_assigned_character() {
        for c in char::MIN..=char::MAX {
            let unassigned = get_general_category(c) == GeneralCategory::Unassigned;
            assert_eq!(is_assigned_unprintable(c), is_unprintable(c) && !unassigned, "{c:?}");
        }
    }
}
