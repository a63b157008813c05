//! The throttle of password attempts.

use proptest::prelude::*;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use svc_domain::throttle::{Key, Throttle};

const WINDOW: Duration = Duration::from_secs(300);
const LOCK_AT: usize = 5;
const SHARED_FREE: usize = 20;
const KEYS: usize = 10_000;
const ONE: Duration = Duration::from_secs(1);

fn peer(last: u8) -> Key {
    Key::peer(IpAddr::from([10, 0, 0, last]))
}

#[test]
fn h21_the_sixth_attempt_waits_until_the_first_one_leaves_the_window() {
    let (mut throttle, start) = (Throttle::default(), Instant::now());
    for n in 0..5 {
        let _ = throttle.reserve(peer(1), start + ONE * n).unwrap();
    }
    let locked = throttle.reserve(peer(1), start + ONE * 10).unwrap_err();
    assert_eq!(locked.retry_after, 290);
    let almost = start + WINDOW - Duration::from_millis(1);
    assert_eq!(throttle.reserve(peer(1), almost).unwrap_err().retry_after, 1);
    // Another key is not affected, and the window slides by single failures.
    assert!(throttle.reserve(peer(2), start + ONE * 10).is_ok());
    assert!(throttle.reserve(peer(1), start + WINDOW).is_ok());
    assert_eq!(throttle.reserve(peer(1), start + WINDOW).unwrap_err().retry_after, 1);
}

#[test]
fn h21_attempts_side_by_side_cannot_exceed_the_limit() {
    let (mut throttle, now) = (Throttle::default(), Instant::now());
    let admitted = (0..50).filter(|_| throttle.reserve(peer(1), now).is_ok()).count();
    assert_eq!(admitted, LOCK_AT);
}

#[test]
fn a_success_clears_its_key_and_an_attempt_that_was_not_made_does_not_count() {
    let (mut throttle, now) = (Throttle::default(), Instant::now());
    for _ in 0..4 {
        let _ = throttle.reserve(peer(1), now).unwrap();
    }
    let last = throttle.reserve(peer(1), now).unwrap();
    throttle.released(&last);
    let right = throttle.reserve(peer(1), now).unwrap();
    assert!(throttle.reserve(peer(1), now).is_err());
    throttle.succeeded(&right);
    assert!(throttle.is_empty());
}

#[test]
fn a_shared_address_is_slowed_down_and_never_locked() {
    let (mut throttle, start) = (Throttle::default(), Instant::now());
    let shared = || Key::SharedProxy(IpAddr::from([10, 0, 0, 9]));
    for _ in 0..=SHARED_FREE {
        let _ = throttle.reserve(shared(), start).unwrap();
    }
    assert_eq!(throttle.reserve(shared(), start).unwrap_err().retry_after, 2);
    let mut now = start + ONE * 2;
    for expected in [4, 8, 16, 32, 60, 60] {
        let _ = throttle.reserve(shared(), now).unwrap();
        assert_eq!(throttle.reserve(shared(), now).unwrap_err().retry_after, expected);
        now += ONE * u32::try_from(expected).unwrap();
    }
}

#[test]
fn h21_addresses_of_one_customer_are_one_key_and_memory_is_bounded() {
    let six = |text: &str| Key::peer(text.parse().unwrap());
    assert_eq!(six("2001:db8:1:2::1"), six("2001:db8:1:2:ffff::9"));
    assert_ne!(six("2001:db8:1:2::1"), six("2001:db8:1:3::1"));
    assert_eq!(six("::ffff:10.0.0.1"), peer(1));
    let (mut throttle, start) = (Throttle::default(), Instant::now());
    let _ = throttle.reserve(peer(1), start).unwrap();
    for n in 0..u32::try_from(KEYS).unwrap() + 50 {
        let address = IpAddr::from(u128::from(n + 1).wrapping_shl(64).to_be_bytes());
        let _ = throttle.reserve(Key::peer(address), start + ONE * (n + 1)).unwrap();
    }
    assert_eq!(throttle.len(), KEYS);
    let end = start + ONE * (u32::try_from(KEYS).unwrap() + 100);
    for _ in 0..LOCK_AT {
        assert!(throttle.reserve(peer(1), end).is_ok(), "the oldest was forgotten");
    }
}

