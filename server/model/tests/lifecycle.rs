//! All states of the lifecycle within small bounds.
//!
//! The rules hold in each state, and every seeded fault is found. The long form is `cargo xtask
//! model`.

use std::collections::BTreeSet;
use svc_model::model::REACHED;
use svc_model::plan::{exposing, short};
use svc_model::{Lifecycle, Mutation, search};

#[test]
fn no_order_of_steps_breaks_the_lifecycle() {
    let mut reached = BTreeSet::new();
    for bounds in short() {
        let model = Lifecycle { bounds, mutation: None };
        let outcome = search(&model, 2);
        eprintln!("{:?}: {} states, {:?}", model.bounds.start, outcome.states, outcome.time);
        assert!(outcome.broken.is_empty(), "{:?}\n{}", model.bounds, outcome.told());
        reached.extend(outcome.reached);
    }
    // A search that goes nowhere breaks nothing.
    assert_eq!(reached, BTreeSet::from(REACHED));
}

#[test]
fn every_seeded_fault_of_the_rules_is_found() {
    let missed: Vec<Mutation> = Mutation::ALL
        .into_iter()
        .filter(|mutation| {
            let bounds = exposing(*mutation);
            let outcome = search(&Lifecycle { bounds, mutation: Some(*mutation) }, 2);
            eprintln!("{mutation:?}: {} states, {:?}", outcome.states, outcome.names());
            outcome.broken.is_empty()
        })
        .collect();
    assert!(missed.is_empty(), "not found: {missed:?}");
}
