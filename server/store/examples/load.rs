//! Times the registry with many rows.
//!
//! `cargo run -p svc-store --example load [rows]` prints figures of this machine and this build.
//! Nothing is asserted.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;
use std::time::Instant;
use svc_domain::bridge::{Anchor, Bridge, Ended, Launch, Outcome, State};
use svc_shared::Timestamp;
use svc_shared::status::{ExitReason, Origin, PermissionMode, ResumeMode, SpawnMode};
use svc_store::{Access, Cap, Store};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let rows: u32 = std::env::args().nth(1).map_or(Ok(10_000), |rows| rows.parse())?;
    let dir = tempfile::tempdir()?;
    let write = Access::ReadWrite { snapshot: true };
    let store = Store::open(dir.path(), write).await?;

    let begun = Instant::now();
    for number in 1..=rows {
        let inserted = store.insert(&bridge(number)?, Cap::default(), at(1)).await?;
        if inserted != svc_store::Inserted::Yes {
            return Err("a row was not inserted".into());
        }
    }
    say(&format!("insert {rows} rows, each durable"), begun)?;
    store.close().await;
    drop(store);
    let bytes = std::fs::metadata(dir.path().join("svc.db"))?.len();

    let begun = Instant::now();
    let store = Store::open(dir.path(), write).await?;
    say(&format!("open and check {} MiB", bytes >> 20), begun)?;

    let begun = Instant::now();
    let all = store.bridges().await?;
    say("read all rows", begun)?;

    let known: BTreeMap<i64, i64> = all.iter().map(|row| (row.number, row.revision)).collect();
    for again in ["", ", again"] {
        let begun = Instant::now();
        store.changed_since(&known).await?;
        say(&format!("find that nothing changed{again}"), begun)?;
    }

    let one = bridge(rows / 2 + 1)?;
    let begun = Instant::now();
    let saved = store.save(1, &one, &[], Cap::default(), at(2)).await?;
    say("save one row, durable", begun)?;
    if saved != svc_store::Saved::Yes(2) {
        return Err("the row was not saved".into());
    }

    let begun = Instant::now();
    let changed = store.changed_since(&known).await?.changed.len();
    say(&format!("find and read {changed} changed row"), begun)?;

    let begun = Instant::now();
    store.bridge(&one.id).await?;
    say("read one row", begun)?;
    store.close().await;
    Ok(())
}

fn say(what: &str, begun: Instant) -> std::io::Result<()> {
    let millis = begun.elapsed().as_secs_f64() * 1000.0;
    writeln!(std::io::stdout(), "{millis:>10.2} ms  {what}")
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// A row as a longer life leaves it.
fn bridge(number: u32) -> Result<Bridge, Box<dyn Error>> {
    let project = format!("project-{}", number % 500);
    Ok(Bridge {
        id: format!("00000000-0000-4000-8000-{number:012x}").parse()?,
        cwd: format!("/srv/projects/{project}").into(),
        custom_name: None,
        resume_mode: ResumeMode::Standard,
        spawn_mode: SpawnMode::SameDir,
        permission_mode: PermissionMode::Default,
        origin: Origin::Spawned,
        generation: 3,
        state: State::Ended(Ended {
            outcome: Outcome::Crashed,
            at: at(1),
            intentional: false,
            forced: false,
            reason: Some(ExitReason::Unknown),
            exit_code: Some(1),
            exit_signal: None,
            detail: Some("a line of the last output of the agent\n".repeat(20)),
        }),
        status_since: at(1),
        started_at: Some(at(1)),
        launch: Some(Launch {
            id: format!("{number:032x}").parse()?,
            argv: ["agent", "remote-control", "--name", "x", "--debug-file", "/srv/logs/x.log"]
                .into_iter()
                .collect(),
            log_stem: format!("{project}-1700000000000-{number}"),
            relaunched: false,
        }),
        project: project.parse()?,
        process: None,
        keeper: None,
        worktree: None,
        conversation: None,
        anchor: Anchor { environment_id: Some("env_01".repeat(5)), session_id: None },
        notice: None,
        quarantine: None,
        restarts: Default::default(),
        reboot: Default::default(),
        on_limit: None,
    })
}
