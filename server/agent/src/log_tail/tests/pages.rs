//! Pages: forwards, backwards, over rotated files.

use super::*;
use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

fn numbered_lines(numbers: std::ops::Range<u32>) -> String {
    numbers.map(|n| format!("line {n}\n")).collect()
}

/// Every line once, by going backwards from the end.
fn backwards(bench: &Bench, bytes: u64) -> Vec<String> {
    let mut page = bench.page(Part::Tail(bytes));
    let mut lines = page.lines;
    while let Some(at) = page.first {
        page = bench.page(Part::Before { at, bytes });
        assert!(page.first.is_none_or(|first| first < at), "no way back from {at}");
        lines.splice(0..0, page.lines);
    }
    lines
}

fn forwards(bench: &Bench, bytes: u64) -> Vec<String> {
    let (mut lines, mut at) = (Vec::new(), 0);
    loop {
        let page = bench.page(Part::After { at, bytes });
        lines.extend(page.lines);
        at = page.end;
        if page.eof {
            return lines;
        }
    }
}

#[test]
fn the_tail_begins_at_a_line_and_holds_an_unfinished_one() {
    let bench = Bench::with("first\nsecond\nthird\nunfini");
    let page = bench.page(Part::Tail(14));
    assert_eq!(page.lines, ["third"]);
    assert_eq!((page.first, page.end, page.eof), (Some(13), 19, true));
    let page = bench.page(Part::Tail(1000));
    assert_eq!(page.lines, ["first", "second", "third"]);
    assert_eq!(page.first, None);
    let none = bench.page(Part::Tail(0));
    assert_eq!((none.lines.len(), none.eof), (0, true));

    let ended = bench.log.page(Part::Tail(14), Writer::Gone).unwrap().unwrap();
    assert_eq!(ended.lines, ["third", "unfini"]);
    let rest = bench.page(Part::After { at: ended.end, bytes: 100 });
    assert_eq!((rest.lines.len(), rest.end, rest.eof), (0, 25, true));
}

#[test]
fn without_a_file_there_is_no_page_and_odd_files_are_refused() {
    let bench = Bench::new();
    let page = || bench.log.page(Part::Tail(100), Writer::Lives);
    assert_eq!(page().unwrap(), None);
    fs::create_dir(bench.path()).unwrap();
    page().unwrap_err();
    fs::remove_dir(bench.path()).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, bench.path(), fifo, mode, 0).unwrap();
    page().unwrap_err();
    fs::remove_file(bench.path()).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", bench.path()).unwrap();
    page().unwrap_err();
    fs::remove_file(bench.path()).unwrap();
    bench.append("here\n");
    assert_eq!(page().unwrap().unwrap().lines, ["here"]);
}

#[test]
fn a_page_goes_on_after_a_cursor_by_at_least_one_line() {
    let bench = Bench::with("a long first line\nb\nc\n");
    let page = bench.page(Part::After { at: 0, bytes: 3 });
    assert_eq!((page.lines, page.eof), (vec!["a long first line".to_owned()], false));
    let page = bench.page(Part::After { at: page.end, bytes: 3 });
    assert_eq!((page.lines, page.eof), (vec!["b".to_owned()], false));
    let page = bench.page(Part::After { at: page.end, bytes: 0 });
    assert_eq!((page.lines.len(), page.end, page.eof), (0, 20, false));
    let page = bench.page(Part::After { at: page.end, bytes: 2 });
    assert_eq!((page.lines, page.end, page.eof), (vec!["c".to_owned()], 22, true));
}

#[test]
fn going_back_leads_through_the_rotated_files() {
    let bench = Bench::with(numbered_lines(0..300));
    bench.rotate();
    bench.append(numbered_lines(300..700));
    bench.rotate();
    bench.append(numbered_lines(700..900));
    let all: Vec<String> = (0..900).map(|n| format!("line {n}")).collect();
    assert_eq!(bench.all(), all);
    for bytes in [97, 3_000, 65_536] {
        assert_eq!(backwards(&bench, bytes), all, "pages of {bytes} bytes");
        assert_eq!(forwards(&bench, bytes), all, "pages of {bytes} bytes");
    }
}

