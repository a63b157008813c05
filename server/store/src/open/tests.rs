//! Migrations between unreleased schemas, and the settings of every connection.

use super::*;
use crate::opened::mode;
use crate::{Cap, StoreError};
use sqlx::sqlite::SqliteConnection;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration as Span, SystemTime};
use svc_domain::bridge::{Anchor, Bridge, Live, Stage, State};
use svc_shared::Timestamp;
use svc_shared::status::{Origin, PermissionMode, ResumeMode, SpawnMode};
use tempfile::TempDir;

const WRITE: Access = Access::ReadWrite { snapshot: true };

/// What the machinery is tried with: a record needs all columns that there are.
const RELEASED: &[Script] = migrate::ALL;

/// All migrations and others after them, whose numbers are far above.
fn with(more: &[(i64, &'static str)]) -> &'static [Script] {
    let more =
        more.iter().map(|(version, sql)| Script { version: *version, description: "later", sql });
    RELEASED.iter().copied().chain(more).collect::<Vec<_>>().leak()
}

const GOOD: &str = "ALTER TABLE bridges ADD COLUMN mood TEXT; \
     UPDATE bridges SET mood = 'fine'; \
     CREATE TABLE moods (word TEXT NOT NULL PRIMARY KEY) STRICT; \
     INSERT INTO moods VALUES ('fine'); \
     PRAGMA user_version = 102;";

fn bridge(number: u32) -> Bridge {
    Bridge {
        id: format!("00000000-0000-4000-8000-{number:012x}").parse().unwrap(),
        project: format!("p{number}").parse().unwrap(),
        cwd: "/srv/projects".into(),
        custom_name: None,
        resume_mode: ResumeMode::Standard,
        spawn_mode: SpawnMode::SameDir,
        permission_mode: PermissionMode::Default,
        origin: Origin::Spawned,
        generation: 1,
        state: State::Live(Live { stage: Stage::Ready, stop_requested: false }),
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
    }
}

async fn add(store: &Store, number: u32) -> Result<crate::Inserted, StoreError> {
    store.insert(&bridge(number), Cap::default(), Timestamp::from_millis(1)).await
}

/// A directory with three rows in the released schema.
async fn filled() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let store = open_with(dir.path(), WRITE, RELEASED).await.unwrap();
    for number in 1..=3 {
        assert_eq!(add(&store, number).await.unwrap(), crate::Inserted::Yes);
    }
    store.close().await;
    dir
}

async fn opened(file: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(file).read_only(true).connect().await.unwrap()
}

/// Everything that is in a database: schema, version and rows.
async fn content(file: &Path) -> Vec<String> {
    let mut connection = opened(file).await;
    let mut content: Vec<String> = Vec::new();
    let tables: Vec<(String, String)> =
        sqlx::query_as("SELECT name, COALESCE(sql, '') FROM sqlite_schema ORDER BY name")
            .fetch_all(&mut connection)
            .await
            .unwrap();
    for (name, sql) in tables {
        content.push(sql);
        let columns: Vec<String> = sqlx::query_scalar("SELECT name FROM pragma_table_info(?)")
            .bind(&name)
            .fetch_all(&mut connection)
            .await
            .unwrap();
        if columns.is_empty() {
            continue;
        }
        let quoted: Vec<String> = columns.iter().map(|column| format!("quote({column})")).collect();
        let sql = format!("SELECT {} FROM {name} ORDER BY 1", quoted.join(" || ',' || "));
        content.extend(
            sqlx::query_scalar::<_, String>(&sql).fetch_all(&mut connection).await.unwrap(),
        );
    }
    let version: i64 =
        sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut connection).await.unwrap();
    content.push(version.to_string());
    connection.close().await.unwrap();
    content
}

fn snapshots(dir: &TempDir) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir.path().join("backups")) else {
        return Vec::new();
    };
    let found: BTreeSet<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    found.into_iter().collect()
}

async fn refused(dir: &TempDir, scripts: &'static [Script]) -> OpenError {
    open_with(dir.path(), WRITE, scripts).await.expect_err("the start is refused")
}

