//! Whichever way a file is read, its turns are the same.

use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::io::Write as _;
use svc_shared::internal::conversations::{BlockKind, TurnRole};

fn line(role: &str, content: Value) -> String {
    json!({
        "type": role, "cwd": "/p/app", "timestamp": "2026-03-01T10:20:30.000Z",
        "isSidechain": false, "message": { "role": role, "content": content },
    })
    .to_string()
}

fn file_of(text: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text).unwrap();
    file
}

fn indexed(file: &File) -> Index {
    let mut index = Index::default();
    assert!(!index.update(file, u64::MAX).unwrap().is_more);
    index
}

/// All turns by pages of a size, and the cursors in between.
fn all(
    file: &File,
    index: &Index,
    most: usize,
    is_forwards: bool,
    find: Option<&str>,
) -> Vec<Turn> {
    let pages = Pages { file, index };
    let (mut from, mut turns) = (0, Vec::new());
    loop {
        let page = if is_forwards {
            pages.forwards(from, most, find).unwrap()
        } else {
            pages.backwards(from, most, find).unwrap()
        };
        assert!(page.turns.len() <= most);
        turns.extend(page.turns);
        match page.next {
            Some(next) => {
                assert!(next > from, "{next} after {from}");
                from = next;
            }
            None => return turns,
        }
    }
}

#[test]
fn a_turn_has_its_parts_redacted_and_a_role_of_its_own() {
    let text = [
        line("user", json!("hello\nsession_01ABCDEFGHIJ \u{1b}[31mred")),
        line(
            "assistant",
            json!([
                { "type": "thinking", "thinking": "hm" },
                { "type": "tool_use", "name": "Bash", "input": { "command": "ls\npwd", "n": 1 } },
            ]),
        ),
        line(
            "user",
            json!([{ "type": "tool_result", "is_error": true, "content": [{ "type": "text", "text": "no" }, { "type": "image" }] }]),
        ),
        line("attachment", json!([{ "type": "image" }])),
        json!({ "type": "summary", "summary": "no turn" }).to_string(),
    ]
    .join("\n")
        + "\n{torn";
    let file = file_of(text.as_bytes());
    let index = indexed(&file);
    assert_eq!((index.turns, index.skipped), (4, 0));
    assert!(index.offset() < text.len() as u64, "the last line is not complete");
    assert_eq!(index.first_prompt.as_deref(), Some("hello session_<redacted> red"));
    let turns = all(&file, &index, 10, true, None);
    let roles: Vec<_> = turns.iter().map(|turn| *turn.role.known().unwrap()).collect();
    use TurnRole::{Assistant, System, Tool, User};
    assert_eq!(roles, [User, Assistant, Tool, System]);
    assert_eq!(turns[0].content[0].text, "hello\nsession_<redacted> red");
    assert_eq!(turns[1].content[1].tool.as_deref(), Some("Bash"));
    assert_eq!(turns[1].content[1].text, "command: ls\npwd\nn: 1");
    assert!(turns[2].content[0].is_error && turns[2].content[0].text == "no\n[image]");
    assert!(turns[3].content[0].kind.is(&BlockKind::Other));
}

/// H128: a line of 50 MB is skipped and counted, and so is one of damaged text.
#[test]
fn h128_lines_without_end_and_damaged_ones_are_skipped_and_counted() {
    let long = format!("{}\n", line("user", json!("x".repeat(super::super::lines::LONGEST + 1))));
    let text =
        format!("{}\n{long}{{broken\n{}\n", line("user", json!("a")), line("user", json!("b")));
    let file = file_of(text.as_bytes());
    let index = indexed(&file);
    assert_eq!((index.turns, index.skipped, index.offset()), (2, 2, text.len() as u64));
    // Read in steps that end inside the long line.
    let mut stepped = Index::default();
    let mut growing = tempfile::tempfile().unwrap();
    for part in text.as_bytes().chunks(3 * 1024 * 1024) {
        growing.write_all(part).unwrap();
        stepped.update(&growing, u64::MAX).unwrap();
    }
    assert_eq!((stepped.turns, stepped.skipped, stepped.offset()), (2, 2, text.len() as u64));
    let found: Vec<_> = all(&file, &index, 1, false, None).iter().map(|turn| turn.index).collect();
    assert_eq!(found, [1, 0]);
}

