//! Viewers: joining, sharing, rotation, falling behind, odd ends.

use super::*;
use proptest::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn lines_written_by_another_thread_arrive_in_order_and_whole() {
    let bench = Bench::with("old\n");
    let mut viewer = bench.view(Begin::Tail(65_536));
    assert_eq!(line(&mut viewer).await, "old");
    let path = bench.path().to_owned();
    let writer = std::thread::spawn(move || {
        let mut file = File::options().append(true).open(path).unwrap();
        for n in 0..2_000 {
            // In pieces, so that reads end inside of lines.
            let line = format!("n {n} env_01AB23CD45 é\n");
            let (a, b) = line.as_bytes().split_at(n % line.len());
            file.write_all(a).unwrap();
            file.write_all(b).unwrap();
        }
    });
    for n in 0..2_000 {
        assert_eq!(line(&mut viewer).await, format!("n {n} env_<redacted> é"));
    }
    writer.join().unwrap();
}

#[tokio::test]
async fn a_secret_and_a_character_written_in_halves_arrive_whole() {
    let bench = Bench::with("");
    let mut viewer = bench.view(Begin::Oldest);
    let mut other = bench.view(Begin::Oldest);
    let text = "key ghp_abcdefghijklmnopqrst \u{1f680} \u{1b}[31m.\n".as_bytes();
    for at in 1..text.len() {
        bench.append(&text[..at]);
        bench.append("");
        bench.append(&text[at..]);
        assert_eq!(line(&mut viewer).await, "key <redacted> \u{1f680} .");
    }
    for text in lines(&mut other, text.len() - 1).await {
        assert_eq!(text, "key <redacted> \u{1f680} .");
    }
}

#[tokio::test]
async fn a_log_that_is_not_there_yet_is_waited_for() {
    let bench = Bench::new();
    let mut viewer = bench.view(Begin::Tail(100));
    tokio::select! {
        biased;
        item = viewer.next() => panic!("{item:?} from nowhere"),
        () = tokio::task::yield_now() => {}
    }
    bench.append("hello\n");
    assert_eq!(line(&mut viewer).await, "hello");
}

#[tokio::test]
async fn f61_truncation_and_replacement_are_marked_and_followed() {
    let bench = Bench::with("one\ntwo\n");
    let mut viewer = bench.view(Begin::Oldest);
    assert_eq!(lines(&mut viewer, 2).await, ["one", "two"]);
    fs::write(bench.path(), "new\n").unwrap();
    assert!(matches!(next(&mut viewer).await, TailItem::Rotated { .. }));
    assert_eq!(line(&mut viewer).await, "new");
    // Renamed under an open writer: its last words come first.
    let mut writer = File::options().append(true).open(bench.path()).unwrap();
    fs::rename(bench.path(), bench.dir.path().join("elsewhere")).unwrap();
    writer.write_all(b"last words\n").unwrap();
    bench.append("successor\n");
    let mut seen = Vec::new();
    while seen.last().is_none_or(|text| text != "successor") {
        if let TailItem::Line { text, .. } = next(&mut viewer).await {
            seen.push(text.to_string());
        }
    }
    assert_eq!(seen, ["last words", "successor"]);
}

