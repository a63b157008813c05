//! What it costs to ask who somebody is: a password, a session, a wrong token.

use super::requests::drive;
use crate::http::Connection;
use crate::plan::{Found, Plan, millis};
use crate::report::{Figure, Of, histogram};
use crate::world::World;
use anyhow::{Context as _, Result};
use serde_json::json;
use std::time::Instant;

const PASSWORD: &str = "correct horse";
/// Of that password, as costly as the command makes them.
const HASH: &str = "$argon2id$v=19$m=65536,t=3,p=4$5dovhQvUlE3m6YlIFQxn3Q\
    $dNG9KzFkBn/cdCqfwz8NAphEpGXQm3Eg2xTeojOtyxk";

pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let mut found = Found::of(plan);
    let mut world = World::new(&plan.programs, 1)?;
    world.configure(json!({
        "auth": { "enabled": true, "password_required": true, "password_hash": HASH }
    }))?;
    let service = world.serve()?;
    let port = service.port;
    let sign_in = || -> Result<String> {
        let mut connection = Connection::open(port)?;
        connection.headers = format!("Origin: http://127.0.0.1:{port}\r\n");
        let reply = connection.post("/login", &json!({ "password": PASSWORD }))?.expect(200)?;
        let cookie = reply.header("set-cookie").context("a cookie")?;
        Ok(cookie.split(';').next().unwrap_or_default().to_owned())
    };
    let mut times = Vec::new();
    let mut cookie = String::new();
    for _ in 0..plan.pick(12, 1) {
        let began = Instant::now();
        cookie = sign_in()?;
        times.push(millis(began.elapsed()));
    }
    found.add(Figure::new("a sign-in with a password", "ms", times).note("memory-hard on purpose"));

    // Two passwords at once, as many as the cores: who asks something else must not wait for them.
    let mut health = histogram();
    std::thread::scope(|scope| -> Result<()> {
        let visitors: Vec<_> = (0..2).map(|_| scope.spawn(sign_in)).collect();
        let mut connection = Connection::open(port)?;
        while visitors.iter().any(|visitor| !visitor.is_finished()) {
            let began = Instant::now();
            connection.get("/healthz")?.expect(200)?;
            health.saturating_record(u64::try_from(began.elapsed().as_nanos())?);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        for visitor in visitors {
            visitor.join().map_err(|_| anyhow::anyhow!("a visitor panicked"))??;
        }
        Ok(())
    })?;
    let longest = health.max() as f64 / 1e6;
    let figure = Figure::latencies("/healthz while two passwords are checked", health);
    found.add(figure.at_most(Of::Worst, 30.0).note(format!("longest {longest:.1} ms")));

    let load = drive(plan, service.place(), "/api/v1/projects", &format!("Cookie: {cookie}\r\n"))?;
    found.add(Figure::new("/api/v1/projects, 1 project, session cookie", "req/s", load.rates));
    service.stop()?;
    world.end()?;
    Ok(found.all())
}
