//! What the agent says while it runs: its debug file and captured output, read as they grow.

use crate::growing_file::{GrowingFile, Look};
use crate::log_set::LogSet;
use std::time::Duration;
use svc_domain::agent_log::evidence::Evidence;
use svc_domain::agent_log::lines::LogLines;
use svc_watch::{Pace, Subscription, Watcher};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// Between two rounds of reading: the agent opens, appends and closes for every few lines.
const BREATH: Duration = Duration::from_millis(20);

const CHUNK: usize = 64 * 1024;

/// Bytes per file and round; a flood must not keep a thread from everything else.
const ROUND: u64 = 8 * 1024 * 1024;

/// Sums up the lines of one log set for as long as it lives; dropped, it ends.
#[derive(Debug)]
pub struct DebugWatch {
    evidence: watch::Receiver<Evidence>,
    catch_up: mpsc::Sender<oneshot::Sender<Evidence>>,
    task: JoinHandle<()>,
}

impl DebugWatch {
    /// Reads both files of a set from their start and then whatever is added, told by `watcher`
    /// or, where nothing can be watched, every 250 ms for 15 s and every 2 s afterwards.
    ///
    /// `before` is what earlier lines of the same launch said, should they have been rotated away.
    #[must_use]
    pub fn start(watcher: &Watcher, set: &LogSet, before: Evidence) -> Self {
        let (tx, evidence) = watch::channel(before.clone());
        // Full only while several callers wait for one round: they wait.
        let (catch_up, requests) = mpsc::channel(8);
        let woken = [set.debug_file(), set.output_file()].map(|p| watcher.file(&p, Pace::START));
        let task = tokio::spawn(follow(Logs::new(set, before), woken, tx, requests));
        Self { evidence, catch_up, task }
    }

    /// What the lines read so far say.
    #[must_use]
    pub fn evidence(&self) -> Evidence {
        self.evidence.borrow().clone()
    }

    /// Told of every change.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<Evidence> {
        self.evidence.clone()
    }

    /// Reads to the present end of both files first, an unfinished last line included. For the moment after an exit, when the last
    /// lines are written but may not have been noticed yet.
    pub async fn caught_up(&self) -> Evidence {
        let (tx, rx) = oneshot::channel();
        if self.catch_up.send(tx).await.is_err() {
            return self.evidence();
        }
        rx.await.unwrap_or_else(|_| self.evidence())
    }
}

impl Drop for DebugWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reads a whole set once, for a launch that nobody watched. Blocks.
#[must_use]
pub fn scan(set: &LogSet) -> Evidence {
    let mut logs = Logs::new(set, Evidence::default());
    while logs.round() {}
    logs.concluded()
}

async fn follow(
    mut logs: Logs,
    [mut debug, mut output]: [Subscription; 2],
    tx: watch::Sender<Evidence>,
    mut requests: mpsc::Receiver<oneshot::Sender<Evidence>>,
) {
    let mut asked: Vec<oneshot::Sender<Evidence>> = Vec::new();
    loop {
        let reading = tokio::task::spawn_blocking(move || {
            let more = logs.round();
            (logs, more)
        });
        let Ok((read, more)) = reading.await else {
            return; // the runtime ends
        };
        logs = read;
        tx.send_if_modified(|known| {
            let changed = *known != logs.evidence;
            if changed {
                known.clone_from(&logs.evidence);
            }
            changed
        });
        if more {
            continue;
        }
        for answer in asked.drain(..) {
            let _ = answer.send(logs.concluded()); // no longer wanted: fine
        }
        tokio::select! {
            _ = debug.changed() => {}
            _ = output.changed() => {}
            request = requests.recv() => match request {
                Some(answer) => asked.push(answer),
                None => return,
            },
        }
        if asked.is_empty() {
            tokio::time::sleep(BREATH).await;
        }
        while let Ok(answer) = requests.try_recv() {
            asked.push(answer);
        }
    }
}

/// Both files and their sum.
struct Logs {
    debug: Reader,
    output: Reader,
    evidence: Evidence,
}

struct Reader {
    file: GrowingFile,
    lines: LogLines,
    complained: bool,
}

impl Reader {
    fn new(path: std::path::PathBuf) -> Self {
        Self { file: GrowingFile::new(path, 0), lines: LogLines::new(), complained: false }
    }

    /// Reads on; true when there may be more at once.
    fn round(&mut self, mut each: impl FnMut(svc_domain::agent_log::lines::LogPiece<'_>)) -> bool {
        let mut buffer = vec![0; CHUNK];
        let mut left = ROUND;
        while left > 0 {
            match self.file.look(&mut buffer) {
                Look::Bytes(read) => {
                    self.lines.feed(buffer.get(..read).unwrap_or_default(), &mut each);
                    left = left.saturating_sub(read as u64);
                }
                // What was said stays said: a rotated log does not undo a registration.
                Look::Restarted => self.lines = LogLines::new(),
                Look::UpToDate | Look::Missing => return false,
                Look::Unusable(error) => {
                    if !std::mem::replace(&mut self.complained, true) {
                        tracing::warn!(
                            path = %self.file.path().display(), error = %error,
                            "cannot read a log of the agent; its start cannot be confirmed"
                        );
                    }
                    return false;
                }
            }
        }
        true
    }
}

impl Logs {
    fn new(set: &LogSet, evidence: Evidence) -> Self {
        Self {
            debug: Reader::new(set.debug_file()),
            output: Reader::new(set.output_file()),
            evidence,
        }
    }

    fn round(&mut self) -> bool {
        let evidence = &mut self.evidence;
        let more = self.debug.round(|piece| evidence.debug_line(piece));
        self.output.round(|piece| evidence.output_line(piece)) || more
    }

    /// The sum should nothing be added any more: last lines count although their ends are missing.
    fn concluded(&self) -> Evidence {
        let mut evidence = self.evidence.clone();
        self.debug.lines.clone().finish(|piece| evidence.debug_line(piece));
        self.output.lines.clone().finish(|piece| evidence.output_line(piece));
        evidence
    }
}
