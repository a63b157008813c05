//! Tests of the line cutter, with the redactor behind it as in the service.

use proptest::prelude::*;

use super::*;

/// Feeds the log in chunks of `step` bytes; returns each line with its end offset.
fn read(mut plan: Plan, log: &[u8], step: usize) -> Vec<(u64, String)> {
    let mut redactor = Redactor::default();
    let from = usize::try_from(plan.offset).unwrap();
    log[from..]
        .chunks(step)
        .flat_map(|chunk| plan.lines.feed(chunk))
        .map(|line| (line.end, line.redacted(&mut redactor).into_owned()))
        .collect()
}

fn start() -> Plan {
    Plan { offset: 0, lines: TailLines::from_start() }
}

fn texts(plan: Plan, log: &[u8]) -> Vec<String> {
    read(plan, log, 4096).into_iter().map(|(_, text)| text).collect()
}

fn len(log: &[u8]) -> u64 {
    log.len().try_into().unwrap()
}

#[test]
fn line_ends_marks_and_invalid_bytes_are_cleaned() {
    let log = b"\xef\xbb\xbfone\r\n\ntwo \xff\xf0\x9f\x9a\x80\n\0three\n";
    assert_eq!(texts(start(), log), ["one", "", "two \u{fffd}🚀", "three"]);
}

#[test]
fn an_unfinished_line_is_held_until_its_end_arrives() {
    let mut lines = TailLines::from_start();
    assert!(lines.feed(b"key: env_01AB").is_empty());
    let done = lines.feed(b"23CD45\nnext");
    let mut redactor = Redactor::default();
    let shown: Vec<_> = done.iter().map(|line| line.redacted(&mut redactor).into_owned()).collect();
    assert_eq!(shown, ["key: env_<redacted>"]);
    assert_eq!(done[0].end, 20);
    assert_eq!(lines.offset(), 24);
}

#[test]
fn the_held_end_of_a_finished_log_is_shown_once() {
    let mut lines = TailLines::from_start();
    lines.feed(b"a\nlast words");
    let last = lines.finish().unwrap();
    assert_eq!(last.redacted(&mut Redactor::default()), "last words");
    assert_eq!(last.end, 12);
    assert_eq!(lines.finish(), None);
    assert!(lines.feed(b"\n").is_empty());
}

#[test]
fn a_line_of_exactly_the_cap_is_whole_and_a_longer_one_is_cut() {
    let fits = format!("{}\nnext\n", "word ".repeat(LINE_CAP / 5) + "x");
    assert_eq!(fits.find('\n'), Some(LINE_CAP));
    let shown = texts(start(), fits.as_bytes());
    assert!(shown[0].ends_with("word x"));
    assert_eq!(shown[1], "next");

    let longer = format!("{}tail\nnext\n", "word ".repeat(LINE_CAP / 5) + "x");
    let shown = texts(start(), longer.as_bytes());
    assert!(shown[0].ends_with("word …"));
    assert_eq!(shown[1], "…[line truncated 5 bytes]");
    assert_eq!(shown[2], "next");
}

#[test]
fn f58_a_giant_line_costs_no_more_memory_than_the_cap() {
    let mut lines = TailLines::from_start();
    let chunk = vec![b'x'; 1024 * 1024];
    let mut shown = Vec::new();
    for _ in 0..20 {
        shown.extend(lines.feed(&chunk));
        assert!(lines.held.capacity() <= 2 * LINE_CAP);
    }
    assert_eq!(shown.len(), 1);
    shown.extend(lines.feed(b"\nafter\n"));
    let mut redactor = Redactor::default();
    let texts: Vec<_> =
        shown.iter().map(|line| line.redacted(&mut redactor).into_owned()).collect();
    assert_eq!(texts[0].len(), LINE_CAP - CUT_WORD + "…".len());
    let omitted = 20 * 1024 * 1024 - (LINE_CAP - CUT_WORD);
    assert_eq!(texts[1], format!("…[line truncated {omitted} bytes]"));
    assert_eq!(texts[2], "after");
}

#[test]
fn a_secret_over_the_cut_is_left_out_with_the_rest() {
    for before in LINE_CAP - 40..LINE_CAP {
        let filler = "x ".repeat(before / 2);
        let line = format!("{filler} ghp_abcdefghijklmnopqrstuvwxyz0123456789\n");
        for text in texts(start(), line.as_bytes()) {
            assert!(!text.contains("ghp_"), "cut after {before} bytes");
        }
    }
}

#[test]
fn a_backfill_begins_at_a_line() {
    let log = b"first\nsecond\nthird\n";
    let shown = |window| texts(TailLines::backfill(len(log), window), log);
    assert_eq!(shown(0), [""; 0]);
    assert_eq!(shown(5), [""; 0]);
    assert_eq!(shown(6), ["third"]);
    assert_eq!(shown(12), ["third"]);
    assert_eq!(shown(13), ["second", "third"]);
    assert_eq!(shown(1000), ["first", "second", "third"]);
    assert!(TailLines::backfill(10 * BACKFILL_MAX, u64::MAX).offset >= 9 * BACKFILL_MAX - 1);
}

