//! Use-cases: read a bridge's log, and follow it through all its generations.

use crate::{App, AppError};
use std::sync::Arc;
use svc_agent::log_tail::{Begin, Log, Part, TailItem, Viewer, Writer};
use svc_domain::bridge::Bridge;
use svc_domain::tail_lines::{BACKFILL_MAX, Cursor};
use svc_shared::error::ErrorCode;
use svc_shared::ids::InstanceId;
use svc_shared::internal::LogPage;
use svc_shared::stream::{LogFrame, MarkKind, close};
use tokio::sync::watch;

/// Which part of a log is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// Bytes, at most 1 MiB.
    pub tail: u64,
    /// Go on after this place.
    pub cursor: Option<String>,
    /// Read backwards from this place.
    pub before: Option<String>,
}

/// Where following begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogStart {
    /// With the last so many bytes.
    Tail(u64),
    /// Exactly after this place.
    Cursor(String),
}

/// What a follower is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogItem {
    /// A line or a mark.
    Frame(LogFrame),
    /// Nothing more comes: the close code of a socket and the word for it.
    Closed(u16, ErrorCode),
}

impl App {
    /// A page of redacted lines; works for ended bridges too.
    ///
    /// # Errors
    /// No such row, a malformed cursor, or a log that cannot be read.
    pub async fn log_page(&self, reference: &str, query: LogQuery) -> Result<LogPage, AppError> {
        let bridge = self.bridge(reference).await?;
        let place = |name, raw: &Option<String>| {
            raw.as_deref().map(|raw| place(name, raw, &bridge)).transpose()
        };
        let (after, before) = (place("cursor", &query.cursor)?, place("before", &query.before)?);
        let bytes = query.tail.min(BACKFILL_MAX);
        let part = match (before, after) {
            (Some(at), _) => Part::Before { at, bytes },
            (None, Some(at)) => Part::After { at, bytes: bytes.max(1) },
            (None, None) => Part::Tail(bytes),
        };
        let writer = if bridge.is_live() { Writer::Lives } else { Writer::Gone };
        let cursor = |offset| Cursor { generation: bridge.generation, offset }.to_string();
        let Some(log) = self.log_of(&bridge) else { return Ok(nothing(&bridge)) };
        let page = tokio::task::spawn_blocking(move || log.page(part, writer))
            .await
            .map_err(AppError::internal)?
            .map_err(|cause| {
                AppError::busy(
                    "the log of this bridge cannot be read; look at the directory `logs` in the \
                     state directory",
                )
                .because(cause)
            })?;
        Ok(match page {
            None => nothing(&bridge),
            Some(page) => LogPage {
                lines: page.lines,
                first: page.first.map(cursor),
                cursor: cursor(page.end),
                generation: bridge.generation,
                eof: page.eof,
            },
        })
    }

    /// Follows a bridge's log, generation after generation, until it is forgotten.
    ///
    /// # Errors
    /// No such row, or a malformed cursor.
    pub async fn follow_log(
        &self,
        reference: &str,
        start: LogStart,
    ) -> Result<LogSubscription, AppError> {
        let bridge = self.bridge(reference).await?;
        let begin = match start {
            LogStart::Tail(bytes) => Begin::Tail(bytes.min(BACKFILL_MAX)),
            LogStart::Cursor(raw) => {
                let cursor: Cursor = raw.parse().map_err(|bad| invalid("cursor", &bad))?;
                if cursor.generation == bridge.generation {
                    Begin::At(cursor.offset)
                } else {
                    // A generation ago: everything of the present one is news.
                    Begin::Oldest
                }
            }
        };
        if !self.is_server() {
            // Nobody supervises in a command, so it learns of other processes' writes by itself.
            self.tasks().spawn(crate::supervise::keep_current(self.clone()));
        }
        let mut changes = self.registry().changes();
        changes.mark_changed();
        let mut subscription = LogSubscription {
            app: self.clone(),
            id: bridge.id.clone(),
            generation: bridge.generation,
            viewer: None,
            stage: Stage::Reading,
            changes,
        };
        subscription.open(&bridge, begin);
        Ok(subscription)
    }

    fn log_of(&self, bridge: &Bridge) -> Option<Arc<Log>> {
        let set = self.log_set(&bridge.launch.as_ref()?.log_stem)?;
        Some(self.log_tails().log(&set))
    }
}