#[tokio::test]
async fn every_statement_prepares_against_the_migrated_schema() {
    let dir = filled().await;
    open_with(dir.path(), WRITE, migrate::ALL).await.unwrap().close().await;
    let mut connection = opened(&dir.path().join("svc.db")).await;
    for statement in crate::statements::STATEMENTS.iter().flat_map(|table| table.iter()) {
        sqlx::Executor::prepare(&mut connection, statement).await.expect(statement);
    }
}

#[tokio::test]
async fn what_every_start_asks_is_answered_without_reading_the_rows() {
    let dir = filled().await;
    open_with(dir.path(), WRITE, migrate::ALL).await.unwrap().close().await;
    let mut connection = opened(&dir.path().join("svc.db")).await;
    for (statement, index) in [
        (crate::bridges::REVISIONS, "COVERING INDEX bridges_by_revision"),
        (crate::bridges::COUNT_LIVE, "COVERING INDEX live_bridges"),
    ] {
        let sql = format!("EXPLAIN QUERY PLAN {statement}");
        let plan: (i64, i64, i64, String) =
            sqlx::query_as(&sql).fetch_one(&mut connection).await.unwrap();
        assert!(plan.3.contains(index), "{}", plan.3);
    }
}

#[test]
fn migrations_are_in_order_and_say_which_they_are() {
    assert!(migrate::ALL.is_sorted_by(|a, b| a.version < b.version));
    for script in migrate::ALL {
        let said = format!("PRAGMA user_version = {};", script.version);
        assert!(script.sql.trim_end().ends_with(&said), "{}", script.description);
    }
}