#[tokio::test]
async fn rotation_loses_no_line_even_when_nobody_looked_in_between() {
    let bench = Bench::with("");
    let mut viewer = bench.view(Begin::Oldest);
    let mut expected = Vec::new();
    for round in 0..5 {
        for n in 0..20 {
            let text = format!("{round} {n}");
            bench.append(format!("{text}\n"));
            expected.push(text);
        }
        bench.rotate();
    }
    bench.append("end\n");
    let mut seen = Vec::new();
    while seen.last().is_none_or(|text| text != "end") {
        if let TailItem::Line { text, .. } = next(&mut viewer).await {
            seen.push(text.to_string());
        }
    }
    expected.push("end".into());
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn h127_a_pipe_or_directory_in_its_place_ends_the_view_with_a_reason() {
    for is_fifo in [true, false] {
        let bench = Bench::with("one\n");
        let mut viewer = bench.view(Begin::Oldest);
        assert_eq!(line(&mut viewer).await, "one");
        bench.append("two\n");
        assert_eq!(line(&mut viewer).await, "two");
        fs::remove_file(bench.path()).unwrap();
        if is_fifo {
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            let fifo = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, bench.path(), fifo, mode, 0).unwrap();
        } else {
            fs::create_dir(bench.path()).unwrap();
        }
        let broken = tokio::time::timeout(DEADLINE, async {
            loop {
                match viewer.next().await {
                    Ok(Some(TailItem::Gap)) => {}
                    Ok(other) => panic!("{other:?}"),
                    Err(broken) => return broken,
                }
            }
        });
        let reason = std::error::Error::source(&broken.await.unwrap()).unwrap().to_string();
        assert!(reason.contains("not a regular file"), "{reason}");
    }
}

/// F63.
#[tokio::test]
async fn f63_a_removed_directory_is_marked_as_a_gap() {
    let bench = Bench::with("one\n");
    let mut viewer = bench.view(Begin::Oldest);
    assert_eq!(line(&mut viewer).await, "one");
    bench.append("two\n");
    assert_eq!(line(&mut viewer).await, "two");
    fs::remove_dir_all(bench.dir.path()).unwrap();
    assert_eq!(next(&mut viewer).await, TailItem::Gap);
    fs::create_dir(bench.dir.path()).unwrap();
    bench.append("three\n");
    assert!(matches!(next(&mut viewer).await, TailItem::Rotated { .. }));
    assert_eq!(line(&mut viewer).await, "three");
}

#[tokio::test]
async fn a_concluded_view_shows_the_unfinished_line_and_ends() {
    let bench = Bench::with("one\nlast wor");
    let mut viewer = bench.view(Begin::Oldest);
    assert_eq!(line(&mut viewer).await, "one");
    bench.append("ds");
    viewer.conclude();
    assert_eq!(line(&mut viewer).await, "last words");
    assert_eq!(viewer.next().await.unwrap(), None);
    assert_eq!(viewer.next().await.unwrap(), None);
    // Likewise for one that was live.
    let mut viewer = bench.view(Begin::Oldest);
    assert_eq!(line(&mut viewer).await, "one");
    live(&mut viewer).await;
    bench.append("\nmore\n");
    assert_eq!(lines(&mut viewer, 2).await, ["last words", "more"]);
    bench.append("unfinished");
    viewer.conclude();
    assert_eq!(line(&mut viewer).await, "unfinished");
    assert_eq!(viewer.next().await.unwrap(), None);
}

