//! What the emulator draws, keeps, answers and survives.

use super::*;
use proptest::prelude::*;

fn size() -> Size {
    Size::clamped(40, 10)
}

fn drawn(bytes: &[u8]) -> Emulator {
    let mut emulator = Emulator::new(size(), 100);
    emulator.feed(bytes, Instant::now());
    emulator
}

fn texts(emulator: &mut Emulator) -> Vec<String> {
    emulator.picture().rows.iter().map(|row| row.text().trim_end().to_owned()).collect()
}

/// Sequences that full-screen programs and tests of terminals use.
///
/// Each is drawn so that its effect shows.
const CORPUS: &[(&str, &[u8])] = &[
    ("plain lines", b"one\r\ntwo\r\nthree"),
    ("a long line wraps", b"0123456789012345678901234567890123456789abcdef"),
    ("wide characters", "日本語 and ascii\r\n宽".as_bytes()),
    ("a wide character at the edge", "012345678901234567890123456789012345678日x".as_bytes()),
    ("overwriting half of a wide character", "日本\x1b[1;2Hx".as_bytes()),
    ("cursor moves", b"\x1b[3;5Hhere\x1b[2Aup\x1b[10Dleft\x1b[5Gcol\x1b[7dline"),
    ("a scroll region", b"1\r\n2\r\n3\r\n4\r\n5\x1b[2;4r\x1b[4;1H\r\nnew\x1b[r"),
    ("scrolling up and down", b"1\r\n2\r\n3\r\n4\x1b[2S\x1b[1T"),
    ("reverse index", b"1\r\n2\x1b[H\x1bMtop"),
    ("inserting and deleting lines", b"1\r\n2\r\n3\r\n4\x1b[2;1H\x1b[1Lins\x1b[4;1H\x1b[1M"),
    ("inserting and deleting characters", b"abcdef\x1b[1;3H\x1b[2@XY\x1b[1;6H\x1b[1P"),
    ("erasing characters", b"abcdefgh\x1b[1;3H\x1b[3X"),
    ("erasing in line", b"abcdef\x1b[1;3H\x1b[K\r\nabcdef\x1b[2;3H\x1b[1K\r\nabc\x1b[2K"),
    ("erasing below", b"1\r\n2\r\n3\x1b[2;1H\x1b[J"),
    ("erasing above", b"1\r\n2\r\n3\r\n4\x1b[3;1H\x1b[1J"),
    ("repeating", b"ab\x1b[5bc"),
    ("the alternate screen", b"main\x1b[?1049h\x1b[Halt\x1b[?1049l"),
    ("inside the alternate screen", b"main\x1b[?1049h\x1b[Halt"),
    ("no wrapping", b"\x1b[?7l01234567890123456789012345678901234567890123456789\x1b[?7h"),
    ("origin mode", b"\x1b[3;6r\x1b[?6h\x1b[1;1Ho\x1b[?6l\x1b[r"),
    ("tabs", b"a\tb\tc"),
    ("backspace", b"abc\x08\x08X"),
    ("saved cursor", b"\x1b[5;5H\x1b7\x1b[1;1Hx\x1b8y"),
    ("colours", b"\x1b[1;31mred\x1b[0m \x1b[38;5;200mx\x1b[48;2;1;2;3my\x1b[m"),
    (
        "an OSC title and a link",
        b"\x1b]0;title\x07a\x1b]8;;https://x.example\x1b\\b\x1b]8;;\x1b\\c",
    ),
    ("a DCS string", b"a\x1bPq#0;1;2\x1b\\b"),
    // What the well-known test of terminals (vttest) asks, in the order of its chapters.
    ("a screen of one letter", b"\x1b#8"),
    ("moves stop at the edges", b"\x1b[99;99Hx\x1b[99A\x1b[99Dy\x1b[99B\x1b[99Cz"),
    ("moves without and with zero", b"\x1b[5;5Ha\x1b[Ab\x1b[0Bc\x1b[0;0Hd"),
    ("moves by lines", b"abc\x1b[2Edef\x1b[1Fghi"),
    ("moves by old names", b"\x1b[3;4fhere\x1b[2`col\x1b[3arel\x1b[2edown"),
    ("index and next line", b"one\x1bDtwo\x1bEthree"),
    ("an index at the bottom scrolls", b"top\x1b[10;1Hlast\x1bDnext"),
    ("controls inside of a sequence", b"ab\x1b[2\x08Cc\r\n\x1b[\r3Cd\x1b[1\x0b;4He"),
    ("leading zeros", b"\x1b[0000000004;0000000007Hx"),
    ("a cancelled sequence", b"ab\x1b[12\x18cd\x1b[3\x1aef"),
    ("a sequence that begins again", b"ab\x1b[1\x1b[4Cx"),
    ("an unknown sequence", b"ab\x1b[?99999hcd\x1b[5}ef\x1b[>7zgh"),
    ("the wrap waits", b"0123456789012345678901234567890123456789\x08x\r\ny"),
    ("the wrap waits for a move", b"0123456789012345678901234567890123456789\x1b[Ax\x1b[2;1Hy"),
    ("the wrap waits for an erase", b"0123456789012345678901234567890123456789\x1b[Kx"),
    ("a wrap at the bottom scrolls", b"top\x1b[10;36Habcdefghij"),
    ("tabs are set and cleared", b"\x1b[3g\x1b[1;5H\x1bH\x1b[1;9H\x1bH\r\tA\tB\tC"),
    ("a tab is cleared", b"\x1b[1;9H\x1b[g\r\tA"),
    ("tabs back and forth", b"\x1b[2Ix\x1b[1Zy"),
    ("insert mode", b"world\r\x1b[4hhello \x1b[4lW"),
    ("line feed mode", b"ab\x1b[20hcd\nef\x1b[20lgh\nij"),
    ("drawing characters", b"\x1b(0lqqk\r\nx  x\x1b(B plain\r\n\x1b)0a\x0eq\x0fq"),
    ("the cursor is saved with its set", b"\x1b(0\x1b7\x1b(B\x1b[3;3Hq\x1b8q"),
    ("a restore without a save", b"abc\x1b[5;5H\x1b8x"),
    ("the cursor is saved by its other name", b"ab\x1b[s\x1b[5;5Hcd\x1b[uef"),
    ("a region keeps what is around it", b"a\r\nb\r\nc\r\nd\r\ne\x1b[2;4r\x1b[2;1H\x1bMz\x1b[r"),
    ("lines are inserted in a region", b"a\r\nb\r\nc\r\nd\r\ne\x1b[2;4r\x1b[3;1H\x1b[5Lz\x1b[r"),
    ("lines are deleted in a region", b"a\r\nb\r\nc\r\nd\r\ne\x1b[2;4r\x1b[2;1H\x1b[1Mz\x1b[r"),
    ("outside of a region nothing scrolls", b"a\r\nb\x1b[3;5r\x1b[10;1Hx\r\ny\x1b[r"),
    ("a region that is none", b"a\x1b[8;3rb\x1b[4;4rc"),
    ("origin mode keeps inside", b"\x1b[3;6r\x1b[?6h\x1b[9;1Hlow\x1b[1;1Hup\x1b[?6l\x1b[r"),
    ("characters leave at the right", b"\x1b[1;38Habc\x1b[1;37H\x1b[2@xy"),
    ("more is deleted than there is", b"abcdef\x1b[1;3H\x1b[99P\r\nabc\x1b[99X"),
    ("more is inserted than fits", b"abcdef\x1b[1;3H\x1b[99@x"),
    ("all is erased", b"abc\r\ndef\x1b[2Jx"),
    ("colours of all kinds", b"\x1b[38:5:9ma\x1b[48:2::1:2:3mb\x1b[4:3mc\x1b[58;5;1md\x1b[0;99me"),
    ("a reset", b"\x1b[2;5r\x1b[4habc\x1bcdef"),
    ("repeating at the edge", b"\x1b[1;38Ha\x1b[5b"),
    ("the old alternate screen", b"main\x1b[?47halt\x1b[?47l!"),
    ("a cursor of the alternate screen", b"main\x1b[?1049h\x1b[5;5Hx\x1b[?1049ly"),
    ("a joined emoji and a flag", "a👍b🇩🇪c".as_bytes()),
    ("a mark on a wide character", "日\u{301}x e\u{308}".as_bytes()),
    (
        "a private message and an application command",
        b"a\x1b^secret\x1b\\b\x1b_G1\x1b\\c\x1bXs\x1b\\d",
    ),
    ("an OSC that a BEL ends and one that is cut", b"a\x1b]2;t\x07b\x1b]2;t\x18c"),
];