#[test]
fn a_file_that_is_cut_or_replaced_is_read_anew() {
    let mut file = file_of(format!("{}\n", line("user", json!("long enough"))).as_bytes());
    let mut index = indexed(&file);
    file.set_len(0).unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    file.write_all(b"{}\n").unwrap();
    let updated = index.update(&file, u64::MAX).unwrap();
    assert!(updated.is_reset && updated.is_changed);
    assert_eq!((index.turns, index.first_prompt.as_deref()), (0, None));
    let other = file_of(format!("{}\n", line("user", json!("other"))).as_bytes());
    assert!(index.update(&other, u64::MAX).unwrap().is_reset);
    assert_eq!(index.first_prompt.as_deref(), Some("other"));
}

#[test]
fn a_message_that_is_written_several_times_is_counted_once() {
    let message = |id: &str, model: &str, output: u64| {
        json!({ "timestamp": "2026-03-01T10:20:30.000Z", "message": {
            "role": "assistant", "id": id, "model": model,
            "usage": { "input_tokens": 10, "output_tokens": output, "cache_read_input_tokens": 5 },
        }})
        .to_string()
    };
    let text = [
        message("m1", "claude-opus-4-5", 1),
        message("m1", "claude-opus-4-5", 7),
        message("m2", "claude-opus-4-5", 2),
        message("m1", "claude-opus-4-5", 7),
        message("m3", "<synthetic>", 100),
    ];
    let index = indexed(&file_of((text.join("\n") + "\n").as_bytes()));
    let used: Vec<_> = index.used().collect();
    let [one, other] = used.as_slice() else { panic!("{used:?}") };
    for used in [one, other] {
        assert_eq!((used.day, used.model), (20_513, "claude-opus-4-5"));
    }
    let tokens = one.tokens.plus(other.tokens);
    assert_eq!((tokens.input, tokens.output, tokens.cache_read), (20, 9, 10));
}

#[test]
fn a_follower_gets_what_came_after_its_offset() {
    let texts: Vec<_> =
        (0..1_200).map(|n| line("user", json!(format!("turn {n}"))) + "\n").collect();
    let file = file_of(texts.concat().as_bytes());
    let index = indexed(&file);
    let pages = Pages { file: &file, index: &index };
    let (turns, end) = pages.since(0).unwrap();
    assert_eq!((turns.len(), turns[0].index, end), (1_000, 200, index.offset()));
    let offset = texts[..1_190].concat().len() as u64;
    let numbers: Vec<_> = pages.since(offset).unwrap().0.iter().map(|turn| turn.index).collect();
    assert_eq!(numbers, (1_190..1_200).collect::<Vec<_>>());
    assert_eq!(pages.since(index.offset()).unwrap(), (Vec::new(), index.offset()));
    assert_eq!(pages.since(u64::MAX).unwrap().0, []);
}

fn lines() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let turn = "[a-c ]{0,12}".prop_map(|text| line("user", json!(text)).into_bytes());
    let noise = proptest::collection::vec(any::<u8>(), 0..40);
    proptest::collection::vec(prop_oneof![8 => turn, 1 => noise], 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// H128, H144: arbitrary bytes give the same turns whichever way.
    #[test]
    fn pages_forwards_and_backwards_are_the_whole(
        lines in lines(), most in 1_usize..70, cut in 0_usize..3_000, find in "[a-c]{0,2}",
    ) {
        let text = lines.concat_with_ends();
        let file = file_of(&text);
        let index = indexed(&file);
        let whole = all(&file, &index, usize::MAX, true, None);
        prop_assert_eq!(whole.len() as u64, index.turns);
        prop_assert!(whole.iter().enumerate().all(|(at, turn)| turn.index == at as u64));
        prop_assert_eq!(&all(&file, &index, most, true, None), &whole);
        let mut backwards = all(&file, &index, most, false, None);
        backwards.reverse();
        prop_assert_eq!(&backwards, &whole);
        let hits: Vec<Turn> = whole
            .iter()
            .filter(|turn| turn.content.iter().any(|block| block.text.contains(&find)))
            .cloned()
            .collect();
        prop_assert_eq!(&all(&file, &index, most, true, Some(&find)), &hits);
        // Read in two steps, with a budget, it is the same.
        let mut growing = tempfile::tempfile().unwrap();
        let (first, second) = text.split_at(cut.min(text.len()));
        let mut stepped = Index::default();
        for part in [first, second] {
            growing.write_all(part).unwrap();
            while stepped.update(&growing, 1).unwrap().is_more {}
        }
        prop_assert_eq!(all(&growing, &stepped, most, true, None), whole);
    }
}

trait ConcatWithEnds {
    fn concat_with_ends(&self) -> Vec<u8>;
}

impl ConcatWithEnds for Vec<Vec<u8>> {
    fn concat_with_ends(&self) -> Vec<u8> {
        self.iter().flat_map(|line| [line.as_slice(), b"\n"].concat()).collect()
    }
}
