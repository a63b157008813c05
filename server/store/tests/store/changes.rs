//! Noticing what others wrote without reading everything.

use crate::support::*;
use std::collections::BTreeMap;
use std::time::Duration;
use svc_domain::bridge::Stage;
use svc_store::{Access, Changes, ForeignWrites, Saved, Store};

async fn known(store: &Store) -> BTreeMap<i64, i64> {
    let rows = store.bridges().await.unwrap();
    rows.iter().map(|row| (row.number, row.revision)).collect()
}

#[tokio::test]
async fn only_new_changed_and_gone_rows_are_reported() {
    let dir = state_dir();
    let (reader, writer) = (open(dir.path()).await, open(dir.path()).await);
    for number in 1..=4 {
        add(&writer, &bridge(number, &format!("p{number}"), stopped())).await;
    }
    let before = known(&reader).await;
    assert_eq!(reader.changed_since(&before).await.unwrap(), Changes::default());

    assert_eq!(save(&writer, 1, &bridge(2, "p2", live(Stage::Ready))).await, Saved::Yes(2));
    assert_eq!(save(&writer, 2, &bridge(2, "p2", stopped())).await, Saved::Yes(3));
    assert!(writer.delete(&id(3), 1).await.unwrap());
    add(&writer, &bridge(5, "p5", starting())).await;

    let gone_number = *before.keys().nth(2).unwrap();
    let expected = Changes {
        changed: vec![stored(&reader, 2).await, stored(&reader, 5).await],
        gone: vec![gone_number],
    };
    assert_eq!(reader.changed_since(&before).await.unwrap(), expected);
    let after = known(&reader).await;
    assert_eq!(reader.changed_since(&after).await.unwrap(), Changes::default());
}

#[tokio::test]
async fn someone_who_knows_nothing_is_told_everything() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    for number in 1..=3 {
        add(&store, &bridge(number, &format!("p{number}"), stopped())).await;
    }
    let all = store.changed_since(&BTreeMap::new()).await.unwrap();
    assert_eq!(all.changed, store.bridges().await.unwrap());
    let imagined = BTreeMap::from([(77, 1), (-1, i64::MAX)]);
    assert_eq!(store.changed_since(&imagined).await.unwrap().gone, [-1, 77]);
}

#[tokio::test]
async fn a_watch_sees_commits_of_this_process_and_of_others() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    let mut watch = store.watch().await.unwrap();
    assert!(!watch.changed().await.unwrap());

    add(&store, &bridge(1, "api", stopped())).await;
    assert!(watch.changed().await.unwrap());
    assert!(!watch.changed().await.unwrap(), "told once");
    assert_eq!(save(&store, 9, &bridge(1, "api", starting())).await, Saved::Stale);
    assert!(!watch.changed().await.unwrap(), "nothing was written");

    let before = known(&store).await;
    let mut other = Helper::start("insert", dir.path(), &["100", "1"]);
    assert_eq!(other.line(), "inserted");
    assert!(watch.changed().await.unwrap());
    let changes = store.changed_since(&before).await.unwrap();
    assert_eq!(changes.changed, [stored(&store, 100).await]);
    other.finish();
    assert_eq!(store.bridges().await.unwrap().len(), 2);
}

#[tokio::test]
async fn commits_of_others_are_told_apart_from_those_of_oneself() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    // A busy machine may keep the connection that tells longer than is waited for it.
    async fn foreign_writes(store: &Store) -> ForeignWrites {
        let asked = async {
            loop {
                if let Some(others) = store.foreign_writes().await {
                    return others;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(60), asked).await.unwrap()
    }
    let before = foreign_writes(&store).await;
    add(&store, &bridge(1, "api", stopped())).await;
    assert_eq!(save(&store, 1, &bridge(1, "api", starting())).await, Saved::Yes(2));
    assert_eq!(foreign_writes(&store).await, before, "all of it was its own");

    let mut other = Helper::start("insert", dir.path(), &["100", "1"]);
    assert_eq!(other.line(), "inserted");
    other.finish();
    let after = foreign_writes(&store).await;
    assert_ne!(after, before);
    assert_eq!(foreign_writes(&store).await, after, "nothing has happened since");

    add(&open(dir.path()).await, &bridge(2, "web", stopped())).await;
    assert_ne!(
        foreign_writes(&store).await,
        after,
        "another opening in the same process is another one"
    );

    let reader = Store::open(dir.path(), Access::ReadOnly).await.unwrap();
    assert_eq!(reader.foreign_writes().await, None, "who never writes has nothing to compare");
}