#[test]
fn the_same_screen_however_the_bytes_are_cut() {
    for (name, bytes) in CORPUS {
        let whole = drawn(bytes).picture();
        for cut in 0..bytes.len() {
            let mut emulator = Emulator::new(size(), 100);
            emulator.feed(&bytes[..cut], Instant::now());
            emulator.feed(&bytes[cut..], Instant::now());
            assert_eq!(emulator.picture(), whole, "{name} cut at {cut}");
        }
    }
}

/// Where another emulator draws something else, and why that is not our fault.
const DIFFERENCES: &[(&str, &str, &str)] = &[
    ("no wrapping", "vt100", "it does not know the mode DECAWM and always wraps"),
    ("a screen of one letter", "vt100", "it does not know DECALN"),
    ("moves by old names", "vt100", "it does not know HPA, HPR and VPR"),
    ("index and next line", "vt100", "it does not know IND and NEL"),
    ("an index at the bottom scrolls", "vt100", "it does not know IND"),
    ("the wrap waits", "vt100", "its cursor waits behind the last column, xterm's on it"),
    (
        "the wrap waits for a move",
        "vt100",
        "its cursor waits behind the last column, xterm's on it",
    ),
    ("tabs are set and cleared", "vt100", "its tab stops cannot be changed"),
    ("a tab is cleared", "vt100", "its tab stops cannot be changed"),
    ("tabs back and forth", "vt100", "it does not know CHT and CBT"),
    ("insert mode", "vt100", "it does not know the mode IRM"),
    ("line feed mode", "vt100", "it does not know the mode LNM"),
    ("drawing characters", "vt100", "it knows one set of characters only"),
    ("the cursor is saved with its set", "vt100", "it knows one set of characters only"),
    ("the cursor is saved with its set", "avt", "it saves no set of characters, as DECSC asks"),
    ("the cursor is saved by its other name", "vt100", "it does not know SCOSC"),
    ("a region that is none", "vt100", "it moves the cursor home, xterm ignores the sequence"),
    ("a region that is none", "avt", "it moves the cursor home, xterm ignores the sequence"),
    ("the old alternate screen", "vt100", "the grid knows 1049, which programs use, and not 47"),
    ("the old alternate screen", "avt", "the grid knows 1049, which programs use, and not 47"),
];