#[test]
fn a_cursor_keeps_its_meaning_while_files_are_rotated() {
    let bench = Bench::with(numbered_lines(0..10));
    let at = bench.page(Part::After { at: 0, bytes: 20 }).end;
    for round in 0..3 {
        bench.append(numbered_lines(10 + round * 5..15 + round * 5));
        bench.rotate();
        // One check is enough to notice a rotation.
        bench.page(Part::Tail(0));
    }
    // Longer than the place: a plain offset would point into the middle of this.
    bench.append(numbered_lines(25..100));
    let page = bench.page(Part::After { at, bytes: 100_000 });
    let expected: Vec<String> = (2..100).map(|n| format!("line {n}")).collect();
    assert_eq!(page.lines, expected);
}

#[test]
fn a_copy_that_is_not_yet_truncated_is_not_shown_twice() {
    let bench = Bench::with(numbered_lines(0..50));
    fs::copy(bench.path(), bench.rotated(1)).unwrap();
    bench.append("line 50\n");
    assert_eq!(bench.all(), (0..51).map(|n| format!("line {n}")).collect::<Vec<_>>());
    assert_eq!(backwards(&bench, 40).len(), 51);
    // The rest of the copy and the truncation happen behind our back.
    fs::copy(bench.path(), bench.rotated(1)).unwrap();
    fs::write(bench.path(), "line 51\n").unwrap();
    assert_eq!(backwards(&bench, 40).len(), 52);
}

#[test]
fn rotated_files_that_are_pruned_leave_the_rest_readable() {
    let bench = Bench::with(numbered_lines(0..10));
    bench.rotate();
    bench.append(numbered_lines(10..20));
    let old = bench.page(Part::After { at: 0, bytes: 10 }).end;
    bench.rotate();
    fs::remove_file(bench.rotated(2)).unwrap();
    bench.append(numbered_lines(20..30));
    let page = bench.page(Part::After { at: old, bytes: 1000 });
    assert_eq!(page.lines.first().map(String::as_str), Some("line 10"));
    assert_eq!(page.lines.len(), 20);
    assert_eq!(backwards(&bench, 33).len(), 20);
}

/// H127: time and memory do not depend on the size.
#[test]
fn h127_the_end_of_a_giant_file_is_read_without_the_rest() {
    let bench = Bench::new();
    let file = File::create(bench.path()).unwrap();
    file.set_len(8 << 30).unwrap(); // sparse
    bench.append("\nlast\n");
    let page = bench.page(Part::Tail(65_536));
    assert_eq!(page.lines, ["last"]);
    assert_eq!(page.end, (8 << 30) + 6);
    let before = bench.page(Part::Before { at: page.first.unwrap(), bytes: 65_536 });
    assert_eq!(before.lines, [""; 0]);
    assert_eq!(before.first, Some((8 << 30) + 1 - 65_536));
}

/// F58.
#[test]
fn f58_h127_a_giant_line_is_cut_and_what_follows_is_shown() {
    let bench = Bench::new();
    let mut file = File::create(bench.path()).unwrap();
    file.write_all(b"before\n").unwrap();
    for _ in 0..48 {
        file.write_all(&vec![b'x'; 1 << 20]).unwrap();
    }
    file.write_all(b"\nafter\n").unwrap();
    let page = bench.page(Part::After { at: 0, bytes: 1 << 20 });
    assert_eq!((page.lines.len(), page.lines[0].as_str()), (2, "before"));
    assert!(page.lines[1].ends_with("x…") && page.lines[1].len() <= 70_000);
    let rest = bench.page(Part::After { at: page.end, bytes: 1 << 20 });
    assert!(rest.lines[0].starts_with("…[line truncated "), "{:?}", rest.lines);
    assert_eq!(bench.page(Part::After { at: rest.end, bytes: 100 }).lines, ["after"]);
    assert_eq!(bench.page(Part::Tail(65_536)).lines, ["after"]);
}

