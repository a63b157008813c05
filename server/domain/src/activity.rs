//! What a session does, decided from everything that says something about it.
//!
//! Nothing is read off a screen, and where nobody says anything nothing is known.

use std::cmp::Reverse;
use svc_shared::Timestamp;
use svc_shared::api::activity::Activity;
use svc_shared::status::{ActivityState, Confidence, EvidenceSource};

/// The tool with which the agent asks a person something.
pub const QUESTION_TOOL: &str = "AskUserQuestion";

/// One statement about one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// What the session does.
    pub state: ActivityState,
    /// Since when.
    pub since: Timestamp,
    /// The tool that it waits for a permission to use.
    pub tool: Option<String>,
    /// Who says so.
    pub source: EvidenceSource,
    /// How sure that is.
    pub confidence: Confidence,
    /// Whoever says so is not heard any more.
    pub is_stale: bool,
}

/// How a statement takes part in the decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// The agent waits for our answer: true until the answer is given.
    AsksUs,
    /// Something is in the way of the session until it works again.
    InTheWay,
    /// What the session does: the newest statement of the best source is true.
    Does,
}

impl Evidence {
    fn weight(&self) -> Weight {
        use ActivityState::{Blocked, Idle, Limit, LoggedOut, Question, Working};
        use EvidenceSource::{Hook, Job, Stream, Transcript};
        match (self.state, self.source) {
            (Blocked | Question, Hook | Stream) => Weight::AsksUs,
            (Limit | LoggedOut, _) | (Question, Transcript) | (Blocked | Question, Job) => {
                Weight::InTheWay
            }
            (Working | Blocked | Question | Idle, _) => Weight::Does,
        }
    }

    /// Whether the session went on after an obstacle.
    fn is_past(&self, obstacle: &Self) -> bool {
        let goes_on = match self.state {
            ActivityState::Working => true,
            // A question in the transcript makes the session wait.
            ActivityState::Blocked | ActivityState::Question => {
                obstacle.source != EvidenceSource::Transcript
                    || obstacle.state != ActivityState::Question
            }
            ActivityState::Idle | ActivityState::Limit | ActivityState::LoggedOut => false,
        };
        let is_later = self.since > obstacle.since;
        // What is only likely does not outweigh an agent that says it works.
        let is_surer = strength(self) > strength(obstacle);
        goes_on && (is_later || (is_surer && !self.is_stale))
    }
}

/// The order of confidence.
fn strength(of: &Evidence) -> u8 {
    match of.confidence {
        Confidence::Likely => 0,
        Confidence::Certain => 1,
    }
}

/// How much a state needs a person.
fn urgency(state: ActivityState) -> u8 {
    match state {
        ActivityState::Blocked => 5,
        ActivityState::Question => 4,
        ActivityState::Working => 3,
        ActivityState::Limit => 2,
        ActivityState::LoggedOut => 1,
        ActivityState::Idle => 0,
    }
}

/// Makes the choice the same in every order of the statements.
///
/// With what else decides it names every member of a statement, so that only equal ones tie.
fn tie(of: &Evidence) -> (u8, bool, Reverse<&str>, Option<&str>, bool, u8) {
    let (tool, source) = (of.tool.as_deref(), Reverse(of.source.as_str()));
    (urgency(of.state), tool.is_some(), source, tool, !of.is_stale, strength(of))
}

/// What one session does; `None` when nobody says anything.
///
/// A question that waits for our answer comes first. Then what is in the way, such as a plan
/// limit, until the session works again. Then the newest statement of the surest source.
/// A stale statement counts only where nobody else says anything.
#[must_use]
pub fn merge(evidence: &[Evidence]) -> Option<Evidence> {
    let of = |weight: Weight| evidence.iter().filter(move |one| one.weight() == weight);
    let fresh = |one: &&Evidence| !one.is_stale;
    // The one that waits longest.
    let asks = of(Weight::AsksUs).filter(fresh).min_by_key(|one| (one.since, Reverse(tie(one))));
    if let Some(asks) = asks {
        return Some(asks.clone());
    }
    let surest = |one: &&Evidence| (!one.is_stale, strength(one), one.since);
    let does =
        of(Weight::Does).max_by(|a, b| surest(a).cmp(&surest(b)).then_with(|| tie(a).cmp(&tie(b))));
    let is_over = |obstacle: &Evidence| of(Weight::Does).any(|one| one.is_past(obstacle));
    let in_the_way = of(Weight::InTheWay).filter(|one| !is_over(one)).max_by(|a, b| {
        let key = |one: &&Evidence| (!one.is_stale, urgency(one.state), one.since);
        key(a).cmp(&key(b)).then_with(|| tie(a).cmp(&tie(b)))
    });
    let chosen = in_the_way.or(does);
    // A question that nobody can take the answer of any more.
    let chosen =
        chosen.or_else(|| of(Weight::AsksUs).min_by_key(|one| (one.since, Reverse(tie(one)))))?;
    let mut chosen = chosen.clone();
    if chosen.state == ActivityState::Blocked && chosen.tool.is_none() {
        let named = |one: &&Evidence| {
            one.state == ActivityState::Blocked && one.tool.is_some() && !one.is_stale
        };
        let named = evidence.iter().filter(named);
        let newest = named.max_by(|a, b| a.since.cmp(&b.since).then_with(|| tie(a).cmp(&tie(b))));
        chosen.tool = newest.and_then(|one| one.tool.clone());
    }
    if chosen.is_stale {
        chosen.confidence = Confidence::Likely;
    }
    Some(chosen)
}

