//! What it costs to encrypt: requests on kept connections, and greetings.

use super::requests::asset;
use crate::http::{self, request};
use crate::load::{self, Load};
use crate::machine;
use crate::plan::{Found, Plan, millis};
use crate::report::{Figure, Of, shown};
use crate::wire::{self, NAME, Wire};
use crate::world::{Service, World};
use anyhow::{Result, ensure};
use rustls::ClientConfig;
use rustls::client::Resumption;
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Encrypted requests have at least this share of the rate of plain ones.
const SHARE: f64 = 0.7;
/// Above this size of an answer its bytes decide, and no share is asked for.
const LARGE: usize = 64 * 1024;

pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let mut found = Found::of(plan);
    let plain = World::new(&plan.programs, 1)?;
    let mut secure = World::new(&plan.programs, 1)?;
    let tls = json!({ "provision": "self-signed", "hostnames": [NAME] });
    secure.configure(json!({ "tls": tls }))?;
    let mut asks = vec![
        ("/healthz", "/healthz".to_owned()),
        ("/api/v1/projects", "/api/v1/projects".to_owned()),
    ];
    if let Some(asset) = asset(&plain)? {
        asks.push(("a static asset (module, brotli)", asset));
    }
    kept(plan, &mut found, &plain, &secure, &asks)?;
    greetings(plan, &mut found, &plain, &secure)?;
    plain.end()?;
    secure.end()?;
    Ok(found.all())
}

/// Starts the service of a world with encryption; what a client needs to trust it.
fn serve(world: &World) -> Result<(Service, ClientConfig)> {
    let file = world.state.join("tls/self-signed.crt");
    let answers = |port: u16| -> Result<()> {
        let config = Arc::new(wire::trusting(&file)?);
        answer(&mut Wire::open(port, Some(&config))?, port).map(drop)
    };
    let service = world.serve_when(|port| answers(port).is_ok())?;
    Ok((service, wire::trusting(&file)?))
}

/// Asks for the health once; the time until the answer.
fn answer(wire: &mut Wire, port: u16) -> Result<Duration> {
    let began = Instant::now();
    wire.write_all(&request("GET", "/healthz", port, "", None))?;
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(head) = http::head(&bytes)? {
            ensure!(head.status == 200, "the health is {}", head.status);
            if head.body.is_some_and(|body| bytes.len() >= head.length + body) {
                return Ok(began.elapsed());
            }
        }
        let read = wire.read(&mut chunk)?;
        ensure!(read > 0, "the service closed the connection");
        bytes.extend_from_slice(chunk.get(..read).unwrap_or_default());
    }
}

/// The same requests plain and encrypted, in turns, each with a service of its own.
fn kept(
    plan: &Plan,
    found: &mut Found,
    plain: &World,
    secure: &World,
    asks: &[(&str, String)],
) -> Result<()> {
    let rounds = plan.pick(3, 1);
    let (mut open, mut encrypted) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let service = plain.serve()?;
        service.settle("")?;
        turn(plan, &service, None, asks, rounds, &mut open)?;
        service.stop()?;
        let (service, config) = serve(secure)?;
        settled(&service, &config)?;
        turn(plan, &service, Some(&Arc::new(config)), asks, rounds, &mut encrypted)?;
        service.stop()?;
    }
    for (((what, _), open), encrypted) in asks.iter().zip(open).zip(encrypted) {
        let before = Figure::new(format!("{what}, plain"), "req/s", open.rates);
        let rate = Figure::new(format!("{what}, over TLS"), "req/s", encrypted.rates);
        let bound = before.quantile(0.5) * SHARE;
        let note = format!(
            "{:.0} % of the plain rate; {} µs of processor each, {} plain; the generator used \
             {:.0} % of a core, {:.0} plain",
            rate.quantile(0.5) / before.quantile(0.5) * 100.0,
            shown(encrypted.cost),
            shown(open.cost),
            encrypted.own_share * 100.0,
            open.own_share * 100.0,
        );
        let gigabytes = rate.quantile(0.5) * encrypted.body as f64 / 1e9;
        found.add(before);
        found.add(match encrypted.body > LARGE {
            true => rate.note(format!("{note}; {} GB/s", shown(gigabytes))),
            false => rate.at_least(Of::Median, bound.round()).note(note),
        });
    }
    Ok(())
}

