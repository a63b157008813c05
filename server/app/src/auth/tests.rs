//! What is known of credentials, against a real registry.
//! How it becomes known, and how it ends.

use crate::auth::password::tests::cheap;
use crate::auth::sign_in::SignInError;
use crate::auth::ticket::{Keys, Purpose, Ticket};
use crate::auth::{Auth, Caller, Claim, sha256_hex};
use futures_util::FutureExt as _;
use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::Poll;
use std::time::Duration;
use svc_ports::Clock;
use svc_shared::Timestamp;
use svc_store::{Access, SignInRow, Store, TokenRow};

/// Generous: only a test that fails waits this long.
const PATIENCE: Duration = Duration::from_secs(60);
const ID: [u8; 16] = [3; 16];
const PASSWORD: &str = "correct horse";

struct Settable(AtomicI64);

impl Clock for Settable {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

struct House {
    auth: Arc<Auth>,
    store: Store,
    clock: Arc<Settable>,
    keys: Keys,
    _tree: tempfile::TempDir,
}

impl House {
    async fn with(enabled: bool, has_keys: bool) -> Self {
        let tree = tempfile::tempdir().unwrap();
        let (projects, state) = (tree.path().join("projects"), tree.path().join("state"));
        std::fs::create_dir(&projects).unwrap();
        std::fs::create_dir(&state).unwrap();
        let text = format!(
            "projects_root: {}\nstate_dir: {}\nauth:\n  enabled: {enabled}\n",
            projects.display(),
            state.display(),
        );
        let mut values = (**svc_config::load_text(&text, tree.path()).unwrap().config).clone();
        // No configuration may have a hash as cheap as the tests want it.
        values.auth.password_hash = Some(svc_config::Secret::new(cheap(PASSWORD)));
        let config = Arc::new(svc_config::Config::new(values));
        let store = Store::open(&state, Access::ReadWrite { snapshot: false }).await.unwrap();
        let clock = Arc::new(Settable(AtomicI64::new(1_700_000_000_000)));
        let keys = Keys::from_secret(&[9; 32]);
        let known = has_keys.then(|| keys.clone());
        let auth = Auth::new(&config, known, store.clone(), Arc::clone(&clock) as Arc<dyn Clock>);
        Self { auth: Arc::new(auth), store, clock, keys, _tree: tree }
    }

    async fn add_token(&self, secret: &str) {
        self.add_token_until(secret, None).await;
    }

    async fn add_token_until(&self, secret: &str, expires_at: Option<Timestamp>) {
        let row = TokenRow {
            label: secret.to_owned(),
            hash: sha256_hex(secret.as_bytes()),
            created_at: self.clock.now(),
            last_used_at: None,
            expires_at,
            scopes: None,
        };
        assert!(self.store.add_token(&row).await.unwrap());
    }

    /// A signed-in browser, whose row would let it stay far longer than it may.
    async fn signed_in(&self) -> Caller {
        let now = self.clock.now();
        let row = SignInRow {
            hash: sha256_hex(&ID),
            created_at: now,
            last_seen_at: now,
            expires_at: now.plus(self.auth.max_age * 1000),
            peer: "127.0.0.1".to_owned(),
            forwarded_for: None,
            user_agent: String::new(),
        };
        self.store.add_sign_in(&row).await.unwrap();
        self.auth.refresh().await.unwrap();
        let fingerprint = self.auth.fingerprint().unwrap();
        let ticket = Ticket { issued: now.as_millis(), epoch: 0, id: ID, fingerprint };
        let cookie = self.keys.seal(Purpose::Session, &ticket).unwrap();
        self.caller("cookie", &format!("{}={cookie}", self.auth.names.session))
    }

    fn caller(&self, name: &str, value: &str) -> Caller {
        let headers = HashMap::from([(name, value)]);
        self.auth.identify(&Claim {
            peer: [127, 0, 0, 1].into(),
            method: "GET",
            path: "/",
            header: &|asked| headers.get(asked).map(|value| value.as_bytes()).into_iter().collect(),
        })
    }

