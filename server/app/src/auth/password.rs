//! The one place that looks at passwords.
//! Argon2id, off the threads that answer requests, a few at a time (`http-api` §5.2, H20, H22).

use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Semaphore;

/// Checks at once: each takes the memory that the hash asks for.
const AT_ONCE: usize = 2;
/// Checks that may wait.
const WAITING: usize = 8;
/// Least length of a new password, in characters.
///
/// A hash made earlier, of a shorter password, goes on working.
pub const SHORTEST_PASSWORD: usize = 8;
/// Longest password that is looked at, bytes.
pub const LONGEST_PASSWORD: usize = 1024;
/// Memory (KiB), passes and lanes of the hashes we make.
const COST: (u32, u32, u32) = (65_536, 3, 4);
/// Stands in for a hash that is not there or is none.
/// The check then costs the same.
const STAND_IN: &str = "$argon2id$v=19$m=65536,t=3,p=4$c3RhbmQtaW4tc2FsdC0xNg\
     $AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// More are waiting than may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Crowded;

/// Checks passwords against the configured hash.
#[derive(Debug)]
pub(super) struct Passwords {
    hash: Option<String>,
    places: Arc<Semaphore>,
    inside: Arc<AtomicUsize>,
}

impl Passwords {
    pub(super) fn new(hash: Option<String>) -> Self {
        let hash = hash.filter(|hash| is_usable(hash));
        Self { hash, places: Arc::new(Semaphore::new(AT_ONCE)), inside: Arc::default() }
    }

    /// Whether any password can be right.
    pub(super) fn is_set(&self) -> bool {
        self.hash.is_some()
    }

    /// Whether it is the password. With `is_open` false none is, at the same cost.
    pub(super) async fn verify(&self, password: Vec<u8>, is_open: bool) -> Result<bool, Crowded> {
        if password.len() > LONGEST_PASSWORD {
            return Ok(false);
        }
        let inside = Inside::enter(&self.inside)?;
        let Ok(place) = Arc::clone(&self.places).acquire_owned().await else {
            return Err(Crowded);
        };
        let hash = self.hash.clone();
        let checked = tokio::task::spawn_blocking(move || {
            // Memory and place are taken until the check ends, also when nobody waits for it.
            let _held = (place, inside);
            let is_right = matches(hash.as_deref().unwrap_or(STAND_IN), &password);
            is_right && hash.is_some()
        });
        Ok(checked.await.unwrap_or(false) && is_open)
    }
}

/// One of those who check or wait.
struct Inside(Arc<AtomicUsize>);

