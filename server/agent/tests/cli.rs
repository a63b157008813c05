//! Questions to the agent CLI: caching, single flight, and programs that misbehave.

#![expect(clippy::unwrap_used, reason = "a helper that cannot set up fails its test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use svc_agent::cli::{AgentCli, AgentSetup, ProbeError, Version};
use svc_agent::environment::Variables;
use svc_agent::login::Login;

/// No name of a program of this machine: an agent may be installed on it.
const PROGRAM: &str = "agent-of-this-test";

struct Bench {
    root: tempfile::TempDir,
    cli: AgentCli,
}

impl Bench {
    /// A program that counts its runs in `calls`.
    fn new(body: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let cli = AgentCli::new(AgentSetup {
            binary: PROGRAM.to_owned(),
            env: env(root.path()),
            cwd: root.path().to_owned(),
            locks: root.path().to_owned(),
        });
        let bench = Self { root, cli };
        bench.program(body);
        bench
    }

    fn program(&self, body: &str) {
        let path = self.root.path().join("bin").join(PROGRAM);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = format!("#!/bin/bash\necho \"$*\" >> \"$HOME/calls\"\n{body}\n");
        // A new file, as an upgrade makes one.
        let fresh = self.root.path().join("fresh");
        svc_programs::write(&fresh, text).unwrap();
        fs::rename(fresh, path).unwrap();
    }

    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.root.path().join("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

fn env(home: &Path) -> Variables {
    let path = format!("{}:/usr/bin:/bin", home.join("bin").display());
    Variables::from([("HOME".into(), home.into()), ("PATH".into(), path.into())])
}

#[tokio::test]
async fn the_version_is_asked_once_per_program_file() {
    let bench = Bench::new("echo '2.1.197 (Claude Code)'");
    assert_eq!(bench.cli.version(), Version::Unasked);
    for _ in 0..3 {
        let (program, version) = bench.cli.version_now().await.unwrap();
        assert_eq!(program, bench.root.path().join("bin").join(PROGRAM));
        assert_eq!(version.as_str(), "2.1.197");
    }
    assert_eq!(bench.calls(), ["--version"]);
    bench.program("echo '2.1.280 (Claude Code)'");
    assert_eq!(bench.cli.version_now().await.unwrap().1.as_str(), "2.1.280");
    let Version::Known { version, .. } = bench.cli.version() else {
        panic!("the answer is published");
    };
    assert_eq!(version.as_str(), "2.1.280");
}

#[tokio::test]
async fn a_reader_gets_the_version_in_the_background() {
    let bench = Bench::new("echo 2.1.197");
    let mut changes = bench.cli.version_changes();
    assert_eq!(bench.cli.version(), Version::Unasked);
    let waited = tokio::time::timeout(
        Duration::from_secs(60),
        changes.wait_for(|version| *version != Version::Unasked),
    );
    assert!(matches!(*waited.await.unwrap().unwrap(), Version::Known { .. }));
}

/// F86: unparsable output and a missing program fail with a reason, asked once.
#[tokio::test]
async fn an_unusable_program_is_reported_with_the_reason_and_not_asked_again_at_once() {
    let bench = Bench::new("echo Welcome");
    let first = bench.cli.version_now().await.unwrap_err();
    assert!(matches!(first, ProbeError::NoVersion { .. }));
    let again = bench.cli.version_now().await.unwrap_err();
    assert_eq!(again.to_string(), first.to_string());
    assert_eq!(bench.calls(), ["--version"]);
    bench.program("echo 2.1.197");
    assert!(bench.cli.version_now().await.is_ok());

    fs::remove_file(bench.root.path().join("bin").join(PROGRAM)).unwrap();
    let gone = bench.cli.version_now().await.unwrap_err();
    assert!(matches!(gone, ProbeError::Binary(_)), "{gone}");
    let Version::Failed { reason } = bench.cli.version() else {
        panic!("the failure is published");
    };
    assert!(reason.contains("claude.binary"), "{reason}");
}

/// F38: logged out is an answer although the exit code is 1.
#[tokio::test]
async fn logged_out_is_read_from_the_answer_and_asked_once_by_many() {
    let body = r#"sleep 0.2; echo '{"loggedIn":false,"authMethod":"none"}'; exit 1"#;
    let bench = Bench::new(body);
    let asking: Vec<_> = (0..10)
        .map(|_| {
            let cli = bench.cli.clone();
            tokio::spawn(async move { cli.login_now().await })
        })
        .collect();
    for answer in asking {
        assert_eq!(answer.await.unwrap().method(), Some("none"));
    }
    // Those that came while the first was asking joined it.
    assert!(bench.calls().len() <= 2, "{:?}", bench.calls());
    assert!(!bench.cli.login().is_ok());
}

/// F38.
#[tokio::test]
async fn f38_garbage_is_no_answer_to_the_login_question() {
    let bench = Bench::new("echo hello; exit 0");
    assert!(bench.cli.login().is_ok(), "nothing speaks against a start before the first answer");
    let Login::Failed { reason } = bench.cli.login_now().await else {
        panic!("garbage is no answer");
    };
    assert!(reason.contains("JSON"), "{reason}");
}

/// F38. The clock runs ahead while everything waits.
#[tokio::test(start_paused = true)]
async fn f38_a_login_question_without_answer_is_not_ok_within_its_limit() {
    let bench = Bench::new("sleep 1000");
    let Login::Failed { reason } = bench.cli.login_now().await else {
        panic!("silence is no answer");
    };
    assert!(reason.contains("within 5 s"), "{reason}");
}

/// F52: every useless answer keeps the previous list.
#[tokio::test]
async fn f52_a_useless_session_list_keeps_the_previous_one_and_marks_it_stale() {
    let one = r#"[{"pid":4242,"cwd":"/p","startedAt":5,"sessionId":"u","kind":"interactive"}]"#;
    let bench = Bench::new(&format!("echo '{one}'"));
    assert!(!bench.cli.sessions().is_known);
    let sessions = bench.cli.sessions_now().await.unwrap();
    assert_eq!((sessions.list.len(), sessions.stale), (1, None));
    // Asked again at once, the same answer is given without a run.
    bench.program("echo garbage");
    assert_eq!(bench.cli.sessions_now().await.unwrap().list.len(), 1);
    assert_eq!(bench.calls().len(), 1);

    for body in ["echo garbage", "echo '[]'; exit 1", "head -c 9000000 /dev/zero", "kill -9 $$"] {
        bench.program(body);
        // A new setup forgets when it was asked, and nothing else.
        let mut setup = (*bench.cli.setup()).clone();
        setup.env.insert("ROUND".into(), body.into());
        bench.cli.set_up(setup);
        assert!(bench.cli.sessions_now().await.is_err(), "{body}");
        let kept = bench.cli.sessions();
        assert_eq!(kept.list.len(), 1, "{body}");
        assert!(kept.stale.is_some() && kept.is_known, "{body}");
    }
}

#[tokio::test]
async fn a_program_in_the_working_directory_is_never_run() {
    let bench = Bench::new("echo 2.1.197");
    let mut setup = (*bench.cli.setup()).clone();
    setup.cwd = bench.root.path().join("bin");
    setup.env.insert("PATH".into(), ".::bin".into());
    bench.cli.set_up(setup);
    let error = bench.cli.version_now().await.unwrap_err();
    assert!(matches!(error, ProbeError::Binary(_)), "{error}");
    assert_eq!(bench.calls(), Vec::<String>::new());
    let _: PathBuf = bench.cli.home().unwrap().sessions_dir();
}
