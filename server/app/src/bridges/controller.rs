//! The controlling connection to a keeper, shared by stops and typing.
//!
//! A keeper has one controller at a time. Another program takes the role over by connecting, such
//! as a command that starts a session beside the service. The keeper tells that only by refusing
//! the next command; then this connection is given up, and the next one takes the role back.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::sync::Arc;
use std::time::Duration;
use svc_keeper::client::{Closed, Commands};
use svc_keeper::message::{ErrorCode, FromKeeper, Phase};
use tokio::sync::{Mutex, Notify, mpsc};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// A keeper writes a text within milliseconds.
const ANSWER: Duration = Duration::from_secs(5);
/// A keeper takes a stop at once.
/// After this time the agent is signalled directly, which does no harm where both arrive.
const STOP_TAKEN: Duration = Duration::from_secs(1);
/// Between a text and the key that sends it.
///
/// A terminal takes both in one piece for something pasted.
const BEFORE_ENTER: Duration = Duration::from_millis(300);
/// Answers that may wait.
/// One text waits for its answer at a time, so more than these belong to nobody.
const ANSWERS: usize = 8;

/// Why a text was not typed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotTyped {
    /// The keeper was started without permission to type.
    #[error("the keeper accepts no input")]
    Readonly,
    /// Another program controls the keeper. Nothing was typed.
    #[error("another program controls the keeper")]
    Displaced,
    /// It did not answer in time.
    #[error("the keeper did not answer")]
    Silent,
    /// The connection is closed.
    #[error("the connection to the keeper is closed")]
    Lost(#[from] Closed),
}

/// Commands a keeper, and hears what it answers to texts.
#[derive(Debug, Clone)]
pub(crate) struct Controller {
    commands: Commands,
    input_allowed: bool,
    typing: Arc<Mutex<Typing>>,
    pongs: Arc<Notify>,
    displaced: CancellationToken,
}

#[derive(Debug)]
struct Typing {
    next: u64,
    answers: mpsc::Receiver<Answer>,
}

#[derive(Debug)]
enum Answer {
    Typed(u64),
    Refused(ErrorCode),
}

/// Takes the answers to commands out of what a keeper says.
pub(crate) struct Answers {
    typing: mpsc::Sender<Answer>,
    pongs: Arc<Notify>,
    displaced: CancellationToken,
}

impl Controller {
    /// A controller, and where its reader hands the answers in.
    ///
    /// `input_allowed` is what the keeper said when it was connected to.
    pub fn new(commands: Commands, input_allowed: bool) -> (Self, Answers) {
        let (sender, answers) = mpsc::channel(ANSWERS);
        let typing = Arc::new(Mutex::new(Typing { next: 1, answers }));
        let (pongs, displaced) = (Arc::<Notify>::default(), CancellationToken::new());
        let answers =
            Answers { typing: sender, pongs: Arc::clone(&pongs), displaced: displaced.clone() };
        (Self { commands, input_allowed, typing, pongs, displaced }, answers)
    }

    /// Sends a stop, and tells whether the keeper took it; see [`Commands::stop`].
    pub async fn stop(&self, grace: Duration) -> bool {
        // A keeper answers in order: a refusal of the stop comes before this answer.
        let pong = self.pongs.notified();
        tokio::pin!(pong);
        pong.as_mut().enable();
        if self.commands.stop(grace).await.is_err() || self.commands.ping().await.is_err() {
            return false;
        }
        tokio::select! {
            biased;
            () = self.displaced.cancelled() => false,
            () = pong => !self.displaced.is_cancelled(),
            () = tokio::time::sleep(STOP_TAKEN) => false,
        }
    }

    /// Whether both are the same connection.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.typing, &other.typing)
    }

    /// Whether another program took the control over.
    pub fn is_displaced(&self) -> bool {
        self.displaced.is_cancelled()
    }

    /// Types a text and waits until the terminal has it. One text follows the other.
    ///
    /// # Errors
    /// See [`NotTyped`].
    pub async fn type_in(&self, text: &str) -> Result<(), NotTyped> {
        self.write(&mut *self.typing.lock().await, text).await
    }

    /// Types a text and then Enter, with nothing of anybody else in between.
    ///
    /// # Errors
    /// See [`NotTyped`], with whether the text stands in the terminal.
    pub async fn type_line(&self, text: &str) -> Result<(), (NotTyped, bool)> {
        let mut typing = self.typing.lock().await;
        if !text.is_empty() {
            self.write(&mut typing, text).await.map_err(|error| (error, false))?;
            tokio::time::sleep(BEFORE_ENTER).await;
        }
        self.write(&mut typing, "\r").await.map_err(|error| (error, !text.is_empty()))
    }

    async fn write(&self, typing: &mut Typing, text: &str) -> Result<(), NotTyped> {
        if !self.input_allowed {
            return Err(NotTyped::Readonly);
        }
        if self.is_displaced() {
            return Err(NotTyped::Displaced);
        }
        let id = typing.next;
        typing.next = id.wrapping_add(1);
        // An answer that came too late for its text is not the answer to this one.
        while typing.answers.try_recv().is_ok() {}
        self.commands.input(STANDARD.encode(text), id).await?;
        let answered = async {
            loop {
                match typing.answers.recv().await {
                    Some(Answer::Typed(answered)) if answered == id => return Ok(()),
                    Some(Answer::Typed(_)) => {}
                    Some(Answer::Refused(ErrorCode::Readonly)) => return Err(NotTyped::Displaced),
                    // Given up for that reason: what was taken is answered before.
                    None if self.is_displaced() => return Err(NotTyped::Displaced),
                    Some(Answer::Refused(_)) | None => return Err(NotTyped::Silent),
                }
            }
        };
        timeout(ANSWER, answered).await.unwrap_or(Err(NotTyped::Silent))
    }
}

impl Answers {
    /// Hands in what the keeper said; what is no answer is left alone.
    pub fn hear(&self, said: &FromKeeper) {
        let answer = match said {
            FromKeeper::Pong => return self.pongs.notify_waiters(),
            // The link is told to the controller alone.
            FromKeeper::State(state) if state.phase == Phase::Ready && state.url.is_none() => {
                return self.displaced.cancel();
            }
            FromKeeper::Ack { id } => Answer::Typed(*id),
            FromKeeper::Error { code, .. } => Answer::Refused(*code),
            _ => return,
        };
        // Nothing is sent that a controller may not do.
        if matches!(answer, Answer::Refused(ErrorCode::Readonly)) {
            self.displaced.cancel();
        }
        let _ = self.typing.try_send(answer); // nobody types: nobody waits for it
    }

    /// Whether another program took the control over.
    pub fn is_displaced(&self) -> bool {
        self.displaced.is_cancelled()
    }
}
