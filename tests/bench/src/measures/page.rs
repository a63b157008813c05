//! Bytes of the page's first load. `cargo xtask times` measures the time.

use crate::plan::{Found, Plan};
use crate::report::{Figure, Of};
use crate::world::World;
use anyhow::{Result, ensure};
use std::collections::BTreeSet;

const ROOT: &str = "/static/";

pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let mut found = Found::of(plan);
    let world = World::new(&plan.programs, 1)?;
    let service = world.serve()?;
    let mut connection = service.connect()?;
    let html = connection.get("/")?;
    if html.status != 200 {
        crate::plan::say("the service was built without the page: nothing of it is measured");
        return Ok(found.all());
    }
    connection.headers = "Accept-Encoding: br\r\n".to_owned();
    let (mut all, mut module) = (connection.get("/")?.expect(200)?.body.len(), 0);
    let page = String::from_utf8_lossy(&html.body).into_owned();
    let is_end = |letter: char| matches!(letter, '"' | '\'' | ' ' | '<' | '>' | ')');
    let named = page.match_indices(ROOT).filter_map(|(at, _)| page.get(at..)?.split(is_end).next());
    let files: BTreeSet<&str> = named.collect();
    ensure!(
        files.iter().any(|file| file.ends_with(".wasm")),
        "the page names no module: {files:?}"
    );
    for file in &files {
        let bytes = connection.get(file)?.expect(200)?.body.len();
        all += bytes;
        module += if file.ends_with(".wasm") { bytes } else { 0 };
    }
    service.stop()?;
    world.end()?;
    let kib = |bytes: usize| vec![bytes as f64 / 1024.0];
    let figure = Figure::new("page, module, brotli", "KiB", kib(module));
    found.add(figure.at_most(Of::Worst, 500.0));
    let figure = Figure::new("page, everything of the first load, brotli", "KiB", kib(all));
    found.add(figure.at_most(Of::Worst, 560.0).note(format!("{} files", files.len() + 1)));
    let figure = Figure::new("page, HTML before compression", "KiB", kib(html.body.len()));
    found.add(figure.at_most(Of::Worst, 20.0));
    Ok(found.all())
}