#[test]
fn a_private_key_stays_masked_wherever_a_page_begins() {
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n";
    let log = format!(
        "before\n-----BEGIN PRIVATE KEY-----\n{}short+Tail==\n-----END PRIVATE KEY-----\nafter\n",
        body.repeat(20)
    );
    let bench = Bench::with(&log);
    for bytes in 0..log.len() as u64 {
        let tail = bench.page(Part::Tail(bytes)).lines;
        let cursor = bench.page(Part::After { at: bytes, bytes: 1 << 20 }).lines;
        let back = bench.page(Part::Before { at: bytes, bytes: 100 }).lines;
        for line in tail.iter().chain(&cursor).chain(&back) {
            assert!(!line.contains("MIIE") && !line.contains("short"), "{bytes}: {line}");
        }
    }
}

fn log() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        any::<u8>().prop_map(|byte| vec![byte]),
        "[a-z ]{0,12}".prop_map(String::into_bytes),
        Just(b"\n".to_vec()),
        Just("env_01AB23CD45 é🚀\r\n".into()),
        (0..3_usize).prop_map(|n| vec![b'x'; n * 300]),
    ];
    prop::collection::vec(piece, 0..40).prop_map(distinct)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn pages_in_both_directions_show_every_line_once(
        log in log(),
        at in any::<prop::sample::Index>(),
        bytes in 20..400_u64,
    ) {
        let bench = Bench::with(&log);
        let all = bench.all();
        prop_assert_eq!(backwards(&bench, bytes), all.clone());
        prop_assert_eq!(forwards(&bench, bytes), all.clone());
        // The same split over two files, wherever.
        let (old, new) = log.split_at(at.index(log.len() + 1));
        fs::write(bench.rotated(1), old).unwrap();
        fs::write(bench.path(), new).unwrap();
        let log = Arc::new(Log::new(bench.path().into(), bench.log.colours.clone()));
        let fresh = Bench { log, ..bench };
        if !(new.starts_with(old)) {
            prop_assert_eq!(backwards(&fresh, bytes), all);
        }
    }
}

/// H38: a second name of somebody else's file at the place of a log.
#[test]
fn h38_a_hard_link_at_the_place_of_a_log_is_not_read() {
    let secret = |bench: &Bench| {
        let path = bench.dir.path().join("id_rsa");
        fs::write(&path, "a secret line\n").unwrap();
        path
    };
    let bench = Bench::new();
    fs::hard_link(secret(&bench), bench.path()).unwrap();
    let shown = bench.log.page(Part::Tail(1 << 16), Writer::Gone);
    assert!(!format!("{shown:?}").contains("secret"), "{shown:?}");

    let bench = Bench::with("own line\n");
    fs::hard_link(secret(&bench), bench.rotated(1)).unwrap();
    let shown = bench.log.page(Part::Tail(1 << 16), Writer::Gone);
    assert!(!format!("{shown:?}").contains("secret"), "{shown:?}");

    let bench = Bench::with("own line\n");
    let _ = bench.log.page(Part::Tail(1 << 16), Writer::Lives);
    fs::remove_file(bench.path()).unwrap();
    fs::hard_link(secret(&bench), bench.path()).unwrap();
    let shown = bench.log.page(Part::Tail(1 << 16), Writer::Lives);
    assert!(!format!("{shown:?}").contains("secret"), "{shown:?}");
}

#[test]
fn a_page_treats_colours_as_is_configured_when_it_is_read() {
    let is_kept = Arc::new(AtomicBool::new(false));
    let now = Arc::clone(&is_kept);
    let colours = Colours::new(move || match now.load(Ordering::Relaxed) {
        true => Colour::Keep,
        false => Colour::Strip,
    });
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p-1-1.log");
    fs::write(&path, "\u{1b}[31mred\u{1b}[0m\n").unwrap();
    let log = Arc::new(Log::new(path, colours));
    let lines = || log.page(Part::Tail(u64::MAX), Writer::Lives).unwrap().unwrap().lines;
    assert_eq!(lines(), ["red"]);
    is_kept.store(true, Ordering::Relaxed);
    assert_eq!(lines(), ["\u{1b}[31mred\u{1b}[0m"]);
}
