//! Requests per second and latency, with sixteen connections that never pause.

use crate::bare::Bare;
use crate::http::{request, word};
use crate::load::{self, Load};
use crate::plan::{Found, Plan};
use crate::registry;
use crate::report::{Figure, Of, shown};
use crate::world::{Service, World, launch, name};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::time::Duration;

/// What is asked for, and the rate it must reach.
struct Ask<'a> {
    what: &'a str,
    path: &'a str,
    budget: Option<f64>,
}

const fn ask<'a>(what: &'a str, path: &'a str, budget: Option<f64>) -> Ask<'a> {
    Ask { what, path, budget }
}

const PROJECTS: &str = "/api/v1/projects";
const INSTANCES: &str = "/api/v1/instances";

pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let mut found = Found::of(plan);
    let bare = Bare::start()?;
    let load = drive(plan, (bare.pid(), bare.port), "/", "")?;
    add(&mut found, "bare route of the framework", &load, None, None);
    drop(bare);

    let mut world = World::new(&plan.programs, 1)?;
    let asset = asset(&world)?;
    let mut asks = vec![
        ask("/healthz", "/healthz", Some(40_000.0)),
        ask("/api/v1/projects, 1 project", PROJECTS, Some(30_000.0)),
        ask("/api/v1/instances, no bridge", INSTANCES, None),
    ];
    if let Some(asset) = &asset {
        asks.push(ask("/ (the page)", "/", Some(40_000.0)));
        asks.push(ask("a static asset (module, brotli)", asset, None));
    }
    both(plan, &mut found, &mut world, &asks)?;
    world.end()?;

    for (projects, budget) in [(50, None), (500, Some(6_000.0))] {
        let mut world = World::new(&plan.programs, projects)?;
        let what = format!("/api/v1/projects, {projects} projects");
        both(plan, &mut found, &mut world, &[ask(&what, PROJECTS, budget)])?;
        world.end()?;
    }

    let bridges = plan.pick(100, 5);
    let mut world = World::new(&plan.programs, bridges)?;
    let service = world.serve()?;
    world.run_bridges(&service, bridges)?;
    service.stop()?;
    let what = format!("/api/v1/instances, {bridges} bridges");
    both(plan, &mut found, &mut world, &[ask(&what, INSTANCES, Some(8_000.0))])?;
    world.end()?;

    let rows = plan.pick(10_000, 500);
    let mut world = ended(plan, rows)?;
    let what = format!("/api/v1/instances, {rows} ended rows");
    both(plan, &mut found, &mut world, &[ask(&what, INSTANCES, Some(100.0))])?;
    world.end()?;
    Ok(found.all())
}

/// A world with so many ended rows and no service.
pub fn ended(plan: &Plan, rows: u64) -> Result<World> {
    let world = World::new(&plan.programs, 1)?;
    let service = world.serve()?;
    let mut connection = service.connect()?;
    let record = launch(&mut connection, &name(0))?;
    let id = word(&record, "instance_id");
    connection.send("DELETE", &format!("{INSTANCES}/{id}"), None)?.expect(200)?;
    service.stop()?;
    registry::copies(&world, rows)?;
    Ok(world)
}

/// Address of the largest file of the page; `None` if the service has no page.
pub fn asset(world: &World) -> Result<Option<String>> {
    let service = world.serve()?;
    let page = service.connect()?.get("/")?;
    service.stop()?;
    if page.status != 200 {
        return Ok(None);
    }
    let page = String::from_utf8_lossy(&page.body).into_owned();
    let end = page.find("_bg.wasm").context("the page names no module")? + "_bg.wasm".len();
    let head = page.get(..end).unwrap_or_default();
    let start = head.rfind("/static/").context("the module is no static file")?;
    Ok(head.get(start..).map(str::to_owned))
}

