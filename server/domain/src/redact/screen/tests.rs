//! No secret form reaches the grid, wherever and however it is drawn.

use proptest::prelude::*;

use super::super::forms;
use super::super::tests::SAMPLES;
use super::*;

type Grid = Vec<Row<u8>>;

fn blank(columns: usize, rows: usize) -> Grid {
    vec![Row { cells: vec![Cell::default(); columns], wrapped: false }; rows]
}

fn grid(rows: &[&str]) -> Grid {
    let columns = rows.iter().map(|row| row.chars().count()).max().unwrap_or_default();
    let mut grid = blank(columns, rows.len());
    for (at, row) in rows.iter().enumerate() {
        draw(&mut grid, at, 0, row);
    }
    grid
}

fn draw(grid: &mut Grid, row: usize, column: usize, text: &str) {
    for (at, c) in text.chars().enumerate() {
        grid[row].cells[column + at].base = c;
    }
}

/// The rows as they are shown.
fn shown(grid: &Grid) -> Vec<String> {
    let row = |row: &Row<u8>| row.runs().into_iter().map(|run| run.text).collect::<String>();
    grid.iter().map(row).collect()
}

fn redacted(rows: &[&str]) -> Vec<String> {
    let mut grid = grid(rows);
    redact(&mut grid, None);
    shown(&grid).iter().map(|row| row.trim_end().to_owned()).collect()
}

/// Every secret as a text and the part that must not be seen.
///
/// A screen has no tabs.
fn secrets() -> Vec<(String, &'static str)> {
    let forms = forms::all().flat_map(|form| form.masked);
    let all = SAMPLES.iter().copied().chain(forms);
    all.map(|(text, secret)| (text.replace('\t', "  "), secret)).collect()
}

/// No piece of the secret is shown that is longer than a third of it.
#[track_caller]
fn hides(grid: &Grid, secret: &str, how: &str) {
    let is_text = |c: &char| !c.is_whitespace() && !"│╭╮╰╯─".contains(*c);
    let flat: String = shown(grid).concat().chars().filter(is_text).collect();
    let secret: String = secret.chars().filter(is_text).collect();
    let piece = (secret.len() / 3 + 1).max(4).min(secret.len());
    let seen = (0..=secret.len() - piece).find(|at| flat.contains(&secret[*at..at + piece]));
    assert!(seen.is_none(), "{how}: {secret:?} in {:#?}", shown(grid));
}

#[test]
fn h56_a_secret_on_one_row_is_masked_and_the_row_keeps_its_columns() {
    assert_eq!(redacted(&["id env_9K2mQ7xT."]), ["id env_********."]);
    assert_eq!(redacted(&["DB_PASSWORD=hunter2hunter2 x"]), ["DB_PASSWORD=************** x"]);
    assert_eq!(
        redacted(&["│ 0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0 │"]),
        ["│ ************************************ │"]
    );
}

#[test]
fn h56_what_only_resembles_a_secret_stays() {
    for rows in [
        &["╭───────────────╮", "│ > type here   │", "╰───────────────╯"][..],
        &["Tests:  120 passed, 120 total", "max_tokens: 8", "a line that goes on"],
        &["see https://claude.ai/code", "and http://localhost:3000", "a sub-task-", "force  "],
        &["Thinking… (38 s, 2.1k tokens, esc to interrupt)"],
    ] {
        assert_eq!(redacted(rows), rows.iter().map(|row| row.trim_end()).collect::<Vec<_>>());
    }
}

#[test]
fn h56_a_secret_wrapped_by_the_terminal_is_masked_at_every_column() {
    for (text, secret) in secrets() {
        for columns in [7, 40] {
            for start in 0..columns {
                let rows = (start + text.len()).div_ceil(columns) + 1;
                let mut grid = blank(columns, rows);
                for (at, c) in text.chars().enumerate() {
                    let at = start + at;
                    grid[at / columns].cells[at % columns].base = c;
                    grid[at / columns].wrapped = at / columns < (start + text.len() - 1) / columns;
                }
                redact(&mut grid, None);
                hides(&grid, secret, &format!("{text:?} at {start} of {columns}"));
            }
        }
    }
}