#[tokio::test]
async fn the_tailer_lives_as_long_as_somebody_looks_and_closes_its_files() {
    let bench = Bench::with("one\n");
    let mut first = bench.view(Begin::Oldest);
    let mut second = bench.view(Begin::Oldest);
    assert_eq!(line(&mut first).await, "one");
    assert_eq!(line(&mut second).await, "one");
    live(&mut first).await;
    live(&mut second).await;
    bench.append("two\n");
    assert_eq!(line(&mut first).await, "two");
    assert_eq!(line(&mut second).await, "two");
    let tailer = lock(&bench.log.shared).tailer.clone();
    assert_eq!(tailer.strong_count(), 2, "one for all viewers");
    drop(first);
    bench.append("three\n");
    assert_eq!(line(&mut second).await, "three");
    drop(second);
    assert_eq!(tailer.strong_count(), 0);
    let handle = lock(&bench.log.shared).handle.clone();
    tokio::time::timeout(DEADLINE, async {
        while handle.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the files stay open");
    let mut late = bench.view(Begin::Tail(100));
    assert_eq!(lines(&mut late, 3).await, ["one", "two", "three"]);
}

/// H57.
#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_that_falls_behind_gets_a_gap_and_the_others_everything() {
    let bench = Bench::with("");
    let mut slow = bench.view(Begin::Oldest);
    let mut fast = bench.view(Begin::Oldest);
    bench.append("start\n");
    assert_eq!(line(&mut slow).await, "start");
    assert_eq!(line(&mut fast).await, "start");
    live(&mut slow).await;
    live(&mut fast).await;
    for round in 0..50 {
        let text: String =
            (0..200).map(|n| format!("{} {}\n", round * 200 + n, "y".repeat(300))).collect();
        bench.append(text);
        for n in 0..200 {
            let text = line(&mut fast).await;
            assert!(text.starts_with(&format!("{} ", round * 200 + n)), "{text}");
        }
    }
    assert_eq!(next(&mut slow).await, TailItem::Gap);
    let mut last: Option<u32> = None;
    let mut bytes = 0;
    while last != Some(9_999) {
        let text = line(&mut slow).await;
        bytes += text.len();
        let number = text.split(' ').next().unwrap().parse().unwrap();
        assert!(last.is_none_or(|last| last + 1 == number));
        last = Some(number);
    }
    assert!(bytes <= 1024 * 1024, "{bytes} bytes were kept");
}

#[test]
fn losing_the_future_at_any_point_loses_no_line() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let bench = Bench::with((0..500).map(|n| format!("{n}\n")).collect::<String>());
        let mut viewer = bench.view(Begin::Oldest);
        let mut seen = Vec::new();
        let deadline = tokio::time::Instant::now() + DEADLINE;
        while seen.len() < 600 {
            assert!(tokio::time::Instant::now() < deadline, "lost after {}", seen.len());
            tokio::select! {
                biased;
                item = viewer.next() => match item.unwrap().unwrap() {
                    TailItem::Line { text, .. } => seen.push(text.to_string()),
                    other => panic!("{other:?}"),
                },
                () = tokio::task::yield_now() => {}
            }
            if seen.len() == 500 {
                bench.append((500..600).map(|n| format!("{n}\n")).collect::<String>());
                seen.push(line(&mut viewer).await);
            }
        }
        assert_eq!(seen, (0..600).map(|n| n.to_string()).collect::<Vec<_>>());
    });
}

/// A log, and what it grows by.
fn log() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        any::<u8>().prop_map(|byte| vec![byte]),
        "[a-z ]{0,12}\n".prop_map(String::into_bytes),
        Just("env_01AB23CD45 é🚀\r\n".into()),
        (0..3_usize).prop_map(|n| vec![b'x'; n * 40_000]),
        Just(b"\n".to_vec()),
    ];
    prop::collection::vec(piece, 0..20).prop_map(distinct)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// H58: a viewer that is cut off anywhere gets exactly the rest.
    /// A rotation meanwhile changes nothing.
    #[test]
    fn a_viewer_that_comes_back_gets_exactly_the_rest(
        log in log(),
        cut in any::<prop::sample::Index>(),
        taken in any::<prop::sample::Index>(),
        rotates in any::<bool>(),
    ) {
        let whole = Bench::with(&log).all();
        let (before, after) = log.split_at(cut.index(log.len() + 1));
        let bench = Bench::with(before);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let seen = runtime.block_on(async {
            let complete = bench.page(Part::Tail(u64::MAX)).lines.len();
            let mut viewer = bench.view(Begin::Oldest);
            let (mut seen, mut at) = (Vec::new(), 0);
            while seen.len() < taken.index(complete + 1) {
                if let TailItem::Line { end, text } = next(&mut viewer).await {
                    seen.push(text.to_string());
                    at = end;
                }
            }
            drop(viewer);
            if rotates && !before.is_empty() {
                bench.rotate();
            }
            bench.append(after);
            let mut viewer = bench.view(Begin::At(at));
            while seen.len() < whole.len() {
                if let TailItem::Line { text, .. } = next(&mut viewer).await {
                    seen.push(text.to_string());
                }
            }
            seen
        });
        prop_assert_eq!(seen, whole);
    }
}
