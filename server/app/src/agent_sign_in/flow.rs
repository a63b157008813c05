//! One sign-in: follows the agent's command from its start to its end.

use super::AgentSignIn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use svc_config::Secret;
use svc_domain::redact::redact_text;
use svc_domain::sign_in;
use svc_keeper::held::{Change, Held};
use svc_shared::internal::agent_sign_in::{SignInMode, SignInStage};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// Most that is shown of what the agent said, bytes.
const SHOWN: usize = 4096;
/// How long the agent may take to end after it has shown its token.
const LEAVING: Duration = Duration::from_secs(2);

/// How it ended.
#[derive(Debug, Clone)]
pub(super) enum End {
    SignedIn,
    Token(Secret),
    Failed(String),
}

/// What is known of it.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub url: Option<String>,
    /// Redacted.
    pub output: String,
    /// A code was typed, and nothing has come of it yet.
    pub is_checking: bool,
    /// Why the last code was refused.
    pub refused: Option<String>,
    pub end: Option<End>,
}

impl Progress {
    pub fn stage(&self) -> SignInStage {
        match (&self.end, self.is_checking, &self.url) {
            (Some(_), _, _) => SignInStage::Over,
            (None, true, _) => SignInStage::Checking,
            (None, false, Some(_)) => SignInStage::Waiting,
            (None, false, None) => SignInStage::Starting,
        }
    }
}

/// A sign-in under way.
pub(super) struct Flow {
    pub mode: SignInMode,
    pub cancel: CancellationToken,
    pub progress: watch::Sender<Progress>,
    codes: mpsc::Sender<Secret>,
    touched: Mutex<Instant>,
}

impl Flow {
    pub fn new(mode: SignInMode, now: Instant) -> (Self, mpsc::Receiver<Secret>) {
        let (codes, receiver) = mpsc::channel(1);
        let flow = Self {
            mode,
            cancel: CancellationToken::new(),
            progress: watch::Sender::default(),
            codes,
            touched: Mutex::new(now),
        };
        (flow, receiver)
    }

    /// Whether another one may begin: nothing is lost with it.
    pub fn may_give_way(&self) -> bool {
        matches!(self.progress.borrow().end, Some(End::SignedIn | End::Failed(_)))
    }

    pub fn touched(&self) -> Instant {
        *self.touch_lock()
    }

    pub fn touch(&self, now: Instant) {
        *self.touch_lock() = now;
    }

    fn touch_lock(&self) -> MutexGuard<'_, Instant> {
        self.touched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a code to the agent's command, if one is awaited.
    pub async fn type_code(&self, code: &str) -> Result<(), SignInStage> {
        let mut stage = SignInStage::Waiting;
        let taken = self.progress.send_if_modified(|now| {
            stage = now.stage();
            let is_awaited = stage == SignInStage::Waiting;
            if is_awaited {
                now.is_checking = true;
                now.refused = None;
            }
            is_awaited
        });
        if !taken {
            return Err(stage);
        }
        // The other end goes with the sign-in, whose end is known then.
        let _ = self.codes.send(Secret::new(code.to_owned())).await;
        Ok(())
    }

    /// Its end, which is given out once.
    ///
    /// Without one: where it stands, and why the last code was refused.
    pub fn take_end(&self) -> (Option<End>, SignInStage, Option<String>) {
        let (mut end, mut stage, mut refused) = (None, SignInStage::Over, None);
        self.progress.send_if_modified(|now| {
            stage = now.stage();
            refused.clone_from(&now.refused);
            end = now.end.take();
            if end.is_some() {
                let gone = "the outcome of this sign-in was told already; start anew";
                now.end = Some(End::Failed(gone.to_owned()));
            }
            false
        });
        (end, stage, refused)
    }

    /// Returns when nobody has touched it for this long.
    async fn idle(&self, limit: Duration) {
        loop {
            let end = self.touched() + limit;
            if end <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(end).await;
        }
    }
}

impl AgentSignIn {
    /// Follows the command until its end was told, or nobody wants it any more.
    pub(super) async fn follow(
        self: Arc<Self>,
        flow: Arc<Flow>,
        held: Held,
        codes: mpsc::Receiver<Secret>,
    ) {
        let shutdown = self.tasks.shutdown().clone();
        let idle = flow.idle(self.limits.idle);
        let to_the_end = async {
            let end = self.attend(&flow, held, codes).await;
            if let End::Failed(why) = &end {
                tracing::warn!(error = why, "the agent was not signed in");
            } else {
                tracing::info!("signing the agent in has succeeded");
            }
            flow.progress.send_modify(|now| {
                now.is_checking = false;
                now.end = Some(end);
            });
            self.show(&flow);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = to_the_end => {}
            () = idle => {
                tracing::info!("a sign-in of the agent was ended, because nobody went on with it");
            }
            () = flow.cancel.cancelled() => {}
            () = shutdown.cancelled() => {}
        }
        // Whoever still waits for it hears of the end at once.
        flow.progress.send_modify(|now| {
            now.is_checking = false;
            if now.end.is_none() {
                let ended = "the sign-in was ended before it was finished; start anew";
                now.end = Some(End::Failed(ended.to_owned()));
            }
        });
        self.forget(&flow);
    }