/// Draws a text as a program does that wraps it into a frame by itself.
fn framed(text: &str, left: usize, inside: usize, start: usize, indent: usize) -> Grid {
    let mut rows: Vec<String> = vec![" ".repeat(start)];
    for c in text.chars() {
        if rows.last().is_some_and(|row| row.chars().count() >= inside) {
            rows.push(" ".repeat(indent));
        }
        rows.last_mut().unwrap().push(c);
    }
    let mut grid = blank(left + inside + 8, rows.len() + 2);
    let border = "─".repeat(inside + 2);
    draw(&mut grid, 0, left, &format!("╭{border}╮"));
    for (at, row) in rows.iter().enumerate() {
        draw(&mut grid, at + 1, left, &format!("│ {row:<inside$} │"));
    }
    let last = rows.len() + 1;
    draw(&mut grid, last, left, &format!("╰{border}╯"));
    grid
}

#[test]
fn h56_a_secret_wrapped_into_a_frame_is_masked_at_every_column() {
    for (text, secret) in secrets() {
        for (left, inside, indent, step) in [(0, 24, 0, 1), (3, 40, 2, 3)] {
            for start in (0..inside).step_by(step) {
                let mut grid = framed(&text, left, inside, start, indent);
                redact(&mut grid, None);
                hides(&grid, secret, &format!("{text:?} at {start} of {inside}"));
            }
        }
    }
}

#[test]
fn h56_a_secret_in_one_of_two_panes_is_masked() {
    for (text, secret) in secrets() {
        for start in (0..30).step_by(5) {
            let mut grid = framed(&text, 0, 30, start, 0);
            let right = 34;
            for row in &mut grid {
                row.cells.resize(80, Cell::default());
            }
            for row in 0..grid.len() {
                draw(&mut grid, row, right, "other words in this pane  │");
            }
            redact(&mut grid, None);
            hides(&grid, secret, &format!("{text:?} at {start}"));
        }
    }
}

#[test]
fn h56_a_secret_wrapped_between_two_words_is_masked() {
    for (text, secret) in secrets() {
        for width in text.split_whitespace().map(str::len).max().unwrap()..text.len() {
            let mut rows = vec![String::new()];
            for word in text.split_whitespace() {
                let row = rows.last_mut().unwrap();
                if row.is_empty() {
                    row.push_str(word);
                } else if row.len() + 1 + word.len() <= width {
                    *row = format!("{row} {word}");
                } else {
                    rows.push(word.to_owned());
                }
            }
            let rows: Vec<String> = rows.iter().map(|row| format!("  │ {row}")).collect();
            let mut grid = grid(&rows.iter().map(String::as_str).collect::<Vec<_>>());
            redact(&mut grid, None);
            hides(&grid, secret, &text);
        }
    }
}

#[test]
fn h56_the_beginning_of_a_secret_that_is_cut_off_is_masked() {
    for (rows, expected) in [
        (&["key: sk-demo-0123"][..], &["key: ************"][..]),
        (&["│ ghp_abcdefg │", "╰─────────────╯"], &["│ *********** │", "╰─────────────╯"]),
        (&["0f1e2d3c-4b"], &["***********"]),
        (&["x 0f1e2d3c-4b5a-69…"], &["x ****************…"]),
        (&["env_9K2"], &["env_***"]),
        (&["https://bob:secr"], &["https://********"]),
    ] {
        assert_eq!(redacted(rows), expected);
    }
    // The same where the program is still writing.
    let mut typed = grid(&["password: hunt                "]);
    redact(&mut typed, Some(Position { row: 0, column: 14 }));
    assert_eq!(shown(&typed)[0].trim_end(), "password: ****");
}

