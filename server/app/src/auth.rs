//! Who a request comes from.
//! The credentials of `http-api` §5, kept, checked and ended here.
//!
//! Reading a credential changes nothing. Every credential that opens something can end: what it
//! opened asks [`Auth::ended`], which knows of sign-outs here and of writes by other processes.

pub(crate) mod devices;
pub(crate) mod holder;
mod identity;
mod known;
pub(crate) mod password;
mod probe;
mod proxy;
pub mod refs;
mod sign_in;
mod steps;
#[cfg(test)]
mod tests;
pub(crate) mod ticket;
mod tokens;

pub use devices::Devices;
pub use identity::{Caller, Channel, Claim, Identity};
pub(crate) use known::epoch_on_disk;
pub use password::{LONGEST_PASSWORD, SHORTEST_PASSWORD, hash_password};
pub use probe::{PROBE_HEADER, probe_pass};
pub use sign_in::{SignInError, Visitor};
pub use tokens::{Tokens, new_token};

use crate::AppError;
use crate::auth::identity::Validity;
use crate::auth::known::Known;
use crate::auth::password::Passwords;
use crate::auth::proxy::ProxyRule;
use crate::auth::steps::Steps;
use crate::auth::ticket::Keys;
use arc_swap::ArcSwap;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use svc_config::{Config, CookieSecure};
use svc_domain::peer;
use svc_domain::throttle::Throttle;
use svc_ports::Clock;
use svc_shared::Timestamp;
use svc_store::{Store, Use, Watch};
use tokio::sync::watch;

/// What is known of the database is looked at again after this.
const FRESH: Duration = Duration::from_millis(500);
/// Use of a credential is written at most this often.
const NOTED_EVERY: Duration = Duration::from_secs(60);
/// Most uses remembered between two writes.
/// Nobody has so many addresses within a minute.
const MOST_NOTED: usize = 1024;
/// Longest wait without looking again, for expiries far away.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);
/// A fresh password proof is good for this long.
pub const ELEVATION: Duration = Duration::from_secs(600);

/// Who may come in, and who is in.
pub struct Auth {
    enabled: bool,
    is_password_required: bool,
    unnamed_token: Option<svc_config::Secret>,
    metrics_token: Option<svc_config::Secret>,
    password_hash: Option<svc_config::Secret>,
    max_age: Duration,
    cookie_secure: CookieSecure,
    root_path: String,
    state_dir: PathBuf,
    has_tls: bool,
    names: CookieNames,
    proxy: ProxyRule,
    passwords: Passwords,
    throttle: Mutex<Throttle>,
    keys: Option<Keys>,
    store: Store,
    clock: Arc<dyn Clock>,
    known: ArcSwap<Known>,
    /// When the database was last found unchanged, for those who need not wait.
    checked: Mutex<Option<Instant>>,
    /// Held by whoever replaces what is known.
    reader: tokio::sync::Mutex<Reader>,
    steps: Arc<Steps>,
    /// When the use of a credential from an address was last written.
    noted: Mutex<HashMap<(String, IpAddr), Instant>>,
    changed: watch::Sender<u64>,
}

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Auth").field("enabled", &self.enabled).finish_non_exhaustive()
    }
}

/// How far the database was read.
#[derive(Default)]
struct Reader {
    watch: Option<Watch>,
    /// Nothing has changed since what is known was read.
    /// Kept beside the watch: that tells of a change once, and the reading after it may fail or be
    /// given up.
    is_current: bool,
}

#[derive(Debug)]
struct CookieNames {
    session: String,
    elevation: String,
}

impl CookieNames {
    /// Two services on one host do not share cookies.
    /// The names carry their state directories.
    fn of(state_dir: &std::path::Path) -> Self {
        let real = state_dir.canonicalize().unwrap_or_else(|_| state_dir.to_owned());
        let mut tag = hex::encode(Sha256::digest(real.as_os_str().as_encoded_bytes()));
        tag.truncate(12);
        Self { session: format!("svc_session_{tag}"), elevation: format!("svc_elevation_{tag}") }
    }
}

