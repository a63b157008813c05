//! One viewer of a terminal: takes what it lacks when it is ready for more.

use super::Since;
use super::hub::{Hub, Scroll};
use super::typing::{Keyboard, Text};
use std::sync::Arc;
use std::time::Duration;
use svc_shared::error::ErrorCode;
use svc_shared::status::ScreenState;
use svc_shared::stream::close;
use svc_shared::terminal::{
    ClientFrame, LONGEST_INPUT, MOST_LINES, PlainFrame, TerminalFrame, TypedFrame,
};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The whole screen is told this often, whatever else was told.
const FULL: Duration = Duration::from_secs(10);
/// Plain frames come at most four times in a second.
const PLAIN_PAUSE: Duration = Duration::from_millis(250);
/// Answers that a viewer did not read yet. Further ones are dropped: it asks again.
const REPLIES: usize = 8;

/// How frames are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalForm {
    /// The whole screen as text.
    Plain,
    /// Rows that changed, with colours.
    Diff,
}

/// What a viewer is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalItem {
    /// The whole screen as text.
    Plain(PlainFrame),
    /// A frame with colours.
    Frame(TerminalFrame),
    /// Nothing more comes: the close code of a socket and the word for it.
    Closed(u16, ErrorCode),
}

/// A subscription to one terminal.
/// The last one that is dropped ends the connection.
pub struct TerminalViewer {
    hub: Arc<Hub>,
    form: TerminalForm,
    changes: watch::Receiver<u64>,
    seen: Option<Since>,
    is_pending: bool,
    wants_full: bool,
    full_due: Instant,
    earliest: Instant,
    keyboard: Option<Keyboard>,
    replies: mpsc::Receiver<TerminalFrame>,
    reply: mpsc::Sender<TerminalFrame>,
    shutdown: CancellationToken,
}

impl TerminalViewer {
    pub(super) fn new(
        hub: Arc<Hub>,
        form: TerminalForm,
        since: Option<Since>,
        keyboard: Option<Keyboard>,
        shutdown: CancellationToken,
    ) -> Self {
        let (reply, replies) = mpsc::channel(REPLIES);
        Self {
            changes: hub.shared.changes(),
            hub,
            form,
            seen: since,
            is_pending: true,
            wants_full: false,
            full_due: Instant::now() + FULL,
            earliest: Instant::now(),
            keyboard,
            replies,
            reply,
            shutdown,
        }
    }

    /// What comes next. Losing the future loses nothing.
    pub async fn next(&mut self) -> TerminalItem {
        loop {
            if let Ok(reply) = self.replies.try_recv() {
                return TerminalItem::Frame(reply);
            }
            if let Some((code, word)) = self.hub.shared.closed() {
                return TerminalItem::Closed(code, word);
            }
            let is_early = Instant::now() < self.earliest;
            if self.is_pending
                && !is_early
                && let Some(item) = self.take()
            {
                return item;
            }
            let waits_for_pace = self.is_pending && is_early;
            tokio::select! {
                () = self.shutdown.cancelled() => {
                    return TerminalItem::Closed(close::GOING_AWAY, ErrorCode::ShuttingDown);
                }
                () = tokio::time::sleep_until(self.earliest), if waits_for_pace => {}
                changed = self.changes.changed() => {
                    if changed.is_err() {
                        return TerminalItem::Closed(close::INTERNAL, ErrorCode::Internal);
                    }
                    self.is_pending = true;
                }
                () = tokio::time::sleep_until(self.full_due), if self.form == TerminalForm::Diff => {
                    self.full_due = Instant::now() + FULL;
                    (self.is_pending, self.wants_full) = (true, true);
                }
                Some(reply) = self.replies.recv() => return TerminalItem::Frame(reply),
            }
        }
    }

    /// The frame that this viewer lacks; `None` while it waits for the first screen.
    fn take(&mut self) -> Option<TerminalItem> {
        self.changes.mark_unchanged();
        let picture = self.hub.shared.picture();
        let is_over = matches!(picture.state, Some(ScreenState::Unavailable | ScreenState::Exited));
        // Who comes back has a screen already: nothing is shown until there is another.
        if self.seen.is_some() && !picture.has_screen && !is_over {
            self.is_pending = false;
            return None;
        }
        let since = self.seen.filter(|seen| seen.generation == picture.generation);
        let since = since.map(|since| since.seq).filter(|_| !self.wants_full);
        let item = match self.form {
            TerminalForm::Plain => TerminalItem::Plain(picture.plain()),
            TerminalForm::Diff => TerminalItem::Frame(TerminalFrame::Diff(picture.frame(since))),
        };
        self.seen = Some(Since { generation: picture.generation, seq: picture.seq });
        drop(picture);
        (self.is_pending, self.wants_full) = (false, false);
        if self.form == TerminalForm::Plain {
            self.earliest = Instant::now() + PLAIN_PAUSE;
        }
        Some(item)
    }

    /// Takes a message of the viewer; what is not understood is ignored.
    pub fn receive(&mut self, message: ClientFrame) {
        if self.form == TerminalForm::Plain {
            return;
        }
        match message {
            ClientFrame::Full => (self.is_pending, self.wants_full) = (true, true),
            ClientFrame::Scroll { from, n } => {
                let n = n.clamp(1, MOST_LINES);
                self.hub.scroll(Scroll { from, n, reply: self.reply.clone() });
            }
            ClientFrame::Input { text, id, enter } => {
                if let Some(refused) = self.type_in(text, id, enter) {
                    let refused = Some(refused.to_owned());
                    let frame = TypedFrame { typed: id, refused, stands: false };
                    let _ = self.reply.try_send(TerminalFrame::Typed(frame)); // it reads no answers
                }
            }
        }
    }

    fn type_in(&self, text: String, id: u64, enter: bool) -> Option<&'static str> {
        let Some(keyboard) = &self.keyboard else {
            return Some(
                "typing is not allowed here: it needs `claude.terminal_input` and a credential \
                 without scopes",
            );
        };
        if (text.is_empty() && !enter) || text.len() > LONGEST_INPUT {
            return Some("one message types 1 to 4096 bytes, or Enter alone; send less at once");
        }
        (!keyboard.send(Text { text, id, enter, reply: self.reply.clone() }))
            .then_some("the terminal does not take more at the moment; wait and type again")
    }
}