#[test]
fn h56_characters_that_show_nothing_hide_nothing() {
    for (text, secret) in secrets() {
        for noise in ['\u{200b}', '\u{202e}', '\u{2066}', '\u{feff}', '\u{ad}', '\u{301}'] {
            // As a mark on each cell, and as a cell of its own.
            let mut marked = grid(&[&text]);
            for cell in &mut marked[0].cells {
                cell.marks = Some(noise.to_string().into());
            }
            redact(&mut marked, None);
            hides(&marked, secret, &format!("{text:?} with {noise:?}"));
            let drawn = marked[0].runs();
            assert!(!drawn.iter().any(|run| run.text.contains('\u{202e}')));
            if noise != '\u{301}' {
                let spread: String = text.chars().flat_map(|c| [c, noise]).collect();
                let mut spread = grid(&[&spread]);
                redact(&mut spread, None);
                hides(&spread, secret, &format!("{text:?} between {noise:?}"));
            }
        }
    }
}

#[test]
fn h56_wide_characters_beside_a_secret_keep_their_two_columns() {
    for (text, secret) in secrets() {
        let mut cells = Vec::new();
        for c in ['日', '本'] {
            cells.push(Cell { base: c, columns: 2, ..Cell::<u8>::default() });
            cells.push(Cell { columns: 0, ..Cell::default() });
        }
        cells.push(Cell::default());
        cells.extend(text.chars().map(|base| Cell { base, ..Cell::default() }));
        let columns = cells.len();
        let mut grid = vec![Row { cells, wrapped: false }];
        redact(&mut grid, None);
        hides(&grid, secret, &text);
        let runs = grid[0].runs();
        assert_eq!(runs[0].text, "日");
        assert_eq!(runs.iter().map(|run| usize::from(run.columns)).sum::<usize>(), columns);
    }
}

#[test]
fn h56_a_private_key_is_masked_over_its_rows_in_a_frame() {
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
    let key = ["-----BEGIN RSA PRIVATE KEY-----", body, "short==", "-----END RSA PRIVATE KEY-----"];
    for inside in [20, 31, 40, 64, 70] {
        let mut rows = Vec::new();
        for line in key {
            for at in (0..line.len()).step_by(inside) {
                let part = &line[at..(at + inside).min(line.len())];
                rows.push(format!("│ {part:<inside$} │"));
            }
        }
        rows.push(format!("│ {:<inside$} │", "plain words"));
        let out = redacted(&rows.iter().map(String::as_str).collect::<Vec<_>>());
        let all = out.concat();
        assert!(
            !all.contains("short==") && !all.contains("MIIE") && !all.contains("8cKj"),
            "{out:#?}"
        );
        assert!(all.contains("plain words"), "{out:#?}");
    }
}

#[test]
fn hostile_screens_end_soon() {
    for unit in ["sk-", "│", "│a", "eyJa.", "token=\"", "a ", "://a:", "-----BEGIN", "0f1e2d3c-"]
    {
        let row = unit.repeat(500 / unit.chars().count());
        let rows: Vec<&str> = std::iter::repeat_n(row.as_str(), 300).collect();
        let mut grid = grid(&rows);
        redact(&mut grid, Some(Position { row: 299, column: 499 }));
    }
}

proptest! {
    #[test]
    fn the_grid_keeps_its_size_and_a_second_pass_shows_no_more(
        rows in prop::collection::vec("[ -~│env_01\u{200b}日]{0,40}", 1..8), at in any::<u8>(),
    ) {
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        let mut grid = grid(&rows);
        let wrapped = usize::from(at) % grid.len();
        grid[wrapped].wrapped = true;
        let sizes: Vec<usize> = grid.iter().map(|row| row.cells.len()).collect();
        redact(&mut grid, None);
        let once = grid.clone();
        redact(&mut grid, None);
        prop_assert_eq!(sizes, grid.iter().map(|row| row.cells.len()).collect::<Vec<_>>());
        for (row, again) in once.iter().zip(&grid) {
            for (cell, again) in row.cells.iter().zip(&again.cells) {
                prop_assert!(cell.base != MASKED_CELL || again.base == MASKED_CELL);
            }
        }
    }
}
