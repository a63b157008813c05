//! Tests of reading and following logs, with real files.

use super::*;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

mod follow;
mod pages;

/// Far beyond any machine's latency; only reached when the test fails.
const DEADLINE: Duration = Duration::from_secs(60);

struct Bench {
    dir: TempDir,
    log: Arc<Log>,
    watcher: Watcher,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let log = Arc::new(Log::new(dir.path().join("p-1-1.log"), Colours::new(|| Colour::Strip)));
        Self { dir, log, watcher: Watcher::new() }
    }

    fn with(text: impl AsRef<[u8]>) -> Self {
        let bench = Self::new();
        fs::write(bench.path(), text).unwrap();
        bench
    }

    fn path(&self) -> &Path {
        &self.log.path
    }

    fn rotated(&self, number: u32) -> std::path::PathBuf {
        self.dir.path().join(format!("p-1-1.log.{number}"))
    }

    fn append(&self, text: impl AsRef<[u8]>) {
        let mut file = File::options().append(true).create(true).open(self.path()).unwrap();
        file.write_all(text.as_ref()).unwrap();
    }

    /// Rotates as the service does: renumbers old copies, copies, truncates.
    fn rotate(&self) {
        for number in (1..10).rev().filter(|number| self.rotated(*number).exists()) {
            fs::rename(self.rotated(number), self.rotated(number + 1)).unwrap();
        }
        fs::copy(self.path(), self.rotated(1)).unwrap();
        File::options().write(true).open(self.path()).unwrap().set_len(0).unwrap();
    }

    fn page(&self, part: Part) -> Page {
        self.log.page(part, Writer::Lives).unwrap().unwrap()
    }

    /// All lines, by a reader that never saw the files before.
    fn all(&self) -> Vec<String> {
        let log = Arc::new(Log::new(self.path().to_owned(), self.log.colours.clone()));
        log.page(Part::Tail(u64::MAX), Writer::Lives).unwrap().unwrap().lines
    }

    fn view(&self, begin: Begin) -> Viewer {
        self.log.view(begin, &self.watcher)
    }
}

async fn next(viewer: &mut Viewer) -> TailItem {
    let item = tokio::time::timeout(DEADLINE, viewer.next()).await.expect("nothing is shown");
    item.unwrap().expect("the log has ended")
}

/// The next line, which has to come before anything else.
async fn line(viewer: &mut Viewer) -> String {
    match next(viewer).await {
        TailItem::Line { text, .. } => text.to_string(),
        other => panic!("{other:?} instead of a line"),
    }
}

/// Until it sits at the tailer. There must be nothing to show.
async fn live(viewer: &mut Viewer) {
    let deadline = tokio::time::Instant::now() + DEADLINE;
    while !viewer.is_live() {
        assert!(tokio::time::Instant::now() < deadline, "never live");
        tokio::select! {
            biased;
            item = viewer.next() => panic!("{item:?} from nowhere"),
            () = tokio::task::yield_now() => {}
        }
    }
}

/// Pieces as one log with distinct lines, as the agent's are by their times.
/// Equal bytes could be copies of each other.
fn distinct(pieces: Vec<Vec<u8>>) -> Vec<u8> {
    let numbered = pieces.into_iter().enumerate();
    numbered.flat_map(|(n, piece)| [format!("{n}.").into_bytes(), piece].concat()).collect()
}

async fn lines(viewer: &mut Viewer, count: usize) -> Vec<String> {
    let mut lines = Vec::new();
    while lines.len() < count {
        lines.push(line(viewer).await);
    }
    lines
}
