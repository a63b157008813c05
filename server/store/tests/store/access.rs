//! Named tokens and signed-in browsers.

use crate::support::*;
use svc_shared::Timestamp;
use svc_store::{SignInRow, TokenRow};

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn token(label: &str, digit: char) -> TokenRow {
    TokenRow {
        label: label.to_owned(),
        hash: digit.to_string().repeat(64),
        created_at: at(1),
        last_used_at: None,
        expires_at: None,
        scopes: Some("read".to_owned()),
    }
}

fn sign_in(digit: char, created: i64) -> SignInRow {
    SignInRow {
        hash: digit.to_string().repeat(64),
        created_at: at(created),
        last_seen_at: at(created),
        expires_at: at(created + 1000),
        peer: "10.0.0.1".to_owned(),
        forwarded_for: None,
        user_agent: "Browser".to_owned(),
    }
}

#[tokio::test]
async fn a_row_that_cannot_be_understood_opens_nothing_and_shuts_nobody_out() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    for (label, digit) in [("one", 'a'), ("odd", 'b'), ("two", 'c')] {
        assert!(store.add_token(&token(label, digit)).await.unwrap());
    }
    store.add_sign_in(&sign_in('d', 1)).await.unwrap();
    store.add_sign_in(&sign_in('e', 2)).await.unwrap();
    tamper(dir.path(), "UPDATE api_tokens SET label = CAST(x'ff' AS TEXT) WHERE label = 'odd'")
        .await;
    tamper(dir.path(), "UPDATE sign_ins SET peer = CAST(x'ff' AS TEXT) WHERE created_at = 1").await;
    let labels: Vec<_> =
        store.tokens().await.unwrap().into_iter().map(|token| token.label).collect();
    assert_eq!(labels, ["one", "two"]);
    assert_eq!(store.sign_ins().await.unwrap(), [sign_in('e', 2)]);
    store.close().await;
}

#[tokio::test]
async fn h17_the_hash_of_a_withdrawn_token_never_comes_back() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    assert!(store.add_token(&token("ci", 'a')).await.unwrap());
    assert!(!store.add_token(&token("ci", 'b')).await.unwrap(), "the label is taken");
    store.token_used(&"a".repeat(64), at(5)).await.unwrap();
    assert_eq!(store.tokens().await.unwrap()[0].last_used_at, Some(at(5)));

    assert!(store.withdraw_token("ci", Some(&"c".repeat(64)), at(6)).await.unwrap());
    let rotated = &store.tokens().await.unwrap()[0];
    assert_eq!((rotated.created_at, rotated.last_used_at), (at(1), None));
    assert!(store.withdraw_token("ci", None, at(7)).await.unwrap());
    assert!(!store.withdraw_token("ci", None, at(8)).await.unwrap());
    assert_eq!(store.tokens().await.unwrap(), []);

    // Even a row that appears again with such a hash is no token.
    assert!(store.add_token(&token("again", 'a')).await.unwrap());
    assert_eq!(store.tokens().await.unwrap(), []);
}

#[tokio::test]
async fn revoked_sign_ins_are_gone_and_old_ones_are_dropped() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    for (digit, created) in [('a', 1), ('b', 2), ('c', 3)] {
        store.add_sign_in(&sign_in(digit, created)).await.unwrap();
    }
    assert!(store.revoke_sign_in(&"a".repeat(64), at(9)).await.unwrap());
    assert!(!store.revoke_sign_in(&"a".repeat(64), at(9)).await.unwrap());
    store.sign_in_seen(&"b".repeat(64), at(8)).await.unwrap();
    let left = store.sign_ins().await.unwrap();
    assert_eq!(left.iter().map(|row| row.last_seen_at).collect::<Vec<_>>(), [at(8), at(3)]);

    const MONTH: i64 = 31 * 24 * 3600 * 1000;
    store.add_sign_in(&sign_in('d', MONTH)).await.unwrap();
    assert_eq!(store.sign_ins().await.unwrap().len(), 1, "expired ones are dropped");
    store.revoke_all_sign_ins(at(MONTH)).await.unwrap();
    assert_eq!(store.sign_ins().await.unwrap(), []);
}

/// H93: a clock that was ahead and is right again locks nobody out.
#[tokio::test]
async fn h93_the_newest_sign_in_stays_whatever_the_clock_said_before() {
    let dir = state_dir();
    let store = open(dir.path()).await;
    const AHEAD: i64 = 1_000_000;
    for number in 0..250 {
        let hash = format!("{number:064x}");
        store.add_sign_in(&SignInRow { hash, ..sign_in('a', AHEAD + number) }).await.unwrap();
    }
    store.add_sign_in(&sign_in('f', AHEAD - 500)).await.unwrap();
    let left = store.sign_ins().await.unwrap();
    assert_eq!(left.len(), 200);
    assert!(left.iter().any(|row| row.hash == "f".repeat(64)));
}
