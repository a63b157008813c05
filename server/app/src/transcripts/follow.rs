//! Follows a conversation while it is written.

use super::files::File;
use super::{Transcripts, parse};
use crate::AppError;
use crate::tasks::blocking;
use std::sync::Arc;
use svc_projects::Project;
use svc_shared::error::ErrorCode;
use svc_shared::ids::SessionRef;
use svc_shared::internal::conversations::ConversationTail;
use svc_shared::stream::close;
use svc_watch::{Pace, Subscription};
use tokio::sync::watch;

/// What a follower is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Followed {
    /// Turns that came, or a change of whether it is live.
    Tail(Box<ConversationTail>),
    /// Nothing more comes: the close code of a socket and the word for it.
    Closed(u16, ErrorCode),
}

/// A follower of one conversation.
pub struct Follower {
    transcripts: Arc<Transcripts>,
    project: Project,
    file: Arc<File>,
    conversation: SessionRef,
    watch: Subscription,
    /// Who works on conversations may have changed.
    states: watch::Receiver<()>,
    offset: u64,
    resets: Option<u64>,
    was_live: Option<bool>,
    /// Something may have come that was not read yet.
    is_due: bool,
    is_closed: bool,
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower").field("offset", &self.offset).finish_non_exhaustive()
    }
}

impl Transcripts {
    /// Follows a conversation from an offset on, with 1,000 turns at most.
    ///
    /// # Errors
    /// No such project or conversation.
    pub async fn follow(
        self: &Arc<Self>,
        project: &str,
        reference: &str,
        offset: u64,
    ) -> Result<Follower, AppError> {
        let this = Arc::clone(self);
        let (project, conversation) = (self.catalog.named(project)?, parse(reference)?);
        let (of, reference) = (project.clone(), conversation.clone());
        let file = blocking(move || this.find(&of, &reference)).await??;
        Ok(Follower {
            watch: self.watcher.file(file.path(), Pace::VIEW),
            states: self.read_model.changes(),
            transcripts: Arc::clone(self),
            project,
            file,
            conversation,
            offset,
            resets: None,
            was_live: None,
            is_due: true,
            is_closed: false,
        })
    }
}

impl Follower {
    /// What comes next. Losing the future loses nothing.
    pub async fn next(&mut self) -> Followed {
        loop {
            if self.is_closed {
                return std::future::pending().await;
            }
            if !self.is_due {
                let shutdown = self.transcripts.tasks.shutdown();
                tokio::select! {
                    () = shutdown.cancelled() => {
                        return self.close(close::GOING_AWAY, ErrorCode::ShuttingDown);
                    }
                    _ = self.watch.changed() => self.is_due = true,
                    Ok(()) = self.states.changed() => {
                        let is_live = self.transcripts.is_live(&self.file, &self.conversation);
                        if self.was_live == Some(is_live) {
                            continue;
                        }
                        self.is_due = true;
                    }
                }
            }
            let read = self.read().await;
            let (tail, resets) = match read {
                Ok(read) => read,
                Err(error) if error.code == ErrorCode::NotFound => {
                    return self.close(close::UNKNOWN, ErrorCode::NotFound);
                }
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "a conversation cannot be followed any longer"
                    );
                    return self.close(close::INTERNAL, ErrorCode::Internal);
                }
            };
            let is_first = self.was_live.is_none();
            let is_news = !tail.turns.is_empty()
                || tail.reset
                || is_first
                || self.was_live != Some(tail.live);
            // A large part of what came is handed out in steps.
            self.is_due = tail.offset != self.offset && !tail.turns.is_empty();
            self.offset = tail.offset;
            self.resets = Some(resets);
            self.was_live = Some(tail.live);
            if is_news {
                return Followed::Tail(Box::new(tail));
            }
        }
    }

    async fn read(&self) -> Result<(ConversationTail, u64), AppError> {
        let (transcripts, file) = (Arc::clone(&self.transcripts), Arc::clone(&self.file));
        let (project, conversation) = (self.project.clone(), self.conversation.clone());
        let (offset, resets) = (self.offset, self.resets);
        blocking(move || transcripts.tail_of(&project, &file, conversation, offset, resets)).await?
    }

    fn close(&mut self, code: u16, word: ErrorCode) -> Followed {
        self.is_closed = true;
        Followed::Closed(code, word)
    }
}
