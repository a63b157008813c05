//! Reads frames and changes in two steps: first the kind, then its members.
//!
//! Until the kind is known the rest stays raw text. The derived readers of tagged and flattened
//! enums copy everything into a tree of values before they know the variant, and the compiler
//! repeats them for that tree.

use super::{Op, Put, Record};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Defines an enum of frames that differ in their member `type`.
///
/// Writing and reading follow from the one definition. A variant `Other` is added for frames of
/// another version.
macro_rules! tagged_frames {
    (
        $(#[$about:meta])*
        pub enum $name:ident {$(
            $(#[$doc:meta])*
            $variant:ident = $tag:literal {$(
                $(#[$member_doc:meta])*
                $member:ident: $type:ty,
            )*}
        )+}
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(tag = "type")]
        pub enum $name {
            $(
                $(#[$doc])*
                #[serde(rename = $tag)]
                $variant {$(
                    $(#[$member_doc])*
                    $member: $type,
                )*},
            )+
            /// A frame that this version does not know; never sent.
            #[serde(skip)]
            Other,
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = envelope::text(from)?;
                match &*envelope::kind(text).map_err(serde::de::Error::custom)? {
                    $(
                        $tag => {
                            #[derive(Deserialize)]
                            struct Members {$(
                                $member: $type,
                            )*}
                            let Members { $($member),* } =
                                serde_json::from_str(text).map_err(serde::de::Error::custom)?;
                            Ok(Self::$variant { $($member),* })
                        }
                    )+
                    _ => Ok(Self::Other),
                }
            }
        }
    };
}
pub(super) use tagged_frames;

/// What is read, as it was written.
pub(super) fn text<'de, D: Deserializer<'de>>(from: D) -> Result<&'de str, D::Error> {
    <&RawValue>::deserialize(from).map(RawValue::get)
}

/// The member `type` of a frame; the others are passed over.
pub(super) fn kind(text: &str) -> serde_json::Result<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
    }
    serde_json::from_str(text).map(|Kind { kind }| kind)
}

/// A change with its record as raw text.
#[derive(Deserialize)]
struct RawOp<'a> {
    #[serde(borrow)]
    op: Cow<'a, str>,
    k: String,
    id: String,
    #[serde(borrow)]
    v: Option<&'a RawValue>,
}

impl<'de> Deserialize<'de> for Op {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let RawOp { op, k, id, v } = RawOp::deserialize(from)?;
        match &*op {
            "put" => {
                let v = v.map_or("null", RawValue::get);
                let record = record(&k, v).map_err(D::Error::custom)?;
                Ok(Self::Put(Put { id, record }))
            }
            "del" => Ok(Self::Del { k, id }),
            other => Err(D::Error::unknown_variant(other, &["put", "del"])),
        }
    }
}

fn record(kind: &str, v: &str) -> serde_json::Result<Record> {
    fn read<'de, T: Deserialize<'de>>(v: &'de str) -> serde_json::Result<T> {
        serde_json::from_str(v)
    }
    Ok(match kind {
        "project" => Record::Project(read(v)?),
        "instance" => Record::Instance(read(v)?),
        "job" => Record::Job(read(v)?),
        "external" => Record::External(read(v)?),
        "tracked" => Record::Tracked(read(v)?),
        "adoptable" => Record::Adoptable(read(v)?),
        "question" => Record::Question(read(v)?),
        "launch" => Record::Launch(read(v)?),
        "plan_limit" => Record::PlanLimit(read(v)?),
        "clone" => Record::Clone(read(v)?),
        "preflight" => Record::Preflight(read(v)?),
        "health" => Record::Health(read(v)?),
        "login" => Record::Login(read(v)?),
        "shepherd" => Record::Shepherd(read(v)?),
        "restore" => Record::Restore(read(v)?),
        _ => Record::Other,
    })
}
