//! Compares the promises of a run with what is recorded and what really ran.

use super::{Row, World};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// The line without which no bridge may be called running (agent 2.1.197).
const READY: &str = "[bridge:work] Starting poll loop";
/// The same for an Interactive Session.
const CONNECTED: &str = "[remote-bridge] Created session ";

/// Records that somebody was told about.
#[derive(Debug, Default)]
pub struct Books {
    promised: BTreeSet<String>,
    /// Somebody asked to forget them: they are there or not.
    given_up: BTreeSet<String>,
}

/// What the books say when nothing is wrong in them.
#[derive(Debug, Clone, Copy)]
pub struct Balance {
    pub rows: usize,
    /// Launches that are recorded.
    pub generations: i64,
    /// Agents that ran.
    pub ran: usize,
}

impl Books {
    /// An answer named this record: from now on it is there.
    pub fn promise(&mut self, instance_id: &str) {
        self.promised.insert(instance_id.to_owned());
    }

    /// It is to be forgotten, which may have happened or not.
    pub fn give_up(&mut self, instance_id: &str) {
        self.given_up.insert(instance_id.to_owned());
    }

    /// Panics when something is lost, ran twice, or is called ready without a proof.
    #[track_caller]
    pub fn balance(&self, world: &World, rows: &[Row]) -> Balance {
        let known: BTreeSet<&String> = rows.iter().map(|row| &row.instance_id).collect();
        let due = self.promised.difference(&self.given_up);
        let lost: Vec<_> = due.filter(|id| !known.contains(id)).collect();
        assert!(lost.is_empty(), "records that were promised are gone: {lost:?}");
        let mut starts: BTreeMap<String, u64> = BTreeMap::new();
        for call in world.calls().iter().filter(|call| is_launch(call)) {
            *starts.entry(debug_file(call)).or_default() += 1;
        }
        let doubled: Vec<_> = starts.iter().filter(|(_, count)| **count > 1).collect();
        assert!(doubled.is_empty(), "a launch ran twice: {doubled:?}");
        let unseen: Vec<_> = rows.iter().filter(|row| !is_honest(world, row)).collect();
        assert!(unseen.is_empty(), "ready without having said so: {unseen:?}");
        let generations: i64 = rows.iter().map(|row| row.generation).sum();
        let ran = starts.len();
        if self.given_up.is_empty() {
            let most = usize::try_from(generations).unwrap_or_default();
            assert!(ran <= most, "{ran} agents ran for {generations} launches");
        }
        Balance { rows: rows.len(), generations, ran }
    }
}

/// Whether a call of the agent started a bridge or an Interactive Session.
fn is_launch(call: &Value) -> bool {
    let argv = call["argv"].as_array().map(Vec::as_slice).unwrap_or_default();
    let starts = argv.first().is_some_and(|word| word == "remote-control");
    starts || argv.iter().any(|word| word == "--remote-control")
}

fn debug_file(call: &Value) -> String {
    let argv = call["argv"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut after = argv.iter().skip_while(|word| *word != "--debug-file").skip(1);
    after.next().and_then(Value::as_str).expect("every launch has a debug file").to_owned()
}

/// Whether a bridge that is called or announced as ready said so in its log.
/// A crash proves nothing: a bridge that was taken over ends as one, ready or not.
fn is_honest(world: &World, row: &Row) -> bool {
    if row.status != "running" && !row.was_announced {
        return true;
    }
    let stem = row.log_stem.as_deref().unwrap_or_default();
    let log = world.state_dir().join("logs").join(format!("{stem}.log"));
    match fs::read(&log) {
        Ok(text) => {
            let proof = if row.resume_mode == "pty" { CONNECTED } else { READY };
            String::from_utf8_lossy(&text).contains(proof)
        }
        // The logs of an ended one go with their retention, at once where the clock says so.
        Err(error) => error.kind() == std::io::ErrorKind::NotFound && row.status != "running",
    }
}
