//! The rule of activities: a table of what was seen, and what holds for everything.

use super::*;
use proptest::prelude::*;
use svc_shared::status::ActivityState::{Blocked, Idle, Limit, LoggedOut, Question, Working};
use svc_shared::status::Confidence::{Certain, Likely};
use svc_shared::status::EvidenceSource::{
    Account, DebugFile, Hook, Job, Process, Stream, Transcript,
};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

fn says(state: ActivityState, source: EvidenceSource, since: i64) -> Evidence {
    Evidence { state, since: at(since), tool: None, source, confidence: Certain, is_stale: false }
}

fn likely(state: ActivityState, source: EvidenceSource, since: i64) -> Evidence {
    Evidence { confidence: Likely, ..says(state, source, since) }
}

fn stale(one: Evidence) -> Evidence {
    Evidence { is_stale: true, ..one }
}

fn for_tool(one: Evidence) -> Evidence {
    Evidence { tool: Some("Bash".to_owned()), ..one }
}

#[track_caller]
fn check(evidence: &[Evidence], state: ActivityState, source: EvidenceSource) -> Evidence {
    let found = merge(evidence).expect("something is known");
    assert_eq!((found.state, found.source), (state, source));
    found
}

#[test]
fn nothing_known_is_nothing() {
    assert_eq!(merge(&[]), None);
    assert_eq!(together(&[]), None);
}

#[test]
fn the_newest_statement_of_the_surest_source_is_true() {
    check(&[says(Idle, Process, 5), says(Working, Process, 9)], Working, Process);
    check(&[says(Idle, Process, 9), says(Working, DebugFile, 5)], Idle, Process);
    // The entry of the process is current by itself, however old; a log is an inference.
    check(&[says(Idle, Process, 1), likely(Working, DebugFile, 9)], Idle, Process);
    // Which is used where nobody else says anything.
    let found = check(&[likely(Working, DebugFile, 9)], Working, DebugFile);
    assert_eq!(found.confidence, Likely);
}

#[test]
fn a_question_that_we_were_asked_waits_whatever_else_goes_on() {
    let asked = for_tool(says(Blocked, Hook, 5));
    let found = check(&[says(Working, Process, 9), asked.clone()], Blocked, Hook);
    assert_eq!(found.tool.as_deref(), Some("Bash"));
    check(&[says(Question, Stream, 5), says(Idle, Process, 9)], Question, Stream);
    // The first of several.
    let first = check(&[says(Blocked, Stream, 7), asked.clone()], Blocked, Hook);
    assert_eq!(first.since, at(5));
    // Over a lost connection nobody knows.
    check(&[stale(asked.clone()), says(Working, Process, 9)], Working, Process);
    assert!(check(&[stale(asked)], Blocked, Hook).is_stale);
}

#[test]
fn the_tool_is_named_by_whoever_knows_it() {
    let log = for_tool(says(Blocked, DebugFile, 5));
    let found = check(&[says(Blocked, Process, 6), log], Blocked, Process);
    assert_eq!(found.tool.as_deref(), Some("Bash"));
    let other = for_tool(says(Blocked, DebugFile, 5));
    assert_eq!(check(&[says(Working, Process, 6), other], Working, Process).tool, None);
}

#[test]
fn a_limit_stays_until_the_session_works_again() {
    let limit = says(Limit, Transcript, 10);
    check(&[says(Working, Process, 5), limit.clone()], Limit, Transcript);
    // The agent is idle a moment after it told the limit.
    check(&[says(Idle, Process, 11), limit.clone()], Limit, Transcript);
    check(&[says(Working, Process, 12), limit.clone()], Working, Process);
    check(&[says(Blocked, Process, 12), limit.clone()], Blocked, Process);
    check(&[limit], Limit, Transcript);
}

#[test]
fn a_question_of_the_transcript_explains_why_the_session_waits() {
    let asked = says(Question, Transcript, 10);
    check(&[likely(Blocked, Process, 11), asked.clone()], Question, Transcript);
    check(&[says(Working, Process, 12), asked], Working, Process);
}

