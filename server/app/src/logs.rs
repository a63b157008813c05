//! Use-cases: read a bridge's log, and follow it through all its generations.

pub(crate) mod retention;

use crate::auth::Auth;
use crate::bridges::lookup::{Lookup, Wanted};
use crate::nudge::SAFETY_TICK;
use crate::registry::Registry;
use crate::registry::copies::Copies;
use crate::tasks::{Tasks, blocking};
use crate::{AppError, log_files};
use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;
use svc_agent::log_tail::{Begin, Broken, Colours, Log, LogTails, Part, TailItem, Viewer, Writer};
use svc_config::Config;
use svc_domain::bridge::Bridge;
use svc_domain::exit_cause::printed;
use svc_domain::redact::Colour;
use svc_domain::tail_lines::{BACKFILL_MAX, BadCursor, Cursor};
use svc_shared::error::ErrorCode;
use svc_shared::ids::InstanceId;
use svc_shared::internal::LogPage;
use svc_shared::stream::{LogFrame, MarkKind, close};
use svc_watch::{Pace, Watcher};
use tokio::sync::watch;

/// Whether the lines of logs that are opened keep their colours.
pub(crate) fn colours(config: &Arc<Config>) -> Colours {
    let config = Arc::clone(config);
    Colours::new(move || match config.logs.strip_ansi_in_stream {
        true => Colour::Strip,
        false => Colour::Keep,
    })
}

/// Most lines that are sent before the row and the shutdown are checked again.
const IN_A_ROW: u32 = 64;

/// After a write of another process was noticed. Its commit is visible by then.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Most lines of captured output that are shown after the end.
const PRINTED: usize = 50;

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

/// The logs of bridges, as they are read.
pub struct Logs {
    pub(crate) config: Arc<Config>,
    pub(crate) lookup: Arc<Lookup>,
    pub(crate) auth: Arc<Auth>,
    /// Each log is read once, however many follow it.
    pub(crate) tails: LogTails,
    pub(crate) watcher: Watcher,
    pub(crate) tasks: Tasks,
}

impl Logs {
    /// A page of redacted lines; works for ended bridges too.
    ///
    /// # Errors
    /// No such row, a malformed cursor, or a log that cannot be read.
    pub async fn page(&self, reference: &str, query: LogQuery) -> Result<LogPage, AppError> {
        let bridge = self.lookup.bridge(reference, Wanted::Live).await?;
        let place = |name, raw: &Option<String>| {
            let place = raw.as_deref().map(|raw| place(name, raw, &bridge)).transpose();
            // Everything of the present generation comes after a place of an earlier one.
            place.map(|place| place.map(|offset| offset.unwrap_or(0)))
        };
        let (after, before) = (place("cursor", &query.cursor)?, place("before", &query.before)?);
        let bytes = query.tail.min(BACKFILL_MAX);
        let part = match (before, after) {
            (Some(at), _) => Part::Before { at, bytes },
            (None, Some(at)) => Part::After { at, bytes },
            (None, None) => Part::Tail(bytes),
        };
        let writer = if bridge.is_live() { Writer::Lives } else { Writer::Gone };
        let cursor = |offset| Cursor { generation: bridge.generation, offset }.to_string();
        let output = match part {
            Part::Tail(_) if !bridge.is_live() => self.printed(&bridge).await,
            Part::Tail(_) | Part::Before { .. } | Part::After { .. } => Vec::new(),
        };
        let Some(log) = self.log_of(&bridge) else { return Ok(nothing(&bridge, output)) };
        let page = blocking(move || log.page(part, writer)).await?.map_err(|cause| {
            AppError::busy(
                "the log of this bridge cannot be read; look at the directory `logs` in the \
                     state directory",
            )
            .because(cause)
        })?;
        Ok(match page {
            None => nothing(&bridge, output),
            Some(page) => LogPage {
                lines: page.lines,
                first: page.first.map(cursor),
                cursor: cursor(page.end),
                generation: bridge.generation,
                eof: page.eof,
                output,
            },
        })
    }

    /// Follows a bridge's log, generation after generation, until it is forgotten.
    ///
    /// # Errors
    /// No such row, or a malformed cursor.
    pub async fn follow(
        self: &Arc<Self>,
        reference: &str,
        start: LogStart,
    ) -> Result<LogSubscription, AppError> {
        let bridge = self.lookup.bridge(reference, Wanted::Live).await?;
        let (begin, is_resumed) = match start {
            LogStart::Tail(bytes) => (Begin::Tail(bytes.min(BACKFILL_MAX)), false),
            LogStart::Cursor(raw) => match place("cursor", &raw, &bridge)? {
                Some(offset) => (Begin::At(offset), false),
                None => (Begin::Oldest, true),
            },
        };
        let registry = &self.lookup.registry;
        if !registry.has_readers() {
            // Nobody supervises in a command, so it learns of other processes' writes by itself.
            let (registry, auth) = (Arc::clone(registry), Arc::clone(&self.auth));
            let (watcher, tasks) = (self.watcher.clone(), self.tasks.clone());
            self.tasks.spawn(keep_current(registry, auth, watcher, tasks));
        }
        let mut subscription = LogSubscription {
            logs: Arc::clone(self),
            id: bridge.id.clone(),
            generation: bridge.generation,
            viewer: None,
            stage: Stage::Reading,
            is_resumed,
            is_printed: false,
            in_a_row: 0,
            changes: self.copies().changes(),
        };
        subscription.open(&bridge, begin);
        Ok(subscription)
    }

