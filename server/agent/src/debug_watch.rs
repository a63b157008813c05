//! Follows the agent's debug file and captured output as they grow.

use crate::growing_file::{GrowingFile, ReadResult};
use crate::keeping::Keeping;
use crate::log_set::LogSet;
use crate::mirror::Mirror;
use crate::rotation::{Copying, Cut, Limits, Plan, Trouble, plan};
use std::time::Duration;
use svc_domain::agent_log::evidence::{Evidence, Readiness};
use svc_domain::agent_log::lines::{LogLines, LogPiece};
use svc_domain::agent_log::report::LogReport;
use svc_shared::Timestamp;
use svc_watch::{Pace, Subscription, Watcher};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// Least pause between two reads.
/// The agent opens, appends and closes for every few lines. The first line after silence and an
/// explicit request do not wait.
const BREATH: Duration = Duration::from_millis(4);

/// The pause while the agent starts and somebody waits for its last line.
const START_BREATH: Duration = Duration::from_millis(1);

/// Longest start. A bridge that is not ready then may never be.
const START: Duration = Duration::from_secs(15);

const CHUNK: usize = 64 * 1024;

/// Bytes read of a file in one round, so that a flood does not occupy the thread.
const ROUND: u64 = 8 * 1024 * 1024;

/// A reader that is more bytes behind skips the rest when the log is truncated.
/// Otherwise a flood would fill the disk while it is read.
const FLOOD: u64 = 8 * 1024 * 1024;

/// Bytes at the end of a file that a process that only looks reads.
const RECENT: u64 = 256 * 1024;

/// Attempts to find a moment without writes before a log is truncated.
const TRIES: u32 = 64;

/// Full parts that the redacted copy may take before a log is truncated.
/// A writer that is faster than the copy would otherwise fill the disk. What is left then is lost,
/// and the copy says so.
const MIRROR_ROUNDS: u32 = 16;

/// Collects the evidence in the lines of one log set and keeps its files small.
/// Ends when it is dropped.
#[derive(Debug)]
pub struct DebugWatch {
    evidence: watch::Receiver<Evidence>,
    report: watch::Receiver<LogReport>,
    trouble: watch::Receiver<Option<Trouble>>,
    catch_up: mpsc::Sender<oneshot::Sender<Evidence>>,
    task: JoinHandle<()>,
}

impl DebugWatch {
    /// Reads both files of a set from their start, then everything that is added.
    /// `watcher` reports changes. Where nothing can be watched, the files are read every 250 ms for
    /// 15 s and every 2 s afterwards.
    ///
    /// `before` is the evidence of earlier lines of the same launch, which were rotated away.
    /// `limits` is for the one process that keeps the files small. It reads lines before it drops
    /// them. Such a watch begins when no other one of this process keeps the same set small.
    #[must_use]
    pub fn start(
        watcher: &Watcher,
        set: &LogSet,
        before: Evidence,
        limits: Option<Limits>,
    ) -> Self {
        let (tx, evidence) = watch::channel(before.clone());
        let (trouble_tx, trouble) = watch::channel(None);
        let (report_tx, report) = watch::channel(LogReport::default());
        // Full only while several callers wait for one round. Then the next caller waits too.
        let (catch_up, requests) = mpsc::channel(8);
        let woken = [set.agent_file(), set.output_file()].map(|p| watcher.file(&p, Pace::START));
        let set = set.clone();
        let task = tokio::spawn(async move {
            let keeping = match limits {
                Some(_) => Some(Keeping::begin(&set.agent_file()).await),
                None => None,
            };
            let opening = tokio::task::spawn_blocking(move || {
                let mut logs = Logs::new(&set, before, limits);
                logs.keeping = keeping;
                logs
            });
            let Ok(logs) = opening.await else {
                return; // the runtime ends
            };
            follow(logs, woken, (tx, trouble_tx, report_tx), requests).await;
        });
        Self { evidence, report, trouble, catch_up, task }
    }

    /// The evidence in the lines read so far.
    #[must_use]
    pub fn evidence(&self) -> Evidence {
        self.evidence.borrow().clone()
    }

