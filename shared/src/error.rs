//! The body of every refusal, and the machine-readable codes.

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $word:literal,)+) => {
        /// Machine-readable reason of a refusal: stable, clients branch on it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode { $($(#[$doc])* $variant,)+ }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The word on the wire.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }
    };
}

codes! {
    /// Malformed JSON or a member of the wrong type.
    Schema = "schema",
    /// A value that is understood and not allowed.
    InvalidValue = "invalid_value",
    /// The body is not declared as JSON.
    InvalidJsonType = "invalid_json_type",
    /// Over a size limit.
    TooLarge = "too_large",
    /// No such route.
    NotFound = "not_found",
    /// No such project.
    UnknownProject = "unknown_project",
    /// No such instance.
    UnknownInstance = "unknown_instance",
    /// No such background job.
    UnknownJob = "unknown_job",
    /// A reference that matches several instances.
    Ambiguous = "ambiguous",
    /// The directory is not trusted.
    NotTrusted = "not_trusted",
    /// A cap is reached.
    Capacity = "capacity",
    /// The process still lives.
    StillLive = "still_live",
    /// Nothing to resume.
    NotResumable = "not_resumable",
    /// Another name or another service holds the directory.
    HeldElsewhere = "held_elsewhere",
    /// Try again.
    Busy = "busy",
    /// The row is held.
    Quarantined = "quarantined",
    /// Not enough free space.
    DiskFull = "disk_full",
    /// The project does not allow bypassing permissions.
    BypassForbidden = "bypass_forbidden",
    /// The agent program is missing.
    AgentMissing = "agent_missing",
    /// The agent program failed.
    AgentFailed = "agent_failed",
    /// The hosted channel is off or not connected.
    HostedUnavailable = "hosted_unavailable",
    /// The hosted-session daemon failed.
    HostedFailed = "hosted_failed",
    /// No credential.
    AuthRequired = "auth_required",
    /// The browser's origin is not allowed.
    OriginCheckFailed = "origin_check_failed",
    /// The host name is not served here.
    HostNotAllowed = "host_not_allowed",
    /// Wrong password.
    BadPassword = "bad_password",
    /// Too many attempts.
    Throttled = "throttled",
    /// A fresh password proof is needed.
    ReauthRequired = "reauth_required",
    /// The token's scopes do not cover this.
    ScopeDenied = "scope_denied",
    /// The capability is off.
    CapabilityDisabled = "capability_disabled",
    /// The confirmation text is missing or wrong.
    ConfirmRequired = "confirm_required",
    /// Changed since it was read.
    Stale = "stale",
    /// May not be written.
    ReadOnly = "read_only",
    /// The clone source is not allowed.
    CloneBlocked = "clone_blocked",
    /// Exists already.
    Exists = "exists",
    /// Leaves its directory.
    PathEscape = "path_escape",
    /// Wrong method.
    MethodNotAllowed = "method_not_allowed",
    /// Shutting down.
    ShuttingDown = "shutting_down",
    /// A defect of the service.
    Internal = "internal",
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

/// One place of a request that does not fit its schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(poem_openapi::Object))]
pub struct SchemaProblem {
    /// Path to the place; begins with `body`, `query` or `path`.
    pub loc: Vec<String>,
    /// What is wrong, for a person.
    pub msg: String,
    /// What is wrong, as a word.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "openapi", oai(rename = "type"))]
    pub kind: String,
}

/// Either a sentence or the list of places that do not fit the schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ErrorDetail {
    /// A sentence for a person.
    Text(String),
    /// Code `schema` only.
    Schema(Vec<SchemaProblem>),
}

impl std::fmt::Display for ErrorDetail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Schema(problems) => {
                for (i, problem) in problems.iter().enumerate() {
                    let gap = if i == 0 { "" } else { "; " };
                    write!(f, "{gap}{}: {}", problem.loc.join("."), problem.msg)?;
                }
                Ok(())
            }
        }
    }
}

/// Body of every refusal, as a client reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// What happened, why, what to do next.
    pub detail: ErrorDetail,
    /// A word of [`ErrorCode`], or one of a newer version.
    pub code: String,
    /// Code `ambiguous`: the ids that match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidates: Option<Vec<String>>,
    /// Code `internal`: finds the line in the service log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_id: Option<String>,
}