/// Two others: vt100 has a grid of its own, avt a parser of its own too.
#[test]
fn h54_two_other_emulators_draw_the_same_corpus() {
    let mut differing = Vec::new();
    for (name, bytes) in CORPUS {
        let mut ours = drawn(bytes);
        let ours = texts(&mut ours);
        let mut vt100 = vt100::Parser::default();
        vt100.screen_mut().set_size(
            std::num::NonZeroU16::new(10).unwrap(),
            std::num::NonZeroU16::new(40).unwrap(),
        );
        vt100.process(bytes);
        let theirs: Vec<String> =
            vt100.screen().rows(0, 40).map(|row| row.trim_end().to_owned()).collect();
        if ours != theirs {
            differing.push((*name, "vt100", ours.clone(), theirs));
        }
        let mut avt = avt::Terminal::new(40, 10).unwrap();
        avt.feed(String::from_utf8_lossy(bytes).chars());
        let lines = avt.screen().visible_lines();
        let theirs: Vec<String> = lines.map(|line| line.text().trim_end().to_owned()).collect();
        if ours != theirs {
            differing.push((*name, "avt", ours, theirs));
        }
    }
    let names: Vec<_> = differing.iter().map(|(name, other, ..)| (*name, *other)).collect();
    let known: Vec<_> = DIFFERENCES.iter().map(|(name, other, _)| (*name, *other)).collect();
    assert_eq!(names, known, "{differing:#?}");
}