    /// A channel that reports every change of the evidence.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<Evidence> {
        self.evidence.clone()
    }

    /// Reports link and activity whenever a reader can see a change of them.
    #[must_use]
    pub fn report(&self) -> watch::Receiver<LogReport> {
        self.report.clone()
    }

    /// Reports when the files cannot be kept small or whole, and when they can again.
    /// The first value is the state at the first read.
    #[must_use]
    pub fn trouble(&self) -> watch::Receiver<Option<Trouble>> {
        self.trouble.clone()
    }

    /// Reads to the present end of both files, an unfinished last line included.
    /// For the moment after an exit: the last lines are written, but perhaps not read yet.
    pub async fn caught_up(&self) -> Evidence {
        let (tx, rx) = oneshot::channel();
        if self.catch_up.send(tx).await.is_err() {
            return self.evidence();
        }
        rx.await.unwrap_or_else(|_| self.evidence())
    }

    /// Ends the watch when the reading that is under way is done.
    ///
    /// A watch that is only dropped may still copy a part. The next watch of the same set waits for
    /// that.
    pub async fn end(mut self) {
        let (closed, _) = mpsc::channel(1);
        drop(std::mem::replace(&mut self.catch_up, closed));
        let _ = (&mut self.task).await; // an end of the runtime is an end as well
    }
}

impl Drop for DebugWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reads a whole set once, for a launch that was not watched. Blocks.
#[must_use]
pub fn scan(set: &LogSet) -> Evidence {
    let mut logs = Logs::new(set, rotated(set), None);
    while logs.round() {}
    logs.concluded()
}

/// What a whole set says, the rotated files included. Blocks.
/// For a generation that has ended. Memory is bounded; the time is that of reading the files.
#[must_use]
pub fn whole_report(set: &LogSet) -> LogReport {
    let mut report = LogReport::default();
    let mut lines = LogLines::new();
    let mut buffer = vec![0; CHUNK];
    let debug = set.agent_file();
    for path in crate::rotation::rotated(&debug).into_iter().chain([debug]) {
        let written_by = last_write(&path);
        let mut file = GrowingFile::new(path, 0);
        while let ReadResult::Bytes(read) = file.read(&mut buffer) {
            let chunk = buffer.get(..read).unwrap_or_default();
            lines.feed(chunk, |piece| report.debug_line(piece, written_by));
        }
    }
    lines.finish(|piece| report.debug_line(piece, None));
    report
}

/// What the ends of both files say. Blocks for some hundred KiB.
/// For a process that only looks.
#[must_use]
pub fn recent_report(set: &LogSet) -> LogReport {
    let mut report = LogReport::default();
    let (debug, output) = (set.agent_file(), set.output_file());
    let written_by = last_write(&debug);
    read_end(debug, |piece| report.debug_line(piece, written_by));
    let written_by = last_write(&output);
    read_end(output, |piece| report.output_line(piece, written_by));
    report
}

