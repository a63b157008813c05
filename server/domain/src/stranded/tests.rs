//! The join of log, registry and transcripts.

use proptest::prelude::*;
use svc_shared::status::ActivityState;

use super::*;
use crate::agent_log::report::Work;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn uuid(number: u8) -> RemoteId {
    RemoteId::new(&format!("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1{number:02x}"))
}

fn remote(number: u8) -> RemoteId {
    RemoteId::new(&format!("session_{number:02}"))
}

fn logged(number: u8, stage: Stage, conversation: Option<RemoteId>) -> LoggedSession {
    let since = at(100 + i64::from(number));
    LoggedSession {
        remote: remote(number),
        pid: Some(1_000 + u32::from(number)),
        since,
        conversation,
        stage,
        work: Work { state: ActivityState::Idle, since, tool: None },
    }
}

fn entry(number: u8, is_proven: bool) -> Registered {
    Registered {
        pid: 1_000 + u32::from(number),
        conversation: uuid(number),
        started_at: at(100 + i64::from(number)),
        is_proven,
    }
}

fn transcript(number: u8) -> Transcript {
    Transcript {
        conversation: uuid(number),
        begun_at: at(101 + i64::from(number)),
        is_driven: true,
    }
}

fn names(found: &[Attached]) -> Vec<RemoteId> {
    found.iter().map(|one| one.conversation.clone()).collect()
}

fn join(
    logged: &[LoggedSession],
    registered: &[Registered],
    transcripts: &[Transcript],
) -> Vec<Attached> {
    attached(logged, registered, transcripts, at(9_999))
}

#[test]
fn each_source_alone_names_the_conversation() {
    let expected = vec![Attached { conversation: uuid(1), remote: Some(remote(1)) }];
    assert_eq!(join(&[logged(1, Stage::Attached, Some(uuid(1)))], &[], &[]), expected);
    let silent = [logged(1, Stage::Attached, None)];
    assert_eq!(join(&silent, &[entry(1, false)], &[]), expected);
    assert_eq!(join(&silent, &[], &[transcript(1)]), expected);
    let seen = join(&[], &[entry(1, true)], &[]);
    assert_eq!(seen, [Attached { conversation: uuid(1), remote: None }]);
    assert_eq!(join(&[], &[entry(1, false)], &[transcript(1)]), []);
    assert_eq!(join(&silent, &[], &[]), []);
}

#[test]
fn a_session_that_was_over_is_not_named_and_one_that_broke_is() {
    let over = [logged(1, Stage::Finished, None)];
    assert_eq!(join(&over, &[entry(1, true)], &[]), []);
    let over = [logged(1, Stage::Finished, Some(uuid(1)))];
    assert_eq!(join(&over, &[entry(1, true)], &[transcript(1)]), []);
    let broken = [logged(1, Stage::Broken, Some(uuid(1)))];
    assert_eq!(names(&join(&broken, &[], &[])), [uuid(1)]);
}

#[test]
fn an_entry_of_an_earlier_process_of_that_number_is_somebody_else() {
    let old = Registered { started_at: at(10), ..entry(1, false) };
    assert_eq!(join(&[logged(1, Stage::Attached, None)], &[old], &[]), []);
}

#[test]
fn transcripts_are_taken_only_where_nothing_is_ambiguous() {
    let silent = [logged(1, Stage::Attached, None)];
    assert_eq!(join(&silent, &[], &[transcript(1), transcript(2)]), []);
    let by_hand = Transcript { is_driven: false, ..transcript(2) };
    assert_eq!(names(&join(&silent, &[], &[transcript(1), by_hand])), [uuid(1)]);
    let before = Transcript { begun_at: at(90), ..transcript(2) };
    assert_eq!(names(&join(&silent, &[], &[transcript(1), before])), [uuid(1)]);
    let after = Transcript { begun_at: at(99_999), ..transcript(2) };
    assert_eq!(names(&join(&silent, &[], &[transcript(1), after])), [uuid(1)]);
}

proptest! {
    /// Whatever sources lack, only attached conversations are named, and once.
    #[test]
    fn the_join_names_attached_conversations_once(
        sessions in prop::collection::vec((0_u8..3, any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()), 0..12),
        seed in any::<prop::sample::Index>(),
    ) {
        let mut log = Vec::new();
        let (mut registered, mut transcripts) = (Vec::new(), Vec::new());
        let mut open = BTreeSet::new();
        for (number, (stage, wire, in_registry, is_proven, written)) in sessions.iter().enumerate() {
            let number = u8::try_from(number).unwrap();
            let stage = match stage {
                0 => Stage::Attached,
                1 => Stage::Broken,
                _ => Stage::Finished,
            };
            log.push(logged(number, stage, wire.then(|| uuid(number))));
            if *in_registry {
                registered.push(entry(number, *is_proven));
                registered.push(entry(number, *is_proven));
            }
            // A transcript of a session that is over and that no other source names could be
            // anybody's: the agent writes one only for sessions that the log names too.
            if *written && (*wire || *in_registry || stage != Stage::Finished) {
                transcripts.push(transcript(number));
                transcripts.push(transcript(number));
            }
            if stage != Stage::Finished {
                open.insert(uuid(number));
            }
        }
        let found = names(&join(&log, &registered, &transcripts));
        let unique: BTreeSet<RemoteId> = found.iter().cloned().collect();
        prop_assert_eq!(unique.len(), found.len());
        prop_assert!(unique.is_subset(&open), "{} of {}", unique.len(), open.len());
        // Every session that wire or registry names is there.
        for (number, (stage, wire, in_registry, ..)) in sessions.iter().enumerate() {
            if *stage != 2 && (*wire || *in_registry) {
                prop_assert!(unique.contains(&uuid(u8::try_from(number).unwrap())));
            }
        }
        // The order of the sources does not matter.
        let turn = seed.index(log.len() + 1);
        log.rotate_left(turn);
        registered.reverse();
        transcripts.reverse();
        prop_assert_eq!(names(&join(&log, &registered, &transcripts)), found);
    }
}
