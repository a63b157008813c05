//! Rotation and the redacted copy, with real files and a writer beside the reader.

#![expect(clippy::unwrap_used, reason = "a helper that cannot set up fails its test")]

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use svc_agent::debug_watch::{DebugWatch, rotated};
use svc_agent::log_set::LogSet;
use svc_agent::log_tail::{Begin, Colours, LogTails, Part, TailItem, Writer};
use svc_agent::rotation::{Limits, Trouble};
use svc_domain::agent_log::evidence::{Evidence, Readiness};
use svc_domain::redact::Colour;
use svc_shared::Timestamp;
use svc_watch::Watcher;

const DEADLINE: Duration = Duration::from_secs(60);

const READY: &str = "2026-03-01T10:20:30.123Z [DEBUG] [bridge:init] Created initial session \
    session_01AB23CD45EF\n2026-03-01T10:20:30.124Z [DEBUG] [bridge:work] Starting poll loop \
    spawnMode=same-dir maxSessions=32 environmentId=env_01AB23CD45EF\n";

struct Bench {
    _root: tempfile::TempDir,
    dir: PathBuf,
    set: LogSet,
    watcher: Watcher,
}

impl Bench {
    fn new(mirrored: bool) -> Self {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("logs");
        let now = Timestamp::from_millis(7);
        let set = LogSet::create(&dir, &"p".parse().unwrap(), now, mirrored).unwrap();
        Self { _root: root, dir, set, watcher: Watcher::new() }
    }

    fn watch(&self, limits: Limits) -> DebugWatch {
        DebugWatch::start(&self.watcher, &self.set, Evidence::default(), Some(limits))
    }

    /// As the agent does it: open, append, close.
    fn append(&self, text: impl AsRef<[u8]>) {
        append(&self.set.agent_file(), text);
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut name = self.set.agent_file().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }

    fn bytes(&self) -> u64 {
        let files = fs::read_dir(&self.dir).unwrap();
        // A rotation may rename or delete a file between the list and the look.
        files.filter_map(|file| Some(file.unwrap().metadata().ok()?.len())).sum()
    }

    /// The numbers of the lines in the redacted copy and its rotated files.
    fn copied_numbers(&self) -> Vec<usize> {
        let public = self.set.debug_file();
        let older = (1..=5).rev().map(|number| {
            let mut name = public.clone().into_os_string();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        });
        let files = older.chain([public.clone()]).filter(|path| path.exists());
        let text: String = files.map(|path| fs::read_to_string(path).unwrap()).collect();
        text.lines().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
    }

    /// All lines that people can read, by somebody who comes now.
    fn lines(&self) -> Vec<String> {
        let log = LogTails::new(Colours::new(|| Colour::Strip)).log(&self.set);
        log.page(Part::Tail(u64::MAX), Writer::Gone).unwrap().unwrap().lines
    }
}

fn append(path: &Path, text: impl AsRef<[u8]>) {
    let mut file = File::options().append(true).create(true).open(path).unwrap();
    file.write_all(text.as_ref()).unwrap();
}

