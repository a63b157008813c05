//! Replies of the documented operations, and their description.

use super::schema::{AmbiguousError, Error, HealthMinimal, SchemaError, SpawnResultSchema};
use crate::error::Refusal;
use poem::{IntoResponse, Response};
use poem_openapi::ApiResponse;
use poem_openapi::registry::{
    MetaMediaType, MetaResponse, MetaResponses, MetaSchema, MetaSchemaRef, Registry,
};
use poem_openapi::types::Type;
use std::marker::PhantomData;

/// What an operation sends. `D` says what that can be.
pub(crate) struct Answer<D> {
    outcome: Result<Response, Refusal>,
    documented: PhantomData<fn() -> D>,
}

impl<D> Answer<D> {
    pub(crate) fn new(outcome: Result<Response, Refusal>) -> Self {
        Self { outcome, documented: PhantomData }
    }
}

/// The documented replies of one operation.
pub(crate) trait Documented {
    /// Status, meaning and schema of what works out.
    fn successes() -> Vec<(u16, &'static str, MetaSchemaRef)>;
    /// Media type of what works out.
    const MEDIA: &'static str = JSON;
    /// Statuses of refusals, besides those every operation has.
    const REFUSALS: &'static [u16];
    /// Puts the schemas into the document.
    fn register(registry: &mut Registry);
}

/// Refusals of every operation: credential, origin, host, shutting down.
const COMMON: [u16; 4] = [401, 403, 421, 503];

impl<D: Send> IntoResponse for Answer<D> {
    fn into_response(self) -> Response {
        self.outcome.unwrap_or_else(Refusal::into_json)
    }
}

impl<D: Documented> ApiResponse for Answer<D> {
    fn meta() -> MetaResponses {
        let successes = D::successes()
            .into_iter()
            .map(|(status, description, schema)| response(status, description, D::MEDIA, schema));
        let mut statuses: Vec<u16> = COMMON.iter().chain(D::REFUSALS).copied().collect();
        statuses.sort_unstable();
        statuses.dedup();
        let refusals = statuses
            .into_iter()
            .map(|status| response(status, meaning(status), JSON, refusal(status)));
        MetaResponses { responses: successes.chain(refusals).collect() }
    }

    fn register(registry: &mut Registry) {
        D::register(registry);
        Error::register(registry);
        SchemaError::register(registry);
        AmbiguousError::register(registry);
    }
}

const JSON: &str = "application/json";

fn response(
    status: u16,
    description: &'static str,
    content_type: &'static str,
    schema: MetaSchemaRef,
) -> MetaResponse {
    MetaResponse {
        description,
        status: Some(status),
        status_range: None,
        content: vec![MetaMediaType { content_type, schema }],
        headers: vec![],
    }
}

fn meaning(status: u16) -> &'static str {
    match status {
        401 => "No credential.",
        403 => "Origin not allowed, or forbidden by configuration.",
        404 => "Unknown.",
        409 => "The present state does not allow it.",
        413 => "The body is too large.",
        415 => "The body is not declared as JSON.",
        421 => "The host name is not served here.",
        422 => "A member or value does not fit.",
        502 => "Another program failed.",
        503 => "Something needed is not available now.",
        507 => "Not enough free space.",
        _ => "",
    }
}

fn refusal(status: u16) -> MetaSchemaRef {
    match status {
        409 => either(Error::schema_ref(), AmbiguousError::schema_ref()),
        422 => either(Error::schema_ref(), SchemaError::schema_ref()),
        _ => Error::schema_ref(),
    }
}

pub(crate) fn either(one: MetaSchemaRef, other: MetaSchemaRef) -> MetaSchemaRef {
    let mut schema = MetaSchema::ANY;
    schema.any_of = vec![one, other];
    MetaSchemaRef::Inline(Box::new(schema))
}

/// One type per operation that has replies of its own.
pub(crate) mod doc {
    use super::*;
    use crate::public::SessionsByKey;
    use svc_shared::api::health::Health;
    use svc_shared::api::instances::Instance;
    use svc_shared::api::jobs::{
        BackgroundJob, DispatchResult, ResumeAgentResult, StopAgentResult,
    };
    use svc_shared::api::projects::Project;

    macro_rules! documented {
        ($($name:ident: [$($status:literal $meaning:literal $type:ty),+] [$($refusal:literal),*];)+) => {$(
            pub(crate) struct $name;
            impl Documented for $name {
                fn successes() -> Vec<(u16, &'static str, MetaSchemaRef)> {
                    vec![$(($status, $meaning, <$type>::schema_ref())),+]
                }
                const REFUSALS: &'static [u16] = &[$($refusal),*];
                fn register(registry: &mut Registry) {
                    $(<$type>::register(registry);)+
                }
            }
        )+};
    }

    documented! {
        Projects: [200 "The projects." Vec<Project>] [422];
        Sessions: [200 "The sessions; keys without any are left out." SessionsByKey] [];
        Names: [200 "The names." Vec<String>] [];
        Instances: [200 "The instances." Vec<Instance>] [422];
        Spawn: [
            201 "Launched." SpawnResultSchema,
            200 "Nothing new was launched; the instance is the one that is there." SpawnResultSchema
        ] [404, 409, 413, 415, 422, 502, 507];
        OneInstance: [200 "The instance." Instance] [404, 409];
        Stopped: [200 "The instance, ended." Instance] [404, 409, 507];
        Resume: [200 "Revived, or declined." SpawnResultSchema] [404, 409, 413, 415, 422, 502, 507];
        Jobs: [200 "The jobs." Vec<BackgroundJob>] [];
        Dispatch: [201 "Started." DispatchResult] [404, 409, 413, 415, 422, 502, 507];
        StopJob: [200 "Stopped, as far as could be confirmed." StopAgentResult] [404, 409, 422];
        ResumeJob: [201 "Started." ResumeAgentResult] [404, 409, 413, 415, 422, 502, 507];
    }

    /// A text in the exposition format.
    pub(crate) struct Metrics;
    impl Documented for Metrics {
        fn successes() -> Vec<(u16, &'static str, MetaSchemaRef)> {
            vec![(200, "The figures.", String::schema_ref())]
        }
        const MEDIA: &'static str = "text/plain";
        const REFUSALS: &'static [u16] = &[404];
        fn register(_: &mut Registry) {}
    }

    /// The full report, or the minimal one for callers that may not have more.
    pub(crate) struct HealthReport;

    impl Documented for HealthReport {
        fn successes() -> Vec<(u16, &'static str, MetaSchemaRef)> {
            let schema = either(Health::schema_ref(), HealthMinimal::schema_ref());
            vec![(200, "Up.", schema)]
        }
        const REFUSALS: &'static [u16] = &[];
        fn register(registry: &mut Registry) {
            Health::register(registry);
            HealthMinimal::register(registry);
        }
    }
}
