//! What a viewer lacks, and rows as viewers get them.

use super::*;
use proptest::prelude::*;
use svc_keeper::message::Moved;
use svc_keeper::screen::{Attrs, Cursor as KeptCursor, Modes, Run as KeptRun};
use svc_shared::terminal::{BOLD, Folded, Screen};

fn row(text: &str) -> Row {
    let cells = text.chars().map(|c| c.width().unwrap_or(0)).sum::<usize>();
    let run = KeptRun {
        text: text.to_owned(),
        fg: Colour::Default,
        bg: Colour::Rgb(255, 0, 0),
        attrs: Attrs::BOLD,
        cells: u16::try_from(cells).unwrap(),
    };
    Row { runs: vec![run], wrapped: false }
}

fn key(seq: u64, texts: &[String]) -> Key {
    Key {
        seq,
        cols: 20,
        row_count: u16::try_from(texts.len()).unwrap(),
        cursor: KeptCursor::default(),
        modes: Modes::default(),
        rows: texts.iter().map(|text| row(text)).collect(),
        scroll_base: 0,
        scroll_first: 0,
    }
}

fn diff(seq: u64, rows: Vec<(u16, Row)>, scroll: Option<Moved>) -> Diff {
    Diff {
        seq,
        base: seq - 1,
        rows,
        cursor: None,
        modes: None,
        scroll,
        scroll_base: None,
        scroll_first: None,
    }
}

#[test]
fn wide_characters_are_runs_of_two_columns() {
    let line = line(&row("a日本e\u{301}🚀b"));
    let runs: Vec<(&str, u16)> = line.runs.iter().map(|run| (run.t.as_str(), run.w)).collect();
    assert_eq!(runs, [("a", 1), ("日", 2), ("本", 2), ("e\u{301}", 1), ("🚀", 2), ("b", 1)]);
    assert!(line.runs.iter().all(|run| run.a == BOLD && run.bg == Some(196) && run.fg.is_none()));
}

#[test]
fn a_frame_that_does_not_fit_changes_nothing() {
    let mut picture = Picture::default();
    assert!(!picture.diff(&diff(2, vec![], None)));
    picture.key(key(1, &["a".into(), "b".into()]));
    assert!(!picture.diff(&diff(9, vec![(0, row("x"))], None)));
    assert_eq!(picture.plain().screen.unwrap().rows[0].trim_end(), "a");
    // A viewer of another size or from the future gets everything.
    assert!(picture.frame(Some(5)).full && picture.frame(None).full);
    picture.key(Key { cols: 30, ..key(2, &["a".into(), "b".into()]) });
    assert!(picture.frame(Some(1)).full);
    assert!(!picture.frame(Some(2)).full);
}

proptest! {
    /// Whenever a viewer asks, and whatever it has, it ends with the same screen.
    #[test]
    fn h58_what_a_viewer_lacks_makes_its_screen_that_of_the_service(
        steps in prop::collection::vec(
            (0u16..4, "[a-c]{0,3}", prop::option::of((0u16..4, 0u16..4, 1u16..3)), any::<bool>()),
            1..40,
        ),
    ) {
        let mut picture = Picture::default();
        picture.begin(1);
        picture.key(key(1, &["one".into(), String::new(), "three".into(), "four".into()]));
        let mut viewer = Screen::default();
        viewer.fold(picture.frame(None));
        for (seq, (y, text, moved, asks)) in (2..).zip(steps) {
            let moved = moved.map(|(top, bottom, n)| Moved { top, bottom, n });
            prop_assert!(picture.diff(&diff(seq, vec![(y, row(&text))], moved)));
            if asks {
                let folded = viewer.fold(picture.frame(Some(viewer.seq)));
                prop_assert!(matches!(folded, Folded::Rows(_)), "{folded:?}");
                let mut whole = Screen::default();
                whole.fold(picture.frame(None));
                prop_assert_eq!(&viewer.rows, &whole.rows);
            }
        }
    }
}