#[test]
fn a_line_longer_than_the_window_is_skipped() {
    let log = format!("{}\nafter\n", "long ".repeat(1000));
    let plan = TailLines::backfill(len(log.as_bytes()), 100);
    assert_eq!(texts(plan, log.as_bytes()), ["after"]);
    // Also while it is still being written.
    let open = &log.as_bytes()[..4000];
    let mut plan = TailLines::backfill(len(open), 100);
    assert!(plan.lines.feed(&open[3899..]).is_empty());
    assert!(plan.lines.feed(b"rest\n").is_empty());
    assert_eq!(plan.lines.feed(b"after\n").len(), 1);
}

#[test]
fn a_cursor_beyond_the_log_means_it_was_rotated() {
    assert!(TailLines::resume(11, 10).is_none());
    assert!(TailLines::resume(10, 10).is_some());
    assert!(TailLines::resume(0, 0).is_some());
}

#[test]
fn a_cursor_reads_back_and_nonsense_does_not() {
    let cursor = Cursor { generation: 3, offset: 65_536 };
    assert_eq!(cursor.to_string().parse(), Ok(cursor));
    for raw in [
        "",
        ":",
        "1:",
        ":1",
        "1",
        "1:2:3",
        "-1:2",
        "+1:2",
        "1: 2",
        "1:1e3",
        "4294967296:0",
        "1:18446744073709551616",
    ] {
        assert_eq!(raw.parse::<Cursor>(), Err(BadCursor), "{raw:?}");
    }
}

#[test]
fn h66_every_sample_split_at_every_byte_is_masked() {
    let log = "a env_01AB23CD45 b\nAuthorization: Bearer abc.def-ghi.jkl\n\
               id 0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0\nenv%5F01AB23CD45 \u{1b}[1mé\n\
               json env\\u005f01AB23CD45 id 0f1e2d3c\\u002d4b5a\\u002d6978\\u002d8796\\u002da5b4c3d2e1f0\n\
               id 0f1e2d3c%2D4b5a%2d6978%2D8796%2Da5b4c3d2e1f0 key sk-demo-0123456789abcdef\n\
               coloured env_01\u{1b}[31mAB23CD45 session_01AB23CD45 cse_01AB23CD45\n\
               -----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n";
    let whole = read(start(), log.as_bytes(), log.len());
    for (_, line) in &whole {
        for secret in ["01AB23CD45", "AB23CD45", "abc.def", "4b5a", "0123456789abcdef", "MIIE"] {
            assert!(!line.contains(secret), "{line}");
        }
    }
    for at in 0..=log.len() {
        let mut lines = TailLines::from_start();
        let mut redactor = Redactor::default();
        let (head, tail) = log.as_bytes().split_at(at);
        let mut found = lines.feed(head);
        found.extend(lines.feed(tail));
        let found: Vec<_> = found
            .iter()
            .map(|line| (line.end, line.redacted(&mut redactor).into_owned()))
            .collect();
        assert_eq!(found, whole, "split at {at}");
    }
}

fn log() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        any::<u8>().prop_map(|byte| vec![byte]),
        "[a-z ]{0,12}".prop_map(String::into_bytes),
        Just(b"\n".to_vec()),
        Just("env_01AB23CD45".into()),
        Just("é🚀\r\n".into()),
        (0..3_usize).prop_map(|n| vec![b'x'; n * 40_000]),
        Just(b"word ".repeat(14_000)),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn h66_lines_do_not_depend_on_where_the_chunks_were_cut(log in log(), at: prop::sample::Index) {
        let whole = read(start(), &log, log.len().max(1));
        let (head, tail) = log.split_at(at.index(log.len() + 1));
        let mut lines = TailLines::from_start();
        let mut redactor = Redactor::default();
        let mut split = Vec::new();
        for chunk in [head, tail] {
            for line in lines.feed(chunk) {
                split.push((line.end, line.redacted(&mut redactor).into_owned()));
            }
        }
        prop_assert_eq!(&split, &whole);
        prop_assert_eq!(read(start(), &log, 7), whole);
    }

    #[test]
    fn reading_on_from_any_line_continues_exactly(log in log()) {
        let all = read(start(), &log, 4096);
        for (at, (end, _)) in all.iter().enumerate() {
            let plan = TailLines::resume(*end, len(&log)).unwrap();
            prop_assert_eq!(read(plan, &log, 4096), &all[at + 1..]);
        }
    }

    #[test]
    fn another_reader_goes_on_where_one_rests(log in log(), at in any::<prop::sample::Index>()) {
        let all = read(start(), &log, 4096);
        let (head, _) = log.split_at(at.index(log.len() + 1));
        let mut lines = TailLines::from_start();
        let shown = lines.feed(head).len();
        let plan = TailLines::resume(lines.resting(), len(&log)).unwrap();
        prop_assert_eq!(plan.lines.resting(), lines.resting());
        prop_assert_eq!(read(plan, &log, 4096), &all[shown..]);
    }

    #[test]
    fn a_backfill_is_always_an_end_of_the_whole(log in log(), window in 0..200_000_u64) {
        let all = read(start(), &log, 4096);
        let shown = read(TailLines::backfill(len(&log), window), &log, 4096);
        prop_assert!(all.ends_with(&shown), "{shown:?}");
    }
}