fn read_end(path: std::path::PathBuf, mut each: impl FnMut(LogPiece<'_>)) {
    let len = std::fs::metadata(&path).map_or(0, |facts| facts.len());
    let mut file = GrowingFile::new(path, len.saturating_sub(RECENT));
    let mut lines = LogLines::new();
    let mut buffer = vec![0; CHUNK];
    let mut left = 2 * RECENT;
    while let ReadResult::Bytes(read) = file.read(&mut buffer) {
        lines.feed(buffer.get(..read).unwrap_or_default(), &mut each);
        left = left.saturating_sub(read as u64);
        if left == 0 {
            break;
        }
    }
}

/// When a file was last written.
fn last_write(path: &std::path::Path) -> Option<Timestamp> {
    let modified = std::fs::metadata(path).ok()?.modified().ok()?;
    let since = modified.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(Timestamp::from_millis(i64::try_from(since.as_millis()).ok()?))
}

/// The evidence in the rotated files of a set. Blocks.
#[must_use]
pub fn rotated(set: &LogSet) -> Evidence {
    let mut evidence = Evidence::default();
    let mut lines = LogLines::new();
    for path in crate::rotation::rotated(&set.agent_file()) {
        let mut file = GrowingFile::new(path, 0);
        let mut buffer = vec![0; CHUNK];
        while let ReadResult::Bytes(read) = file.read(&mut buffer) {
            lines.feed(buffer.get(..read).unwrap_or_default(), |piece| evidence.debug_line(piece));
        }
    }
    evidence
}

type Senders = (watch::Sender<Evidence>, watch::Sender<Option<Trouble>>, watch::Sender<LogReport>);

async fn follow(
    mut logs: Logs,
    [mut debug, mut output]: [Subscription; 2],
    (tx, trouble, report): Senders,
    mut requests: mpsc::Receiver<oneshot::Sender<Evidence>>,
) {
    let mut asked: Vec<oneshot::Sender<Evidence>> = Vec::new();
    let mut is_first = true;
    let began = tokio::time::Instant::now();
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
        report.send_if_modified(|known| {
            let changed = known.version() != logs.report.version();
            if changed {
                known.clone_from(&logs.report);
            }
            changed
        });
        // The first state is reported even if nothing is wrong: an earlier watch may have reported
        // trouble.
        let is_news = !more && std::mem::take(&mut is_first);
        trouble.send_if_modified(|known| {
            std::mem::replace(known, logs.trouble) != logs.trouble || is_news
        });
        if more {
            if requests.is_closed() {
                return; // the next watch reads the rest
            }
            continue;
        }
        for answer in asked.drain(..) {
            let _ = answer.send(logs.concluded()); // the caller has gone: fine
        }
        let is_starting =
            logs.evidence.readiness() == Readiness::Waiting && began.elapsed() < START;
        let breath = if is_starting { START_BREATH } else { BREATH };
        let rested = tokio::time::Instant::now() + breath;
        let written = async {
            tokio::select! {
                _ = debug.changed() => {}
                _ = output.changed() => {}
            }
            tokio::time::sleep_until(rested).await;
        };
        tokio::select! {
            () = written => {}
            request = requests.recv() => match request {
                Some(answer) => asked.push(answer),
                None => return,
            },
        }
        while let Ok(answer) = requests.try_recv() {
            asked.push(answer);
        }
    }
}

/// Both files and the evidence in them.
struct Logs {
    debug: Reader,
    output: Reader,
    /// The redacted copy of the debug file, if there is one.
    mirror: Option<Mirror>,
    evidence: Evidence,
    report: LogReport,
    limits: Option<Limits>,
    trouble: Option<Trouble>,
    /// Given up last, when nothing of this writes any more.
    keeping: Option<Keeping>,
}

struct Reader {
    file: GrowingFile,
    lines: LogLines,
    complained: bool,
    /// The trouble of the last attempt to keep the file small.
    trouble: Option<Trouble>,
}

impl Reader {
    fn new(path: std::path::PathBuf) -> Self {
        Self {
            file: GrowingFile::new(path, 0),
            lines: LogLines::new(),
            complained: false,
            trouble: None,
        }
    }

