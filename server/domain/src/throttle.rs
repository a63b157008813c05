//! How often a password may be tried (`http-api` §5.6, H21).
//!
//! An attempt is counted before it is checked, so that attempts side by side cannot exceed the
//! limit. The caller serialises the calls and brings the time.

use crate::peer;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Failures count for this long.
const WINDOW: Duration = Duration::from_secs(300);
/// Failures of one key before it is locked.
const LOCK_AT: usize = 5;
/// Failures behind a shared address before each further attempt has to wait.
const SHARED_FREE: usize = 20;
/// Longest wait behind a shared address, seconds.
const SHARED_WAIT: u64 = 60;
/// Failures that are remembered per key: more do not lengthen any wait.
const REMEMBERED: usize = 32;
/// Most keys; beyond it the one that failed longest ago is forgotten.
const KEYS: usize = 10_000;
/// Failures of all keys together before attempts are let through one by one.
///
/// Five failures of each of 200 addresses. Beyond it somebody guesses from many addresses: nobody
/// is locked for that, but only one attempt is judged in each [`PACE`], whoever makes it.
const TOGETHER: usize = 1_000;
/// Pause between two attempts while all keys together failed too often.
const PACE: Duration = Duration::from_secs(1);

/// Whose attempts are counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    /// One peer, as [`peer::network`] tells peers apart.
    Peer(IpAddr),
    /// The user that a proxy names and signs.
    ProxyUser(String),
    /// A proxy that names nobody it signs for: many people share its address.
    SharedProxy(IpAddr),
}

impl Key {
    /// The key of an address that no proxy speaks for.
    #[must_use]
    pub fn peer(address: IpAddr) -> Self {
        Self::Peer(peer::network(address))
    }

    /// Whether attempts are counted with those of all other keys.
    ///
    /// Not those from this machine: a crowd elsewhere must not slow down who sits here.
    fn is_counted_together(&self) -> bool {
        match self {
            Self::Peer(address) => !address.is_loopback(),
            Self::ProxyUser(_) | Self::SharedProxy(_) => true,
        }
    }
}

/// Attempts that failed, or whose outcome is open.
#[derive(Debug, Default)]
pub struct Throttle {
    keys: HashMap<Key, VecDeque<Instant>>,
    /// The newest attempts of all keys but loopback, as many as count together.
    together: VecDeque<Instant>,
}

/// An attempt that may be made; it counts as failed until it is told otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Attempt {
    key: Key,
    at: Instant,
}

/// The attempt may not be made; not even the right password helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Locked {
    /// When to come back, in whole seconds, at least 1.
    pub retry_after: u64,
}

impl Throttle {
    /// Counts an attempt, or refuses it.
    ///
    /// # Errors
    /// Too many failed lately.
    pub fn reserve(&mut self, key: Key, now: Instant) -> Result<Attempt, Locked> {
        let failures = self.keys.entry(key.clone()).or_default();
        failures.retain(|at| now.saturating_duration_since(*at) < WINDOW);
        let wait = match &key {
            Key::Peer(_) | Key::ProxyUser(_) => locked_for(failures, now),
            Key::SharedProxy(_) => shared_wait(failures, now),
        };
        let wait = wait.max(self.wait_together(&key, now));
        if let Some(wait) = wait {
            if self.keys.get(&key).is_some_and(VecDeque::is_empty) {
                self.keys.remove(&key);
            }
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            return Err(Locked { retry_after: seconds.max(1) });
        }
        let failures = self.keys.entry(key.clone()).or_default();
        failures.push_back(now);
        if failures.len() > REMEMBERED {
            failures.pop_front();
        }
        self.forget_oldest(&key);
        if key.is_counted_together() {
            self.together.push_back(now);
            if self.together.len() > TOGETHER {
                self.together.pop_front();
            }
        }
        Ok(Attempt { key, at: now })
    }

    /// The password was right: the key starts anew.
    pub fn succeeded(&mut self, attempt: &Attempt) {
        self.keys.remove(&attempt.key);
        self.forget_together(attempt);
    }

    /// The password was not looked at: the attempt does not count.
    pub fn released(&mut self, attempt: &Attempt) {
        if let Some(failures) = self.keys.get_mut(&attempt.key)
            && let Some(place) = failures.iter().position(|at| *at == attempt.at)
        {
            failures.remove(place);
        }
        self.forget_together(attempt);
    }

    /// How long the attempts of all keys together keep this one waiting.
    fn wait_together(&self, key: &Key, now: Instant) -> Option<Duration> {
        if !key.is_counted_together() || self.together.len() < TOGETHER {
            return None;
        }
        let oldest = now.saturating_duration_since(*self.together.front()?);
        let newest = now.saturating_duration_since(*self.together.back()?);
        (oldest < WINDOW).then(|| PACE.checked_sub(newest)).flatten().filter(|left| !left.is_zero())
    }

    fn forget_together(&mut self, attempt: &Attempt) {
        if attempt.key.is_counted_together()
            && let Some(place) = self.together.iter().rposition(|at| *at == attempt.at)
        {
            self.together.remove(place);
        }
    }

    /// Keys that are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether nothing failed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    fn forget_oldest(&mut self, kept: &Key) {
        if self.keys.len() <= KEYS {
            return;
        }
        let oldest = self
            .keys
            .iter()
            .filter(|(key, _)| *key != kept)
            .min_by_key(|(_, failures)| failures.back().copied())
            .map(|(key, _)| key.clone());
        if let Some(oldest) = oldest {
            self.keys.remove(&oldest);
        }
    }
}

fn locked_for(failures: &VecDeque<Instant>, now: Instant) -> Option<Duration> {
    if failures.len() < LOCK_AT {
        return None;
    }
    let oldest = failures.front()?;
    Some(WINDOW.saturating_sub(now.saturating_duration_since(*oldest)))
}

fn shared_wait(failures: &VecDeque<Instant>, now: Instant) -> Option<Duration> {
    let beyond = failures.len().checked_sub(SHARED_FREE).filter(|beyond| *beyond > 0)?;
    let power = u32::try_from(beyond).unwrap_or(u32::MAX);
    let wait = 2_u64.checked_pow(power).unwrap_or(SHARED_WAIT).min(SHARED_WAIT);
    let since = now.saturating_duration_since(*failures.back()?);
    Duration::from_secs(wait).checked_sub(since).filter(|rest| !rest.is_zero())
}
