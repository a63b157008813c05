//! The other end of the store tests: what has to be a process of its own.
//!
//! Each command says a line when it has come so far, and then waits until its input ends or it is
//! killed. `open` opens for writing. `insert` adds ended rows. `race` inserts a live row after a
//! line on its input and says what came of it. `exclusive` holds the write lock. `bare` opens and
//! writes without any protection by the umask. `refused` writes, has its files made read-only, and
//! writes again. `read-only` writes, and reads when nothing beside the database can be created.

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};
use std::error::Error;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use svc_domain::bridge::{Anchor, Bridge, Ended, Live, Outcome, Stage, State};
use svc_shared::Timestamp;
use svc_shared::status::{Origin, PermissionMode, ResumeMode, SpawnMode};
use svc_store::{Access, Cap, Store, StoreError};

type Done = Result<(), Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["open", dir] => open(Path::new(dir)).await,
        ["insert", dir, first, count] => insert(Path::new(dir), first, count).await,
        ["race", dir, number] => race(Path::new(dir), number).await,
        ["exclusive", dir] => exclusive(Path::new(dir)).await,
        ["bare", dir] => bare(Path::new(dir)).await,
        ["refused", dir] => refused(Path::new(dir)).await,
        ["read-only", dir] => read_only(Path::new(dir)).await,
        _ => Err("unknown command".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}: {error:?}");
            ExitCode::FAILURE
        }
    }
}

fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(out, "{line}")?;
    out.flush()
}

fn wait_for_end() -> io::Result<()> {
    io::stdin().read_to_end(&mut Vec::new()).map(|_| ())
}

async fn writable(dir: &Path) -> Result<Store, Box<dyn Error>> {
    Ok(Store::open(dir, Access::ReadWrite { snapshot: true }).await?)
}

fn bridge(number: u32, project: &str, state: State) -> Result<Bridge, Box<dyn Error>> {
    Ok(Bridge {
        id: format!("00000000-0000-4000-8000-{number:012x}").parse()?,
        project: project.parse()?,
        cwd: PathBuf::from("/srv").join(project),
        custom_name: None,
        resume_mode: ResumeMode::Standard,
        spawn_mode: SpawnMode::SameDir,
        permission_mode: PermissionMode::Default,
        origin: Origin::Spawned,
        generation: 1,
        state,
        status_since: Timestamp::from_millis(1),
        started_at: None,
        launch: None,
        process: None,
        keeper: None,
        worktree: None,
        conversation: None,
        anchor: Anchor::default(),
        notice: None,
        quarantine: None,
        restarts: Default::default(),
        reboot: Default::default(),
        on_limit: None,
    })
}

fn ended() -> State {
    State::Ended(Ended {
        outcome: Outcome::Stopped,
        at: Timestamp::from_millis(2),
        intentional: true,
        forced: false,
        reason: None,
        exit_code: None,
        exit_signal: None,
        detail: None,
    })
}

fn live() -> State {
    State::Live(Live { stage: Stage::Launching { deadline: None }, stop_requested: false })
}

async fn add(store: &Store, number: u32, state: State) -> Result<String, Box<dyn Error>> {
    let bridge = bridge(number, "contested", state)?;
    let outcome = store.insert(&bridge, Cap::default(), Timestamp::from_millis(3)).await?;
    Ok(format!("{outcome:?}"))
}

async fn open(dir: &Path) -> Done {
    let store = writable(dir).await?;
    say("open")?;
    wait_for_end()?;
    store.close().await;
    Ok(())
}

async fn insert(dir: &Path, first: &str, count: &str) -> Done {
    let store = writable(dir).await?;
    let first: u32 = first.parse()?;
    for number in first..first + count.parse::<u32>()? {
        add(&store, number, ended()).await?;
        say("inserted")?;
    }
    wait_for_end()?;
    store.close().await;
    Ok(())
}

async fn race(dir: &Path, number: &str) -> Done {
    let number = number.parse()?;
    say("ready")?;
    io::stdin().read_line(&mut String::new())?;
    let store = writable(dir).await?;
    say(&add(&store, number, live()).await?)?;
    store.close().await;
    Ok(())
}

async fn exclusive(dir: &Path) -> Done {
    let options = SqliteConnectOptions::new().filename(dir.join("svc.db"));
    let mut connection = options.connect().await?;
    let transaction = connection.begin_with("BEGIN EXCLUSIVE").await?;
    say("locked")?;
    wait_for_end()?;
    transaction.rollback().await?;
    Ok(connection.close().await?)
}

async fn bare(dir: &Path) -> Done {
    rustix::process::umask(rustix::fs::Mode::empty());
    let store = writable(dir).await?;
    add(&store, 1, ended()).await?;
    say("written")?;
    wait_for_end()?;
    store.close().await;
    Ok(())
}

/// Whether a row can be inserted, and whether the rows can be read.
async fn attempt(store: &Store, number: u32) -> Result<(), StoreError> {
    let Ok(bridge) = bridge(number, "contested", ended()) else {
        return Err(StoreError::PathNotText);
    };
    store.bridges().await?;
    store.insert(&bridge, Cap::default(), Timestamp::from_millis(3)).await.map(|_| ())
}

async fn refused(dir: &Path) -> Done {
    let mode = |mode| std::fs::set_permissions(dir.join("svc.db"), PermissionsExt::from_mode(mode));
    let _running = writable(dir).await?;
    // Every connection of this store is opened while the file may not be written.
    mode(0o400)?;
    let store = writable(dir).await?;
    match attempt(&store, 1).await {
        Err(StoreError::ReadOnly(_)) => say("refused")?,
        other => return Err(format!("a read-only file led to {other:?}").into()),
    }
    mode(0o600)?;
    attempt(&store, 2).await?;
    say("recovered")?;
    store.close().await;
    Ok(())
}

async fn read_only(dir: &Path) -> Done {
    let mode = |mode| std::fs::set_permissions(dir, PermissionsExt::from_mode(mode));
    let store = writable(dir).await?;
    add(&store, 1, ended()).await?;
    store.close().await;
    drop(store);
    mode(0o500)?;
    let store = Store::open(dir, Access::ReadOnly).await?;
    say(&format!("read {}", store.bridges().await?.len()))?;
    store.close().await;
    Ok(mode(0o700)?)
}
