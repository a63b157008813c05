//! Streams: resuming, size, scrollback, slow viewers, floods.

use crate::support::{Viewer, Workspace, within};
use svc_keeper::message::{FromKeeper, Role};

#[tokio::test]
async fn f65_h58_a_client_resumes_from_its_last_frame_or_gets_a_keyframe() {
    let workspace = Workspace::new();
    let script =
        "i=0; while read x; do i=$((i+1)); printf '\\033[%d;5Hround %d' $((i % 20 + 1)) $i; done";
    let session = workspace.start(script).await;
    let mut reference = Viewer::new(&session, Role::Controller).await;
    let mut viewer = Viewer::new(&session, Role::Observer).await;
    for round in 1..=20 {
        let (seq, rows) = (viewer.seq, viewer.rows.clone());
        drop(viewer);
        reference.connection.commands.input("DQ==".to_owned(), round).await.unwrap();
        reference.until_text(&format!("round {round}")).await;
        viewer = Viewer::resumed(&session, Role::Observer, seq, rows).await;
        viewer.until_text(&format!("round {round}")).await;
        assert_eq!(viewer.keys, 0, "the changes were enough");
    }
    // Both know the same after the last frame.
    let last = Viewer::new(&session, Role::Observer).await;
    viewer.until("the last frame", |viewer| viewer.seq >= last.seq).await;
    assert_eq!(viewer.rows, last.rows);
    // A number of another keeper, and one of before a change of size.
    let strange = Viewer::resumed(&session, Role::Observer, 1 << 40, Vec::new()).await;
    let old = viewer.seq;
    let mut viewers = vec![strange];
    reference.connection.commands.resize(100, 30).await.unwrap();
    reference.until("the new size", |viewer| viewer.cols == 100).await;
    viewers.push(Viewer::resumed(&session, Role::Observer, old, Vec::new()).await);
    for mut viewer in viewers {
        viewer.until("a keyframe", |viewer| viewer.keys > 0 && viewer.cols == 100).await;
        assert_eq!(viewer.rows.len(), 30);
    }
}

#[tokio::test]
async fn h64_a_keeper_outlives_its_clients_and_shows_the_last_screen() {
    let workspace = Workspace::new();
    let session = workspace
        .start("read x; i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo line $i; done; exec sleep 1000")
        .await;
    let connection = session.connect(Role::Controller).await;
    connection.commands.input("DQ==".to_owned(), 1).await.unwrap();
    drop(connection);
    let mut viewer = Viewer::new(&session, Role::Controller).await;
    viewer.until_text("line 3000").await;
    assert_eq!(viewer.text()[22], "line 3000");
    viewer.connection.commands.scroll(0, 1000).await.unwrap();
    let mut lines = Vec::new();
    let (from, n, first) = within(async {
        loop {
            match viewer.connection.events.next().await.unwrap() {
                FromKeeper::Line { n, row } => lines.push((n, row.text())),
                FromKeeper::Scrolled { from, n, first } => break (from, n, first),
                other => viewer.apply(other),
            }
        }
    })
    .await;
    // The cap of 500 lines, and not a line more or twice.
    assert_eq!((n, from), (500, first));
    let numbers: Vec<u64> = lines.iter().map(|(n, _)| *n).collect();
    assert_eq!(numbers, (from..from + 500).collect::<Vec<_>>());
    assert_eq!(lines[0].1, format!("line {}", from));
}

#[tokio::test]
async fn f68_h57_a_viewer_that_does_not_read_slows_nobody_and_gets_a_gap_and_a_keyframe() {
    let workspace = Workspace::new();
    // Every frame is a new screen of 80 by 24 that no difference makes small.
    let script = "read x; i=0; while [ $i -lt 4000 ]; do i=$((i+1)); printf '\\033[H'; j=0; \
                  while [ $j -lt 23 ]; do j=$((j+1)); \
                  printf '\\033[3%dm%d abcdefghijklmnopqrstuvwxyz abcdefghijklmnopqrstuvwxyz %d\\r\\n' \
                  $((i % 8)) $i $j; done; done; echo done; exec sleep 1000";
    let session = workspace.start(script).await;
    let mut fast = Viewer::new(&session, Role::Controller).await;
    let mut slow = Viewer::new(&session, Role::Observer).await;
    fast.connection.commands.input("DQ==".to_owned(), 1).await.unwrap();
    fast.until_text("done").await;
    assert_eq!(fast.gaps, []);
    fast.connection.commands.stat().await.unwrap();
    let counters = within(async {
        loop {
            if let FromKeeper::Stat(counters) = fast.connection.events.next().await.unwrap() {
                break counters;
            }
        }
    })
    .await;
    assert_eq!(counters.parser_faults, 0);
    // Either it was slow enough for a gap, or it was disconnected, or the machine was too slow to
    // make that many frames; in each case what it sees in the end is the truth.
    let mut seen = Ok(());
    while seen.is_ok() && !slow.text().iter().any(|line| line == "done") {
        seen = match within(slow.connection.events.next()).await {
            Ok(message) => {
                slow.apply(message);
                Ok(())
            }
            Err(closed) => Err(closed),
        };
    }
    if seen.is_ok() {
        assert_eq!(slow.rows, fast.rows);
        assert_eq!(slow.gaps.is_empty(), counters.frames_dropped == 0);
    } else {
        assert!(counters.clients_dropped > 0);
    }
}

#[tokio::test]
async fn h62_a_line_without_end_costs_a_keeper_a_bounded_memory_and_no_disk() {
    let workspace = Workspace::new();
    let session = workspace
        .start("head -c 30000000 /dev/zero | tr '\\0' x; printf '\\r\\nend'; exec sleep 1000")
        .await;
    let mut viewer = Viewer::new(&session, Role::Observer).await;
    viewer.until_text("end").await;
    let status = std::fs::read_to_string(format!("/proc/{}/status", session.keeper.pid)).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = peak.split_whitespace().next().unwrap().parse().unwrap();
    assert!(kib < 48 << 10, "{kib} KiB");
    let log = std::fs::metadata(session.sidecar.with_extension("log")).unwrap().len();
    assert_eq!(log, 0);
}