    /// Reads the next part. Returns whether there may be more to read.
    fn round(&mut self, mut each: impl FnMut(LogPiece<'_>)) -> bool {
        let mut buffer = vec![0; CHUNK];
        let mut left = ROUND;
        while left > 0 {
            match self.file.read(&mut buffer) {
                ReadResult::Bytes(read) => {
                    self.lines.feed(buffer.get(..read).unwrap_or_default(), &mut each);
                    left = left.saturating_sub(read as u64);
                    if self.file.behind() > FLOOD {
                        return true;
                    }
                }
                // Earlier evidence stays: a rotation does not undo a registration.
                ReadResult::Restarted => self.lines = LogLines::new(),
                ReadResult::UpToDate | ReadResult::Missing => return false,
                ReadResult::Unusable(error) => {
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

    /// Keeps the file below its limit. Lines are read before they are removed.
    fn keep_small(
        &mut self,
        limits: Limits,
        mut mirror: Option<&mut Mirror>,
        mut each: impl FnMut(LogPiece<'_>),
    ) {
        let is_large = self.file.offset() >= limits.max_bytes || self.file.behind() > FLOOD;
        let Some(identity) = self.file.identity().filter(|_| is_large) else { return };
        // Between two lines if possible: then no line is torn.
        let can_wait =
            self.file.offset() < limits.max_bytes.saturating_mul(2) && self.file.behind() <= FLOOD;
        if self.lines.is_open() && can_wait {
            return;
        }
        let (cut, trouble) = match plan(self.file.path(), identity, limits) {
            Ok(Plan::Nothing) | Err(_) => return,
            Ok(Plan::Stuck(trouble)) => {
                self.trouble = Some(trouble);
                return;
            }
            Ok(Plan::Drop(cut, trouble)) => {
                self.round(&mut each);
                if let Some(mirror) = &mut mirror {
                    let mut rounds = MIRROR_ROUNDS;
                    mirror.catch_up(&mut rounds);
                }
                (cut, trouble)
            }
            Ok(Plan::Copy(cut, copying)) => {
                let done = self.copy(&cut, copying, mirror.as_deref_mut(), &mut each);
                (cut, done.err().map(|_| Trouble::NoSpace))
            }
        };
        let removed = match cut.truncate() {
            Ok(removed) => removed,
            Err(error) => {
                tracing::warn!(
                    path = %self.file.path().display(), error = %error, "a log cannot be truncated"
                );
                return;
            }
        };
        self.trouble = trouble;
        self.file.go_to(0);
        if let Some(mirror) = mirror {
            mirror.raw_was_truncated(removed);
        }
    }

    fn copy(
        &mut self,
        cut: &Cut,
        mut copying: Copying,
        mut mirror: Option<&mut Mirror>,
        mut each: impl FnMut(LogPiece<'_>),
    ) -> std::io::Result<()> {
        copying.catch_up(cut)?;
        copying.put_in_place()?;
        let mut quiet = 0;
        let mut mirror_rounds = MIRROR_ROUNDS;
        for _ in 0..TRIES {
            self.catch_up(copying.end(), &mut each);
            if let Some(mirror) = &mut mirror {
                mirror.catch_up(&mut mirror_rounds);
            }
            // Last, so that little can be written between this and the truncation.
            quiet = if copying.catch_up(cut)? == 0 { quiet + 1 } else { 0 };
            if quiet == 2 {
                break;
            }
        }
        Ok(())
    }

    /// Reads to the end. Skips lines if there are too many to read in time.
    fn catch_up(&mut self, end: u64, mut each: impl FnMut(LogPiece<'_>)) {
        if end.saturating_sub(self.file.offset()) > FLOOD {
            self.file.go_to(end);
            self.lines = LogLines::new();
        }
        self.round(&mut each);
    }
}

impl Logs {
    fn new(set: &LogSet, evidence: Evidence, limits: Option<Limits>) -> Self {
        let mirror = limits.filter(|_| set.is_mirrored()).map(|limits| Mirror::new(set, limits));
        Self {
            debug: Reader::new(set.agent_file()),
            output: Reader::new(set.output_file()),
            mirror,
            evidence,
            report: LogReport::default(),
            limits,
            trouble: None,
            keeping: None,
        }
    }

    fn round(&mut self) -> bool {
        let Self { debug, output, mirror, evidence, report, limits, trouble, keeping: _ } = self;
        let by = last_write(debug.file.path());
        let mut more = debug.round(|piece| {
            evidence.debug_line(piece);
            report.debug_line(piece, by);
        });
        let written_at = last_write(output.file.path());
        more |= output.round(|piece| {
            evidence.output_line(piece);
            report.output_line(piece, written_at);
        });
        if let Some(mirror) = mirror {
            more |= mirror.round();
        }
        if let Some(limits) = *limits {
            debug.keep_small(limits, mirror.as_mut(), |piece| {
                evidence.debug_line(piece);
                report.debug_line(piece, None);
            });
            output.keep_small(limits, None, |piece| {
                evidence.output_line(piece);
                report.output_line(piece, written_at);
            });
            let of_mirror = mirror.as_ref().and_then(Mirror::trouble);
            *trouble = debug.trouble.or(output.trouble).or(of_mirror);
        }
        more
    }

    /// The evidence at the end: a last line counts without a line end.
    fn concluded(&self) -> Evidence {
        let mut evidence = self.evidence.clone();
        self.debug.lines.clone().finish(|piece| evidence.debug_line(piece));
        self.output.lines.clone().finish(|piece| evidence.output_line(piece));
        evidence
    }
}