/// Waits until the agent was asked what is asked after a start.
fn settled(service: &Service, config: &ClientConfig) -> Result<()> {
    let mut wire = Wire::open(service.port, Some(&Arc::new(config.clone())))?;
    let began = Instant::now();
    let mut last = None;
    while began.elapsed() < Duration::from_secs(60) {
        let mut chunk = [0; 4096];
        wire.write_all(&request("GET", "/healthz", service.port, "", None))?;
        let read = wire.read(&mut chunk)?;
        let text = String::from_utf8_lossy(chunk.get(..read).unwrap_or_default()).into_owned();
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
        let is_known = body.as_ref().is_some_and(|body| !body.contains("\"claude_version\":null"));
        if is_known && body == last {
            return Ok(());
        }
        last = body;
        std::thread::sleep(Duration::from_millis(300));
    }
    anyhow::bail!("the health does not settle")
}

fn turn(
    plan: &Plan,
    service: &Service,
    tls: Option<&Arc<ClientConfig>>,
    asks: &[(&str, String)],
    rounds: u64,
    loads: &mut Vec<Load>,
) -> Result<()> {
    let (warm, time) = plan.pick((500, 3000), (50, 300));
    let (warm, time) = (Duration::from_millis(warm), Duration::from_millis(time / rounds));
    for (at, (_, path)) in asks.iter().enumerate() {
        let accept = if path.ends_with(".wasm") { "Accept-Encoding: br\r\n" } else { "" };
        let request = request("GET", path, service.port, accept, None);
        let load = load::run_over(service.place(), tls, &request, warm, time)?;
        match loads.get_mut(at) {
            Some(before) => before.join(load)?,
            None => loads.push(load),
        }
    }
    Ok(())
}

/// A connection for one answer: plain, with a whole handshake, and resumed.
fn greetings(plan: &Plan, found: &mut Found, plain: &World, secure: &World) -> Result<()> {
    let many = plan.pick(500, 5);
    let service = plain.serve()?;
    found.add(connections(&service, None, many, "a connection and one answer, plain")?.0);
    service.stop()?;
    let (service, trusting) = serve(secure)?;
    let mut anew = trusting.clone();
    anew.resumption = Resumption::disabled();
    let (figure, resumed) =
        connections(&service, Some(&Arc::new(anew)), many, "the same, a whole TLS handshake")?;
    ensure!(resumed == 0, "{resumed} handshakes were resumed, and none should be");
    found.add(figure);
    // The service gives a ticket with the first answer, and each is used once.
    let config = Arc::new(trusting);
    answer(&mut Wire::open(service.port, Some(&config))?, service.port)?;
    let (figure, resumed) =
        connections(&service, Some(&config), many, "the same, a resumed TLS handshake")?;
    ensure!(resumed == many, "{resumed} of {many} handshakes were resumed");
    found.add(figure);
    service.stop()
}

/// So many connections one after the other, and how many of them were resumed.
fn connections(
    service: &Service,
    tls: Option<&Arc<ClientConfig>>,
    many: usize,
    what: &str,
) -> Result<(Figure, usize)> {
    let (mut times, mut resumed) = (Vec::new(), 0);
    let used = machine::processor_seconds(service.pid())?;
    for _ in 0..many {
        let began = Instant::now();
        let mut wire = Wire::open(service.port, tls)?;
        answer(&mut wire, service.port)?;
        times.push(millis(began.elapsed()));
        resumed += usize::from(wire.is_resumed());
    }
    let cost = (machine::processor_seconds(service.pid())? - used) / many as f64 * 1e6;
    let note = format!("{} µs of processor each", shown(cost));
    Ok((Figure::new(what, "ms", times).note(note), resumed))
}
