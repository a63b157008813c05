//! Reads the agent's answers to taking, refusing or removing a job (agent 2.1.197).

use std::collections::BTreeSet;
use svc_domain::redact::{redact_text, strip_ansi};
use svc_shared::ids::JobId;

/// The word before the id of an accepted job.
const LABEL: &str = "backgrounded";

/// How the CLI says that its background service does not answer.
const OUT_OF_REACH: [&str; 6] = [
    "may be restarting",
    "could not reach",
    "couldn't reach",
    "could not start",
    "couldn't start",
    "did not answer",
];

/// The id of the accepted job: the labelled one, else the only one that is named.
/// Other wordings are accepted if they contain exactly one id.
#[must_use]
pub fn accepted(output: &str) -> Option<JobId> {
    let text = strip_ansi(output);
    let labelled = text.lines().find_map(|line| {
        let rest = line.trim_start().strip_prefix(LABEL)?;
        ids(rest).next()
    });
    if labelled.is_some() {
        return labelled;
    }
    let mut named: BTreeSet<JobId> = ids(&text).collect();
    let only = named.pop_first()?;
    named.is_empty().then_some(only)
}

/// Words of exactly 8 hex digits. Parts of a UUID or a path do not count.
fn ids(text: &str) -> impl Iterator<Item = JobId> {
    text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | '.')))
        .filter_map(|word| word.trim_end_matches('.').parse().ok())
}

/// Whether a failed command says that it could not reach the background service.
/// Then the request was not refused. A message that the service is starting does not count.
#[must_use]
pub fn is_out_of_reach(output: &str) -> bool {
    let text = strip_ansi(output).to_lowercase().replace('\u{2019}', "'");
    text.lines().any(|line| {
        line.contains("background service") && OUT_OF_REACH.iter().any(|words| line.contains(words))
    })
}

/// The end of an output for display: no colour, no secrets, at most 400 characters.
#[must_use]
pub fn last_words(output: &str) -> String {
    let redacted = redact_text(output);
    let lines: Vec<&str> =
        redacted.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let kept: Vec<&str> = lines.iter().rev().take(5).rev().copied().collect();
    let text = kept.join("; ");
    let skip = text.chars().count().saturating_sub(400);
    text.chars().skip(skip).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(output: &str) -> Option<String> {
        accepted(output).map(|id| id.to_string())
    }

    #[test]
    fn the_labelled_id_is_taken_whatever_else_is_named() {
        let real = "Starting background service…\nbackgrounded · 450f4654 (idle — send a prompt)\n\
                    \x20 claude agents             list sessions\n\
                    \x20 claude attach 0a1b2c3d    open in this terminal\n";
        assert_eq!(id(real).as_deref(), Some("450f4654"));
        assert_eq!(id("\u{1b}[32mbackgrounded\u{1b}[0m · 450f4654").as_deref(), Some("450f4654"));
    }

    #[test]
    fn f72_another_wording_is_understood_when_it_names_one_id() {
        assert_eq!(id("Job 450f4654 is running.\nsee logs 450f4654").as_deref(), Some("450f4654"));
        assert_eq!(id("jobs 450f4654 and 0a1b2c3d"), None);
        assert_eq!(id("started"), None);
        assert_eq!(id("session 450f4654-059b-4282-b68e-91a110e7f06b at /tmp/450f4654"), None);
        assert_eq!(id(""), None);
    }

    #[test]
    fn only_a_service_out_of_reach_is_no_refusal() {
        for away in [
            "Starting background service…\ncouldn't confirm 450f4654 was stopped — the background \
             service may be restarting. Try again in a moment.",
            "Error: could not reach the background service (connect ECONNREFUSED)",
            "\u{1b}[31mError: could not start the background service: it ended\u{1b}[0m",
            "Error: the background service did not answer",
        ] {
            assert!(is_out_of_reach(away), "{away}");
        }
        for refusal in [
            "",
            "Starting background service…\nNo job matching '450f4654'",
            "Error: 450f4654 is still at work; could not start its removal",
            "Error: the background service refused",
        ] {
            assert!(!is_out_of_reach(refusal), "{refusal}");
        }
    }

    #[test]
    fn last_words_hold_no_secret_and_are_short() {
        assert_eq!(last_words("\u{1b}[ env_01AB23CD45"), "env_<redacted>");
        let words = last_words("a\n\n\u{1b}[31mtoken ghp_0123456789abcdefghij\u{1b}[0m\n");
        assert!(words.starts_with("a; token") && !words.contains("0123456789"), "{words}");
        assert_eq!(last_words(&"x".repeat(5000)).chars().count(), 400);
    }

    proptest::proptest! {
        #[test]
        fn no_output_makes_the_reader_panic(output in ".{0,200}") {
            let _ = (accepted(&output), last_words(&output), is_out_of_reach(&output));
        }
    }
}
