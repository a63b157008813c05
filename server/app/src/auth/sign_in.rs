//! Signing in and out, and proving the password again (`http-api` §5.2, §5.6).

use crate::AppError;
use crate::auth::identity::{Validity, binding};
use crate::auth::known::{Known, raise_epoch};
use crate::auth::ticket::{Purpose, Ticket};
use crate::auth::{Auth, Caller, ELEVATION, Identity, lock, sha256_hex};
use crate::ops::reserve;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;
use svc_domain::peer;
use svc_domain::throttle::Attempt;
use svc_store::SignInRow;

/// Longest name of a browser that is kept, in characters.
const USER_AGENT: usize = 256;

/// What is shown of a signed-in browser.
#[derive(Debug, Clone)]
pub struct Visitor {
    /// Address of the connection.
    pub peer: String,
    /// Where it comes from: see [`Auth::source`].
    pub source: IpAddr,
    /// What a trusted proxy said.
    pub forwarded_for: Option<String>,
    /// The browser, as it calls itself.
    pub user_agent: String,
}

/// Why nobody was signed in.
#[derive(Debug)]
pub enum SignInError {
    /// Not the password.
    Wrong,
    /// Too many attempts; come back after so many seconds.
    Locked(u64),
    /// Too many checks at once.
    Crowded,
    /// It was the password, and the session could not be recorded.
    Failed(AppError),
}

impl Auth {
    /// Signs a browser in: the `Set-Cookie` value of its new session.
    /// A session it had before ends, whoever planted it.
    ///
    /// # Errors
    /// See [`SignInError`]; then nothing is different from before.
    pub async fn sign_in(
        self: &Arc<Self>,
        caller: &Caller,
        password: Vec<u8>,
        visitor: Visitor,
    ) -> Result<String, SignInError> {
        let attempt = self.check(caller, password, self.is_password_required).await?;
        let (this, caller) = (Arc::clone(self), caller.clone());
        let opened = async move {
            let cookie = this.open_session(&caller, visitor).await;
            this.settled(&attempt, cookie)
        };
        // Whoever goes away now leaves no session that only half replaces the one before.
        let opened = tokio::spawn(opened).await;
        opened.unwrap_or_else(|error| Err(SignInError::Failed(AppError::internal(error))))
    }

    /// Proves the password again: the `Set-Cookie` value that says so for ten minutes.
    ///
    /// # Errors
    /// See [`SignInError`].
    pub async fn elevate(
        &self,
        caller: &Caller,
        identity: &Identity,
        password: Vec<u8>,
    ) -> Result<String, SignInError> {
        let attempt = self.check(caller, password, true).await?;
        let cookie = self
            .sealed(Purpose::Elevation, binding(identity))
            .map(|value| {
                let age = ELEVATION.as_secs();
                self.set_cookie(&self.names.elevation, &value, age, caller.is_https)
            })
            .ok_or_else(|| AppError::internal("no key for cookies"));
        self.settled(&attempt, cookie)
    }

    /// The password was right: what then failed was not the fault of who tried.
    fn settled(
        &self,
        attempt: &Attempt,
        cookie: Result<String, AppError>,
    ) -> Result<String, SignInError> {
        let mut throttle = lock(&self.throttle);
        match cookie {
            Ok(cookie) => {
                throttle.succeeded(attempt);
                Ok(cookie)
            }
            Err(error) => {
                throttle.released(attempt);
                Err(SignInError::Failed(error))
            }
        }
    }

    async fn check(
        &self,
        caller: &Caller,
        password: Vec<u8>,
        is_open: bool,
    ) -> Result<Attempt, SignInError> {
        let reserved = lock(&self.throttle).reserve(caller.throttle_key.clone(), Instant::now());
        let attempt = match reserved {
            Ok(attempt) => attempt,
            Err(locked) => {
                tracing::warn!("too many wrong passwords from one place; it is locked for a while");
                return Err(SignInError::Locked(locked.retry_after));
            }
        };
        match self.passwords.verify(password, is_open).await {
            Ok(true) => Ok(attempt),
            Ok(false) => Err(SignInError::Wrong),
            Err(_) => {
                lock(&self.throttle).released(&attempt);
                Err(SignInError::Crowded)
            }
        }
    }