impl Inside {
    fn enter(count: &Arc<AtomicUsize>) -> Result<Self, Crowded> {
        let inside = Self(Arc::clone(count));
        if count.fetch_add(1, Ordering::AcqRel) >= AT_ONCE + WAITING {
            return Err(Crowded);
        }
        Ok(inside)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn is_usable(hash: &str) -> bool {
    PasswordHash::new(hash)
        .is_ok_and(|hash| hash.algorithm == argon2::ARGON2ID_IDENT && hash.hash.is_some())
}

fn matches(hash: &str, password: &[u8]) -> bool {
    PasswordHash::new(hash)
        .is_ok_and(|hash| Argon2::default().verify_password(password, &hash).is_ok())
}

/// The hash of a new password, as `auth.password_hash` takes it. Takes a while.
///
/// # Errors
/// The system has no randomness, or not enough memory.
pub fn hash_password(password: &[u8]) -> Result<String, std::io::Error> {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).map_err(std::io::Error::other)?;
    let salt = SaltString::encode_b64(&salt).map_err(std::io::Error::other)?;
    let (memory, passes, lanes) = COST;
    let params = Params::new(memory, passes, lanes, Some(32)).map_err(std::io::Error::other)?;
    let hasher = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let hash = hasher.hash_password(password, &salt).map_err(std::io::Error::other)?;
    Ok(hash.to_string())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// `correct horse` with the least cost there is.
    pub(crate) fn cheap(password: &str) -> String {
        let params = Params::new(8, 1, 1, Some(32)).unwrap();
        let salt = SaltString::encode_b64(&[5; 16]).unwrap();
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password(password.as_bytes(), &salt)
            .unwrap()
            .to_string()
    }

    #[tokio::test]
    async fn h20_only_the_right_password_is_right_and_everything_else_is_checked_too() {
        let passwords = Passwords::new(Some(cheap("right")));
        let verify = async |text: &[u8]| passwords.verify(text.to_vec(), true).await.unwrap();
        assert!(verify(b"right").await);
        for wrong in [&b""[..], b"Right", b"right ", b"right\0", b"\xff\xfe", &[b'a'; 2000]] {
            assert!(!verify(wrong).await);
        }
        assert!(!passwords.verify(b"right".to_vec(), false).await.unwrap(), "not open");
        for unusable in [
            None,
            Some("nonsense".to_owned()),
            Some("$argon2i$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$AAAA".into()),
        ] {
            let passwords = Passwords::new(unusable);
            assert!(!passwords.is_set() && !passwords.verify(Vec::new(), true).await.unwrap());
        }
    }

    #[test]
    fn h20_the_stand_in_is_a_hash_of_the_usual_cost() {
        let parsed = PasswordHash::new(STAND_IN).unwrap();
        let params = Params::try_from(&parsed).unwrap();
        assert_eq!((params.m_cost(), params.t_cost(), params.p_cost()), COST);
        assert!(parsed.hash.is_some());
    }

    #[tokio::test]
    async fn h22_beyond_two_and_eight_waiting_nobody_is_let_in() {
        let passwords = Arc::new(Passwords::new(Some(cheap("right"))));
        let held = passwords.places.acquire_many(2).await.unwrap();
        let mut waiting: Vec<_> = (0..AT_ONCE + WAITING)
            .map(|_| {
                let passwords = Arc::clone(&passwords);
                Box::pin(async move { passwords.verify(b"right".to_vec(), true).await })
            })
            .collect();
        for one in &mut waiting {
            assert!(futures_util::poll!(one.as_mut()).is_pending());
        }
        assert_eq!(passwords.verify(b"right".to_vec(), true).await, Err(Crowded));
        drop(held);
        for one in waiting {
            assert_eq!(one.await, Ok(true));
        }
        assert_eq!(passwords.verify(b"right".to_vec(), true).await, Ok(true));
    }

    #[test]
    fn h22_a_check_that_nobody_waits_for_keeps_its_place_until_it_ends() {
        let runtime =
            tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let (release, released) = std::sync::mpsc::channel::<()>();
            let before = tokio::task::spawn_blocking(move || released.recv().is_ok());
            let passwords = Passwords::new(Some(cheap("right")));
            let mut left = Box::pin(passwords.verify(b"right".to_vec(), true));
            assert!(futures_util::poll!(left.as_mut()).is_pending());
            drop(left);
            let taken =
                || (passwords.places.available_permits(), passwords.inside.load(Ordering::Acquire));
            assert_eq!(taken(), (AT_ONCE - 1, 1));
            release.send(()).unwrap();
            assert!(before.await.unwrap());
            // The only thread for this comes to it after the check.
            tokio::task::spawn_blocking(|| ()).await.unwrap();
            assert_eq!(taken(), (AT_ONCE, 0));
        });
    }

    #[test]
    fn a_made_hash_is_usable_and_never_the_same() {
        let (one, other) = (hash_password(b"x").unwrap(), hash_password(b"x").unwrap());
        assert!(one.starts_with("$argon2id$v=19$m=65536,t=3,p=4$") && one != other, "{one}");
        assert!(is_usable(&one) && matches(&one, b"x") && !matches(&one, b"y"));
    }
}
