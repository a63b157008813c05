//! What the screen says about the session: the connect URL or a question.

use crate::message::{Phase, Question, SessionState};

/// Begin of a connect URL (CLI 2.1).
const URL: &str = "https://claude.ai/code/session_";
/// Longest id that is taken for one.
const MAX_ID: usize = 128;

/// Texts of the trust dialog (CLI 2.1).
const TRUST: [&str; 2] = ["Quick safety check", "Do you trust the files in this folder"];
/// Texts of the first run: choice of theme and of the way to sign in (CLI 2.1).
const ONBOARDING: [&str; 2] = ["Choose the text style that looks best", "Select login method"];

/// The connect URL in a text, and its id.
pub(super) fn url(text: &str) -> Option<(String, String)> {
    let at = text.find(URL)?;
    let rest = text.get(at.saturating_add(URL.len())..)?;
    let id: String = rest.chars().take_while(char::is_ascii_alphanumeric).take(MAX_ID).collect();
    (!id.is_empty()).then(|| (format!("{URL}{id}"), id))
}

fn question(lines: &[String]) -> Option<Question> {
    let shows =
        |texts: &[&str]| lines.iter().any(|line| texts.iter().any(|text| line.contains(text)));
    if shows(&TRUST) {
        Some(Question::TrustRequired)
    } else if shows(&ONBOARDING) {
        Some(Question::OnboardingRequired)
    } else {
        None
    }
}

/// Reads the screen and the last link. Whether the state changed.
///
/// A question counts only before the session was ready: afterwards a conversation may show the words.
pub(super) fn look(state: &mut SessionState, lines: &[String], link: Option<&str>) -> bool {
    let before = state.clone();
    if let Some((url, id)) = lines.iter().map(String::as_str).chain(link).find_map(url) {
        state.url = Some(url);
        state.session_id = Some(id);
        if matches!(state.phase, Phase::Starting | Phase::Failed) {
            state.phase = Phase::Ready;
            state.reason = None;
        }
    } else if matches!(state.phase, Phase::Starting | Phase::Failed) {
        state.reason = question(lines);
        state.phase = if state.reason.is_some() { Phase::Failed } else { Phase::Starting };
    }
    *state != before
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starting() -> SessionState {
        SessionState { phase: Phase::Starting, ..SessionState::default() }
    }

    #[test]
    fn a_session_is_ready_with_its_url_on_the_screen_or_behind_a_link() {
        let line = "/remote-control is active · Continue here, or at https://claude.ai/code/session_01AbC ·";
        let mut state = starting();
        assert!(look(&mut state, &[line.to_owned()], None));
        assert_eq!(state.phase, Phase::Ready);
        assert_eq!(state.session_id.as_deref(), Some("01AbC"));
        assert!(!look(&mut state, &[line.to_owned()], None));
        let mut state = starting();
        assert!(look(&mut state, &[], Some("https://claude.ai/code/session_9?x=1")));
        assert_eq!(state.url.as_deref(), Some("https://claude.ai/code/session_9"));
        let mut state = starting();
        assert!(!look(&mut state, &["https://claude.ai/code/session_".to_owned()], None));
    }

    #[test]
    fn f70_a_question_fails_the_start_until_it_is_gone_and_never_a_ready_session() {
        for (text, reason) in [
            (" Quick safety check: Is this a project you trust?", Question::TrustRequired),
            (
                "Choose the text style that looks best with your terminal",
                Question::OnboardingRequired,
            ),
        ] {
            let lines = [String::new(), text.to_owned()];
            let mut state = starting();
            assert!(look(&mut state, &lines, None));
            assert_eq!((state.phase, state.reason), (Phase::Failed, Some(reason)));
            assert!(look(&mut state, &[], None));
            assert_eq!((state.phase, state.reason), (Phase::Starting, None));
            let mut state = SessionState { phase: Phase::Ready, ..SessionState::default() };
            assert!(!look(&mut state, &lines, None));
        }
    }
}