#[test]
fn h54_bytes_that_are_no_utf_8_show_as_replacement_characters() {
    let mut emulator = drawn(b"a\xffb\xc3(c\r\nok");
    assert_eq!(texts(&mut emulator)[..2], ["a\u{fffd}b\u{fffd}(c", "ok"]);
}

#[test]
fn h54_a_million_combining_marks_and_a_huge_string_cost_nothing_and_the_next_line_renders() {
    let marks = format!("x{}", "\u{301}".repeat(1 << 20));
    let mut emulator = drawn(marks.as_bytes());
    assert_eq!(character(&emulator, 0, 0).chars().count(), 17);
    // Moves between the marks do not help.
    for _ in 0..1000 {
        emulator.feed("\x1b[2G\u{301}\u{301}".as_bytes(), Instant::now());
    }
    assert_eq!(character(&emulator, 0, 0).chars().count(), 17);
    emulator.feed(b"\x1b]0;", Instant::now());
    for _ in 0..20 {
        emulator.feed(&[b'x'; 1 << 20], Instant::now());
    }
    emulator
        .feed(b"\x07\x1b[999999999;999999999H\x1b[999999999b\x1b[2J\x1b[Hplain", Instant::now());
    assert_eq!(texts(&mut emulator)[0], "plain");
    assert!(emulator.dropped() > 19 << 20);
}

#[test]
fn lines_that_leave_the_screen_are_numbered_and_capped() {
    let mut emulator = Emulator::new(size(), 100);
    for number in 0..5000 {
        emulator.feed(format!("line {number}\r\n").as_bytes(), Instant::now());
    }
    let picture = emulator.picture();
    // 5000 lines and the empty last one, of which ten are on the screen.
    assert_eq!((picture.scroll_base, picture.scroll_first), (4991, 4891));
    assert_eq!(picture.rows[0].text().trim_end(), "line 4991");
    let (first, lines) = emulator.lines(0, 3);
    assert_eq!(first, 4891);
    let texts: Vec<String> = lines.iter().map(Row::text).collect();
    assert_eq!(texts, ["line 4891", "line 4892", "line 4893"]);
    assert_eq!(emulator.lines(4990, 500).1.len(), 1);
    assert_eq!(emulator.lines(u64::MAX, 500).1.len(), 0);
    assert_eq!(emulator.lines_above(), 100);
    // One write that scrolls more than the grid keeps.
    emulator.feed("y\r\n".repeat(20_000).as_bytes(), Instant::now());
    assert_eq!(emulator.picture().scroll_base, 24_991);
    emulator.feed(b"\x1b[3J", Instant::now());
    let picture = emulator.picture();
    assert_eq!((picture.scroll_base, picture.scroll_first), (24_991, 24_991));
}

#[test]
fn wide_and_marked_characters_survive_above_the_screen() {
    let mut emulator = Emulator::new(size(), 100);
    let line = "日e\u{301}本 \x1b[1mbold\x1b[0m end";
    emulator.feed(line.as_bytes(), Instant::now());
    let before = emulator.picture().rows[0].clone();
    emulator.feed("\r\n".repeat(10).as_bytes(), Instant::now());
    assert_eq!(emulator.lines(0, 1).1, [before]);
}

