//! Types into a terminal.
//!
//! The audit log names it before the first character; one text follows the other.

use crate::AppError;
use crate::bridges::controller::NotTyped;
use crate::bridges::keepers::{Keepers, Terminal};
use crate::ops::audit::{self, Actor, Audit, Change, Scope, Surface};
use crate::registry::Registry;
use crate::tasks::Tasks;
use std::sync::Arc;
use svc_shared::ids::InstanceId;
use svc_shared::terminal::{TerminalFrame, TypedFrame};
use tokio::sync::mpsc;

/// Texts of one viewer that wait. A further one is refused.
const TEXTS: usize = 16;

/// What one viewer types with. Its task ends with it.
pub(super) struct Keyboard(mpsc::Sender<Text>);

struct Text {
    text: String,
    id: u64,
    reply: mpsc::Sender<TerminalFrame>,
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
    pub fn send(&self, text: String, id: u64, reply: mpsc::Sender<TerminalFrame>) -> bool {
        self.0.try_send(Text { text, id, reply }).is_ok()
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
        while let Some(Text { text, id, reply }) = texts.recv().await {
            let refused = self.type_in(&text).await.err();
            let frame = TypedFrame { typed: id, refused: refused.map(|error| error.message) };
            let _ = reply.try_send(TerminalFrame::Typed(frame)); // it reads no answers: fine
        }
    }

    async fn type_in(&mut self, text: &str) -> Result<(), AppError> {
        let ended = || AppError::busy("this session has ended; resume it to type again");
        let bridge = self.registry.copies.bridge(&self.id).filter(|row| row.is_live());
        let bridge = bridge.ok_or_else(ended)?;
        let Terminal::Kept(_) = self.keepers.terminal_of(&bridge).await else {
            return Err(ended());
        };
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
        let controller = self.keepers.controller(&self.id).ok_or_else(super::silent)?;
        controller.type_in(text).await.map_err(|error| match error {
            NotTyped::Readonly => AppError::busy(
                "this session was started while `claude.terminal_input` was off; stop and resume \
                 it to type",
            ),
            NotTyped::Silent | NotTyped::Lost(_) => super::silent().because(error),
        })
    }
}
