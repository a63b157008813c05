//! Tests of log pages and following, over a real registry and real files.

use super::*;
use crate::App;
use crate::bench::{ID, Still, app, bridge};
use std::fs::File;
use std::io::Write as _;
use std::time::Duration;
use svc_agent::log_set::LogSet;
use svc_domain::bridge::{Ended, Launch, Live, Outcome, Stage as Came, State};
use svc_domain::identity::LaunchId;
use svc_ports::Clock;
use svc_process::{Host, HostOptions};
use svc_store::{Cap, Content, Inserted, Saved};
use tempfile::TempDir;

/// Far beyond any machine's latency; only reached when the test fails.
const DEADLINE: Duration = Duration::from_secs(60);

const NO_CAP: Cap = Cap { max_live: None };

struct Bench {
    _tree: TempDir,
    app: App,
    revision: i64,
    bridge: Bridge,
}

impl Bench {
    /// A live bridge of generation 1 whose log holds `text`.
    async fn new(text: &str) -> Self {
        let tree = tempfile::tempdir().unwrap();
        let app = app(tree.path(), Arc::new(Host::new(HostOptions::default()).unwrap())).await;
        let bridge = Bridge { launch: Some(launch(&app)), ..bridge(tree.path()) };
        let inserted = app.registry().store.insert(&bridge, NO_CAP, Still.now()).await.unwrap();
        assert_eq!(inserted, Inserted::Yes);
        let bench = Self { _tree: tree, app, revision: 1, bridge };
        bench.append(text);
        bench
    }