fn invalid(name: &str, bad: &svc_domain::tail_lines::BadCursor) -> AppError {
    AppError::invalid(format!("`{name}` cannot be used: {bad}"))
}

/// A place of the present generation; one of an earlier generation is before its begin.
fn place(name: &str, raw: &str, bridge: &Bridge) -> Result<u64, AppError> {
    let cursor: Cursor = raw.parse().map_err(|bad| invalid(name, &bad))?;
    Ok(if cursor.generation == bridge.generation { cursor.offset } else { 0 })
}

fn nothing(bridge: &Bridge) -> LogPage {
    LogPage {
        lines: Vec::new(),
        first: None,
        cursor: Cursor { generation: bridge.generation, offset: 0 }.to_string(),
        generation: bridge.generation,
        eof: true,
    }
}

/// A follower of one bridge's log.
#[derive(Debug)]
pub struct LogSubscription {
    app: App,
    id: InstanceId,
    generation: u32,
    viewer: Option<Viewer>,
    stage: Stage,
    changes: watch::Receiver<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The log is read, and may grow.
    Reading,
    /// The bridge has ended: the rest is read.
    Concluding,
    /// All is shown; a resume begins the next log.
    Ended,
    /// Nothing more comes.
    Closed,
}

impl LogSubscription {
    fn open(&mut self, bridge: &Bridge, begin: Begin) {
        self.generation = bridge.generation;
        self.stage = Stage::Reading;
        let log = self.app.log_of(bridge);
        self.viewer = log.map(|log| log.view(begin, self.app.watcher()));
    }

    fn close(&mut self, code: u16, word: ErrorCode) -> LogItem {
        self.stage = Stage::Closed;
        self.viewer = None;
        LogItem::Closed(code, word)
    }

    fn mark(&self, kind: MarkKind) -> LogItem {
        LogItem::Frame(LogFrame::Mark { kind, generation: self.generation })
    }

    /// What comes next; `None` only after [`LogItem::Closed`]. Losing the future loses nothing.
    pub async fn next(&mut self) -> Option<LogItem> {
        loop {
            match self.stage {
                Stage::Closed => return None,
                Stage::Reading | Stage::Concluding => {
                    let Some(viewer) = &mut self.viewer else {
                        self.stage = Stage::Ended;
                        return Some(self.mark(MarkKind::Ended));
                    };
                    tokio::select! {
                        // Lines first: the end is told after the last of them.
                        biased;
                        item = viewer.next() => match item {
                            Ok(Some(item)) => return Some(self.frame(item)),
                            Ok(None) => {
                                self.viewer = None;
                                self.stage = Stage::Ended;
                                return Some(self.mark(MarkKind::Ended));
                            }
                            Err(error) => {
                                tracing::warn!(error = %error, "a log cannot be followed");
                                return Some(self.close(close::INTERNAL, ErrorCode::Internal));
                            }
                        },
                        changed = self.changes.changed() => {
                            if let Some(item) = self.row_changed(changed.is_ok()) {
                                return Some(item);
                            }
                        }
                    }
                }
                Stage::Ended => {
                    let changed = self.changes.changed().await;
                    if let Some(item) = self.row_changed(changed.is_ok()) {
                        return Some(item);
                    }
                }
            }
        }
    }

    fn frame(&self, item: TailItem) -> LogItem {
        match item {
            TailItem::Line { end, text } => LogItem::Frame(LogFrame::Line {
                cursor: Cursor { generation: self.generation, offset: end }.to_string(),
                text: text.to_string(),
            }),
            TailItem::Rotated { .. } => self.mark(MarkKind::Rotated),
            TailItem::Gap => self.mark(MarkKind::Gap),
        }
    }

    /// The row may have ended, been resumed or forgotten.
    fn row_changed(&mut self, is_open: bool) -> Option<LogItem> {
        if !is_open {
            return Some(self.close(close::GOING_AWAY, ErrorCode::ShuttingDown));
        }
        let Some(bridge) = self.app.known(&self.id) else {
            return Some(self.close(close::UNKNOWN, ErrorCode::UnknownInstance));
        };
        if bridge.generation != self.generation {
            // What the old generation still had to say is cut short by the new one.
            self.open(&bridge, Begin::Oldest);
            return Some(self.mark(MarkKind::Resumed));
        }
        if !bridge.is_live() && self.stage == Stage::Reading {
            self.stage = Stage::Concluding;
            if let Some(viewer) = &mut self.viewer {
                viewer.conclude();
            }
        }
        None
    }
}
