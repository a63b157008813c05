//! Schemas that only the document needs, and bodies that only this door reads.

use super::params::Described;
use crate::body::fields::{Fields, FromFields};
use poem_openapi::Object;
use poem_openapi::registry::{MetaSchema, MetaSchemaRef, Registry};
use poem_openapi::types::Type;
use serde::Serialize;
use std::borrow::Cow;
use svc_shared::api::instances::{Instance, Outcome, ResumeRequest, SpawnRequest};
use svc_shared::error::SchemaProblem;
use svc_shared::status::PermissionMode;

/// Longest prompt, bytes.
const PROMPT: usize = 100_000;
/// Longest model name, characters.
const MODEL: usize = 128;

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

/// A background job.
#[derive(Debug, Object)]
pub(crate) struct BackgroundJob {
    /// 8 lower-case hexadecimal digits.
    pub(crate) id: String,
    /// Project whose directory holds `cwd`.
    pub(crate) project: Option<String>,
    /// `working`, `blocked`, `done`, `failed`, `stopped`, `lost`, an unknown word as written, or
    /// empty.
    pub(crate) state: String,
    /// Progress line, redacted.
    pub(crate) detail: String,
    /// `active`, `blocked`, `idle` or empty.
    pub(crate) tempo: String,
    /// What it waits for, redacted.
    pub(crate) needs: Option<String>,
    /// Final text, redacted.
    #[oai(validator(max_length = 4000))]
    pub(crate) result: Option<String>,
    /// Dispatch prompt, redacted.
    pub(crate) intent: String,
    /// Redacted.
    pub(crate) name: Option<String>,
    /// Working directory.
    pub(crate) cwd: Option<String>,
    /// Token of the session's own id.
    pub(crate) session_ref: Option<String>,
    /// Registered with the remote service.
    pub(crate) remote_registered: bool,
    /// A transcript exists.
    pub(crate) has_transcript: bool,
    /// Release of the agent.
    pub(crate) cli_version: String,
    /// As written by the agent, or empty.
    pub(crate) created_at: String,
    /// As written by the agent, or empty.
    pub(crate) updated_at: String,
    /// Set only while `worker_alive`.
    pub(crate) worker_pid: Option<i32>,
    /// Its process was verified.
    pub(crate) worker_alive: bool,
}

/// Body of a dispatch.
#[derive(Debug, Clone, Serialize, Object)]
pub(crate) struct DispatchRequest {
    /// Project name.
    pub(crate) project: String,
    /// What the job shall do; required without `rc_name`.
    pub(crate) prompt: Option<String>,
    /// Registers the session with the remote service under this name.
    #[oai(validator(max_length = 128))]
    pub(crate) rc_name: Option<String>,
    /// Model to use.
    #[oai(validator(max_length = 128))]
    pub(crate) model: Option<String>,
    /// One of the seven permission modes.
    pub(crate) permission_mode: Option<String>,
    /// True acknowledges an untrusted directory.
    pub(crate) trust: Option<bool>,
}

/// A job was started.
#[derive(Debug, Object)]
pub(crate) struct DispatchResult {
    /// The new job.
    pub(crate) id: String,
    /// Always true.
    pub(crate) created: bool,
    /// What the caller should know although it worked.
    pub(crate) warnings: Vec<String>,
}

/// A job was stopped.
#[derive(Debug, Object)]
pub(crate) struct StopAgentResult {
    /// The job.
    pub(crate) id: String,
    /// The remote session was deregistered.
    pub(crate) settled: bool,
    /// The job is gone.
    pub(crate) removed: bool,
    /// What could not be confirmed, redacted.
    pub(crate) detail: Option<String>,
}

/// A job was started from an ended one.
#[derive(Debug, Object)]
pub(crate) struct ResumeAgentResult {
    /// The new job.
    pub(crate) id: String,
}

/// Schema of [`svc_shared::api::instances::SpawnResult`]: an instance and an outcome in one
/// object, which the derive cannot say of a flattened type.
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

impl DispatchRequest {
    /// The option rules of `http-api` §2.9, in its order.
    pub(crate) fn check(&self) -> Result<(), String> {
        if let Some(name) = &self.rc_name {
            match svc_shared::text::session_name(name) {
                Ok(Some(_)) => {}
                Ok(None) => {
                    return Err("`rc_name` is empty; leave it out or name the session".into());
                }
                Err(error) => return Err(format!("`rc_name` is not usable: {error}")),
            }
        }
        if let Some(model) = &self.model {
            let is_usable = !model.is_empty()
                && model.chars().count() <= MODEL
                && !model.starts_with('-')
                && !model.chars().any(char::is_control);
            if !is_usable {
                return Err(
                    "`model` must have 1 to 128 characters, no control characters, and not begin \
                     with `-`"
                        .into(),
                );
            }
        }
        if let Some(mode) = &self.permission_mode {
            let parsed: Result<PermissionMode, _> = mode.parse();
            parsed.map_err(|error| format!("`permission_mode` is unknown; {error}"))?;
        }
        let prompt = self.prompt.as_deref().unwrap_or_default();
        if prompt.len() > PROMPT {
            return Err("`prompt` has more than 100,000 bytes; shorten it".into());
        }
        let is_blank = prompt.chars().all(|c| c.is_whitespace() || c == '\u{feff}');
        if is_blank && self.rc_name.is_none() {
            return Err("`prompt` is missing; give one, or an `rc_name`".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dispatch(prompt: &str) -> DispatchRequest {
        DispatchRequest {
            project: "a".into(),
            prompt: Some(prompt.into()),
            rc_name: None,
            model: None,
            permission_mode: None,
            trust: None,
        }
    }

    #[test]
    fn a_dispatch_names_the_member_that_does_not_fit() {
        let check = |request: DispatchRequest| request.check().unwrap_err();
        assert!(check(dispatch(" \u{feff}\n")).contains("`prompt`"));
        assert!(check(dispatch(&"x".repeat(100_001))).contains("`prompt`"));
        let with = |model: &str| DispatchRequest { model: Some(model.into()), ..dispatch("x") };
        for model in ["", "-x", "a\u{7}", &"x".repeat(129)] {
            assert!(check(with(model)).contains("`model`"), "{model:?}");
        }
        let mode = DispatchRequest { permission_mode: Some("yolo".into()), ..dispatch("x") };
        assert!(check(mode).contains("`permission_mode`"));
        let name = DispatchRequest { rc_name: Some(" ".into()), ..dispatch("x") };
        assert!(check(name).contains("`rc_name`"));
        let named = DispatchRequest { prompt: None, rc_name: Some("n".into()), ..dispatch("") };
        assert_eq!(named.check(), Ok(()));
        assert_eq!(dispatch("do it").check(), Ok(()));
    }
}
