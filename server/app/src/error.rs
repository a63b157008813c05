//! What a use-case answers when it does not do what was asked.

use svc_shared::error::ErrorCode;

/// A refusal or failure with a text for the caller and a cause for the log.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct AppError {
    /// Machine-readable reason.
    pub code: ErrorCode,
    /// Tells apart answers that share a code but not a meaning.
    pub class: Class,
    /// What happened, why, what to do next.
    /// Free of secrets, paths of the service and SQL.
    pub message: String,
    /// Ids that match an ambiguous reference, sorted.
    pub candidates: Vec<String>,
    /// For the log only.
    #[source]
    pub cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Kind of a failure; each door maps it once (HTTP status, exit code).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The request asks for something that can never work as written.
    Invalid,
    /// It names something that does not exist.
    NotFound,
    /// It is forbidden by configuration.
    Forbidden,
    /// The present state does not allow it.
    Conflict,
    /// It is larger than what is kept.
    TooLarge,
    /// Something it needs is not available now.
    Unavailable,
    /// Another program failed.
    Upstream,
    /// No space.
    Storage,
    /// A defect of the service.
    Internal,
}

impl AppError {
    /// A failure without a cause.
    pub fn new(code: ErrorCode, class: Class, message: impl Into<String>) -> Self {
        Self { code, class, message: message.into(), candidates: Vec::new(), cause: None }
    }

    /// The same with a cause for the log.
    #[must_use]
    pub fn because(mut self, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// A defect; the caller learns only that there is one.
    pub fn internal(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::new(ErrorCode::Internal, Class::Internal, "internal error").because(cause)
    }

    /// Something the service itself cannot do right now.
    pub fn busy(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Busy, Class::Unavailable, message)
    }

    /// Whether the same may work in a moment.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self.class, Class::Unavailable | Class::Storage)
    }

    /// A value that is not allowed; the message names the field.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidValue, Class::Invalid, message)
    }
}
