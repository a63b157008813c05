//! What the history keeps of Direct Sessions.

use super::{HostedSession, Outcome, State};
use crate::effect::History;

/// What the history keeps of a change, in the order it happened.
///
/// `before` is `None` for a session that begins.
#[must_use]
pub fn remembered(before: Option<&HostedSession>, after: &HostedSession) -> Vec<History> {
    // A resume begins anew.
    let before = before.filter(|before| before.generation == after.generation);
    let began = before.is_none().then_some(History::Spawned);
    let became = match (&after.state, before.map(|before| &before.state)) {
        (State::Starting | State::Stopping, _)
        | (State::Running, Some(State::Running | State::Stopping))
        | (State::Ended(_), Some(State::Ended(_))) => None,
        (State::Running, None | Some(State::Starting | State::Ended(_))) => Some(History::Ready),
        (State::Ended(ended), None | Some(State::Starting | State::Running | State::Stopping)) => {
            Some(match ended.outcome {
                Outcome::Crashed => History::Crashed,
                Outcome::Stopped | Outcome::Failed => History::Ended,
            })
        }
    };
    began.into_iter().chain(became).collect()
}