#[test]
fn a_job_needs_its_answer_until_its_process_works() {
    let needs = likely(Question, Job, 10);
    check(&[says(Idle, Process, 11), needs.clone()], Question, Job);
    check(&[says(Working, Process, 9), needs.clone()], Working, Process);
    check(&[says(Blocked, Process, 9), needs], Blocked, Process);
}

#[test]
fn an_agent_that_says_it_works_is_believed_over_a_sign_out() {
    let account = likely(LoggedOut, Account, 10);
    check(&[says(Working, Process, 5), account.clone()], Working, Process);
    check(&[likely(Working, DebugFile, 5), account.clone()], LoggedOut, Account);
    check(&[says(Idle, Process, 12), account], LoggedOut, Account);
    check(&[says(Working, Process, 5), says(LoggedOut, Transcript, 10)], LoggedOut, Transcript);
}

#[test]
fn what_is_stale_counts_only_alone_and_says_so() {
    let old = stale(says(Working, DebugFile, 9));
    check(&[old.clone(), likely(Idle, Stream, 3)], Idle, Stream);
    let found = check(&[old], Working, DebugFile);
    assert!(found.is_stale);
    assert_eq!(found.confidence, Likely);
}

#[test]
fn of_several_sessions_the_one_that_needs_a_person_most_is_shown() {
    let all = [
        says(Working, Process, 1),
        for_tool(says(Blocked, DebugFile, 7)),
        says(Blocked, DebugFile, 9),
        says(Limit, Transcript, 2),
        says(Idle, Process, 3),
    ];
    let found = together(&all).unwrap();
    assert!(found.state.is(&Blocked));
    assert_eq!((found.since, found.tool.as_deref()), (at(7), Some("Bash")));
    assert_eq!((found.working, found.blocked, found.idle), (1, 2, 2));
}

#[test]
fn words_of_the_agents_registry() {
    let read =
        |status, waits| of_registry(status, waits, at(1)).map(|one| (one.state, one.confidence));
    assert_eq!(read(Some("busy"), None), Some((Working, Certain)));
    assert_eq!(read(Some("shell"), None), Some((Working, Certain)));
    assert_eq!(read(Some("idle"), None), Some((Idle, Certain)));
    assert_eq!(read(Some("waiting"), Some("permission prompt")), Some((Blocked, Certain)));
    assert_eq!(read(Some("waiting"), Some("input needed")), Some((Question, Certain)));
    assert_eq!(read(Some("waiting"), None), Some((Blocked, Likely)));
    assert_eq!(read(Some("dreaming"), None), None);
    assert_eq!(read(None, Some("permission prompt")), None);
}

#[test]
fn requests_frames_jobs_and_refusals_are_read() {
    let asked = |subtype, tool| of_request(subtype, tool, at(1), Stream);
    let found = asked("can_use_tool", Some("Bash"));
    assert_eq!((found.state, found.tool.as_deref()), (Blocked, Some("Bash")));
    let found = asked("can_use_tool", Some(QUESTION_TOOL));
    assert_eq!((found.state, found.tool), (Question, None));
    assert_eq!(asked("elicitation", None).state, Question);
    let frame = |kind| of_frame(kind, at(1)).map(|one| one.state);
    assert_eq!(frame("assistant"), Some(Working));
    assert_eq!(frame("result"), Some(Idle));
    assert_eq!(frame("system"), None);
    let job = |state, tempo, needs| {
        of_job(state, tempo, needs, at(1), true).map(|one| (one.state, one.confidence))
    };
    assert_eq!(job("working", "active", false), Some((Working, Certain)));
    assert_eq!(job("working", "idle", false), Some((Idle, Certain)));
    assert_eq!(job("blocked", "blocked", true), Some((Question, Likely)));
    assert_eq!(job("blocked", "blocked", false), Some((Blocked, Likely)));
    assert_eq!(job("done", "idle", false), None);
    assert!(of_job("working", "", false, at(1), false).unwrap().is_stale);
    assert!(tells_sign_out("Invalid API key · Please run /login"));
    assert!(!tells_sign_out("API Error: 529 Overloaded"));
}

