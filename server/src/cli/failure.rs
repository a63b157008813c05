//! Why a command ends before its work is done.

use crate::cli::exit_code::{self, Exit};
use crate::error_chain::error_chain;
use crate::serve::StartError;
use serde_json::{Map, Value, json};
use std::error::Error;
use std::io;
use svc_app::AppError;
use svc_config::ConfigErrors;
use svc_shared::error::ErrorCode;

/// What is said when a command refuses or fails.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// The word for programs.
    pub(crate) code: String,
    /// For people, without the program's prefix; at least one.
    pub(crate) lines: Vec<String>,
    /// Further members of the JSON document beside `error`.
    pub(crate) beside: Map<String, Value>,
}

/// Why a command ends before its work is done.
#[derive(Debug)]
pub(crate) enum End {
    /// It says why.
    Failure(Failure),
    /// Nobody reads the output any more, which is no reason to complain.
    Unread,
    /// A signal.
    Signal(Exit),
}

impl Failure {
    /// One sentence and how it ends.
    pub(crate) fn new(exit: Exit, code: impl Into<String>, line: impl Into<String>) -> Self {
        Self { exit, code: code.into(), lines: vec![line.into()], beside: Map::new() }
    }

    /// One more line for people.
    #[must_use]
    pub(crate) fn line(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }

    /// One more member of the JSON document.
    #[must_use]
    pub(crate) fn beside(mut self, name: &str, value: Value) -> Self {
        self.beside.insert(name.to_owned(), value);
        self
    }

    /// A failure of the machine: the chain of causes, redacted, as one line.
    pub(crate) fn chain(code: &str, error: &(dyn Error + 'static)) -> Self {
        Self::new(Exit::Failed, code, error_chain(error))
    }

    /// The document on standard output of a command with `--json`.
    pub(crate) fn document(&self) -> Value {
        let mut document = Map::new();
        document.insert(
            "error".to_owned(),
            json!({ "code": self.code, "message": self.lines.join("\n") }),
        );
        document.extend(self.beside.clone());
        Value::Object(document)
    }
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<ConfigErrors> for Failure {
    fn from(errors: ConfigErrors) -> Self {
        let lines = errors.lines();
        Self { exit: Exit::Refused, code: "config".to_owned(), lines, beside: Map::new() }
    }
}

impl From<ConfigErrors> for End {
    fn from(errors: ConfigErrors) -> Self {
        Self::Failure(errors.into())
    }
}

impl From<AppError> for Failure {
    fn from(error: AppError) -> Self {
        let exit = exit_code::of(&error);
        let mut failure = Self::new(exit, error.code.as_str(), error.message.clone());
        if error.code == ErrorCode::NotTrusted {
            failure = failure.line("on the command line, add `--trust`");
        }
        if let Some(cause) = &error.cause {
            // Whoever types a command may see what only the log of a server shows.
            failure = failure.line(format!("because: {}", error_chain(&**cause)));
        }
        if !error.candidates.is_empty() {
            failure = failure.beside("candidates", error.candidates.into());
        }
        failure
    }
}

impl From<AppError> for End {
    fn from(error: AppError) -> Self {
        Self::Failure(error.into())
    }
}

impl From<StartError> for End {
    fn from(error: StartError) -> Self {
        match error {
            StartError::App(error) => error.into(),
            StartError::Tls(error) => {
                let mut failure = Failure::chain("tls", &error);
                failure.exit = Exit::Refused;
                failure.into()
            }
            other => Failure::chain(other.code(), &other).into(),
        }
    }
}

impl End {
    /// What an error of our own output means.
    pub(crate) fn of_output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::Unread;
        }
        Self::Failure(Failure::new(
            Exit::Failed,
            "output",
            format!("standard output cannot be written ({error}); check where it goes"),
        ))
    }

    /// What the machine did not give: a thread, a signal handler, an address.
    pub(crate) fn of_machine(error: impl Error + 'static) -> Self {
        Self::Failure(Failure::chain("internal", &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use svc_app::Class;

    #[test]
    fn a_refusal_for_trust_names_the_option() {
        let refused = AppError::new(ErrorCode::NotTrusted, Class::Conflict, "not trusted");
        let failure = Failure::from(refused);
        assert!(failure.lines.iter().any(|line| line.contains("--trust")), "{failure:?}");
    }

    #[test]
    fn a_reader_that_went_away_is_no_failure() {
        let gone = io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(matches!(End::of_output(&gone), End::Unread));
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let end = End::of_output(&full);
        assert!(matches!(end, End::Failure(Failure { exit: Exit::Failed, .. })), "{end:?}");
    }

    #[test]
    fn a_cause_is_shown_without_secrets_and_once() {
        let inner = io::Error::other("token ghp_0123456789abcdefghij was refused");
        let error = AppError::internal(inner);
        let failure = Failure::from(error);
        let text = failure.lines.join("\n");
        assert!(text.contains("was refused") && !text.contains("0123456789abcdef"), "{text}");
    }

    #[test]
    fn the_document_names_code_message_and_candidates() {
        let mut error = AppError::new(ErrorCode::Ambiguous, Class::Conflict, "ambiguous 'a'");
        error.candidates = vec!["a1".into(), "a2".into()];
        let expected = json!({
            "error": { "code": "ambiguous", "message": "ambiguous 'a'" },
            "candidates": ["a1", "a2"],
        });
        assert_eq!(Failure::from(error).document(), expected);
    }
}
