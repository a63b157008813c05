//! Use-case: a person signs the agent in from the page (`http-api` §3.6).
//!
//! The agent does it itself: its own command runs on a terminal of this process, its address is
//! passed on, and the code that a person brings is typed. One at a time. It ends with this process,
//! and fifteen minutes after somebody last did something about it. A token is given out once, and
//! is neither kept nor logged.

mod flow;

use crate::agent::Agent;
use crate::ops::audit::{Audit, Change, Scope, Surface};
use crate::read_model::ReadModel;
use crate::tasks::Tasks;
use crate::{AppError, Class};
use flow::{End, Flow};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use svc_config::Config;
use svc_keeper::held::{Form, Held, Order};
use svc_ports::Clock;
use svc_shared::error::ErrorCode;
use svc_shared::internal::agent_sign_in::{
    SignInCancelled, SignInMode, SignInRecord, SignInResult, SignInStage, SignInStarted,
    SignInState,
};
use svc_shared::stream::Record;
use tokio::time::Instant;

/// How long the agent may take to show its address (`http-api` §3.6).
const ADDRESS: Duration = Duration::from_secs(30);
/// How long an answer waits for the outcome of a code.
const OUTCOME: Duration = Duration::from_secs(45);
/// A sign-in that nobody has touched for so long is ended.
const IDLE: Duration = Duration::from_secs(900);
/// Longest code that is typed.
const LONGEST_CODE: usize = 4096;

/// Kind and id of the record in the stream.
const KIND: &str = "shepherd";

/// Signs the agent in.
pub struct AgentSignIn {
    config: Arc<Config>,
    agent: Arc<Agent>,
    audit: Arc<Audit>,
    read_model: Arc<ReadModel>,
    clock: Arc<dyn Clock>,
    tasks: Tasks,
    limits: Limits,
    /// The one that is under way, or whose end nobody has asked for.
    flow: Mutex<Option<Arc<Flow>>>,
}

#[derive(Debug, Clone, Copy)]
struct Limits {
    address: Duration,
    outcome: Duration,
    idle: Duration,
}

impl Limits {
    /// The usual ones; a test has no quarter of an hour.
    fn of_this_build() -> Self {
        let set = |name: &str, usual| crate::failpoint::time(name).unwrap_or(usual);
        Self {
            address: set("sign-in.address", ADDRESS),
            outcome: set("sign-in.outcome", OUTCOME),
            idle: set("sign-in.idle", IDLE),
        }
    }
}

impl AgentSignIn {
    pub(crate) fn new(
        config: &Arc<Config>,
        agent: &Arc<Agent>,
        audit: &Arc<Audit>,
        read_model: &Arc<ReadModel>,
        clock: &Arc<dyn Clock>,
        tasks: &Tasks,
    ) -> Self {
        Self {
            config: Arc::clone(config),
            agent: Arc::clone(agent),
            audit: Arc::clone(audit),
            read_model: Arc::clone(read_model),
            clock: Arc::clone(clock),
            tasks: tasks.clone(),
            limits: Limits::of_this_build(),
            flow: Mutex::default(),
        }
    }

    /// Whether this kind of sign-in is open here.
    #[must_use]
    pub fn allows(&self, mode: SignInMode) -> bool {
        let section = &self.config.login_shepherd;
        section.enabled && (mode == SignInMode::Login || section.allow_setup_token)
    }

    /// What the sign-in that is under way is to end with.
    #[must_use]
    pub fn mode(&self) -> Option<SignInMode> {
        self.slot().as_ref().map(|flow| flow.mode)
    }

    /// Begins a sign-in, and waits until the agent has shown its address.
    ///
    /// # Errors
    /// One is under way, the agent cannot be run, or it shows no address in time.
    pub async fn start(self: &Arc<Self>, mode: SignInMode) -> Result<SignInStarted, AppError> {
        let this = Arc::clone(self);
        self.tasks.complete(async move { this.start_now(mode).await }).await
    }

