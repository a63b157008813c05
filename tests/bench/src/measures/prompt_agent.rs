//! A start without the agent's own time, with an agent that registers at once.
//!
//! Nearly all of what is measured is the service's.

use crate::plan::{Found, Plan, millis};
use crate::report::{Figure, Of};
use crate::world::{World, launch, launch_together, name, stop};
use anyhow::Result;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Bridges that are started at the same moment.
const AT_ONCE: usize = 20;

/// Writes the lines of a registered bridge and waits. A shell needs about 1 ms.
const AGENT: &str = r#"#!/bin/sh
case "$1" in
--version) echo "2.1.197 (Claude Code)"; exit ;;
auth) echo '{"loggedIn":true,"authMethod":"claude.ai"}'; exit ;;
agents) echo "[]"; exit ;;
remote-control) ;;
*) exit 1 ;;
esac
while [ "$1" != "--debug-file" ]; do shift; done
at="2026-09-20T10:00:00.000Z [DEBUG]"
environment="env_01BENCH$$"
printf '%s\n' "$at [bridge:init] Registered, server environmentId=$environment" \
    "$at [bridge:init] Created initial session session_01BENCH$$" \
    "$at [bridge:work] Starting poll loop spawnMode=same-dir maxSessions=32 environmentId=$environment" \
    >> "$2"
exec sleep 3600
"#;

pub fn measure(plan: &Plan) -> Result<Vec<Figure>> {
    let mut found = Found::of(plan);
    let mut world = World::new(&plan.programs, AT_ONCE)?;
    let agent = agent(&world.root)?;
    world.configure(json!({ "claude": { "binary": agent } }))?;
    let service = world.serve()?;
    let mut connection = service.connect()?;
    let mut one = Vec::new();
    for _ in 0..plan.pick(100, 3) {
        let began = Instant::now();
        let record = launch(&mut connection, &name(0))?;
        one.push(millis(began.elapsed()));
        stop(&mut connection, &record)?;
    }
    let figure = Figure::new("spawn to running, an agent that registers at once", "ms", one);
    found.add(figure.at_most(Of::Median, 10.0));
    let mut all = Vec::new();
    for _ in 0..plan.pick(12, 1) {
        let (began, records) = launch_together(&service, AT_ONCE)?;
        all.push(millis(began.elapsed()));
        for record in &records {
            stop(&mut connection, record)?;
        }
    }
    let name = format!("{AT_ONCE} spawns at once, agents that register at once");
    found.add(Figure::new(name, "ms", all).at_most(Of::Median, 150.0));
    service.stop()?;
    world.end()?;
    Ok(found.all())
}

fn agent(root: &Path) -> Result<PathBuf> {
    let program = root.join("prompt-agent");
    fs::write(&program, AGENT)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    Ok(program)
}
