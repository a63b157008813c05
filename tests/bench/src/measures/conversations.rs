//! What reading conversations costs (`hardening` H128).
//!
//! 5,000 files, one of 500 MB, one with a line of 50 MB, one that grows meanwhile.

use crate::http::{Connection, word};
use crate::machine::memory;
use crate::plan::{Found, Plan, millis};
use crate::report::{Figure, Of};
use crate::world::{DEADLINE, Service, World, name};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A turn has about so many bytes.
const TURN: usize = 2_000;
/// Turns of a page; two of them are what a reader sees at first and one scroll.
const PAGE: usize = 500;

pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let mut found = Found::of(plan);
    let world = World::new(&plan.programs, 1)?;
    let files = plan.pick(5_000, 20);
    let (large, line) = plan.pick((500 << 20, 50 << 20), (12 << 20, 10 << 20));
    let place = world.conversations(&name(0))?;
    for number in 0..files {
        write(&place, number, 20)?;
    }
    let turns = large / TURN;
    write(&place, files, turns)?;
    ensure!(line < large, "the largest file is the one that is read");
    long_line(&place, files + 1, line)?;
    let growing = write(&place, files + 2, 20)?;
    let service = world.serve()?;
    service.settle("")?;
    let before = memory(service.pid())?;
    let is_over = AtomicBool::new(false);
    let asked = std::thread::scope(|scope| -> Result<()> {
        scope.spawn(|| grow(&growing, &is_over));
        let other = scope.spawn(|| healths(&service, &is_over));
        let asked = ask(plan, &mut found, &service, files + 3, turns);
        is_over.store(true, Ordering::Relaxed);
        let times = other.join().map_err(|_| anyhow::anyhow!("a thread panicked"))??;
        found.add(Figure::new("/healthz meanwhile", "ms", times));
        asked
    });
    asked?;
    let after = memory(service.pid())?;
    let note = format!(
        "{:.1} before; for a moment {:.1} more",
        before.resident,
        after.peak - before.resident
    );
    let more = Figure::new(
        "memory after all that, more than before",
        "MiB",
        vec![after.resident - before.resident],
    );
    found.add(more.at_most(Of::Worst, 64.0).note(note));
    service.stop()?;
    world.end()?;
    Ok(found.all())
}

fn id(number: usize) -> String {
    format!("0f1e2d3c-4b5a-6978-8796-{number:012x}")
}

fn turn(number: usize) -> Value {
    let role = if number.is_multiple_of(2) { "user" } else { "assistant" };
    let text = format!("turn {number} {}", "words of no importance ".repeat(TURN / 23 - 12));
    let content = json!([{ "type": "text", "text": text }]);
    let usage = json!({ "input_tokens": 1000, "output_tokens": 200 });
    json!({
        "type": role, "isSidechain": false, "timestamp": "2026-03-01T10:20:30.000Z",
        "message": { "role": role, "id": format!("m{number}"), "content": content,
            "model": "claude-opus-4-5-20251101", "usage": usage },
    })
}

/// A conversation of so many turns, with half a line at its end.
fn write(place: &Path, number: usize, turns: usize) -> Result<std::path::PathBuf> {
    let path = place.join(format!("{}.jsonl", id(number)));
    let mut file = BufWriter::new(File::create(&path)?);
    for number in 0..turns {
        writeln!(file, "{}", turn(number))?;
    }
    file.write_all(br#"{"type":"user","mess"#)?;
    file.flush()?;
    Ok(path)
}

fn long_line(place: &Path, number: usize, bytes: usize) -> Result<()> {
    let mut file = BufWriter::new(File::create(place.join(format!("{}.jsonl", id(number))))?);
    writeln!(file, "{}", turn(0))?;
    writeln!(
        file,
        r#"{{"type":"user","message":{{"role":"user","content":"{}"}}}}"#,
        "x".repeat(bytes)
    )?;
    writeln!(file, "{}", turn(1))?;
    Ok(file.flush()?)
}

/// An agent that goes on while its conversation is read.
fn grow(path: &Path, is_over: &AtomicBool) -> Result<()> {
    let mut file = fs::OpenOptions::new().append(true).open(path)?;
    let mut number = 20;
    while !is_over.load(Ordering::Relaxed) {
        writeln!(file, "\n{}", turn(number))?;
        number += 1;
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn healths(service: &Service, is_over: &AtomicBool) -> Result<Vec<f64>> {
    let mut connection = service.connect()?;
    let mut times = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        times.push(timed(&mut connection, "/healthz")?.0);
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(times)
}

fn timed(connection: &mut Connection, path: &str) -> Result<(f64, Value)> {
    let began = Instant::now();
    let reply = connection.get(path)?.expect(200)?;
    Ok((millis(began.elapsed()), reply.json()?))
}

fn ask(
    plan: &Plan,
    found: &mut Found,
    service: &Service,
    files: usize,
    turns: usize,
) -> Result<()> {
    let mut connection = service.connect()?;
    let list = format!("/api/projects/{}/transcripts", name(0));
    let began = Instant::now();
    let (cold, mut answer) = timed(&mut connection, &list)?;
    found.add(Figure::new(format!("list of {files} conversations, first"), "ms", vec![cold]));
    while answer.get("pending_files").and_then(Value::as_u64) != Some(0) {
        ensure!(began.elapsed() < DEADLINE, "the conversations are not read after a minute");
        std::thread::sleep(Duration::from_millis(50));
        answer = timed(&mut connection, &list)?.1;
    }
    let read = vec![began.elapsed().as_secs_f64()];
    found.add(Figure::new("until all of them were read", "s", read));
    let listed = answer.get("sessions").and_then(Value::as_array).context("no list")?;
    ensure!(listed.len() == files, "{} of {files} conversations are listed", listed.len());
    let size = |one: &&Value| one.get("size_bytes").and_then(Value::as_u64);
    let large = word(listed.iter().max_by_key(size).context("none")?, "conversation").to_owned();
    let (mut lists, mut pages) = (Vec::new(), Vec::new());
    for _ in 0..plan.pick(30, 2) {
        lists.push(timed(&mut connection, &list)?.0);
    }
    found.add(Figure::new("the same, known", "ms", lists).at_most(Of::Median, 300.0));
    let page = format!("{list}/{large}?limit={PAGE}");
    let (first, answer) = timed(&mut connection, &page)?;
    let shown = answer.get("turns").and_then(Value::as_array).context("no turns")?.len();
    ensure!(shown > 0, "a page without turns");
    let what = format!("the end of a conversation of {turns} turns, first");
    found.add(Figure::new(what, "ms", vec![first]).note(format!("{shown} turns")));
    for number in 0..plan.pick(30, 2) {
        let cursor = number * turns / 40;
        let (one, _) = timed(&mut connection, &format!("{page}&cursor={cursor}"))?;
        let (two, _) = timed(&mut connection, &format!("{page}&cursor={}", cursor + PAGE))?;
        pages.push(one + two);
    }
    found.add(
        Figure::new("1,000 turns of it anywhere, two pages", "ms", pages)
            .at_most(Of::Median, 500.0),
    );
    Ok(())
}
