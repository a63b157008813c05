//! Readiness evidence from files that grow, break and vanish.

#![expect(clippy::unwrap_used, reason = "a helper that cannot set up fails its test")]

use std::fs::{self, File};
use std::io::Write as _;
use std::time::Duration;
use svc_agent::debug_watch::{DebugWatch, scan};
use svc_agent::log_set::LogSet;
use svc_domain::agent_log::evidence::{Evidence, Readiness, Refusal};
use svc_shared::Timestamp;
use svc_watch::Watcher;

const REGISTERED: &str = "2026-01-02T03:04:05.678Z [DEBUG] [bridge:init] Registered, server environmentId=env_01ABCdef\n";
const SESSION: &str =
    "2026-01-02T03:04:05.679Z [DEBUG] [bridge:init] Created initial session session_01ABCdef\n";
const POLLING: &str = "2026-01-02T03:04:05.680Z [DEBUG] [bridge:work] Starting poll loop \
     spawnMode=same-dir maxSessions=32 environmentId=env_01ABCdef\n";

struct Bench {
    _root: tempfile::TempDir,
    set: LogSet,
}

impl Bench {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let now = Timestamp::from_millis(7);
        let set =
            LogSet::create(&root.path().join("logs"), &"p".parse().unwrap(), now, false).unwrap();
        Self { _root: root, set }
    }

    /// As the agent does it: open, append, close.
    fn say(&self, text: impl AsRef<[u8]>) {
        let mut file = File::options().append(true).create(true).open(self.set.debug_file());
        file.as_mut().unwrap().write_all(text.as_ref()).unwrap();
    }
}

async fn until(watch: &DebugWatch, wanted: Readiness) -> Evidence {
    let mut changes = watch.changes();
    let waiting = changes.wait_for(|evidence| evidence.readiness() == wanted);
    let waited = tokio::time::timeout(Duration::from_secs(60), waiting).await;
    waited.unwrap().unwrap().clone()
}

#[tokio::test]
async fn a_start_is_followed_until_it_is_ready() {
    for watcher in [Watcher::new(), Watcher::by_timer()] {
        let bench = Bench::new();
        let watch = DebugWatch::start(&watcher, &bench.set, Evidence::default(), None);
        assert_eq!(watch.evidence().readiness(), Readiness::Waiting);
        bench.say(REGISTERED);
        bench.say(SESSION);
        bench.say(POLLING);
        let evidence = until(&watch, Readiness::Ready).await;
        assert_eq!(evidence.environment.unwrap().expose(), "env_01ABCdef");
    }
}

/// F35.
#[tokio::test]
async fn markers_are_recognised_however_they_are_written() {
    let bench = Bench::new();
    let watch = DebugWatch::start(&Watcher::new(), &bench.set, Evidence::default(), None);
    bench.say("\u{feff}");
    bench.say(REGISTERED.replace('\n', "\r\n"));
    bench.say(b"\0\0\0");
    bench.say(SESSION);
    let (begin, rest) = POLLING.split_at(60);
    bench.say(begin);
    watch.caught_up().await;
    bench.say(rest);
    until(&watch, Readiness::Ready).await;
}

/// F36: what was said before the file was tampered with still counts.
#[tokio::test]
async fn evidence_survives_truncation_deletion_and_replacement_of_the_file() {
    let bench = Bench::new();
    let watch = DebugWatch::start(&Watcher::new(), &bench.set, Evidence::default(), None);
    bench.say(format!("{REGISTERED}{}", "noise\n".repeat(50)));
    watch.caught_up().await;
    fs::write(bench.set.debug_file(), SESSION).unwrap();
    watch.caught_up().await;
    fs::remove_file(bench.set.debug_file()).unwrap();
    watch.caught_up().await;
    assert_eq!(watch.evidence().readiness(), Readiness::Waiting);
    let aside = bench.set.directory().join("aside");
    fs::write(&aside, POLLING).unwrap();
    fs::rename(&aside, bench.set.debug_file()).unwrap();
    until(&watch, Readiness::Ready).await;
}

#[tokio::test]
async fn a_refusal_on_the_captured_output_is_seen() {
    let bench = Bench::new();
    let watch = DebugWatch::start(&Watcher::new(), &bench.set, Evidence::default(), None);
    fs::write(bench.set.output_file(), "Error: Workspace not trusted. Please run claude\n")
        .unwrap();
    until(&watch, Readiness::Refused(Refusal::TrustRequired)).await;
}

#[tokio::test]
async fn after_an_exit_the_last_words_are_read_even_without_a_line_end() {
    let bench = Bench::new();
    let watch = DebugWatch::start(&Watcher::by_timer(), &bench.set, Evidence::default(), None);
    bench.say(format!("{REGISTERED}{SESSION}{}", POLLING.trim_end()));
    assert_eq!(watch.caught_up().await.readiness(), Readiness::Ready);
    assert_eq!(scan(&bench.set).readiness(), Readiness::Ready);
}

/// F58: a giant line neither hides what follows nor is held.
#[tokio::test]
async fn a_flood_without_line_ends_does_not_hide_the_markers_around_it() {
    let bench = Bench::new();
    let watch = DebugWatch::start(&Watcher::new(), &bench.set, Evidence::default(), None);
    bench.say(format!("{REGISTERED}{SESSION}"));
    bench.say(vec![b'x'; 20 * 1024 * 1024]);
    bench.say(format!("\n{POLLING}"));
    until(&watch, Readiness::Ready).await;
}