/// The same requests with authentication off and with a token, in turns.
/// Each turn has a service of its own: how well the processors are shared differs more between two
/// processes than the token costs.
fn both(plan: &Plan, found: &mut Found, world: &mut World, asks: &[Ask<'_>]) -> Result<()> {
    let rounds = plan.pick(3, 1);
    world.configure(json!({ "auth": { "enabled": true } }))?;
    let bearer = bearer(world)?;
    let (mut open, mut guarded) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        world.configure(json!({ "auth": { "enabled": false } }))?;
        let service = world.serve()?;
        service.settle("")?;
        turn(plan, &service, asks, "", rounds, &mut open)?;
        service.stop()?;
        world.configure(json!({ "auth": { "enabled": true } }))?;
        let service = world.serve()?;
        service.settle(&bearer)?;
        refuses_strangers(&service, asks)?;
        turn(plan, &service, asks, &bearer, rounds, &mut guarded)?;
        service.stop()?;
    }
    let open: Vec<_> = asks
        .iter()
        .zip(&open)
        .map(|(ask, load)| add(found, ask.what, load, ask.budget, None))
        .collect();
    for ((ask, load), open) in asks.iter().zip(&guarded).zip(open) {
        // The token may cost a fifth of the rate without it.
        add(found, &format!("{}, token", ask.what), load, None, Some(open));
    }
    world.configure(json!({ "auth": { "enabled": false } }))
}

/// One turn of all questions, added to those before it.
fn turn(
    plan: &Plan,
    service: &Service,
    asks: &[Ask<'_>],
    headers: &str,
    rounds: u64,
    loads: &mut Vec<Load>,
) -> Result<()> {
    for (at, ask) in asks.iter().enumerate() {
        let headers = format!("{}{headers}", accept(ask));
        let load = drive_for(plan, service.place(), ask.path, &headers, rounds)?;
        match loads.get_mut(at) {
            Some(before) => before.join(load)?,
            None => loads.push(load),
        }
    }
    Ok(())
}

fn accept(ask: &Ask<'_>) -> &'static str {
    if ask.path.ends_with(".wasm") { "Accept-Encoding: br\r\n" } else { "" }
}

/// The header line of a new token.
pub fn bearer(world: &World) -> Result<String> {
    let issued = world.cli(&["api-token", "issue", "bench", "--json"])?;
    let issued: Value = serde_json::from_str(&issued)?;
    Ok(format!("Authorization: Bearer {}\r\n", word(&issued, "token")))
}

/// A rate with a token means something only where it is needed.
fn refuses_strangers(service: &Service, asks: &[Ask<'_>]) -> Result<()> {
    for ask in asks.iter().filter(|ask| ask.path.starts_with("/api/")) {
        service.connect()?.get(ask.path)?.expect(401)?;
    }
    Ok(())
}

pub fn drive(plan: &Plan, place: (u32, u16), path: &str, headers: &str) -> Result<Load> {
    drive_for(plan, place, path, headers, 1)
}

/// One of so many equal parts of a run.
fn drive_for(
    plan: &Plan,
    place: (u32, u16),
    path: &str,
    headers: &str,
    parts: u64,
) -> Result<Load> {
    let (warm, time) = plan.pick((500, 3000), (50, 300));
    let request = request("GET", path, place.1, headers, None);
    load::run(place, &request, Duration::from_millis(warm), Duration::from_millis(time / parts))
}

/// Two figures of one run; the median rate, and what one answer cost.
fn add(
    found: &mut Found,
    what: &str,
    load: &Load,
    budget: Option<f64>,
    open: Option<(f64, f64)>,
) -> (f64, f64) {
    let mut rate = Figure::new(what, "req/s", load.rates.clone());
    let median = rate.quantile(0.5);
    let mut note = format!(
        "{} µs of processor each; {} bytes; the generator used {:.0} % of a core",
        shown(load.cost),
        shown(load.body as f64),
        load.own_share * 100.0
    );
    if let Some(bound) = budget {
        rate = rate.at_least(Of::Median, bound);
    }
    if let Some(open) = open {
        let share = median / open.0 * 100.0;
        let cost = load.cost / open.1 * 100.0;
        note = format!(
            "{share:.0} % of the rate without a token, at {cost:.0} % of its processor time"
        );
        rate = rate.at_least(Of::Median, (open.0 * 0.8).round());
    }
    found.add(rate.note(note));
    found.add(Figure::latencies(format!("{what}, latency"), load.latencies.clone()));
    (median, load.cost)
}
