//! Exits of our children and of other processes.

use crate::support::{Stranger, Workspace, host_with, within};
use std::process::{Command, Stdio};
use svc_domain::identity::ProcessIdentity;
use svc_ports::process::{ExitReport, ProcessHost, Signal, Target};
use svc_process::exit::ExitWatch;

const KILLED: ExitReport = ExitReport { code: None, signal: Some(9), oom_kill: false };
const UNKNOWN: ExitReport = ExitReport { code: None, signal: None, oom_kill: false };

#[tokio::test]
async fn an_exit_code_and_a_signal_are_told_to_early_and_late_askers() {
    let workspace = Workspace::new();
    let identity = workspace.launch(workspace.shell("exit 7")).await;
    let early = (workspace.host.exited(&identity), workspace.host.exited(&identity));
    let (one, two) = within(async { tokio::join!(early.0, early.1) }).await;
    assert_eq!((one.code, one.signal), (Some(7), None));
    assert_eq!(one, two);
    assert_eq!(workspace.end_of(&identity).await, one);

    let killed = workspace.launch(workspace.shell("exec sleep 1000")).await;
    workspace.host.signal(&killed, Signal::Kill, Target::Group);
    let end = workspace.end_of(&killed).await;
    assert_eq!((end.code, end.signal), (None, Some(9)));
}

#[tokio::test]
async fn f9_the_end_of_a_process_that_is_not_our_child_has_a_status_until_it_is_collected() {
    for watch in [ExitWatch::Kernel, ExitWatch::Polling] {
        let host = host_with(|options| options.exit_watch = watch);
        let mut stranger = Stranger::shell("exec sleep 1000");
        let identity = stranger.identity(&host);
        let (one, two) = (host.exited(&identity), host.exited(&identity));
        let waiting = tokio::spawn(async { tokio::join!(one, two) });
        stranger.kill();
        // Not collected yet: a zombie has ended.
        assert_eq!(within(waiting).await.unwrap(), (KILLED, KILLED));
        stranger.collect();
        assert_eq!(within(host.exited(&identity)).await, UNKNOWN);
    }
}

/// Whether this kernel keeps collected statuses, as Linux 6.15 and later do.
fn keeps_status() -> bool {
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy().into_owned();
    let mut parts = release.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (6, 15)
}

#[tokio::test]
async fn f9_the_kernel_keeps_the_status_of_a_process_that_its_parent_collected() {
    let host = host_with(|options| options.exit_watch = ExitWatch::Kernel);
    for (script, expected) in [
        ("exec sleep 1000", KILLED),
        ("read _; exit 7", ExitReport { code: Some(7), ..UNKNOWN }),
        ("read _; exit 0", ExitReport { code: Some(0), ..UNKNOWN }),
    ] {
        let mut shell = Command::new("/bin/sh");
        let mut stranger = Stranger::start(shell.args(["-c", script]).stdin(Stdio::piped()));
        let mut exited = host.exited(&stranger.identity(&host));
        // The descriptor is opened before the process ends.
        let early = tokio::select! {
            biased;
            report = &mut exited => Some(report),
            () = tokio::task::yield_now() => None,
        };
        assert_eq!(early, None);
        if expected == KILLED {
            stranger.kill();
        }
        // Collecting closes its input first. The waiting task does not run in between.
        stranger.collect();
        let report = within(exited).await;
        if report == UNKNOWN && !keeps_status() {
            svc_skip::skip!("this kernel keeps no exit status (Linux 6.15 does)");
        }
        assert_eq!(report, expected, "{script}");
    }
}

#[tokio::test]
async fn waiting_for_a_live_process_does_not_end_early() {
    for watch in [ExitWatch::Kernel, ExitWatch::Polling] {
        let host = host_with(|options| options.exit_watch = watch);
        let stranger = Stranger::shell("exec sleep 1000");
        let mut exited = host.exited(&stranger.identity(&host));
        let early = tokio::select! {
            biased;
            report = &mut exited => Some(report),
            () = tokio::task::yield_now() => None,
        };
        assert_eq!(early, None, "{watch:?}");
    }
}

#[tokio::test]
async fn h102_a_reused_pid_counts_as_ended_at_once() {
    for watch in [ExitWatch::Kernel, ExitWatch::Polling] {
        let host = host_with(|options| options.exit_watch = watch);
        let stranger = Stranger::shell("exec sleep 1000");
        let real = stranger.identity(&host);
        let recorded = ProcessIdentity { start_ticks: real.start_ticks.wrapping_sub(1), ..real };
        assert_eq!(within(host.exited(&recorded)).await, UNKNOWN);
    }
}