    fn opens(&self, secret: &str) -> bool {
        self.caller("authorization", &format!("Bearer {secret}")).identity.is_some()
    }
}

/// Drives something for so many steps and then gives it up.
/// Whether it had ended by then.
async fn given_up_after(steps: usize, work: impl Future) -> bool {
    let mut work = pin!(work);
    let mut left = steps;
    std::future::poll_fn(|context| {
        if work.as_mut().poll(context).is_ready() {
            return Poll::Ready(true);
        }
        left -= 1;
        if left == 0 { Poll::Ready(false) } else { Poll::Pending }
    })
    .await
}

#[tokio::test]
async fn h23_a_token_opens_until_the_moment_it_expires_and_not_in_it() {
    let house = House::with(true, true).await;
    let end = house.clock.now().plus(Duration::from_secs(60));
    house.add_token_until("brief", Some(end)).await;
    house.auth.refresh().await.unwrap();
    house.clock.0.store(end.as_millis() - 1, Ordering::SeqCst);
    assert!(house.opens("brief"));
    house.clock.0.store(end.as_millis(), Ordering::SeqCst);
    assert!(!house.opens("brief"));
}

#[tokio::test]
async fn h17_a_revocation_is_not_lost_when_reading_it_is_given_up_half_way() {
    let house = House::with(true, true).await;
    let mut steps = 1;
    for round in 0..1_000 {
        let secret = format!("secret-{round}");
        house.add_token(&secret).await;
        assert!(house.auth.look_again().await && house.opens(&secret));
        let now = house.clock.now();
        assert!(house.store.withdraw_token(&secret, None, now).await.unwrap());
        let has_ended = given_up_after(steps, house.auth.look_again()).await;
        house.auth.refresh().await.unwrap();
        assert!(!house.opens(&secret), "given up after {steps} steps");
        match has_ended {
            // The database answered before anybody could leave: nothing was given up.
            true if steps == 1 => {}
            true => return,
            false => steps += 1,
        }
    }
    panic!("nothing was given up in a thousand rounds");
}

#[tokio::test]
async fn h25_a_session_ends_when_the_clock_says_so_however_it_came_to_that() {
    let house = House::with(true, true).await;
    let identity = house.signed_in().await.identity.unwrap();
    assert!(house.auth.ended(&identity).now_or_never().is_none());
    let (auth, of_task) = (Arc::clone(&house.auth), identity.clone());
    let ended = tokio::spawn(async move { auth.ended(&of_task).await });
    tokio::task::yield_now().await;
    // As if the machine had slept: no timer noticed. The row alone would allow much more.
    let age = i64::try_from(house.auth.max_age.as_millis()).unwrap();
    house.clock.0.fetch_add(age, Ordering::SeqCst);
    tokio::time::timeout(PATIENCE, ended).await.expect("the session ends").unwrap();
    assert!(!house.auth.holds(&identity));
}

#[tokio::test]
async fn h17_signing_out_goes_through_although_whoever_asked_has_left() {
    let house = House::with(true, true).await;
    let identity = house.signed_in().await.identity.unwrap();
    assert!(!given_up_after(1, house.auth.sign_out()).await);
    tokio::time::timeout(PATIENCE, house.auth.ended(&identity)).await.expect("signed out");
    while !house.store.sign_ins().await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn with_auth_off_the_password_is_proved_again_all_the_same() {
    let house = House::with(false, true).await;
    house.auth.refresh().await.unwrap();
    let caller = house.caller("accept", "*/*");
    let identity = caller.identity.clone().unwrap();
    let elevated = house.auth.elevate(&caller, &identity, PASSWORD.into()).await.unwrap();
    let cookie = elevated.split(';').next().unwrap();
    let headers = HashMap::from([("cookie", cookie)]);
    let claim = Claim {
        peer: [127, 0, 0, 1].into(),
        method: "GET",
        path: "/",
        header: &|asked| headers.get(asked).map(|value| value.as_bytes()).into_iter().collect(),
    };
    assert!(house.auth.is_elevated(&identity, &claim));
}

#[tokio::test]
async fn h21_a_failure_of_ours_counts_against_nobody() {
    let house = House::with(false, false).await;
    house.auth.refresh().await.unwrap();
    let caller = house.caller("accept", "*/*");
    let identity = caller.identity.clone().unwrap();
    for attempt in 0..10 {
        let error = house.auth.elevate(&caller, &identity, PASSWORD.into()).await.unwrap_err();
        assert!(matches!(error, SignInError::Failed(_)), "{attempt}: {error:?}");
    }
}