    async fn attend(
        &self,
        flow: &Arc<Flow>,
        mut held: Held,
        mut codes: mpsc::Receiver<Secret>,
    ) -> End {
        let mut typed: Vec<Secret> = Vec::new();
        // Refusals on the screen that belong to an earlier code.
        let mut old = 0;
        loop {
            let change = tokio::select! {
                change = held.changed() => change,
                Some(code) = codes.recv() => {
                    old = refusals(flow.mode, &held.lines());
                    // A command that is over says so next.
                    let _ = held.enter(code.expose()).await;
                    typed.push(code);
                    continue;
                }
            };
            let lines = held.lines();
            if let Change::Ended(code) = change {
                return self.ended(flow.mode, code, &lines, held.columns(), &typed).await;
            }
            let _ = held.reply().await; // a closed terminal is the end, which comes next
            if flow.mode == SignInMode::SetupToken
                && let Some(token) = sign_in::token(&lines, held.columns())
            {
                let _ = timeout(LEAVING, leave(&mut held)).await;
                return End::Token(Secret::new(token));
            }
            let now = refusals(flow.mode, &lines);
            let is_refused = now > old;
            old = old.min(now);
            let url = sign_in::authorize_url(&lines, held.columns());
            let output = shown(&lines, &typed);
            let is_refused = is_refused && flow.progress.borrow().is_checking;
            if is_refused && flow.mode == SignInMode::SetupToken {
                // Its screen asks for another key then, which differs between releases.
                return End::Failed(refused(&lines, &typed));
            }
            if url.is_some() && flow.progress.borrow().url.is_none() {
                // A person's turn begins.
                flow.touch(Instant::now());
            }
            let has_moved = flow.progress.send_if_modified(|progress| {
                let before = (progress.stage(), progress.output.len());
                progress.url = progress.url.take().or(url);
                progress.output = output;
                if is_refused {
                    progress.is_checking = false;
                    progress.refused = Some(refused(&lines, &typed));
                }
                before != (progress.stage(), progress.output.len())
            });
            if has_moved {
                self.show(flow);
            }
        }
    }

    async fn ended(
        &self,
        mode: SignInMode,
        code: Option<i32>,
        lines: &[String],
        columns: Option<usize>,
        typed: &[Secret],
    ) -> End {
        // A last line has nothing after it.
        let closed: Vec<String> = lines.iter().cloned().chain(["the end".to_owned()]).collect();
        match (mode, code) {
            (SignInMode::SetupToken, Some(0)) => match sign_in::token(&closed, columns) {
                Some(token) => End::Token(Secret::new(token)),
                None => End::Failed(
                    "the agent ended without a token; run `claude setup-token` in a terminal on \
                     this machine"
                        .to_owned(),
                ),
            },
            // Asked at once, so that every reader learns of it.
            (SignInMode::Login, Some(0)) => match self.agent.cli().login_now().await.is_ok() {
                true => End::SignedIn,
                false => End::Failed(
                    "the agent ended its sign-in and is still not signed in; run `claude auth \
                     login` in a terminal on this machine"
                        .to_owned(),
                ),
            },
            (_, None) => End::Failed(
                "the agent was ended by a signal before it was signed in; start anew".to_owned(),
            ),
            (_, Some(_)) => End::Failed(refused(lines, typed)),
        }
    }
}

/// Counts the refusals after which the sign-in does not wait for its end.
fn refusals(mode: SignInMode, lines: &[String]) -> usize {
    match mode {
        SignInMode::Login => sign_in::repeats(lines),
        SignInMode::SetupToken => sign_in::refusals(lines),
    }
}

/// Waits until the program is over.
async fn leave(held: &mut Held) {
    while !matches!(held.changed().await, Change::Ended(_)) {}
}

/// What the agent said, without what must not be shown.
fn shown(lines: &[String], typed: &[Secret]) -> String {
    let mut text = String::new();
    for line in lines.iter().map(|line| line.trim_end()) {
        text.push_str(line);
        text.push('\n');
    }
    let text = hidden(text.trim_end(), typed);
    let cut = (0..=SHOWN.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.get(..cut.unwrap_or(0)).unwrap_or_default().to_owned()
}

fn hidden(text: &str, typed: &[Secret]) -> String {
    let mut text = text.to_owned();
    for code in typed {
        text = text.replace(code.expose(), svc_domain::redact::MASK);
    }
    redact_text(&text)
}

fn refused(lines: &[String], typed: &[Secret]) -> String {
    let said = hidden(sign_in::last_words(lines), typed);
    match said.trim().trim_end_matches('.') {
        "" => "the agent ended without signing in, and said nothing; start anew".to_owned(),
        said => format!("the agent has refused: {said}; copy the code again, or start anew"),
    }
}
