//! Schemas that only the document needs, and bodies that only this service reads.

use super::params::Described;
use crate::body::fields::{Fields, FromFields};
use poem_openapi::Object;
use poem_openapi::registry::{MetaSchema, MetaSchemaRef, Registry};
use poem_openapi::types::Type;
use serde::Serialize;
use std::borrow::Cow;
use svc_shared::api::instances::{Instance, Outcome, ResumeRequest, SpawnRequest};
use svc_shared::api::jobs::DispatchRequest;
use svc_shared::error::SchemaProblem;

/// A refusal.
#[derive(Debug, Object)]
pub(crate) struct Error {
    /// What happened, why, what to do next.
    pub(crate) detail: String,
    /// Machine-readable reason; see the list of codes.
    pub(crate) code: String,
}

/// A refusal that names the places that do not fit.
#[derive(Debug, Object)]
pub(crate) struct SchemaError {
    /// Every place.
    pub(crate) detail: Vec<SchemaProblem>,
    /// Always `schema`.
    pub(crate) code: String,
}

/// A refusal of a reference that matches several instances.
#[derive(Debug, Object)]
pub(crate) struct AmbiguousError {
    /// What matches, and what to do.
    pub(crate) detail: String,
    /// Always `ambiguous`.
    pub(crate) code: String,
    /// Ids that match, sorted.
    pub(crate) candidates: Vec<String>,
}

/// The report for callers that may not have more.
#[derive(Debug, Object)]
pub(crate) struct HealthMinimal {
    /// Always `ok` while serving.
    pub(crate) status: String,
}

/// Schema of [`svc_shared::api::instances::SpawnResult`].
///
/// It is an instance and an outcome in one object, which the derive cannot say of a flattened type.
pub(crate) struct SpawnResultSchema;

impl Type for SpawnResultSchema {
    const IS_REQUIRED: bool = true;
    type RawValueType = Self;
    type RawElementValueType = Self;

    fn name() -> Cow<'static, str> {
        "SpawnResult".into()
    }
    fn schema_ref() -> MetaSchemaRef {
        MetaSchemaRef::Reference("SpawnResult".into())
    }
    fn register(registry: &mut Registry) {
        registry.create_schema::<Self, _>("SpawnResult".into(), |registry| {
            Instance::register(registry);
            Outcome::register(registry);
            let mut schema = MetaSchema::ANY;
            schema.description = Some("The instance after the request, and what the request did.");
            schema.all_of = vec![Instance::schema_ref(), Outcome::schema_ref()];
            schema
        });
    }
    fn as_raw_value(&self) -> Option<&Self> {
        Some(self)
    }
    fn raw_element_iter<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Self> + 'a> {
        Box::new(std::iter::once(self))
    }
}

/// Body of a launch.
#[derive(Debug, Serialize)]
pub(crate) struct LaunchBody(pub(crate) SpawnRequest);

impl FromFields for LaunchBody {
    fn take(fields: &mut Fields) -> Self {
        Self(SpawnRequest::take(fields))
    }
}

impl Described for LaunchBody {
    type Schema = SpawnRequest;
    const IS_OPTIONAL: bool = false;
}

impl Described for ResumeRequest {
    type Schema = Self;
    const IS_OPTIONAL: bool = true;
}

impl FromFields for DispatchRequest {
    fn take(fields: &mut Fields) -> Self {
        Self {
            project: fields.required_text("project"),
            prompt: fields.text("prompt"),
            rc_name: fields.text("rc_name"),
            model: fields.text("model"),
            permission_mode: fields.text("permission_mode"),
            trust: fields.flag("trust"),
        }
    }
}

impl Described for DispatchRequest {
    type Schema = Self;
    const IS_OPTIONAL: bool = false;
}