    /// What the process of an ended generation printed besides its log.
    ///
    /// Nobody knows when each line was printed, so they come after the log. There the fatal line of
    /// a crash belongs.
    async fn printed(&self, bridge: &Bridge) -> Vec<String> {
        let Some(set) = log_files::set_of(&self.config, bridge) else { return Vec::new() };
        let read = move || printed(set.output_tail().as_bytes(), PRINTED);
        tokio::task::spawn_blocking(read).await.unwrap_or_default()
    }

    fn log_of(&self, bridge: &Bridge) -> Option<Arc<Log>> {
        Some(self.tails.log(&log_files::set_of(&self.config, bridge)?))
    }

    fn copies(&self) -> &Copies {
        &self.lookup.registry.copies
    }
}

/// The offset in the log of the present generation.
/// `None` for a place in an earlier one.
fn place(name: &str, raw: &str, bridge: &Bridge) -> Result<Option<u64>, AppError> {
    let cursor: Cursor = raw
        .parse()
        .map_err(|bad: BadCursor| AppError::invalid(format!("`{name}` cannot be used: {bad}")))?;
    match cursor.generation.cmp(&bridge.generation) {
        Ordering::Less => Ok(None),
        Ordering::Equal => Ok(Some(cursor.offset)),
        Ordering::Greater => Err(AppError::invalid(format!(
            "`{name}` names generation {}, but this bridge has had only {}; pass a cursor back as \
             it was received for this bridge",
            cursor.generation, bridge.generation
        ))),
    }
}

fn nothing(bridge: &Bridge, output: Vec<String>) -> LogPage {
    LogPage {
        lines: Vec::new(),
        first: None,
        cursor: Cursor { generation: bridge.generation, offset: 0 }.to_string(),
        generation: bridge.generation,
        eof: true,
        output,
    }
}

/// A follower of one bridge's log.
pub struct LogSubscription {
    logs: Arc<Logs>,
    id: InstanceId,
    generation: u32,
    /// `None` while there is no log to read.
    viewer: Option<Viewer>,
    stage: Stage,
    /// The mark of a resume is due.
    is_resumed: bool,
    /// What was printed is told; the mark of the end is due.
    is_printed: bool,
    /// Lines shown since it was asked for anything else.
    in_a_row: u32,
    changes: watch::Receiver<u64>,
}

impl std::fmt::Debug for LogSubscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogSubscription").field("id", &self.id).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The log is read, and may grow.
    Reading,
    /// The generation has ended: the rest is read.
    Concluding,
    /// The log is shown: what the process printed comes next, then the end.
    Printing,
    /// All is shown; a resume begins the next log.
    Ended,
    /// Nothing more comes.
    Closed,
}

impl LogSubscription {
    /// What comes next; `None` only after [`LogItem::Closed`].
    /// Losing the future loses nothing.
    pub async fn next(&mut self) -> Option<LogItem> {
        loop {
            if std::mem::take(&mut self.is_resumed) {
                return Some(self.mark(MarkKind::Resumed));
            }
            if self.stage == Stage::Closed {
                return None;
            }
            if self.stage == Stage::Printing {
                return Some(self.print().await);
            }
            // What was read together is shown together: asking for the rest between any two lines
            // costs more than they do.
            if self.in_a_row < IN_A_ROW
                && let Some(item) = self.viewer.as_mut().and_then(Viewer::pending)
            {
                self.in_a_row += 1;
                return self.saw(Ok(Some(item)));
            }
            self.in_a_row = 0;
            let item = tokio::select! {
                // A flood of lines must not hide the rest. What is left to read of a log is shown
                // before the end is told.
                biased;
                () = self.logs.tasks.shutdown().cancelled() => {
                    Some(self.close(close::GOING_AWAY, ErrorCode::ShuttingDown))
                }
                Ok(()) = self.changes.changed() => self.row_changed(),
                seen = see(&mut self.viewer) => self.saw(seen),
            };
            if item.is_some() {
                return item;
            }
        }
    }

    fn open(&mut self, bridge: &Bridge, begin: Begin) {
        self.generation = bridge.generation;
        self.stage = Stage::Reading;
        let log = self.logs.log_of(bridge);
        self.viewer = log.map(|log| log.view(begin, &self.logs.watcher));
        // The generation may have ended by now.
        self.changes.mark_changed();
    }