/// Found by chance.
#[test]
fn of_two_that_differ_in_confidence_alone_the_surer_is_told_in_either_order() {
    let sure = says(Question, Stream, 6);
    let unsure = likely(Question, Stream, 6);
    assert_eq!(merge(&[unsure.clone(), sure.clone()]), Some(sure.clone()));
    assert_eq!(merge(&[sure.clone(), unsure]), Some(sure));
}

fn any_evidence() -> impl Strategy<Value = Evidence> {
    let state = prop::sample::select(ActivityState::ALL);
    let source = prop::sample::select(EvidenceSource::ALL);
    let confidence = prop::sample::select(Confidence::ALL);
    let tool = prop::option::of(prop::sample::select(vec!["Bash".to_owned(), "Edit".to_owned()]));
    (state, source, confidence, 0_i64..20, tool, any::<bool>()).prop_map(
        |(state, source, confidence, since, tool, is_stale)| Evidence {
            state,
            since: at(since),
            tool: tool.filter(|_| state == Blocked),
            source,
            confidence,
            is_stale,
        },
    )
}

proptest! {
    #[test]
    fn what_is_said_was_said_by_somebody(all in prop::collection::vec(any_evidence(), 0..8)) {
        let found = merge(&all);
        prop_assert_eq!(found.is_none(), all.is_empty());
        if let Some(found) = found {
            let said = all.iter().find(|one| {
                (one.state, one.source, one.since, one.is_stale)
                    == (found.state, found.source, found.since, found.is_stale)
            });
            prop_assert!(said.is_some(), "{found:?}");
            prop_assert!(!(found.is_stale && found.confidence == Certain));
            prop_assert!(found.state == Blocked || found.tool.is_none());
        }
    }

    #[test]
    fn the_order_of_statements_and_their_repetition_do_not_matter(
        all in prop::collection::vec(any_evidence(), 0..7),
        by in 0_usize..7,
    ) {
        let mut turned = all.clone();
        turned.rotate_left(by.min(all.len()));
        let reversed: Vec<Evidence> = all.iter().rev().cloned().collect();
        let twice: Vec<Evidence> = all.iter().chain(&all).cloned().collect();
        prop_assert_eq!(merge(&all), merge(&turned));
        prop_assert_eq!(merge(&all), merge(&reversed));
        prop_assert_eq!(merge(&all), merge(&twice));
    }

    #[test]
    fn a_certain_newest_statement_that_the_session_works_ends_every_obstacle(
        all in prop::collection::vec(any_evidence(), 0..7),
    ) {
        let mut all = all;
        all.retain(|one| one.weight() != Weight::AsksUs || one.is_stale);
        all.push(says(Working, Process, 30));
        let found = merge(&all).unwrap();
        prop_assert_eq!((found.state, found.source), (Working, Process));
    }

    #[test]
    fn nobody_who_asks_us_is_hidden(
        all in prop::collection::vec(any_evidence(), 0..7),
        since in 0_i64..20,
    ) {
        let mut all = all;
        all.push(says(Blocked, Hook, since));
        let found = merge(&all).unwrap();
        prop_assert!(matches!(found.state, Blocked | Question) && !found.is_stale);
        prop_assert!(found.since <= at(since));
    }

    #[test]
    fn a_fresh_statement_about_what_it_does_is_never_hidden_by_a_stale_one(
        all in prop::collection::vec(any_evidence(), 1..7),
    ) {
        let does = |one: &Evidence| one.weight() == Weight::Does && !one.is_stale;
        let found = merge(&all).unwrap();
        if all.iter().any(does) && found.weight() == Weight::Does {
            prop_assert!(!found.is_stale);
        }
    }

    #[test]
    fn every_session_is_counted_once(all in prop::collection::vec(any_evidence(), 1..9)) {
        let found = together(&all).unwrap();
        let counted = found.working + found.blocked + found.idle;
        prop_assert_eq!(usize::try_from(counted).unwrap(), all.len());
        let highest = all.iter().map(|one| urgency(one.state)).max().unwrap();
        prop_assert_eq!(found.state.known().copied().map(urgency), Some(highest));
    }
}