/// What several sessions of one row do, taken together.
///
/// The one that needs a person most decides; `None` without a session.
#[must_use]
pub fn together(sessions: &[Evidence]) -> Option<Activity> {
    let first = sessions.iter().max_by(|a, b| {
        let key = |one: &&Evidence| (urgency(one.state), !one.is_stale, Reverse(one.since));
        key(a).cmp(&key(b)).then_with(|| tie(a).cmp(&tie(b)))
    })?;
    let count = |is: fn(ActivityState) -> bool| {
        let of_it = sessions.iter().filter(|one| is(one.state)).count();
        u32::try_from(of_it).unwrap_or(u32::MAX)
    };
    let waits = |state| matches!(state, ActivityState::Blocked | ActivityState::Question);
    let works = |state| state == ActivityState::Working;
    let (working, blocked) = (count(works), count(waits));
    let all = u32::try_from(sessions.len()).unwrap_or(u32::MAX);
    Some(Activity {
        state: first.state.into(),
        since: first.since,
        tool: first.tool.clone(),
        source: first.source.into(),
        confidence: first.confidence.into(),
        stale: first.is_stale,
        working,
        blocked,
        idle: all.saturating_sub(working).saturating_sub(blocked),
    })
}

/// What an entry of the agent's registry says a session does.
///
/// `status` and `waiting_for` are the agent's words. A word that is not known says nothing.
#[must_use]
pub fn of_registry(
    status: Option<&str>,
    waiting_for: Option<&str>,
    since: Timestamp,
) -> Option<Evidence> {
    let waits = waiting_for.map(str::to_ascii_lowercase);
    let asks = |text: &String| text.contains("input") || text.contains("question");
    let (state, confidence) = match status? {
        "busy" | "shell" => (ActivityState::Working, Confidence::Certain),
        "idle" => (ActivityState::Idle, Confidence::Certain),
        "waiting" if waits.as_ref().is_some_and(asks) => {
            (ActivityState::Question, Confidence::Certain)
        }
        "waiting" if waits.is_some_and(|text| text.contains("permission")) => {
            (ActivityState::Blocked, Confidence::Certain)
        }
        // It waits for a person, and does not say for what.
        "waiting" => (ActivityState::Blocked, Confidence::Likely),
        _ => return None,
    };
    Some(Evidence {
        state,
        since,
        tool: None,
        source: EvidenceSource::Process,
        confidence,
        is_stale: false,
    })
}

/// What a request that waits for our answer says.
///
/// `subtype` is the kind of the request, as the agent writes it.
#[must_use]
pub fn of_request(
    subtype: &str,
    tool: Option<&str>,
    since: Timestamp,
    source: EvidenceSource,
) -> Evidence {
    let is_permission = subtype == "can_use_tool" && tool != Some(QUESTION_TOOL);
    Evidence {
        state: if is_permission { ActivityState::Blocked } else { ActivityState::Question },
        since,
        tool: tool.filter(|_| is_permission).map(str::to_owned),
        source,
        confidence: Confidence::Certain,
        is_stale: false,
    }
}

/// What a frame of a Direct Session says.
///
/// `kind` is its type; `None` for a frame that says nothing about it.
#[must_use]
pub fn of_frame(kind: &str, now: Timestamp) -> Option<Evidence> {
    let state = match kind {
        "assistant" | "user" | "stream_event" => ActivityState::Working,
        "result" => ActivityState::Idle,
        _ => return None,
    };
    Some(Evidence {
        state,
        since: now,
        tool: None,
        source: EvidenceSource::Stream,
        confidence: Confidence::Certain,
        is_stale: false,
    })
}

/// What the file of a background job says.
///
/// `None` after its end, and for words that are not known.
#[must_use]
pub fn of_job(
    state: &str,
    tempo: &str,
    has_needs: bool,
    since: Timestamp,
    is_alive: bool,
) -> Option<Evidence> {
    let (state, confidence) = match (state, tempo) {
        // What a job needs is an answer; a permission is told by its process.
        ("blocked", _) if has_needs => (ActivityState::Question, Confidence::Likely),
        ("blocked", _) => (ActivityState::Blocked, Confidence::Likely),
        ("working", "idle") => (ActivityState::Idle, Confidence::Certain),
        ("working", _) => (ActivityState::Working, Confidence::Certain),
        _ => return None,
    };
    Some(Evidence {
        state,
        since,
        tool: None,
        source: EvidenceSource::Job,
        confidence,
        is_stale: !is_alive,
    })
}

/// Whether a reply that the agent made up says that it is signed out.
#[must_use]
pub fn tells_sign_out(text: &str) -> bool {
    let start: String = text.chars().take(400).collect();
    start.to_ascii_lowercase().contains("run /login")
}

#[cfg(test)]
mod tests;