    /// The row may have ended, been resumed or forgotten.
    fn row_changed(&mut self) -> Option<LogItem> {
        let Some(bridge) = self.logs.copies().bridge(&self.id) else {
            return Some(self.close(close::UNKNOWN, ErrorCode::UnknownInstance));
        };
        let is_over = !bridge.is_live() || bridge.generation != self.generation;
        match self.stage {
            Stage::Ended if bridge.generation != self.generation => self.end(),
            Stage::Reading if is_over => match &mut self.viewer {
                Some(viewer) => {
                    viewer.conclude();
                    self.stage = Stage::Concluding;
                    None
                }
                None => self.end(),
            },
            Stage::Reading if self.viewer.is_none() => {
                // The launch may have got its log by now.
                let log = self.logs.log_of(&bridge);
                self.viewer = log.map(|log| log.view(Begin::Oldest, &self.logs.watcher));
                None
            }
            Stage::Reading | Stage::Concluding | Stage::Printing | Stage::Ended | Stage::Closed => {
                None
            }
        }
    }

    fn saw(&mut self, seen: Result<Option<TailItem>, Broken>) -> Option<LogItem> {
        match seen {
            Ok(Some(TailItem::Line { end, text })) => Some(LogItem::Frame(LogFrame::Line {
                cursor: Cursor { generation: self.generation, offset: end }.to_string(),
                text,
            })),
            Ok(Some(TailItem::Rotated { .. })) => Some(self.mark(MarkKind::Rotated)),
            Ok(Some(TailItem::Gap)) => Some(self.mark(MarkKind::Gap)),
            Ok(None) => self.end(),
            Err(broken) => {
                tracing::warn!(
                    bridge.id = %self.id, error = &broken as &dyn std::error::Error,
                    "a log cannot be followed any longer"
                );
                Some(self.close(close::INTERNAL, ErrorCode::Internal))
            }
        }
    }

    /// What the process printed, if anything; then the mark of its end.
    async fn print(&mut self) -> LogItem {
        let bridge = self.logs.copies().bridge(&self.id);
        let bridge = bridge.filter(|bridge| bridge.generation == self.generation);
        if !std::mem::take(&mut self.is_printed)
            && let Some(bridge) = bridge
        {
            let lines = self.logs.printed(&bridge).await;
            if !lines.is_empty() {
                self.is_printed = true;
                return LogItem::Frame(LogFrame::Output { generation: self.generation, lines });
            }
        }
        self.stage = Stage::Ended;
        // A resume may have come meanwhile.
        self.changes.mark_changed();
        self.mark(MarkKind::Ended)
    }

    /// The log of the generation is shown to its end.
    fn end(&mut self) -> Option<LogItem> {
        self.viewer = None;
        let Some(bridge) = self.logs.copies().bridge(&self.id) else {
            return Some(self.close(close::UNKNOWN, ErrorCode::UnknownInstance));
        };
        if bridge.generation == self.generation {
            self.stage = Stage::Printing;
            return None;
        }
        self.open(&bridge, Begin::Oldest);
        Some(self.mark(MarkKind::Resumed))
    }

    fn close(&mut self, code: u16, word: ErrorCode) -> LogItem {
        self.stage = Stage::Closed;
        self.viewer = None;
        LogItem::Closed(code, word)
    }

    fn mark(&self, kind: MarkKind) -> LogItem {
        let bridge = self.logs.copies().bridge(&self.id);
        let bridge = bridge.filter(|bridge| bridge.generation == self.generation);
        let at = match kind {
            MarkKind::Ended => bridge.and_then(|bridge| bridge.ended().map(|ended| ended.at)),
            MarkKind::Resumed => bridge.and_then(|bridge| bridge.started_at),
            MarkKind::Rotated | MarkKind::Gap => None,
        };
        LogItem::Frame(LogFrame::Mark { kind, generation: self.generation, at })
    }
}

/// Keeps the copies of the rows current in a process without a supervisor.
async fn keep_current(registry: Arc<Registry>, auth: Arc<Auth>, watcher: Watcher, tasks: Tasks) {
    let wal = registry.store.path().with_file_name("svc.db-wal");
    let mut wal = watcher.file(&wal, Pace::every(SAFETY_TICK));
    let Ok(mut watch) = registry.store.watch().await else { return };
    let mut tick = tokio::time::interval(SAFETY_TICK);
    let mut looks_again = false;
    loop {
        tokio::select! {
            () = tasks.shutdown().cancelled() => return,
            _ = tick.tick() => {}
            () = tokio::time::sleep(LOOK_AGAIN), if looks_again => looks_again = false,
            // The log is written before the commit can be seen, and nothing tells of that moment.
            _ = wal.changed() => looks_again = true,
        }
        let is_changed = watch.changed().await.unwrap_or(true);
        if is_changed {
            auth.look_again().await;
        }
        if is_changed && let Err(error) = registry.live().await {
            tracing::debug!(error = %error, "the records could not be read again");
        }
    }
}

/// What the log has to show, if there is one.
async fn see(viewer: &mut Option<Viewer>) -> Result<Option<TailItem>, Broken> {
    match viewer {
        Some(viewer) => viewer.next().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
