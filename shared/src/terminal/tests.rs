//! Folding frames, and the text of what is shown.

use super::*;
use proptest::prelude::*;

fn run(t: &str, w: u16) -> Run {
    Run { t: t.to_owned(), fg: None, bg: None, a: 0, w }
}

fn line(text: &str, wrapped: bool) -> Line {
    let columns = u16::try_from(text.chars().count()).unwrap();
    Line { wrapped, runs: vec![run(text, columns)] }
}

fn frame(seq: u64, base: Option<u64>, rows: &[(u16, &str)]) -> DiffFrame {
    let change = |(y, text): &(u16, &str)| {
        let Line { wrapped, runs } = line(text, false);
        RowChange { y: *y, wrapped, runs }
    };
    DiffFrame {
        generation: 1,
        seq,
        base,
        full: base.is_none(),
        state: ScreenState::Ready.into(),
        error: None,
        cols: 20,
        rows: 3,
        cursor: Cursor { x: 1, y: 2, visible: true },
        rows_changed: rows.iter().map(change).collect(),
        above: 0,
        oldest: 0,
    }
}

fn rows(screen: &Screen) -> Vec<String> {
    screen.rows.iter().map(Line::text).collect()
}

#[test]
fn frames_are_folded_and_a_missing_one_is_noticed() {
    let mut screen = Screen::default();
    assert_eq!(screen.fold(frame(5, Some(4), &[(0, "x")])), Folded::Missing);
    assert_eq!(screen.fold(frame(5, None, &[(0, "one"), (2, "three")])), Folded::All);
    assert_eq!(screen.fold(frame(6, Some(5), &[(1, "two")])), Folded::Rows(vec![1]));
    assert_eq!(rows(&screen), ["one", "two", "three"]);
    assert_eq!(screen.fold(frame(8, Some(7), &[(1, "lost")])), Folded::Missing);
    assert_eq!(screen.fold(frame(6, Some(5), &[(1, "again")])), Folded::Old);
    assert_eq!(rows(&screen), ["one", "two", "three"]);
    // A full frame tells every row; only those that differ are painted again.
    let full = frame(9, None, &[(0, "one"), (1, "2")]);
    assert_eq!(screen.fold(full), Folded::Rows(vec![1, 2]));
    assert_eq!(rows(&screen), ["one", "2", ""]);
}

#[test]
fn a_new_generation_begins_again_and_an_old_one_is_ignored() {
    let mut screen = Screen::default();
    screen.fold(frame(900, None, &[(0, "old")]));
    let next = DiffFrame { generation: 2, ..frame(1, None, &[(0, "new")]) };
    assert_eq!(screen.fold(next), Folded::All);
    assert_eq!(screen.fold(frame(901, None, &[(0, "late")])), Folded::Old);
    assert_eq!((rows(&screen)[0].as_str(), screen.seq), ("new", 1));
}

#[test]
fn copied_text_has_no_blanks_at_the_ends_and_joins_what_was_wrapped() {
    let lines = [line("a long li", true), line("ne   ", false), line("", false), line("b ", false)];
    assert_eq!(text_of(&lines), "a long line\n\nb");
    assert_eq!(text_of(&lines[..1]), "a long li");
}

#[test]
fn a_plain_row_has_one_character_for_each_column() {
    let wide = Line { wrapped: false, runs: vec![run("ab", 2), run("日", 2), run("c", 1)] };
    assert_eq!(wide.padded(8), "ab日 c   ");
    assert_eq!(wide.padded(3), "ab日");
}

#[test]
fn a_frame_is_known_by_its_members() {
    let diff = TerminalFrame::Diff(frame(1, None, &[(0, "x")]));
    let lines = TerminalFrame::Lines(LinesFrame {
        generation: 1,
        from: 3,
        oldest: 0,
        lines: vec![line("l", true)],
    });
    let typed = TerminalFrame::Typed(TypedFrame { typed: 4, refused: None, stands: false });
    let refused = Some("no Enter".to_owned());
    let stands = TerminalFrame::Typed(TypedFrame { typed: 5, refused, stands: true });
    for frame in [diff, lines, typed, stands] {
        let text = serde_json::to_string(&frame).unwrap();
        assert_eq!(TerminalFrame::read(&text).unwrap(), frame, "{text}");
    }
    let asked: ClientFrame = serde_json::from_str(r#"{"type":"scroll","from":3,"n":9}"#).unwrap();
    assert_eq!(asked, ClientFrame::Scroll { from: 3, n: 9 });
    let typed: ClientFrame = serde_json::from_str(r#"{"type":"input","text":"x","id":1}"#).unwrap();
    assert_eq!(typed, ClientFrame::Input { text: "x".to_owned(), id: 1, enter: false });
}

proptest! {
    /// Whatever a viewer misses: after the next full frame it has what the service has.
    #[test]
    fn h58_a_viewer_ends_with_the_screen_of_the_service(
        steps in prop::collection::vec((0u16..3, "[a-z]{0,8}", any::<bool>(), any::<bool>()), 1..30),
    ) {
        let mut service = Screen::default();
        service.fold(frame(0, None, &[]));
        let mut viewer = service.clone();
        let mut needs_full = false;
        for (seq, (y, text, arrives, full)) in (1..).zip(steps) {
            service.fold(frame(seq, Some(seq - 1), &[(y, text.as_str())]));
            if full {
                let texts: Vec<String> = rows(&service);
                let all: Vec<(u16, &str)> = (0..).zip(texts.iter().map(String::as_str)).collect();
                viewer.fold(frame(seq, None, &all));
                needs_full = false;
            } else if arrives {
                let folded = viewer.fold(frame(seq, Some(seq - 1), &[(y, text.as_str())]));
                prop_assert_eq!(folded == Folded::Missing, needs_full);
            } else {
                needs_full = true;
            }
            if !needs_full {
                prop_assert_eq!(rows(&viewer), rows(&service));
            }
        }
    }
}