    async fn open_session(&self, caller: &Caller, visitor: Visitor) -> Result<String, AppError> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|error| AppError::internal(error.to_string()))?;
        let value = self
            .sealed(Purpose::Session, id)
            .ok_or_else(|| AppError::internal("no key for cookies"))?;
        let now = self.now();
        let row = SignInRow {
            hash: sha256_hex(&id),
            created_at: now,
            last_seen_at: now,
            expires_at: now.plus(self.max_age),
            peer: visitor.peer,
            forwarded_for: visitor.forwarded_for,
            user_agent: visitor.user_agent.chars().take(USER_AGENT).collect(),
        };
        self.store.add_sign_in(&row).await.map_err(unwritten)?;
        let address = peer::shown(visitor.source);
        self.store.used_from(&row.hash, &address, now).await.map_err(unwritten)?;
        if let Some(Identity { validity: Validity::Session { hash, .. }, .. }) = &caller.identity {
            self.store.revoke_sign_in(hash, now).await.map_err(unwritten)?;
        }
        let reader = self.reader.lock().await;
        self.load().await?;
        drop(reader);
        tracing::info!("a browser signed in");
        Ok(self.set_cookie(&self.names.session, &value, self.max_age.as_secs(), caller.is_https))
    }

    fn sealed(&self, purpose: Purpose, id: [u8; 16]) -> Option<String> {
        let ticket = Ticket {
            issued: self.now().as_millis(),
            epoch: self.known.load().epoch?,
            id,
            fingerprint: self.fingerprint()?,
        };
        self.keys.as_ref()?.seal(purpose, &ticket)
    }

    /// Ends the session that this request came with, if it came with one.
    /// Once begun it goes through, whether or not somebody still waits for it.
    ///
    /// # Errors
    /// The session goes on.
    pub async fn sign_out_one(self: &Arc<Self>, caller: &Caller) -> Result<(), AppError> {
        let Some(Identity { validity: Validity::Session { hash, .. }, .. }) = &caller.identity
        else {
            return Ok(());
        };
        let (this, hash) = (Arc::clone(self), hash.clone());
        let ended = async move {
            reserve::make_room(&this.state_dir).await;
            this.store.revoke_sign_in(&hash, this.now()).await.map_err(unwritten)?;
            let _reader = this.reader.lock().await;
            this.load().await?;
            tracing::info!("a browser was signed out");
            Ok(())
        };
        tokio::spawn(ended).await.map_err(AppError::internal)?
    }

    /// Ends every session and every elevation, here and after every restart.
    /// Once begun it goes through, whether or not somebody still waits for it.
    ///
    /// # Errors
    /// Nobody was signed out.
    pub async fn sign_out(self: &Arc<Self>) -> Result<(), AppError> {
        let this = Arc::clone(self);
        let work = async move {
            reserve::make_room(&this.state_dir).await;
            this.sign_all_out().await
        };
        tokio::spawn(work).await.map_err(AppError::internal)?
    }

    async fn sign_all_out(&self) -> Result<(), AppError> {
        let now = self.now();
        let reader = self.reader.lock().await;
        let before = self.known.load_full();
        let epoch = raise_epoch(self.epoch_file(), before.epoch.unwrap_or(0), now).await.map_err(
            |error| AppError::busy("the sign-out cannot be recorded; try again").because(error),
        )?;
        // From here on no cookie is valid, whatever becomes of the rows.
        self.replace(Known {
            epoch: Some(epoch),
            tokens: before.tokens.clone(),
            sign_ins: Vec::new(),
        });
        drop(reader);
        tracing::info!("every browser was signed out");
        self.store.revoke_all_sign_ins(now).await.map_err(unwritten)
    }

    /// The `Set-Cookie` value that takes an elevation back.
    #[must_use]
    pub fn lowered(&self, is_https: bool) -> String {
        self.set_cookie(&self.names.elevation, "", 0, is_https)
    }
}

pub(super) fn unwritten(error: svc_store::StoreError) -> AppError {
    AppError::busy("the session cannot be recorded; try again").because(error)
}
