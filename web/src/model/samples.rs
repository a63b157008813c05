//! The records of the gallery have the shapes of the records of the service.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use svc_shared::api::instances::Instance;
use svc_shared::api::jobs::BackgroundJob;
use svc_shared::api::projects::Project;
use svc_shared::api::sessions::WorkingSession;
use svc_shared::api::stranded::StrandedSession;
use svc_shared::internal::clones::CloneJob;
use svc_shared::internal::keepers::Keeper;
use svc_shared::internal::restore::RestoreOffer;
use svc_shared::internal::{Bootstrap, Doctor, HistoryPage, Preflight};
use svc_shared::stream::LogFrame;

fn samples() -> Map<String, Value> {
    let source = include_str!("../../gallery/samples.js");
    let (_, text) = source.split_once("const SAMPLES = ").unwrap();
    serde_json::from_str(text.trim_end().trim_end_matches(';')).unwrap()
}

/// It is read, and holds no member that would not be written.
#[track_caller]
fn check<T: DeserializeOwned + Serialize>(sample: &Value) {
    let read: T =
        serde_json::from_value(sample.clone()).unwrap_or_else(|e| panic!("{e}: {sample}"));
    let written = serde_json::to_value(&read).unwrap();
    let Some(members) = sample.as_object() else {
        return;
    };
    for name in members.keys() {
        assert!(written.get(name).is_some(), "nothing is called {name}: {sample}");
    }
}

/// The usual members of a kind with those of one record laid over them.
fn over(usual: &Value, id: (&str, &str), more: &Value) -> Value {
    let mut record = usual.as_object().unwrap().clone();
    if !id.0.is_empty() {
        record.insert(id.0.to_owned(), id.1.into());
    }
    record.extend(more.as_object().unwrap().clone());
    Value::Object(record)
}

#[test]
fn the_records_of_the_gallery_are_those_of_the_service() {
    let all = samples();
    let map = |name: &str| all[name].as_object().unwrap().clone();
    for (id, more) in map("instances") {
        check::<Instance>(&over(&all["instance"], ("instance_id", &id), &more));
    }
    for (id, more) in map("jobs") {
        check::<BackgroundJob>(&over(&all["job"], ("id", &id), &more));
    }
    for (name, more) in map("projects") {
        check::<Project>(&over(&all["project"], ("name", &name), &more));
    }
    for (_, list) in map("tracked").into_iter().chain(map("external")) {
        for more in list.as_array().unwrap() {
            check::<WorkingSession>(&over(&all["session"], ("", ""), more));
        }
    }
    for frame in all["log"].as_array().unwrap() {
        check::<LogFrame>(frame);
    }
    for (_, job) in map("clones") {
        check::<CloneJob>(&job);
    }
    check::<Bootstrap>(&all["bootstrap"]);
    check::<Doctor>(&all["doctor"]);
    check::<RestoreOffer>(&all["restore"]);
    for keeper in all["keepers"].as_array().unwrap() {
        check::<Keeper>(keeper);
    }
    for session in all["stranded"].as_array().unwrap() {
        check::<StrandedSession>(session);
    }
    check::<HistoryPage>(&all["history"]);
    check::<Preflight>(&all["preflight"]);
}