#[tokio::test]
async fn h117_a_pending_migration_is_applied_after_a_private_snapshot_of_what_was() {
    let dir = filled().await;
    assert!(snapshots(&dir).is_empty(), "a first start has nothing to keep");
    let before = content(&dir.path().join("svc.db")).await;

    let later = with(&[(102, GOOD)]);
    let store = open_with(dir.path(), WRITE, later).await.unwrap();
    assert_eq!(store.bridges().await.unwrap().len(), 3);
    store.close().await;

    let kept = snapshots(&dir);
    let name = kept[0].file_name().unwrap().to_str().unwrap();
    assert!(
        kept.len() == 1
            && name.starts_with(&format!("pre-{}-102-", migrate::head(RELEASED)))
            && name.ends_with("Z.db"),
        "{kept:?}"
    );
    assert_eq!(content(&kept[0]).await, before);
    assert_eq!(mode(&kept[0]).unwrap(), Some(0o600));
    let directory = std::fs::metadata(dir.path().join("backups")).unwrap();
    assert_eq!(directory.permissions().mode() & 0o777, 0o700);

    // The way back: the snapshot in the place of the database.
    drop(open_with(dir.path(), WRITE, later).await.unwrap());
    assert_eq!(snapshots(&dir).len(), 1, "nothing is pending any more");
    let back = tempfile::tempdir().unwrap();
    std::fs::copy(&kept[0], back.path().join("svc.db")).unwrap();
    let store = open_with(back.path(), WRITE, RELEASED).await.unwrap();
    assert_eq!(store.bridges().await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_migration_without_a_snapshot_is_what_was_asked_for() {
    let dir = filled().await;
    let access = Access::ReadWrite { snapshot: false };
    drop(open_with(dir.path(), access, with(&[(102, GOOD)])).await.unwrap());
    assert!(snapshots(&dir).is_empty());
}

#[tokio::test]
async fn h117_a_migration_that_fails_at_any_statement_leaves_everything_as_it_was() {
    let dir = filled().await;
    let file = dir.path().join("svc.db");
    let before = content(&file).await;
    let statements: Vec<&str> = GOOD.split_inclusive(';').collect();
    for failing in 0..=statements.len() {
        let mut broken = statements.clone();
        broken.insert(failing, "INSERT INTO nowhere VALUES (1);");
        // A second file that would succeed, and one before that did.
        for versions in [[102, 103], [103, 102]] {
            let sql: &'static str = broken.concat().leak();
            let other = "CREATE TABLE other (x INTEGER) STRICT; PRAGMA user_version = 102;";
            let scripts = if versions[0] == 102 {
                with(&[(102, sql), (103, "PRAGMA user_version = 103;")])
            } else {
                with(&[(102, other), (103, sql)])
            };
            let error = refused(&dir, scripts).await;
            let OpenError::Migration { snapshot: Some(snapshot), .. } = &error else {
                panic!("statement {failing}: {error:?}");
            };
            assert!(error.to_string().contains(snapshot.to_str().unwrap()), "{error}");
            assert_eq!(content(snapshot).await, before);
            assert_eq!(content(&file).await, before, "statement {failing}");
        }
    }
    let store = open_with(dir.path(), WRITE, with(&[(102, GOOD)])).await.unwrap();
    assert_eq!(store.bridges().await.unwrap().len(), 3, "a good start goes on from there");
}

#[tokio::test]
async fn a_migration_that_breaks_a_reference_or_forgets_its_number_is_taken_back() {
    let dir = filled().await;
    let file = dir.path().join("svc.db");
    let before = content(&file).await;
    for sql in [
        "DELETE FROM projects WHERE name = 'p2'; PRAGMA user_version = 102;",
        "CREATE TABLE moods (word TEXT) STRICT;",
    ] {
        let error = refused(&dir, with(&[(102, sql)])).await;
        assert!(matches!(error, OpenError::Migration { .. }), "{error:?}");
        assert_eq!(content(&file).await, before);
    }
}

#[tokio::test]
async fn h117_without_its_snapshot_nothing_is_migrated() {
    let dir = filled().await;
    let file = dir.path().join("svc.db");
    let before = content(&file).await;
    std::fs::write(dir.path().join("backups"), "in the way").unwrap();
    let error = refused(&dir, with(&[(102, GOOD)])).await;
    assert!(
        matches!(&error, OpenError::Snapshot { path, .. }
        if path.starts_with(dir.path().join("backups"))),
        "{error:?}"
    );
    assert_eq!(content(&file).await, before);
    assert_eq!(std::fs::read_to_string(dir.path().join("backups")).unwrap(), "in the way");
}

#[tokio::test]
async fn h117_the_five_newest_snapshots_are_kept_and_files_of_others_always() {
    let dir = filled().await;
    let backups = dir.path().join("backups");
    std::fs::create_dir(&backups).unwrap();
    let aged = |name: &str, age: i64| {
        let path = backups.join(name);
        let file = std::fs::File::create(&path).unwrap();
        let distance = Span::from_secs(age.unsigned_abs());
        let now = SystemTime::now();
        let time = if age < 0 { now + distance } else { now - distance };
        file.set_modified(time).unwrap();
        path
    };
    // The names say another order than the times; some come from a clock that was wrong.
    let old: Vec<PathBuf> =
        (1..=4).map(|age| aged(&format!("pre-0-1-{age}Z.db"), age * 100)).collect();
    let future: Vec<PathBuf> =
        (1..=3).map(|age| aged(&format!("pre-0-1-0{age}Z.db"), age * -100)).collect();
    let others: Vec<PathBuf> =
        ["notes.txt", "mine.db", "pre-1-2.db"].iter().map(|name| aged(name, 9_999)).collect();
    aged("pre-0-1-5Z.db.tmp", 0);

    drop(open_with(dir.path(), WRITE, with(&[(102, GOOD)])).await.unwrap());
    let left = snapshots(&dir);
    let begin = format!("pre-{}-102-2", migrate::head(RELEASED));
    let taken: Vec<_> =
        left.iter().filter(|path| path.to_string_lossy().contains(&begin)).cloned().collect();
    assert_eq!(taken.len(), 1, "the one just taken stays, whatever the others claim");
    let expected: BTreeSet<PathBuf> =
        [&future[..], &old[..1], &others[..], &taken[..]].concat().into_iter().collect();
    assert_eq!(left, expected.into_iter().collect::<Vec<_>>());
}

#[tokio::test]
async fn a_reader_does_not_migrate() {
    let dir = filled().await;
    let before = std::fs::read(dir.path().join("svc.db")).unwrap();
    let error = open_with(dir.path(), Access::ReadOnly, with(&[(102, GOOD)])).await.unwrap_err();
    let released = migrate::head(RELEASED);
    let fits = matches!(error, OpenError::Pending { found, known: 102, .. } if found == released);
    assert!(fits, "{error:?}");
    assert_eq!(std::fs::read(dir.path().join("svc.db")).unwrap(), before);
}

#[tokio::test]
async fn h118_a_newer_schema_that_only_the_log_holds_is_refused_too() {
    let dir = filled().await;
    let file = dir.path().join("svc.db");
    // While somebody reads, the migration stays in the log.
    let mut other = SqliteConnectOptions::new().filename(&file).connect().await.unwrap();
    let sql = "SELECT COUNT(*) FROM bridges";
    assert_eq!(sqlx::query_scalar::<_, i64>(sql).fetch_one(&mut other).await.unwrap(), 3);
    let newer = open_with(dir.path(), WRITE, with(&[(102, GOOD)])).await.unwrap();

    let copy = tempfile::tempdir().unwrap();
    for name in ["svc.db", "svc.db-wal"] {
        std::fs::copy(dir.path().join(name), copy.path().join(name)).unwrap();
    }
    let header = std::fs::read(copy.path().join("svc.db")).unwrap();
    let released = migrate::head(RELEASED);
    let version = i64::from(i32::from_be_bytes(header[60..64].try_into().unwrap()));
    assert_eq!(version, released, "the file itself still has the old schema");
    let error = refused(&copy, RELEASED).await;
    let fits = matches!(error, OpenError::Newer { found: 102, known, .. } if known == released);
    assert!(fits, "{error:?}");
    newer.close().await;
}

#[tokio::test]
async fn h101_every_connection_waits_checks_references_and_syncs() {
    let dir = filled().await;
    let store = open_with(dir.path(), WRITE, RELEASED).await.unwrap();
    let pragma = async |connection: &mut SqliteConnection, name: &str| {
        let sql = format!("PRAGMA {name}");
        let row = sqlx::query(&sql).fetch_one(connection).await.unwrap();
        sqlx::Row::try_get::<String, _>(&row, 0)
            .or_else(|_| sqlx::Row::try_get::<i64, _>(&row, 0).map(|number| number.to_string()))
            .unwrap()
    };
    let mut writer = store.begin().await.unwrap();
    let mut reader = store.readers.begin().await.unwrap();
    for connection in [&mut *writer, &mut *reader] {
        assert_eq!(pragma(connection, "journal_mode").await, "wal");
        assert_eq!(pragma(connection, "synchronous").await, "2", "FULL");
        assert_eq!(pragma(connection, "foreign_keys").await, "1");
        assert_eq!(pragma(connection, "busy_timeout").await, "5000");
        // H86: nothing that the schema names runs by itself, and no cell is read past its page.
        assert_eq!(pragma(connection, "trusted_schema").await, "0");
        assert_eq!(pragma(connection, "cell_size_check").await, "1");
    }
}

#[tokio::test]
async fn h91_a_full_disk_fails_the_write_as_a_whole_and_recovers_without_a_restart() {
    let dir = filled().await;
    let store = open_with(dir.path(), WRITE, RELEASED).await.unwrap();
    let limit = async |pages: i64| {
        let mut transaction = store.begin().await.unwrap();
        let sql = format!("PRAGMA max_page_count = {pages}");
        sqlx::query(&sql).execute(&mut *transaction).await.unwrap();
        transaction.commit().await.unwrap();
    };
    let mut big = bridge(1);
    big.notice = Some("x".repeat(100_000));
    let save = async || store.save(1, &big, &[], Cap::default(), Timestamp::from_millis(2)).await;
    limit(1).await; // not below what is there
    assert!(matches!(save().await, Err(StoreError::Full(_))));
    let rows = store.bridges().await.unwrap();
    assert_eq!(rows.len(), 3);
    assert_eq!((rows[0].revision, rows[0].bridge()), (1, Some(&bridge(1))));
    limit(1_000_000).await;
    assert_eq!(save().await.unwrap(), crate::Saved::Yes(2));
}
