//! Named points where a test can make the process die, wait or fail.
//!
//! Compiled in only with the feature `failpoints`; without it a point is nothing at all.

/// Does what the variable `SVC_FAILPOINTS` says for the point.
/// The form is `name=action`, several separated by `;`. Actions: `abort` (the process kills
/// itself), `sleep:MILLISECONDS`, `panic`, and `abort@N` (at the N-th passage, from 1).
#[cfg(feature = "failpoints")]
pub async fn hit(name: &str) {
    use std::collections::HashMap;
    use std::sync::{Mutex, OnceLock};
    static PASSED: OnceLock<Mutex<HashMap<String, u64>>> = OnceLock::new();
    let Ok(armed) = std::env::var("SVC_FAILPOINTS") else { return };
    let action = armed
        .split(';')
        .filter_map(|entry| entry.split_once('='))
        .find_map(|(point, action)| (point == name).then(|| action.to_owned()));
    let Some(action) = action else { return };
    let (action, wanted) = match action.split_once('@') {
        Some((action, count)) => (action.to_owned(), count.parse::<u64>().unwrap_or(1)),
        None => (action, 0),
    };
    if wanted > 0 {
        let mut passed = match PASSED.get_or_init(Mutex::default).lock() {
            Ok(passed) => passed,
            Err(poisoned) => poisoned.into_inner(),
        };
        let count = passed.entry(name.to_owned()).or_default();
        *count += 1;
        if *count != wanted {
            return;
        }
    }
    match action.as_str() {
        "abort" => {
            let own = rustix::process::getpid();
            let _ = rustix::process::kill_process(own, rustix::process::Signal::KILL);
            std::future::pending::<()>().await;
        }
        #[expect(clippy::panic, reason = "the point of the action")]
        "panic" => panic!("fail point {name}"),
        other => {
            let millis = other.strip_prefix("sleep:").and_then(|millis| millis.parse().ok());
            if let Some(millis) = millis {
                tokio::time::sleep(std::time::Duration::from_millis(millis)).await;
            }
        }
    }
}

/// Nothing.
#[cfg(not(feature = "failpoints"))]
#[inline]
pub async fn hit(_name: &str) {}

/// The options of a service that speaks another protocol with keepers.
/// The variable `SVC_TEST_KEEPER_PROTOCOL` names it.
#[cfg(feature = "failpoints")]
pub fn of_another_release(mut options: svc_keeper::client::Options) -> svc_keeper::client::Options {
    let named = std::env::var("SVC_TEST_KEEPER_PROTOCOL").ok();
    if let Some(number) = named.and_then(|number| number.parse().ok()) {
        options.protocols = number..=number;
    }
    options
}

/// What a test set under a name of `SVC_FAILPOINTS`.
///
/// Such as an address in the place of a resolver's answer.
#[cfg(feature = "failpoints")]
pub fn setting(name: &str) -> Option<String> {
    let armed = std::env::var("SVC_FAILPOINTS").ok()?;
    let mut entries = armed.split(';').filter_map(|entry| entry.split_once('='));
    entries.find_map(|(point, value)| (point == name).then(|| value.to_owned()))
}

/// Nothing: a service that is shipped cannot be led astray.
#[cfg(not(feature = "failpoints"))]
#[inline]
pub fn setting(_name: &str) -> Option<String> {
    None
}

/// A time that a test set under a name, in milliseconds.
pub fn time(name: &str) -> Option<std::time::Duration> {
    setting(name)?.parse().ok().map(std::time::Duration::from_millis)
}

/// Waits as long as a test set under a name.
///
/// For an order of things that chance would seldom bring about.
pub async fn delay(name: &str) {
    if let Some(time) = time(name) {
        tokio::time::sleep(time).await;
    }
}

/// How often this name was counted before.
#[cfg(feature = "failpoints")]
pub fn count(name: &str) -> usize {
    use std::collections::HashMap;
    use std::sync::{Mutex, OnceLock, PoisonError};
    static COUNTS: OnceLock<Mutex<HashMap<String, usize>>> = OnceLock::new();
    let mut counts =
        COUNTS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    let count = counts.entry(name.to_owned()).or_default();
    *count += 1;
    *count - 1
}

/// Nothing.
#[cfg(not(feature = "failpoints"))]
#[inline]
pub fn count(_name: &str) -> usize {
    0
}