async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let seen = tokio::time::timeout(DEADLINE, async {
        loop {
            if let Some(seen) = look() {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    seen.await.unwrap_or_else(|_| panic!("never seen: {what}"))
}

fn limits(max_bytes: u64, keep: u32) -> Limits {
    Limits { max_bytes, keep }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_rotated_in_place_and_a_viewer_loses_no_line() {
    let bench = Bench::new(false);
    let watch = bench.watch(limits(50_000, 3));
    let inode = fs::metadata(bench.set.debug_file()).unwrap().ino();
    let log = LogTails::new(Colours::new(|| Colour::Strip)).log(&bench.set);
    let mut viewer = log.view(Begin::Oldest, &bench.watcher);
    bench.append(READY);
    let mut shown = 0;
    let (mut rotated, mut cursor) = (0, 0);
    for n in 0..400 {
        // What is written in the very moment of a cut may be lost: `agent-cli` §12 tolerates it.
        let has_room = || fs::metadata(bench.set.debug_file()).unwrap().len() < 50_000;
        until("a cut", || has_room().then_some(())).await;
        bench.append(format!("line {n} {}\n", "x".repeat(400)));
        loop {
            match tokio::time::timeout(DEADLINE, viewer.next()).await.unwrap().unwrap().unwrap() {
                TailItem::Line { end, text } => {
                    assert!(end > cursor, "a cursor never goes back");
                    cursor = end;
                    if let Some(rest) = text.strip_prefix("line ") {
                        assert!(rest.starts_with(&format!("{shown} ")), "{shown}: {rest:.20}");
                        shown += 1;
                        break;
                    }
                }
                TailItem::Rotated { .. } => rotated += 1,
                TailItem::Gap => panic!("a gap"),
            }
        }
    }
    assert!(rotated >= 2, "{rotated} rotations were shown");
    until("the rotated files", || bench.numbered(3).exists().then_some(())).await;
    let facts = fs::metadata(bench.set.debug_file()).unwrap();
    assert_eq!(facts.ino(), inode, "the agent's file is never moved");
    for number in 1..=3 {
        let facts = fs::metadata(bench.numbered(number)).unwrap();
        assert_eq!(facts.permissions().mode() & 0o777, 0o600);
    }
    assert!(!bench.numbered(4).exists());
    assert_eq!(watch.caught_up().await.readiness(), Readiness::Ready, "what was said stays said");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_rotated_files_a_log_is_only_emptied() {
    let bench = Bench::new(false);
    let watch = bench.watch(limits(10_000, 0));
    append(&bench.set.output_file(), format!("{}\n", "o".repeat(20_000)));
    bench.append(format!("{READY}{}\n", "x".repeat(20_000)));
    let empty = |path: PathBuf| move || fs::metadata(&path).unwrap().len().eq(&0).then_some(());
    until("an empty log", empty(bench.set.debug_file())).await;
    until("an empty output", empty(bench.set.output_file())).await;
    assert_eq!(fs::read_dir(&bench.dir).unwrap().count(), 2);
    assert_eq!(watch.caught_up().await.readiness(), Readiness::Ready);
}

/// F60: a writer at full speed.
/// The set never holds more than the limits and what was written between two checks.
#[tokio::test(flavor = "multi_thread")]
async fn f60_a_flood_stays_within_the_limits_of_the_set() {
    const MIB: u64 = 1024 * 1024;
    let bench = Bench::new(false);
    let watch = bench.watch(limits(MIB, 3));
    bench.append(READY);
    watch.caught_up().await;
    let line = format!("2026-03-01T10:20:30.123Z [DEBUG] {}\n", "y".repeat(8000));
    for _ in 0..5 {
        for _ in 0..40 {
            bench.append(line.repeat(128));
        }
        assert!(bench.bytes() <= 4 * MIB + 64 * MIB, "{} bytes", bench.bytes());
        let log = bench.set.debug_file();
        until("a cut", || (fs::metadata(&log).unwrap().len() < MIB).then_some(())).await;
        assert!(bench.bytes() <= 4 * MIB + 8 * MIB, "{} bytes", bench.bytes());
    }
    assert!(bench.numbered(1).exists());
    assert_eq!(watch.evidence().readiness(), Readiness::Ready);
}

/// A writer that does not append leaves a hole after a truncation; one is enough.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_regrows_sparse_is_left_alone_and_said() {
    let bench = Bench::new(false);
    let watch = bench.watch(limits(100_000, 2));
    let writer = File::options().write(true).open(bench.set.output_file()).unwrap();
    let text = format!("{}\n", "z".repeat(120_000));
    writer.write_all_at(text.as_bytes(), 0).unwrap();
    let output = bench.set.output_file();
    until("a truncation", || (fs::metadata(&output).unwrap().len() == 0).then_some(())).await;
    writer.write_all_at(text.as_bytes(), text.len() as u64).unwrap();
    let mut trouble = watch.trouble();
    let seen = tokio::time::timeout(DEADLINE, trouble.wait_for(Option::is_some)).await;
    assert_eq!(*seen.unwrap().unwrap(), Some(Trouble::Sparse));
    assert_eq!(fs::metadata(&output).unwrap().len(), 2 * text.len() as u64);
}

/// Or else a notice of the time before a restart would stay.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_look_is_told_also_when_nothing_is_wrong() {
    let bench = Bench::new(false);
    let watch = bench.watch(limits(100_000, 2));
    let mut trouble = watch.trouble();
    tokio::time::timeout(DEADLINE, trouble.changed()).await.unwrap().unwrap();
    assert_eq!(*trouble.borrow(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_rotated_away_is_read_again_after_a_restart() {
    let bench = Bench::new(false);
    let first = bench.watch(limits(10_000, 5));
    bench.append(READY);
    bench.append(format!("{}\n", "x".repeat(20_000)));
    until("a rotation", || bench.numbered(1).exists().then_some(())).await;
    first.caught_up().await;
    drop(first);
    assert_eq!(rotated(&bench.set).readiness(), Readiness::Ready);
    assert_eq!(svc_agent::debug_watch::scan(&bench.set).readiness(), Readiness::Ready);
    assert!(bench.set.debug_tail().ends_with("xxx\n"), "the last words are there too");
}

/// What a rotation tore in two, with a restart in between, is not shown in halves.
#[tokio::test(flavor = "multi_thread")]
async fn half_a_line_never_reaches_the_redacted_copy() {
    let bench = Bench::new(true);
    let watch = bench.watch(limits(1_000, 3));
    bench.append(format!("{}\n{} session_01AB", "a".repeat(900), "b".repeat(1_200)));
    until("a rotation", || bench.numbered(1).exists().then_some(())).await;
    watch.caught_up().await;
    drop(watch);
    bench.append("23CD45\nwhole\n");
    let watch = bench.watch(limits(1_000, 3));
    watch.caught_up().await;
    until("the last line", || bench.lines().iter().any(|l| l == "whole").then_some(())).await;
    assert_eq!(
        bench.lines(),
        ["a".repeat(900), "…[line truncated 6 bytes]".into(), "whole".into()]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redacted_copy_has_each_line_once_over_restarts_and_rotations() {
    let bench = Bench::new(true);
    let raw = bench.set.agent_file();
    assert!(raw.to_string_lossy().ends_with(".raw.log"));
    let mut wanted = Vec::new();
    for round in 0..6 {
        let watch = bench.watch(limits(20_000, 9));
        for n in 0..40 {
            bench.append(format!("{round}.{n} session_01AB23CD45 {}\n", "x".repeat(300)));
            wanted.push(format!("{round}.{n} session_<redacted> {}", "x".repeat(300)));
        }
        watch.caught_up().await;
        // Its end comes while another service reads.
        bench.append(format!("{round} open env_01AB"));
        watch.caught_up().await;
        watch.end().await;
        bench.append("23CD45\n");
        wanted.push(format!("{round} open env_<redacted>"));
    }
    let watch = bench.watch(limits(20_000, 9));
    watch.caught_up().await;
    until("the last line", || (bench.lines().len() == wanted.len()).then_some(())).await;
    for (line, wanted) in bench.lines().iter().zip(&wanted) {
        assert!(line == wanted, "{line:.40} instead of {wanted:.40}");
    }
    assert!(bench.numbered(1).exists(), "the raw file is kept small as well");
    for file in fs::read_dir(&bench.dir).unwrap() {
        let path = file.unwrap().path();
        let is_raw = path.to_string_lossy().contains(".raw.log");
        let text = fs::read_to_string(&path).unwrap();
        assert!(is_raw || !text.contains("01AB23CD45"), "{path:?}");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{path:?}");
    }
}

/// The service was down while the agent wrote more than the copy takes in one part.
#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_waits_for_the_redacted_copy() {
    let bench = Bench::new(true);
    bench.append(numbered_lines(5_000));
    let watch = bench.watch(limits(16 * 1024 * 1024, 5));
    watch.caught_up().await;
    watch.end().await;
    assert_eq!(fs::metadata(bench.set.agent_file()).unwrap().len(), 0, "it was rotated");
    assert!(bench.copied_numbers().into_iter().eq(0..5_000), "each line once, in order");
}

/// A dropped watch still ends the part that it copies.
#[tokio::test(flavor = "multi_thread")]
async fn a_watch_waits_for_the_dropped_one_before_it() {
    let bench = Bench::new(true);
    bench.append(numbered_lines(3_000));
    let watch = bench.watch(limits(1024 * 1024 * 1024, 5));
    let public = bench.set.debug_file();
    until("a copy under way", || (fs::metadata(&public).unwrap().len() > 0).then_some(())).await;
    drop(watch);
    let watch = bench.watch(limits(1024 * 1024 * 1024, 5));
    watch.caught_up().await;
    watch.end().await;
    assert!(bench.copied_numbers().into_iter().eq(0..3_000), "each line once, in order");
}

/// With one thread the watch begins to read after it was told to end.
#[tokio::test]
async fn a_watch_that_is_to_end_does_not_read_all_first() {
    let bench = Bench::new(true);
    bench.append(numbered_lines(3_000));
    bench.watch(limits(1024 * 1024 * 1024, 5)).end().await;
    let copied = bench.copied_numbers().len();
    assert!(copied < 3_000, "{copied} lines were copied");
}

fn numbered_lines(count: usize) -> String {
    (0..count).map(|n| format!("{n} {}\n", "y".repeat(8_000))).collect()
}