/// Somebody who holds many addresses of one kind is judged five times at most.
#[test]
fn h21_addresses_that_one_machine_has_for_nothing_are_one_key() {
    for (what, addresses) in [
        ("loopback", vec!["127.0.0.1", "127.0.0.2", "127.255.255.254", "127.9.9.9", "::1"]),
        ("mapped loopback", vec!["127.0.0.1", "::ffff:127.0.0.2", "::ffff:127.200.0.1"]),
        ("unspecified", vec!["127.0.0.1", "0.0.0.0", "::"]),
        ("this network", vec!["127.0.0.1", "0.0.0.1"]),
        ("compatible", vec!["192.0.2.1", "::192.0.2.1", "::ffff:192.0.2.1"]),
        ("6to4", vec!["192.0.2.1", "2002:c000:201::1", "2002:c000:201:ffff::1"]),
        ("translated", vec!["192.0.2.1", "64:ff9b::192.0.2.1", "::ffff:0:192.0.2.1"]),
        ("link-local", vec!["fe80::1", "fe80::ffff:1:2:3"]),
        ("one network", vec!["2001:db8:1:2::1", "2001:db8:1:2:ffff::9"]),
    ] {
        let keys: std::collections::HashSet<_> =
            addresses.iter().map(|text| Key::peer(text.parse().unwrap())).collect();
        assert_eq!(keys.len(), 1, "{what}: {keys:?}");
    }
    let (mut throttle, now) = (Throttle::default(), Instant::now());
    let judged = (1..=250_u8)
        .filter(|last| throttle.reserve(Key::peer([127, 0, 3, *last].into()), now).is_ok());
    assert_eq!(judged.count(), LOCK_AT);
    assert_ne!(peer(1), peer(2), "addresses of different machines");
    assert_ne!(peer(1), Key::peer("127.0.0.1".parse().unwrap()));
}

/// Somebody with endless addresses is slowed down, and loopback never waits.
#[test]
fn h21_failures_of_all_addresses_together_are_bounded() {
    let (mut throttle, start) = (Throttle::default(), Instant::now());
    let at = |n: u32| Key::peer(IpAddr::from(u128::from(n + 1).wrapping_shl(64).to_be_bytes()));
    let judged = (0..5_000).filter(|n| throttle.reserve(at(*n), start).is_ok()).count();
    assert_eq!(judged, 1_000);
    assert_eq!(throttle.reserve(at(9_000), start).unwrap_err().retry_after, 1);
    // A user that a proxy names counts with the others.
    assert!(throttle.reserve(Key::ProxyUser("alice".into()), start).is_err());
    assert!(throttle.reserve(Key::peer("127.0.0.1".parse().unwrap()), start).is_ok());
    // Nobody is locked: one attempt a second goes through, from whatever address.
    assert!(throttle.reserve(at(9_000), start + ONE).is_ok());
    assert!(throttle.reserve(at(9_001), start + ONE).is_err());
    assert!(throttle.reserve(at(9_001), start + ONE * 2).is_ok());
    let later = start + WINDOW + ONE * 3;
    let judged = (0..50).filter(|n| throttle.reserve(at(*n), later).is_ok()).count();
    assert_eq!(judged, 50, "old failures do not count");
}

proptest! {
    #[test]
    fn never_more_than_five_failures_in_any_window(gaps in prop::collection::vec(0_u64..200, 1..60)) {
        let (mut throttle, mut now) = (Throttle::default(), Instant::now());
        let mut made: Vec<Instant> = Vec::new();
        for gap in gaps {
            now += Duration::from_secs(gap);
            match throttle.reserve(peer(1), now) {
                Ok(_) => made.push(now),
                Err(locked) => prop_assert!((1..=300).contains(&locked.retry_after)),
            }
            let recent = made.iter().filter(|at| now.duration_since(**at) < WINDOW).count();
            prop_assert!(recent <= LOCK_AT);
        }
    }
}
