//! One viewer of a log: reads older lines itself, then subscribes to the tailer.

use super::Log;
use super::fan_out::{Received, Subscriber};
use super::reader::{Begin, Progress, Reader, TailItem};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use svc_watch::Watcher;
use tokio::task::JoinHandle;

/// Why a viewer gets no more lines.
#[derive(Debug, thiserror::Error)]
#[error("the log cannot be read")]
pub struct Broken(#[source] Arc<io::Error>);

/// One viewer of one log.
/// It reads older lines itself, as fast as they are requested. Once it is up to date it shares the
/// tailer with all other viewers.
#[derive(Debug)]
pub struct Viewer {
    log: Arc<Log>,
    watcher: Watcher,
    source: Source,
    /// Items that were read and not returned yet.
    pending: VecDeque<TailItem>,
    /// Where a reader would continue after the last item. `None` before the first line.
    position: Option<u64>,
    /// Start of the file of the last item.
    file: Option<u64>,
    conclude: bool,
}

#[derive(Debug)]
enum Source {
    /// Not opened yet.
    Closed(Begin),
    /// A round of reading is under way.
    Reading(JoinHandle<Round>),
    /// Up to date, with a reader of its own. `None` while the reader is moved.
    UpToDate(Option<Box<Reader>>),
    Live(Subscriber),
    Done,
    Broken(Arc<io::Error>),
}

#[derive(Debug)]
struct Round {
    items: Vec<TailItem>,
    outcome: io::Result<(Box<Reader>, After)>,
}

#[derive(Debug)]
enum After {
    More,
    UpToDate,
    Finished,
}

/// The state from which a round of reading starts.
enum Job {
    Open(Begin),
    Continue(Box<Reader>),
}

impl Viewer {
    pub(super) fn new(log: Arc<Log>, watcher: Watcher, begin: Begin) -> Self {
        Self {
            log,
            watcher,
            source: Source::Closed(begin),
            pending: VecDeque::new(),
            position: match begin {
                Begin::At(at) => Some(at),
                Begin::Oldest | Begin::Tail(_) => None,
            },
            file: None,
            conclude: false,
        }
    }

    #[cfg(test)]
    pub(super) fn is_live(&self) -> bool {
        matches!(self.source, Source::Live(_))
    }

    /// Whether the item is new to this viewer.
    /// When it switches between its own reader and the tailer, it gets some items twice.
    fn is_news(&mut self, item: &TailItem) -> bool {
        match item {
            TailItem::Line { end, .. } => {
                let is_new = self.position.is_none_or(|position| position < *end);
                self.position = self.position.max(Some(*end));
                is_new
            }
            TailItem::Rotated { start } => {
                let is_new = self.file.is_none_or(|file| file < *start);
                if is_new {
                    self.file = Some(*start);
                    // Back to the start of a log whose earlier offsets are forgotten.
                    self.position = self.position.min(Some(*start));
                }
                is_new
            }
            TailItem::Gap => true,
        }
    }

    /// The next item that was already read, at most some dozens of lines ahead.
    pub fn pending(&mut self) -> Option<TailItem> {
        loop {
            let item = self.pending.pop_front()?;
            if self.is_news(&item) {
                return Some(item);
            }
        }
    }

    /// The next item; `None` after the last line, once [`Viewer::conclude`] was called.
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// The log path is no readable file.
    pub async fn next(&mut self) -> Result<Option<TailItem>, Broken> {
        loop {
            if let Some(item) = self.pending() {
                return Ok(Some(item));
            }
            match &mut self.source {
                Source::Closed(begin) => {
                    let job = Job::Open(*begin);
                    self.read(job);
                }
                Source::Reading(round) => match round.await {
                    Ok(round) => self.take(round),
                    Err(error) => self.source = Source::Broken(Arc::new(io::Error::other(error))),
                },
                Source::UpToDate(reader) => match reader.take() {
                    Some(reader) => self.join(reader),
                    None => self.source = Source::Done,
                },
                Source::Live(subscriber) => match subscriber.next().await {
                    Received::Items(items) => self.pending.extend(items),
                    Received::Broken(error) => self.source = Source::Broken(error),
                },
                Source::Done => return Ok(None),
                Source::Broken(error) => return Err(Broken(Arc::clone(error))),
            }
        }
    }

    /// Tells the viewer that the log is complete, so its last line needs no line end.
    pub fn conclude(&mut self) {
        if std::mem::replace(&mut self.conclude, true) {
            return;
        }
        if matches!(self.source, Source::Live(_)) {
            // Its own reader finds everything that the ring had, and what the ring had lost.
            self.pending.clear();
            self.source = Source::Closed(self.position.map_or(Begin::Oldest, Begin::At));
        }
    }

    fn take(&mut self, round: Round) {
        self.pending.extend(round.items);
        match round.outcome {
            Ok((reader, After::More)) => self.read(Job::Continue(reader)),
            Ok((reader, After::UpToDate)) => self.source = Source::UpToDate(Some(reader)),
            Ok((_, After::Finished)) => self.source = Source::Done,
            Err(error) => self.source = Source::Broken(Arc::new(error)),
        }
    }

    /// Switches to the tailer, or reads on if the tailer is too far ahead.
    fn join(&mut self, reader: Box<Reader>) {
        if self.conclude {
            return self.read(Job::Continue(reader));
        }
        self.position = Some(reader.resting());
        self.file = reader.file();
        match self.log.subscribe(reader, &self.watcher) {
            Ok(subscriber) => self.source = Source::Live(subscriber),
            Err(reader) => self.read(Job::Continue(reader)),
        }
    }

    fn read(&mut self, job: Job) {
        let (log, conclude) = (Arc::clone(&self.log), self.conclude);
        self.source = Source::Reading(tokio::task::spawn_blocking(move || {
            let mut items = Vec::new();
            let outcome = round(&log, job, conclude, &mut items);
            Round { items, outcome }
        }));
    }
}

fn round(
    log: &Arc<Log>,
    job: Job,
    conclude: bool,
    items: &mut Vec<TailItem>,
) -> io::Result<(Box<Reader>, After)> {
    let mut reader = match job {
        Job::Open(begin) => {
            let (reader, lost) = Reader::open(log.open(), log.colours.now(), begin)?;
            items.extend(lost);
            Box::new(reader)
        }
        Job::Continue(reader) => reader,
    };
    let after = match reader.step(items)? {
        Progress::More => After::More,
        Progress::UpToDate | Progress::Gone if conclude => {
            items.extend(reader.finish());
            After::Finished
        }
        Progress::UpToDate | Progress::Gone => After::UpToDate,
    };
    Ok((reader, after))
}