impl Auth {
    pub(crate) fn new(
        config: &Config,
        keys: Option<Keys>,
        store: Store,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let auth = &config.auth;
        let hash = auth.password_hash.as_ref().map(|hash| hash.expose().to_owned());
        Self {
            enabled: auth.enabled,
            is_password_required: auth.password_required,
            unnamed_token: auth.api_token_hash.clone(),
            metrics_token: config.observability.metrics_token_hash.clone(),
            password_hash: auth.password_hash.clone(),
            max_age: auth.session_max_age,
            cookie_secure: auth.cookie_secure,
            root_path: config.root_path.clone(),
            state_dir: config.state_dir.clone(),
            has_tls: config.tls.is_some(),
            names: CookieNames::of(&config.state_dir),
            proxy: ProxyRule::new(config),
            passwords: Passwords::new(hash),
            throttle: Mutex::default(),
            keys,
            store,
            steps: Arc::new(Steps::new(Arc::clone(&clock))),
            clock,
            known: ArcSwap::from_pointee(Known::default()),
            checked: Mutex::default(),
            reader: tokio::sync::Mutex::default(),
            noted: Mutex::default(),
            changed: watch::Sender::new(0),
        }
    }

    /// Whether anybody is asked who they are.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Whether a person can sign in with a password.
    #[must_use]
    pub fn takes_passwords(&self) -> bool {
        self.enabled && self.is_password_required && self.passwords.is_set()
    }

    /// Makes sure that what is known is not older than a second.
    ///
    /// # Errors
    /// The database cannot be read: then nobody can be let in.
    pub async fn refresh(&self) -> Result<(), AppError> {
        if !self.enabled {
            self.know_epoch().await;
            return Ok(());
        }
        if self.is_fresh() {
            return Ok(());
        }
        let mut reader = self.reader.lock().await;
        if self.is_fresh() {
            return Ok(());
        }
        self.look(&mut reader).await
    }

    /// Looks at the database although it was looked at just now.
    /// Somebody says that it changed. Whether it could be read; requests are refused until it can.
    pub(crate) async fn look_again(&self) -> bool {
        if !self.enabled {
            return true;
        }
        let mut reader = self.reader.lock().await;
        match self.look(&mut reader).await {
            Ok(()) => true,
            Err(error) => {
                tracing::debug!(error = %error, "the credentials could not be read again");
                false
            }
        }
    }

    async fn look(&self, reader: &mut Reader) -> Result<(), AppError> {
        let began = Instant::now();
        // Until this has succeeded nobody is let in by what was known before.
        *lock(&self.checked) = None;
        match &mut reader.watch {
            Some(watch) => {
                if watch.changed().await.map_err(unreadable)? {
                    reader.is_current = false;
                }
            }
            None => {
                reader.is_current = false;
                reader.watch = Some(self.store.watch().await.map_err(unreadable)?);
            }
        }
        if !reader.is_current {
            self.load().await?;
            reader.is_current = true;
        }
        *lock(&self.checked) = Some(began);
        Ok(())
    }

    fn is_fresh(&self) -> bool {
        lock(&self.checked).is_some_and(|at| at.elapsed() < FRESH)
    }

    /// Where nobody is asked only elevations need the epoch.
    async fn know_epoch(&self) {
        if self.known.load().epoch.is_some() {
            return;
        }
        let _reader = self.reader.lock().await;
        let epoch = self.epoch().await;
        self.replace(Known { epoch: Some(epoch), ..Known::default() });
    }

    async fn epoch(&self) -> u64 {
        match self.known.load().epoch {
            Some(epoch) => epoch,
            None => known::read_epoch(self.epoch_file(), self.clock.now()).await,
        }
    }

    /// Only for who holds the reader.
    async fn load(&self) -> Result<(), AppError> {
        let tokens = self.store.tokens().await.map_err(unreadable)?;
        let sign_ins = self.store.sign_ins().await.map_err(unreadable)?;
        let epoch = self.epoch().await;
        self.replace(Known { epoch: Some(epoch), tokens, sign_ins });
        Ok(())
    }

