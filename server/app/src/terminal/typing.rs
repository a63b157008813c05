//! Types into a terminal.
//!
//! The audit log names it before the first character; one text follows the other.

use super::picture::NO_RECORD;
use crate::AppError;
use crate::bridges::controller::NotTyped;
use crate::bridges::keepers::{Keepers, Terminal};
use crate::ops::audit::{self, Actor, Audit, Change, Scope, Surface};
use crate::registry::Registry;
use crate::tasks::Tasks;
use std::sync::Arc;
use svc_domain::bridge::Bridge;
use svc_shared::ids::InstanceId;
use svc_shared::terminal::{TerminalFrame, TypedFrame};
use tokio::sync::mpsc;

/// Texts of one viewer that wait. A further one is refused.
const TEXTS: usize = 16;

/// What one viewer types with. Its task ends with it.
pub(super) struct Keyboard(mpsc::Sender<Text>);

/// What is typed at once.
pub(super) struct Text {
    pub text: String,
    pub id: u64,
    /// Whether Enter follows.
    pub enter: bool,
    pub reply: mpsc::Sender<TerminalFrame>,
}

impl Keyboard {
    /// A keyboard in the name of whoever the work in progress is done for.
    pub fn new(
        id: InstanceId,
        keepers: Arc<Keepers>,
        registry: Arc<Registry>,
        audit: Arc<Audit>,
        tasks: &Tasks,
    ) -> Self {
        let (sender, texts) = mpsc::channel(TEXTS);
        let actor = audit::current().unwrap_or(Actor::Admin);
        let typist = Typist { id, keepers, registry, audit, actor, announced: None };
        tasks.spawn(typist.run(texts));
        Self(sender)
    }

    /// Hands a text over; false when too many wait.
    pub fn send(&self, text: Text) -> bool {
        self.0.try_send(text).is_ok()
    }
}

struct Typist {
    id: InstanceId,
    keepers: Arc<Keepers>,
    registry: Arc<Registry>,
    audit: Arc<Audit>,
    actor: Actor,
    /// The generation that the audit log already names.
    announced: Option<u32>,
}

impl Typist {
    async fn run(mut self, mut texts: mpsc::Receiver<Text>) {
        while let Some(Text { text, id, enter, reply }) = texts.recv().await {
            let (refused, stands) = match self.type_in(&text, enter).await {
                Ok(()) => (None, false),
                Err(NotWhole { error, stands }) => (Some(error.message), stands),
            };
            let frame = TypedFrame { typed: id, refused, stands };
            let _ = reply.try_send(TerminalFrame::Typed(frame)); // it reads no answers: fine
        }
    }

    /// Types a text, and then Enter where that is wanted.
    async fn type_in(&mut self, text: &str, enter: bool) -> Result<(), NotWhole> {
        let bridge = self.announced().await?;
        if !enter {
            return Ok(self.keepers.type_in(&bridge, text).await.map_err(refusal)?);
        }
        self.keepers.type_line(&bridge, text).await.map_err(|(error, stands)| match stands {
            true => NotWhole {
                error: AppError::busy(
                    "the text stands in the terminal, but Enter was not taken; press Send again",
                )
                .because(error),
                stands,
            },
            false => refusal(error).into(),
        })
    }

    /// The session to type into, once the audit log names who types.
    async fn announced(&mut self) -> Result<Bridge, AppError> {
        let ended = || AppError::busy("this session has ended; resume it to type again");
        let bridge = self.registry.copies.bridge(&self.id).filter(|row| row.is_live());
        let bridge = bridge.ok_or_else(ended)?;
        match self.keepers.terminal_of(&bridge).await {
            Terminal::Kept(_) => {}
            Terminal::Ended(_) => {
                return Err(AppError::busy(
                    "the terminal of this session has ended; if the session goes on, stop and \
                     resume it to type again",
                ));
            }
            Terminal::Unknown => return Err(AppError::busy(NO_RECORD)),
        }
        // H92: one entry for each viewer and generation, never what is typed.
        if self.announced != Some(bridge.generation) {
            let change = Change {
                surface: Surface::Terminal,
                scope: Scope::Project,
                target: self.id.to_string(),
                action: "type",
                keys: Vec::new(),
            };
            let work = async { Ok(()) };
            audit::acting_as(self.actor.clone(), self.audit.record(change, work)).await?;
            self.announced = Some(bridge.generation);
        }
        Ok(bridge)
    }
}

/// Why not all was typed.
struct NotWhole {
    error: AppError,
    /// The text was, and Enter was not.
    stands: bool,
}

impl From<AppError> for NotWhole {
    fn from(error: AppError) -> Self {
        Self { error, stands: false }
    }
}

fn refusal(error: NotTyped) -> AppError {
    match error {
        NotTyped::Readonly => AppError::busy(
            "this session was started while `claude.terminal_input` was off; stop and resume it to \
             type",
        ),
        NotTyped::Silent | NotTyped::Displaced | NotTyped::Lost(_) => {
            super::silent().because(error)
        }
    }
}