    async fn start_now(self: Arc<Self>, mode: SignInMode) -> Result<SignInStarted, AppError> {
        let (flow, codes) = Flow::new(mode, Instant::now());
        let flow = Arc::new(flow);
        {
            let mut slot = self.slot();
            if slot.as_ref().is_some_and(|flow| !flow.may_give_way()) {
                return Err(conflict(
                    "the agent is being signed in already; go on with that, or cancel it first",
                ));
            }
            if let Some(before) = slot.replace(Arc::clone(&flow)) {
                before.cancel.cancel();
            }
        }
        let begun = self.audit.record(change(mode, "start"), self.run(mode)).await;
        let held = match begun {
            Ok(held) => held,
            Err(error) => {
                self.forget(&flow);
                return Err(error);
            }
        };
        self.show(&flow);
        let this = Arc::clone(&self);
        let followed = Arc::clone(&flow);
        self.tasks.spawn(async move { Box::pin(this.follow(followed, held, codes)).await });
        tracing::info!(mode = mode.as_str(), "began to sign the agent in");
        let mut progress = flow.progress.subscribe();
        let shown = progress.wait_for(|now| now.url.is_some() || now.end.is_some());
        let shown = tokio::time::timeout(self.limits.address, shown).await;
        if let Ok(Ok(now)) = &shown
            && now.end.is_none()
            && let Some(url) = &now.url
        {
            return Ok(SignInStarted { authorize_url: url.clone(), output: now.output.clone() });
        }
        let why = match &shown {
            Ok(Ok(now)) => match &now.end {
                Some(End::Failed(why)) => why.clone(),
                _ => "the agent ended without an address to visit; try again".to_owned(),
            },
            _ => format!(
                "the agent showed no address of claude.ai or claude.com within {} s; try again, or \
                 run `claude auth login` in a terminal on this machine",
                self.limits.address.as_secs()
            ),
        };
        drop(shown);
        flow.cancel.cancel();
        self.forget(&flow);
        Err(AppError::new(ErrorCode::AgentFailed, Class::Invalid, why))
    }

    /// Starts the agent's own command.
    async fn run(&self, mode: SignInMode) -> Result<Held, AppError> {
        let program = self.agent.program_now().await?;
        let setup = self.agent.cli().setup();
        let env: Vec<_> = self.agent.environment().into_iter().collect();
        let (args, form): (&[&str], Form) = match mode {
            SignInMode::Login => (&["auth", "login", "--claudeai"], Form::Pipes),
            SignInMode::SetupToken => (&["setup-token"], Form::Terminal),
        };
        let order = Order { program: &program, args, env: &env, cwd: &setup.cwd, form };
        Held::start(order).map_err(|cause| {
            let message = "the agent could not be started to sign in; check claude.binary, and \
                           whether the machine is out of processes or terminals";
            AppError::new(ErrorCode::AgentFailed, Class::Unavailable, message).because(cause)
        })
    }

