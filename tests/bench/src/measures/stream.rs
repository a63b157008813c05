//! The stream of events: two hundred pages, a thousand changes a second.

use crate::http::{self, word};
use crate::machine::{memory, processor_seconds};
use crate::plan::{Found, Plan};
use crate::report::{Figure, histogram};
use crate::socket::Crowd;
use crate::world::{DEADLINE, Service, World};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const BRIDGES: usize = 10;
/// Connections that write.
const WRITERS: u64 = 10;
/// Begins the name that a bridge is given: the moment follows.
const MARK: &str = "moment-";
/// How a frame with the whole state begins.
const SNAPSHOT: &str = r#"{"type":"snapshot""#;

pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let mut found = Found::of(plan);
    let world = World::new(&plan.programs, BRIDGES)?;
    let service = world.serve()?;
    world.run_bridges(&service, BRIDGES)?;
    let rows = service.connect()?.get("/api/v1/instances")?.expect(200)?.json()?;
    let rows = rows.as_array().cloned().unwrap_or_default();
    let ids: Vec<String> = rows.iter().map(|row| word(row, "instance_id").to_owned()).collect();
    ensure!(ids.len() == BRIDGES, "{} of {BRIDGES} bridges", ids.len());
    for pages in plan.pick([1, 20, 200], [1, 2, 10]) {
        changes(plan, &mut found, &service, &ids, pages)?;
    }
    service.stop()?;
    world.end()?;
    Ok(found.all())
}

fn changes(
    plan: &Plan,
    found: &mut Found,
    service: &Service,
    ids: &[String],
    pages: usize,
) -> Result<()> {
    let before = memory(service.pid())?.own;
    let mut crowd = Crowd::open(service.port, "/ws/events", pages)?;
    let mut whole = 0;
    let all = crowd.read(Instant::now() + DEADLINE, |_, _, text| {
        whole += usize::from(text.starts_with(SNAPSHOT));
        whole == pages
    })?;
    ensure!(all, "{whole} of {pages} pages have a snapshot");
    let each = plan.pick(400, 5);
    let pace = Duration::from_micros(1_000_000 * WRITERS / 1000);
    let (zero, used) = (Instant::now(), processor_seconds(service.pid())?);
    let mut times = histogram();
    let mut seqs = vec![0_u64; pages];
    let mut hole = None;
    let last = format!("{MARK}last");
    let (took, finished) = std::thread::scope(|scope| -> Result<(Duration, bool)> {
        let writers: Vec<_> = (0..WRITERS)
            .zip(ids.iter().cycle())
            .map(|(_, id)| scope.spawn(move || write(service, id, each, pace, zero)))
            .collect();
        let mut took = Duration::ZERO;
        let mut writers = Some(writers);
        let mut waiting: BTreeSet<usize> = (0..pages).collect();
        let until = Instant::now() + DEADLINE;
        let mut finished = false;
        while !finished && Instant::now() < until {
            let turn = Instant::now() + Duration::from_millis(20);
            finished = crowd.read(turn, |page, at, text| {
                if let Some(seq) = seq_of(text) {
                    let known = seqs.get(page).copied().unwrap_or(0);
                    // Who is too slow gets everything anew; then the numbers go on from there.
                    let is_anew = text.starts_with(SNAPSHOT);
                    if known != 0 && seq != known + 1 && !is_anew {
                        hole = Some((page, known, seq));
                    }
                    if let Some(place) = seqs.get_mut(page) {
                        *place = seq;
                    }
                }
                for part in text.split(MARK).skip(1) {
                    let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
                    if let Ok(micros) = digits.parse() {
                        let told =
                            at.saturating_duration_since(zero + Duration::from_micros(micros));
                        times.saturating_record(u64::try_from(told.as_nanos()).unwrap_or(u64::MAX));
                    }
                }
                if text.contains(&last) {
                    waiting.remove(&page);
                }
                waiting.is_empty()
            })?;
            if writers.as_ref().is_some_and(|all| all.iter().all(|one| one.is_finished())) {
                took = zero.elapsed();
                for writer in writers.take().into_iter().flatten() {
                    writer.join().map_err(|_| anyhow::anyhow!("a writer panicked"))??;
                }
                let id = ids.first().map_or("", String::as_str);
                rename(&mut service.connect()?, id, &last)?;
            }
        }
        Ok((took, finished))
    })?;
    ensure!(finished && crowd.len() == pages, "only {} of {pages} pages hold out", crowd.len());
    ensure!(hole.is_none(), "the stream has a hole (page, before, after): {hole:?}");
    let rate = (u64::from(each) * WRITERS) as f64 / took.as_secs_f64();
    let share = (processor_seconds(service.pid())? - used) / zero.elapsed().as_secs_f64() * 100.0;
    let cost = (memory(service.pid())?.own - before) / pages as f64 * 1024.0;
    let what = format!("a change to its frame, {pages} pages");
    let note = format!(
        "{rate:.0} changes/s of 1,000 asked for, {share:.0} % of a core, {cost:.0} KiB per page"
    );
    found.add(Figure::latencies(what, times).note(note));
    Ok(())
}

/// Gives a bridge new names at a steady pace.
fn write(service: &Service, id: &str, each: u32, pace: Duration, zero: Instant) -> Result<()> {
    let mut connection = service.connect()?;
    for number in 0..each {
        std::thread::sleep((zero + pace * number).saturating_duration_since(Instant::now()));
        rename(&mut connection, id, &format!("{MARK}{}", zero.elapsed().as_micros()))?;
    }
    Ok(())
}

fn rename(connection: &mut http::Connection, id: &str, label: &str) -> Result<()> {
    let body: Value = json!({ "label": label });
    connection.send("PATCH", &format!("/api/instances/{id}"), Some(&body))?.expect(200)?;
    Ok(())
}

/// Number of a delta or a snapshot.
fn seq_of(text: &str) -> Option<u64> {
    let delta = text.strip_prefix(r#"{"type":"delta""#);
    let rest = delta.or_else(|| text.strip_prefix(SNAPSHOT))?.strip_prefix(r#","seq":"#)?;
    rest.split(',').next()?.parse().ok()
}
