//! What went wrong with a request, and what the page says about it.

use crate::model::wire;
use crate::text::page as words;
use svc_shared::error::{ErrorBody, ErrorCode};

/// A request without the answer hoped for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// No answer: the request may or may not have been carried out.
    NoAnswer,
    /// Refused, with the server's own words.
    Refused {
        /// HTTP status.
        status: u16,
        /// Machine-readable reason.
        code: String,
        /// For a person.
        detail: String,
        /// Finds the line in the service log.
        error_id: Option<String>,
        /// Seconds to wait before the next try.
        retry_after: Option<u32>,
    },
    /// An answer this page does not understand: another version, or a proxy in between.
    Unreadable {
        /// HTTP status.
        status: u16,
    },
}

impl Problem {
    /// From a response other than a success.
    #[must_use]
    pub fn of(status: u16, body: &str, retry_after: Option<u32>) -> Self {
        match wire::read::<ErrorBody>(body) {
            Ok(error) => Self::Refused {
                status,
                code: error.code,
                detail: error.detail.to_string(),
                error_id: error.error_id,
                retry_after,
            },
            Err(_) => Self::Unreadable { status },
        }
    }

    /// Whether it was refused for this reason.
    #[must_use]
    pub fn is(&self, code: ErrorCode) -> bool {
        matches!(self, Self::Refused { code: said, .. } if said == code.as_str())
    }

    /// Whether the address of this page is not one the server takes requests from.
    #[must_use]
    pub fn is_wrong_address(&self) -> bool {
        self.is(ErrorCode::OriginCheckFailed) || self.is(ErrorCode::HostNotAllowed)
    }

    /// Whether what was sent is at fault: the same would be refused every time.
    #[must_use]
    pub fn is_unfit(&self) -> bool {
        matches!(self, Self::Refused { status: 400 | 413 | 422, .. })
    }

    /// Whether repeating the same request later may help.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::NoAnswer => true,
            Self::Refused { status, .. } | Self::Unreadable { status } => {
                matches!(status, 429 | 502 | 503 | 504)
            }
        }
    }

    /// Seconds to wait before the next try, where the service says so.
    #[must_use]
    pub fn retry_after(&self) -> Option<u32> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            Self::NoAnswer | Self::Unreadable { .. } => None,
        }
    }

    /// Finds the line in the service log.
    #[must_use]
    pub fn error_id(&self) -> Option<&str> {
        match self {
            Self::Refused { error_id, .. } => error_id.as_deref(),
            Self::NoAnswer | Self::Unreadable { .. } => None,
        }
    }

    /// What happened, for a person.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::NoAnswer => words::NO_ANSWER.to_owned(),
            Self::Refused { error_id: Some(id), .. } => words::internal(id),
            Self::Refused { detail, .. } => sentence(detail),
            Self::Unreadable { status } => words::unreadable(*status),
        }
    }
}

/// Programs whose names stay as they are at the beginning of a sentence.
const PROGRAMS: [&str; 9] =
    ["svc", "claude", "git", "systemd", "systemctl", "ssh", "npm", "node", "nginx"];

/// Makes the words of the service a sentence of the page.
///
/// It begins with a capital letter; commands print the words after `svc:`. Names of keys, fields
/// and programs stay as they are.
fn sentence(words: &str) -> String {
    let first = words.split(' ').next().unwrap_or_default();
    let is_word = first.chars().all(|c| c.is_ascii_lowercase() || c == '\'');
    if !is_word || PROGRAMS.contains(&first) {
        return words.to_owned();
    }
    let mut letters = words.chars();
    letters
        .next()
        .map_or_else(String::new, |c| c.to_ascii_uppercase().to_string() + letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_begins_as_a_sentence_unless_a_name_comes_first() {
        for (said, shown) in [
            ("the folder is gone", "The folder is gone"),
            ("a port is missing", "A port is missing"),
            ("svc is stopping", "svc is stopping"),
            ("body.name: too long", "body.name: too long"),
            ("name: too long", "name: too long"),
            ("max_bridges is reached", "max_bridges is reached"),
            ("`x` is no key", "`x` is no key"),
            ("", ""),
        ] {
            assert_eq!(sentence(said), shown);
        }
    }

    #[test]
    fn a_refusal_is_told_in_the_words_of_the_server() {
        let problem = Problem::of(
            409,
            r#"{"detail":"max_bridges is reached","code":"capacity","extra":1}"#,
            None,
        );
        assert_eq!(problem.words(), "max_bridges is reached");
        assert!(problem.is(ErrorCode::Capacity));
        assert!(!problem.may_pass());
    }

    #[test]
    fn a_schema_refusal_names_every_place() {
        let problem = Problem::of(
            422,
            r#"{"detail":[{"loc":["body","name"],"msg":"too long","type":"too_long"}],"code":"schema"}"#,
            None,
        );
        assert_eq!(problem.words(), "body.name: too long");
    }

    #[test]
    fn an_answer_of_something_else_is_not_read_as_ours() {
        let problem = Problem::of(502, "<html>Bad gateway</html>", None);
        assert_eq!(problem, Problem::Unreadable { status: 502 });
        assert!(problem.may_pass());
        assert!(problem.words().contains("502"));
    }

    #[test]
    fn a_defect_of_the_service_shows_the_id_for_its_log() {
        let problem = Problem::of(
            500,
            r#"{"detail":"internal error","code":"internal","error_id":"0badcafe"}"#,
            None,
        );
        assert_eq!(problem.error_id(), Some("0badcafe"));
        assert!(problem.words().contains("0badcafe"));
    }

    #[test]
    fn a_refusal_for_too_many_requests_says_how_long_to_wait() {
        let body = r#"{"detail":"too many","code":"busy"}"#;
        let problem = Problem::of(429, body, Some(12));
        assert_eq!((problem.retry_after(), problem.may_pass()), (Some(12), true));
        assert_eq!(Problem::NoAnswer.retry_after(), None);
    }

    #[test]
    fn a_wrong_address_is_recognised_in_both_forms() {
        for code in ["origin_check_failed", "host_not_allowed"] {
            let body = format!(r#"{{"detail":"no","code":"{code}"}}"#);
            assert!(Problem::of(403, &body, None).is_wrong_address());
        }
        assert!(!Problem::NoAnswer.is_wrong_address());
    }
}