    /// Types the code that a person brings, and waits for what comes of it.
    ///
    /// # Errors
    /// Nothing waits for a code, it cannot be typed, or another one is being checked.
    pub async fn code(&self, code: &str) -> Result<SignInResult, AppError> {
        let flow = self.current()?;
        let code = code.trim();
        if code.is_empty() {
            return Err(AppError::invalid("`code` is empty; paste what the page has shown"));
        }
        if code.len() > LONGEST_CODE || !code.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(AppError::invalid(
                "`code` holds blanks or other characters that no code has; copy it again",
            ));
        }
        flow.touch(Instant::now());
        if flow.progress.borrow().end.is_some() {
            return Ok(self.outcome(&flow));
        }
        let typed = async {
            flow.type_code(code).await.map_err(|stage| match stage {
                SignInStage::Starting => conflict(
                    "the agent has not shown its address yet; wait for it, then send the code",
                ),
                _ => conflict("a code is being checked already; wait for what comes of it"),
            })
        };
        self.audit.record(change(flow.mode, "code"), typed).await?;
        self.show(&flow);
        let mut progress = flow.progress.subscribe();
        let known = progress.wait_for(|now| !now.is_checking || now.end.is_some());
        let _ = tokio::time::timeout(self.limits.outcome, known).await; // pending is an answer too
        Ok(self.outcome(&flow))
    }

    /// How the sign-in went. One that is over is forgotten with this answer.
    ///
    /// # Errors
    /// There is none.
    pub fn status(&self) -> Result<SignInResult, AppError> {
        let flow = self.current()?;
        flow.touch(Instant::now());
        self.show(&flow);
        Ok(self.outcome(&flow))
    }

    /// The sign-in that is under way. Changes nothing.
    #[must_use]
    pub fn state(&self) -> SignInState {
        let Some(flow) = self.slot().clone() else { return SignInState::default() };
        let now = flow.progress.borrow();
        SignInState {
            active: true,
            mode: Some(flow.mode.into()),
            stage: Some(now.stage().into()),
            authorize_url: now.url.clone(),
            pending: Some(now.is_checking),
            idle_seconds: Some(flow.touched().elapsed().as_secs()),
            idle_ttl_seconds: Some(self.limits.idle.as_secs()),
        }
    }

    /// Ends the sign-in that is under way, if any.
    pub fn cancel(&self) -> SignInCancelled {
        let flow = self.slot().clone();
        if let Some(flow) = flow {
            flow.cancel.cancel();
            self.forget(&flow);
            tracing::info!("the sign-in of the agent was cancelled");
        }
        SignInCancelled { ok: true }
    }

    /// What can be said of a sign-in; one that is over is forgotten.
    fn outcome(&self, flow: &Arc<Flow>) -> SignInResult {
        let answer = |ok, message: String| SignInResult {
            ok,
            message,
            pending: false,
            active: false,
            token: None,
        };
        let (end, stage, refused) = flow.take_end();
        let Some(end) = end else {
            return match (stage, refused) {
                (SignInStage::Checking, _) => SignInResult {
                    pending: true,
                    active: true,
                    ..answer(false, "the agent is still checking the code".to_owned())
                },
                (_, Some(why)) => SignInResult { active: true, ..answer(false, why) },
                _ => SignInResult {
                    pending: true,
                    active: true,
                    ..answer(false, "the agent waits for a code".to_owned())
                },
            };
        };
        flow.cancel.cancel();
        self.forget(flow);
        match end {
            End::SignedIn => answer(true, "the agent is signed in on this machine".to_owned()),
            End::Token(token) => SignInResult {
                token: Some(token.expose().to_owned()),
                ..answer(
                    true,
                    "store the token now; it is shown once, and the agent does not keep it"
                        .to_owned(),
                )
            },
            End::Failed(why) => answer(false, why),
        }
    }

    fn current(&self) -> Result<Arc<Flow>, AppError> {
        self.slot().clone().ok_or_else(|| {
            conflict("no sign-in of the agent is under way; it may have been ended; start anew")
        })
    }

    /// Takes the sign-in away, unless another one has its place.
    fn forget(&self, flow: &Arc<Flow>) {
        let mut slot = self.slot();
        if slot.as_ref().is_some_and(|now| Arc::ptr_eq(now, flow)) {
            *slot = None;
            self.read_model.remove(KIND, KIND);
        }
    }

    /// Tells readers of the stream where it stands.
    fn show(&self, flow: &Arc<Flow>) {
        // Under the lock: whoever read where it stands before has shown it before.
        let slot = self.slot();
        let left = self.limits.idle.saturating_sub(flow.touched().elapsed());
        let left = i64::try_from(left.as_millis()).unwrap_or(i64::MAX);
        let ends_at = self.clock.now().as_millis().saturating_add(left);
        let record = SignInRecord {
            mode: flow.mode.into(),
            stage: flow.progress.borrow().stage().into(),
            ends_at: svc_shared::Timestamp::from_millis(ends_at),
        };
        if slot.as_ref().is_some_and(|now| Arc::ptr_eq(now, flow)) {
            self.read_model.put(vec![(KIND.to_owned(), Record::Shepherd(record))]);
        }
    }

    fn slot(&self) -> MutexGuard<'_, Option<Arc<Flow>>> {
        self.flow.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn change(mode: SignInMode, action: &'static str) -> Change {
    Change {
        surface: Surface::AgentSignIn,
        scope: Scope::User,
        target: mode.as_str().to_owned(),
        action,
        keys: Vec::new(),
    }
}

fn conflict(message: &str) -> AppError {
    AppError::new(ErrorCode::InvalidValue, Class::Conflict, message)
}
