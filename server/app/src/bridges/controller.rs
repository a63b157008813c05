//! The controlling connection to a keeper, shared by stops and typing.
//!
//! A keeper has one controller at a time. A second connection would take the role away, and the
//! next stop through the first one would be refused.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::sync::Arc;
use std::time::Duration;
use svc_keeper::client::{Closed, Commands};
use svc_keeper::message::{ErrorCode, FromKeeper};
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;

/// A keeper writes a text within milliseconds.
const ANSWER: Duration = Duration::from_secs(5);
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
    typing: Arc<Mutex<Typing>>,
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

/// Takes the answers that concern typing out of what a keeper says.
pub(crate) struct Answers(mpsc::Sender<Answer>);

impl Controller {
    /// A controller, and where its reader hands the answers in.
    pub fn new(commands: Commands) -> (Self, Answers) {
        let (sender, answers) = mpsc::channel(ANSWERS);
        let typing = Arc::new(Mutex::new(Typing { next: 1, answers }));
        (Self { commands, typing }, Answers(sender))
    }

    /// Sends a stop; see [`Commands::stop`].
    ///
    /// # Errors
    /// The connection is closed.
    pub async fn stop(&self, grace: Duration) -> Result<(), Closed> {
        self.commands.stop(grace).await
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
                    Some(Answer::Refused(ErrorCode::Readonly)) => return Err(NotTyped::Readonly),
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
            FromKeeper::Ack { id } => Answer::Typed(*id),
            FromKeeper::Error { code, .. } => Answer::Refused(*code),
            _ => return,
        };
        let _ = self.0.try_send(answer); // nobody types: nobody waits for it
    }
}