#[test]
fn h55_f71_queries_get_constant_answers_without_a_byte_of_the_output() {
    let mut emulator = drawn(b"\x1b[c\x1b[>c\x1b[5n\x1b[3;7H\x1b[6n\x1b[18t");
    let answers = emulator.take_replies();
    assert_eq!(answers, b"\x1b[?6c\x1b[>0;0;0c\x1b[0n\x1b[3;7R\x1b[8;10;40t");
    // Titles, clipboard, colours, settings and modes are never reported.
    let mut emulator = drawn(
        b"\x1b]0;touch /tmp/x\x07\x1b[21t\x1b[20t\x1b]52;c;?\x07\x1b]52;c;dG91Y2g=\x07\x1b]52;c;?\x07\
          \x1bP$qm\x1b\\\x1bP+q544e\x1b\\\x1b]4;1;?\x07\x1b]10;?\x07\x1b]11;?\x07\x1b[>0q\x1b[?u\x1b[>q\
          \x1b[?2026$p\x1b[4$p\x1b[14t\x1b[x\x05",
    );
    assert_eq!(emulator.take_replies(), b"");
    // Answers nobody reads are bounded.
    let mut emulator = drawn(&b"\x1b[c".repeat(100_000));
    assert!(emulator.take_replies().len() <= 4 << 10);
}

#[test]
fn h56_what_leaves_the_emulator_is_redacted_also_over_two_rows_and_above_the_screen() {
    let secret = "sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    for indent in 0..40 {
        let text = format!("{}{secret}\x1b]0;{secret}\x07", " ".repeat(indent));
        let mut emulator = drawn(text.as_bytes());
        let shown: String = texts(&mut emulator).concat();
        assert!(!shown.contains("AAAAAAAA"), "{indent}: {shown}");
        emulator.feed("\r\n".repeat(11).as_bytes(), Instant::now());
        let (_, lines) = emulator.lines(0, 10);
        let above: String = lines.iter().map(Row::text).collect();
        assert!(!above.contains("AAAAAAAA"), "{indent}: {above}");
    }
}

#[test]
fn a_synchronized_update_is_shown_whole_and_not_held_for_ever() {
    let mut emulator = Emulator::new(size(), 0);
    let now = Instant::now();
    emulator.feed(b"\x1b[?2026hhalf", now);
    assert_eq!(texts(&mut emulator)[0], "");
    emulator.feed(b" whole\x1b[?2026l", now);
    assert_eq!(texts(&mut emulator)[0], "half whole");
    emulator.feed(b"\x1b[?2026h!", now);
    emulator.feed(b"\x1b[?2026h!", now + Duration::from_millis(100));
    assert_eq!(texts(&mut emulator)[0], "half whole");
    emulator.tick(now + Duration::from_millis(150));
    assert_eq!(texts(&mut emulator)[0], "half whole!!");
}

#[test]
fn the_target_of_a_connect_link_is_found_and_not_shown() {
    let mut emulator = drawn(b"\x1b]8;;https://claude.ai/code/session_01Ab\x07here\x1b]8;;\x07");
    assert_eq!(emulator.take_link().as_deref(), Some("https://claude.ai/code/session_01Ab"));
    assert_eq!(texts(&mut emulator)[0], "here");
}

