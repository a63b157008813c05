//! All orders of questions, answers and accidents within small bounds.
//!
//! Each question is decided at most once and none is lost; every seeded fault is found.

use std::collections::BTreeSet;
use svc_model::questions::{COME_BY, Fault, Questions, SHORT, search};

#[test]
fn no_order_of_steps_decides_a_question_twice_or_loses_one() {
    let found = search(Questions { accidents: SHORT, fault: None }, 2);
    eprintln!("{} states", found.states);
    assert!(found.broken.is_empty(), "{:#?}", found.broken);
    // A search that goes nowhere breaks nothing.
    assert_eq!(found.reached.into_iter().collect::<BTreeSet<_>>(), BTreeSet::from(COME_BY));
}

#[test]
fn every_seeded_fault_of_questions_is_found() {
    let missed: Vec<Fault> = Fault::ALL
        .into_iter()
        .filter(|fault| {
            let found = search(Questions { accidents: SHORT, fault: Some(*fault) }, 2);
            let names: Vec<_> = found.broken.iter().map(|(name, _)| *name).collect();
            eprintln!("{fault:?}: {} states, {names:?}", found.states);
            found.broken.is_empty()
        })
        .collect();
    assert!(missed.is_empty(), "not found: {missed:?}");
}