    fn append(&self, text: &str) {
        let path = crate::log_files::set_of(self.app.settings(), &self.bridge).unwrap();
        let mut file = File::options().append(true).open(path.debug_file()).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    /// As the supervisor does after each write.
    async fn change(&mut self, change: impl FnOnce(&App, &mut Bridge)) {
        change(&self.app, &mut self.bridge);
        let store = &self.app.registry().store;
        let saved = store.save(self.revision, &self.bridge, &[], NO_CAP, Still.now()).await;
        assert!(matches!(saved.unwrap(), Saved::Yes(_)));
        let stored = self.app.registry().store.bridge(&self.bridge.id).await.unwrap().unwrap();
        assert!(matches!(&stored.content, Content::Bridge(bridge) if **bridge == self.bridge));
        self.revision = stored.revision;
        self.app.copies().learn(stored);
    }

    async fn follow(&self, start: LogStart) -> LogSubscription {
        self.app.logs().follow(ID, start).await.unwrap()
    }

    async fn page(&self, query: LogQuery) -> LogPage {
        self.app.logs().page(ID, query).await.unwrap()
    }
}

fn live() -> State {
    State::Live(Live { stage: Came::Ready, stop_requested: false })
}

fn end(_: &App, bridge: &mut Bridge) {
    bridge.state = State::Ended(Ended {
        outcome: Outcome::Crashed,
        at: Still.now(),
        intentional: false,
        forced: false,
        reason: None,
        exit_code: None,
        exit_signal: None,
        detail: None,
    });
}

fn resume(app: &App, bridge: &mut Bridge) {
    bridge.generation += 1;
    bridge.state = live();
    bridge.launch = Some(launch(app));
}

fn launch(app: &App) -> Launch {
    let set = LogSet::create(
        &crate::log_files::directory(app.settings()),
        &"api".parse().unwrap(),
        Still.now(),
        false,
    )
    .unwrap();
    Launch {
        id: "0".repeat(32).parse::<LaunchId>().unwrap(),
        argv: svc_domain::argv::Argv::default(),
        log_stem: set.stem().to_owned(),
        relaunched: false,
    }
}

async fn next(log: &mut LogSubscription) -> Option<LogItem> {
    tokio::time::timeout(DEADLINE, log.next()).await.expect("nothing is told")
}

/// The next item as `cursor text`, `mark generation` or `closed code`.
async fn told(log: &mut LogSubscription) -> String {
    match next(log).await.unwrap() {
        LogItem::Frame(LogFrame::Line { cursor, text }) => format!("{cursor} {text}"),
        LogItem::Frame(LogFrame::Mark { kind, generation, at }) => {
            // An end carries the time of the record, not of the reader.
            assert!(kind != MarkKind::Ended || at == Some(Still.now()), "{at:?}");
            format!("{kind:?} {generation}").to_lowercase()
        }
        LogItem::Frame(LogFrame::Output { generation, lines }) => {
            format!("output {generation} {}", lines.join("|"))
        }
        LogItem::Closed(code, word) => format!("closed {code} {}", word.as_str()),
    }
}

#[tokio::test]
async fn what_the_process_printed_comes_after_its_log_and_before_the_end() {
    let mut bench = Bench::new("one\n").await;
    let set = crate::log_files::set_of(bench.app.settings(), &bench.bridge).unwrap();
    let output = set.output_file();
    std::fs::write(output, "hello\nfatal: no disk ghp_0123456789abcdefghij\n").unwrap();
    let mut log = bench.follow(LogStart::Tail(1000)).await;
    assert_eq!(told(&mut log).await, "1:4 one");
    bench.change(end).await;
    assert_eq!(told(&mut log).await, "output 1 hello|fatal: no disk <redacted>");
    assert_eq!(told(&mut log).await, "ended 1");
    let page = bench.page(LogQuery { tail: 1000, ..LogQuery::default() }).await;
    assert_eq!((page.lines.len(), page.output.len()), (1, 2));
    bench.change(resume).await;
    assert_eq!(told(&mut log).await, "resumed 2");
    let page = bench.page(LogQuery { tail: 1000, ..LogQuery::default() }).await;
    assert!(page.output.is_empty(), "it lives");
}

#[tokio::test]
async fn a_follower_sees_end_and_resume_of_the_row() {
    let mut bench = Bench::new("one\n").await;
    let mut log = bench.follow(LogStart::Tail(1000)).await;
    assert_eq!(told(&mut log).await, "1:4 one");
    bench.append("two\nlast wor");
    assert_eq!(told(&mut log).await, "1:8 two");
    bench.append("ds env_01AB23CD45");
    bench.change(end).await;
    assert_eq!(told(&mut log).await, "1:33 last words env_<redacted>");
    assert_eq!(told(&mut log).await, "ended 1");
    bench.change(resume).await;
    assert_eq!(told(&mut log).await, "resumed 2");
    bench.append("again\n");
    assert_eq!(told(&mut log).await, "2:6 again");
}

#[tokio::test]
async fn a_resume_before_anybody_looked_loses_nothing_of_the_generation_before() {
    let mut bench = Bench::new("one\n").await;
    let mut log = bench.follow(LogStart::Tail(1000)).await;
    assert_eq!(told(&mut log).await, "1:4 one");
    bench.append("two\nthree\n");
    bench.change(end).await;
    bench.change(resume).await;
    bench.append("new\n");
    assert_eq!(told(&mut log).await, "1:8 two");
    assert_eq!(told(&mut log).await, "1:14 three");
    assert_eq!(told(&mut log).await, "resumed 2");
    assert_eq!(told(&mut log).await, "2:4 new");
}

#[tokio::test]
async fn an_ended_bridge_is_shown_and_waited_for() {
    let mut bench = Bench::new("one\ntwo\n").await;
    bench.change(end).await;
    let mut log = bench.follow(LogStart::Tail(4)).await;
    assert_eq!(told(&mut log).await, "1:8 two");
    assert_eq!(told(&mut log).await, "ended 1");
    tokio::select! {
        biased;
        item = log.next() => panic!("{item:?} from nowhere"),
        () = tokio::task::yield_now() => {}
    }
    bench.change(resume).await;
    assert_eq!(told(&mut log).await, "resumed 2");
}

#[tokio::test]
async fn a_cursor_of_an_earlier_generation_goes_on_with_the_present_one() {
    let mut bench = Bench::new("one\n").await;
    bench.change(end).await;
    bench.change(resume).await;
    bench.append("new\n");
    let mut log = bench.follow(LogStart::Cursor("1:4".into())).await;
    assert_eq!(told(&mut log).await, "resumed 2");
    assert_eq!(told(&mut log).await, "2:4 new");
    let page =
        bench.page(LogQuery { tail: 100, cursor: Some("1:4".into()), ..LogQuery::default() }).await;
    assert_eq!((page.lines, page.cursor.as_str()), (vec!["new".to_owned()], "2:4"));
    let before = LogQuery { tail: 100, before: Some("1:4".into()), ..LogQuery::default() };
    let page = bench.page(before).await;
    assert_eq!((page.lines.len(), page.first), (0, None));
}

#[tokio::test]
async fn a_forgotten_bridge_and_a_shutdown_close_the_view() {
    let bench = Bench::new("one\n").await;
    let mut first = bench.follow(LogStart::Tail(1000)).await;
    let mut second = bench.follow(LogStart::Tail(1000)).await;
    assert_eq!(told(&mut first).await, "1:4 one");
    bench.app.copies().forget(&bench.bridge.id);
    assert_eq!(told(&mut first).await, "closed 4404 unknown_instance");
    assert_eq!(next(&mut first).await, None);
    bench.app.shutdown().cancel();
    assert_eq!(told(&mut second).await, "closed 1001 shutting_down");
    assert_eq!(next(&mut second).await, None);
}

#[tokio::test]
async fn a_live_bridge_without_a_log_is_waited_for() {
    let mut bench = Bench::new("").await;
    let launch = bench.bridge.launch.clone();
    bench.change(|_, bridge| bridge.launch = None).await;
    let mut log = bench.follow(LogStart::Tail(1000)).await;
    tokio::select! {
        biased;
        item = log.next() => panic!("{item:?} from nowhere"),
        () = tokio::task::yield_now() => {}
    }
    bench.change(|_, bridge| bridge.launch = launch).await;
    bench.append("one\n");
    assert_eq!(told(&mut log).await, "1:4 one");
}

#[tokio::test]
async fn pages_read_forwards_and_backwards() {
    let bench = Bench::new("one\ntwo\nthree ghp_abcdefghijklmnopqrst\nunfin").await;
    let page = bench.page(LogQuery { tail: 36, ..LogQuery::default() }).await;
    assert_eq!(page.lines, ["three <redacted>"]);
    assert_eq!((page.first.as_deref(), page.cursor.as_str()), (Some("1:8"), "1:39"));
    assert_eq!((page.generation, page.eof), (1, true));
    let back = bench.page(LogQuery { tail: 4, before: page.first, ..LogQuery::default() }).await;
    assert_eq!((back.lines, back.first.as_deref()), (vec!["two".to_owned()], Some("1:4")));
    let back = bench.page(LogQuery { tail: 4, before: back.first, ..LogQuery::default() }).await;
    assert_eq!((back.lines, back.first), (vec!["one".to_owned()], None));
    let query = LogQuery { tail: 100, cursor: Some(back.cursor), ..LogQuery::default() };
    assert_eq!(bench.page(query).await.lines, ["two", "three <redacted>"]);
}

#[tokio::test]
async fn bad_cursors_are_refused_by_name() {
    let bench = Bench::new("one\n").await;
    for raw in ["", "4", "x:4", "1:-4", "2:0"] {
        let cursor = LogQuery { tail: 9, cursor: Some(raw.into()), before: None };
        let before = LogQuery { tail: 9, cursor: None, before: Some(raw.into()) };
        for (query, name) in [(cursor, "`cursor`"), (before, "`before`")] {
            let error = bench.app.logs().page(ID, query).await.unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidValue, "{raw}");
            assert!(error.message.starts_with(name), "{}", error.message);
        }
        let error = bench.app.logs().follow(ID, LogStart::Cursor(raw.into())).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidValue, "{raw}");
    }
}