/// Bytes that are likely to mean something to a terminal.
fn output() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        (
            prop::collection::vec(0u32..100_000, 0..5),
            prop::sample::select(b"@ABCDEFGHIJKLMPSTXZ`abcdfghlmnqrstu".to_vec())
        )
            .prop_map(|(numbers, last)| {
                let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
                format!("\x1b[{}{}", numbers.join(";"), char::from(last)).into_bytes()
            }),
        prop::sample::select(vec![
            &b"\x1b[?1049h"[..],
            b"\x1b[?1049l",
            b"\x1b[?6h",
            b"\x1b[4h",
            b"\x1b[?7l",
            b"\x1b[?2026h",
            b"\x1b[?2026l",
            b"\x1bM",
            b"\x1bD",
            b"\x1b7",
            b"\x1b8",
            b"\x1bc",
            b"\x1b#8",
            b"\x1b]0;",
            b"\x1bP",
            b"\xe6\x97\xa5",
            b"\xcc\x81",
            b"\t",
            b"\r\n"
        ])
        .prop_map(<[u8]>::to_vec),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn h54_no_output_breaks_the_emulator(
        bytes in output(),
        cols in any::<u16>(),
        rows in any::<u16>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut emulator = Emulator::new(size(), 50);
        let cut = cut.index(bytes.len() + 1);
        emulator.feed(&bytes[..cut], Instant::now());
        emulator.resize(Size::clamped(cols, rows));
        emulator.feed(&bytes[cut..], Instant::now());
        prop_assert_eq!(emulator.faults(), 0);
        let picture = emulator.picture();
        prop_assert_eq!(picture.rows.len(), usize::from(picture.size.rows()));
        for row in &picture.rows {
            let cells: u16 = row.runs.iter().map(|run| run.cells).sum();
            prop_assert!(cells <= picture.size.cols());
            prop_assert!(!row.text().chars().any(char::is_control));
        }
        prop_assert!(emulator.lines_above() <= 50);
        // Whatever came before, a reset and a plain line render.
        emulator.feed(b"\x18\x1b\\\x1b[?2026l\x1bcplain", Instant::now());
        prop_assert_eq!(&texts(&mut emulator)[0], "plain");
    }
}

/// What real programs drew on a terminal of 80 × 24.
const RECORDINGS: &[(&str, &[u8])] = &[
    ("vim", include_bytes!("../../../../tests/recordings/vim.bytes")),
    ("less", include_bytes!("../../../../tests/recordings/less.bytes")),
    ("nano", include_bytes!("../../../../tests/recordings/nano.bytes")),
    ("htop", include_bytes!("../../../../tests/recordings/htop.bytes")),
    ("tmux", include_bytes!("../../../../tests/recordings/tmux.bytes")),
];

/// Compared after every piece: what a program draws last hides earlier faults.
#[test]
fn h54_two_other_emulators_draw_what_real_programs_show() {
    let mut differing = Vec::new();
    for (name, bytes) in RECORDINGS {
        let mut ours = Emulator::new(Size::clamped(80, 24), 100);
        let mut vt100 = vt100::Parser::default();
        let (rows, columns) = (std::num::NonZeroU16::new(24), std::num::NonZeroU16::new(80));
        vt100.screen_mut().set_size(rows.unwrap(), columns.unwrap());
        let mut avt = avt::Terminal::new(80, 24).unwrap();
        let mut text = Vec::new();
        for piece in bytes.chunks(64) {
            ours.feed(piece, Instant::now());
            vt100.process(piece);
            // Characters that are cut wait for their rest.
            text.extend_from_slice(piece);
            let whole = std::str::from_utf8(&text).map_or_else(|e| e.valid_up_to(), str::len);
            avt.feed(std::str::from_utf8(&text[..whole]).unwrap().chars());
            text.drain(..whole);
            let drawn = texts(&mut ours);
            let of_vt100: Vec<String> =
                vt100.screen().rows(0, 80).map(|row| row.trim_end().to_owned()).collect();
            let of_avt: Vec<String> = avt
                .screen()
                .visible_lines()
                .map(|line| line.text().trim_end().to_owned())
                .collect();
            for (other, theirs) in [("vt100", of_vt100), ("avt", of_avt)] {
                if drawn != theirs {
                    let rows = drawn.iter().zip(&theirs).enumerate();
                    let row = rows
                        .filter(|(_, (a, b))| a != b)
                        .map(|(y, (a, b))| format!("{y}: {a:?} / {b:?}"));
                    differing.push((*name, other, row.collect::<Vec<_>>()));
                }
            }
        }
    }
    assert!(
        differing.is_empty(),
        "{} differ: {:#?}",
        differing.len(),
        differing.iter().take(4).collect::<Vec<_>>()
    );
}
