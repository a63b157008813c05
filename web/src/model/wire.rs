//! Reading what the service sends, with one generic reader.
//!
//! The derived readers of tagged and flattened types exist once per source of data, and together
//! were a fifth of the module. Here every text becomes a JSON value first, whose members are taken
//! by hand (`records`). Tests write with the derived
//! writers of the shared types and read here, so a change of shape does not go unnoticed.

use serde_json::{Map, Value};
use std::str::FromStr;
use svc_shared::Word;
use svc_shared::error::{ErrorBody, ErrorDetail, SchemaProblem};

/// The text is not what was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable;

/// What was read, if it could be.
pub type Read<T> = Result<T, Unreadable>;

/// A type that can be read from a JSON value.
pub trait FromWire: Sized {
    /// Reads it.
    ///
    /// # Errors
    /// When the value does not have its shape.
    fn from_wire(value: Value) -> Read<Self>;
}

/// Reads a text.
///
/// # Errors
/// When it is not JSON, or not of this shape.
pub fn read<T: FromWire>(text: &str) -> Read<T> {
    T::from_wire(serde_json::from_str(text).map_err(|_| Unreadable)?)
}

/// An object whose members are taken one by one. Every taking fails when the member is missing or
/// of another type.
#[derive(Debug)]
pub struct Members(Map<String, Value>);

#[expect(clippy::missing_errors_doc, reason = "said once, at the type")]
impl Members {
    /// The members of an object.
    pub fn of(value: Value) -> Read<Self> {
        match value {
            Value::Object(members) => Ok(Self(members)),
            _ => Err(Unreadable),
        }
    }

    /// Any value.
    pub fn value(&mut self, name: &str) -> Read<Value> {
        self.0.remove(name).ok_or(Unreadable)
    }

    /// A text.
    pub fn text(&mut self, name: &str) -> Read<String> {
        text(self.value(name)?)
    }

    /// A text that may be null.
    pub fn maybe(&mut self, name: &str) -> Option<String> {
        self.text(name).ok()
    }

    /// Another object.
    pub fn members(&mut self, name: &str) -> Read<Self> {
        Self::of(self.value(name)?)
    }

    /// A text that has a form of its own.
    pub fn parsed<T: FromStr>(&mut self, name: &str) -> Read<T> {
        self.text(name)?.parse().map_err(|_| Unreadable)
    }

    /// A word that may be newer than this page.
    pub fn word<T: FromStr>(&mut self, name: &str) -> Read<Word<T>> {
        Ok(Word::of(&self.text(name)?))
    }

    /// A whole number that may be null.
    pub fn integer(&mut self, name: &str) -> Option<i32> {
        i32::try_from(self.value(name).ok()?.as_i64()?).ok()
    }

    /// A list of texts.
    pub fn texts(&mut self, name: &str) -> Read<Vec<String>> {
        list(self.value(name)?)?.map(text).collect()
    }

    /// A whole number.
    pub fn number(&mut self, name: &str) -> Read<u64> {
        self.value(name)?.as_u64().ok_or(Unreadable)
    }

    /// A small whole number.
    pub fn small(&mut self, name: &str) -> Read<u32> {
        u32::try_from(self.number(name)?).map_err(|_| Unreadable)
    }

    /// True or false.
    pub fn flag(&mut self, name: &str) -> Read<bool> {
        self.value(name)?.as_bool().ok_or(Unreadable)
    }
}

impl FromWire for Members {
    fn from_wire(value: Value) -> Read<Self> {
        Self::of(value)
    }
}

impl IntoIterator for Members {
    type Item = (String, Value);
    type IntoIter = serde_json::map::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

fn text(value: Value) -> Read<String> {
    match value {
        Value::String(text) => Ok(text),
        _ => Err(Unreadable),
    }
}

/// The values of a list.
///
/// # Errors
/// When it is none.
pub fn list(value: Value) -> Read<std::vec::IntoIter<Value>> {
    match value {
        Value::Array(values) => Ok(values.into_iter()),
        _ => Err(Unreadable),
    }
}

impl FromWire for ErrorBody {
    fn from_wire(value: Value) -> Read<Self> {
        let mut body = Members::of(value)?;
        let detail = match body.value("detail")? {
            Value::String(text) => ErrorDetail::Text(text),
            problems => {
                let problems = list(problems)?.map(SchemaProblem::from_wire);
                ErrorDetail::Schema(problems.collect::<Read<_>>()?)
            }
        };
        Ok(Self {
            detail,
            code: body.text("code")?,
            candidates: body.texts("candidates").ok(),
            error_id: body.text("error_id").ok(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample::{bridge, preflight};
    use svc_shared::api::instances::{Outcome, SpawnResult};
    use svc_shared::status::BridgeStatus;

    /// What is written with the derived writer is read as the derived reader reads it.
    #[track_caller]
    fn check<T>(value: T)
    where
        T: FromWire + serde::Serialize + PartialEq + std::fmt::Debug,
    {
        let text = serde_json::to_string(&value).unwrap();
        assert_eq!(read::<T>(&text), Ok(value), "{text}");
    }

    #[test]
    fn answers_are_read_as_they_were_written() {
        check(preflight(Vec::new()));
        check(SpawnResult {
            instance: bridge("api", BridgeStatus::Running),
            outcome: Outcome {
                created: false,
                reason: Some("r".into()),
                reason_code: None,
                warnings: vec!["w".into()],
            },
        });
        let text = |code: &str| ErrorBody {
            detail: ErrorDetail::Text("d".into()),
            code: code.into(),
            candidates: None,
            error_id: None,
        };
        check(text("x"));
        check(ErrorBody { candidates: Some(vec!["1".into()]), ..text("ambiguous") });
        check(ErrorBody { error_id: Some("0badcafe".into()), ..text("internal") });
        let problem =
            SchemaProblem { loc: vec!["body".into()], msg: "m".into(), kind: "missing".into() };
        check(ErrorBody { detail: ErrorDetail::Schema(vec![problem]), ..text("schema") });
    }
}
