//! Judges redaction and two other scanners on the same corpus.
//!
//! `cargo xtask redaction` runs it.
//! `write DIR` writes the corpus, `judge DIR [NOTE]` reads what the scanners said there, prints
//! the table and puts it into the note, `speed` measures how fast text is redacted.
#![expect(clippy::print_stdout, reason = "a program for a person")]
#![expect(clippy::expect_used, reason = "the tables are constants, and a failure ends the program")]

#[path = "corpus.rs"]
mod corpus;
mod judge;

use judge::{Figures, HEAD, ours};
use serde_json::Value;
use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::Path;
use svc_domain::redact::Redactor;

const PLANTED: &str = "planted.txt";
const HARMLESS: &str = "harmless.txt";
/// Marks around the table in the note.
const BEGIN: &str = "<!-- redaction: begin -->";
const END: &str = "<!-- redaction: end -->";

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["write", dir] => write(Path::new(dir))?,
        ["judge", dir] => judge(Path::new(dir), None)?,
        ["judge", dir, note] => judge(Path::new(dir), Some(Path::new(note)))?,
        ["speed"] => speed(),
        _ => return Err("one of: write DIR, judge DIR [NOTE], speed".into()),
    }
    Ok(())
}

fn write(dir: &Path) -> Result<(), Box<dyn Error>> {
    let planted: Vec<String> = corpus::planted().into_iter().map(|one| one.text).collect();
    let harmless: Vec<String> = corpus::harmless().into_iter().map(|one| one.text).collect();
    fs::write(dir.join(PLANTED), planted.join("\n") + "\n")?;
    fs::write(dir.join(HARMLESS), harmless.join("\n") + "\n")?;
    Ok(())
}

fn judge(dir: &Path, note: Option<&Path>) -> Result<(), Box<dyn Error>> {
    let ours = ours();
    for one in &ours.missed {
        println!("not masked: {}: {}", one.kind, one.text);
    }
    for one in &ours.touched {
        println!("touched: {}: {}", one.kind, one.text);
    }
    let mut table = vec![HEAD.to_owned(), ours.figures.row("this service")];
    type Reader = fn(&Value, &str) -> BTreeSet<usize>;
    let scanners: [(&str, Reader); 2] =
        [("secretlint", secretlint), ("detect-secrets", detect_secrets)];
    let mut only = Vec::new();
    for (name, lines) in scanners {
        let Ok(text) = fs::read_to_string(dir.join(format!("{name}.json"))) else {
            continue;
        };
        let said: Value = serde_json::from_str(&text)
            .map_err(|error| format!("{name} gave no answer that can be read: {error}"))?;
        let in_planted = lines(&said, PLANTED);
        let mut first = 1;
        let mut found = 0;
        for one in corpus::planted() {
            let next = first + one.text.lines().count();
            if in_planted.range(first..next).next().is_some() {
                found += 1;
                if ours.missed.iter().any(|missed| missed.text == one.text) {
                    only.push(format!("only {name}: {}: {}", one.kind, one.text));
                }
            }
            first = next;
        }
        let touched = lines(&said, HARMLESS).len();
        table.push(Figures { found, touched, ..ours.figures.clone() }.row(name));
    }
    let table = table.join("\n");
    println!("\n{table}\n");
    only.iter().for_each(|line| println!("{line}"));
    match note {
        Some(note) if scanners.iter().all(|(name, _)| table.contains(name)) => put(note, &table),
        Some(_) | None => Ok(()),
    }
}

/// Replaces the table between its marks.
fn put(note: &Path, table: &str) -> Result<(), Box<dyn Error>> {
    let text = fs::read_to_string(note)?;
    let parts = text.split_once(BEGIN).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some((before, after))
    });
    let (before, after) = parts.ok_or("the note has no marks for the table")?;
    fs::write(note, format!("{before}{BEGIN}\n\n{table}\n\n{END}{after}"))?;
    Ok(())
}

/// The lines that secretlint names in one file.
fn secretlint(said: &Value, file: &str) -> BTreeSet<usize> {
    let files = said.as_array().into_iter().flatten();
    let of_file = files.filter(|one| {
        one.get("filePath").and_then(Value::as_str).is_some_and(|it| it.ends_with(file))
    });
    let messages =
        of_file.flat_map(|one| one.get("messages").and_then(Value::as_array).into_iter().flatten());
    messages.filter_map(|one| number(one.pointer("/loc/start/line")?)).collect()
}

/// The lines that detect-secrets names in one file.
fn detect_secrets(said: &Value, file: &str) -> BTreeSet<usize> {
    let found = said.get("results").and_then(|all| all.get(file)?.as_array()).into_iter().flatten();
    found.filter_map(|one| number(one.get("line_number")?)).collect()
}

fn number(value: &Value) -> Option<usize> {
    value.as_u64().and_then(|number| usize::try_from(number).ok())
}

/// Redacts texts of tens of megabytes, each three times, and prints the best rate.
fn speed() {
    let lorem = format!(
        "2026-03-01T10:20:30.123Z [DEBUG] [bridge:work] polled {}",
        "lorem ipsum dolor ".repeat(7)
    );
    let harmless: Vec<String> = corpus::harmless().into_iter().map(|one| one.text).collect();
    let planted: Vec<String> = corpus::planted().into_iter().map(|one| one.text).collect();
    let planted: Vec<String> =
        planted.iter().flat_map(|it| it.lines()).map(str::to_owned).collect();
    // One line in a hundred holds a secret.
    let mixed: Vec<String> = harmless
        .iter()
        .enumerate()
        .flat_map(|(at, line)| {
            let secret = (at % 100 == 0).then(|| planted.get(at / 100).cloned()).flatten();
            [Some(line.clone()), secret]
        })
        .flatten()
        .collect();
    let texts =
        [("a log of the agent", vec![lorem]), ("harmless lines", harmless), ("mixed", mixed)];
    for (name, lines) in texts.into_iter().chain([("secrets only", planted)]) {
        let size: usize = lines.iter().map(String::len).sum();
        let rounds = 32_000_000 / size;
        let best = (0..3).map(|_| {
            let before = std::time::Instant::now();
            let mut redactor = Redactor::default();
            let mut out = 0;
            for line in (0..rounds).flat_map(|_| &lines) {
                out += redactor.line(line).len();
            }
            assert!(out > 0, "something is left of every text");
            before.elapsed().as_secs_f64()
        });
        let best = best.fold(f64::INFINITY, f64::min);
        let bytes = u32::try_from(rounds * size).expect("tens of megabytes");
        println!("{name}: {:.0} MB/s", f64::from(bytes) / 1e6 / best);
    }
}
