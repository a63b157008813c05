//! Parameters and bodies of the documented operations.
//!
//! They are read by this crate's rules and described to the document.

use crate::body::fields::{self, FromFields};
use crate::error::Refusal;
use crate::target::Query;
use poem::{Request, RequestBody, Result};
use poem_openapi::registry::{
    MetaMediaType, MetaParamIn, MetaRequest, MetaSchema, MetaSchemaRef, Registry,
};
use poem_openapi::types::Type;
use poem_openapi::{ApiExtractor, ApiExtractorType, ExtractParamOptions};
use serde_json::Value;
use std::str::FromStr;
use std::time::Duration;
use svc_shared::status::UnknownWord;

/// Longest wait for readiness, seconds.
const LONGEST_WAIT: u64 = 30;
/// Wait when the caller says nothing, seconds.
const USUAL_WAIT: u64 = 15;
/// Longest idempotency key, bytes.
const KEY: usize = 128;

/// The body of a request, read and parsed before its handler.
#[derive(Debug, Clone)]
pub(crate) struct ParsedBody(pub(crate) Option<Value>);

/// The segments of the path that stand for names, decoded.
#[derive(Debug, Clone)]
pub(crate) struct PathNames(pub(crate) Vec<String>);

/// The name in the path of an operation.
pub(crate) struct PathName(pub(crate) String);

/// The id of a background job in the path of an operation.
pub(crate) struct PathJobId(pub(crate) String);

/// How long to wait for readiness.
pub(crate) struct Wait(pub(crate) Duration);

/// A repeatable parameter whose values are words; empty when absent.
pub(crate) struct Filter<T>(pub(crate) Vec<T>);

/// A repeatable parameter whose values are names; empty when absent.
pub(crate) struct NamedFilter(pub(crate) Vec<String>);

/// The `Idempotency-Key` header.
pub(crate) struct Key(pub(crate) Option<String>);

/// A JSON body by member, and the names nobody asked for.
pub(crate) struct JsonBody<T>(pub(crate) T, pub(crate) Vec<String>);

/// A type that can be a body: read from members, described by a schema.
pub(crate) trait Described: FromFields {
    /// Its schema.
    type Schema: Type;
    /// Whether the body may be absent.
    const IS_OPTIONAL: bool;
}

fn query(request: &Request) -> Query {
    request.data::<Query>().cloned().unwrap_or_default()
}

fn integer(min: f64, max: f64) -> MetaSchemaRef {
    let mut schema = MetaSchema::new("integer");
    schema.minimum = Some(min);
    schema.maximum = Some(max);
    MetaSchemaRef::Inline(Box::new(schema))
}

/// A string of this form.
fn text(pattern: &str) -> MetaSchemaRef {
    let mut schema = MetaSchema::new("string");
    schema.pattern = Some(pattern.to_owned());
    MetaSchemaRef::Inline(Box::new(schema))
}

fn list_of(items: MetaSchemaRef) -> MetaSchemaRef {
    let mut schema = MetaSchema::new("array");
    schema.items = Some(Box::new(items));
    MetaSchemaRef::Inline(Box::new(schema))
}

macro_rules! parameter {
    ([$($generic:tt)*] $type:ty, $place:ident, $schema:expr, $register:expr, $read:expr) => {
        impl<'a, $($generic)*> ApiExtractor<'a> for $type {
            const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::Parameter];
            const PARAM_IS_REQUIRED: bool = matches!(MetaParamIn::$place, MetaParamIn::Path);
            type ParamType = ();
            type ParamRawType = ();

            fn register(registry: &mut Registry) {
                let register: fn(&mut Registry) = $register;
                register(registry);
            }
            fn param_in() -> Option<MetaParamIn> {
                Some(MetaParamIn::$place)
            }
            fn param_schema_ref() -> Option<MetaSchemaRef> {
                Some($schema)
            }
            async fn from_request(
                request: &'a Request,
                _body: &mut RequestBody,
                options: ExtractParamOptions<()>,
            ) -> Result<Self> {
                let read: fn(&Request, &str) -> std::result::Result<Self, Refusal> = $read;
                Ok(read(request, options.name)?)
            }
        }
    };
}

fn first_name(request: &Request) -> Result<String, Refusal> {
    let names = request.data::<PathNames>();
    let name = names.and_then(|PathNames(names)| names.first()).cloned();
    name.ok_or_else(Refusal::not_found)
}

parameter!([] PathName, Path, String::schema_ref(), |_| {}, |request, _| {
    first_name(request).map(PathName)
});

parameter!([] PathJobId, Path, text("^[0-9a-f]{8}$"), |_| {}, |request, _| {
    first_name(request).map(PathJobId)
});

parameter!([] Wait, Query, integer(0.0, 30.0), |_| {}, |request, name| {
    let seconds = query(request).number(name, 0..=LONGEST_WAIT)?;
    Ok(Wait(Duration::from_secs(seconds.unwrap_or(USUAL_WAIT))))
});

parameter!([] NamedFilter, Query, list_of(String::schema_ref()), |_| {}, |request, name| {
    Ok(NamedFilter(query(request).all(name).map(str::to_owned).collect()))
});

parameter!(
    [T: Type + FromStr<Err = UnknownWord> + Send] Filter<T>,
    Query, list_of(T::schema_ref()), T::register,
    |request, name| query(request).words(name).map(Filter)
);

parameter!([] Key, Header, key_schema(), |_| {}, |request, name| Key::named(request, name));

impl Key {
    /// Of a route that is not documented.
    pub(crate) fn of(request: &poem::Request) -> Result<Self, Refusal> {
        Self::named(request, "Idempotency-Key")
    }

    fn named(request: &poem::Request, name: &str) -> Result<Self, Refusal> {
        let mut values = request.headers().get_all(name).iter();
        let key = match (values.next(), values.next()) {
            (None, _) => None,
            (Some(value), None) => Some(value.to_str().unwrap_or_default().to_owned()),
            (Some(_), Some(_)) => Some(String::new()),
        };
        match key {
            Some(key) if key.is_empty() || key.len() > KEY => Err(Refusal::invalid(
                "`Idempotency-Key` must stand once and have 1 to 128 visible ASCII characters",
            )),
            key => Ok(Self(key)),
        }
    }
}

fn key_schema() -> MetaSchemaRef {
    let mut schema = MetaSchema::new("string");
    schema.min_length = Some(1);
    schema.max_length = Some(KEY);
    MetaSchemaRef::Inline(Box::new(schema))
}

impl<'a, T: Described + Send> ApiExtractor<'a> for JsonBody<T> {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::RequestObject];
    type ParamType = ();
    type ParamRawType = ();

    fn register(registry: &mut Registry) {
        T::Schema::register(registry);
    }

    fn request_meta() -> Option<MetaRequest> {
        Some(MetaRequest {
            description: None,
            content: vec![MetaMediaType {
                content_type: "application/json",
                schema: T::Schema::schema_ref(),
            }],
            required: !T::IS_OPTIONAL,
        })
    }

    async fn from_request(
        request: &'a Request,
        _body: &mut RequestBody,
        _options: ExtractParamOptions<()>,
    ) -> Result<Self> {
        let body = request.data::<ParsedBody>().and_then(|body| body.0.clone());
        let (value, unknown) = fields::read(body)?;
        Ok(Self(value, unknown))
    }
}