    fn replace(&self, known: Known) {
        let is_new = !self.known.load().has_same_holders(&known);
        self.known.store(Arc::new(known));
        if is_new {
            self.changed.send_modify(|count| *count += 1);
        }
    }

    fn epoch_file(&self) -> PathBuf {
        self.state_dir.join("session.epoch")
    }

    /// Whether a credential still opens anything.
    #[must_use]
    pub fn holds(&self, identity: &Identity) -> bool {
        let known = self.known.load();
        let now = self.clock.now();
        match &identity.validity {
            Validity::Fixed => true,
            Validity::Session { hash, epoch, expires } => {
                known.epoch == Some(*epoch) && *expires > now && known.sign_in(hash).is_some()
            }
            Validity::Token { hash, expires } => {
                expires.is_none_or(|expires| expires > now) && known.token(hash).is_some()
            }
        }
    }

    /// Waits until a credential opens nothing any more. Safe to drop and ask again.
    pub async fn ended(&self, identity: &Identity) {
        let mut changed = self.changed.subscribe();
        let expires = match &identity.validity {
            Validity::Fixed => return std::future::pending().await,
            Validity::Session { expires, .. } => Some(*expires),
            Validity::Token { expires, .. } => *expires,
        };
        // Timers stand still while the machine sleeps, and know nothing of a clock that is set.
        let mut stepped = expires.map(|_| self.steps.watch());
        loop {
            if !self.holds(identity) {
                return;
            }
            let left = expires.map_or(LOOK_AGAIN, |expires| {
                expires.since(self.clock.now()).clamp(Duration::from_millis(1), LOOK_AGAIN)
            });
            tokio::select! {
                _ = changed.changed() => {}
                () = steps::stepped(stepped.as_mut()) => {}
                () = tokio::time::sleep(left) => {}
            }
        }
    }

    /// Notes, now and then, that a credential was used, and from where.
    ///
    /// The first use from another address than before is told of once, in the log and on the page.
    pub fn used(self: &Arc<Self>, identity: &Identity, source: IpAddr) {
        let (hash, is_token) = match &identity.validity {
            Validity::Fixed => return,
            Validity::Session { hash, .. } => (hash.clone(), false),
            Validity::Token { hash, .. } => (hash.clone(), true),
        };
        let (now, key) = (Instant::now(), (hash, source));
        {
            let mut noted = lock(&self.noted);
            if noted.get(&key).is_some_and(|at| now.duration_since(*at) < NOTED_EVERY) {
                return;
            }
            noted.retain(|_, at| now.duration_since(*at) < NOTED_EVERY);
            if noted.len() >= MOST_NOTED {
                return;
            }
            noted.insert(key.clone(), now);
        }
        // Not `token:LABEL`, which the log masks.
        let who = match &identity.channel {
            Channel::Token(label) => format!("the token `{label}`"),
            other => format!("a credential ({})", other.method()),
        };
        let this = Arc::clone(self);
        let hash = key.0;
        tokio::spawn(async move {
            let at = this.clock.now();
            let written = match is_token {
                true => this.store.token_used(&hash, at).await,
                false => this.store.sign_in_seen(&hash, at).await,
            };
            let address = peer::shown(source);
            match written.and(this.store.used_from(&hash, &address, at).await) {
                Ok(Use::NewAddress) => tracing::warn!(
                    "{who} was used from {address}, where it had not been used before; if \
                     that was not you, revoke it on the page `Devices and tokens`"
                ),
                Ok(Use::Known | Use::First) => {}
                Err(error) => {
                    tracing::debug!(error = %error, "the use of a credential was not noted");
                }
            }
        });
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unreadable(error: svc_store::StoreError) -> AppError {
    AppError::busy("the credentials cannot be read right now; try again").because(error)
}

/// SHA-256 as it is stored: 64 lower-case hex digits.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Whether two texts are the same, in the same time wherever they differ.
pub(crate) fn same_text(one: &[u8], other: &[u8]) -> bool {
    known::is_same(&sha256_hex(one), &sha256_hex(other))
}
